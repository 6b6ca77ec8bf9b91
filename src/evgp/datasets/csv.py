"""Read delimited text (CSV, TSV), and explain its errors."""

import io
import os
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from evgp._reading import check_memory, is_utf8, opened, read_bytes, room
from evgp.datasets.arrays import check_columns
from evgp.datasets.columns import is_number
from evgp.datasets.dialect import (
    NAMES,
    UTF8,
    checked_encoding,
    chunks,
    delimiter_of,
    encoding_of,
    has_texts,
    recoded,
)
from evgp.datasets.formats import NumberFormat, Recognised, example, recognise
from evgp.datasets.parquet import native
from evgp.errors import (
    DatasetError,
    EmptyFile,
    EvgpError,
    RaggedRow,
    UnreadableFile,
    WrongFormat,
)

_MOST_LINES = 100
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")


def check_quotes(
    path: Path, content: pa.Buffer | None, delimiter: str, types: Sequence[pa.DataType] = ()
) -> None:
    """Refuse a quote that is never closed, or a quoted cell that seems to contain whole rows."""
    text = read_bytes(path) if content is None else content.to_pybytes()
    _check(path, text, delimiter, types)


def _check(path: Path, text: bytes, delimiter: str, types: Sequence[pa.DataType]) -> None:
    mark = re.escape(delimiter.encode())
    # A quote is special only at the start of a cell; inside, two in a row stand for one.
    cells = re.compile(rb'(?:(?<=[\r\n%b])|\A(?:\xef\xbb\xbf)?)"([^"]*+(?:""[^"]*+)*+)("?)' % mark)
    ends = re.compile(rb" *(?:[\r\n%b]|\Z)" % mark)
    line, last = 1, 0
    for cell in cells.finditer(text):
        inside, closed = cell.groups()
        if closed and b"\n" not in inside and b"\r" not in inside:
            continue
        line += text[last : cell.start(1)].count(b"\n")
        last = cell.start(1)
        lines = re.split(r"\r\n?|\n", inside.decode("utf-8", errors="replace"))
        if not closed:
            problem = "is never closed"
        elif len(lines) > _MOST_LINES:
            problem = f"is closed {len(lines) - 1:,} lines below"
        elif not ends.match(text, cell.end()):
            problem = "is closed in the middle of another cell"
        elif _holds_rows(lines, delimiter, types):
            problem = f"takes in lines that look like rows of their own ({len(lines) - 1:,})"
        else:
            continue
        raise DatasetError(
            f"{path}: expected a closing quote for each opening one, but the quote that opens in "
            f"line {line:,} {problem}; fix that line (a quote inside a cell is written twice), or "
            "save the table as Parquet if that text is intended"
        )


def _holds_rows(lines: Sequence[str], delimiter: str, types: Sequence[pa.DataType]) -> bool:
    """Whether the lines of a cell look like the end of a row, whole rows, and a row's start."""
    width = len(types)
    if width < 2 or len(lines) < 2:
        return False
    head, *rows, tail = (line.split(delimiter) for line in lines)
    if len(head) + len(tail) != width + 1 or any(len(row) != width for row in rows):
        return False
    if len(rows) >= 3:
        return True
    cells = [*(zip(row, types, strict=True) for row in rows), zip(tail[:-1], types, strict=False)]
    numbers = [cell for row in cells for cell, kind in row if is_number(kind)]
    return len(numbers) >= 2 and all(_NUMBER.fullmatch(cell) for cell in numbers)


_RAGGED = re.compile(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)", re.DOTALL)
_HEAD = 2**20
# Bytes of a block. A row must fit into one: enough for half a million columns.
_BLOCK = 2**23


@dataclass(frozen=True)
class Dialect:
    """How a text file is written; what is None is recognised, with a `DataWarning`."""

    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    dates: str | None = None

    def __post_init__(self) -> None:
        if self.decimal not in (None, ".", ","):
            raise DatasetError(f"expected decimal as '.' or ',', got {self.decimal!r}")
        if self.encoding is not None:
            object.__setattr__(self, "encoding", checked_encoding(self.encoding))
        if self.delimiter is None:
            return
        sign = sign_of(self.delimiter)
        if len(sign) != 1 or not sign.isascii() or sign in '\r\n"':
            raise DatasetError(f"expected a delimiter of one character, or 'tab', got {sign!r}")
        if sign == self.decimal:
            raise DatasetError(f"expected different signs as delimiter and decimal, got {sign!r}")
        object.__setattr__(self, "delimiter", sign)


