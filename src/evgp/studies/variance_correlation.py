"""Does the variance that kernels predict show up in trained networks, point by point?"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from evgp import metrics
from evgp.audits import audit
from evgp.ensembles import Recipe, by_the_paper
from evgp.kernels import NTK
from evgp.nets import mlp
from evgp.posterior import sntkgp
from evgp.strategies.reduce import inducing_points
from evgp.studies.data import TITLES, dataset
from evgp.studies.rows import Record, Rows, column, distinct, where
from evgp.studies.study import Cell, Claim, Settings, Study, Verdict, verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PREDICTED = {"ntkgp": "NTKGP", "sparse": "sparse NTKGP", "trained": "trained networks"}
TRAINED = {
    "descent": "gradient descent, step 0.01, as in the paper",
    "adam": "Adam to a small loss, NTK parametrisation",
}
# A region is one decade and a half.
_WIDE = 30
_COLOURS = ("#c7cbe8", "#8b96dd", "#3d4fd1")


def subset(
    *, dataset_name: str, seed: int, size: int, points: int, training: str, **how: Any
) -> list[Record]:
    """Networks trained on a random subset of the pool: what they do at some test points."""
    data = dataset(dataset_name, seed)
    rows = torch.randperm(len(data.x), generator=torch.Generator().manual_seed(1000 * seed + size))
    x, y, test = data.x[rows[:size]], data.y[rows[:size]], data.x_test[:points]
    network = mlp(width=how["width"])
    recipe = (
        by_the_paper(network.standard("xavier"))
        if training == "descent"
        else Recipe(network, {"optimiser": "adam", "lr": 0.01}, gentler=3)
    )
    made = recipe(x, y, members=how["members"], seed=seed, steps=how["steps"])
    observed = metrics.variances(made.predict(test))
    predicted = audit(x, test, network, standardise=False)
    inducing = inducing_points(data.x, min(how["inducing"], len(data.x)), "kmeans", seed=seed)
    sparse = sntkgp(NTK(network), x, torch.zeros(size), test, inducing).variance
    return [
        {
            "dataset": dataset_name,
            "point": i,
            "ntkgp": float(predicted.ceiling[i] ** 2),
            "sparse": float(sparse[i]),
            "trained": float(predicted.deviation[i] ** 2),
            "observed": float(observed[i]),
            "train_loss": float(made.losses.mean()),
        }
        for i in range(len(test))
    ]


def cells(settings: Settings) -> Sequence[Cell]:
    """Seed by seed, the paper's training first."""
    names = ("points", "width", "members", "inducing")
    return [
        Cell(
            "evgp.studies.variance_correlation:subset",
            {
                "dataset_name": name,
                "seed": seed,
                "size": size,
                "training": training,
                "steps": settings["steps"] if training == "descent" else settings["adam_steps"],
                **{key: settings[key] for key in names},
            },
        )
        for seed in range(settings["seeds"])
        for name in settings["datasets"]
        for training in TRAINED
        for size in settings["sizes"]
    ]


def correlations(rows: Rows, predicted: str, how: Any = metrics.pearson) -> list[float]:
    """Of predicted and observed variance over the points of each subset."""
    made = []
    for seed in distinct(rows, "seed"):
        for size in distinct(rows, "size"):
            some = where(rows, seed=seed, size=size)
            if len(some) > 2:
                made.append(how(column(some, predicted), column(some, "observed")))
    return made


def draw(rows: Rows) -> "dict[str, Figure]":
    """Observed against predicted variance, a panel for each dataset and prediction."""
    return {
        f"variance-{training}": _draw(where(rows, training=training), words)
        for training, words in TRAINED.items()
        if where(rows, training=training)
    }


def _draw(rows: Rows, words: str) -> "Figure":
    from matplotlib.figure import Figure

    names, sizes = distinct(rows, "dataset"), distinct(rows, "size")
    figure = Figure(figsize=(2.9 * max(2, len(names)), 8.4), layout="constrained")
    panels = figure.subplots(len(PREDICTED), len(names), squeeze=False)
    for line, (predicted, title) in zip(panels, PREDICTED.items(), strict=True):
        for axes, name in zip(line, names, strict=True):
            mine = where(rows, dataset=name)
            for size, colour in zip(sizes, _COLOURS, strict=False):
                some = where(mine, size=size)
                axes.scatter(
                    column(some, predicted), column(some, "observed"), s=9, color=colour,
                    alpha=0.8, linewidth=0, label=f"{size} labels",
                )  # fmt: skip
            low = min(column(mine, key)[column(mine, key) > 0].min() for key in PREDICTED)
            high = max(column(mine, key).max() for key in PREDICTED)
            axes.plot([low, high], [low, high], color="#9a9fae", linewidth=0.8, zorder=0)
            axes.set(xscale="log", yscale="log")
            pearson = np.mean(correlations(mine, predicted))
            spearman = np.mean(correlations(mine, predicted, metrics.spearman))
            axes.set_title(
                f"{TITLES[name]}\nPearson {pearson:.2f}, Spearman {spearman:.2f}", fontsize=9
            )
            axes.spines[["top", "right"]].set_visible(False)
        line[0].set_ylabel("observed variance")
        for axes in line:
            axes.set_xlabel(f"predicted: {title}")
    figure.suptitle(f"Networks trained by {words}", fontsize=11)
    handles, named = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, named, loc="outside lower center", ncols=4, frameon=False)
    return figure


