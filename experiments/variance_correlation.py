"""Do trained networks have the variance that kernels predict, point by point?"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float

from evgp import metrics
from evgp.audits import audit
from evgp.comparison.cells import Cell, Settings
from evgp.comparison.rows import Record, Records, column, distinct, where
from evgp.comparison.statistics import mean_and_error
from evgp.kernels import NTK
from evgp.nets import mlp
from evgp.selection.features import inducing_points
from evgp.training import Recipe, paper_recipe
from experiments import pinned
from experiments.contests import losses
from experiments.data import TITLES, dataset
from experiments.sets import plain_ticks
from experiments.sparse import sntkgp
from experiments.study import Claim, Study
from experiments.verdicts import HIGH, LARGE, Gap, graded, hundredths, rule, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PREDICTED = {"ntkgp": "NTKGP", "sparse": "sparse NTKGP", "trained": "trained networks"}
TRAINED = {
    "descent": "gradient descent, step 0.01, as in the paper",
    "adam": "Adam to a small loss, NTK parametrisation",
}
_COLOURS = ("#c7cbe8", "#8b96dd", "#3d4fd1")


def subset(
    *, dataset_name: str, seed: int, size: int, points: int, training: str, **how: Any
) -> list[Record]:
    """Train networks on a random subset of the pool, and measure them at some test points."""
    data = dataset(dataset_name, seed)
    rows = torch.randperm(len(data.x), generator=torch.Generator().manual_seed(1000 * seed + size))
    x, y, test = data.x[rows[:size]], data.y[rows[:size]], data.x_test[:points]
    network = mlp(width=how["width"])
    recipe = (
        paper_recipe(network.standard("xavier"))
        if training == "descent"
        else Recipe(network, {"optimiser": "adam", "lr": 0.01}, gentler=3)
    )
    ensemble = recipe(x, y, members=how["members"], seed=seed, steps=how["steps"])
    observed = metrics.variances(ensemble.predict(test))
    predicted = audit(x, test, network, noise=pinned.NOISE, scale=None)
    inducing = inducing_points(data.x, min(how["inducing"], len(data.x)), "kmeans", seed=seed)
    sparse = sntkgp(NTK(network), x, torch.zeros(size), test, inducing, noise=pinned.NOISE).variance
    return [
        {
            "dataset": dataset_name,
            "point": i,
            "ntkgp": float(predicted.ceiling[i] ** 2),
            "sparse": float(sparse[i]),
            "trained": float(predicted.deviation[i] ** 2),
            "observed": float(observed[i]),
            "train_loss": float(ensemble.losses.mean()),
        }
        for i in range(len(test))
    ]


def cells(settings: Settings) -> Sequence[Cell]:
    """Cells, seed by seed, with the paper's training first."""
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


def subsets(rows: Records) -> dict[int, list[list[Record]]]:
    """The rows of each subset, by seed."""
    return {
        seed: [where(rows, seed=seed, size=size) for size in distinct(rows, "size")]
        for seed in distinct(rows, "seed")
    }


def correlation(rows: Records, predicted: str, how: Any = metrics.pearson) -> Gap:
    """Correlation of predicted and observed variance, averaged over the subsets of each seed."""
    return mean_and_error(
        np.mean([how(column(part, predicted), column(part, "observed")) for part in values])
        for values in subsets(rows).values()
    )


def draw(rows: Records) -> "dict[str, Figure]":
    """Draw observed against predicted variance, one panel per dataset and prediction."""
    return {
        f"variance-{training}": _draw(where(rows, training=training), words)
        for training, words in TRAINED.items()
        if where(rows, training=training)
    }


