"""What Parquet and Arrow files take once they are read, from their headers.

The footer of a Parquet file is only a claim, and a few bytes may stand for millions of values: a
page of one repeated number, or of references to one long word. So the header of every page is
looked at before any page is unpacked. A compressed buffer of an Arrow file says in its first eight
bytes how long it will be, and a batch of empty columns may claim any number of rows; both are read
before pyarrow allocates what they say. O(pages + buffers) time; nothing is unpacked.
"""

import struct
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
class ParquetSize:
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
) -> ParquetSize:
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
    return ParquetSize(sure, words, pages)


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
    for kind, size, count, encoding in _headers(stream, start, column):
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


def _headers(
    stream: BufferedIOBase, start: int, column: pq.ColumnChunkMetaData
) -> Iterator[tuple[int, int, int, int]]:
    """Kind, unpacked size, count of values and encoding of each page of a chunk."""
    at, stop = start, start + column.total_compressed_size
    while at < stop and column.num_values:
        header, length = _page(stream, at)
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


def _page(stream: BufferedIOBase, at: int) -> tuple[dict[int, object], int]:
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


_MAGIC = b"ARROW1"
_CONTINUED = 0xFFFFFFFF
_WORDS, _RECORDS = 2, 3
_BUFFER, _BLOCK = 16, 24
# A header lists the buffers of all columns of a batch.
_MOST_HEADER = 1 << 28


@dataclass(frozen=True)
class ArrowSize:
    """Rows of all batches, bytes of their buffers, and the most that one message unpacks to."""

    rows: int
    total: int
    largest: int


def unpacked(stream: BufferedIOBase) -> ArrowSize:
    """Look at the messages of an open Arrow file or stream."""
    stream.seek(0)
    messages = _filed(stream) if stream.read(len(_MAGIC)) == _MAGIC else _in_order(stream)
    rows = total = largest = 0
    try:
        for at, length in messages:
            count, size, packed = _message(stream, at, length)
            rows, total, largest = rows + count, total + size, max(largest, packed)
    except (struct.error, OverflowError) as error:
        raise pa.ArrowInvalid("a damaged message") from error
    return ArrowSize(rows, total, largest)


def _filed(stream: BufferedIOBase) -> Iterator[tuple[int, int]]:
    """Where the messages of a file are, by its footer: it may name one of them often."""
    end = stream.seek(0, 2)
    size, magic = struct.unpack("<i6s", _read(stream, end - 10, 10))
    if magic != _MAGIC or not 0 < size <= min(_MOST_HEADER, end - 10):
        raise pa.ArrowInvalid("a file without a footer")
    footer = _Flat(_read(stream, end - 10 - size, size))
    root = footer.follow(0)
    for slot in (2, 3):
        for at in footer.items(root, slot, _BLOCK):
            offset, length = footer.get("<qi", at)
            yield offset, length


def _in_order(stream: BufferedIOBase) -> Iterator[tuple[int, int]]:
    """Where the messages of a stream are, one after the other."""
    at, end = 0, stream.seek(0, 2)
    while at + 4 <= end:
        (length,) = struct.unpack("<I", _read(stream, at, 4))
        before = 4
        if length == _CONTINUED:
            (length,) = struct.unpack("<I", _read(stream, at + 4, 4))
            before = 8
        if length == 0:
            return
        yield at, before + length
        header = _flat(stream, at, before + length)
        body = header.slot(header.follow(0), 3)
        at += before + length + (0 if body is None else header.get("<q", body)[0])


def _message(stream: BufferedIOBase, at: int, length: int) -> tuple[int, int, int]:
    """Rows of a message, bytes of its buffers, and of those that are unpacked for it."""
    header = _flat(stream, at, length)
    root = header.follow(0)
    kind, place = header.slot(root, 1), header.slot(root, 2)
    if kind is None or place is None:
        return 0, 0, 0
    (code,), table = header.get("<B", kind), header.follow(place)
    if code == _WORDS:
        inner = header.slot(table, 1)
        if inner is None:
            return 0, 0, 0
        table = header.follow(inner)
    elif code != _RECORDS:
        return 0, 0, 0
    rows = header.slot(table, 0)
    count = 0 if rows is None or code == _WORDS else header.get("<q", rows)[0]
    packed = header.slot(table, 3) is not None
    total = unpacked = 0
    for buffer in header.items(table, 2, _BUFFER):
        offset, size = header.get("<qq", buffer)
        if packed and size >= 8:
            (claimed,) = struct.unpack("<q", _read(stream, at + length + offset, 8))
            unpacked += max(0, claimed)
            size = max(size, claimed)
        total += max(0, size)
    return max(0, count), total, unpacked


def _flat(stream: BufferedIOBase, at: int, length: int) -> "_Flat":
    data = _read(stream, at, length)
    before = 8 if data[:4] == b"\xff\xff\xff\xff" else 4
    return _Flat(data[before:])


def _read(stream: BufferedIOBase, at: int, length: int) -> bytes:
    if at < 0 or not 0 <= length <= _MOST_HEADER:
        raise pa.ArrowInvalid("a message that lies outside of the file")
    stream.seek(at)
    data = stream.read(length)
    if len(data) < length:
        raise pa.ArrowInvalid("a message that is cut short")
    return data


@dataclass(frozen=True)
class _Flat:
    """Tables as FlatBuffers lays them out; places outside raise `struct.error`."""

    data: bytes

    def get(self, kind: str, at: int) -> tuple[int, ...]:
        """Numbers at a place."""
        if at < 0:
            raise struct.error("a place before the start")
        return struct.unpack_from(kind, self.data, at)

    def follow(self, at: int) -> int:
        """Where the offset at a place leads."""
        return at + self.get("<I", at)[0]

    def slot(self, table: int, number: int) -> int | None:
        """The place of a field of a table, if it is there."""
        names = table - self.get("<i", table)[0]
        if 4 + 2 * number >= self.get("<H", names)[0]:
            return None
        offset = self.get("<H", names + 4 + 2 * number)[0]
        return table + offset if offset else None

    def items(self, table: int, number: int, size: int) -> Iterator[int]:
        """The places of the items of a list of structures."""
        place = self.slot(table, number)
        if place is None:
            return
        start = self.follow(place)
        (count,) = self.get("<I", start)
        if start + 4 + count * size > len(self.data):
            raise struct.error("a list that is too long")
        yield from range(start + 4, start + 4 + count * size, size)
