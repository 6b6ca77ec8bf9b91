"""This machine: available memory, speed, and threads."""

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
# In cgroups of version 1, a larger limit means "no limit".
_NO_LIMIT = 2**60


@dataclass(frozen=True)
class Cgroup:
    """The file names of one version of Linux control groups (containers)."""

    limit: str
    used: str
    cached: str


_VERSION_1 = Cgroup("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_VERSION_2 = Cgroup("memory.max", "memory.current", "inactive_file")


def available_memory(root: Path = _ROOT, own: Path = _OWN) -> int:
    """Bytes available without swapping, within the tightest limit of the containers around us."""
    free = int(psutil.virtual_memory().available)
    return max(0, min([free, *(limit - used for limit, used in limits(root, own))]))


def limits(root: Path = _ROOT, own: Path = _OWN) -> Iterator[tuple[int, int]]:
    """Memory limit and use of every container around this process.

    Files that were read stay cached while the memory is not needed. The cache does not count as
    use: else nothing would be free after reading a pool larger than memory.
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
            base, kind = root, _VERSION_2
        elif "memory" in parts.split(","):
            base, kind = root / "memory", _VERSION_1
        else:
            continue
        inside = base / path.lstrip("/")
        for folder in (inside, *inside.parents):
            if not folder.is_relative_to(base):
                continue
            try:
                limit, used = (int((folder / name).read_text()) for name in (kind.limit, kind.used))
            except (OSError, ValueError):  # the limit may be "max"
                continue
            if limit < _NO_LIMIT:
                yield limit, max(0, used - _cached(folder, kind.cached))


def _cached(folder: Path, name: str) -> int:
    try:
        entries = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return int(entries.get(name, 0))
    except (OSError, ValueError):
        return 0


S = TypeVar("S")
T = TypeVar("T")


def own_version() -> str:
    """Version of this package; empty if it was never installed."""
    try:
        return version("evgp")
    except PackageNotFoundError:
        return ""


@cache
def speed() -> tuple[float, float]:
    """Float64 operations and bytes read per second, measured once within some 50 ms."""
    square = torch.ones(512, 512, dtype=torch.float64)
    tall, vector = torch.ones(8192, 1024), torch.ones(1024)
    product = seconds(lambda: square @ square)
    return 2 * 512**3 / product, tall.numel() * 4 / seconds(lambda: tall @ vector)


def seconds(work: Callable[[], object], times: int = 4) -> float:
    """How many seconds a piece of work takes, after one run to warm up."""
    work()
    start = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - start) / times


def each_alone(work: Callable[[S], T], items: Iterable[S]) -> Iterator[T]:
    """The results for all items, in order, each computed by a single thread.

    As many at a time as torch has threads. One item's sums are never split between threads,
    so the results are the same, to the last digit, for any number of threads.

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
        torch.set_num_threads(threads)  # a thread's own setting may have changed it for all
