"""Read tables from files: CSV, TSV, JSON lines, Excel, Parquet, Arrow and NumPy."""

import io
import os
import re
import sys
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from jaxtyping import Float

from evgp._reading import check_memory, check_plain
from evgp.datasets.arrays import check_columns, read_npy, read_npz
from evgp.datasets.columns import is_number, plain, to_numbers
from evgp.datasets.csv import Dialect, TextFile, read_separated, read_texts, unpacked
from evgp.datasets.dialect import encoding_of, recoded
from evgp.datasets.formats import Format, Recognised, apply
from evgp.datasets.images import SUFFIXES, walk
from evgp.datasets.parquet import parquet_rows, read_arrow, read_parquet
from evgp.datasets.records import read_lines, read_workbook
from evgp.errors import (
    DatasetError,
    DataWarning,
    DuplicateNames,
    EmptyFile,
    EvgpError,
    MissingColumn,
    NotNumeric,
    UnreadableFile,
    WrongFormat,
    quoted,
)

_SEPARATED = {".csv": ",", ".tsv": "\t", ".txt": ","}
_LINES = (".jsonl", ".ndjson")
_PACKED = {".gz": "gzip", ".zst": "zstd"}
# First bytes of packed data on standard input.
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_CHUNK = 2**24
_HEADER = re.compile(rb'(?:[^"\r\n]|"[^"]*")*')
_ARROW = (".arrow", ".feather", ".ipc")
# Maximum number of characters of a column's name in a message.
_SHOWN = 40


@dataclass(frozen=True)
class Table:
    """Named columns of equal length, and the name of their source.

    >>> table = Table(pa.table({"a": [1, 2], "b": ["x", "y"]}), source="two.csv")
    >>> len(table), table.names
    (2, ('a', 'b'))
    """

    data: pa.Table
    source: str
    formats: Mapping[str, Format] = field(
        default_factory=dict
    )  # formats of numbers and dates that were text
    raw: Mapping[str, pa.ChunkedArray] = field(default_factory=dict)  # the same columns as text
    noted: bool = False  # whether notes on formats were given

    def __post_init__(self) -> None:
        check_names(self.data.column_names, self.source)

    def __len__(self) -> int:
        return int(self.data.num_rows)

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(self.data.column_names)

    def column(self, name: str) -> pa.ChunkedArray:
        """Return one column by name."""
        if place_of(self.data.schema, name) < 0:
            raise MissingColumn(self.source, name, tuple(self.names))
        return self.data.column(name)

    def cells(self, name: str) -> "Cells":
        """Return one column as it was given, to be read cell by cell."""
        return Cells(self.raw.get(name, self.column(name)))

    @property
    def given(self) -> pa.Table:
        """The table as it was given, with text where numbers and dates were text."""
        return self.data.from_arrays(
            [self.raw.get(name, self.data.column(name)) for name in self.names], self.names
        )

    def numbers(self, name: str) -> Float[np.ndarray, " n"]:
        """Return one column as float64; every cell must be a number.

        >>> Table(pa.table({"price": [1, 2]}), source="two.csv").numbers("price")
        array([1., 2.])
        """
        return checked_numbers(self.source, name, self.column(name))


@dataclass(frozen=True)
class Cells:
    """A column whose cells are read one at a time, as Python values.

    >>> Cells(pa.chunked_array([[1.5, None]]))[0]
    1.5
    """

    column: pa.ChunkedArray

    def __len__(self) -> int:
        return len(self.column)

    def __getitem__(self, index: int, /) -> object:
        return plain(self.column.slice(index, 1))[0].as_py()


def place_of(schema: pa.Schema, name: str) -> int:
    r"""Return the index of a column, or -1 if there is none or the name is not valid Unicode.

    >>> place_of(pa.schema([("a", pa.int64())]), "\udcff")
    -1
    """
    try:
        return int(schema.get_field_index(name))
    except UnicodeEncodeError:
        return -1


def check_names(names: Sequence[str], source: str) -> None:
    """Refuse duplicate column names."""
    doubled = [name for name, count in Counter(names).items() if count > 1]
    if doubled:
        expected = "different column names"
        raise DuplicateNames(source, expected, tuple(doubled), "rename the columns")


def checked_numbers(
    source: str, name: str, column: pa.ChunkedArray, first: int = 0
) -> Float[np.ndarray, " n"]:
    """Return cells as float64; all must be numbers; `first` is the number of the first row."""
    if not is_number(column.type):
        raise NotNumeric(source, name, "numbers", str(column.type))
    return all_finite(source, name, to_numbers(column), first)


def all_finite(
    source: str, name: str, values: Float[np.ndarray, " n"], first: int
) -> Float[np.ndarray, " n"]:
    """Return the numbers unchanged; refuse missing and infinite ones; `first` is the first row."""
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        problem = f"{len(bad):,} missing or infinite"
        row = int(first + bad[0])
        raise NotNumeric(source, name, "numbers", f"{problem}, first", row=row)
    return values


