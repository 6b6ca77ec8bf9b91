"""Files with checksums, so that damage is noticed: arrays, and JSON documents.

The file of an array is an npy file, then two checksums for each of its blocks, then a footer: where
the array came from, and a hash of all checksums. NumPy reads it as if nothing followed the numbers.
The checksums are meant for accidents (bits that flip, files that are cut or exchanged), not for an
attacker, who could write them as well.
"""

import json
import os
import struct
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

import numpy as np
from jaxtyping import Shaped

from evgp._errors import DamagedFile
from evgp._machine import each_alone
from evgp._reading import unwaiting
from evgp.datasets.disk import KEPT, reserve
from evgp.datasets.files import atomic

# Bytes under one pair of checksums; as much is held in memory by each thread that checks.
BLOCK_BYTES = 4 * 2**20
# CRC-32 notices every damage within 32 neighbouring bits, the sum of all words nearly all others.
_PAIR = np.dtype([("crc", "<u4"), ("sum", "<u8")])
# A mark, bytes of a block and of the npy file, hashes of the origin and of everything above.
_FOOTER = struct.Struct("<8sQQ16s16s")
_MARK = b"evgp-sum"


@contextmanager
def array_file(
    path: str | Path, shape: tuple[int, ...], dtype: str, origin: str = ""
) -> Iterator[Shaped[np.ndarray, "..."]]:
    """An npy file to fill through memory; it gets its checksums and its name once it is whole.

    `origin` says what the array is and what it was made from; `verify` asks for the same.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with array_file(f"{folder}/x.npy", (2, 3), "float32") as x:
    ...         x[:] = 1
    ...     float(np.load(f"{folder}/x.npy").sum()), len(verify(f"{folder}/x.npy"))
    (6.0, 32)
    """
    with atomic(path, advice=KEPT) as part:
        array = np.lib.format.open_memmap(part, mode="w+", dtype=np.dtype(dtype), shape=shape)
        reserve(part, path)
        yield array
        array.flush()
        _sign(part, origin)


def verify(path: str | Path, origin: str = "") -> str:
    """The fingerprint of a file that `array_file` wrote; anything else is a `DamagedFile`.

    Two files of one fingerprint have the same array and origin. O(bytes), in the memory of a block
    for each thread; some 3 GB a second and thread, where the disk keeps up.
    """
    try:
        with open(path, "rb", opener=unwaiting) as file:
            pairs, length, size, made_from, hashed = _footer(file, str(path))
            if made_from != _hash(origin.encode()):
                raise DamagedFile(str(path), "it belongs to another run or pool")
            for at, pair in enumerate(_pairs(file, length, size)):
                if pair != pairs[at].item():
                    raise DamagedFile(str(path), f"block {at + 1} of {len(pairs)} was changed")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DamagedFile(str(path), f"it cannot be read ({error.strerror or error})") from error
    return hashed.hex()


def fingerprint(path: str | Path) -> str:
    """The fingerprint that a file claims, without a look at its numbers; O(1)."""
    with open(path, "rb", opener=unwaiting) as file:
        return _footer(file, str(path))[-1].hex()


def signed(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document for JSON, with a digest of all that it holds.

    >>> signed({"mse": 0.5})
    {'mse': 0.5, 'digest': 'e680bb506a9f2deb'}
    """
    return {**document, "digest": _digest(document)}


def check_document(path: str | Path, document: object, keys: Collection[str]) -> dict[str, Any]:
    """A document that was read again, if it is as it was written, else a `DamagedFile`.

    One of an earlier version has no digest; it may have no other keys than those that are known, so
    that a digest whose own name was damaged is not passed over.
    """
    if not isinstance(document, dict):
        raise DamagedFile(str(path), "it holds something else")
    if unknown := [key for key in document if key not in (*keys, "digest")]:
        raise DamagedFile(str(path), f"it has an unknown entry {unknown[0][:40]!r}")
    found = {key: value for key, value in document.items() if key != "digest"}
    if document.get("digest", digest := _digest(found)) != digest:
        raise DamagedFile(str(path), "its content was changed")
    return found


def _digest(document: Mapping[str, Any]) -> str:
    return blake2b(json.dumps(document, sort_keys=True).encode(), digest_size=8).hexdigest()


def _sign(path: Path, origin: str) -> None:
    """Append the checksums of all that is in a file."""
    with open(path, "rb") as file:
        length = os.fstat(file.fileno()).st_size
        pairs = np.array(list(_pairs(file, length, BLOCK_BYTES)), dtype=_PAIR)
    head = (_MARK, BLOCK_BYTES, length, _hash(origin.encode()))
    unsigned = _FOOTER.pack(*head, bytes(16))
    with open(path, "ab") as file:
        file.write(pairs.tobytes() + _FOOTER.pack(*head, _hash(pairs.tobytes() + unsigned)))


def _footer(file: IO[bytes], path: str) -> tuple[Shaped[np.ndarray, " b"], int, int, bytes, bytes]:
    """Checksums, bytes of the npy file and of a block, the origin's hash, and that of them all."""
    whole = os.fstat(file.fileno()).st_size
    file.seek(max(0, whole - _FOOTER.size))
    last = file.read()
    if len(last) < _FOOTER.size or not last.startswith(_MARK):
        raise DamagedFile(path, _without(path, whole))
    _, size, length, made_from, hashed = _FOOTER.unpack(last)
    blocks, rest = divmod(whole - length - _FOOTER.size, _PAIR.itemsize)
    if rest or size < 1 or length < 1 or blocks != -(-length // size):
        raise DamagedFile(path, "its checksums were changed, or it was cut")
    file.seek(length)
    kept = file.read(blocks * _PAIR.itemsize)
    unsigned = _FOOTER.pack(_MARK, size, length, made_from, bytes(16))
    if _hash(kept + unsigned) != hashed:
        raise DamagedFile(path, "its checksums were changed")
    return np.frombuffer(kept, dtype=_PAIR), length, size, made_from, hashed


def _without(path: str, whole: int) -> str:
    """What to say of a file that does not end in checksums."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        plain = array.offset + array.nbytes == whole
    except (OSError, ValueError, AttributeError, EOFError):
        plain = False
    return "an earlier version wrote it, without checksums" if plain else "it was cut or changed"


def _pairs(file: IO[bytes], length: int, size: int) -> Iterator[tuple[int, int]]:
    """Both checksums of each block, in order; read, not mapped, so that a bad disk can be named."""
    file.seek(0)
    return each_alone(_pair, (file.read(min(size, length - at)) for at in range(0, length, size)))


def _pair(block: bytes) -> tuple[int, int]:
    words = np.frombuffer(block + bytes(-len(block) % 8), "<u8")  # zeros fill up the last word
    return zlib.crc32(block), int(words.sum(dtype=np.uint64))


def _hash(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest()
