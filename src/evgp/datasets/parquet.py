"""Parquet and Arrow files as tables in memory, read only once it is known that they fit."""

import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from evgp._errors import DatasetError
from evgp._reading import check_bomb, check_memory, check_plain, opened, read_bytes, room
from evgp.datasets.arrays import check_columns
from evgp.datasets.sizes import ParquetSize, decoded, unpacked


def native(path: str | Path) -> pa.OSFile:
    """A file, open to be read, whatever bytes its name is made of.

    Given a name as text, pyarrow refuses one that is not UTF-8, and looks for a home directory
    behind a `~`; given the bytes of a name, it takes them as they are.
    """
    return pa.OSFile(os.fsencode(path))


def native_map(path: str | Path) -> pa.MemoryMappedFile:
    """A file, mapped into memory."""
    return pa.memory_map(os.fsencode(path))


# Rows decoded together where words must be counted first, and letters of a column in one array.
_ROWS, _LETTERS = 1 << 16, 1 << 30
# Sparse columns pack far better than any dense array, so smaller tables pass for real data.
_BOMB_BYTES = 1 << 28


def read_parquet(path: Path) -> pa.Table:
    """All columns; refused where they would not fit, or are more than real data could be."""
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
    """How many rows the footer counts, which it does twice; -1 where it contradicts itself."""
    known = pq.read_metadata(native(path))
    groups = sum(known.row_group(i).num_rows for i in range(known.num_row_groups))
    return int(known.num_rows) if known.num_rows == groups else -1


def _counted(path: Path, plain: pq.ParquetFile, size: int, known: ParquetSize) -> pa.Table:
    """A table whose words might not fit, read as numbers of words first: these are small."""
    schema, leaves = plain.schema_arrow, plain.schema
    whole = [field.name for field in schema if not pa.types.is_dictionary(field.type)]
    text = [leaves.column(at) for at in range(len(leaves))]
    names = [leaf.path for leaf in text if leaf.physical_type == "BYTE_ARRAY"]
    parts, need = [], known.sure + known.pages
    with pq.ParquetFile(
        native(path), read_dictionary=names, page_checksum_verification=True
    ) as file:
        # Each part has a dictionary of its own, so parts must not be small where these are large.
        # Nor do they pass the end of a row group, as dictionaries in lists could not.
        rows = max(_ROWS, known.pages // 4)
        for group in range(file.num_row_groups):
            for part in file.iter_batches(rows, row_groups=[group], use_threads=False):
                need += sum(letters(part.column(name)) for name in whole)
                fit(need, size, path)
                parts += [piece.cast(schema) for piece in _pieces(part, whole)]
    return pa.Table.from_batches(parts, schema)


def _pieces(part: pa.RecordBatch, text: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Parts of a batch, so small that 32 bits count the letters of each column."""
    if len(part) > 1 and any(letters(part.column(name)) > _LETTERS for name in text):
        half = len(part) // 2
        yield from _pieces(part.slice(0, half), text)
        yield from _pieces(part.slice(half), text)
    else:
        yield part


def letters(cells: pa.Array) -> int:
    """Bytes that words take once they are written out; those of other kinds count for nothing.

    >>> letters(pa.array(["abc", "de", "abc", None]).dictionary_encode())
    8
    """
    kind = cells.type
    if pa.types.is_dictionary(kind):
        if not (pa.types.is_string(kind.value_type) or pa.types.is_binary(kind.value_type)):
            return 0
        sizes = pc.binary_length(cells.dictionary).take(cells.indices)
        return int(pc.sum(sizes.cast(pa.int64())).as_py() or 0)
    if pa.types.is_struct(kind):
        return sum(letters(part) for part in cells.flatten())
    if pa.types.is_map(kind):
        return letters(cells.keys) + letters(cells.items)
    return letters(cells.flatten()) if pa.types.is_nested(kind) else 0


def read_arrow(path: Path) -> pa.Table:
    """All columns of an Arrow file or stream."""
    data = read_bytes(path)
    if data.startswith(b"FEA1"):
        # pyarrow does not check what such a file says of itself: a damaged one ends the process.
        raise DatasetError(
            f"{path}: expected an Arrow file, got a Feather file of version 1, which is not read "
            "any more; save it again, as by pandas.read_feather(path).to_feather(path)"
        )
    known = unpacked(io.BytesIO(data))
    start = pa.ipc.open_file if data.startswith(b"ARROW1") else pa.ipc.open_stream
    with start(pa.BufferReader(data)) as reader:
        count = len(reader.schema)
        check_columns(count, str(path))
        fit(known.total + 8 * known.rows * count, len(data), path)
        table = reader.read_all()
    # Offsets in the file are claims too.
    table.validate(full=True)
    return _without_views(table)


def _without_views(table: pa.Table) -> pa.Table:
    """Columns of views of text as dictionaries: pyarrow cannot do much with views."""
    for at, field in enumerate(table.schema):
        if pa.types.is_string_view(field.type):
            words = pa.chunked_array(
                [by_word(chunk) for chunk in table.column(at).chunks],
                pa.dictionary(pa.int32(), pa.string()),
            )
            table = table.set_column(at, field.name, words)
    return table


def by_word(views: pa.Array) -> pa.Array:
    """Views of text as a dictionary of strings.

    >>> by_word(pa.array(["a", "b", "a"], pa.string_view())).to_pylist()
    ['a', 'b', 'a']
    """
    words = views.dictionary_encode()
    return pa.DictionaryArray.from_arrays(words.indices, words.dictionary.cast(pa.string()))


def fit(need: int, held: int, path: str | Path) -> None:
    """Refuse what does not fit in memory, or unpacks to more than real data do."""
    check_bomb(need, held, str(path), _BOMB_BYTES)
    check_memory(need, str(path))
