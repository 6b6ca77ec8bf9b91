"""Cells of a study on stderr as they finish, and how long the rest will take."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from evgp.cli._output import tell
from experiments.pace import spoken


@contextmanager
def watched(quiet: bool) -> Iterator[Callable[[int, int, float | None], object]]:
    """A bar that counts down for a terminal, a line for each finished cell for a pipe."""
    if quiet:
        yield lambda done, total, left: None
        return
    if not sys.stderr.isatty():
        yield lambda done, total, left: tell(counted(done, total, left))
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, Task, TextColumn
    from rich.progress import Progress as Bar
    from rich.text import Text

    # Cells take minutes, longer than the window in which the bar's own column looks for a pace.
    class Left(ProgressColumn):
        max_refresh = 0.5

        def render(self, task: Task) -> Text:
            until = task.fields["until"]
            return Text("" if until is None else ahead(max(0.0, until - monotonic())))

    parts = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Left())
    with Bar(*parts, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("cells", total=None, until=None)

        def move(done: int, total: int, left: float | None) -> None:
            until = None if left is None else monotonic() + left
            bar.update(task, completed=done, total=total, until=until)

        yield move


def counted(done: int, total: int, left: float | None) -> str:
    """How far a run is.

    >>> counted(12, 36, 1440.0), counted(0, 36, None), counted(36, 36, 0.0)
    ('12 of 36 cells, about 24 min left', '0 of 36 cells', '36 of 36 cells')
    """
    rest = "" if left is None or done == total else f", {ahead(left)}"
    return f"{done:,} of {total:,} cells{rest}"


def ahead(seconds: float) -> str:
    """What is left, in few words.

    >>> ahead(90.0), ahead(0.0)
    ('about 90 s left', 'nearly done')
    """
    return f"about {spoken(seconds)} left" if seconds >= 1 else "nearly done"
