"""Text with separators (CSV, TSV): read, and what its errors mean."""

import io
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from evgp._errors import DatasetError
from evgp._reading import check_memory, is_utf8, opened, read_bytes, room
from evgp.datasets.arrays import check_columns
from evgp.datasets.columns import is_number
from evgp.datasets.parquet import native

_MOST_LINES = 100
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")


def check_quotes(
    path: Path, content: pa.Buffer | None, delimiter: str, types: Sequence[pa.DataType] = ()
) -> None:
    """Refuse a quote that is never closed, or whose cell holds what look like rows of the table."""
    text = read_bytes(path) if content is None else content.to_pybytes()
    _check(path, text, delimiter, types)


def _check(path: Path, text: bytes, delimiter: str, types: Sequence[pa.DataType]) -> None:
    mark = re.escape(delimiter.encode())
    # A quote opens a cell only at its start; two in a row inside it stand for one.
    cells = re.compile(rb'(?:(?<=[\r\n%b])|\A(?:\xef\xbb\xbf)?)"([^"]*+(?:""[^"]*+)*+)("?)' % mark)
    ends = re.compile(rb" *(?:[\r\n%b]|\Z)" % mark)
    line, last = 1, 0
    for found in cells.finditer(text):
        inside, closed = found.groups()
        if closed and b"\n" not in inside and b"\r" not in inside:
            continue
        line += text[last : found.start(1)].count(b"\n")
        last = found.start(1)
        lines = re.split(r"\r\n?|\n", inside.decode("utf-8", errors="replace"))
        if not closed:
            what = "is never closed"
        elif len(lines) > _MOST_LINES:
            what = f"is closed {len(lines) - 1:,} lines below"
        elif not ends.match(text, found.end()):
            what = "is closed in the midst of another cell"
        elif _holds_rows(lines, delimiter, types):
            what = f"takes in lines that look like rows of their own ({len(lines) - 1:,})"
        else:
            continue
        raise DatasetError(
            f"{path}: expected a closing quote for each opening one, but the quote that opens in "
            f"line {line:,} {what}; fix that line (a quote inside a cell is written twice), or "
            "save the table as Parquet if the text is meant so"
        )


def _holds_rows(lines: Sequence[str], delimiter: str, types: Sequence[pa.DataType]) -> bool:
    """Whether the lines of a cell are the end of one row, whole rows, and the start of another."""
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


_SHOWN = {"\t": "tab"}
_RAGGED = re.compile(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)", re.DOTALL)
_HEAD = 2**20
# A row must fit into a block: wide enough for half a million columns.
_BLOCK = 2**23


def read_separated(
    path: Path, delimiter: str, packed: bool, text: Sequence[str], guessed: bool
) -> pa.Table:
    """Read one file; `guessed` says that nobody chose the delimiter, so it may be wrong."""
    delimiter = sign_of(delimiter)
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '\r\n"':
        raise DatasetError(f"expected a delimiter of one character, or 'tab', got {delimiter!r}")
    check_memory(path.stat().st_size, str(path))  # its letters alone
    content = _unpacked(path) if packed else None
    lines = _first_lines(path, content)
    check_columns(lines[0].count(delimiter) + 1, str(path))
    check_memory(_need(path, content, delimiter), str(path))
    try:
        data = _parse(path, content, delimiter, text)
        data = data.rename_columns(_clean(data.column_names))
    except UnicodeDecodeError as error:
        raise _not_utf8(path, "other bytes in the column names") from error
    except pa.ArrowInvalid as error:
        _check_delimiter(path, lines, delimiter, guessed)
        check_quotes(path, content, delimiter)
        raise _explained(path, content, delimiter, str(error)) from error
    if data.num_columns == 1:
        _check_delimiter(path, lines, delimiter, guessed)
    _check_header(path, data.column_names)
    for name, column in zip(data.column_names, data.columns, strict=True):
        if pa.types.is_binary(column.type):
            raise _not_utf8(path, f"other bytes in column {name!r}")
    if any(_has_lines(column) for column in data.columns):
        check_quotes(path, content, delimiter, data.schema.types)
    return data


def sign_of(delimiter: str) -> str:
    """The sign that is meant by the name of a delimiter.

    >>> sign_of("tab"), sign_of(";")
    ('\\t', ';')
    """
    return {"tab": "\t", "\\t": "\t", "space": " "}.get(delimiter, delimiter)


def _has_lines(column: pa.ChunkedArray) -> bool:
    if not pa.types.is_string(column.type):
        return False
    return bool(pc.any(pc.match_substring_regex(column, r"[\r\n]")).as_py())


def _parse(
    path: Path, content: pa.Buffer | None, delimiter: str, text: Sequence[str], **options: object
) -> pa.Table:
    # A name that was not UTF-8 has surrogates: no column has it, and pyarrow cannot look for it.
    words = [name for name in text if is_utf8(name)]
    return pyarrow.csv.read_csv(
        native(path) if content is None else pa.BufferReader(content),
        read_options=pyarrow.csv.ReadOptions(**({"block_size": _BLOCK} | options)),
        parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            strings_can_be_null=True, column_types={name: pa.string() for name in words}
        ),
    )


# Tables of numbers pack about 3 to 1, the most repetitive of words about 100 to 1.
_BOMB_RATIO = 300
_BOMB_BYTES = 2**26
_CHUNK = 2**24
# Bytes that a cell takes beside its letters, whatever it holds; and those of a column of its own.
_CELL, _COLUMN = 9, 15_000


