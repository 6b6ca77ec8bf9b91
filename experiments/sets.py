"""Training sets, random or picked: what criteria say of each, and what trained networks do."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from evgp import metrics
from evgp._linalg import safe_cholesky
from evgp.datasets import Dataset
from evgp.kernels import NTK
from evgp.nets import mlp
from evgp.pool import Pool
from evgp.selection.checks import thinned
from evgp.strategies import Setting, strategy_named
from evgp.training import Recipe
from experiments import pinned
from experiments.data import dataset
from experiments.rows import Record, Rows, column, distinct, where
from experiments.study import Cell

CRITERIA = {  # as they are raised
    "ev": "EV: minus the mean variance",
    "mi": "MI: mutual information",
    "p90": "90V: minus the 90th percentile",
    "max": "100V: minus the largest",
}
_NOISE = 1e-4  # of the mean variance, as the authors have it for percentiles
_TEST, _JOINT = 10_000, 1000  # test points of pools that have more; of mutual information


@dataclass(frozen=True)
class Training:
    """An optimiser and its step; Xavier's initialisation or the parametrisation of the kernel."""

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
    """A dataset with its kernel: where sets are valued and networks trained."""

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
        """Those of mutual information, which is about all of them at once."""
        return self._thinned(_JOINT)

    def _thinned(self, most: int) -> Int[Tensor, " m"]:
        rows = thinned(Pool(self.data.x), most, self.seed).test
        return torch.arange(len(self.data.x)) if rows is None else rows

    @cached_property
    def kernel(self) -> Float[Tensor, "n n"]:
        return NTK(mlp())(self.data.x.double())

    @cached_property
    def recipe(self) -> Recipe:
        """How networks are trained: one of `TRAININGS`, each for the same time."""
        way = TRAININGS[self.training]
        network = mlp(width=self.width)
        settings = {"optimiser": way.optimiser, "lr": way.lr, "steps": self.steps * way.slower}
        return Recipe(
            network.standard("xavier") if way.xavier else network, settings, gentler=way.gentler
        )

    def values(self, rows: Int[Tensor, " l"]) -> dict[str, float]:
        """What every criterion says of a set, the pool being the test points; more is better."""
        points = torch.unique(torch.cat([rows, self.looked_at, self.joint]))
        whole = len(points) == len(self.data.x)
        matrix = self.kernel if whole else NTK(mlp())(self.data.x[points].double())
        own, seen, joint = (
            torch.searchsorted(points, some) for some in (rows, self.looked_at, self.joint)
        )
        scale = float(matrix.diagonal().mean())
        known, half = (_explained(matrix, own, n * scale) for n in (self.noise, _NOISE))
        left, variance = (
            (matrix.diagonal() - one.square().sum(0)).clamp(min=0)[seen] for one in (known, half)
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
        """What networks trained on a set do at the test points."""
        data = self.data
        made = self.recipe(data.x[rows], data.y[rows], members=self.members, seed=self.seed)
        outputs = made.predict(data.x_test)
        return {
            "mse": metrics.mse(outputs, data.y_test),
            "output_variance": metrics.output_variance(outputs),
            "output_variance_p90": metrics.output_variance(outputs, 90),
            "bias": metrics.bias(outputs, data.y_test),
            "train_loss": float(made.losses.mean()),
            "lr": made.lr,
        }

    def sets(self, how: str, sizes: Sequence[int], draws: int) -> Iterator[Int[Tensor, " l"]]:
        """Random sets of each size, or the beginnings of what a strategy picks."""
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


def tried(*, strategy: str, sizes: list[int], draws: int, **ground: Any) -> list[Record]:
    """Value and train every set of one way to make them."""
    made = Ground(**ground)
    return [
        {"labels": len(rows), **made.values(rows), **made.trained(rows)}
        for rows in made.sets(strategy, sizes, draws)
    ]


def ways(
    datasets: Sequence[str], strategies: Sequence[str], *, seeds: int, random: dict[str, Any],
    **path: Any,
) -> list[Cell]:  # fmt: skip
    """Cells of random sets (`random` says sizes and draws) and of the paths of strategies."""
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


def by(training: str, rows: Rows) -> list[Record]:
    """Only rows of networks that were trained this way."""
    return [row for row in rows if row.get("training", "descent") == training]


def correlations(
    rows: Rows, criterion: str, metric: str, how: Any = metrics.spearman
) -> list[float]:
    """Of a criterion with a metric over random sets, for each seed."""
    made = []
    for seed in distinct(rows, "seed"):
        some = where(rows, seed=seed, strategy="random")
        pair = column(some, criterion), column(some, metric)
        if len(some) > 2 and all(np.ptp(one) > 0 for one in pair):
            made.append(float(how(*pair)))
    return made


def correlation(rows: Rows, criterion: str, metric: str, how: Any = metrics.spearman) -> float:
    """The same, mean over seeds."""
    made = correlations(rows, criterion, metric, how)
    return float(np.mean(made)) if made else float("nan")


def _explained(
    matrix: Float[Tensor, "n n"], rows: Int[Tensor, " l"], noise: float
) -> Float[Tensor, "l n"]:
    inner = matrix[rows][:, rows] + noise * torch.eye(len(rows), dtype=torch.float64)
    return torch.linalg.solve_triangular(safe_cholesky(inner), matrix[rows], upper=False)


def _half_logdet(matrix: Float[Tensor, "n n"], noise: float) -> float:
    noisy = matrix + noise * torch.eye(len(matrix), dtype=torch.float64)
    return float(safe_cholesky(noisy).diagonal().log().sum())
