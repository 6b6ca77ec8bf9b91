"""Pools larger than memory: files, folders and URLs that are read a block at a time."""

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from io import BufferedReader
from itertools import chain
from math import prod
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, ClassVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from jaxtyping import Float, Int, Shaped

from evgp._checks import can, flag, integer, path_of, shown, word, words
from evgp._defaults import MAX_CATEGORIES
from evgp._linalg import BLOCK, in_pairs
from evgp._reading import check_memory, check_plain, read_bytes
from evgp._reading import opened as plain_file
from evgp.datasets.arrays import NpyHeader, check_columns, npy_header
from evgp.datasets.columns import CYCLES, is_number, is_time, plain
from evgp.datasets.encode import (
    ArrayLayout,
    Fitted,
    Streamed,
    Survey,
    TableLayout,
    none_left,
    step_of,
    usable,
)
from evgp.datasets.parquet import categorical, fit, native, native_map, text_bytes, to_dictionary
from evgp.datasets.scaling import scale_of
from evgp.datasets.sizes import decoded, unpacked
from evgp.datasets.tables import (
    all_finite,
    check_file,
    check_names,
    checked_numbers,
    damaged,
    place_of,
)
from evgp.datasets.vectors import chosen, empty, is_vector, length_of
from evgp.datasets.web import WebFile
from evgp.errors import (
    DatasetError,
    DuplicateNames,
    EmptyFile,
    EvgpError,
    MissingColumn,
    MissingFile,
    UnreadableFile,
    WrongFormat,
    quoted,
)

PARQUET, ARROW, NPY = "Parquet", "Arrow", "NumPy"
KINDS = {".parquet": PARQUET, ".arrow": ARROW, ".feather": ARROW, ".ipc": ARROW, ".npy": NPY}
_OTHERS = (".csv", ".tsv", ".txt", ".json", ".npz", ".gz", ".zip", ".xlsx")
_PART = 2**20
_WEB = ("http://", "https://")
_ENDS = ".parquet, .arrow, .feather or .npy"


@dataclass(frozen=True)
class PoolFiles:
    """Files of one format in order, and the name of the pool in messages."""

    name: str
    kind: str
    files: tuple[str, ...]
    remarks: tuple[str, ...] = ()


def find(where: str | Path | Sequence[str | Path]) -> PoolFiles:
    """Find the files of a pool, without opening them."""
    if isinstance(where, str | PathLike):
        where = where if isinstance(where, str) else path_of(where, "where", error=DatasetError)
        path_of(where, "where", error=DatasetError)
        if is_address(where):
            return _at_address(str(where))
        return _in_folder(Path(where)) if Path(where).is_dir() else _listed([where], str(where))
    if not isinstance(where, Sequence) or isinstance(where, bytes):
        raise DatasetError(f"expected the path of a pool, or a list of files; got {shown(where)}")
    where = [path_of(file, "each file of a pool", error=DatasetError) for file in where]
    if not where:
        raise DatasetError("expected the files of a pool, got an empty list; name at least one")
    return _listed(where, f"{where[0]}" + (f" and {len(where) - 1} more" if where[1:] else ""))


def is_address(where: str | Path) -> bool:
    """Whether this is a URL."""
    return isinstance(where, str) and "://" in where


def local(where: str | Path) -> Path | None:
    """Return the local path of a path or URL; None if it is on another machine.

    >>> local("file:///data/pool.parquet"), local("s3://bucket/pool")
    (PosixPath('/data/pool.parquet'), None)
    """
    if not is_address(where):
        return Path(where)
    scheme, path = str(where).split("://", 1)
    return Path(path) if scheme in ("file", "local") else None


