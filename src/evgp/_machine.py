"""What this machine has: speed and threads."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import chain, islice
from typing import TypeVar

import torch

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
