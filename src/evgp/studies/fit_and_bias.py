"""Does the criterion speak for the test error where the network suits the data?"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from evgp import metrics
from evgp.studies.data import TITLES
from evgp.studies.rows import Rows, column, distinct, where
from evgp.studies.sequential_selection import LAPTOP, LESS, PAPER, SMOKE, falls
from evgp.studies.set_figures import scattered
from evgp.studies.sets import correlation, ways
from evgp.studies.study import Cell, Claim, Settings, Study, verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DATA = ["random-model", "boston", "kin8nm", "protein", "naval", "optdigits"]


def cells(settings: Settings) -> Sequence[Cell]:
    """Random sets and the path of EV-GP, on made-up data too."""
    return ways(strategies=["evgp", "random"], **settings)


def points(rows: Rows) -> dict[str, tuple[float, float]]:
    """For each dataset: Pearson of criterion and error, and the bias at the largest size."""
    made = {}
    for name in distinct(rows, "dataset"):
        some = where(rows, dataset=name)
        most = max(distinct(some, "labels"))
        bias = column(where(some, labels=most, strategy="random"), "bias").mean()
        made[name] = (correlation(some, "ev", "mse", metrics.pearson), float(bias))
    return made


def draw(rows: Rows) -> "dict[str, Figure]":
    """Correlation against bias; and what the correlations are of."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6, 3.6), layout="constrained")
    axes = figure.subplots()
    for name, (correlated, bias) in points(rows).items():
        axes.scatter(correlated, bias, color="#3d4fd1", s=30)
        axes.annotate(
            TITLES[name], (correlated, bias), xytext=(5, 4), textcoords="offset points", fontsize=8
        )
    axes.set(xlabel="Pearson of criterion and test MSE", ylabel="empirical bias")
    axes.margins(x=0.25, y=0.15)
    axes.spines[["top", "right"]].set_visible(False)
    return {
        "fit-and-bias": figure,
        "fit-and-bias-examples": scattered(rows, [("ev", "mse")], {"evgp": "ev"}, ["mse"]),
    }


def claims(rows: Rows) -> Sequence[Claim]:
    """What the paper says of suitable networks."""
    found = points(rows)
    fall = {name: falls(where(rows, dataset=name), "mse") for name in found}
    pairs = np.array(list(found.values()))
    order = metrics.spearman(pairs[:, 0], pairs[:, 1]) if len(pairs) > 2 else float("nan")
    return [
        Claim(
            "Where the criterion is more correlated with the test error, the achievable error is "
            "lower: the network suits the data.",
            "Pearson of criterion and test MSE, and bias: "
            + ", ".join(f"{TITLES[name]} {r:.2f}, {b:.2f}" for name, (r, b) in found.items())
            + f"; Spearman between the two {order:.2f}.",
            "not measured"
            if not np.isfinite(order)
            else "holds"
            if order > 0.6
            else "holds in part"
            if order > 0
            else "does not hold",
        ),
        Claim(
            "Even where the correlation is low, maximising the criterion lowers the error.",
            "Test MSE of picks at the largest size over that at the smallest: "
            + ", ".join(f"{TITLES[name]} {value:.2f}" for name, value in fall.items())
            + ".",
            verdict([value < 1 for value in fall.values()]),
        ),
    ]


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
    departures=LESS,
    cells=cells,
    draw=draw,
    claims=claims,
)
