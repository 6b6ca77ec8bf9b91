"""Read NumPy files from untrusted sources.

`np.load` allocates whatever a header claims, regardless of the size of the file, and unpacks an
archive without limit. Here the header is compared with the file first, members of an archive are
unpacked only as far as they are read (`zipfile` guarantees that only for deflate; a few kilobytes
of bzip2 can expand to gigabytes), and nothing is ever unpickled.
"""

import bz2
import copy
import io
import lzma
import os
import struct
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import BinaryIO, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Shaped

from evgp._reading import check_bomb, check_memory
from evgp._reading import opened as plain_file
from evgp.errors import DatasetError, DataWarning, EvgpError, UnreadableFile, WrongFormat

_CHUNK = 2**16
# Memory limit of the decompressor: four times the largest window of the `xz` presets.
_LZMA_MEMORY = 2**28


@runtime_checkable
class Stream(Protocol):
    """A stream of bytes: a file, or a member of an archive."""

    def read(self, size: int = -1, /) -> bytes: ...
    def tell(self) -> int: ...


class UnpackedMember:
    """A compressed stream of bytes, unpacked as it is read."""

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
        """Return the number of bytes read so far."""
        return self._at

    def read(self, size: int = -1, /) -> bytes:
        """Read the next bytes, never more than the archive declares."""
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
    """Open a member of an archive, in any compression that NumPy reads."""
    if info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        with archive.open(info) as stream:
            yield stream
        return
    if info.compress_type not in (zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2):
        raise WrongFormat.of(DatasetError)(
            str(path),
            "an archive packed with deflate, LZMA or bzip2",
            f"method {info.compress_type}",
            "save it again with numpy.savez",
        )
    packed = copy.copy(info)
    packed.compress_type, packed.file_size = zipfile.ZIP_STORED, info.compress_size
    del packed.CRC  # it is the checksum of the unpacked bytes
    with archive.open(packed) as stream:
        yield UnpackedMember(stream, info)


def _lzma_header(packed: Stream) -> bytes:
    """Return the header of a stand-alone LZMA stream with these properties and unknown size."""
    start = packed.read(4)
    properties = packed.read(int.from_bytes(start[2:4], "little"))
    if len(start) < 4 or len(properties) != 5:
        raise zipfile.BadZipFile("damaged LZMA properties")
    return properties + b"\xff" * 8


# Maximum bytes of a header: far more than the header of an array of plain numbers needs.
_LONGEST_HEADER = 10_000
_MOST_AXES = 32
# Tables with more columns take minutes; a flattened grey image of 224 x 224 pixels has fewer.
_MOST_COLUMNS = 100_000
# Exceptions that damaged archives raise.
DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
    *(EOFError, RuntimeError, ValueError, IndexError),
)


@dataclass(frozen=True)
class NpyHeader:
    """The header of an npy file."""

    shape: tuple[int, ...]
    dtype: np.dtype
    columns_first: bool

    def nbytes(self) -> int:
        """Return the size of the array in bytes; Python integers cannot overflow."""
        return prod(self.shape) * self.dtype.itemsize


def read_npy(path: str | Path) -> Float[np.ndarray, "n d"]:
    """Read the array of an npy file as float64; more than two axes are flattened by row."""
    return _flat(_read_npy(Path(path), 8), str(path))


def read_npz(path: str | Path, array: str | None = None) -> Float[np.ndarray, "n d"]:
    """Read one array of an npz archive, chosen by name with `array`, as `read_npy` does."""
    x, name = _read_npz(path, array, 8)
    return _flat(x, f"{path}[{name}]")


def read_array(path: str | Path, array: str | None = None) -> Shaped[np.ndarray, " n *d"]:
    """Read the array of an npy or npz file, with its own axes and dtype."""
    if Path(path).suffix.lower() == ".npz":
        return _read_npz(path, array, 0)[0]
    return _read_npy(Path(path), 0)