@dataclass(frozen=True)
class TextFile:
    """A text file in UTF-8: the file itself, or its content in memory, and its delimiter."""

    path: Path
    content: pa.Buffer | None
    delimiter: str
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, path: Path, dialect: Dialect, usual: str, content: pa.Buffer | None = None
    ) -> "TextFile":
        """Recognise the encoding and the delimiter; `usual` is the delimiter of this kind."""
        if content is None:
            check_memory(path.stat().st_size, str(path))  # without the byte order mark
        notes = []
        encoding, why = (dialect.encoding, "") if dialect.encoding else encoding_of(path, content)
        if encoding not in UTF8:
            content = recoded(path, content, encoding)
        delimiter = dialect.delimiter or delimiter_of(path, content, usual)
        if dialect.encoding is None and encoding != "utf-8":
            notes.append(
                f"recognised text in {encoding}{why}; pass encoding= if characters look wrong"
            )
        if dialect.delimiter is None and delimiter != usual:
            shown = NAMES.get(delimiter, delimiter)
            notes.append(f"recognised {shown!r} as the delimiter; pass delimiter= if that is wrong")
        return cls(path, content, delimiter, tuple(notes))


def read_texts(path: Path, dialect: Dialect, content: pa.Buffer | None) -> Recognised | None:
    """Read a file with one text per line, without a header; None if it is a table."""
    if dialect.delimiter is not None:
        return None
    file = TextFile.of(path, replace(dialect, delimiter=","), ",", content)
    if not has_texts(path, file.content):
        return None
    text = read_bytes(path) if file.content is None else file.content.to_pybytes()
    check_memory(5 * len(text), str(path))
    lines = re.split(r"\r\n?|\n", text.decode("utf-8-sig").rstrip())
    note = f"read as {len(lines):,} texts, one per line; pass delimiter= if it is a table"
    table = pa.table({"text": pa.array(lines, pa.large_string())})
    return Recognised(table, notes=(*file.notes, note))


def read_separated(file: TextFile, dialect: Dialect, text: Sequence[str]) -> Recognised:
    """Read one file, with its numbers and dates; the columns in `text` stay text."""
    data = _checked(file, dialect, text)
    recognised = recognise(data, dialect.decimal, text, dialect.dates)
    floats = [field.name for field in data.schema if pa.types.is_floating(field.type)]
    if dialect.decimal is None and recognised.decimal == "," and floats:
        # Arrow took '1.234' for a number below two, but where commas are decimals it is not.
        again = recognise(_checked(file, dialect, (*text, *floats)), None, text, dialect.dates)
        if again.decimal == ",":
            rest = [name for name in floats if name not in again.formats]
            table = again.data
            for name in rest:
                table = table.set_column(table.schema.get_field_index(name), name, data[name])
            recognised = replace(again, data=table)
    codes = _with_zeros(file, dialect, data)
    notes = [
        f"column {name!r} read as numbers, though some begin with 0, such as {example(cells)!r}"
        for name, cells in codes.items()
    ]
    return replace(
        recognised,
        notes=(*file.notes, *recognised.notes, *notes),
        raw={**recognised.raw, **codes},
        formats={**recognised.formats, **dict.fromkeys(codes, NumberFormat("."))},
    )


