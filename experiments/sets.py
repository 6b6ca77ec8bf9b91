"""Training sets, random or picked: their criteria, their trained networks, and figures."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from evgp import metrics
from evgp._linalg import safe_cholesky
from evgp.comparison.cells import Cell
from evgp.comparison.curves import draw_curve, looks
from evgp.comparison.rows import Record, Records, column, distinct, where
from evgp.comparison.statistics import mean_by
from evgp.datasets import Dataset
from evgp.kernels import NTK
from evgp.nets import mlp
from evgp.pool import Pool
from evgp.selection.features import thinned
from evgp.strategies import Setting, strategy_named
from evgp.training import Recipe
from experiments import pinned
from experiments.contests import NAMES
from experiments.data import TITLES, dataset

WORDS = {"output_variance_p90": "variance, 90th percentile", "mse": "test MSE"}
CRITERIA = {  # in the direction in which they are maximised
    "ev": "EV: minus the mean variance",
    "mi": "MI: mutual information",
    "p90": "90V: minus the 90th percentile",
    "max": "100V: minus the largest",
}
_NOISE = 1e-4  # of the mean variance, as the authors have it for percentiles
_TEST, _JOINT = 10_000, 1000  # test points of pools that have more; of mutual information


@dataclass(frozen=True)
class Training:
    """An optimiser, its step size, and the initialisation: Xavier's or that of the kernel."""

    words: str
    optimiser: str
    lr: float
    xavier: bool = False
    slower: int = 1
    gentler: int = 5


TRAININGS = {
    "descent": Training("gradient descent as in the paper", "gd", 0.01, xavier=True),
    "adam": Training("Adam, NTK parametrisation", "adam", 0.01, gentler=3),
    "small-step": Training(
        "gradient descent, a quarter of the step and four times as many", "gd", 0.0025,
        xavier=True, slower=4,
    ),
    "xavier-adam": Training("Adam, Xavier's initialisation", "adam", 0.01, xavier=True, gentler=3),
    "ntk-descent": Training("gradient descent, NTK parametrisation, a step of 1", "gd", 1.0),
}  # fmt: skip


@dataclass(frozen=True)
class Ground:
    """A dataset with its kernel, on which sets are scored and networks trained."""

    dataset: str
    seed: int
    pool: int | None
    test: int | None
    width: int
    members: int
    steps: int
    training: str = "descent"
    noise: float = _NOISE

    @cached_property
    def data(self) -> Dataset:
        return dataset(self.dataset, self.seed, pool=self.pool, test=self.test)

    @cached_property
    def looked_at(self) -> Int[Tensor, " m"]:
        """The test points of the criteria: the pool itself, thinned if it is large."""
        return self._thinned(_TEST)

    @cached_property
    def joint(self) -> Int[Tensor, " j"]:
        """The test points of mutual information, which uses all of them jointly."""
        return self._thinned(_JOINT)

    def _thinned(self, most: int) -> Int[Tensor, " m"]:
        rows = thinned(Pool(self.data.x), most, self.seed).test
        return torch.arange(len(self.data.x)) if rows is None else rows

    @cached_property
    def kernel(self) -> Float[Tensor, "n n"]:
        return NTK(mlp())(self.data.x.double())

    @cached_property
    def recipe(self) -> Recipe:
        """The recipe of one of `TRAININGS`, each with the same training time."""
        way = TRAININGS[self.training]
        network = mlp(width=self.width)
        settings = {"optimiser": way.optimiser, "lr": way.lr, "steps": self.steps * way.slower}
        return Recipe(
            network.standard("xavier") if way.xavier else network, settings, gentler=way.gentler
        )

    def values(self, rows: Int[Tensor, " l"]) -> dict[str, float]:
        """Values of all criteria for a set, with the pool as test points; higher is better."""
        points = torch.unique(torch.cat([rows, self.looked_at, self.joint]))
        whole = len(points) == len(self.data.x)
        matrix = self.kernel if whole else NTK(mlp())(self.data.x[points].double())
        own, seen, joint = (
            torch.searchsorted(points, subset) for subset in (rows, self.looked_at, self.joint)
        )
        scale = float(matrix.diagonal().mean())
        known, half = (_explained(matrix, own, n * scale) for n in (self.noise, _NOISE))
        left, variance = (
            (matrix.diagonal() - item.square().sum(0)).clamp(min=0)[seen] for item in (known, half)
        )
        rest = joint[~torch.isin(joint, own)]
        before = matrix[rest][:, rest]
        after = before - half[:, rest].T @ half[:, rest]
        return {
            "ev": -float(left.mean()),
            "p90": -float(np.percentile(variance.numpy(), 90)),
            "max": -float(variance.max()),
            "mi": _half_logdet(before, _NOISE * scale) - _half_logdet(after, _NOISE * scale),
        }

    def trained(self, rows: Int[Tensor, " l"]) -> dict[str, float]:
        """Metrics, at the test points, of networks trained on a set."""
        data = self.data
        ensemble = self.recipe(data.x[rows], data.y[rows], members=self.members, seed=self.seed)
        outputs = ensemble.predict(data.x_test)
        return {
            "mse": metrics.mse(outputs, data.y_test),
            "output_variance": metrics.output_variance(outputs),
            "output_variance_p90": metrics.output_variance(outputs, 90),
            "bias": metrics.bias(outputs, data.y_test),
            "train_loss": float(ensemble.losses.mean()),
            "lr": ensemble.lr,
        }

    def sets(self, how: str, sizes: Sequence[int], draws: int) -> Iterator[Int[Tensor, " l"]]:
        """Random sets of each size, or prefixes of the picks of a strategy."""
        x = self.data.x
        if how == "random":
            generator = torch.Generator().manual_seed(self.seed)
            for size in sizes:
                for _ in range(draws):
                    yield torch.randperm(len(x), generator=generator)[:size]
            return
        setting = Setting(
            x, mlp(width=self.width), self.recipe, 0, max(sizes), 1, self.seed, **pinned.SEARCH
        )
        generator = torch.Generator().manual_seed(self.seed)
        picks = strategy_named(how, setting)(Pool(x), max(sizes), generator=generator).indices
        for size in sizes:
            yield torch.from_numpy(picks[:size].copy())


