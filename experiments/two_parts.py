"""Studies of picks one by one and of picks in batches, judged by variance and by error."""

from collections.abc import Sequence

import numpy as np

from evgp.comparison.rows import Record, Records, column, distinct, where
from evgp.comparison.statistics import mean_and_error
from experiments.contests import panels
from experiments.data import TITLES
from experiments.sequential_selection import VARIANCE, overall
from experiments.verdicts import Gap, clear, lead, percent

CENTRAL = {VARIANCE: "output variance (90th percentile)", "mse": "test MSE"}
READ = "in percent of the larger of the two, ± standard error over seeds, below zero if behind"
RULE = "By both metrics, by more than a standard error, in batches and one by one"
SHARED = "Cells shared the cores with others, so seconds are rough"


def one_by_one(rows: Records) -> list[Record]:
    """Rows of points picked one by one."""
    return [row for row in rows if "ev" in row]


def batches(rows: Records) -> list[Record]:
    """Rows of points picked in batches."""
    return [row for row in rows if "batch" in row]


def gaps(
    rows: Records, metric: str, ours: str, theirs: str
) -> tuple[dict[str, Gap], dict[str, Gap]]:
    """Differences of two strategies, in batches and one by one, on datasets with both."""
    paths = {TITLES[name]: where(one_by_one(rows), dataset=name) for name in _names(rows)}
    return (
        {
            title: lead(subset, metric, ours, theirs)
            for title, subset in panels(batches(rows)).items()
            if _has(subset, ours, theirs)
        },
        {
            title: overall(subset, metric, ours, theirs)
            for title, subset in paths.items()
            if _has(subset, ours, theirs)
        },
    )


def _names(rows: Records) -> list[str]:
    return distinct(one_by_one(rows), "dataset")


def _has(rows: Records, *ways: str) -> bool:
    return {*ways} <= {*distinct(rows, "strategy")}


def ahead(rows: Records, ours: str, theirs: str) -> list[bool]:
    """Whether one strategy is clearly better by each metric, in batches and one by one."""
    return [
        clear(gap)
        for metric in CENTRAL
        for part in gaps(rows, metric, ours, theirs)
        for gap in part.values()
    ]


def beside(rows: Records, ours: str, theirs: str) -> str:
    """The lead of one strategy over another by each metric, in batches and one by one."""
    return "; ".join(
        f"{words}, in batches {_listed(batch)}, one by one {_listed(alone)}"
        for metric, words in CENTRAL.items()
        for batch, alone in [gaps(rows, metric, ours, theirs)]
    )


def _listed(found: dict[str, Gap]) -> str:
    return ", ".join(f"{title} {percent(gap)}" for title, gap in found.items()) or "not run"


def seconds(rows: Records, way: str, other: str = "evgp") -> dict[str, Gap]:
    """Log ratio of the times that two strategies take to pick, paired by seeds."""
    factors_by_title = {}
    for title, subset in panels(batches(rows)).items():
        took = [
            {
                item: _sum(where(subset, strategy=each, seed=item))
                for item in distinct(subset, "seed")
            }
            for each in (way, other)
        ]
        both = [(took[0][item], took[1][item]) for item in took[0]]
        pairs = [pair for pair in both if min(pair) > 0]
        if pairs:
            factors_by_title[title] = mean_and_error(float(np.log(a / b)) for a, b in pairs)
    return factors_by_title


def _sum(rows: Records) -> float:
    return float(column(rows, "pick_seconds").sum())


def factors(found: dict[str, Gap]) -> str:
    """Geometric means, and the logarithms that verdicts use."""
    return ", ".join(
        f"{title} {np.exp(mean):.2f} (logarithm {mean:+.2f}"
        + (f" ± {error:.2f})" if np.isfinite(error) else ")")
        for title, (mean, error) in found.items()
    ) or "not run"  # fmt: skip


def any_of(found: Sequence[bool]) -> list[bool]:
    """Whether any of several outcomes is true; None if there are none."""
    return [any(found)] if found else []
