"""Where pieces of work run, here or wherever an executor sends them, and who hears of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol, TypeVar, runtime_checkable

T = TypeVar("T")
Progress = Callable[[str, int, int], None]  # a stage, how much of it is done, and of how much


def silent(stage: str, done: int, total: int) -> None:
    """Tell nobody."""


def counted(progress: Progress, stage: str, total: int) -> Callable[[], None]:
    """A function that tells, each time it is called, that one more of `total` is done.

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
    """Runs pure functions; what it is given and gives back can be pickled."""

    def run(
        self,
        work: Callable[..., T],
        calls: Sequence[tuple[Any, ...]],
        names: Sequence[str],
        each: Callable[[], object] = lambda: None,
    ) -> list[T]:
        """The answers to all calls, in their order; `each` is called after each answer.

        `names` say what each call is about: for errors, and to send calls of one name to the place
        that saw the last one.
        """
        ...


@dataclass(frozen=True)
class Here:
    """In this process, one after another.

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
        """The answers to all calls, in their order."""
        made = []
        for call in calls:
            made.append(work(*call))
            each()
        return made
