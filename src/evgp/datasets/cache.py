"""Files that a long run keeps on disk: arrays and documents with checksums, picks, locks.

The file of an array is an npy file, followed by two checksums for each of its blocks and a footer
with the array's origin and a hash of all checksums. NumPy ignores what follows the numbers. The
checksums protect against accidents (flipped bits, truncated or swapped files), not against an
attacker, who could write valid checksums as well.
"""

import json
import os
import re
import secrets
import shutil
import stat
import struct
import sys
import warnings
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

import numpy as np
from jaxtyping import Shaped

from evgp._machine import each_alone
from evgp._reading import opened, unwaiting
from evgp.datasets.files import KEPT, atomic, naming, reserve
from evgp.errors import DamagedFile, DamageWarning, DatasetError, WrongFormat

# Bytes covered by one pair of checksums; each verifying thread holds one such block in memory.
BLOCK_BYTES = 4 * 2**20
# CRC-32 detects any error within 32 neighbouring bits; the sum of 64-bit words nearly all others.
_PAIR = np.dtype([("crc", "<u4"), ("sum", "<u8")])
# A marker, the bytes of a block and of the npy file, hashes of the origin and of all the above.
_FOOTER = struct.Struct("<8sQQ16s16s")
_MARK = b"evgp-sum"


@contextmanager
def array_file(
    path: str | Path, shape: tuple[int, ...], dtype: str, origin: str = ""
) -> Iterator[Shaped[np.ndarray, "..."]]:
    """Create a memory-mapped npy file; it gets its checksums and its name once it is complete.

    `origin` describes the array and what it was made from; pass the same to `verify`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with array_file(f"{folder}/x.npy", (2, 3), "float32") as x:
    ...         x[:] = 1
    ...     float(np.load(f"{folder}/x.npy").sum()), len(verify(f"{folder}/x.npy"))
    (6.0, 32)
    """
    with suppress(FileNotFoundError):
        try:
            check_place(path)
        except DamagedFile:
            os.unlink(path)  # removes a link, never its target
    with atomic(path, advice=KEPT) as part:
        array = np.lib.format.open_memmap(part, mode="w+", dtype=np.dtype(dtype), shape=shape)
        reserve(part, path)
        yield array
        array.flush()
        _sign(part, origin)


def verify(path: str | Path, origin: str = "") -> str:
    """Return the fingerprint of a file written by `array_file`; raise `DamagedFile` otherwise.

    Files with equal fingerprints have the same array and origin. Reads the whole file, with one
    block in memory per thread, at about 3 GB per second and thread if the disk is fast enough.
    """
    try:
        check_place(path)
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


def check_place(path: str | Path) -> None:
    """Refuse a folder in place of a cache file; a link, device or pipe counts as damage."""
    kind = os.lstat(path).st_mode  # cache files are never links
    if stat.S_ISDIR(kind):
        raise WrongFormat.of(DatasetError)(
            str(path), "a file of the cache", "a folder", "remove it and run again"
        )
    if not stat.S_ISREG(kind):
        raise DamagedFile(str(path), "it is not a plain file")


def fingerprint(path: str | Path) -> str:
    """Return the fingerprint stored in a file, without verifying its numbers; O(1)."""
    with open(path, "rb", opener=unwaiting) as file:
        return _footer(file, str(path))[-1].hex()