def _draw(rows: Records, words: str) -> "Figure":
    from matplotlib.figure import Figure

    names, sizes = distinct(rows, "dataset"), distinct(rows, "size")
    figure = Figure(figsize=(2.9 * max(2, len(names)), 8.4), layout="constrained")
    panels = figure.subplots(len(PREDICTED), len(names), squeeze=False)
    for line, (predicted, title) in zip(panels, PREDICTED.items(), strict=True):
        for axes, name in zip(line, names, strict=True):
            mine = where(rows, dataset=name)
            for size, colour in zip(sizes, _COLOURS, strict=False):
                part = where(mine, size=size)
                axes.scatter(
                    column(part, predicted), column(part, "observed"), s=9, color=colour,
                    alpha=0.8, linewidth=0, label=f"{size} labels",
                )  # fmt: skip
            axes.set(xscale="log", yscale="log")
            axes.autoscale(enable=False)
            plain_ticks(axes.xaxis)
            plain_ticks(axes.yaxis)
            whole = [column(mine, key)[column(mine, key) > 0] for key in (predicted, "observed")]
            ends = [min(item.min() for item in whole), max(item.max() for item in whole)]
            axes.plot(ends, ends, color="#9a9fae", lw=0.9, zorder=0, label="observed = predicted")
            pearson = correlation(mine, predicted)[0]
            spearman = correlation(mine, predicted, metrics.spearman)[0]
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


def claims(rows: Records) -> Sequence[Claim]:
    """The claims of the paper about these correlations."""
    paper, adam = where(rows, training="descent"), where(rows, training="adam")
    return [*_claims_of_points(rows, paper, adam), *_claims_of_sizes(rows, paper, adam)]


def _claims_of_points(rows: Records, paper: Records, adam: Records) -> list[Claim]:
    names = distinct(paper, "dataset")
    mine = {name: where(paper, dataset=name) for name in names}
    return [
        Claim(
            "The NTKGP's variance is highly correlated with the variance of trained networks, "
            "point by point.",
            f"Pearson and Spearman over points, mean over subsets, ± standard error over seeds: "
            f"{_listed(paper, 'ntkgp')} (gradient descent as in the paper). The same with another "
            f"optimiser and another parametrisation at once (Adam, NTK): {_listed(adam, 'ntkgp')}. "
            f"Mean training loss, of a variance of 1: {losses(mine)} by gradient descent, "
            f"{losses({name: where(adam, dataset=name) for name in names})} by Adam; "
            f"{_explained(paper)}. "
            + rule(f"both are {HIGH}", rows),
            graded(_high(part, "ntkgp") for part in mine.values()),
        ),
        Claim(
            "The sparse NTKGP's variance is a decent approximation of the trained networks' "
            "variance.",
            f"Pearson and Spearman as above: {_listed(paper, 'sparse')} (gradient descent). "
            + rule(f"both are {HIGH}", rows),
            graded(_high(part, "sparse") for part in mine.values()),
        ),
        Claim(
            "The variances are confined within some region, as Theorem 1 has it.",
            "Observed over predicted variance of a point, from the 5th to the 95th percentile of "
            "all points of all subsets; the factor between these two, next to that between the "
            "same percentiles of the observed variance alone (each for one seed, geometric mean; "
            "gradient descent): "
            + "; ".join(_confined(name, part) for name, part in mine.items())
            + ". "
            + rule("the first factor is smaller (what surrounds the prediction is narrower than "
                   "what is observed)", rows),
            graded([mean_and_error(_factors(part) @ [-1.0, 1.0])] for part in mine.values()),
        ),
    ]  # fmt: skip


def _claims_of_sizes(rows: Records, paper: Records, adam: Records) -> list[Claim]:
    names = distinct(paper, "dataset")
    mine = {name: where(paper, dataset=name) for name in names}
    return [
        Claim(
            "Summed over points, as in the criterion, prediction and observation agree better "
            "than point by point.",
            "Pearson over subsets of the mean variance, next to the mean of that over points: "
            f"{_beside(paper)} (gradient descent); {_beside(adam)} (Adam). Holds in part if the "
            "first is larger on some dataset; it is one number from all subsets, without spread, "
            "so that this is the most it can show.",
            graded([(_summed(part) - correlation(part, "ntkgp")[0], float("nan"))]
                   for part in mine.values()),
        ),
        Claim(
            "Ours: the closed form for trained networks is closer to the size of the variance "
            "than the NTKGP.",
            "Observed over predicted mean variance by the closed form, and by the NTKGP (geometric "
            "mean over subsets; Adam, NTK parametrisation): "
            + ", ".join(
                f"{TITLES[name]} {short(_size(part, 'trained'))} and {short(_size(part, 'ntkgp'))}"
                for name in names
                if (part := where(adam, dataset=name))
            )
            + f". Pearson and Spearman of the closed form: {_listed(adam, 'trained')}. "
            + rule("the first is closer to 1 as a ratio", rows),
            graded(
                [mean_and_error(map(_closer, subsets(where(adam, dataset=name)).values()))]
                for name in names
            ),
        ),
    ]  # fmt: skip


