"""What a long run keeps on the disk: finished picks, and who is at work in a folder."""

import os
import re
import secrets
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from evgp._errors import DamageWarning
from evgp._reading import read_bytes
from evgp.datasets.disk import KEPT, naming

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
        content = read_bytes(self.path)
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
        if size < len(content):
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
