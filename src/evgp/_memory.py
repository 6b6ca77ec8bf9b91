"""How much memory there is: of the machine, and of the containers around this process."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

_ROOT, _OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
# Above this, the first kind of container means "no limit".
_NO_LIMIT = 2**60


@dataclass(frozen=True)
class Kind:
    """One of the two kinds of containers that Linux has: the names of its files."""

    limit: str
    used: str
    cached: str


_FIRST = Kind("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_SECOND = Kind("memory.max", "memory.current", "inactive_file")


def available_memory(root: Path = _ROOT, own: Path = _OWN) -> int:
    """Bytes that can be had without swapping, within the narrowest container around us."""
    free = int(psutil.virtual_memory().available)
    return max(0, min([free, *(limit - used for limit, used in limits(root, own))]))


def limits(root: Path = _ROOT, own: Path = _OWN) -> Iterator[tuple[int, int]]:
    """Limit and use of every container around this process.

    Files that were read stay in memory while nobody else wants it; that is not counted as use, or
    a pool larger than memory would leave nothing free once it was read.
    """
    try:
        lines = [line.split(":", 2) for line in own.read_text().splitlines()]
    except OSError:
        return
    for line in lines:
        if len(line) != 3:
            continue
        _, parts, path = line
        if not parts:
            base, kind = root, _SECOND
        elif "memory" in parts.split(","):
            base, kind = root / "memory", _FIRST
        else:
            continue
        inside = base / path.lstrip("/")
        for folder in (inside, *inside.parents):
            if folder.is_relative_to(base) and (pair := _pair(folder, kind)) is not None:
                yield pair


def _pair(folder: Path, kind: Kind) -> tuple[int, int] | None:
    try:
        limit, used = (int((folder / name).read_text()) for name in (kind.limit, kind.used))
    except (OSError, ValueError):  # "max" is no number
        return None
    return (limit, max(0, used - _cached(folder, kind.cached))) if limit < _NO_LIMIT else None


def _cached(folder: Path, name: str) -> int:
    try:
        told = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return int(told.get(name, 0))
    except (OSError, ValueError):
        return 0