def _read_npy(path: Path, size: int) -> Shaped[np.ndarray, " n *d"]:
    """Read an npy file; `size` is the bytes per number needed later, beyond those in the file."""
    with plain_file(path) as stream:
        header = npy_header(stream, str(path))
        check_memory(header.nbytes() + size * prod(header.shape), str(path))
        return _numbers(stream.read(header.nbytes()), header, str(path))


def npy_header(stream: BinaryIO, source: str, *, empty: bool = False) -> NpyHeader:
    """Read the header of an npy file, and check the file's size; `empty` allows zero rows."""
    header = read_header(stream, source)
    shape = (1, *header.shape[1:]) if empty and header.shape[:1] == (0,) else header.shape
    _check(replace(header, shape=shape), source)
    held = os.fstat(stream.fileno()).st_size - stream.tell()
    if held < header.nbytes():
        raise UnreadableFile.of(DatasetError)(
            str(source),
            f"the header promises {header.nbytes():,} bytes of numbers, the file holds {held:,}",
            "it is cut short or damaged, so save it again",
        )
    return header


def _read_npz(
    path: str | Path, array: str | None, size: int
) -> tuple[Shaped[np.ndarray, " n *d"], str]:
    try:
        with plain_file(path) as stream, zipfile.ZipFile(stream) as archive:
            headers = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            name = _choose(archive, array, str(path))
            return _member(archive, headers[name], str(path), size), name
    except DatasetError:
        raise
    except DAMAGED as error:
        raise _foreign(path, error) from error
    except OSError as error:
        # bzip2 reports damage as an OSError without an errno.
        if error.errno is not None:
            raise
        raise _foreign(path, error) from error


def check_columns(count: int, source: str) -> None:
    """Refuse a table with more columns than can be handled one by one."""
    if count > _MOST_COLUMNS:
        raise DatasetError(
            f"{source}: expected at most {_MOST_COLUMNS:,} columns, got {count:,}; reduce them "
            "first, for example by a random projection, and save the result"
        )


def _foreign(path: str | Path, error: Exception) -> EvgpError:
    return WrongFormat.of(DatasetError)(
        str(path),
        "an npz archive",
        f"a damaged or foreign file ({error})",
        "save it again with numpy.savez",
    )


def _member(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: str, size: int
) -> Shaped[np.ndarray, " n *d"]:
    source = f"{path}[{info.filename.removesuffix('.npy')}]"
    with opened(archive, info, path) as stream:
        header = read_header(stream, source)
        _check(header, source)
        need, held = header.nbytes(), info.file_size - stream.tell()
        if held < need:
            raise UnreadableFile.of(DatasetError)(
                str(source),
                f"the header promises {need:,} bytes of numbers, the archive holds {held:,}",
                "it is cut short or damaged, so save it again",
            )
        check_bomb(need, info.compress_size, source)
        check_memory(need + size * prod(header.shape), source)
        return _numbers(stream.read(need), header, source)


def _choose(archive: zipfile.ZipFile, array: str | None, path: str) -> str:
    shapes = dict(_shapes(archive, path))
    if array is not None:
        if array.removesuffix(".npy") in shapes:
            return array.removesuffix(".npy")
        raise WrongFormat.of(DatasetError)(
            str(path), f"an array named {array!r}", _listed(shapes), "choose one with array="
        )
    flat = [name for name, shape in shapes.items() if len(shape) == 2]
    tables = flat or [name for name, shape in shapes.items() if len(shape) > 2]
    if len(tables) == 1 or len(shapes) == 1:
        return (tables or list(shapes))[0]
    raise WrongFormat.of(DatasetError)(
        str(path), "one array of rows x columns", _listed(shapes), "choose one with array="
    )


def _shapes(archive: zipfile.ZipFile, path: str) -> list[tuple[str, tuple[int, ...]]]:
    shapes = []
    for info in archive.infolist():
        if info.filename.endswith(".npy"):
            with opened(archive, info, path) as stream:
                name = info.filename.removesuffix(".npy")
                shapes.append((name, read_header(stream, f"{path}[{name}]").shape))
    return shapes


