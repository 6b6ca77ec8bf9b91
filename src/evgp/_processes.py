"""Pieces of work in processes of their own, which tell how far they are."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing import get_context, parent_process
from multiprocessing.queues import SimpleQueue
from threading import Thread
from typing import Any
from warnings import simplefilter

import torch

from evgp._errors import DataWarning, ExecutorError

_TOLD: "SimpleQueue[int] | None" = None  # in a process of its own: where steps are told


def cores() -> int:
    """How many this process may use."""
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable else os.cpu_count() or 1


def in_processes(
    work: Callable[..., object],
    calls: Sequence[tuple[Any, ...]],
    count: int,
    heard: Callable[[int], object],
) -> None:
    """Call `work` with each of `calls` in `count` processes that share the cores.

    The work keeps what it makes; whenever it calls `tell`, `heard` is called here. `work` and all
    it is given can be pickled.
    """
    context = get_context("spawn")
    told: SimpleQueue[int] = context.SimpleQueue()
    with _pool(count, context, (max(1, cores() // count), told)) as pool:
        waiting: set[Future[object]] = {pool.submit(work, *call) for call in calls}
        while waiting:
            ready, waiting = wait(waiting, 0.2, FIRST_COMPLETED)
            while not told.empty():
                heard(told.get())
            for one in ready:
                try:
                    one.result()
                except BrokenProcessPool as error:
                    raise ExecutorError(
                        "a process was ended from outside, perhaps for want of memory; run again "
                        "with fewer (jobs=1): what is finished is kept"
                    ) from error


def tell() -> None:
    """One step is done; for work that runs in a process of its own."""
    assert _TOLD is not None
    _TOLD.put(1)


@contextmanager
def _pool(count: int, context: Any, given: tuple[Any, ...]) -> Iterator[ProcessPoolExecutor]:
    """Processes that end at once when the work fails or is stopped."""
    pool = ProcessPoolExecutor(count, mp_context=context, initializer=_begin, initargs=given)
    try:
        yield pool
    except BaseException:
        workers = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            with suppress(OSError, ValueError):
                worker.terminate()
        raise
    pool.shutdown()


def _begin(threads: int, told: "SimpleQueue[int]") -> None:
    global _TOLD  # noqa: PLW0603  one a process
    _TOLD = told
    torch.set_num_threads(threads)
    # What the data warns of was told before anything ran; here it would be told for each piece.
    simplefilter("ignore", DataWarning)
    Thread(target=_end_with_the_parent, daemon=True).start()


def _end_with_the_parent() -> None:
    """A process whose parent was killed would wait for work for ever, and keep its memory."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
