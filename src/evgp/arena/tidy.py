"""From rows to runs that can be compared: one label axis, the most members, nothing half done."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from evgp._errors import DatasetError
from evgp.arena.row import Row
from evgp.report.words import several


@dataclass(frozen=True)
class ComparisonRun:
    """One strategy with one seed: its rows on the label axis of the dataset, in order."""

    strategy: str
    seed: int
    rows: tuple[Row, ...]

    def values(self, metric: str) -> tuple[float, ...] | None:
        """One metric after each round, or None where some of it is missing or infinite."""
        made = tuple(float(getattr(row, metric)) for row in self.rows)
        return made if all(map(isfinite, made)) else None


@dataclass(frozen=True)
class Tidy:
    """The runs of one dataset that share its label axis, and what had to be left out."""

    labels: tuple[int, ...]
    runs: tuple[ComparisonRun, ...]
    notes: tuple[str, ...]


def tidy(rows: Sequence[Row]) -> Tidy:
    """Runs of one dataset; of a run with several member counts the one with the most is kept.

    The label axis is the one that most runs have (the longest of several), so that a run that is
    still going on neither cuts the others short nor counts for more than it is.
    """
    for name in ("kind", "batch"):
        found = sorted({getattr(row, name) for row in rows})
        if len(found) > 1:
            raise DatasetError(
                f"expected one {name} for the dataset {rows[0].dataset!r}, got {found[0]} and "
                f"{found[1]}; keep them in separate tables"
            )
    grouped: dict[tuple[str, int], dict[int, dict[int, Row]]] = {}
    for row in rows:
        run = grouped.setdefault((row.strategy, row.seed), {})
        run.setdefault(row.members, {})[row.labels] = row
    kept = {key: run[max(run)] for key, run in grouped.items()}
    axes = Counter(tuple(sorted(run)) for run in kept.values())
    labels = max(axes, key=lambda axis: (axes[axis], len(axis)))
    runs = [
        ComparisonRun(strategy, seed, tuple(run[at] for at in labels))
        for (strategy, seed), run in kept.items()
        if set(labels) <= set(run)
    ]
    runs.sort(key=lambda run: run.seed)
    return Tidy(labels, tuple(runs), tuple(_notes(kept, labels)))


def _notes(kept: dict[tuple[str, int], dict[int, Row]], labels: tuple[int, ...]) -> list[str]:
    made = []
    for (strategy, seed), run in kept.items():
        absent = len(set(labels) - set(run))
        if absent:
            made.append(
                f"Seed {seed} of {strategy} is left out: it lacks {several(absent, 'round')} of "
                f"{len(labels)}."
            )
    if any(set(run) - set(labels) for run in kept.values()):
        made.append(
            f"Some runs have rounds that others lack; all are compared from {labels[0]:,} to "
            f"{labels[-1]:,} labels."
        )
    return made
