"""Executors, which run pieces of work here or elsewhere, and callbacks for progress."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol, TypeVar, runtime_checkable

T = TypeVar("T")
Progress = Callable[[str, int, int], None]  # stage, done, total


def silent(stage: str, done: int, total: int) -> None:
    """Report nothing."""


def counted(progress: Progress, stage: str, total: int) -> Callable[[], None]:
    """A function that reports, each time it is called, that one more of `total` is done.

    >>> each = counted(print, "reading", 2)
    >>> each(), each()
    reading 1 2
    reading 2 2
    (None, None)
    """
    done = count(1)
    return lambda: progress(stage, next(done), total)


@runtime_checkable
class Executor(Protocol):
    """Runs pure functions; arguments and results can be pickled."""

    def run(
        self,
        work: Callable[..., T],
        calls: Sequence[tuple[Any, ...]],
        names: Sequence[str],
        each: Callable[[], object] = lambda: None,
    ) -> list[T]:
        """The results of all calls, in order; `each` is called after each result.

        `names` identify the calls: for errors, and to send calls with the same name to the same
        worker.
        """
        ...


@dataclass(frozen=True)
class Here:
    """Runs the calls in this process, one after another.

    >>> Here().run(pow, [(2, 3), (3, 2)], ["one", "two"])
    [8, 9]
    """

    def run(
        self,
        work: Callable[..., T],
        calls: Sequence[tuple[Any, ...]],
        names: Sequence[str],
        each: Callable[[], object] = lambda: None,
    ) -> list[T]:
        """The results of all calls, in order."""
        results = []
        for call in calls:
            results.append(work(*call))
            each()
        return results