def _with_zeros(file: TextFile, dialect: Dialect, data: pa.Table) -> dict[str, pa.ChunkedArray]:
    """Return the columns of whole numbers of which some begin with 0, such as 08505, as text."""
    whole = [field.name for field in data.schema if pa.types.is_integer(field.type)]
    mark = re.escape(file.delimiter.encode())
    begins = re.compile(rb'(?:^|[\r\n%b])"?0\d+"?(?=[\r\n%b]|\Z)' % (mark, mark))
    if not whole or not any(begins.search(chunk) for chunk in chunks(file.path, file.content)):
        return {}
    text = _checked(file, dialect, whole).select(whole)
    zeros = (pc.any(pc.match_substring_regex(cells, r"^\s*0\d")).as_py() for cells in text.columns)
    return {
        name: cells for name, cells, zero in zip(whole, text.columns, zeros, strict=True) if zero
    }


def _checked(file: TextFile, dialect: Dialect, text: Sequence[str]) -> pa.Table:
    """Parse a file, and refuse one whose quotes, header or delimiter are wrong."""
    path, content, delimiter = file.path, file.content, file.delimiter
    guessed = dialect.delimiter is None
    lines, need = _measured(path, content, delimiter)
    if not lines:
        raise WrongFormat.of(DatasetError)(str(path), "a table", "an empty file")
    check_memory(need, str(path))
    try:
        data = _parse(path, content, delimiter, text, dialect.decimal or ".")
        names = [name.strip() or f"Unnamed: {j}" for j, name in enumerate(data.column_names)]
        data = data.rename_columns(names)
    except UnicodeDecodeError as error:
        raise _not_utf8(path, "other bytes in the column names") from error
    except pa.ArrowInvalid as error:
        _check_delimiter(path, lines, delimiter, guessed)
        check_quotes(path, content, delimiter)
        raise _explained(path, content, delimiter, str(error)) from error
    if data.num_columns == 1:
        _check_delimiter(path, lines, delimiter, guessed)
    _check_header(path, names)
    for name, column in zip(names, data.columns, strict=True):
        if pa.types.is_binary(column.type):
            raise _not_utf8(path, f"other bytes in column {name!r}")
    texts = [column for column in data.columns if pa.types.is_string(column.type)]
    if any(pc.any(pc.match_substring_regex(text, r"[\r\n]")).as_py() for text in texts):
        check_quotes(path, content, delimiter, data.schema.types)
    return data


def sign_of(delimiter: str) -> str:
    """Return the character that a delimiter's name stands for.

    >>> sign_of("tab"), sign_of(";")
    ('\\t', ';')
    """
    return {"tab": "\t", "\\t": "\t", "space": " "}.get(delimiter, delimiter)


def _parse(
    path: Path,
    content: pa.Buffer | None,
    delimiter: str,
    text: Sequence[str],
    decimal: str = ".",
    **options: object,
) -> pa.Table:
    # Names that were not UTF-8 have surrogates: no column has such a name, and pyarrow refuses it.
    valid = [name for name in text if is_utf8(name)]
    return pyarrow.csv.read_csv(
        native(path) if content is None else pa.BufferReader(content),
        read_options=pyarrow.csv.ReadOptions(**({"block_size": _BLOCK} | options)),
        parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            strings_can_be_null=True,
            column_types={name: pa.string() for name in valid},
            decimal_point=decimal,
        ),
    )


# Tables of numbers compress about 3 to 1, the most repetitive text about 100 to 1.
_BOMB_RATIO = 300
_BOMB_BYTES = 2**26
_CHUNK = 2**24
# Bytes of memory for each cell in addition to its text, and for each column.
_CELL, _COLUMN = 9, 15_000


def unpacked(path: Path, codec: str = "gzip", packed: pa.Buffer | None = None) -> pa.Buffer:
    """Unpack a gzip or zstd file, or its bytes, into memory; stop if it grows beyond the limit."""
    limit, content = room(), io.BytesIO()
    with opened(path) if packed is None else io.BytesIO(packed) as source:
        size = os.fstat(source.fileno()).st_size if packed is None else packed.size
        try:
            with pa.CompressedInputStream(pa.PythonFile(source, "r"), codec) as stream:
                while chunk := stream.read(_CHUNK):
                    content.write(chunk)
                    _check_unpacked(path, size, content.tell(), limit)
        except (OSError, zlib.error, pa.ArrowException) as error:
            raise WrongFormat.of(DatasetError)(
                str(path), f"a {codec} file", "one that is cut short or damaged", "pack it again"
            ) from error
    return pa.py_buffer(content.getbuffer())