def tried(*, strategy: str, sizes: list[int], draws: int, **settings: Any) -> list[Record]:
    """Score and train all sets of one kind."""
    ground = Ground(**settings)
    return [
        {"labels": len(rows), **ground.values(rows), **ground.trained(rows)}
        for rows in ground.sets(strategy, sizes, draws)
    ]


def ways(
    datasets: Sequence[str], strategies: Sequence[str], *, seeds: int, random: dict[str, Any],
    **path: Any,
) -> list[Cell]:  # fmt: skip
    """Cells of random sets (with the sizes and draws of `random`) and of strategies."""
    return [
        Cell(
            "evgp.studies.sets:tried",
            {"dataset": name, "strategy": way, "seed": seed, "draws": 1, **path}
            | (random if way == "random" else {}),
        )
        for seed in range(seeds)
        for name in datasets
        for way in strategies
    ]


def by(training: str, rows: Records) -> list[Record]:
    """Only the rows of networks with this training."""
    return [row for row in rows if row.get("training", "descent") == training]


def correlations(
    rows: Records, criterion: str, metric: str, how: Any = metrics.spearman
) -> list[float]:
    """Correlation of a criterion and a metric over random sets, for each seed."""
    values = []
    for seed in distinct(rows, "seed"):
        subset = where(rows, seed=seed, strategy="random")
        pair = column(subset, criterion), column(subset, metric)
        if len(subset) > 2 and all(np.ptp(item) > 0 for item in pair):
            values.append(float(how(*pair)))
    return values


def correlation(rows: Records, criterion: str, metric: str, how: Any = metrics.spearman) -> float:
    """Correlation of a criterion and a metric, averaged over seeds."""
    values = correlations(rows, criterion, metric, how)
    return float(np.mean(values)) if values else float("nan")


def _explained(
    matrix: Float[Tensor, "n n"], rows: Int[Tensor, " l"], noise: float
) -> Float[Tensor, "l n"]:
    inner = matrix[rows][:, rows] + noise * torch.eye(len(rows), dtype=torch.float64)
    return torch.linalg.solve_triangular(safe_cholesky(inner), matrix[rows], upper=False)


def _half_logdet(matrix: Float[Tensor, "n n"], noise: float) -> float:
    noisy = matrix + noise * torch.eye(len(matrix), dtype=torch.float64)
    return float(safe_cholesky(noisy).diagonal().log().sum())


if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


