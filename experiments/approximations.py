"""Cheaper kernels and posteriors: empirical, sparse, and linearised sparse."""

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

from evgp.comparison.cells import Cell, Settings
from evgp.comparison.rows import Records, distinct, where
from evgp.comparison.statistics import mean_by
from experiments.contests import NAMES, contest, curves, panels
from experiments.sequential_selection import LAPTOP, LESS, MORE, PAPER, SMOKE
from experiments.sets import scattered, ways
from experiments.study import Claim, Study, verdict
from experiments.two_parts import (
    CENTRAL,
    READ,
    RULE,
    SHARED,
    ahead,
    batches,
    beside,
    factors,
    one_by_one,
    seconds,
)
from experiments.verdicts import clear

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WAYS = ("evgp", "evgp-emp", "evgp-sparse", "evgp-linear")
_DATA = ["boston", "naval", "kin8nm", "protein"]


def cells(settings: Settings) -> Sequence[Cell]:
    """Cells of points picked one by one, and in batches."""
    return [
        *ways(strategies=[*WAYS, "random"], **settings["sequential"]),
        *contest(strategies=[*WAYS, "random"], **settings["batch"]),
    ]


def draw(rows: Records) -> "dict[str, Figure]":
    """Draw the variance by the size of sets, and the batches."""
    paths = dict.fromkeys(WAYS, "ev")
    figures = {"approximations": scattered(one_by_one(rows), [], paths, [*CENTRAL])}
    if batches(rows):
        figures["approximations-batch"] = curves(panels(batches(rows)), [*CENTRAL])
    return figures


def claims(rows: Records) -> Sequence[Claim]:
    """The claims of the paper about approximations."""
    left = {way: _left(one_by_one(rows), way) for way in WAYS}
    slower = seconds(rows, "evgp-sparse")
    return [
        Claim(
            "The empirical kernel loses some performance but is useful.",
            f"Its lead on the exact kernel, {READ}: {beside(rows, 'evgp-emp', 'evgp')}. On random: "
            f"{beside(rows, 'evgp-emp', 'random')}. It loses where it is behind the exact kernel, "
            f"and is useful where it is ahead of random. {RULE}: holds if both on every dataset, "
            "in part if any.",
            verdict([*ahead(rows, "evgp", "evgp-emp"), *ahead(rows, "evgp-emp", "random")]),
        ),
        Claim(
            "The sparse posterior is still a useful approximation.",
            f"Its lead on the exact one: {beside(rows, 'evgp-sparse', 'evgp')}. On random: "
            f"{beside(rows, 'evgp-sparse', 'random')}. {RULE}: holds if it is ahead of random on "
            "every dataset, in part if on any.",
            verdict(ahead(rows, "evgp-sparse", "random")),
        ),
        Claim(
            "A linear approximation on top of it worsens the selection.",
            f"Lead of linearised on sparse: {beside(rows, 'evgp-linear', 'evgp-sparse')}. "
            "Predicted variance left by picks one by one, over that of exact ones, mean over "
            "datasets: "
            + ", ".join(f"{NAMES[way]} {value:.3f}" for way, value in left.items())
            + f". {RULE}: holds if it is behind on every dataset, in part if on any.",
            verdict(ahead(rows, "evgp-sparse", "evgp-linear")),
        ),
        Claim(
            "For small sets the sparse posterior brings no gain in time.",
            "Seconds to pick in batches over those with the exact posterior, geometric mean: "
            f"{factors(slower)}. {SHARED}. Holds if the logarithm is not below zero by more than a "
            "standard error on any dataset, in part if not on some.",
            verdict([not clear((-m, error)) for m, error in slower.values() if isfinite(error)]),
        ),
    ]


def _left(rows: Records, way: str) -> float:
    """Ratio of the mean predicted variance of a path to that of exact picks, at the last size."""
    ratios = []
    for name in distinct(rows, "dataset"):
        ends = [
            mean_by(where(rows, dataset=name, strategy=item), "labels", "ev")[1]
            for item in (way, "evgp")
        ]
        if all(len(end) for end in ends):
            ratios.append(ends[0][-1, 0] / ends[1][-1, 0])
    return sum(ratios) / len(ratios) if ratios else float("nan")


_BATCH: dict[str, Any] = {
    "datasets": ["naval", "kin8nm"], "seeds": 5, "budget": 100, "batch": 20, "members": 50,
}  # fmt: skip

_INDUCING = "200 inducing points throughout, where the authors took 30 to 100 one by one."

STUDY = Study(
    name="approximations",
    title="Empirical, sparse and linearised",
    paper="figures appx-regr-sntkgp-incremental, appx-small-set-batch-sntkgp",
    shows="Variance and error with the exact NTKGP, the empirical kernel, the sparse posterior and "
    "its linearised form.",
    scales={
        "paper": {"sequential": {**PAPER, "datasets": _DATA}, "batch": _BATCH},
        "laptop": {
            "sequential": {**LAPTOP, "datasets": _DATA},
            "batch": {**_BATCH, "seeds": 3, "members": 10},
        },
        "smoke": {
            "sequential": SMOKE,
            "batch": {
                **_BATCH, "datasets": ["boston"], "seeds": 1, "budget": 4, "batch": 2,
                "members": 2, "width": 8, "steps": 5, "pool": 40, "test": 20,
            },
        },
    },
    departures=f"{LESS} Batches: 10 networks in place of 50, 3 seeds in place of 5. {_INDUCING}",
    paper_departures=f"{MORE} {_INDUCING}",
    cells=cells,
    draw=draw,
    claims=claims,
)  # fmt: skip