def signed(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON document with a digest of its content added.

    >>> signed({"mse": 0.5})
    {'mse': 0.5, 'digest': 'e680bb506a9f2deb'}
    """
    return {**document, "digest": _digest(document)}


def check_document(path: str | Path, document: object, keys: Collection[str]) -> dict[str, Any]:
    """Return the content of a signed document; raise `DamagedFile` if it was changed.

    Documents of earlier versions have no digest. Unknown keys are refused, so that a digest whose
    key was damaged is noticed.
    """
    if not isinstance(document, dict):
        raise DamagedFile(str(path), "it holds something else")
    if unknown := [key for key in document if key not in (*keys, "digest")]:
        raise DamagedFile(str(path), f"it has an unknown entry {unknown[0][:40]!r}")
    content = {key: value for key, value in document.items() if key != "digest"}
    if document.get("digest", digest := _digest(content)) != digest:
        raise DamagedFile(str(path), "its content was changed")
    return content


def _digest(document: Mapping[str, Any]) -> str:
    return blake2b(json.dumps(document, sort_keys=True).encode(), digest_size=8).hexdigest()


def _sign(path: Path, origin: str) -> None:
    """Append checksums to a file."""
    with open(path, "rb") as file:
        length = os.fstat(file.fileno()).st_size
        pairs = np.array(list(_pairs(file, length, BLOCK_BYTES)), dtype=_PAIR)
    head = (_MARK, BLOCK_BYTES, length, _hash(origin.encode()))
    unsigned = _FOOTER.pack(*head, bytes(16))
    with open(path, "ab") as file:
        file.write(pairs.tobytes() + _FOOTER.pack(*head, _hash(pairs.tobytes() + unsigned)))


def _footer(file: IO[bytes], path: str) -> tuple[Shaped[np.ndarray, " b"], int, int, bytes, bytes]:
    """Read the checksums, the bytes of the npy file and of a block, and the two hashes."""
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
    """Explain why a file does not end in checksums."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        plain = array.offset + array.nbytes == whole
    except (OSError, ValueError, AttributeError, EOFError):
        plain = False
    return "an earlier version wrote it, without checksums" if plain else "it was cut or changed"


def _pairs(file: IO[bytes], length: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield both checksums of each block; read, not mapped, so that disk errors are reported."""
    file.seek(0)
    return each_alone(_pair, (file.read(min(size, length - at)) for at in range(0, length, size)))


def _pair(block: bytes) -> tuple[int, int]:
    words = np.frombuffer(block + bytes(-len(block) % 8), "<u8")  # pad the last word with zeros
    return zlib.crc32(block), int(words.sum(dtype=np.uint64))


def _hash(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest()


_LOCK = "in-use"
_LINE = re.compile(rb"(\d{1,18}) (\d{1,18}) [0-9a-f]{16}")
_BEGUN = re.compile(rb"(\d{1,18}( (\d{1,18}( [0-9a-f]{0,16})?)?)?)?")
_OLD = re.compile(rb"(\d+ \d+\n)+")


def cache_folder() -> Path:
    """Return the folder for intermediate files: `$EVGP_CACHE`, or the system's cache folder."""
    if folder := os.environ.get("EVGP_CACHE"):
        return Path(folder)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "evgp"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "evgp"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evgp"


_MOST_PICKS = 1 << 27  # bytes: about four million picks


@dataclass
class PickFile:
    """Picks of a run, one per line, written to disk as soon as they are made.

    Each line ends in a hash that covers the line, all lines before it, and the file's name. Lines
    from the first wrong one on are discarded with a `DamageWarning`; an incomplete last line, left
    by a crash, is discarded silently.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     PickFile(Path(folder, "picks.txt")).add(7)
    ...     again = PickFile(Path(folder, "picks.txt"))
    ...     again.add(3)
    ...     again.rows(), Path(folder, "picks.txt").read_text()
    ([7, 3], '0 7 1327c76c43ec918e\\n1 3 38135b980d2eed62\\n')
    """

    path: Path
    _rows: list[int] = field(default_factory=list)
    _lines: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.path.exists():
            return
        try:
            check_place(self.path)
        except DamagedFile as error:
            warnings.warn(
                f"{self.path} was damaged ({error.why}); the picks are made again",
                DamageWarning,
                stacklevel=2,
            )
            self.path.unlink()
            return
        with opened(self.path) as stream:
            content = stream.read(_MOST_PICKS)  # a longer file was not written by this class
        size, lines = 0, content.split(b"\n")[:-1]
        for line in lines:
            if not self._fits(line):
                self._warn(len(lines), old=_OLD.fullmatch(content) is not None)
                break
            size += len(line) + 1
        else:
            # A line cut short by a crash is the beginning of a valid line; anything else is damage.
            if not _BEGUN.fullmatch(content[size:]):
                self._warn(len(lines) + 1, old=False)
        if size < self.path.stat().st_size:
            os.truncate(self.path, size)

    def rows(self) -> list[int]:
        """Return the picks so far."""
        return list(self._rows)

    def add(self, row: int) -> None:
        """Append a pick; it survives a crash of this process."""
        line = self._line(row)
        with naming(self.path, advice=KEPT), self.path.open("ab") as stream:
            stream.write(line + b"\n")
        self._rows.append(row)
        self._lines.append(line)

    def _line(self, row: int) -> bytes:
        before = self._lines[-1] if self._lines else self.path.name.encode()
        pick = f"{len(self._rows)} {row}"
        check = blake2b(before + b"\n" + pick.encode(), digest_size=8).hexdigest()
        return f"{pick} {check}".encode()

    def _fits(self, line: bytes) -> bool:
        """Accept a line if it is the next pick, or repeats one, as two simultaneous runs write."""
        parts = _LINE.fullmatch(line)
        if parts is None:
            return False
        number, row = int(parts[1]), int(parts[2])
        if number < len(self._lines):
            return self._lines[number] == line
        if line != self._line(row):
            return False
        self._rows.append(row)
        self._lines.append(line)
        return True

    def _warn(self, lines: int, *, old: bool) -> None:
        at = len(self._rows) + 1
        why = f"was damaged (pick {at} of {lines} is inconsistent with the earlier picks)"
        if old:
            why = "has no checksums, as an earlier version wrote it"
        warnings.warn(
            f"{self.path} {why}; picks {at} and later are computed again",
            DamageWarning,
            stacklevel=2,
        )


@contextmanager
def in_use(folder: Path, *, remove: bool) -> Iterator[None]:
    """Lock a folder for a run; with `remove`, delete it afterwards unless another run uses it.

    If the run fails, the folder stays, so that the next run can resume.
    """
    handle = _enter(folder)
    try:
        yield
        if remove and _lock(handle, "alone"):
            # Rename it first, so that a run that starts now creates a new folder.
            gone = folder.with_name(f".evgp-{secrets.token_hex(8)}.gone")
            folder.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)
    finally:
        os.close(handle)


def _enter(folder: Path) -> int:
    """Create a folder if needed, remove leftovers of killed runs, and take a shared lock on it."""
    while True:
        try:
            with naming(folder / _LOCK, advice=KEPT):
                folder.mkdir(parents=True, exist_ok=True)
                handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            continue  # another run removed the folder in between
        if _lock(handle, "alone"):
            for part in folder.rglob(".evgp-*.part"):
                part.unlink(missing_ok=True)
            for gone in folder.parent.glob(".evgp-*.gone"):
                shutil.rmtree(gone, ignore_errors=True)
        _lock(handle, "wait")
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), os.stat(folder / _LOCK)):
                return handle
        os.close(handle)


def _lock(handle: int, how: str) -> bool:
    """Take an exclusive lock, or wait for a shared one; True if it succeeds or is unsupported."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        kind = fcntl.LOCK_SH if how == "wait" else fcntl.LOCK_EX | fcntl.LOCK_NB
        fcntl.flock(handle, kind)
    except OSError:
        return False
    return True