def read_table(
    path: str | Path,
    *,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    dates: str | None = None,
    array: str | None = None,
    text: Sequence[str] = (),
    formats: Mapping[str, Format] | None = None,
) -> Table:
    """Read a table of any supported format, chosen by the file's suffix.

    A folder of CSV, TSV or JSON lines files is read as one table, in the order of their names.

    `delimiter`, `decimal`, `encoding` and `dates` are for CSV files, and recognised by default;
    `array` names an array of an npz archive, and the columns in `text` are read from a CSV file as
    text, so that ids keep their leading zeros. A `DataWarning` reports what was recognised.
    `formats` are those of another table whose columns have the same formats.
    """
    dialect, path = Dialect(delimiter, decimal, encoding, dates), Path(path)
    notes: tuple[str, ...] = ()
    if str(path) == "-":
        path, suffix, content = piped()
    elif files := text_files(path):
        suffix, content, notes = _joined(path, files, dialect)
        dialect = replace(dialect, encoding=None)
    else:
        if check_plain(path) == 0:
            raise EmptyFile(str(path), "a table")
        suffix, codec = _suffix(path)
        content = unpacked(path, codec) if codec else None
    if array is not None and suffix != ".npz":
        raise DatasetError(
            f"{path}: expected an .npz file, the only kind that array= is for; leave out "
            f"array={array!r}"
        )
    try:
        table = _read(path, suffix, content, dialect, array=array, text=(*text, *(formats or ())))
        table.data.column_names  # noqa: B018  raises if a name is not valid UTF-8
    except UnicodeDecodeError as error:
        raise damaged(path, suffix) from error
    except OSError as error:
        # Arrow reports a damaged file as an OSError without an errno.
        if error.errno is None:
            raise damaged(path, suffix) from error
        why = f"cannot be read: {os.strerror(error.errno).lower()}"
        raise UnreadableFile.of(DatasetError)(str(path), why) from error
    except pa.ArrowException as error:
        raise damaged(path, suffix) from error
    if table.data.num_rows == 0:
        raise EmptyFile(str(path), "rows of data", "column names only")
    for note in (*notes, *table.notes):
        warnings.warn(f"{path}: {note}", DataWarning, stacklevel=2)
    data = table.data if formats is None else apply(table.data, formats, str(path))
    return Table(data, str(path), table.formats, table.raw, suffix in _SEPARATED)


def _read(
    path: Path,
    suffix: str,
    content: pa.Buffer | None,
    dialect: Dialect,
    *,
    array: str | None,
    text: Sequence[str],
) -> Recognised:
    """Read a file of the kind that a suffix stands for, or its content if that is in memory."""
    if suffix in _SEPARATED:
        texts = read_texts(path, dialect, content) if suffix == ".txt" else None
        file = TextFile.of(path, dialect, _SEPARATED[suffix], content)
        return texts or read_separated(file, dialect, text)
    if suffix in _LINES:
        return Recognised(read_lines(path, dialect.encoding, content))
    if suffix == ".xlsx":
        data, note = read_workbook(path)
        return Recognised(data, notes=(note,) if note else ())
    if suffix in (".npy", ".npz"):
        x = read_npy(path) if suffix == ".npy" else read_npz(path, array)
        return Recognised(_named(x, str(path)))
    if content is not None:
        return Recognised(pa.ipc.open_stream(content).read_all())
    data = read_parquet(path) if suffix == ".parquet" else read_arrow(path)
    if suffix == ".parquet" and data.num_rows != parquet_rows(path):
        raise damaged(path, suffix)
    return Recognised(data)


def text_files(folder: Path) -> list[Path]:
    """Return the CSV, TSV or JSON lines files of a folder; none if it holds images or others."""
    names = walk(folder)[0] if folder.is_dir() else []
    files = [Path(name) for name in names if not Path(name).name.startswith("_")]
    if any(file.suffix.lower() in {*SUFFIXES, ".parquet", ".npy", *_ARROW} for file in files):
        return []
    packed = [file.with_suffix("") if file.suffix.lower() in _PACKED else file for file in files]
    texts = [file.suffix.lower() in (".csv", ".tsv", *_LINES) for file in packed]
    if any(texts) and not all(texts):
        others = [str(file) for file, text in zip(files, texts, strict=True) if not text]
        raise DatasetError(
            f"{folder}: expected nothing but CSV, TSV or JSON lines files, got {quoted(others)}; "
            "move them away"
        )
    return [folder / file for file, text in zip(files, texts, strict=True) if text]


