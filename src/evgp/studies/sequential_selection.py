"""Points picked one by one: the criterion beside the variance and error of trained networks."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evgp import metrics
from evgp.studies.data import TITLES
from evgp.studies.rows import Rows, column, distinct, mean_by, where
from evgp.studies.set_figures import scattered
from evgp.studies.sets import by, correlation, ways
from evgp.studies.study import Cell, Claim, Settings, Study, verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def cells(settings: Settings) -> Sequence[Cell]:
    """Random sets, and the path of EV-GP; then random sets for networks as the kernel has them."""
    kernel = {**settings, "random": {**settings["random"], "training": "adam"}}
    return [
        *ways(strategies=["evgp", "random"], **settings),
        *ways(strategies=["random"], **kernel),
    ]


def draw(rows: Rows) -> "dict[str, Figure]":
    """The paper's three columns for each dataset."""
    made = scattered(
        by("descent", rows),
        [("ev", "output_variance_p90")],
        {"evgp": "ev"},
        ["output_variance_p90", "mse"],
    )
    return {"sequential-selection": made}


def claims(rows: Rows) -> Sequence[Claim]:
    """What the paper says of points picked one by one."""
    kernel, rows = by("adam", rows), by("descent", rows)
    names = distinct(rows, "dataset")
    found = {name: _both(where(rows, dataset=name)) for name in names}
    high = [min(pair) > 0.5 for pair in found.values()]
    lower = {metric: {name: _below(where(rows, dataset=name), metric) for name in names}
             for metric in ("output_variance_p90", "mse")}  # fmt: skip
    fall = {name: falls(where(rows, dataset=name), "mse") for name in names}
    return [
        Claim(
            "The criterion is highly correlated with the output variance of trained networks.",
            "Spearman and Pearson of the predicted mean variance with the 90th percentile "
            f"observed, over random sets: {_pairs(found)}. The kernel is that of networks in its "
            "own parametrisation; for these, trained by Adam to a small loss: "
            + _pairs({name: _both(where(kernel, dataset=name)) for name in names})
            + ".",
            verdict(high),
        ),
        Claim(
            "Picking by the criterion progressively reduces the output variance, and consistently "
            "outperforms random sets.",
            f"Share of sizes at which the variance is below that of random sets: "
            f"{_listed(lower['output_variance_p90'])}.",
            verdict([value > 0.9 for value in lower["output_variance_p90"].values()]),
        ),
        Claim(
            "Picking by the criterion also reduces the test error.",
            f"Test MSE at the last size over that at the first: "
            f"{', '.join(f'{TITLES[name]} {value:.2f}' for name, value in fall.items())}; share "
            f"of sizes at which it is below that of random sets: {_listed(lower['mse'])}.",
            verdict([value < 1 for value in fall.values()]),
        ),
    ]


def _both(rows: Rows) -> tuple[float, float]:
    """Spearman and Pearson of what the criterion predicts and what is observed."""
    return (
        -correlation(rows, "ev", "output_variance_p90"),
        -correlation(rows, "ev", "output_variance_p90", metrics.pearson),
    )


def _pairs(found: dict[str, tuple[float, float]]) -> str:
    return ", ".join(f"{TITLES[name]} {s:.2f} and {p:.2f}" for name, (s, p) in found.items())


def _below(rows: Rows, metric: str) -> float:
    """At how many sizes picks are better than the mean of random sets."""
    at, ours = mean_by(where(rows, strategy="evgp"), "labels", metric)
    other, theirs = mean_by(where(rows, strategy="random"), "labels", metric)
    both = [(ours[at.index(n), 0], theirs[other.index(n), 0]) for n in at if n in other]
    return float(np.mean([a < b for a, b in both])) if both else float("nan")


def falls(rows: Rows, metric: str) -> float:
    """What a metric of the picks is at the largest size, over what it is at the smallest."""
    at, _ = mean_by(where(rows, strategy="evgp"), "labels", metric)
    first, last = (column(where(rows, strategy="evgp", labels=n), metric) for n in (at[0], at[-1]))
    return float(last.mean() / first.mean())


def _listed(found: dict[str, float]) -> str:
    return ", ".join(f"{TITLES[name]} {100 * value:.0f} %" for name, value in found.items())


PAPER: dict[str, Any] = {
    "datasets": ["protein", "boston", "naval", "optdigits", "kin8nm"],
    "seeds": 1, "random": {"sizes": [5, 10, 20, 30, 40, 50, 60, 80, 100], "draws": 20},
    "sizes": [5, 10, 20, 30, 40, 50, 60, 80, 100], "pool": 2000, "test": 2000, "width": 512,
    "members": 50, "steps": 2000,
}  # fmt: skip
LAPTOP: dict[str, Any] = {
    **PAPER, "random": {"sizes": [5, 10, 20, 40, 60], "draws": 5}, "sizes": [5, 10, 20, 40, 60],
    "pool": 1000, "test": 1000, "width": 256, "members": 10, "steps": 1000,
}  # fmt: skip
SMOKE: dict[str, Any] = {
    **PAPER, "datasets": ["random-model"], "random": {"sizes": [3, 6], "draws": 2},
    "sizes": [3, 6], "pool": 30, "test": 20, "width": 8, "members": 2, "steps": 5,
}  # fmt: skip
LESS = (
    "Networks of width 256 in place of 512, 10 in place of 50, 1,000 steps in place of 2,000; "
    "pools of 1,000 points. The paper does not say how many random sets it drew; here 5 of each "
    "size."
)

STUDY = Study(
    name="sequential-selection",
    title="Points picked one by one",
    paper="figures small-set, appx-small-set",
    shows="The criterion against the 90th percentile of the variance over random sets, the path of "
    "EV-GP, and variance and error by the size of the set.",
    scales={"paper": PAPER, "laptop": LAPTOP, "smoke": SMOKE},
    departures=LESS,
    cells=cells,
    draw=draw,
    claims=claims,
)
