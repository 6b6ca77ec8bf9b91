"""Strategies that spend one budget on one dataset: rows of the arena for many studies."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from evgp.arena import MEASURES, Subject
from evgp.arena.cell import Cell as Played
from evgp.arena.looks import looks
from evgp.metrics import area
from experiments import pinned
from experiments.data import TITLES
from experiments.rows import Record, Rows, column, distinct, mean_by, where
from experiments.study import Cell, Settings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MLMOC = "random:100+mlmoc"  # as the authors ran it on classes; a larger batch begins at random
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


def play(*, dataset: str, strategy: str, seed: int, **terms: Any) -> list[Record]:
    """One strategy through all rounds; `terms` are those of the arena, and sizes of the parts.

    With `last_only` among them, only what the whole budget leads to is measured.
    """
    parts = {name: terms.pop(name) for name in ("pool", "test", "task") if name in terms}
    last_only = bool(terms.pop("last_only", False))
    played = Played(Subject(dataset, **parts), strategy, seed, pinned.terms(**terms))
    made = played.play(last_only=last_only)
    return [asdict(row) for row in made.rows]


def cells(settings: Settings) -> list[Cell]:
    """Those of every contest of a study."""
    return [cell for one in settings["contests"] for cell in contest(**one)]


def panels(rows: Rows) -> dict[str, list[Record]]:
    """The rows of each contest by its title: the data, and the network where there are several."""
    made: dict[str, list[Record]] = {}
    networks = {_network(row) for row in rows}
    budgets = {(row["dataset"], _network(row), row["budget"]) for row in rows}
    twice = len(budgets) > len({key[:2] for key in budgets})
    for row in rows:
        title = TITLES[row["dataset"]]
        title += f", {_network(row)}" if len(networks) > 1 else ""
        title += f", {row['budget']} labels" if twice else ""
        made.setdefault(title, []).append(row)
    return made


def _network(row: Record) -> str:
    name = row.get("network", "mlp")
    known = {"mlp": f"{row.get('depth', 2)}-layer MLP", "resnet18": "ResNet18"}
    return known.get(str(name), str(name).upper())


def contest(
    datasets: Iterable[str], strategies: Iterable[str], seeds: int, **terms: Any
) -> list[Cell]:
    """Cells of every strategy on every dataset with every seed, seed by seed."""
    names, ways = list(datasets), list(strategies)
    return [
        Cell(_WORK, {"dataset": name, "strategy": way, "seed": seed, **terms})
        for seed in range(seeds)
        for name in names
        for way in ways
    ]


def curves(
    panels: Mapping[str, Rows], metrics: Sequence[str], *, by: str = "labels", xlabel: str = ""
) -> "Figure":
    """A column for each panel, a line of axes for each metric, a curve for each strategy."""
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


def _panel(axes: "Axes", rows: Rows, metric: str, ways: Sequence[str], by: str) -> None:
    styles = looks(ways)
    heights: list[float] = []
    for way in ways:
        look = styles[way]
        at, found = mean_by(where(rows, strategy=way), by, metric)
        axes.plot(
            at, found[:, 0], color=look.colour, linewidth=look.width * 0.7, marker=look.marker,
            linestyle=(0, look.dashes) if look.dashes else "-", markersize=3.5,
            label=NAMES.get(way, way),
        )  # fmt: skip
        low, high = found[:, 0] - found[:, 1], found[:, 0] + found[:, 1]
        axes.fill_between(at, low, high, color=look.colour, alpha=0.1, linewidth=0)
        heights += [height for height in found[:, 0] if np.isfinite(height)]
    if heights and min(heights) > 0 and max(heights) > 20 * min(heights):
        axes.set_yscale("log")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#ecece8", linewidth=0.8)
    axes.set_axisbelow(True)


def areas(rows: Rows, metric: str, strategy: str) -> dict[int, float]:
    """Mean height of the learning curve of one strategy on one dataset, for each seed."""
    made: dict[int, float] = {}
    for seed in distinct(where(rows, strategy=strategy), "seed"):
        some = sorted(where(rows, strategy=strategy, seed=seed), key=lambda row: int(row["labels"]))
        heights = column(some, metric)
        if not np.isfinite(heights).all():
            continue
        made[seed] = area(column(some, "labels"), heights) if len(some) > 1 else float(heights[0])
    return made


def standing(rows: Rows, metric: str) -> dict[str, tuple[float, float]]:
    """Mean and deviation over seeds of each strategy's area, best first."""
    lower = MEASURES[metric].lower
    made = {}
    for way in distinct(rows, "strategy"):
        found = list(areas(rows, metric, way).values())
        if found:
            spread = float(np.std(found, ddof=1)) if len(found) > 1 else float("nan")
            made[way] = (float(np.mean(found)), spread)
    return dict(sorted(made.items(), key=lambda item: item[1][0] if lower else -item[1][0]))


def averages(rows: Rows, metric: str) -> str:
    """The standing in words, dataset by dataset."""
    parts = []
    for title, some in panels(rows).items():
        order = standing(some, metric)
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


def losses(found: Mapping[str, Rows]) -> str:
    """The mean training loss of the rows of each dataset.

    >>> losses({"boston": [{"train_loss": 0.25}, {"train_loss": 0.35}]})
    'Boston 0.3'
    """
    return ", ".join(
        f"{TITLES[name]} {column(some, 'train_loss').mean():.2g}" for name, some in found.items()
    )
