"""What a long run keeps on the disk: arrays, finished picks, and who is at work in a folder."""

import errno
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from jaxtyping import Shaped

from evgp._errors import DatasetError
from evgp.datasets.files import atomic

_LOCK = "in-use"


def cache_folder() -> Path:
    """Where runs keep their work: `$EVGP_CACHE`, or the system's place for such files."""
    if given := os.environ.get("EVGP_CACHE"):
        return Path(given)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "evgp"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "evgp"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evgp"


@contextmanager
def array_file(
    path: str | Path, shape: tuple[int, ...], dtype: str
) -> Iterator[Shaped[np.ndarray, "..."]]:
    """An npy file to fill through memory; it gets its name once it is whole.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with array_file(f"{folder}/x.npy", (2, 3), "float32") as x:
    ...         x[:] = 1
    ...     float(np.load(f"{folder}/x.npy").sum())
    6.0
    """
    with atomic(path) as part:
        array = np.lib.format.open_memmap(part, mode="w+", dtype=np.dtype(dtype), shape=shape)
        reserve(part)
        yield array
        array.flush()


def reserve(path: str | Path) -> None:
    """Have the disk set aside all of a sparse file: writing to a map has no way to say no."""
    handle = os.open(path, os.O_RDWR)
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(handle, 0, os.fstat(handle).st_size)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            return  # some file systems cannot
        raise DatasetError(
            f"{Path(path).parent}: the disk is full; make room, or name a folder on a larger one "
            "(--cache), and run again: what was finished is kept"
        ) from error
    finally:
        os.close(handle)


def check_room(folder: str | Path, need: int) -> None:
    """Refuse a run whose files would not fit on the disk."""
    place = Path(folder)
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if need > free:
        raise DatasetError(
            f"{folder}: the features need {need / 1e6:,.0f} MB, and {free / 1e6:,.0f} MB are free "
            "on this disk; name a folder on a larger one (--cache), or use fewer features"
        )


@dataclass
class PickFile:
    """Picks of a run, one a line, on the disk as soon as they are made.

    A line that was cut short by a crash is as good as not written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     PickFile(Path(folder, "picks.txt")).add(7)
    ...     again = PickFile(Path(folder, "picks.txt"))
    ...     again.add(3)
    ...     again.rows(), Path(folder, "picks.txt").read_text()
    ([7, 3], '0 7\\n1 3\\n')
    """

    path: Path
    _rows: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.path.exists():
            return
        whole, newline, _ = self.path.read_text(encoding="ascii", errors="replace").rpartition("\n")
        found = {}
        for line in whole.splitlines():
            number, _, row = line.partition(" ")
            if not (number.isdecimal() and row.isdecimal()):
                raise DatasetError(f"{self.path}: expected picks, got {line!r}; delete the file")
            found[int(number)] = int(row)
        while len(self._rows) in found:
            self._rows.append(found[len(self._rows)])
        size = len((whole + newline).encode("ascii"))
        if size < self.path.stat().st_size:
            os.truncate(self.path, size)

    def rows(self) -> list[int]:
        """The picks so far."""
        return list(self._rows)

    def add(self, row: int) -> None:
        """One more: it survives the end of this process."""
        with self.path.open("a", encoding="ascii", newline="\n") as stream:
            stream.write(f"{len(self._rows)} {row}\n")
        self._rows.append(row)


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
    """A shared lock on a folder that is there, without what a killed run left half-written."""
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            continue  # it was removed in between
        if _lock(handle, "alone"):
            for part in folder.rglob(".evgp-*.part"):
                part.unlink(missing_ok=True)
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
