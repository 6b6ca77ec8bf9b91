"""Studies: cells that run independently, and figures and claims made from their rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from evgp.comparison.cells import Cell, Settings, Store, Work, function_named
from evgp.comparison.rows import Records
from evgp.errors import DatasetError, UnknownName

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Scale: TypeAlias = Literal["smoke", "laptop", "paper"]
SCALES: tuple[Scale, ...] = ("smoke", "laptop", "paper")
Verdict: TypeAlias = Literal["holds", "holds in part", "does not hold", "not measured"]


@dataclass(frozen=True)
class Claim:
    """What the paper says about a figure, what our rows say, and whether they agree."""

    paper: str
    ours: str
    verdict: Verdict


def verdict(found: Sequence[bool]) -> Verdict:
    """On every dataset, on some, on none, or not measured.

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
    by importance. `draw` and `claims` see only rows, as read from the file. Cells that measure time
    run `alone`, one after another with all cores. `table` formats the rows in Markdown, where that
    is clearer than a figure.
    """

    name: str
    title: str
    paper: str
    shows: str
    scales: Mapping[Scale, Settings]
    departures: str
    cells: Callable[[Settings], Sequence[Cell]]
    draw: Callable[[Records], "Mapping[str, Figure]"]
    claims: Callable[[Records], Sequence[Claim]]
    table: Callable[[Records], str] | None = None
    alone: bool = False
    paper_departures: str = ""


# In the order of the paper; modules next to this one, each with a STUDY of the same name.
NAMES = (
    "initialisation-illustration",
    "variance-correlation",
    "sequential-selection",
    "batch-regression",
    "fit-and-bias",
    "other-criteria",
    "approximations",
    "classification-mlp",
    "classification-convolutions",
    "batchbald",
    "batch-size",
    "running-time",
    "width",
    "initial-points",
    "model-selection",
    "map-of-picks",
    "exchange-and-certificate",
)


def study_named(name: str) -> Study:
    """The study with this name.

    >>> study_named("model-selection").title
    'Which network: chosen without training'
    """
    if name not in NAMES:
        raise UnknownName.of(DatasetError)("a study", name, NAMES, "or worth")
    study = import_module(f"experiments.{name.replace('-', '_')}").STUDY
    assert isinstance(study, Study)
    return study


@dataclass(frozen=True)
class Change:
    """A change of the rows of a function, for cells with these settings.

    >>> Change("evgp.studies.contests:play", {"strategy": "badge"}).concerns(
    ...     Cell("evgp.studies.contests:play", {"strategy": "random"})
    ... )
    False
    """

    work: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def concerns(self, cell: Cell) -> bool:
        """Whether the rows of this cell changed."""
        settings = cell.settings
        return self.work == cell.work and all(
            name in settings and settings[name] == value for name, value in self.settings.items()
        )


# A cell's name contains its settings, not the code that runs it, nor defaults that it does not
# state. So every change of the results adds a line here, and no line is ever removed.
CHANGES: tuple[Change, ...] = (
    Change("evgp.studies.contests:play", {"strategy": "batchbald"}),  # 100 masks, not 10 networks
    Change(
        "evgp.studies.other_criteria:thinning"
    ),  # each point that is kept represents those around it
)


def version(cell: Cell) -> int:
    """Version of the rows of this cell: 1, plus the number of changes.

    >>> version(Cell("a:b", {"seed": 0}))
    1
    """
    return 1 + sum(change.concerns(cell) for change in CHANGES)


def store_in(folder: Path) -> Store:
    """The finished cells of all studies of a folder."""
    return Store(folder, version)


def work_named(work: str) -> Work:
    """The function of a cell; the first cells were recorded when studies were in the package.

    >>> work_named("evgp.studies.contests:play").__module__
    'experiments.contests'
    """
    return function_named(work.replace("evgp.studies.", "experiments."))
