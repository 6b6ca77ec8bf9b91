"""Strategies that spend one budget on one dataset: rows of comparisons for many studies."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evgp.comparison import MEASURES, DatasetSource
from evgp.comparison.cells import Cell, Settings
from evgp.comparison.curves import draw_curve, is_wide, looks, plain_axes
from evgp.comparison.rows import Record, Records, column, distinct, record_of, where
from evgp.comparison.run import play as play_rounds
from evgp.comparison.statistics import areas, mean_by
from experiments import pinned
from experiments.data import TITLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MLMOC = (
    "random:100+mlmoc"  # as the authors ran it for classification; a larger batch begins at random
)
NAMES = {
    "evgp": "EV-GP",
    "evgp-emp": "EV-GP-Emp",
    "evgp-sketch": "EV-GP, sketched",
    "evgp-sparse": "EV-GP, sparse",
    "evgp-linear": "EV-GP, linearised",
    "evgp-mi": "MI",
    "evgp-p90": "90V",
    "evgp-max": "100V",
    "random": "Random",
    "kmeans++": "K-Means++",
    "badge": "BADGE",
    "mlmoc": "MLMOC",
    MLMOC: "MLMOC, 100 random first",
    "coreset": "CoreSet",
    "batchbald": "BatchBALD",
    "random+badge": "BADGE, first random",
    "evgp+badge": "BADGE, first EV-GP",
    "random+mlmoc": "MLMOC, first random",
    "evgp+mlmoc": "MLMOC, first EV-GP",
}
_WORK = "evgp.studies.contests:play"
_SHORT = {
    "mse": "test MSE",
    "output_variance_p90": "output variance, 90th percentile",
    "accuracy": "test accuracy",
    "output_entropy": "output entropy",
}


def play(*, dataset: str, strategy: str, seed: int, **settings: Any) -> list[Record]:
    """Run one strategy through all rounds; `settings` are those of the protocol and the sizes.

    With `last_only` among them, only the result of the whole budget is measured.
    """
    parts = {name: settings.pop(name) for name in ("pool", "test", "task") if name in settings}
    last_only = bool(settings.pop("last_only", False))
    protocol = pinned.protocol(**settings)
    source = DatasetSource(dataset, **parts)
    played = play_rounds(source, strategy, seed, protocol, last_only=last_only)
    return [record_of(row) for row in played.rows]


def cells(settings: Settings) -> list[Cell]:
    """The cells of all contests of a study."""
    return [cell for item in settings["contests"] for cell in contest(**item)]


def panels(rows: Records) -> dict[str, list[Record]]:
    """The rows of each contest by its title: the data, and the network if there are several."""
    panels_by_title: dict[str, list[Record]] = {}
    networks = {_network(row) for row in rows}
    budgets = {(row["dataset"], _network(row), row["budget"]) for row in rows}
    twice = len(budgets) > len({key[:2] for key in budgets})
    for row in rows:
        title = TITLES[row["dataset"]]
        title += f", {_network(row)}" if len(networks) > 1 else ""
        title += f", {row['budget']} labels" if twice else ""
        panels_by_title.setdefault(title, []).append(row)
    return panels_by_title


def _network(row: Record) -> str:
    name = row.get("network", "mlp")
    known = {"mlp": f"{row.get('depth', 2)}-layer MLP", "resnet18": "ResNet18"}
    return known.get(str(name), str(name).upper())


def contest(
    datasets: Iterable[str], strategies: Iterable[str], seeds: int, **settings: Any
) -> list[Cell]:
    """Cells of all strategies on all datasets, seed by seed."""
    names, ways = list(datasets), list(strategies)
    return [
        Cell(_WORK, {"dataset": name, "strategy": way, "seed": seed, **settings})
        for seed in range(seeds)
        for name in names
        for way in ways
    ]


def curves(
    panels: Mapping[str, Records], metrics: Sequence[str], *, by: str = "labels", xlabel: str = ""
) -> "Figure":
    """Draw one column per panel, one row of axes per metric, one curve per strategy."""
    from matplotlib.figure import Figure

    size = (max(6.2, 3.3 * len(panels)), 2.7 * len(metrics) + 0.8)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(metrics), max(1, len(panels)), squeeze=False)
    ways = list(
        dict.fromkeys(way for rows in panels.values() for way in distinct(rows, "strategy"))
    )
    for line, metric in zip(grid, metrics, strict=True):
        for axes, (title, rows) in zip(line, panels.items(), strict=True):
            _panel(axes, rows, metric, ways, by)
            if metric == metrics[0]:
                axes.set_title(title)
        line[0].set_ylabel(_SHORT.get(metric, MEASURES[metric].words))
    for axes in grid[-1]:
        axes.set_xlabel(xlabel or by)
    handles, words = grid[0, 0].get_legend_handles_labels()
    figure.legend(
        handles,
        words,
        loc="outside lower center",
        ncols=min(3 if len(panels) < 3 else 6, len(ways)),
        frameon=False,
    )
    return figure


def _panel(axes: "Axes", rows: Records, metric: str, ways: Sequence[str], by: str) -> None:
    styles = looks(ways)
    heights: list[float] = []
    for way in ways:
        look = styles[way]
        at, means = mean_by(where(rows, strategy=way), by, metric)
        mean, error = means.T
        draw_curve(
            axes, at, mean, look, band=(mean - error, mean + error), linewidth=look.width * 0.7,
            markersize=3.5, label=NAMES.get(way, way),
        )  # fmt: skip
        heights += [height for height in mean if np.isfinite(height)]
    if is_wide(heights):
        axes.set_yscale("log")
    plain_axes(axes)


def standing(rows: Records, metric: str) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation over seeds of each strategy's area, best first."""
    lower = MEASURES[metric].lower
    means = {}
    for way in distinct(rows, "strategy"):
        heights = list(areas(rows, metric, way).values())
        if heights:
            spread = float(np.std(heights, ddof=1)) if len(heights) > 1 else float("nan")
            means[way] = (float(np.mean(heights)), spread)
    return dict(sorted(means.items(), key=lambda item: item[1][0] if lower else -item[1][0]))


def averages(rows: Records, metric: str) -> str:
    """The standing in words, dataset by dataset."""
    parts = []
    for title, subset in panels(rows).items():
        order = standing(subset, metric)
        if order:
            parts.append(
                f"{title}: "
                + ", ".join(
                    f"{NAMES.get(way, way)} {mean:.3g}"
                    + (f" ± {spread:.2g}" if spread >= 0 else "")
                    for way, (mean, spread) in order.items()
                )
            )
    return "; ".join(parts)


def losses(found: Mapping[str, Records]) -> str:
    """The mean training loss of the rows of each dataset.

    >>> losses({"boston": [{"train_loss": 0.25}, {"train_loss": 0.35}]})
    'Boston 0.3'
    """
    return ", ".join(
        f"{TITLES[name]} {column(subset, 'train_loss').mean():.2g}"
        for name, subset in found.items()
    )
