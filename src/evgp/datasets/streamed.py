"""Pools larger than memory: files, folders and addresses that are read a block at a time."""

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from io import BufferedReader
from math import prod
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from jaxtyping import Float, Int, Shaped

from evgp._checks import flag, integer, path_of, shown, word, words
from evgp._errors import DatasetError, EvgpError
from evgp._linalg import BLOCK, in_pairs
from evgp._reading import check_memory, check_plain, read_bytes
from evgp._reading import opened as plain_file
from evgp.datasets.arrays import NpyHeader, check_columns, npy_header
from evgp.datasets.columns import plain
from evgp.datasets.encode import (
    ArrayLayout,
    Fitted,
    Streamed,
    Survey,
    TableCode,
    TableLayout,
    none_left,
    step_of,
    usable,
)
from evgp.datasets.parquet import by_word, letters, native, native_map
from evgp.datasets.sizes import decoded, unpacked
from evgp.datasets.tables import (
    all_finite,
    check_file,
    check_names,
    checked_numbers,
    damaged,
    no_column,
    place_of,
    quoted,
)
from evgp.datasets.web import WebFile

PARQUET, ARROW, NPY = "Parquet", "Arrow", "NumPy"
KINDS = {".parquet": PARQUET, ".arrow": ARROW, ".feather": ARROW, ".ipc": ARROW, ".npy": NPY}
_OTHERS = (".csv", ".tsv", ".txt", ".json", ".npz", ".gz", ".zip", ".xlsx")
_PART = 2**20
_WEB = ("http://", "https://")
_ENDS = ".parquet, .arrow, .feather or .npy"


@dataclass(frozen=True)
class PoolFiles:
    """Files of one kind in order, and what to call them in messages."""

    name: str
    kind: str
    files: tuple[str, ...]
    remarks: tuple[str, ...] = ()


def find(where: str | Path | Sequence[str | Path]) -> PoolFiles:
    """The files meant, which are not opened yet."""
    if isinstance(where, str | PathLike):
        where = where if isinstance(where, str) else path_of(where, "where", error=DatasetError)
        path_of(where, "where", error=DatasetError)
        if is_address(where):
            return _at_address(str(where))
        return _in_folder(Path(where)) if Path(where).is_dir() else _listed([where], str(where))
    if not isinstance(where, Sequence) or isinstance(where, bytes):
        raise DatasetError(f"expected the path of a pool, or a list of files; got {shown(where)}")
    where = [path_of(one, "each file of a pool", error=DatasetError) for one in where]
    if not where:
        raise DatasetError("expected the files of a pool, got an empty list; name at least one")
    return _listed(where, f"{where[0]}" + (f" and {len(where) - 1} more" if where[1:] else ""))


def is_address(where: str | Path) -> bool:
    """Whether this is a URL, which fsspec opens."""
    return isinstance(where, str) and "://" in where


def local(where: str | Path) -> Path | None:
    """The path on this machine, which an address may stand for, too; None for one elsewhere.

    >>> local("file:///data/pool.parquet"), local("s3://bucket/pool")
    (PosixPath('/data/pool.parquet'), None)
    """
    if not is_address(where):
        return Path(where)
    scheme, path = str(where).split("://", 1)
    return Path(path) if scheme in ("file", "local") else None


def kind_of(file: str | Path) -> str:
    """The kind of a file by the end of its name.

    >>> kind_of("pool.parquet")
    'Parquet'
    """
    suffix = PurePosixPath(file).suffix.lower()
    if suffix not in KINDS:
        raise DatasetError(
            f"{file}: expected a name that ends in {_ENDS}, which can be read in parts; save it "
            "once as Parquet, as by pandas.read_csv(path).to_parquet('pool.parquet')"
        )
    return KINDS[suffix]


def _listed(where: Sequence[str | Path], name: str) -> PoolFiles:
    for file in where:
        if (place := local(file)) is not None:
            check_plain(place)
    kinds = {kind_of(file): str(file) for file in where}
    if len(kinds) > 1:
        raise _mixed(name, list(kinds.values()))
    files = tuple(map(str, where))
    twice = [file for file, count in Counter(files).items() if count > 1]
    if twice:
        raise DatasetError(f"{name}: expected each file once, got {quoted(twice)} more than once")
    for file in files:
        if not is_address(file):
            check_file(Path(file))
        elif PARQUET not in kinds:
            raise _only_parquet(file)
    return PoolFiles(name, next(iter(kinds)), files)


