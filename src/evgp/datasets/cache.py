"""What a long run keeps on the disk: arrays and documents with checksums, finished picks, locks.

The file of an array is an npy file, then two checksums for each of its blocks, then a footer: where
the array came from, and a hash of all checksums. NumPy reads it as if nothing followed the numbers.
The checksums are meant for accidents (bits that flip, files that are cut or exchanged), not for an
attacker, who could write them as well.
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

from evgp._errors import DamagedFile, DamageWarning, DatasetError
from evgp._machine import each_alone
from evgp._reading import opened, unwaiting
from evgp.datasets.files import KEPT, atomic, naming, reserve

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
    with suppress(FileNotFoundError):
        try:
            check_place(path)
        except DamagedFile:
            os.unlink(path)  # the link, never what it leads to
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
    """Refuse a folder in the place of a file of ours; a link, device or pipe counts as damage."""
    kind = os.lstat(path).st_mode  # files of ours are never links
    if stat.S_ISDIR(kind):
        raise DatasetError(
            f"{path}: expected a file of the cache, got a folder; remove it and run again"
        )
    if not stat.S_ISREG(kind):
        raise DamagedFile(str(path), "it is not a plain file")


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


_LOCK = "in-use"
_LINE = re.compile(rb"(\d{1,18}) (\d{1,18}) [0-9a-f]{16}")
_BEGUN = re.compile(rb"(\d{1,18}( (\d{1,18}( [0-9a-f]{0,16})?)?)?)?")
_OLD = re.compile(rb"(\d+ \d+\n)+")


def cache_folder() -> Path:
    """Where runs keep their work: `$EVGP_CACHE`, or the system's place for such files."""
    if given := os.environ.get("EVGP_CACHE"):
        return Path(given)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "evgp"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "evgp"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evgp"


_MOST_PICKS = 1 << 27  # bytes: some four million picks


@dataclass
class PickFile:
    """Picks of a run, one a line, on the disk as soon as they are made.

    Each line ends in a hash of itself, of all before it, and of the file's name. The first line
    that does not fit ends what is believed, with a `DamageWarning`; one that was cut short by a
    crash is as good as not written.

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
            content = stream.read(_MOST_PICKS)  # what is longer was not written here
        size, found = 0, content.split(b"\n")[:-1]
        for line in found:
            if not self._fits(line):
                self._warn(len(found), old=_OLD.fullmatch(content) is not None)
                break
            size += len(line) + 1
        else:
            # A line that was cut short by a crash begins as a line does; anything else is damage.
            if not _BEGUN.fullmatch(content[size:]):
                self._warn(len(found) + 1, old=False)
        if size < self.path.stat().st_size:
            os.truncate(self.path, size)

    def rows(self) -> list[int]:
        """The picks so far."""
        return list(self._rows)

    def add(self, row: int) -> None:
        """One more: it survives the end of this process."""
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
        """Take a line over if it is the next one; two runs at once may each write the same."""
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
        why = f"was damaged (pick {at} of {lines} does not fit those before it)"
        if old:
            why = "has no checksums, as an earlier version wrote it"
        warnings.warn(
            f"{self.path} {why}; the picks from number {at} on are made again",
            DamageWarning,
            stacklevel=2,
        )


@contextmanager
def in_use(folder: Path, *, remove: bool) -> Iterator[None]:
    """Work in a folder; with `remove` it goes when the work is done, unless others work there.

    Work that fails leaves it, so that the next run can go on.
    """
    handle = _enter(folder)
    try:
        yield
        if remove and _lock(handle, "alone"):
            # First out of sight: who comes now begins a folder of their own.
            gone = folder.with_name(f".evgp-{secrets.token_hex(8)}.gone")
            folder.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)
    finally:
        os.close(handle)


def _enter(folder: Path) -> int:
    """A shared lock on a folder that is there, without what a killed run left half-done."""
    while True:
        try:
            with naming(folder / _LOCK, advice=KEPT):
                folder.mkdir(parents=True, exist_ok=True)
                handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            continue  # it was removed in between
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
    """Whether a lock could be had alone, or after a wait with others; True where there are none."""
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
