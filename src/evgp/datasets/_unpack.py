"""Members of a zip archive, unpacked no further than they are read.

`zipfile` bounds what it unpacks at a time only for deflate; a few kilobytes of bzip2 can stand for
gigabytes. Here LZMA and bzip2 are bounded too.
"""

import bz2
import copy
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

from evgp._errors import DatasetError

_CHUNK = 2**16
# What unpacking itself may take: four times the largest window that `xz` uses by itself.
_LZMA_MEMORY = 2**28


@runtime_checkable
class Stream(Protocol):
    """Bytes in order: a file, or a member of an archive."""

    def read(self, size: int = -1, /) -> bytes: ...
    def tell(self) -> int: ...


class Unpacked:
    """A packed stream of bytes, unpacked as it is read."""

    def __init__(self, packed: Stream, info: zipfile.ZipInfo) -> None:
        self._packed, self._info = packed, info
        self._waiting = b""
        self._unpack: bz2.BZ2Decompressor | lzma.LZMADecompressor
        if info.compress_type == zipfile.ZIP_BZIP2:
            self._unpack = bz2.BZ2Decompressor()
        else:
            self._unpack = lzma.LZMADecompressor(lzma.FORMAT_ALONE, _LZMA_MEMORY)
            self._waiting = _lzma_header(packed)
        self._at = self._sum = 0

    def tell(self) -> int:
        """How many bytes were read."""
        return self._at

    def read(self, size: int = -1, /) -> bytes:
        """The next bytes, never more than the archive declares."""
        left = self._info.file_size - self._at
        size = left if size < 0 else min(size, left)
        parts, got = [], 0
        while got < size and not self._unpack.eof:
            fed = self._waiting
            if not fed and self._unpack.needs_input and not (fed := self._packed.read(_CHUNK)):
                break
            self._waiting = b""
            part = self._unpack.decompress(fed, size - got)
            parts.append(part)
            got += len(part)
        data = b"".join(parts)
        self._at += len(data)
        self._sum = zlib.crc32(data, self._sum)
        if self._at == self._info.file_size and self._sum != self._info.CRC:
            raise zipfile.BadZipFile(f"wrong checksum of {self._info.filename!r}")
        return data


@contextmanager
def opened(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: str) -> Iterator[Stream]:
    """A member of an archive, in any packing that NumPy reads."""
    if info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        with archive.open(info) as stream:
            yield stream
        return
    if info.compress_type not in (zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2):
        raise DatasetError(
            f"{path}: expected an archive packed with deflate, LZMA or bzip2, got method "
            f"{info.compress_type}; save it again with numpy.savez"
        )
    packed = copy.copy(info)
    packed.compress_type, packed.file_size = zipfile.ZIP_STORED, info.compress_size
    del packed.CRC  # it is that of the unpacked bytes
    with archive.open(packed) as stream:
        yield Unpacked(stream, info)


def _lzma_header(packed: Stream) -> bytes:
    """The properties as a stand-alone LZMA stream has them, with the size left open."""
    start = packed.read(4)
    properties = packed.read(int.from_bytes(start[2:4], "little"))
    if len(start) < 4 or len(properties) != 5:
        raise zipfile.BadZipFile("damaged LZMA properties")
    return properties + b"\xff" * 8
