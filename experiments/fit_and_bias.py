"""Does the criterion predict the test error if the network suits the data?"""

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from evgp import metrics
from evgp.comparison.cells import Cell, Settings
from evgp.comparison.rows import Records, column, distinct, where
from evgp.comparison.statistics import mean_and_error
from experiments.data import TITLES
from experiments.sequential_selection import (
    LAPTOP,
    LESS,
    MORE,
    PAPER,
    SMOKE,
    ends,
    heights,
    overall,
)
from experiments.sets import correlations, scattered, ways
from experiments.study import Claim, Study, Verdict
from experiments.verdicts import Gap, graded, hundredths, percent, rule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BIAS = (
    "The bias, for the paper that of networks trained on the whole pool, is that at {} random "
    "labels."
)
_STRONG, _WEAK = ("random-model", "boston"), ("kin8nm", "protein")
_DATA = ["random-model", "boston", "kin8nm", "protein", "naval", "optdigits"]


def cells(settings: Settings) -> Sequence[Cell]:
    """Cells of random sets and of the picks of EV-GP, also on synthetic data."""
    return ways(strategies=["evgp", "random"], **settings)


def points(rows: Records) -> dict[str, tuple[list[float], list[float]]]:
    """Pearson correlation of criterion and error, and the bias, by dataset and seed."""
    entries = {}
    for name in distinct(rows, "dataset"):
        subset = where(rows, dataset=name)
        last = where(subset, labels=max(distinct(subset, "labels")), strategy="random")
        bias = [
            float(column(where(last, seed=item), "bias").mean()) for item in distinct(last, "seed")
        ]
        entries[name] = (correlations(subset, "ev", "mse", metrics.pearson), bias)
    return entries


def draw(rows: Records) -> "dict[str, Figure]":
    """Draw correlation against bias, and the points behind the correlations."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6, 3.6), layout="constrained")
    axes = figure.subplots()
    for name, values in points(rows).items():
        correlated, bias = (mean_and_error(value)[0] for value in values)
        axes.scatter(correlated, bias, color="#3d4fd1", s=30)
        axes.annotate(
            TITLES[name], (correlated, bias), xytext=(0, 6), textcoords="offset points", fontsize=8,
            ha="center",
        )  # fmt: skip
    axes.set(
        xlabel="Pearson of criterion and test MSE",
        ylabel="empirical bias at the largest random sets",
    )
    axes.margins(x=0.25, y=0.15)
    axes.spines[["top", "right"]].set_visible(False)
    return {
        "fit-and-bias": figure,
        "fit-and-bias-examples": scattered(rows, [("ev", "mse")], {"evgp": "ev"}, ["mse"]),
    }


def claims(rows: Records) -> Sequence[Claim]:
    """The claims of the paper about suitable networks."""
    values = {name: pair for name, pair in points(rows).items() if pair[0]}
    mean = {name: mean_and_error(pair[0])[0] for name, pair in values.items()}
    labels = max(distinct(rows, "labels"))
    right = [
        (mean[a] < mean[b]) == (mean_and_error(values[a][1])[0] < mean_and_error(values[b][1])[0])
        for a, b in combinations(values, 2)
    ]
    half = np.median(list(mean.values()))
    weak = [name for name in values if mean[name] > half or name in _WEAK]
    listed = [(a, b) for a in _STRONG for b in _WEAK if a in mean and b in mean]
    few = "; one seed" if len(distinct(rows, "seed")) < 2 else ""
    return [
        Claim(
            "Where the criterion is more correlated with the test error, the achievable error is "
            "lower: the network suits the data.",
            "Pearson of criterion and test MSE over random sets (negative, as the criterion is "
            f"minus a variance), and bias at {labels} labels: "
            + ", ".join(
                f"{TITLES[name]} " + " and ".join(hundredths(mean_and_error(item)) for item in pair)
                for name, pair in values.items()
            )
            + f". Of two datasets the one with the stronger correlation has the lower bias in "
            f"{sum(right)} of {len(right)} pairs{few}. Holds if in all, in part if in more than "
            "half.",
            in_order(right),
        ),
        Claim(
            f"{_and(_STRONG)} show a higher correlation of criterion and test error, "
            f"{_and(_WEAK)} a lower one.",
            f"As above; one of the former is stronger than one of the latter in "
            f"{sum(mean[a] < mean[b] for a, b in listed)} of {len(listed)} pairs{few}. Holds if in "
            "all, in part if in more than half.",
            in_order([mean[a] < mean[b] for a, b in listed]),
        ),
        Claim(
            "Even where the correlation is low, maximising the criterion lowers the error.",
            "On the half of the datasets with the weaker correlation, and on those that the paper "
            f"names ({_and(_WEAK)}), test MSE of picks at the largest size over that at the "
            "smallest, random sets in brackets, and the lead of picks over random sets of the same "
            "sizes, geometric mean: "
            + ", ".join(
                f"{TITLES[name]} {ends(subset, 'evgp', 'mse'):.2f} "
                f"({ends(subset, 'random', 'mse'):.2f}) and {percent(overall(subset, 'mse'))}"
                for name in weak
                if (subset := where(rows, dataset=name))
            )
            + ". More labels help any set. "
            + rule("the error falls and is below that of random sets", rows, each="such dataset"),
            graded(
                [fallen(subset, "mse"), overall(subset, "mse")]
                for name in weak
                if (subset := where(rows, dataset=name))
            ),
        ),
    ]


def fallen(rows: Records, metric: str) -> Gap:
    """Log of how much picks lower a metric from the smallest to the largest size."""
    heights_of = np.log(heights(rows, "evgp", metric))
    return mean_and_error(heights_of[:, 0] - heights_of[:, -1])


def _and(names: Sequence[str]) -> str:
    return " and ".join(TITLES[name] for name in names)


def in_order(pairs: Sequence[bool]) -> Verdict:
    """Whether all pairs are in the expected order, or more than half of them."""
    if not pairs:
        return "not measured"
    if all(pairs):
        return "holds"
    return "holds in part" if 2 * sum(pairs) > len(pairs) else "does not hold"


STUDY = Study(
    name="fit-and-bias",
    title="The criterion and the test error, by how well the network suits the data",
    paper="figures appx-regr-bias, appx-regr-bias-examples",
    shows="Correlation of the criterion with the test error against the empirical bias, with data "
    "from a random network among others.",
    scales={
        "paper": {**PAPER, "datasets": _DATA},
        "laptop": {**LAPTOP, "datasets": _DATA},
        "smoke": {**SMOKE, "datasets": ["random-model", "sinusoidal"]},
    },
    departures=f"{LESS} {_BIAS.format(60)}",
    paper_departures=f"{MORE} {_BIAS.format(100)}",
    cells=cells,
    draw=draw,
    claims=claims,
)