def scattered(
    rows: Records,
    pairs: Sequence[tuple[str, str]],
    strategies: dict[str, str],
    grows: Sequence[str],
) -> "Figure":
    """Draw one row per dataset: criterion against metric for each pair, then metrics by size.

    `strategies` are the paths to draw, with the criterion that each one raises.
    """
    from matplotlib.figure import Figure

    names = distinct(rows, "dataset")
    wide = len(pairs) + len(grows)
    figure = Figure(figsize=(3.0 * wide, 2.6 * len(names) + 0.4), layout="constrained")
    grid = figure.subplots(len(names), wide, squeeze=False)
    styles = looks([*strategies, "random"])
    for line, name in zip(grid, names, strict=True):
        mine = where(rows, dataset=name)
        for axes, (criterion, metric) in zip(line, pairs, strict=False):
            _cloud(axes, mine, criterion, metric)
            for way, raised in strategies.items():
                if raised == criterion:
                    path = where(mine, strategy=way, seed=0)
                    axes.plot(
                        column(path, criterion), column(path, metric), "o-", ms=3, lw=1.2,
                        color=styles[way].colour,
                    )  # fmt: skip
        for axes, metric in zip(line[len(pairs) :], grows, strict=True):
            _growth(axes, mine, metric, ["random", *strategies])
        for axes in line:
            axes.spines[["top", "right"]].set_visible(False)
        message = line[0].get_title()
        line[0].set_title(f"{TITLES[name]}: {message}" if message else TITLES[name], fontsize=9)
    handles, words = grid[0, -1].get_legend_handles_labels()
    columns = 6 if wide > 2 else 3
    figure.legend(
        handles, words, loc="outside lower center", ncols=columns, frameon=False,
        title=_bands(rows, [*strategies, "random"]), title_fontsize=8.5,
    )  # fmt: skip
    return figure


def _bands(rows: Records, ways: Sequence[str]) -> str:
    """A description of the bands: the standard deviation over the sets of a size."""
    most = {way: max(map(len, _sizes(where(rows, strategy=way))), default=0) for way in ways}
    drawn = {way: sets for way, sets in most.items() if sets > 1}
    picked = {sets for way, sets in drawn.items() if way != "random"}
    parts = [f"{sets} of picks" for sets in sorted(picked)]
    parts += [f"{drawn['random']} random ones"] if "random" in drawn else []
    return f"bands: the standard deviation over sets, {' and '.join(parts)}" if parts else ""


def _sizes(rows: list[Record]) -> list[list[Record]]:
    """The sets of each dataset and size."""
    return [
        where(subset, labels=size)
        for name in distinct(rows, "dataset")
        for subset in [where(rows, dataset=name)]
        for size in distinct(subset, "labels")
    ]


def clouds(panels: Mapping[str, list[Record]], criterion: str, metric: str) -> "Figure":
    """Criterion against metric over random sets, for each panel by its title."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.0 * len(panels), 2.9), layout="constrained")
    grid = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, (title, rows) in zip(grid, panels.items(), strict=True):
        _cloud(axes, rows, criterion, metric)
        axes.set_title(f"{title}\n{axes.get_title()}", fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
        if axes is not grid[0]:
            axes.set_ylabel("")
    return figure


def _cloud(axes: "Axes", rows: list[Record], criterion: str, metric: str) -> None:
    subset = where(rows, strategy="random")
    axes.scatter(
        column(subset, criterion), column(subset, metric), s=9, color="#9a9fae", linewidth=0
    )
    sp = correlation(rows, criterion, metric)
    pr = correlation(rows, criterion, metric, metrics.pearson)
    axes.set_title(f"Spearman {sp:.2f}, Pearson {pr:.2f}", fontsize=9)
    axes.set(xlabel=CRITERIA[criterion], ylabel=WORDS[metric], yscale="log")
    plain_ticks(axes.yaxis)


def _growth(axes: "Axes", rows: list[Record], metric: str, ways: Sequence[str]) -> None:
    styles = looks(ways)
    for way in ways:
        subset, look = where(rows, strategy=way), styles[way]
        labels, means = mean_by(subset, "labels", metric)
        spread = [column(where(subset, labels=label), metric) for label in labels]
        mean, band = means[:, 0], None
        if max(map(len, spread)) > 1:
            wide = [item.std(ddof=1) if len(item) > 1 else 0.0 for item in spread]
            low = [max(m - w, min(item)) for m, w, item in zip(mean, wide, spread, strict=True)]
            band = low, mean + wide
        draw_curve(
            axes, labels, mean, look, band=band, shade=0.15, linewidth=look.width * 0.7,
            markersize=3.5, label=NAMES.get(way, way),
        )  # fmt: skip
    axes.set(xlabel="labels", ylabel=WORDS[metric], yscale="log")
    plain_ticks(axes.yaxis)


def plain_ticks(axis: "Axis") -> None:
    """Put a few plain numbers on a logarithmic axis, however short it is."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    low, high = axis.get_view_interval()
    if high < 8 * low:
        axis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    else:
        axis.set_major_locator(LogLocator(subs=(1, 3) if high < 200 * low else (1,), numticks=6))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