def _unpacked(path: Path) -> pa.Buffer:
    """A gzip file in memory, stopped when it grows beyond what may be read."""
    limit, unpacked = room(), io.BytesIO()
    with opened(path) as packed:
        size = os.fstat(packed.fileno()).st_size
        try:
            with pa.CompressedInputStream(pa.PythonFile(packed, "r"), "gzip") as stream:
                while chunk := stream.read(_CHUNK):
                    unpacked.write(chunk)
                    _check_unpacked(path, size, unpacked.tell(), limit)
        except (OSError, zlib.error, pa.ArrowException) as error:
            raise DatasetError(
                f"{path}: expected a gzip file, got one that is cut short or damaged; pack it again"
            ) from error
    return pa.py_buffer(unpacked.getbuffer())


def _check_unpacked(path: Path, packed: int, size: int, limit: int) -> None:
    if size > _BOMB_BYTES and size > _BOMB_RATIO * packed:
        raise DatasetError(
            f"{path}: {packed:,} bytes unpack to more than {size:,}, which no table does; if it is "
            "one, unpack it first"
        )
    if size > limit:
        raise DatasetError(
            f"{path}: unpacks to more than {limit / 1e9:,.1f} GB, which is all that may be read "
            "into memory; unpack it and read fewer rows"
        )


def _need(path: Path, content: pa.Buffer | None, delimiter: str) -> int:
    """Bytes that a table takes at most in memory: its letters, and something for each cell."""
    sign, size, cells, columns = delimiter.encode(), 0, 0, 0
    for chunk in _chunks(path, content):
        if not size:
            columns = chunk.split(b"\n", 1)[0].count(sign) + 1
        size += len(chunk)
        cells += chunk.count(sign) + chunk.count(b"\n") + chunk.count(b"\r")
    held = 0 if content is None else content.size
    return held + size + _CELL * cells + _COLUMN * columns


def _chunks(path: Path, content: pa.Buffer | None) -> Iterator[bytes]:
    if content is not None:
        for start in range(0, content.size, _CHUNK):
            yield content.slice(start, min(_CHUNK, content.size - start)).to_pybytes()
        return
    with opened(path) as stream:
        while chunk := stream.read(_CHUNK):
            yield chunk


def _first_lines(path: Path, content: pa.Buffer | None) -> list[str]:
    """The line of names and the first of data, as far as there are such."""
    head = next(_chunks(path, content), b"")
    # A second line is only wanted where lines are short.
    head = head[: _HEAD if b"\n" in head[:_HEAD] else len(head)]
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise _not_utf8(path, "UTF-16", "utf-16")
    lines = head.decode("utf-8-sig", errors="replace").splitlines()
    filled = [line for line in lines if line.strip()]
    if not filled:
        raise DatasetError(f"{path}: expected a table, got an empty file")
    return filled[:2]


def _check_delimiter(path: Path, lines: Sequence[str], delimiter: str, guessed: bool) -> None:
    """Say which delimiter was meant; one that somebody chose is doubted only by two lines."""
    first, last = lines[0], lines[-1]
    for other in ";\t|,":
        meant = guessed or first.count(other) == last.count(other)
        if other != delimiter and other in first and delimiter not in first and meant:
            shown = _SHOWN.get(other, other)
            raise DatasetError(
                f"{path}: expected columns divided by {_SHOWN.get(delimiter, delimiter)!r}, got "
                f"{shown!r}; pass delimiter={shown!r}"
            )


def _explained(path: Path, content: pa.Buffer | None, delimiter: str, message: str) -> DatasetError:
    if "straddl" in message:
        return DatasetError(f"{path}: a row is longer than {_BLOCK:,} bytes; is a quote left open?")
    if _RAGGED.search(message):
        # Only one thread counts lines.
        try:
            _parse(path, content, delimiter, (), use_threads=False)
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            message = str(error)
        if found := _RAGGED.search(message):
            line, expected, got = found.groups()
            where = f"line {int(line):,}" if line else "a line"
            return DatasetError(
                f"{path}: expected {expected} columns in each line, as in the first, got {got} in "
                f"{where}; fix that line, or check the delimiter"
            )
    if "Empty CSV" in message or "cannot infer number of columns" in message:
        return DatasetError(f"{path}: expected rows of data, got column names only")
    return DatasetError(f"{path}: cannot be read as a table ({message.splitlines()[0]})")


def _clean(names: Sequence[str]) -> list[str]:
    return [name.strip() or f"Unnamed: {j}" for j, name in enumerate(names)]


def _check_header(path: Path, names: Sequence[str]) -> None:
    """A first line of numbers is data, unless it simply counts the columns."""
    if list(names) in ([str(j) for j in range(a, a + len(names))] for a in (0, 1)):
        return
    cast = pc.match_substring_regex(pa.array(names), r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")
    if pc.all(cast).as_py():
        shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        raise DatasetError(
            f"{path}: expected column names in the first line, got numbers ({shown}); put a line "
            "of names first"
        )


def _not_utf8(path: Path, what: str, coding: str = "latin1") -> DatasetError:
    return DatasetError(
        f"{path}: expected text in UTF-8, got {what}; convert it, for example with "
        f"iconv -f {coding} -t utf-8"
    )
