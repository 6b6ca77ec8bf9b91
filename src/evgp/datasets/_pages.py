"""What a Parquet file takes once it is decoded, from the headers of its pages.

The footer of a file is only a claim, and a few bytes may stand for millions of values: a page of
one repeated number, or of references to one long word. So the header of every page is looked at
before any page is unpacked. It says how large the page is once unpacked, which the reader checks,
and how many values it holds. O(pages) time; nothing is decoded.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BufferedIOBase

import pyarrow as pa
import pyarrow.parquet as pq

from evgp._linalg import BLOCK

# Encodings whose values are numbers of words in a dictionary.
_BY_WORD = (2, 8)
_DATA, _DICTIONARY, _DATA_2 = 0, 2, 3
# Headers are read in pieces of so many bytes; statistics make a few longer.
_HEAD, _MOST_HEAD = 1 << 10, 1 << 22
_DEEPEST = 32


@dataclass(frozen=True)
class Decoded:
    """Bytes that the columns of a file take in memory.

    `sure` leaves out what repeated words add; that is at most `words`. `pages` is what must be held
    to decode all columns side by side, a block of rows at a time: of each the largest page, its
    dictionary, and the text of a block that is not in the dictionary.
    """

    sure: int
    words: int
    pages: int


def decoded(
    stream: BufferedIOBase, parquet: pq.ParquetFile, columns: Collection[str] | None = None
) -> Decoded:
    """Look at the headers of all pages of an open file, or of those of some columns."""
    metadata, schema = parquet.metadata, parquet.schema
    kept = {field.name for field in parquet.schema_arrow if pa.types.is_dictionary(field.type)}
    sure = words = pages = 0
    for at in range(metadata.num_columns):
        leaf = schema.column(at)
        if columns is not None and leaf.path not in columns:
            continue
        text = leaf.physical_type == "BYTE_ARRAY"
        largest = 0
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            chunk = _chunk(stream, group.column(at))
            # A flat column has a place for each row, whatever its pages say.
            count = max(chunk.values, 0 if leaf.max_repetition_level else group.num_rows)
            sure += count * _width(leaf) + chunk.words + (chunk.data if text else 0)
            words += chunk.by_word * chunk.words if text and leaf.path not in kept else 0
            largest = max(largest, chunk.words + (chunk.block if text else chunk.largest))
        pages += largest
    return Decoded(sure, words, pages)


def _width(leaf: pq.ColumnSchema) -> int:
    """Bytes of a value in memory, without the letters of text."""
    if str(leaf.logical_type).startswith("Decimal"):
        return 16
    return max(8, leaf.length or 0)


@dataclass(frozen=True)
class _Chunk:
    """Values of a column in a row group, those that refer to a word, and bytes of its pages.

    `block` are the bytes of the pages that a block of rows may lie in.
    """

    values: int
    by_word: int
    data: int
    words: int
    largest: int
    block: int


def _chunk(stream: BufferedIOBase, column: pq.ColumnChunkMetaData) -> _Chunk:
    start, first = column.data_page_offset, column.dictionary_page_offset
    if first is not None and 0 < first < start:
        start = first
    values = by_word = words = 0
    pages: list[tuple[int, int]] = []
    for kind, size, count, encoding in _pages(stream, start, column):
        if kind == _DICTIONARY:
            words += size
        else:
            values += count
            pages.append((size, count))
            by_word += count if encoding in _BY_WORD else 0
        if values >= column.num_values:
            break
    sizes = [size for size, _ in pages]
    return _Chunk(values, by_word, sum(sizes), words, max(sizes, default=0), _block(pages))


def _block(pages: Sequence[tuple[int, int]]) -> int:
    """The most bytes of pages that a block of values reaches into.

    >>> _block([(10, 3000), (20, 3000), (30, 3000), (1, 9000)])
    60
    """
    most = size = inside = first = 0
    for last, (bytes_here, count) in enumerate(pages):
        size, inside = size + bytes_here, inside + count
        # Of the first page one value at least, so all between the ends are less than a block.
        while first < last and inside - pages[first][1] - count > BLOCK - 2:
            size, inside, first = size - pages[first][0], inside - pages[first][1], first + 1
        most = max(most, size)
    return most


def _pages(
    stream: BufferedIOBase, start: int, column: pq.ColumnChunkMetaData
) -> Iterator[tuple[int, int, int, int]]:
    """Kind, unpacked size, count of values and encoding of each page of a chunk."""
    at, stop = start, start + column.total_compressed_size
    while at < stop and column.num_values:
        header, length = _header(stream, at)
        kind, size, packed = (_whole(header, field) for field in (1, 2, 3))
        inner = header.get({_DATA: 5, _DICTIONARY: 7, _DATA_2: 8}.get(kind, 0))
        count = encoding = 0
        if isinstance(inner, dict):
            count, encoding = _whole(inner, 1), _whole(inner, 4 if kind == _DATA_2 else 2)
        yield kind, size, count, encoding
        at += length + packed


def _whole(header: Mapping[int, object], field: int) -> int:
    value = header.get(field)
    if not isinstance(value, int) or value < 0:
        raise pa.ArrowInvalid("a page without a size or count")
    return value


def _header(stream: BufferedIOBase, at: int) -> tuple[dict[int, object], int]:
    """The fields of a page's header, and how many bytes it takes."""
    length = _HEAD
    while True:
        stream.seek(at)
        data = stream.read(length)
        try:
            reader = _Thrift(data)
            return reader.struct(), reader.at
        except IndexError:
            if len(data) < length or length >= _MOST_HEAD:
                raise pa.ArrowInvalid("a header that does not end") from None
            length *= 16