def _in_folder(folder: Path) -> PoolFiles:
    names: list[str] = []
    others: list[str] = []
    for here, folders, files in os.walk(folder, onerror=_refuse):
        folders[:] = [name for name in folders if not _is_hidden(name)]
        inside = Path(here).relative_to(folder)
        others += [str(inside / name) for name in folders if (Path(here) / name).is_symlink()]
        for name in files:
            if not _is_hidden(name):
                known = Path(name).suffix.lower() in KINDS
                (names if known else others).append(str(inside / name))
    return _sorted(str(folder), names, others, lambda name: str(folder / name))


def _sorted(source: str, names: list[str], others: list[str], full: Any) -> PoolFiles:
    """What lies in a folder, local or not."""
    if others:
        raise DatasetError(
            f"{source}: expected nothing but files that end in {_ENDS}, got "
            f"{quoted(sorted(others))}; move them away, or list the files of the pool"
        )
    if not names:
        raise DatasetError(
            f"{source}: expected files that end in {_ENDS}, got none; check the path"
        )
    names.sort(key=lambda name: PurePosixPath(name).parts)
    kinds = {kind_of(name): name for name in names}
    if len(kinds) > 1:
        raise _mixed(source, list(kinds.values()))
    parts = {part for name in names for part in PurePosixPath(name).parts[:-1] if "=" in part}
    told = f"folder names such as {min(parts)!r} are not read as columns" if parts else ""
    found = _listed([full(name) for name in names], source)
    return PoolFiles(source, found.kind, found.files, (told,) if told else ())


def _at_address(where: str) -> PoolFiles:
    suffix = PurePosixPath(where).suffix.lower()
    if suffix in _OTHERS:
        kind_of(where)  # says what to do, before anybody else is asked
    if KINDS.get(suffix, PARQUET) != PARQUET:
        raise _only_parquet(where)
    if not where.split("://", 1)[1].strip("/"):
        raise DatasetError(f"{where}: expected the address of a pool, got none behind ://")
    if where.startswith(_WEB):
        return _listed([where], where)
    fs, path = _filesystem(where)
    with readable(where):
        if not fs.isdir(path):
            return _listed([where], where)
        inside = [PurePosixPath(name).relative_to(path) for name in fs.find(path)]
    seen = [str(name) for name in inside if not any(map(_is_hidden, name.parts))]
    names = [name for name in seen if PurePosixPath(name).suffix.lower() in KINDS]
    others = [name for name in seen if name not in set(names)]
    return _sorted(where, names, others, lambda name: fs.unstrip_protocol(f"{path}/{name}"))


@contextmanager
def opened(file: str) -> Iterator[BinaryIO]:
    """A file or an address, to be read as bytes."""
    with readable(file):
        if (place := local(file)) is not None:
            with plain_file(place) as stream:
                yield stream
        elif file.startswith(_WEB):
            with BufferedReader(WebFile(file), _PART) as stream:
                yield stream
        else:
            fs, path = _filesystem(file)
            with fs.open(path, "rb") as stream:
                yield stream


def digest(file: str) -> str:
    """A hash of all bytes of a file, read in small parts."""
    with opened(file) as stream:
        state = hashlib.blake2b()
        while part := stream.read(_PART):
            state.update(part)
        return state.hexdigest()


@contextmanager
def readable(file: str) -> Iterator[None]:
    """What goes wrong with a file becomes a sentence that names it."""
    try:
        yield
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        if isinstance(error, FileNotFoundError):
            raise DatasetError(f"{file}: no such file; check the path") from error
        if isinstance(error, OSError) and error.errno is not None:
            said = os.strerror(error.errno).lower()
            raise DatasetError(f"{file}: cannot be read: {said}") from error
        raise damaged(file, PurePosixPath(file).suffix.lower()) from error
    except EvgpError:
        raise
    except Exception as error:  # what opens an address may raise anything
        if not is_address(file):
            raise
        raise _closed(file, error) from error


def _closed(where: str, error: Exception) -> DatasetError:
    said = " ".join(str(error).split())[:300] or type(error).__name__
    return DatasetError(f"{where}: this address cannot be opened: {said}")


def _filesystem(where: str) -> tuple[Any, str]:
    try:
        import fsspec  # type: ignore[import-untyped]
    except ImportError as error:
        raise DatasetError(
            f"{where}: expected the package fsspec, which opens addresses, got none; install it "
            "(pip install fsspec), or copy the files here"
        ) from error
    try:
        fs, path = fsspec.core.url_to_fs(where)
    except Exception as error:  # each kind of address has a package of its own behind it
        raise _closed(where, error) from error
    return fs, path


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def _refuse(error: OSError) -> None:
    raise DatasetError(f"{error.filename}: this folder may not be read; change its permissions")


