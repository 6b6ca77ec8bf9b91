"""Work in separate processes that report their progress."""

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

from evgp.errors import DataWarning, ExecutorError

_STEPS: "SimpleQueue[int] | None" = None  # in a worker process: where it reports its steps


def cores() -> int:
    """Number of cores that this process may use."""
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable else os.cpu_count() or 1


def in_processes(
    work: Callable[..., object],
    calls: Sequence[tuple[Any, ...]],
    count: int,
    heard: Callable[[int], object],
) -> None:
    """Call `work` with each of `calls` in `count` processes that share the cores.

    The work stores its own results; whenever it calls `report_step`, `heard` is called here. `work`
    and its arguments can be pickled.
    """
    context = get_context("spawn")
    steps: SimpleQueue[int] = context.SimpleQueue()
    with _pool(count, context, (max(1, cores() // count), steps)) as pool:
        waiting: set[Future[object]] = {pool.submit(work, *call) for call in calls}
        while waiting:
            ready, waiting = wait(waiting, 0.2, FIRST_COMPLETED)
            while not steps.empty():
                heard(steps.get())
            for future in ready:
                try:
                    future.result()
                except BrokenProcessPool as error:
                    raise ExecutorError(
                        "a worker process was killed, perhaps for lack of memory; run again "
                        "with fewer processes (jobs=1): finished work is kept"
                    ) from error


def report_step(count: int = 1) -> None:
    """Report finished steps, from work in a separate process."""
    assert _STEPS is not None
    _STEPS.put(count)


@contextmanager
def _pool(count: int, context: Any, arguments: tuple[Any, ...]) -> Iterator[ProcessPoolExecutor]:
    """Worker processes, which end at once if the work fails or is interrupted."""
    pool = ProcessPoolExecutor(count, mp_context=context, initializer=_begin, initargs=arguments)
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


def _begin(threads: int, steps: "SimpleQueue[int]") -> None:
    global _STEPS  # noqa: PLW0603  one per process
    _STEPS = steps
    torch.set_num_threads(threads)
    # Warnings about the data were shown before the run; here they would repeat for each piece.
    simplefilter("ignore", DataWarning)
    Thread(target=_end_with_the_parent, daemon=True).start()


def _end_with_the_parent() -> None:
    """Exit when the parent is killed; otherwise the process would wait forever."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
