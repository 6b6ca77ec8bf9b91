"""Rows of Parquet and Arrow files, a few thousand at a time."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from jaxtyping import Int

from evgp._errors import DatasetError
from evgp._reading import check_memory, check_plain, read_bytes
from evgp._reading import opened as plain_file
from evgp.datasets import _messages, _pages
from evgp.datasets._columnar import by_word, letters
from evgp.datasets._found import PARQUET, is_address, kind_of, opened, readable
from evgp.datasets._native import native, native_map
from evgp.datasets.arrays import check_columns

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
            known = _messages.unpacked(stream)
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
        pages = _pages.decoded(stream, parquet, columns).pages
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