def _high(rows: Records, predicted: str) -> list[Gap]:
    values = [correlation(rows, predicted, how) for how in (metrics.pearson, metrics.spearman)]
    return [(mean - LARGE, error) for mean, error in values]


def _listed(rows: Records, predicted: str) -> str:
    return ", ".join(
        f"{TITLES[name]} {hundredths(correlation(part, predicted))} and "
        f"{hundredths(correlation(part, predicted, metrics.spearman))}"
        for name in distinct(rows, "dataset")
        if (part := where(rows, dataset=name))
    )


def span(rows: Records) -> Float[np.ndarray, "2 2"]:
    """5th and 95th percentiles of observed over predicted, and of observed variance."""
    observed = column(rows, "observed")
    ends = np.percentile([observed / column(rows, "ntkgp"), observed], [5, 95], axis=1)
    return np.asarray(ends.T, dtype=np.float64)


def _factors(rows: Records) -> Float[np.ndarray, "s 2"]:
    """Log ratios of the ends of the two ranges, for each seed."""
    seeds = distinct(rows, "seed")
    return np.array([np.diff(np.log(span(where(rows, seed=seed))))[:, 0] for seed in seeds])


def _confined(name: str, rows: Records) -> str:
    low, high = span(rows)[0]
    ratio, alone = np.exp(_factors(rows).mean(0))
    factors = f"factor {short(ratio)} next to {short(alone)}"
    return f"{TITLES[name]} {short(low)} to {short(high)}, {factors}"


def _summed(rows: Records) -> float:
    """Pearson correlation over subsets of the means over points."""
    each = [item for values in subsets(rows).values() for item in values]
    means = [[column(part, key).mean() for part in each] for key in ("ntkgp", "observed")]
    flat = len(each) < 3 or not min(map(np.ptp, means)) > 0
    return float("nan") if flat else float(metrics.pearson(*means))


def _beside(rows: Records) -> str:
    return ", ".join(
        f"{TITLES[name]} {_summed(part):.2f} next to {correlation(part, 'ntkgp')[0]:.2f}"
        for name in distinct(rows, "dataset")
        if (part := where(rows, dataset=name))
    )


def _off(rows: Records, predicted: str) -> float:
    """The logarithm of observed over predicted mean variance."""
    return float(np.log(column(rows, "observed").mean() / column(rows, predicted).mean()))


def _size(rows: Records, predicted: str) -> float:
    each = [item for values in subsets(rows).values() for item in values]
    return float(np.exp(np.mean([_off(item, predicted) for item in each])))


def _closer(found: Sequence[Records]) -> float:
    return float(np.mean([abs(_off(item, "ntkgp")) - abs(_off(item, "trained")) for item in found]))


def _explained(rows: Records) -> str:
    """Whether subsets with a larger training loss have a lower correlation."""
    each = [
        item
        for name in distinct(rows, "dataset")
        for values in subsets(where(rows, dataset=name)).values()
        for item in values
    ]
    loss = [column(item, "train_loss").mean() for item in each]
    pearson = [metrics.pearson(column(item, "ntkgp"), column(item, "observed")) for item in each]
    if len(each) < 3 or not min(np.ptp(loss), np.ptp(pearson)) > 0:
        return "too few subsets to relate the two"
    return (
        f"over the {len(each)} subsets of the former, Spearman of loss and Pearson is "
        f"{metrics.spearman(loss, pearson):.2f}"
    )


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
    departures="30 networks in place of 50, two seeds in place of 5, 100 of the test points. The "
    "paper does not say how large its subsets are; ours have 20, 50 and 100 points.",
    paper_departures="500 of the test points; the paper does not say how many it shows, nor how "
    "large its subsets are.",
    cells=cells,
    draw=draw,
    claims=claims,
)  # fmt: skip
