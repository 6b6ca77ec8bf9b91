"""What this machine has: memory that may be used, and speed."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import chain, islice
from pathlib import Path
from typing import TypeVar

import psutil
import torch

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


S = TypeVar("S")
T = TypeVar("T")


def own_version() -> str:
    """Of this package; empty where it is run from its sources, never installed."""
    try:
        return version("evgp")
    except PackageNotFoundError:
        return ""


@cache
def speed() -> tuple[float, float]:
    """Operations in float64 and bytes read, each a second, measured once in a few hundredths."""
    square = torch.ones(512, 512, dtype=torch.float64)
    tall, vector = torch.ones(8192, 1024), torch.ones(1024)
    product = seconds(lambda: square @ square)
    return 2 * 512**3 / product, tall.numel() * 4 / seconds(lambda: tall @ vector)


def seconds(work: Callable[[], object], times: int = 4) -> float:
    """How long a piece of work takes, once it is warm."""
    work()
    began = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - began) / times


def each_alone(work: Callable[[S], T], items: Iterable[S]) -> Iterator[T]:
    """The answers for all items, in their order, each worked on by a single thread.

    As many at a time as torch has threads. One piece of work never shares its sums between threads,
    so the answers are the same, to the last digit, for any number of them.

    >>> list(each_alone(lambda x: x * x, [1, 2, 3]))
    [1, 4, 9]
    """
    threads, rest = torch.get_num_threads(), iter(items)
    first = list(islice(rest, 2))
    if threads == 1 or len(first) < 2:
        torch.set_num_threads(1)
        try:
            yield from map(work, chain(first, rest))
        finally:
            torch.set_num_threads(threads)
        return
    waiting: deque[Future[T]] = deque()
    pool = ThreadPoolExecutor(threads, "evgp", torch.set_num_threads, (1,))
    try:
        for item in chain(first, rest):
            waiting.append(pool.submit(work, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)  # what a thread sets for itself, libraries may take for all