def _check_unpacked(path: Path, packed: int, size: int, limit: int) -> None:
    if size > _BOMB_BYTES and size > _BOMB_RATIO * packed:
        raise DatasetError(
            f"{path}: {packed:,} bytes unpack to more than {size:,}, which no table does; if it is "
            "one, unpack it first"
        )
    if size > limit:
        raise UnreadableFile.of(DatasetError)(
            str(path),
            f"unpacks to more than {limit / 1000000000.0:,.1f} GB, which is all that may be "
            "read into memory",
            "unpack it and read fewer rows",
        )


def _measured(path: Path, content: pa.Buffer | None, delimiter: str) -> tuple[list[str], int]:
    """Return the first two lines, and an upper bound of the table's memory in bytes."""
    mark, size, cells = delimiter.encode(), 0, 0
    lines: list[str] = []
    with opened(path) if content is None else pa.BufferReader(content) as stream:
        while chunk := stream.read(_CHUNK):
            if not size:
                lines = _first_lines(path, chunk)
                check_columns(lines[0].count(delimiter) + 1, str(path))
            size += len(chunk)
            cells += chunk.count(mark) + chunk.count(b"\n") + chunk.count(b"\r")
    held = 0 if content is None else content.size
    columns = lines[0].count(delimiter) + 1 if lines else 0
    return lines, held + size + _CELL * cells + _COLUMN * columns


def _first_lines(path: Path, head: bytes) -> list[str]:
    """Return the header line and the first line of data, if there are any."""
    # The second line is needed only if lines are short.
    head = head[: _HEAD if b"\n" in head[:_HEAD] else len(head)]
    lines = head.decode("utf-8-sig", errors="replace").splitlines()
    filled = [line for line in lines if line.strip()]
    if not filled:
        raise EmptyFile(str(path))
    return filled[:2]


def _check_delimiter(path: Path, lines: Sequence[str], delimiter: str, guessed: bool) -> None:
    """Suggest the right delimiter; doubt one that the user chose only if two lines agree."""
    first, last = lines[0], lines[-1]
    for other in ";\t|,":
        meant = guessed or first.count(other) == last.count(other)
        if other != delimiter and other in first and delimiter not in first and meant:
            shown = NAMES.get(other, other)
            raise WrongFormat.of(DatasetError)(
                str(path),
                f"columns separated by {NAMES.get(delimiter, delimiter)!r}",
                repr(shown),
                f"pass delimiter={shown!r}",
            )


def _explained(path: Path, content: pa.Buffer | None, delimiter: str, message: str) -> EvgpError:
    if "straddl" in message:
        why = f"a row is longer than {_BLOCK:,} bytes"
        return UnreadableFile.of(DatasetError)(str(path), why, "is a quote left open?")
    if _RAGGED.search(message):
        # Arrow reports line numbers only if it reads with a single thread.
        try:
            _parse(path, content, delimiter, (), use_threads=False)
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            message = str(error)
        if match := _RAGGED.search(message):
            line, expected, got = match.groups()
            return RaggedRow(str(path), int(line) if line else None, int(expected), int(got))
    if "Empty CSV" in message or "cannot infer number of columns" in message:
        return EmptyFile(str(path), "rows of data", "column names only")
    return DatasetError(f"{path}: cannot be read as a table ({message.splitlines()[0]})")


def _check_header(path: Path, names: Sequence[str]) -> None:
    """Refuse a first line of numbers, which is data, unless it simply counts the columns."""
    if list(names) in ([str(j) for j in range(a, a + len(names))] for a in (0, 1)):
        return
    cast = pc.match_substring_regex(pa.array(names), r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")
    if pc.all(cast).as_py():
        shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        raise WrongFormat.of(DatasetError)(
            str(path),
            "column names in the first line",
            f"numbers ({shown})",
            "put a line of names first",
        )


def _not_utf8(path: Path, what: str) -> EvgpError:
    return WrongFormat.of(DatasetError)(str(path), "text in UTF-8", what, "pass another encoding=")