def claims(rows: Rows) -> Sequence[Claim]:
    """What the paper says of its figures of correlation."""
    paper = where(rows, training="descent")
    adam = where(rows, training="adam")
    full, sparse = _told(paper, "ntkgp"), _told(paper, "sparse")
    region = {name: _region(where(paper, dataset=name)) for name in full}
    summed = {name: _summed(where(paper, dataset=name)) for name in full}
    ratio = {
        name: float(column(some, "observed").mean() / column(some, "trained").mean())
        for name in distinct(adam, "dataset")
        if (some := where(adam, dataset=name))
    }
    return [
        Claim(
            "The NTKGP's variance is highly correlated with the variance of trained networks, "
            "point by point.",
            f"Pearson and Spearman, mean over subsets: {_listed(full)} (gradient descent as in the "
            f"paper); {_listed(_told(adam, 'ntkgp'))} (Adam). Where it fails, training has not "
            f"come to its end: mean training loss, of a variance of 1, {_losses(paper)} by "
            f"gradient descent; {_losses(adam)} by Adam.",
            _high(full),
        ),
        Claim(
            "The sparse NTKGP's variance is a decent approximation of the trained networks' "
            "variance.",
            f"{_listed(sparse)}.",
            _high(sparse),
        ),
        Claim(
            "The variances are confined within some region, as Theorem 1 has it.",
            "Observed over predicted variance of a point, from the 5th to the 95th percentile: "
            + ", ".join(
                f"{TITLES[name]} {low:.2g} to {high:.2g}" for name, (low, high) in region.items()
            )
            + " (gradient descent).",
            verdict([high < _WIDE * low for low, high in region.values()]),
        ),
        Claim(
            "Summed over points, as in the criterion, prediction and observation agree better "
            "than point by point.",
            "Pearson over subsets of the mean variance, beside that over points: "
            f"{_beside(paper, full)} (gradient descent); {_beside(adam, _told(adam, 'ntkgp'))} "
            "(Adam).",
            verdict([whole > full[name][0] for name, whole in summed.items()]),
        ),
        Claim(
            "Ours: the closed form for trained networks predicts the size of the variance, not "
            "only its order.",
            "Observed over predicted mean variance, networks trained to a small loss: "
            + ", ".join(f"{TITLES[name]} {value:.2f}" for name, value in ratio.items())
            + f"; {_listed(_told(adam, 'trained'))}.",
            verdict([0.5 < value < 2 for value in ratio.values()]),
        ),
    ]


def _told(rows: Rows, predicted: str) -> dict[str, tuple[float, float]]:
    return {
        name: (
            float(np.mean(correlations(where(rows, dataset=name), predicted))),
            float(np.mean(correlations(where(rows, dataset=name), predicted, metrics.spearman))),
        )
        for name in distinct(rows, "dataset")
    }


def _region(rows: Rows) -> tuple[float, float]:
    """Between which factors 90 % of points lie."""
    low, high = np.percentile(column(rows, "observed") / column(rows, "ntkgp"), [5, 95])
    return float(low), float(high)


def _summed(rows: Rows) -> float:
    """Pearson of the means over points, a pair for each subset."""
    subsets = [
        some
        for seed in distinct(rows, "seed")
        for size in distinct(rows, "size")
        if (some := where(rows, seed=seed, size=size))
    ]
    means = [[column(some, key).mean() for some in subsets] for key in ("ntkgp", "observed")]
    return float(metrics.pearson(*map(np.array, means))) if len(subsets) > 2 else float("nan")


def _beside(rows: Rows, points: dict[str, tuple[float, float]]) -> str:
    return ", ".join(
        f"{TITLES[name]} {_summed(where(rows, dataset=name)):.2f}, {pearson:.2f}"
        for name, (pearson, _) in points.items()
    )


def _losses(rows: Rows) -> str:
    return ", ".join(
        f"{TITLES[name]} {column(where(rows, dataset=name), 'train_loss').mean():.1g}"
        for name in distinct(rows, "dataset")
    )


def _listed(found: dict[str, tuple[float, float]]) -> str:
    return ", ".join(f"{TITLES[name]} {p:.2f} and {s:.2f}" for name, (p, s) in found.items())


def _high(found: dict[str, tuple[float, float]]) -> Verdict:
    """High is a correlation of a half at least: much of the rest is noise of a few networks."""
    return verdict([min(pair) > 0.5 for pair in found.values()])


_PAPER: dict[str, Any] = {
    "datasets": ["kin8nm", "protein", "naval", "optdigits"],
    "seeds": 5, "sizes": [20, 50, 100], "points": 500, "width": 512, "members": 50,
    "steps": 1000, "adam_steps": 500, "inducing": 200,
}  # fmt: skip

STUDY = Study(
    name="variance-correlation",
    title="Predicted and observed variance, point by point",
    paper="figures correlation-var, appx-regr-sntkgp",
    shows="The variance of the NTKGP, of the sparse NTKGP and of trained networks in closed form, "
    "against the variance over initialisations of networks that were trained.",
    scales={
        "paper": _PAPER,
        "laptop": {**_PAPER, "seeds": 2, "points": 100, "members": 30},
        "smoke": {
            **_PAPER, "datasets": ["random-model"], "seeds": 1, "sizes": [6, 12], "points": 10,
            "width": 16, "members": 3, "steps": 5, "adam_steps": 5, "inducing": 20,
        },
    },
    departures="30 networks in place of 50, two subsets of each size, 100 test points. The paper "
    "does not say how large its subsets are; ours have 20, 50 and 100 points.",
    cells=cells,
    draw=draw,
    claims=claims,
)  # fmt: skip