def kind_of(file: str | Path) -> str:
    """Return the format of a file, by its suffix.

    >>> kind_of("pool.parquet")
    'Parquet'
    """
    suffix = PurePosixPath(file).suffix.lower()
    if suffix not in KINDS:
        raise DatasetError(
            f"{file}: expected a name that ends in {_ENDS}, which can be read in parts; save it "
            "once as Parquet, for example with pandas.read_csv(path).to_parquet('pool.parquet')"
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
        raise DuplicateNames(name, "each file once", tuple(Path(file).name for file in twice))
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
    """Return the sorted files of a folder, local or remote; refuse other files in it."""
    if others and not names and PurePosixPath(others[0]).suffix.lower() in _OTHERS:
        kind_of(f"{source}/{others[0]}")  # which raises
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
    remark = f"folder names such as {min(parts)!r} are not read as columns" if parts else ""
    pool = _listed([full(name) for name in names], source)
    return PoolFiles(source, pool.kind, pool.files, (remark,) if remark else ())


def _at_address(where: str) -> PoolFiles:
    suffix = PurePosixPath(where).suffix.lower()
    if suffix in _OTHERS:
        kind_of(where)  # raises the right error before the server is contacted
    if KINDS.get(suffix, PARQUET) != PARQUET:
        raise _only_parquet(where)
    if not where.split("://", 1)[1].strip("/"):
        raise WrongFormat.of(DatasetError)(str(where), "the address of a pool", "none behind ://")
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
    """Open a file or a URL for reading bytes."""
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
    """Return a hash of all bytes of a file, read in small parts."""
    with opened(file) as stream:
        state = hashlib.blake2b()
        while part := stream.read(_PART):
            state.update(part)
        return state.hexdigest()


@contextmanager
def readable(file: str) -> Iterator[None]:
    """Turn errors of reading a file into errors that name it."""
    try:
        yield
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        if isinstance(error, FileNotFoundError):
            raise MissingFile.of(DatasetError)(str(file)) from error
        if isinstance(error, OSError) and error.errno is not None:
            reason = os.strerror(error.errno).lower()
            raise UnreadableFile.of(DatasetError)(str(file), f"cannot be read: {reason}") from error
        raise damaged(file, PurePosixPath(file).suffix.lower()) from error
    except EvgpError:
        raise
    except Exception as error:  # packages used by fsspec may raise anything
        if not is_address(file):
            raise
        raise _closed(file, error) from error


def _closed(where: str, error: Exception) -> DatasetError:
    reason = " ".join(str(error).split())[:300] or type(error).__name__
    return DatasetError(f"{where}: this address cannot be opened: {reason}")


def _filesystem(where: str) -> tuple[Any, str]:
    try:
        import fsspec  # type: ignore[import-untyped]
    except ImportError as error:
        raise DatasetError(
            f"{where}: opening an address needs the package fsspec; install it (pip install "
            "fsspec), or copy the files here"
        ) from error
    try:
        fs, path = fsspec.core.url_to_fs(where)
    except Exception as error:  # packages used by fsspec may raise anything
        raise _closed(where, error) from error
    return fs, path


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def _refuse(error: OSError) -> None:
    raise UnreadableFile.of(DatasetError)(
        str(error.filename), "this folder may not be read", "change its permissions"
    )


def _mixed(source: str, examples: Sequence[str]) -> DatasetError:
    names = [Path(example).name for example in examples]
    return DatasetError(f"{source}: expected files of one kind, got {quoted(names)}; keep one kind")


def _only_parquet(file: str) -> EvgpError:
    return WrongFormat.of(DatasetError)(
        str(file),
        "Parquet at an address",
        "another kind",
        "save it as Parquet, or copy the file here",
    )


@dataclass(frozen=True)
class Ranges:
    """The number of rows in each file, which maps global row numbers to rows of files.

    >>> ranges = Ranges((3, 0, 4))
    >>> len(ranges), list(ranges.parts(1, 5))
    (7, [(0, 1, 3), (2, 0, 2)])
    """

    counts: tuple[int, ...]

    def __len__(self) -> int:
        return int(self.starts[-1])

    @cached_property
    def starts(self) -> Int[np.ndarray, " files"]:
        """Global number of the first row of each file, followed by the total."""
        return np.concatenate([[0], np.cumsum(self.counts, dtype=np.int64)])

    def parts(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """Yield the files, and the ranges of their own rows, that make up a global range."""
        file = int(np.searchsorted(self.starts, start, side="right")) - 1
        while start < stop:
            first, count = int(self.starts[file]), self.counts[file]
            if start < first + count:
                yield file, start - first, min(stop - first, count)
                start = min(stop, first + count)
            file += 1

    def groups(self, rows: Int[np.ndarray, " r"]) -> Iterator[tuple[int, Int[np.ndarray, " q"]]]:
        """Yield the files that contain some of the sorted global rows, with their own row numbers.

        >>> [(file, rows.tolist()) for file, rows in Ranges((3, 4)).groups(np.array([1, 3, 5]))]
        [(0, [1]), (1, [0, 2])]
        """
        files = np.searchsorted(self.starts, rows, side="right") - 1
        distinct, first = np.unique(files, return_index=True)
        for file, part in zip(distinct.tolist(), np.split(rows, first[1:]), strict=False):
            yield file, part - self.starts[file]

    def check_range(self, start: int, stop: int, source: str) -> None:
        """Refuse a range outside the pool."""
        if not 0 <= start <= stop <= len(self):
            raise DatasetError(
                f"{source}: expected a range of rows within 0 to {len(self)}, got {start} to {stop}"
            )

    def check_whole(self, start: int, stop: int, source: str) -> None:
        """Refuse a range that is not the whole pool."""
        if (start, stop) != (0, len(self)):
            raise DatasetError(
                f"{source}: expected a survey of rows 0 to {len(self)}, got one of {start} to "
                f"{stop}; merge the surveys of all ranges first"
            )

    def sorted(self, rows: Int[np.ndarray, " r"], source: str) -> Int[np.ndarray, " r"]:
        """Return rows as int64; refuse rows that are unsorted or outside the pool."""
        self.check_rows(rows, source)
        if (rows[1:] < rows[:-1]).any():
            raise DatasetError(f"{source}: expected sorted rows, got others; sort them first")
        return rows.astype(np.int64)

    def check_rows(self, rows: Int[np.ndarray, " r"], source: str) -> None:
        """Refuse rows outside the pool."""
        wrong = rows[(rows < 0) | (rows >= len(self))]
        if len(wrong):
            raise DatasetError(
                f"{source}: expected rows from 0 to {len(self) - 1}, got {len(wrong)} outside "
                f"(first: {wrong[0]})"
            )


_SMALL = 2**24  # Arrow files up to this many bytes are read whole
# Bytes read ahead in each column: whole column chunks would grow with the row groups.
_BUFFER = 2**16
# A run of equal rows takes only a few bytes of Parquet, but no real data has more rows per byte.
_ROWS_A_BYTE = 100_000
# Whether any row from the first to before the second is needed.
RowFilter = Callable[[int, int], bool]


def between(start: int, stop: int) -> RowFilter:
    """Return a filter for the rows from start to before stop.

    >>> between(3, 5)(0, 4), between(3, 5)(5, 9)
    (True, False)
    """
    return lambda first, last: first < stop and start < last and first < last


def among(rows: Int[np.ndarray, " r"]) -> RowFilter:
    """Return a filter for some sorted rows.

    >>> among(np.array([2, 7]))(0, 4), among(np.array([2, 7]))(3, 7)
    (True, False)
    """
    return lambda first, last: bool(np.diff(np.searchsorted(rows, [first, last]))[0])


def look(file: str) -> tuple[int, pa.Schema]:
    """Read the number of rows and the schema of a file from its metadata."""
    if kind_of(file) == PARQUET:
        with _parquet(file) as parquet:
            known, schema = parquet.metadata, _plain(parquet.schema_arrow)
            rows = known.num_rows
            groups = [known.row_group(at).num_rows for at in range(known.num_row_groups)]
            if min(groups, default=0) < 0 or sum(groups) != rows:
                raise pa.ArrowInvalid("a footer whose counts of rows disagree")
    else:
        _check_arrow(file)
        with readable(file), plain_file(file) as stream:
            known = unpacked(stream)
        check_memory(known.largest, f"{file} (a batch of its rows)")
        with readable(file), native(file) as source, pa.ipc.open_file(source) as reader:
            rows, schema = known.rows, _plain(reader.schema)
    check_columns(len(schema), file)
    if not is_address(file) and rows > _ROWS_A_BYTE * check_plain(file):
        raise WrongFormat.of(DatasetError)(
            str(file),
            "rows of data",
            f"a claim of {rows:,} rows in {check_plain(file):,} bytes",
            "save it again",
        )
    return rows, schema


def text_size(file: str) -> int:
    """Return the bytes of all columns of text in a Parquet file, by its metadata; else 0."""
    if kind_of(file) != PARQUET:
        return 0
    with _parquet(file) as parquet:
        known, schema = parquet.metadata, parquet.schema_arrow
        groups = [known.row_group(at) for at in range(known.num_row_groups)]
    kinds = pa.types.is_string, pa.types.is_large_string
    names = {field.name for field in schema if any(is_text(field.type) for is_text in kinds)}
    columns = (group.column(at) for group in groups for at in range(group.num_columns))
    return sum(c.total_uncompressed_size for c in columns if c.path_in_schema in names)


def check_room(file: str, columns: Sequence[str]) -> None:
    """Refuse a Parquet file if a block of its rows would not fit in memory."""
    if is_address(file) or kind_of(file) != PARQUET:
        return
    with _parquet(file) as parquet, plain_file(file) as stream:
        pages = decoded(stream, parquet, columns).pages
    check_memory(pages, f"{file} (a block of its rows)")


def _check_arrow(file: str) -> None:
    with readable(file), opened(file) as stream:
        magic = stream.read(6)
    if magic.startswith(b"FEA1") or magic[:4] == b"\xff\xff\xff\xff":
        raise WrongFormat.of(DatasetError)(
            str(file),
            "an Arrow file that can be read in parts",
            str("an old Feather file" if magic.startswith(b"FEA1") else "an Arrow stream"),
            "save it once as Parquet",
        )


def pieces(
    file: str, rows: int, fields: pa.Schema, size: int, needed: RowFilter
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield batches of at most `size` rows that contain needed rows, with their first row number.

    The file must still have the rows and fields that it had when the pool was opened.
    """
    read = _from_parquet if kind_of(file) == PARQUET else _from_arrow
    with readable(file):
        for first, batch in read(file, rows, fields, size, needed):
            if needed(first, first + batch.num_rows):
                clean = pa.RecordBatch.from_arrays(
                    [_text(batch.column(field.name), field.type, file) for field in fields],
                    names=fields.names,
                )
                # Offsets and text in the file may be wrong too.
                clean.validate(full=True)
                yield first, clean


def _from_parquet(
    file: str, rows: int, fields: pa.Schema, size: int, needed: RowFilter
) -> Iterator[tuple[int, pa.RecordBatch]]:
    with _parquet(file) as parquet:
        _check(file, rows, fields, parquet.metadata.num_rows, _plain(parquet.schema_arrow))
        first = 0
        for group in range(parquet.num_row_groups):
            count = parquet.metadata.row_group(group).num_rows
            if needed(first, first + count):
                _check_text(file, parquet, group, fields, size)
                _check_lists(file, parquet, group, fields, size)
                # Threads would need one more page of each column, and the callers use threads.
                batches = parquet.iter_batches(
                    size, row_groups=[group], columns=fields.names, use_threads=False
                )
                start = first
                for batch in batches:
                    yield start, batch
                    start += batch.num_rows
                    if not needed(start, first + count):
                        break
                else:
                    _check(file, count, fields, start - first, _plain(parquet.schema_arrow))
            first += count


def _check_text(
    file: str, parquet: pq.ParquetFile, group: int, fields: pa.Schema, size: int
) -> None:
    """Refuse a row group with strings so long that a block of rows would not fit in memory.

    A dictionary stores a string once, and rows repeat it; so it is checked before rows are read.
    """
    text = [field.name for field in fields if pa.types.is_string(field.type)]
    if is_address(file) or not text:
        return
    with pq.ParquetFile(native(file), metadata=parquet.metadata, read_dictionary=text) as reader:
        first = next(reader.iter_batches(1, row_groups=[group], columns=text), None)
    for column in [] if first is None else first.columns:
        longest = pc.max(pc.binary_length(column.dictionary)).as_py() or 0
        check_memory(size * len(text) * longest, f"{file} (words of {longest:,} bytes)")


def _check_lists(
    file: str, parquet: pq.ParquetFile, group: int, fields: pa.Schema, size: int
) -> None:
    """Refuse a row group with lists so long that a block of rows would not fit in memory."""
    lists = {field.name for field in fields if pa.types.is_nested(field.type)}
    if is_address(file) or not lists:
        return
    chunks = parquet.metadata.row_group(group)
    columns = [chunks.column(at) for at in range(chunks.num_columns)]
    values = sum(c.num_values for c in columns if c.path_in_schema.partition(".")[0] in lists)
    share = min(1.0, size / max(1, chunks.num_rows))
    fit(8 * int(share * values), os.path.getsize(file), file)


def _from_arrow(
    file: str, rows: int, fields: pa.Schema, size: int, needed: RowFilter
) -> Iterator[tuple[int, pa.RecordBatch]]:
    _check_arrow(file)
    with ExitStack() as stack:
        source = stack.enter_context(_mapped(file))
        schema = stack.enter_context(pa.ipc.open_file(source)).schema
        counts, packed = _arrow_counts(source, schema)
        _check(file, rows, fields, sum(counts), _plain(schema))
        # Choosing columns makes pyarrow copy them; without a choice, uncompressed ones stay mapped.
        chosen = [schema.get_field_index(name) for name in fields.names] if packed else []
        reader = stack.enter_context(
            pa.ipc.open_file(source, options=pa.ipc.IpcReadOptions(included_fields=chosen))
        )
        first = 0
        for number, count in enumerate(counts):
            if needed(first, first + count):
                batch = reader.get_batch(number)
                for start in range(0, count, size):
                    yield first + start, batch.slice(start, size)
            first += count


def _mapped(file: str) -> pa.NativeFile:
    """Read a small file, or map a large one; truncating a mapped file crashes the process."""
    small = check_plain(file) <= _SMALL
    return pa.BufferReader(read_bytes(file)) if small else native_map(file)


@contextmanager
def _parquet(file: str) -> Iterator[pq.ParquetFile]:
    with ExitStack() as stack:
        stack.enter_context(readable(file))
        if not is_address(file):
            check_plain(file)
        source = stack.enter_context(opened(file) if is_address(file) else native(file))
        # Not mapped: truncating a mapped file would crash the process.
        yield stack.enter_context(
            pq.ParquetFile(
                source, buffer_size=_BUFFER, pre_buffer=False, page_checksum_verification=True
            )
        )


def _plain(schema: pa.Schema) -> pa.Schema:
    """Return a schema with names and types only, without the metadata of other programs."""
    kinds = [pa.string() if pa.types.is_string_view(kind) else kind for kind in schema.types]
    for name in categorical(schema) & {*schema.names}:
        if is_number(kind := kinds[schema.names.index(name)]):
            kinds[schema.names.index(name)] = pa.dictionary(pa.int32(), kind)
    return pa.schema(list(zip(schema.names, kinds, strict=True)))


def _text(cells: pa.Array, kind: pa.DataType, file: str) -> pa.Array:
    """Convert numbers that are categories, and string views to strings if they fit."""
    if pa.types.is_dictionary(kind) and not pa.types.is_dictionary(cells.type):
        return cells.dictionary_encode()
    if not pa.types.is_string_view(cells.type):
        return cells
    encoded = to_dictionary(cells)
    check_memory(text_bytes(encoded), f"{file} (a block of its text)")
    return encoded.cast(pa.string())


def _arrow_counts(source: pa.NativeFile, schema: pa.Schema) -> tuple[list[int], bool]:
    """Return the number of rows in each batch of a file, and whether it is compressed.

    Only the narrowest column is unpacked; counting with pyarrow.dataset would read whole batches.
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
            # Unpacked buffers are new memory; the others are slices of the file.
            packed = packed or any(buffer.parent is None for buffer in buffers)
    return counts, packed


def _check(file: str, rows: int, fields: pa.Schema, got: int, schema: pa.Schema) -> None:
    if got != rows:
        raise WrongFormat.of(DatasetError)(
            str(file),
            f"{rows:,} rows, as when the pool was opened",
            f"{got:,}",
            "do not change the files while they are read, and run again",
        )
    for field in fields:
        at = schema.get_field_index(field.name)
        if at < 0 or schema.field(at).type != field.type:
            raise WrongFormat.of(DatasetError)(
                str(file),
                f"column {field.name!r} of {field.type}, as when the pool was opened",
                str("none" if at < 0 else schema.field(at).type),
                "do not change the files while they are read, and run again",
            )


def _count(files: tuple[str, ...]) -> str:
    return f"{len(files):,} files" if len(files) > 1 else "1 file"


@dataclass(frozen=True, repr=False)
class StreamedArray:
    """Rows of npy files whose arrays agree in dtype and in all axes but the first."""

    layout: ArrayLayout
    files: tuple[str, ...]
    ranges: Ranges
    remarks: tuple[str, ...] = ()
    stored: tuple[int, ...] | None = None  # shape of a row in the files, if its axes are flattened
    in_files: ClassVar[bool] = True

    def __repr__(self) -> str:
        of = "x".join(map(str, self.shape)) + f" {self.layout.dtype}"
        return f"StreamedArray({self.name}: {len(self):,} rows of {of} in {_count(self.files)})"

    def flat(self) -> "StreamedArray":
        """Return the same rows with one axis, each of whose columns is scaled by itself."""
        layout = replace(self.layout, shape=(prod(self.shape),))
        return replace(self, layout=layout, stored=self.shape)

    @property
    def name(self) -> str:
        """Name of the pool in messages."""
        return self.layout.source

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of a row."""
        return self.layout.shape

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns; empty if a row has more than one axis."""
        return self.layout.columns

    @property
    def widest(self) -> int:
        """Maximum number of features of an encoded row."""
        return prod(self.shape)

    def __len__(self) -> int:
        return len(self.ranges)

    def digest(self, file: str) -> str:
        """Return a hash of all bytes of a file."""
        return digest(file)

    def survey(self, start: int, stop: int, rows: Int[np.ndarray, " r"]) -> Survey:
        """Compute statistics of a range in one pass, and keep the sorted `rows` that are in it."""
        rows = self.ranges.sorted(rows, self.name)
        parts = (
            self.layout.survey(first, x, rows)
            for first, x in self.raw(start, stop, step_of(prod(self.shape)), ())
        )
        if start == stop:
            return self.layout.survey(start, np.empty((0, *self.shape), self.layout.dtype), rows)
        return in_pairs(parts, Survey.merge)

    def fitted(self, survey: Survey) -> Fitted:
        """Return the pool with the scaling of a survey of all rows."""
        self.ranges.check_whole(survey.start, survey.stop, self.name)
        code = self.layout.learn(survey)
        return Fitted(self, code, survey.sample, (*self.remarks, *code.notes))

    def cells(self, column: str, rows: Int[np.ndarray, " r"]) -> list[object]:
        """Return the values of one column in a few rows, in the given order."""
        at = self._place(column)
        return list(self.raw_at(rows, ())[:, at].tolist())

    def numbers(self, column: str, start: int, stop: int) -> Float[np.ndarray, " n"]:
        """Return one column of a range as float64; every cell must be a number."""
        at = self._place(column)
        values = np.empty(stop - start)
        for first, x in self.raw(start, stop, BLOCK, ()):
            values[first - start : first - start + len(x)] = x[:, at]
        return all_finite(self.name, column, values, start)

    def raw(
        self, start: int, stop: int, size: int, columns: Sequence[str]
    ) -> Iterator[tuple[int, Shaped[np.ndarray, " b *d"]]]:
        """Yield the rows of a range as stored, with all columns, cut at the multiples of `size`."""
        self.ranges.check_range(start, stop, self.name)
        while start < stop:
            end = min(stop, (start // size + 1) * size)
            parts = [self._read(*part) for part in self.ranges.parts(start, end)]
            yield start, parts[0] if len(parts) == 1 else np.concatenate(parts)
            start = end

    def raw_at(
        self, rows: Int[np.ndarray, " r"], columns: Sequence[str]
    ) -> Shaped[np.ndarray, " r *d"]:
        """Return a few rows as stored, with all columns, in the given order."""
        self.ranges.check_rows(rows, self.name)
        distinct, order = np.unique(rows, return_inverse=True)
        parts = [np.empty((0, *self.shape), self.layout.dtype)]
        for file, local in self.ranges.groups(distinct):
            runs = np.split(local, np.flatnonzero(np.diff(local) > 1) + 1)
            parts += [self._read(file, int(run[0]), int(run[-1]) + 1) for run in runs]
        return np.concatenate(parts)[order]

    def _read(self, file: int, start: int, stop: int) -> Shaped[np.ndarray, " n *d"]:
        path, shape = self.files[file], (self.ranges.counts[file], *(self.stored or self.shape))
        with opened(path) as stream:
            header = npy_header(stream, path, empty=True)
            if (header.shape, header.dtype) != (shape, self.layout.dtype):
                raise WrongFormat.of(DatasetError)(
                    str(path),
                    f"{_described(shape, self.layout.dtype)}, as when the pool was opened",
                    str(_described(header.shape, header.dtype)),
                    "do not change the files while they are read, and run again",
                )
            if header.columns_first:
                part = _across(path, header, stream.tell(), start, stop)
                return part.reshape(stop - start, *self.shape)
            row = prod(self.shape) * header.dtype.itemsize
            stream.seek(start * row, 1)
            data = stream.read((stop - start) * row)
        if len(data) < (stop - start) * row:
            raise UnreadableFile.of(DatasetError)(
                str(path), "ended early, it was cut short", "save it again"
            )
        return np.frombuffer(data, header.dtype).reshape(stop - start, *self.shape)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: at for at, name in enumerate(self.layout.columns)}

    def _place(self, column: str) -> int:
        if column not in self._places:
            raise MissingColumn(self.name, column, tuple(self.layout.columns or ()))
        return self._places[column]


def _across(
    path: str, header: NpyHeader, offset: int, start: int, stop: int
) -> Shaped[np.ndarray, " n *d"]:
    """Read rows of an array that is stored column by column, by mapping its file."""
    mapped = np.memmap(path, header.dtype, "r", offset, header.shape, order="F")
    return np.array(mapped[start:stop], order="C")


def _described(shape: tuple[int, ...], dtype: np.dtype) -> str:
    return f"{'x'.join(map(str, shape))} numbers of {dtype}"


def open_arrays(pool_files: PoolFiles, left_out: Sequence[str], scale: str | None) -> StreamedArray:
    """Open the pool in these files, reading only their headers."""
    headers = []
    for path in pool_files.files:
        with opened(path) as stream:
            headers.append(npy_header(stream, path, empty=True))
        header, first = headers[-1], headers[0]
        if (header.shape[1:], header.dtype) != (first.shape[1:], first.dtype):
            rest = ("rows", *first.shape[1:])
            raise WrongFormat.of(DatasetError)(
                str(path),
                f"{'x'.join(map(str, rest))} numbers of {first.dtype}, as in {pool_files.files[0]}",
                str(_described(header.shape, header.dtype)),
                "save all files alike",
            )
    ranges = Ranges(tuple(header.shape[0] for header in headers))
    if not len(ranges):
        raise EmptyFile(pool_files.name, "rows of data", "none")
    shape, dtype = headers[0].shape[1:], headers[0].dtype
    if len(shape) == 1:
        check_columns(shape[0], pool_files.name)
    layout = ArrayLayout(pool_files.name, len(ranges), shape, dtype, tuple(left_out), scale)
    pool = StreamedArray(layout, pool_files.files, ranges, pool_files.remarks)
    for name in left_out:
        pool._place(name)
    if not len(layout.used):
        raise none_left(pool_files.name, len(left_out))
    return pool


_AT_LEAST = 64


@dataclass(frozen=True, repr=False)
class StreamedTable:
    """Rows of Parquet or Arrow files that have the same columns."""

    layout: TableLayout
    files: tuple[str, ...]
    ranges: Ranges
    remarks: tuple[str, ...] = ()
    in_files: ClassVar[bool] = True
    by_name: ClassVar[bool] = True

    def __repr__(self) -> str:
        of = f"{len(self.layout.used)} columns"
        return f"StreamedTable({self.name}: {len(self):,} rows of {of} in {_count(self.files)})"

    @property
    def name(self) -> str:
        """Name of the pool in messages."""
        return self.layout.source

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of a row before it is encoded."""
        return (len(self.layout.used),)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns."""
        return tuple(self.layout.schema.names)

    @property
    def widest(self) -> int:
        """Maximum number of features of an encoded row."""
        layout = self.layout
        times = sum(is_time(layout.schema.field(name).type) for name in layout.numeric)
        words = len(layout.used) - len(layout.numeric)
        return len(layout.members) + 2 * len(CYCLES) * times + words * layout.max_categories

    def __len__(self) -> int:
        return len(self.ranges)

    def digest(self, file: str) -> str:
        """Return a hash of all bytes of a file."""
        return digest(file)

    def survey(self, start: int, stop: int, rows: Int[np.ndarray, " r"]) -> Survey:
        """Compute statistics of a range in one pass, and keep the sorted `rows` that are in it."""
        rows = self.ranges.sorted(rows, self.name)
        used = self.layout.used
        parts = (
            self.layout.survey(first, table, rows)
            for first, table in self.raw(start, stop, step_of(self.layout.width), used)
        )
        if start == stop:
            return self.layout.survey(start, self._fields(used).empty_table(), rows)
        return in_pairs(parts, Survey.merge)

    def fitted(self, survey: Survey) -> Fitted:
        """Return the pool with the scaling and categories of a survey of all rows."""
        self.ranges.check_whole(survey.start, survey.stop, self.name)
        encoder = self.layout.learn(survey)
        return Fitted(self, encoder, survey.sample, (*self.remarks, *encoder.notes))

    def cells(self, column: str, rows: Int[np.ndarray, " r"]) -> list[object]:
        """Return the values of one column in a few rows, in the given order."""
        return list(plain(self.raw_at(rows, [column]).column(column)).to_pylist())

    def numbers(self, column: str, start: int, stop: int) -> Float[np.ndarray, " n"]:
        """Return one column of a range as float64; every cell must be a number."""
        none = self._fields([column]).empty_table()
        parts = [checked_numbers(self.name, column, none.column(column))]
        for first, table in self.raw(start, stop, 16 * BLOCK, [column]):
            parts.append(checked_numbers(self.name, column, table.column(column), first))
        return np.concatenate(parts)

    def raw(
        self, start: int, stop: int, size: int, columns: Sequence[str]
    ) -> Iterator[tuple[int, pa.Table]]:
        """Yield the rows of a range as stored, cut at the multiples of `size`."""
        self.ranges.check_range(start, stop, self.name)
        batches: list[pa.RecordBatch] = []
        first = at = start
        for piece in self._pieces(start, stop, size, self._fields(columns)):
            batch = piece
            while batch.num_rows:
                full = (at // size + 1) * size
                batches.append(batch.slice(0, full - at))
                at += batches[-1].num_rows
                batch = batch.slice(batches[-1].num_rows)
                if at == full:
                    yield first, pa.Table.from_batches(batches)
                    batches, first = [], at
        if batches:
            yield first, pa.Table.from_batches(batches)

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
        """Return a few rows as stored, in the given order."""
        self.ranges.check_rows(rows, self.name)
        fields = self._fields(columns)
        distinct, order = np.unique(rows, return_inverse=True)
        parts = [fields.empty_table()]
        for file, local in self.ranges.groups(distinct):
            path, count = self.files[file], self.ranges.counts[file]
            for first, batch in pieces(path, count, fields, BLOCK, among(local)):
                inside = slice(*np.searchsorted(local, [first, first + batch.num_rows]))
                parts.append(pa.Table.from_batches([batch]).take(local[inside] - first))
        return pa.concat_tables(parts).take(order)

    def _fields(self, columns: Sequence[str]) -> pa.Schema:
        schema = self.layout.schema
        for name in columns:
            if place_of(schema, name) < 0:
                raise MissingColumn(self.name, name, tuple(schema.names))
        return pa.schema([pa.field(name, schema.field(name).type) for name in columns])


def open_tables(
    pool_files: PoolFiles,
    left_out: Sequence[str],
    max_categories: int,
    scale: str | None,
    impute: bool,
    *,
    column: str | None = None,
    like: Collection[str] | None = None,
    schema: pa.Schema | None = None,
) -> StreamedTable:
    """Open the pool in these files, reading their metadata, and one list of a column of lists.

    Of all columns only `column` is used if it is given. If the pool is `like` another one with
    these columns, other columns of lists are left out. `schema` takes the place of the files' own.
    """
    own, ranges = _look_at(pool_files)
    schema = own if schema is None else schema
    if like is None:
        named = [*left_out]
        left_out = [*named, *chosen(schema, column, named, pool_files.name)]
    else:
        lists = [field.name for field in schema if is_vector(field.type)]
        left_out = [*left_out, *(name for name in lists if name not in like)]
    out = tuple(dict.fromkeys(left_out))
    layout = TableLayout(pool_files.name, len(ranges), schema, out, max_categories, scale, impute)
    pool = StreamedTable(layout, pool_files.files, ranges, pool_files.remarks)
    pool._fields(out)
    for name in layout.used:
        usable(pool_files.name, name, schema.field(name).type)
    if not layout.used:
        raise none_left(pool_files.name, len(out))
    for file in pool_files.files:
        check_room(file, layout.used)
    kinds = {name: schema.field(name).type for name in layout.used}
    lengths = {name: _length(pool, name) for name, kind in kinds.items() if is_vector(kind)}
    return replace(pool, layout=layout.with_lengths(lengths))


def as_given(pool: Streamed, rows: Int[np.ndarray, " r"]) -> Any:
    """Return all columns of a few rows as they are in the files, in the given order."""
    pool = getattr(pool, "given", pool)  # of a pool whose texts are read as vectors
    return pool.raw_at(rows, pool.columns)


def open_as_is(where: str | Path) -> Streamed:
    """Open a pool in files to show some of its rows, whether or not its columns can be features."""
    files = find(where)
    if files.kind == NPY:
        return open_arrays(files, (), None)
    schema, ranges = _look_at(files)
    layout = TableLayout(files.name, len(ranges), schema)
    return StreamedTable(layout, files.files, ranges, files.remarks)


def _look_at(pool_files: PoolFiles) -> tuple[pa.Schema, Ranges]:
    """Read the columns, and the number of rows, of files that must have the same columns."""
    counts, schema = [], pa.schema([])
    for number, file in enumerate(pool_files.files):
        count, here = look(file)
        if number == 0 or not here.equals(schema):
            check_names(here.names, file)
            schema = schema if number else here
            _check_same(file, here, pool_files.files[0], schema)
        counts.append(count)
    ranges = Ranges(tuple(counts))
    if not len(ranges):
        raise EmptyFile(pool_files.name, "rows of data", "column names only")
    return schema, ranges


def _length(pool: StreamedTable, name: str) -> int:
    """Return the length of the lists of a column: that of the first one that is not empty."""
    kind = pool.layout.schema.field(name).type
    none = pa.chunked_array([], kind)
    parts = (table.column(name) for _, table in pool.raw(0, len(pool), _AT_LEAST, [name]))
    lengths = (length_of(cells) for cells in chain([none], parts))
    if (length := next((length for length in lengths if length), None)) is None:
        raise empty(pool.name, name)
    return length


def _check_same(file: str, here: pa.Schema, first: str, schema: pa.Schema) -> None:
    mine = dict(zip(here.names, here.types, strict=True))
    theirs = dict(zip(schema.names, schema.types, strict=True))
    for name in {**theirs, **mine}:
        if mine.get(name) != theirs.get(name):
            raise WrongFormat.of(DatasetError)(
                str(file),
                f"column {name!r} of {theirs.get(name, 'none')}, as in {first}",
                str(mine.get(name, "none")),
                "write all files with the same columns and types",
            )


def open_pool(
    where: str | Path | Sequence[str | Path],
    *,
    id: str | None = None,
    column: str | None = None,
    drop: Sequence[str] = (),
    costs: str | None = None,
    impute: bool = False,
    max_categories: int = MAX_CATEGORIES,
    scale: str | None = "auto",
    standardise: bool | None = None,
) -> Streamed:
    """Open a pool in Parquet, Arrow or npy files that is too large for memory.

    Only metadata is read, and one list of a column of lists; `evgp.pick` reads the rows in blocks.

    Parameters
    ----------
    where : str, Path, or sequence of them
        A file, a folder, a list of files, or an fsspec URL of Parquet files.
    column : str, optional
        The only column to use as features, such as one of embeddings.
    id, drop, costs : str, list of str, str
        Columns that are not features: names of the rows, columns to leave out, costs of labels.
    impute, max_categories, scale
        As in `evgp.pick`: how columns become numbers.
    standardise : bool, optional
        The former name: True is scale="columns", False is scale=None.

    Returns
    -------
    Streamed
        The pool, for `evgp.pick` and `evgp.plan`.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.save(folder / "a.npy", np.array([[1.0, 5.0], [3.0, 9.0]]))
    >>> np.save(folder / "b.npy", np.array([[3.0, 5.0], [1.0, 9.0]]))
    >>> pool = open_pool(folder, scale="columns")
    >>> len(pool), pool.shape
    (4, (2,))
    >>> fitted = pool.fitted(pool.survey(0, 4, rows=np.array([0, 3])))
    >>> fitted.sample
    array([[-1., -1.],
           [-1.,  1.]])
    >>> [(first, len(x)) for first, x in fitted.blocks(1, 4, size=2)]
    [(1, 1), (2, 2)]
    """
    files = find(where)
    for name, value in (("id", id), ("column", column), ("costs", costs)):
        if value is not None:
            word(value, name, error=DatasetError)
    drop = words(drop, "drop", error=DatasetError)
    flag(impute, "impute", error=DatasetError)
    scale = scale_of(scale, standardise, error=DatasetError)
    max_categories = integer(max_categories, "max_categories", 1, error=DatasetError)
    named = [name for name in (id, *drop, costs) if name is not None]
    left_out = tuple(dict.fromkeys(named))
    pool: Streamed
    if files.kind == NPY:
        if impute:
            raise DatasetError(f"{files.name}: impute is for tables, got an array; fill it in")
        if column is not None:
            raise DatasetError(f"{files.name}: column= is for tables, got an array; leave it out")
        pool = open_arrays(files, left_out, scale)
    else:
        pool = open_tables(files, left_out, max_categories, scale, impute, column=column)
    if costs is not None:
        pool.numbers(costs, 0, 0)  # refuses a text column before anything is read
    return pool


def open_like(where: str | Path, pool: Streamed, **options: Any) -> Streamed:
    """Open other rows, such as test points, of a pool in files; extra columns do no harm."""
    files = find(where)
    if files.kind == NPY or not can(pool, "by_name"):
        return open_pool(where, **options)
    most, scale, impute = (options[name] for name in ("max_categories", "scale", "impute"))
    return open_tables(files, (), most, scale, impute, like=cast(StreamedTable, pool).layout.used)
