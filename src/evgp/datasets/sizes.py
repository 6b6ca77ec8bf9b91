"""Compute the memory that Parquet and Arrow files take once they are read, from their headers.

The footer of a Parquet file cannot be trusted, and a few bytes can stand for millions of values: a
page of one repeated number, or of references to one long string. So the header of every page is
read before any page is unpacked. A compressed buffer of an Arrow file gives its unpacked size in
its first eight bytes, and a batch of empty columns may claim any number of rows; both are read
before pyarrow allocates that much. O(pages + buffers) time; nothing is unpacked.
"""

import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import SEEK_END, BufferedIOBase

import pyarrow as pa
import pyarrow.parquet as pq

from evgp._linalg import BLOCK

# Encodings whose values are indices into a dictionary.
_BY_WORD = (2, 8)
_DATA, _DICTIONARY, _DATA_2 = 0, 2, 3
# Bytes read at first for a header, and at most; statistics make some headers long.
_HEAD, _MOST_HEAD = 1 << 10, 1 << 22
_DEEPEST = 32


@dataclass(frozen=True)
class ParquetSize:
    """Bytes that the columns of a file take in memory.

    `sure` excludes repeated strings of dictionaries, which add at most `words`. `pages` is needed
    to decode all columns in parallel, a block of rows at a time: for each column its largest page,
    its dictionary, and the text of a block that is not in the dictionary.
    """

    sure: int
    words: int
    pages: int


def decoded(
    stream: BufferedIOBase, parquet: pq.ParquetFile, columns: Collection[str] | None = None
) -> ParquetSize:
    """Compute the size from the headers of all pages of an open file, or of some columns."""
    metadata, schema = parquet.metadata, parquet.schema
    kept = {field.name for field in parquet.schema_arrow if pa.types.is_dictionary(field.type)}
    groups = _row_groups(stream, metadata.num_row_groups, metadata.num_columns)
    sure = words = pages = 0
    for at in range(metadata.num_columns):
        leaf = schema.column(at)
        if columns is not None and not _is_of(leaf, columns):
            continue
        text = leaf.physical_type == "BYTE_ARRAY"
        largest = 0
        for number in range(metadata.num_row_groups):
            rows = metadata.row_group(number).num_rows
            chunk = _chunk(stream, groups[number][at])
            # A flat column has a value for each row, whatever its pages claim.
            count = max(chunk.values, 0 if leaf.max_repetition_level else rows)
            sure += count * _width(leaf) + chunk.words + (chunk.data if text else 0)
            words += chunk.by_word * chunk.words if text and leaf.path not in kept else 0
            largest = max(largest, chunk.words + (chunk.block if text else chunk.largest))
        pages += largest
    return ParquetSize(sure, words, pages)


def _is_of(leaf: pq.ColumnSchema, columns: Collection[str]) -> bool:
    """Whether a column of the file is one of these, or the inside of a list that is."""
    if leaf.path in columns:
        return True
    inner = leaf.max_repetition_level > 0 and leaf.path.endswith((".list.element", ".list.item"))
    return inner and leaf.path.rsplit(".", 2)[0] in columns


def _width(leaf: pq.ColumnSchema) -> int:
    """Return the bytes of a value in memory, without the characters of text."""
    if str(leaf.logical_type).startswith("Decimal"):
        return 16
    return max(8, leaf.length or 0)


@dataclass(frozen=True)
class _Chunk:
    """Counts of a column in a row group: its values, those in a dictionary, bytes of its pages.

    `block` is the maximum size of the pages that a block of rows spans.
    """

    values: int
    by_word: int
    data: int
    words: int
    largest: int
    block: int


@dataclass(frozen=True)
class _Place:
    """Where the pages of a column in a row group are, and how many values they should have."""

    start: int
    size: int
    values: int


def _row_groups(stream: BufferedIOBase, groups: int, columns: int) -> list[list[_Place]]:
    """Read where each column of each row group is from the footer.

    pyarrow knows it too, but ends the process where a damaged footer contradicts itself.
    """
    stream.seek(-8, SEEK_END)
    length = int.from_bytes(stream.read(4), "little")
    stream.seek(-8 - length, SEEK_END)
    try:
        listed = _Thrift(stream.read(length)).struct().get(4)
    except IndexError:
        raise pa.ArrowInvalid("a footer that does not end") from None
    places = [[_place(chunk) for chunk in _fields(group, 1)] for group in _list(listed)]
    if len(places) != groups or any(len(group) != columns for group in places):
        raise pa.ArrowInvalid("a row group without some of the columns")
    return places


def _place(chunk: object) -> _Place:
    meta = chunk.get(3) if isinstance(chunk, dict) else None
    if not isinstance(meta, dict):
        raise pa.ArrowInvalid("a column without a description")
    start, first = _whole(meta, 9), meta.get(11)
    if isinstance(first, int) and 0 < first < start:
        start = first
    return _Place(start, _whole(meta, 7), _whole(meta, 5))


def _fields(group: object, field: int) -> list[object]:
    return _list(group.get(field) if isinstance(group, dict) else None)


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise pa.ArrowInvalid("a footer without its lists")
    return value