class _Thrift:
    """Structures in the compact protocol of Thrift, as far as headers of pages need it."""

    def __init__(self, data: bytes) -> None:
        self._data, self.at = data, 0

    def struct(self, depth: int = 0) -> dict[int, object]:
        """Whole numbers and structures by their field; other values are None."""
        if depth > _DEEPEST:
            raise pa.ArrowInvalid("a header that is too deep")
        found: dict[int, object] = {}
        field = 0
        while (head := self._byte()) != 0:
            field = field + (head >> 4) if head >> 4 else self._signed()
            found[field] = self._value(head & 15, depth)
        return found

    def _value(self, kind: int, depth: int) -> object:
        if kind in (1, 2):  # true and false have no bytes of their own
            return None
        if kind in (4, 5, 6):
            return self._signed()
        if kind == 8:
            self._skip(self._unsigned())
        elif kind in (9, 10):
            head = self._byte()
            count = head >> 4 if head >> 4 < 15 else self._unsigned()
            self._elements(count, [head & 15], depth)
        elif kind == 11:
            count = self._unsigned()
            kinds = self._byte() if count else 0
            self._elements(count, [kinds >> 4, kinds & 15], depth)
        elif kind == 12:
            return self.struct(depth + 1)
        elif kind in (3, 7, 13):
            self._skip({3: 1, 7: 8, 13: 16}[kind])
        else:
            raise pa.ArrowInvalid("a header of another kind")
        return None

    def _elements(self, count: int, kinds: list[int], depth: int) -> None:
        if depth > _DEEPEST:
            raise pa.ArrowInvalid("a header that is too deep")
        for _ in range(count):
            for kind in kinds:
                # In a list, unlike in a structure, a truth value takes a byte.
                if kind in (1, 2):
                    self._skip(1)
                else:
                    self._value(kind, depth + 1)

    def _byte(self) -> int:
        self.at += 1
        return self._data[self.at - 1]

    def _skip(self, count: int) -> None:
        if self.at + count > len(self._data):
            raise IndexError
        self.at += count

    def _unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise pa.ArrowInvalid("a number without an end")

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)
