"""What an Arrow file takes once it is unpacked, from the headers of its messages.

A compressed buffer says in its first eight bytes how long it will be, and a batch of empty columns
may claim any number of rows. Both are read here before pyarrow allocates what they say. O(buffers)
time; nothing is unpacked. The layout is that of Arrow's Message.fbs and File.fbs.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedIOBase

import pyarrow as pa

_MAGIC = b"ARROW1"
_CONTINUED = 0xFFFFFFFF
_DICTIONARY, _RECORDS = 2, 3
_BUFFER, _BLOCK = 16, 24
# A header lists the buffers of all columns of a batch.
_MOST_HEADER = 1 << 28


@dataclass(frozen=True)
class Unpacked:
    """Rows of all batches, bytes of their buffers, and the most that one message unpacks to."""

    rows: int
    total: int
    largest: int


def unpacked(stream: BufferedIOBase) -> Unpacked:
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
    return Unpacked(rows, total, largest)


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
        header = _header(stream, at, before + length)
        body = header.slot(header.follow(0), 3)
        at += before + length + (0 if body is None else header.get("<q", body)[0])


def _message(stream: BufferedIOBase, at: int, length: int) -> tuple[int, int, int]:
    """Rows of a message, bytes of its buffers, and of those that are unpacked for it."""
    header = _header(stream, at, length)
    root = header.follow(0)
    kind, place = header.slot(root, 1), header.slot(root, 2)
    if kind is None or place is None:
        return 0, 0, 0
    (code,), table = header.get("<B", kind), header.follow(place)
    if code == _DICTIONARY:
        inner = header.slot(table, 1)
        if inner is None:
            return 0, 0, 0
        table = header.follow(inner)
    elif code != _RECORDS:
        return 0, 0, 0
    rows = header.slot(table, 0)
    count = 0 if rows is None or code == _DICTIONARY else header.get("<q", rows)[0]
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


def _header(stream: BufferedIOBase, at: int, length: int) -> "_Flat":
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
