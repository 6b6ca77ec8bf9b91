"""Progress of a run: a bar on a terminal or in a notebook, lines in a log, or a callback."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from time import perf_counter
from typing import Any

from evgp._executor import Progress, silent
from evgp._repr import duration
from evgp.errors import BadArgument, PoolError

_PACE = 0.1  # seconds between two updates of a bar in a notebook


@contextmanager
def reporting(progress: Any) -> Iterator[Progress]:
    """The callback for `progress=` of a public function: True shows a bar, False or None nothing.

    A function is called with (stage, done, total).

    >>> with reporting(print) as report:
    ...     report("picking", 1, 2)
    picking 1 2
    """
    kind = check_progress(progress)
    if callable(kind):
        yield kind
    elif kind:
        with bar() as move:
            yield move
    else:
        yield silent


def check_progress(progress: Any) -> Progress | bool:
    """The argument `progress`, checked: a function, True or False.

    >>> check_progress(None)
    False
    """
    if progress is None or isinstance(progress, bool):
        return bool(progress)
    if callable(progress) and not isinstance(progress, type):
        return progress
    from evgp._checks import shown  # it imports torch, which the command line should not wait for

    raise BadArgument.of(PoolError)(
        "progress",
        "as True, False or a function of (stage, done, total)",
        shown(progress),
    )


@contextmanager
def bar() -> Iterator[Progress]:
    """A bar in a notebook or terminal; a line for each tenth if stderr is a file or a pipe."""
    display = _notebook()
    if display is not None:
        with notebook_bar(display) as move:
            yield move
    elif sys.stderr is None:
        yield silent
    elif sys.stderr.isatty():
        with terminal_bar() as move:
            yield move
    else:
        yield tenths(lambda line: print(line, file=sys.stderr, flush=True))


@contextmanager
def terminal_bar() -> Iterator[Progress]:
    """A bar on stderr, which disappears when the run ends or fails."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    parts = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Bar(*parts, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as drawn:
        tasks: dict[str, TaskID] = {}

        def move(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                for task in tasks.values():
                    drawn.update(task, visible=False)
                tasks[stage] = drawn.add_task(stage, total=total)
            drawn.update(tasks[stage], completed=done, total=total)

        yield move


@contextmanager
def notebook_bar(display: Callable[..., Any]) -> Iterator[Progress]:
    """A bar in the output of a cell, by IPython's `display`; that of Rich needs ipywidgets."""
    handle: Any = None
    last = ("", 0.0)

    def move(stage: str, done: int, total: int) -> None:
        nonlocal handle, last
        now = perf_counter()
        if stage == last[0] and done < total and now - last[1] < _PACE:
            return
        last = (stage, now)
        text = f"{stage}: {done:,} of {total:,}"
        shape = f'<progress value="{done}" max="{max(1, total)}"></progress>'
        shown = {"text/plain": text, "text/html": f"{shape} {text}"}
        if handle is None:
            handle = display(shown, raw=True, display_id=True)
        else:
            handle.update(shown, raw=True)

    try:
        yield move
    finally:
        if handle is not None:
            handle.update({"text/plain": "", "text/html": ""}, raw=True)


def tenths(
    write: Callable[[str], object], left: Callable[[], float | None] = lambda: None
) -> Progress:
    """Writes a line for each tenth of a stage, with the seconds that are left if they are known.

    >>> report = tenths(print)
    >>> for done in range(0, 41, 2):
    ...     report("picking", done // 20, 2)
    0 of 2 picking
    1 of 2 picking
    2 of 2 picking
    >>> tenths(print, left=lambda: 200.0)("cells", 10, 300)
    10 of 300 cells, about 3 minutes left
    """
    seen: set[tuple[str, int]] = set()

    def move(stage: str, done: int, total: int) -> None:
        tenth = 10 * done // max(1, total)
        if (stage, tenth) not in seen:
            seen.add((stage, tenth))
            seconds = left()
            time = f", about {duration(seconds)} left" if seconds else ""
            write(f"{done:,} of {total:,} {stage}{time}")

    return move


def _notebook() -> Callable[..., Any] | None:
    """IPython's `display` if this process is the kernel of a notebook, else None."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if getattr(shell, "kernel", None) is None:
        return None
    display: Callable[..., Any] = import_module("IPython.display").display
    return display