def _listed(shapes: dict[str, tuple[int, ...]]) -> str:
    shown = [f"{name} {'x'.join(map(str, shape)) or 'scalar'}" for name, shape in shapes.items()]
    return (
        ", ".join(shown[:8]) + (f" and {len(shown) - 8} more" if len(shown) > 8 else "") or "none"
    )


def read_header(stream: Stream, source: str) -> NpyHeader:
    """Read the header of an array; anything else is refused with a clear message."""
    try:
        shape, columns_first, dtype = _parsed(stream)
    except Exception as error:  # headers are parsed as Python text; a broken one raises anything
        raise DatasetError(
            f"{source}: expected a NumPy array file, got something else or a damaged header; "
            "save it again with numpy.save"
        ) from error
    if any(-(2**63) < size < 0 for size in shape):
        raise UnreadableFile.of(DatasetError)(
            str(source), f"the header claims a negative size {shape}", "save it again"
        )
    # NumPy accepts True as a size, and integers of any length.
    if len(shape) > _MOST_AXES or not all(
        type(size) is int and 0 <= size < 2**63 for size in shape
    ):
        raise DatasetError(
            f"{source}: expected a header with a size for each of at most {_MOST_AXES} axes, got a "
            "shape that no array has; save it again with numpy.save"
        )
    return NpyHeader(tuple(shape), dtype, columns_first)


def _parsed(stream: Stream) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Parse a header with NumPy, reading no more bytes than a header may have."""
    start = stream.read(8)
    version = np.lib.format.read_magic(io.BytesIO(start))
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError(f"version {version}")
    sized = stream.read(2 if version == (1, 0) else 4)
    length = int.from_bytes(sized, "little")
    if length > _LONGEST_HEADER:
        raise ValueError(f"a header of {length} bytes")
    # For plain numbers, version 3 of the format equals version 2.
    rest = io.BytesIO(sized + stream.read(length))
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(rest)
    return np.lib.format.read_array_header_2_0(rest)


def _check(header: NpyHeader, source: str) -> None:
    shape = "x".join(map(str, header.shape)) or "a scalar"
    if header.dtype.hasobject:
        raise UnreadableFile.of(DatasetError)(
            str(source),
            "holds Python objects, which are never unpickled here",
            "save plain numbers: numpy.save(path, x.astype(float))",
        )
    if header.dtype.kind not in "fiub":
        kind = "complex numbers" if header.dtype.kind == "c" else f"{header.dtype}"[:80]
        raise DatasetError(
            f"{source}: expected real numbers, got {kind}; save real numbers, or a CSV or Parquet "
            "file if there are several kinds of columns"
        )
    if len(header.shape) == 1:
        raise DatasetError(
            f"{source}: expected rows x columns, got one axis of {shape}; if each number is a row, "
            "save x.reshape(-1, 1)"
        )
    if len(header.shape) == 0:
        raise DatasetError(
            f"{source}: expected rows x columns, got a scalar; save an array with a row for each "
            "thing to choose from"
        )
    if 0 in header.shape:
        raise DatasetError(f"{source}: expected rows and columns, got {shape}; it holds no numbers")


def _numbers(data: bytes, header: NpyHeader, source: str) -> Shaped[np.ndarray, " n *d"]:
    if len(data) < header.nbytes():
        raise UnreadableFile.of(DatasetError)(
            str(source), f"ended after {len(data):,} of {header.nbytes():,} bytes", "save it again"
        )
    flat = np.frombuffer(data, dtype=header.dtype)
    return flat.reshape(header.shape, order="F" if header.columns_first else "C")


def _flat(x: Shaped[np.ndarray, " n *d"], source: str) -> Float[np.ndarray, "n d"]:
    # A number too large for float64 becomes inf here, and is later reported with column and row.
    with np.errstate(over="ignore"):
        x = x.astype(np.float64)
    if x.ndim > 2:
        shape = "x".join(map(str, x.shape))
        x = x.reshape(len(x), -1)
        warnings.warn(
            f"{source}: {shape} numbers, flattened to {x.shape[1]:,} in each row",
            DataWarning,
            stacklevel=2,
        )
    return x