def _joined(
    folder: Path, files: Sequence[Path], dialect: Dialect
) -> tuple[str, pa.Buffer, tuple[str, ...]]:
    """Return text files as one in UTF-8 with one header, its suffix, and notes on encodings."""
    kinds = {_suffix(file)[0] for file in files}
    if len(kinds) > 1:
        raise DatasetError(f"{folder}: expected files of one kind, got {quoted(sorted(kinds))}")
    suffix, header, whole, encodings = kinds.pop(), None, io.BytesIO(), set()
    for file in files:
        check_file(file)
        codec = _suffix(file)[1]
        content = unpacked(file, codec) if codec else None
        encoding = dialect.encoding or encoding_of(file, content)[0]
        encodings.add(encoding)
        text = recoded(file, content, encoding).to_pybytes().removeprefix(b"\xef\xbb\xbf")
        if suffix in _SEPARATED:
            own = _HEADER.match(text)[0]  # type: ignore[index]  # it also matches nothing
            header = own if header is None else header
            if own.strip() != header.strip():
                expected, got = (quoted([line.decode().strip()]) for line in (header, own))
                same = f"the columns of {files[0].name}, which are {expected}"
                advice = "give all files the same columns in the same order"
                raise WrongFormat.of(DatasetError)(str(file), same, got, advice)
            text = text if whole.tell() == 0 else text[len(own) :].lstrip(b"\r\n")
        whole.write(text if text.endswith((b"\n", b"\r")) else text + b"\n")
        check_memory(2 * whole.tell(), str(folder))
    odd = sorted(encodings - {"utf-8", dialect.encoding})
    notes = [f"recognised text in {name}; pass encoding= if characters look wrong" for name in odd]
    return suffix, pa.py_buffer(whole.getbuffer()), tuple(notes)


def piped() -> tuple[Path, str, pa.Buffer]:
    """Read standard input; return a name for messages, the kind of table by its suffix, and it."""
    path, stream = Path("standard input"), getattr(sys.stdin, "buffer", None)
    if stream is None or sys.stdin.isatty():
        raise DatasetError(f"{path}: expected a table, got a terminal; pipe one in")
    content = io.BytesIO()
    while chunk := stream.read(_CHUNK):
        content.write(chunk)
        check_memory(2 * content.tell(), str(path))
    if not content.tell():
        raise EmptyFile(str(path), "a table")
    table = pa.py_buffer(content.getbuffer())
    codec = next((name for mark, name in _MAGIC.items() if _starts(table, mark)), "")
    table = unpacked(path, codec, table) if codec else table
    if _starts(table, b"PAR1") or _starts(table, b"ARROW1"):
        got, advice = "a format that is read from its end", "save it, and give its name"
        raise WrongFormat.of(DatasetError)(str(path), "CSV, JSON lines or Arrow", got, advice)
    if _starts(table, b"\xff\xff\xff\xff"):
        return path, ".arrow", table
    first = bytes(memoryview(table)[:1000]).removeprefix(b"\xef\xbb\xbf").lstrip()
    return path, ".jsonl" if first.startswith(b"{") else ".csv", table


def _starts(content: pa.Buffer, mark: bytes) -> bool:
    return bytes(memoryview(content)[: len(mark)]) == mark


def check_file(path: Path, what: str = "a table") -> None:
    """Refuse anything but a regular, readable file that is not empty."""
    if check_plain(path) == 0:
        raise EmptyFile(str(path), what)


def _suffix(path: Path) -> tuple[str, str]:
    """Return the suffix of a table, and the codec that it is packed with; empty if it is not."""
    codec = _PACKED.get(path.suffix.lower(), "")
    suffix = Path(path.stem).suffix.lower() if codec else path.suffix.lower()
    texts = (*_SEPARATED, *_LINES)
    known = texts if codec else (*texts, ".parquet", *_ARROW, ".npy", ".npz", ".xlsx")
    if suffix not in known:
        raise DatasetError(
            f"{path}: expected a name that ends in .csv, .tsv, .jsonl (also with .gz or .zst), "
            ".parquet, .arrow, .feather, .xlsx, .npy or .npz; save the table as one of these"
        )
    return suffix, codec


def _named(x: Float[np.ndarray, "n d"], source: str) -> pa.Table:
    check_columns(x.shape[1], source)
    # Fortran order, so that Arrow can use the columns without copying them.
    x = np.asfortranarray(x)
    return pa.table({f"x{j}": x[:, j] for j in range(x.shape[1])})


def damaged(path: str | Path, suffix: str) -> EvgpError:
    """Return the error for a file that is damaged or does not match its suffix."""
    kind = {".parquet": "a Parquet", ".npy": "an npy", ".npz": "an npz"}.get(suffix, "an Arrow")
    if suffix in (*_SEPARATED, *_LINES):
        kind = "a text"
    return WrongFormat.of(DatasetError)(str(path), f"{kind} file", advice="write it again")
