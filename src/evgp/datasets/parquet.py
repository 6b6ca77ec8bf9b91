"""Read Parquet and Arrow files into memory, after checking that they fit."""

import io
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from evgp._reading import check_bomb, check_memory, check_plain, opened, read_bytes, room
from evgp.datasets.arrays import check_columns
from evgp.datasets.columns import is_number
from evgp.datasets.sizes import ParquetSize, decoded, unpacked
from evgp.errors import DatasetError, WrongFormat


def native(path: str | Path) -> pa.OSFile:
    """Open a file for reading, whatever bytes its name has.

    If the name is a string, pyarrow refuses names that are not UTF-8 and expands `~`; if it is
    bytes, pyarrow uses them unchanged.
    """
    return pa.OSFile(os.fsencode(path))


def native_map(path: str | Path) -> pa.MemoryMappedFile:
    """Map a file into memory."""
    return pa.memory_map(os.fsencode(path))


# Rows decoded at once if text must be measured first, and maximum bytes of text in one array.
_ROWS, _TEXT_BYTES = 1 << 16, 1 << 30
# Sparse columns compress far better than dense arrays, so the limit for bombs is higher here.
_BOMB_BYTES = 1 << 28


def read_parquet(path: Path) -> pa.Table:
    """Read all columns; refuse files that would not fit in memory, and decompression bombs."""
    size = check_plain(path)
    with pq.ParquetFile(native(path), page_checksum_verification=True) as file:
        check_columns(file.metadata.num_columns, str(path))
        with opened(path) as stream:
            known = decoded(stream, file)
        fit(known.sure + known.pages, size, path)
        if known.words <= min(room() - known.sure - known.pages, _BOMB_BYTES):
            return _without_views(file.read())
        return _without_views(_counted(path, file, size, known))


def parquet_rows(path: Path) -> int:
    """Return the number of rows in the footer; -1 if its two counts disagree."""
    known = pq.read_metadata(native(path))
    groups = sum(known.row_group(i).num_rows for i in range(known.num_row_groups))
    return int(known.num_rows) if known.num_rows == groups else -1


def _counted(path: Path, plain: pq.ParquetFile, size: int, known: ParquetSize) -> pa.Table:
    """Read a table whose text may not fit: as dictionaries first, which are small."""
    schema, leaves = plain.schema_arrow, plain.schema
    whole = [field.name for field in schema if not pa.types.is_dictionary(field.type)]
    text = [leaves.column(at) for at in range(len(leaves))]
    names = [leaf.path for leaf in text if leaf.physical_type == "BYTE_ARRAY"]
    parts, need = [], known.sure + known.pages
    with pq.ParquetFile(
        native(path), read_dictionary=names, page_checksum_verification=True
    ) as file:
        # Each part has its own dictionary, so parts must not be small if dictionaries are large.
        # Parts end at row groups, because pyarrow cannot join dictionaries inside lists.
        rows = max(_ROWS, known.pages // 4)
        for group in range(file.num_row_groups):
            for part in file.iter_batches(rows, row_groups=[group], use_threads=False):
                need += sum(text_bytes(part.column(name)) for name in whole)
                fit(need, size, path)
                parts += [piece.cast(schema) for piece in _pieces(part, whole)]
    return pa.Table.from_batches(parts, schema)


def _pieces(part: pa.RecordBatch, text: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Split a batch until the text of each column fits the 32-bit offsets of an array."""
    if len(part) > 1 and any(text_bytes(part.column(name)) > _TEXT_BYTES for name in text):
        half = len(part) // 2
        yield from _pieces(part.slice(0, half), text)
        yield from _pieces(part.slice(half), text)
    else:
        yield part


def text_bytes(cells: pa.Array) -> int:
    """Return the bytes of text once dictionaries are expanded; other types count as 0.

    >>> text_bytes(pa.array(["abc", "de", "abc", None]).dictionary_encode())
    8
    """
    kind = cells.type
    if pa.types.is_dictionary(kind):
        if not (pa.types.is_string(kind.value_type) or pa.types.is_binary(kind.value_type)):
            return 0
        sizes = pc.binary_length(cells.dictionary).take(cells.indices)
        return int(pc.sum(sizes.cast(pa.int64())).as_py() or 0)
    if pa.types.is_struct(kind):
        return sum(text_bytes(part) for part in cells.flatten())
    if pa.types.is_map(kind):
        return text_bytes(cells.keys) + text_bytes(cells.items)
    return text_bytes(cells.flatten()) if pa.types.is_nested(kind) else 0


def read_arrow(path: Path) -> pa.Table:
    """Read all columns of an Arrow file or stream."""
    data = read_bytes(path)
    if data.startswith(b"FEA1"):
        # pyarrow does not validate such files: a damaged one crashes the process.
        raise WrongFormat.of(DatasetError)(
            str(path),
            "an Arrow file",
            "a Feather file of version 1, which is no longer supported",
            "save it again, for example with pandas.read_feather(path).to_feather(path)",
        )
    known = unpacked(io.BytesIO(data))
    start = pa.ipc.open_file if data.startswith(b"ARROW1") else pa.ipc.open_stream
    with start(pa.BufferReader(data)) as reader:
        count = len(reader.schema)
        check_columns(count, str(path))
        fit(known.total + 8 * known.rows * count, len(data), path)
        table = reader.read_all()
    # Offsets in the file may be wrong too.
    table.validate(full=True)
    return _without_views(table)


def categorical(schema: pa.Schema) -> set[str]:
    """Return the columns that pandas wrote as categories; Parquet itself stores their numbers."""
    try:
        columns = json.loads((schema.metadata or {})[b"pandas"])["columns"]
        return {column["name"] for column in columns if column["pandas_type"] == "categorical"}
    except (KeyError, TypeError, ValueError):  # not written by pandas
        return set()


def _without_views(table: pa.Table) -> pa.Table:
    """Convert string views, of which pyarrow supports little, and categories to dictionaries."""
    categories = categorical(table.schema)
    for at, field in enumerate(table.schema):
        if field.name in categories and is_number(field.type):
            table = table.set_column(at, field.name, table.column(at).dictionary_encode())
        elif pa.types.is_string_view(field.type):
            column = pa.chunked_array(
                [to_dictionary(chunk) for chunk in table.column(at).chunks],
                pa.dictionary(pa.int32(), pa.string()),
            )
            table = table.set_column(at, field.name, column)
    return table


def to_dictionary(views: pa.Array) -> pa.Array:
    """Convert string views to a dictionary of strings.

    >>> to_dictionary(pa.array(["a", "b", "a"], pa.string_view())).to_pylist()
    ['a', 'b', 'a']
    """
    encoded = views.dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices, encoded.dictionary.cast(pa.string()))


def fit(need: int, held: int, path: str | Path) -> None:
    """Refuse data that do not fit in memory, and decompression bombs."""
    check_bomb(need, held, str(path), _BOMB_BYTES)
    check_memory(need, str(path))
