"""What a study is: cells that can run alone, figures and claims that are made of their rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from experiments.rows import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Scale: TypeAlias = Literal["smoke", "laptop", "paper"]
SCALES: tuple[Scale, ...] = ("smoke", "laptop", "paper")
Verdict: TypeAlias = Literal["holds", "holds in part", "does not hold", "not measured"]
Settings: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Cell:
    """A piece of work by the name of its function, with all that decides what comes out.

    Studies that ask for the same cell share it.

    >>> Cell("evgp.studies.contests:play", {"seed": 1}).settings
    {'seed': 1}
    """

    work: str
    settings: Settings


@dataclass(frozen=True)
class Claim:
    """What the paper says of a figure, what our rows say, and whether they agree."""

    paper: str
    ours: str
    verdict: Verdict


def verdict(found: Sequence[bool]) -> Verdict:
    """On every dataset, on some, on none; or nowhere looked at.

    >>> verdict([True, False])
    'holds in part'
    """
    if not found:
        return "not measured"
    return "holds" if all(found) else "holds in part" if any(found) else "does not hold"


@dataclass(frozen=True)
class Study:
    """One figure or table of the paper by name.

    `scales` are the settings of each scale. `departures` say in words how the laptop's differ from
    the paper, and `paper_departures` where even the scale named after it does. `cells` are ordered
    so that those which come first are worth most. `draw` and `claims` see rows alone, as they are
    read from the file. Cells that measure time run `alone`, one after another with all cores.
    `table` is one of the rows in Markdown, where that says more than a figure.
    """

    name: str
    title: str
    paper: str
    shows: str
    scales: Mapping[Scale, Settings]
    departures: str
    cells: Callable[[Settings], Sequence[Cell]]
    draw: Callable[[Rows], "Mapping[str, Figure]"]
    claims: Callable[[Rows], Sequence[Claim]]
    table: Callable[[Rows], str] | None = None
    alone: bool = False
    paper_departures: str = ""