def _mixed(source: str, examples: Sequence[str]) -> DatasetError:
    return DatasetError(
        f"{source}: expected files of one kind, got {quoted(examples)}; keep one kind"
    )


def _only_parquet(file: str) -> DatasetError:
    return DatasetError(
        f"{file}: expected Parquet at an address, got another kind; save it as Parquet, or copy "
        "the file here"
    )


@dataclass(frozen=True)
class Ranges:
    """How many rows each file has, and which of them a global row number means.

    >>> ranges = Ranges((3, 0, 4))
    >>> len(ranges), list(ranges.parts(1, 5))
    (7, [(0, 1, 3), (2, 0, 2)])
    """

    counts: tuple[int, ...]

    def __len__(self) -> int:
        return int(self.starts[-1])

    @cached_property
    def starts(self) -> Int[np.ndarray, " files"]:
        """The global number of the first row of each file, then that of all rows."""
        return np.concatenate([[0], np.cumsum(self.counts, dtype=np.int64)])

    def parts(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """Files with their own row numbers that make up the rows from start to stop."""
        file = int(np.searchsorted(self.starts, start, side="right")) - 1
        while start < stop:
            first, count = int(self.starts[file]), self.counts[file]
            if start < first + count:
                yield file, start - first, min(stop - first, count)
                start = min(stop, first + count)
            file += 1

    def groups(self, rows: Int[np.ndarray, " r"]) -> Iterator[tuple[int, Int[np.ndarray, " q"]]]:
        """Files with those of their own row numbers that are among the sorted global ones.

        >>> [(file, rows.tolist()) for file, rows in Ranges((3, 4)).groups(np.array([1, 3, 5]))]
        [(0, [1]), (1, [0, 2])]
        """
        files = np.searchsorted(self.starts, rows, side="right") - 1
        found, first = np.unique(files, return_index=True)
        for file, part in zip(found.tolist(), np.split(rows, first[1:]), strict=False):
            yield file, part - self.starts[file]

    def check_range(self, start: int, stop: int, source: str) -> None:
        """Refuse a range outside."""
        if not 0 <= start <= stop <= len(self):
            raise DatasetError(
                f"{source}: expected a range of rows within 0 to {len(self)}, got {start} to {stop}"
            )

    def check_whole(self, start: int, stop: int, source: str) -> None:
        """Refuse a range that is not all there is."""
        if (start, stop) != (0, len(self)):
            raise DatasetError(
                f"{source}: expected a survey of rows 0 to {len(self)}, got one of {start} to "
                f"{stop}; merge the surveys of all ranges first"
            )

    def sorted(self, rows: Int[np.ndarray, " r"], source: str) -> Int[np.ndarray, " r"]:
        """Rows that must be in order and inside."""
        self.check_rows(rows, source)
        if (rows[1:] < rows[:-1]).any():
            raise DatasetError(f"{source}: expected sorted rows, got others; sort them first")
        return rows.astype(np.int64)

    def check_rows(self, rows: Int[np.ndarray, " r"], source: str) -> None:
        """Refuse rows outside."""
        wrong = rows[(rows < 0) | (rows >= len(self))]
        if len(wrong):
            raise DatasetError(
                f"{source}: expected rows from 0 to {len(self) - 1}, got {len(wrong)} outside "
                f"(first: {wrong[0]})"
            )


_SMALL = 2**24  # bytes of an Arrow file that is read whole
# Bytes read ahead in each column: whole column chunks would grow with the row groups.
_BUFFER = 2**16
# A run of equal rows is a few bytes of Parquet, but no data have so many of them.
_ROWS_A_BYTE = 100_000
# Whether any row from the first to before the second is wanted.
Wanted = Callable[[int, int], bool]


def between(start: int, stop: int) -> Wanted:
    """The rows from start to before stop.

    >>> between(3, 5)(0, 4), between(3, 5)(5, 9)
    (True, False)
    """
    return lambda first, last: first < stop and start < last and first < last


def among(rows: Int[np.ndarray, " r"]) -> Wanted:
    """These sorted rows.

    >>> among(np.array([2, 7]))(0, 4), among(np.array([2, 7]))(3, 7)
    (True, False)
    """
    return lambda first, last: bool(np.diff(np.searchsorted(rows, [first, last]))[0])


def look(file: str) -> tuple[int, pa.Schema]:
    """How many rows a file has, and of which columns; only its metadata is read."""
    if kind_of(file) == PARQUET:
        with _parquet(file) as parquet:
            rows, schema = parquet.metadata.num_rows, _plain(parquet.schema_arrow)
    else:
        _check_arrow(file)
        with readable(file), plain_file(file) as stream:
            known = unpacked(stream)
        check_memory(known.largest, f"{file} (a batch of its rows)")
        with readable(file), native(file) as source, pa.ipc.open_file(source) as reader:
            rows, schema = known.rows, _plain(reader.schema)
    check_columns(len(schema), file)
    if not is_address(file) and rows > _ROWS_A_BYTE * check_plain(file):
        raise DatasetError(
            f"{file}: expected rows of data, got a claim of {rows:,} rows in "
            f"{check_plain(file):,} bytes; save it again"
        )
    return rows, schema


def check_room(file: str, columns: Sequence[str]) -> None:
    """Refuse a Parquet file of which a block of rows of these columns would not fit in memory."""
    if is_address(file) or kind_of(file) != PARQUET:
        return
    with _parquet(file) as parquet, plain_file(file) as stream:
        pages = decoded(stream, parquet, columns).pages
    check_memory(pages, f"{file} (a block of its rows)")


def _check_arrow(file: str) -> None:
    with readable(file), opened(file) as stream:
        magic = stream.read(6)
    if magic.startswith(b"FEA1") or magic[:4] == b"\xff\xff\xff\xff":
        raise DatasetError(
            f"{file}: expected an Arrow file that can be read in parts, got "
            f"{'an old Feather file' if magic.startswith(b'FEA1') else 'an Arrow stream'}; "
            "save it once as Parquet"
        )


def pieces(
    file: str, rows: int, fields: pa.Schema, size: int, wanted: Wanted
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches of at most `size` rows where some are wanted, with the number of their first row.

    The file must still have the rows and fields that it had when the pool was opened.
    """
    read = _from_parquet if kind_of(file) == PARQUET else _from_arrow
    with readable(file):
        for first, batch in read(file, rows, fields, size, wanted):
            if wanted(first, first + batch.num_rows):
                clean = pa.RecordBatch.from_arrays(
                    [_text(batch.column(name), file) for name in fields.names], names=fields.names
                )
                # Offsets and letters in the file are claims too.
                clean.validate(full=True)
                yield first, clean


def _from_parquet(
    file: str, rows: int, fields: pa.Schema, size: int, wanted: Wanted
) -> Iterator[tuple[int, pa.RecordBatch]]:
    with _parquet(file) as parquet:
        _check(file, rows, fields, parquet.metadata.num_rows, _plain(parquet.schema_arrow))
        first = 0
        for group in range(parquet.num_row_groups):
            count = parquet.metadata.row_group(group).num_rows
            if wanted(first, first + count):
                _check_words(file, parquet, group, fields, size)
                # Threads would hold a page of each column more, and the callers have their own.
                batches = parquet.iter_batches(
                    size, row_groups=[group], columns=fields.names, use_threads=False
                )
                start = first
                for batch in batches:
                    yield start, batch
                    start += batch.num_rows
                    if not wanted(start, first + count):
                        break
                else:
                    _check(file, count, fields, start - first, _plain(parquet.schema_arrow))
            first += count


def _check_words(
    file: str, parquet: pq.ParquetFile, group: int, fields: pa.Schema, size: int
) -> None:
    """Refuse words of a row group so long that a block of rows with them would not fit.

    A dictionary holds a word once, and rows repeat it; so it is looked at before they are read.
    """
    text = [field.name for field in fields if pa.types.is_string(field.type)]
    if is_address(file) or not text:
        return
    with pq.ParquetFile(native(file), metadata=parquet.metadata, read_dictionary=text) as words:
        first = next(words.iter_batches(1, row_groups=[group], columns=text), None)
    for column in [] if first is None else first.columns:
        longest = pc.max(pc.binary_length(column.dictionary)).as_py() or 0
        check_memory(size * len(text) * longest, f"{file} (words of {longest:,} bytes)")


def _from_arrow(
    file: str, rows: int, fields: pa.Schema, size: int, wanted: Wanted
) -> Iterator[tuple[int, pa.RecordBatch]]:
    _check_arrow(file)
    with ExitStack() as stack:
        source = stack.enter_context(_mapped(file))
        schema = stack.enter_context(pa.ipc.open_file(source)).schema
        counts, packed = _arrow_counts(source, schema)
        _check(file, rows, fields, sum(counts), _plain(schema))
        # Some of the columns are copied; all of them stay in the file unless they are packed.
        chosen = [schema.get_field_index(name) for name in fields.names] if packed else []
        reader = stack.enter_context(
            pa.ipc.open_file(source, options=pa.ipc.IpcReadOptions(included_fields=chosen))
        )
        first = 0
        for number, count in enumerate(counts):
            if wanted(first, first + count):
                batch = reader.get_batch(number)
                for start in range(0, count, size):
                    yield first + start, batch.slice(start, size)
            first += count


def _mapped(file: str) -> pa.NativeFile:
    """A file in memory if it is small, else mapped: one that is cut meanwhile ends the process."""
    small = check_plain(file) <= _SMALL
    return pa.BufferReader(read_bytes(file)) if small else native_map(file)


@contextmanager
def _parquet(file: str) -> Iterator[pq.ParquetFile]:
    with ExitStack() as stack:
        stack.enter_context(readable(file))
        if not is_address(file):
            check_plain(file)
        source = stack.enter_context(opened(file) if is_address(file) else native(file))
        # Not mapped: a file that is cut while it is mapped would end the process.
        yield stack.enter_context(
            pq.ParquetFile(
                source, buffer_size=_BUFFER, pre_buffer=False, page_checksum_verification=True
            )
        )


def _plain(schema: pa.Schema) -> pa.Schema:
    """Names and kinds only, without what other programs wrote beside them."""
    kinds = [pa.string() if pa.types.is_string_view(kind) else kind for kind in schema.types]
    return pa.schema(list(zip(schema.names, kinds, strict=True)))


def _text(cells: pa.Array, file: str) -> pa.Array:
    """Views of text as text of their own, where that fits; pyarrow cannot do much with views."""
    if not pa.types.is_string_view(cells.type):
        return cells
    words = by_word(cells)
    check_memory(letters(words), f"{file} (a block of its text)")
    return words.cast(pa.string())


def _arrow_counts(source: pa.NativeFile, schema: pa.Schema) -> tuple[list[int], bool]:
    """Rows in each batch of a mapped file, and whether it is compressed.

    Only its narrowest column is unpacked; a count by pyarrow's dataset would read whole batches.
    """
    widths = [
        field.type.bit_width if pa.types.is_primitive(field.type) else np.inf for field in schema
    ]
    narrowest = [int(np.argmin(widths))] if widths else []
    options = pa.ipc.IpcReadOptions(included_fields=narrowest, use_threads=False)
    counts, packed = [], False
    with pa.ipc.open_file(source, options=options) as reader:
        for at in range(reader.num_record_batches):
            batch = reader.get_batch(at)
            counts.append(batch.num_rows)
            buffers = [buffer for column in batch.columns for buffer in column.buffers() if buffer]
            # What was unpacked is new memory; anything else is a part of what was read.
            packed = packed or any(buffer.parent is None for buffer in buffers)
    return counts, packed


def _check(file: str, rows: int, fields: pa.Schema, got: int, schema: pa.Schema) -> None:
    if got != rows:
        raise DatasetError(
            f"{file}: expected {rows:,} rows, as when the pool was opened, got {got:,}; leave the "
            "files alone while they are read, and start again"
        )
    for field in fields:
        at = schema.get_field_index(field.name)
        if at < 0 or schema.field(at).type != field.type:
            raise DatasetError(
                f"{file}: expected column {field.name!r} of {field.type}, as when the pool was "
                f"opened, got {'none' if at < 0 else schema.field(at).type}; leave the files "
                "alone while they are read, and start again"
            )


@dataclass(frozen=True)
class StreamedArray:
    """Rows of arrays that agree in all axes but the first, and in type."""

    layout: ArrayLayout
    files: tuple[str, ...]
    ranges: Ranges
    remarks: tuple[str, ...] = ()
    in_files: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """What to call it in messages."""
        return self.layout.source

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a row."""
        return self.layout.shape

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns, where a row has one axis."""
        return self.layout.columns

    @property
    def widest(self) -> int:
        """The most numbers that an encoded row may have."""
        return prod(self.shape)

    def __len__(self) -> int:
        return len(self.ranges)

    def digest(self, file: str) -> str:
        """A hash of all bytes of a file."""
        return digest(file)

    def survey(self, start: int, stop: int, rows: Int[np.ndarray, " r"]) -> Survey:
        """Statistics of a range in one pass, and those of the sorted rows that lie in it."""
        rows = self.ranges.sorted(rows, self.name)
        parts = (
            self.layout.survey(first, x, rows)
            for first, x in self.raw(start, stop, step_of(prod(self.shape)), ())
        )
        if start == stop:
            return self.layout.survey(start, np.empty((0, *self.shape), self.layout.dtype), rows)
        return in_pairs(parts, Survey.merge)

    def fitted(self, survey: Survey) -> Fitted:
        """The pool with the scaling of a survey of all rows."""
        self.ranges.check_whole(survey.start, survey.stop, self.name)
        code, notes = self.layout.learn(survey)
        return Fitted(self, code, survey.sample, (*self.remarks, *notes))

    def cells(self, column: str, rows: Int[np.ndarray, " r"]) -> list[object]:
        """Plain values of one column in a few rows, in the order given."""
        at = self._place(column)
        return list(self.raw_at(rows, ())[:, at].tolist())

    def numbers(self, column: str, start: int, stop: int) -> Float[np.ndarray, " n"]:
        """One column of a range as float64, where every cell must be a number."""
        at = self._place(column)
        values = np.empty(stop - start)
        for first, x in self.raw(start, stop, BLOCK, ()):
            values[first - start : first - start + len(x)] = x[:, at]
        return all_finite(self.name, column, values, start)

    def raw(
        self, start: int, stop: int, size: int, columns: Sequence[str]
    ) -> Iterator[tuple[int, Shaped[np.ndarray, " b *d"]]]:
        """A range as it is in the files, cut at the multiples of a size; with all columns."""
        self.ranges.check_range(start, stop, self.name)
        while start < stop:
            end = min(stop, (start // size + 1) * size)
            parts = [self._read(*part) for part in self.ranges.parts(start, end)]
            yield start, parts[0] if len(parts) == 1 else np.concatenate(parts)
            start = end

    def raw_at(
        self, rows: Int[np.ndarray, " r"], columns: Sequence[str]
    ) -> Shaped[np.ndarray, " r *d"]:
        """A few rows as they are in the files, in the order given; with all columns."""
        self.ranges.check_rows(rows, self.name)
        distinct, order = np.unique(rows, return_inverse=True)
        found = [np.empty((0, *self.shape), self.layout.dtype)]
        for file, local in self.ranges.groups(distinct):
            runs = np.split(local, np.flatnonzero(np.diff(local) > 1) + 1)
            found += [self._read(file, int(run[0]), int(run[-1]) + 1) for run in runs]
        return np.concatenate(found)[order]

    def _read(self, file: int, start: int, stop: int) -> Shaped[np.ndarray, " n *d"]:
        path, shape = self.files[file], (self.ranges.counts[file], *self.shape)
        with opened(path) as stream:
            header = npy_header(stream, path, empty=True)
            if (header.shape, header.dtype) != (shape, self.layout.dtype):
                raise DatasetError(
                    f"{path}: expected {_told(shape, self.layout.dtype)}, as when the pool was "
                    f"opened, got {_told(header.shape, header.dtype)}; leave the files alone while "
                    "they are read, and start again"
                )
            if header.columns_first:
                return _across(path, header, stream.tell(), start, stop)
            row = prod(self.shape) * header.dtype.itemsize
            stream.seek(start * row, 1)
            data = stream.read((stop - start) * row)
        if len(data) < (stop - start) * row:
            raise DatasetError(f"{path}: ended early, it was cut short; save it again")
        return np.frombuffer(data, header.dtype).reshape(stop - start, *self.shape)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: at for at, name in enumerate(self.layout.columns)}

    def _place(self, column: str) -> int:
        if column not in self._places:
            raise no_column(self.name, column, self.layout.columns or ("no names",))
        return self._places[column]


def _across(
    path: str, header: NpyHeader, offset: int, start: int, stop: int
) -> Shaped[np.ndarray, " n *d"]:
    """Rows of an array that lies column by column in its file, which is mapped for it."""
    mapped = np.memmap(path, header.dtype, "r", offset, header.shape, order="F")
    return np.array(mapped[start:stop], order="C")


def _told(shape: tuple[int, ...], dtype: np.dtype) -> str:
    return f"{'x'.join(map(str, shape))} numbers of {dtype}"


def open_arrays(found: PoolFiles, left_out: Sequence[str], standardise: bool) -> StreamedArray:
    """The pool in these files, of which only the headers are read."""
    headers = []
    for path in found.files:
        with opened(path) as stream:
            headers.append(npy_header(stream, path, empty=True))
        one, first = headers[-1], headers[0]
        if (one.shape[1:], one.dtype) != (first.shape[1:], first.dtype):
            rest = ("rows", *first.shape[1:])
            raise DatasetError(
                f"{path}: expected {'x'.join(map(str, rest))} numbers of {first.dtype}, as in "
                f"{found.files[0]}, got {_told(one.shape, one.dtype)}; save all files alike"
            )
    ranges = Ranges(tuple(header.shape[0] for header in headers))
    if not len(ranges):
        raise DatasetError(f"{found.name}: expected rows of data, got none")
    shape, dtype = headers[0].shape[1:], headers[0].dtype
    if len(shape) == 1:
        check_columns(shape[0], found.name)
    layout = ArrayLayout(found.name, len(ranges), shape, dtype, tuple(left_out), standardise)
    pool = StreamedArray(layout, found.files, ranges, found.remarks)
    for name in left_out:
        pool._place(name)
    if not len(layout.used):
        raise none_left(found.name, len(left_out))
    return pool


_AT_LEAST = 64


@dataclass(frozen=True)
class StreamedTable:
    """Rows of files that all have the same columns."""

    layout: TableLayout
    files: tuple[str, ...]
    ranges: Ranges
    remarks: tuple[str, ...] = ()
    in_files: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """What to call it in messages."""
        return self.layout.source

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a row before it is encoded."""
        return (len(self.layout.used),)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns."""
        return tuple(self.layout.schema.names)

    @property
    def widest(self) -> int:
        """The most numbers that an encoded row may have."""
        numbers = len(self.layout.numeric)
        return numbers + (len(self.layout.used) - numbers) * self.layout.max_categories

    def __len__(self) -> int:
        return len(self.ranges)

    def digest(self, file: str) -> str:
        """A hash of all bytes of a file."""
        return digest(file)

    def survey(self, start: int, stop: int, rows: Int[np.ndarray, " r"]) -> Survey:
        """Statistics of a range in one pass, and those of the sorted rows that lie in it."""
        rows = self.ranges.sorted(rows, self.name)
        used = self.layout.used
        parts = (
            self.layout.survey(first, table, rows)
            for first, table in self.raw(start, stop, step_of(len(used)), used)
        )
        if start == stop:
            return self.layout.survey(start, self._fields(used).empty_table(), rows)
        return in_pairs(parts, Survey.merge)

    def fitted(self, survey: Survey) -> Fitted:
        """The pool with the scaling and categories of a survey of all rows."""
        self.ranges.check_whole(survey.start, survey.stop, self.name)
        encoder = self.layout.learn(survey)
        code = TableCode(encoder)
        return Fitted(self, code, survey.sample, (*self.remarks, *encoder.notes))

    def cells(self, column: str, rows: Int[np.ndarray, " r"]) -> list[object]:
        """Plain values of one column in a few rows, in the order given."""
        return list(plain(self.raw_at(rows, [column]).column(column)).to_pylist())

    def numbers(self, column: str, start: int, stop: int) -> Float[np.ndarray, " n"]:
        """One column of a range as float64, where every cell must be a number."""
        none = self._fields([column]).empty_table()
        parts = [checked_numbers(self.name, column, none.column(column))]
        for first, table in self.raw(start, stop, 16 * BLOCK, [column]):
            parts.append(checked_numbers(self.name, column, table.column(column), first))
        return np.concatenate(parts)

    def raw(
        self, start: int, stop: int, size: int, columns: Sequence[str]
    ) -> Iterator[tuple[int, pa.Table]]:
        """A range as it is in the files, cut at the multiples of a size."""
        self.ranges.check_range(start, stop, self.name)
        held: list[pa.RecordBatch] = []
        first = at = start
        for piece in self._pieces(start, stop, size, self._fields(columns)):
            batch = piece
            while batch.num_rows:
                full = (at // size + 1) * size
                held.append(batch.slice(0, full - at))
                at += held[-1].num_rows
                batch = batch.slice(held[-1].num_rows)
                if at == full:
                    yield first, pa.Table.from_batches(held)
                    held, first = [], at
        if held:
            yield first, pa.Table.from_batches(held)

    def _pieces(
        self, start: int, stop: int, size: int, fields: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        for file, low, high in self.ranges.parts(start, stop):
            path, count = self.files[file], self.ranges.counts[file]
            for first, batch in pieces(
                path, count, fields, max(size, _AT_LEAST), between(low, high)
            ):
                skipped = max(low - first, 0)
                yield batch.slice(skipped, min(high - first, batch.num_rows) - skipped)

    def raw_at(self, rows: Int[np.ndarray, " r"], columns: Sequence[str]) -> pa.Table:
        """A few rows as they are in the files, in the order given."""
        self.ranges.check_rows(rows, self.name)
        fields = self._fields(columns)
        distinct, order = np.unique(rows, return_inverse=True)
        found = [fields.empty_table()]
        for file, local in self.ranges.groups(distinct):
            path, count = self.files[file], self.ranges.counts[file]
            for first, batch in pieces(path, count, fields, BLOCK, among(local)):
                inside = slice(*np.searchsorted(local, [first, first + batch.num_rows]))
                found.append(pa.Table.from_batches([batch]).take(local[inside] - first))
        return pa.concat_tables(found).take(order)

    def _fields(self, columns: Sequence[str]) -> pa.Schema:
        schema = self.layout.schema
        for name in columns:
            if place_of(schema, name) < 0:
                raise no_column(self.name, name, schema.names)
        return pa.schema([pa.field(name, schema.field(name).type) for name in columns])


def open_tables(
    found: PoolFiles, left_out: Sequence[str], max_categories: int, standardise: bool, impute: bool
) -> StreamedTable:
    """The pool in these files, of which only the metadata is read."""
    counts, schema = [], pa.schema([])
    for number, file in enumerate(found.files):
        count, here = look(file)
        if number == 0 or not here.equals(schema):
            check_names(here.names, file)
            schema = schema if number else here
            _check_same(file, here, found.files[0], schema)
        counts.append(count)
    ranges = Ranges(tuple(counts))
    if not len(ranges):
        raise DatasetError(f"{found.name}: expected rows of data, got column names only")
    layout = TableLayout(
        found.name, len(ranges), schema, tuple(left_out), max_categories, standardise, impute
    )
    pool = StreamedTable(layout, found.files, ranges, found.remarks)
    pool._fields(left_out)
    for name in layout.used:
        usable(found.name, name, schema.field(name).type)
    if not layout.used:
        raise none_left(found.name, len(left_out))
    for file in found.files:
        check_room(file, layout.used)
    return pool


def _check_same(file: str, here: pa.Schema, first: str, schema: pa.Schema) -> None:
    mine = dict(zip(here.names, here.types, strict=True))
    theirs = dict(zip(schema.names, schema.types, strict=True))
    for name in {**theirs, **mine}:
        if mine.get(name) != theirs.get(name):
            raise DatasetError(
                f"{file}: expected column {name!r} of {theirs.get(name, 'none')}, as in {first}, "
                f"got {mine.get(name, 'none')}; write all files with the same columns and types"
            )


def open_pool(
    where: str | Path | Sequence[str | Path],
    *,
    id: str | None = None,
    drop: Sequence[str] = (),
    costs: str | None = None,
    impute: bool = False,
    max_categories: int = 50,
    standardise: bool = True,
) -> Streamed:
    """A pool in Parquet, Arrow or npy files, of which only the metadata is read yet.

    `where` is a file, a folder, a list of files, or the address of Parquet files for fsspec. The
    columns named by `id`, `drop` and `costs` are no features. With `impute`, the mean of a column
    of numbers and the most frequent word stand for cells without a value.

    >>> import numpy as np, tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.save(folder / "a.npy", np.array([[1.0, 5.0], [3.0, 9.0]]))
    >>> np.save(folder / "b.npy", np.array([[3.0, 5.0], [1.0, 9.0]]))
    >>> pool = open_pool(folder)
    >>> len(pool), pool.shape
    (4, (2,))
    >>> fitted = pool.fitted(pool.survey(0, 4, rows=np.array([0, 3])))
    >>> fitted.sample
    array([[-1., -1.],
           [-1.,  1.]])
    >>> [(first, len(x)) for first, x in fitted.blocks(1, 4, size=2)]
    [(1, 1), (2, 2)]
    """
    found = find(where)
    for name, given in (("id", id), ("costs", costs)):
        if given is not None:
            word(given, name, error=DatasetError)
    drop = words(drop, "drop", error=DatasetError)
    flag(impute, "impute", error=DatasetError)
    flag(standardise, "standardise", error=DatasetError)
    max_categories = integer(max_categories, "max_categories", 1, error=DatasetError)
    named = [name for name in (id, *drop, costs) if name is not None]
    left_out = tuple(dict.fromkeys(named))
    pool: Streamed
    if found.kind == NPY:
        if impute:
            raise DatasetError(f"{found.name}: impute is for tables, got an array; fill it in")
        pool = open_arrays(found, left_out, standardise)
    else:
        pool = open_tables(found, left_out, max_categories, standardise, impute)
    if costs is not None:
        pool.numbers(costs, 0, 0)  # refuses a column of words before anything is read
    return pool