def _chunk(stream: BufferedIOBase, column: _Place) -> _Chunk:
    values = by_word = words = 0
    pages: list[tuple[int, int]] = []
    for kind, size, count, encoding in _headers(stream, column):
        if kind == _DICTIONARY:
            words += size
        else:
            values += count
            pages.append((size, count))
            by_word += count if encoding in _BY_WORD else 0
        if values >= column.values:
            break
    sizes = [size for size, _ in pages]
    return _Chunk(values, by_word, sum(sizes), words, max(sizes, default=0), _block(pages))


def _block(pages: Sequence[tuple[int, int]]) -> int:
    """Return the maximum size of the pages that a block of values can span.

    >>> _block([(10, 3000), (20, 3000), (30, 3000), (1, 9000)])
    60
    """
    most = size = inside = first = 0
    for last, (bytes_here, count) in enumerate(pages):
        size, inside = size + bytes_here, inside + count
        # A block has at least one value of the first and the last page it spans.
        while first < last and inside - pages[first][1] - count > BLOCK - 2:
            size, inside, first = size - pages[first][0], inside - pages[first][1], first + 1
        most = max(most, size)
    return most


def _headers(stream: BufferedIOBase, column: _Place) -> Iterator[tuple[int, int, int, int]]:
    """Yield the type, unpacked size, number of values and encoding of each page of a chunk."""
    at, stop = column.start, column.start + column.size
    while at < stop and column.values:
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
    """Return the fields of a page's header, and the header's size in bytes."""
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
    """A parser of Thrift's compact protocol, limited to what footers and page headers need."""

    def __init__(self, data: bytes) -> None:
        self._data, self.at = data, 0

    def struct(self, depth: int = 0) -> dict[int, object]:
        """Parse a structure: integers, lists and structures by field number; others are None."""
        if depth > _DEEPEST:
            raise pa.ArrowInvalid("a header that is too deep")
        values: dict[int, object] = {}
        field = 0
        while (head := self._byte()) != 0:
            field = field + (head >> 4) if head >> 4 else self._signed()
            values[field] = self._value(head & 15, depth)
        return values

    def _value(self, kind: int, depth: int) -> object:
        if kind in (1, 2):  # booleans are encoded in the type, without further bytes
            return None
        if kind in (4, 5, 6):
            return self._signed()
        if kind == 8:
            self._skip(self._unsigned())
        elif kind in (9, 10):
            head = self._byte()
            count = head >> 4 if head >> 4 < 15 else self._unsigned()
            return self._elements(count, [head & 15], depth)
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

    def _elements(self, count: int, kinds: list[int], depth: int) -> list[object]:
        if depth > _DEEPEST:
            raise pa.ArrowInvalid("a header that is too deep")
        values: list[object] = []
        for _ in range(count):
            for kind in kinds:
                # In a list, unlike in a structure, a boolean takes a byte.
                if kind in (1, 2):
                    self._skip(1)
                else:
                    values.append(self._value(kind, depth + 1))
        return values

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
    """Rows of all batches, bytes of their buffers, and the largest unpacked size of a message."""

    rows: int
    total: int
    largest: int


def unpacked(stream: BufferedIOBase) -> ArrowSize:
    """Compute the size from the message headers of an open Arrow file or stream."""
    stream.seek(0)
    messages = (
        _file_messages(stream) if stream.read(len(_MAGIC)) == _MAGIC else _stream_messages(stream)
    )
    rows = total = largest = 0
    try:
        for at, length in messages:
            count, size, packed = _message(stream, at, length)
            rows, total, largest = rows + count, total + size, max(largest, packed)
    except (struct.error, OverflowError) as error:
        raise pa.ArrowInvalid("a damaged message") from error
    return ArrowSize(rows, total, largest)


def _file_messages(stream: BufferedIOBase) -> Iterator[tuple[int, int]]:
    """Yield the place of each message of a file from its footer, which may repeat messages."""
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


def _stream_messages(stream: BufferedIOBase) -> Iterator[tuple[int, int]]:
    """Yield the place of each message of a stream, one after the other."""
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
    """Return the rows of a message, the bytes of its buffers, and of the compressed ones."""
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
    """A FlatBuffers message; offsets outside it raise `struct.error`."""

    data: bytes

    def get(self, kind: str, at: int) -> tuple[int, ...]:
        """Unpack the numbers at an offset."""
        if at < 0:
            raise struct.error("a place before the start")
        return struct.unpack_from(kind, self.data, at)

    def follow(self, at: int) -> int:
        """Follow the relative offset stored at an offset."""
        return at + self.get("<I", at)[0]

    def slot(self, table: int, number: int) -> int | None:
        """Return the offset of a table's field; None if the field is absent."""
        names = table - self.get("<i", table)[0]
        if 4 + 2 * number >= self.get("<H", names)[0]:
            return None
        offset = self.get("<H", names + 4 + 2 * number)[0]
        return table + offset if offset else None

    def items(self, table: int, number: int, size: int) -> Iterator[int]:
        """Yield the offsets of the items of a list of structures."""
        place = self.slot(table, number)
        if place is None:
            return
        start = self.follow(place)
        (count,) = self.get("<I", start)
        if start + 4 + count * size > len(self.data):
            raise struct.error("a list that is too long")
        yield from range(start + 4, start + 4 + count * size, size)
