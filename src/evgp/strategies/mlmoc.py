"""MLMOC: the point whose most likely label would change the outputs most.

Mohamadi, Bae & Sutherland, Making Look-Ahead Active Learning Strategies Feasible with Neural
Tangent Kernels, NeurIPS 2022.
"""

from dataclasses import dataclass, field
from math import exp, lgamma, sqrt
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Generator, Tensor, nn

from evgp._checks import flag, integer, keep, number
from evgp._linalg import safe_cholesky
from evgp.errors import BadArgument, PoolError
from evgp.kernels import EmpiricalNTK, Kernel
from evgp.pool import Pool, Selection
from evgp.selection.run import check_variance
from evgp.strategies._trained import fits, labels_of, outputs, recipe_of
from evgp.strategies.strategy import unlabelled
from evgp.training import Recipe

# Bytes of a tile of covariances: large, for few passes over the points.
TILE = 1 << 27


@dataclass
class LookAhead:
    r"""Mean, variance and covariances of a Gaussian process at all points, given some labels.

    With $V = C^{-1} K_{LX}$ and $C C^\top = K_L + s I$, the covariance given the labelled points
    $L$ is $\mathrm{cov}(x, c) = K_{xc} - V_x^\top V_c$; a pick adds one row to $V$.

    `looked` are the rows over which change is averaged. O(l n) memory, and the tiles.

    >>> from evgp import NTK, mlp
    >>> x = torch.eye(3, dtype=torch.float64)
    >>> ahead = LookAhead(NTK(mlp()), x, torch.arange(3), 0.1, torch.zeros(3, 1).double())
    >>> before = ahead.spread(torch.tensor([1, 2]))
    >>> ahead.observe_(0, torch.ones(1).double())
    >>> bool((ahead.spread(torch.tensor([1, 2])) < before).all()), ahead.mean.shape
    (True, torch.Size([3, 1]))
    """

    kernel: Kernel
    x: Shaped[Tensor, " n *d"]
    looked: Int[Tensor, " m"]
    noise: float
    mean: Float[Tensor, "n o"]
    variance: Float[Tensor, " n"] = field(init=False)
    columns: Float[Tensor, "l n"] = field(init=False)

    def __post_init__(self) -> None:
        self.variance = self.kernel.diag(self.x).double()
        self.columns = self.variance.new_empty(0, len(self.x))
        whole = torch.equal(self.looked, torch.arange(len(self.x)))
        self._seen = self.x if whole else self.x[self.looked]
        self._place = torch.full((len(self.x),), -1)
        self._place[self.looked] = torch.arange(len(self.looked))
        self._ceiling = torch.full_like(self.variance, torch.inf)

    def condition_(self, known: Shaped[Tensor, " l *d"], rest: Float[Tensor, "l o"]) -> None:
        """Condition on labels at other points; `rest` is their difference from the mean there."""
        factor = safe_cholesky(self.kernel(known).double(), self.noise)
        cross = self.kernel(known, self.x).double()
        self.columns = torch.linalg.solve_triangular(factor, cross, upper=False)
        solved = torch.linalg.solve_triangular(factor, rest, upper=False)
        self.mean = self.mean + self.columns.T @ solved
        self.variance = (self.variance - self.columns.square().sum(0)).clamp(min=0)

    def spread(self, rows: Int[Tensor, " r"]) -> Float[Tensor, " r"]:
        r"""$\frac1m \sum_{x \ne c} |\mathrm{cov}(x, c)|$ for each row $c$."""
        step = max(1, TILE // (8 * len(self.looked)))
        parts = [self._tile(block) for block in torch.split(rows, step)]
        self._ceiling[rows] = torch.cat(parts) / len(self.looked)
        return self._ceiling[rows]

    def ceiling(self, rows: Int[Tensor, " r"]) -> Float[Tensor, " r"]:
        """An upper bound on the spread of each row, without the kernel: O(n)."""
        std = self.variance.sqrt()
        return torch.minimum(self._ceiling, std * std[self.looked].mean())[rows]

    def _tile(self, rows: Int[Tensor, " r"]) -> Float[Tensor, " r"]:
        tile = self.kernel(self.x[rows], self._seen).double()
        tile.addmm_(self.columns[:, rows].T, self.columns[:, self.looked], alpha=-1)
        place = self._place[rows]
        own = (place >= 0).nonzero()[:, 0]
        tile[own, place[own]] = 0
        return tile.abs_().sum(1)

    def observe_(self, row: int, label: Float[Tensor, " o"]) -> None:
        """Condition on the label of one row: a rank-one update, O(l n)."""
        column = self.kernel(self.x[row : row + 1], self.x)[0].double()
        column -= self.columns[:, row] @ self.columns
        scale = float(self.variance[row]) + self.noise
        self.mean = self.mean + column[:, None] * ((label - self.mean[row]) / scale)
        column /= scale**0.5
        self.columns = torch.cat([self.columns, column[None]])
        self.variance = (self.variance - column.square()).clamp(min=0)
        # A covariance changes, up or down, by the product of its two entries in the column.
        self._ceiling += column.abs() * column[self.looked].abs().mean()


_FEW = 256  # candidates computed first in the sequential form; then twice as many


@dataclass(frozen=True)
class MLMOC:
    r"""Largest change of a Gaussian process around a trained network, if a point were labelled.

    $$ g(c) = \frac{\|y_c - \mu_c\|}{v_c + s} \, \frac1m \sum_{x \ne c} |\mathrm{cov}(x, c)| $$

    The network is trained on the labels so far, if there are any; the process has its outputs as
    prior mean and its empirical NTK as covariance, and is conditioned on the same labels. With
    `classes` the targets are +1 for the class and -1 elsewhere, fitted by squared error, and $y_c$
    is the class where $\mu_c$ is largest. Without `classes` the most likely label is $\mu_c$ itself
    and would change nothing, so the expected change is used: $\sqrt{2 (v_c + s) / \pi}$ in place of
    $|y_c - \mu_c|$ for one output, and the mean of the chi distribution for several.

    All k are picked by one score, unless `sequential`. The cost on top of training is O(n m (l +
    q)), with q the inputs and outputs of all layers, and at most k times that if sequential; memory
    is O(n l), and tiles of covariances.

    Parameters
    ----------
    recipe : Recipe
        Trains the networks.
    classes : int
        Number of classes; 0 for numbers.
    noise : float
        A fraction of the mean prior variance over the points averaged over.
    sequential : bool
        Add each pick with its most likely label before the next.
    first : int
        Picks are random until so many points are labelled.
    most : int
        Rows of the pool that are averaged over, drawn at random.
    clip : float
        Norm at which gradients are clipped, for classes.
    output : str or int
        Output of the network; a random one by default.

    Examples
    --------
    >>> from evgp import mlp
    >>> recipe = Recipe(mlp(1, 16, outputs=2), {"lr": 0.1, "steps": 20})
    >>> pool = Pool(torch.eye(4), labelled=torch.tensor([0, 1]), y=torch.tensor([1, 0]))
    >>> picks = MLMOC(recipe, classes=2)(pool, 2, generator=torch.Generator().manual_seed(0))
    >>> sorted(picks.indices.tolist())
    [2, 3]
    """

    recipe: Recipe
    classes: int = 0
    noise: float = 1e-2
    sequential: bool = False
    first: int = 0
    most: int = 10_000
    clip: float = 10.0
    output: str | int = "random"

    def __post_init__(self) -> None:
        if integer(self.classes, "classes", 0) == 1:
            raise BadArgument.of(PoolError)(
                "classes", ">= 2, or 0 for a regression", f"classes={self.classes!r}"
            )
        keep(self, first=integer(self.first, "first", 0), most=integer(self.most, "most", 1))
        why = "a fraction of the variance"
        keep(self, noise=number(self.noise, "noise", 0, 1e6, above=True, why=why))
        keep(self, clip=number(self.clip, "clip", 0, above=True))
        flag(self.sequential, "sequential")
        recipe_of(self.recipe)

    def __call__(self, pool: Pool, k: int, *, generator: Generator) -> Selection:
        """Return k picks, each with the mean change that it causes."""
        free = unlabelled(pool, k, generator)
        y = self._targets(pool)
        early = min(k, max(0, self.first - len(pool.known())))
        drawn = free[:0]
        if early:
            drawn = free[torch.randperm(len(free), generator=generator)[:early]]
        rows, gains = drawn.tolist(), [0.0] * early
        if early < k:
            free = free[~torch.isin(free, drawn)]
            fits(self.recipe, pool, self.classes, "MLMOC")
            ahead = self._open(pool, y, generator)
            take = self._one_by_one if self.sequential else self._at_once
            more, changes = take(ahead, free, k - early, drawn)
            rows, gains = rows + more, gains + changes
        return Selection(np.array(rows), np.array(gains))

    def _at_once(
        self, ahead: LookAhead, free: Int[Tensor, " c"], k: int, drawn: Int[Tensor, " r"]
    ) -> tuple[list[int], list[float]]:
        """The k largest scores; ties go to the lowest row."""
        scores = self._weight(ahead)[free] * ahead.spread(free)
        best = scores.argsort(descending=True, stable=True)[:k]
        return free[best].tolist(), scores[best].tolist()

    def _one_by_one(
        self, ahead: LookAhead, free: Int[Tensor, " c"], k: int, drawn: Int[Tensor, " r"]
    ) -> tuple[list[int], list[float]]:
        """The largest score, k times; earlier random picks get their most likely labels too."""
        for row in drawn.tolist():
            ahead.observe_(row, self._likely(ahead)[row])
        rows: list[int] = []
        gains: list[float] = []
        while True:
            row, gain = self._best(ahead, free)
            rows.append(row)
            gains.append(gain)
            if len(rows) == k:
                return rows, gains
            ahead.observe_(row, self._likely(ahead)[row])
            free = free[free != row]

    def _best(self, ahead: LookAhead, free: Int[Tensor, " c"]) -> tuple[int, float]:
        """The row with the largest score; rows whose bound is too low are skipped."""
        weight = self._weight(ahead)[free]
        most = weight * ahead.ceiling(free)
        order = most.argsort(descending=True, stable=True)
        scores = torch.full_like(most, -torch.inf)
        low, size = 0, _FEW
        while low < len(order) and float(most[order[low]]) >= float(scores.max()):
            block = order[low : low + size]
            scores[block] = weight[block] * ahead.spread(free[block])
            low, size = low + size, 2 * size
        best = int(scores.argmax())
        return int(free[best]), float(scores[best])

    def _weight(self, ahead: LookAhead) -> Float[Tensor, " n"]:
        r"""$\|y_c - \mu_c\| / (v_c + s)$, or its expectation."""
        scale = ahead.variance + ahead.noise
        if self.classes:
            return (self._likely(ahead) - ahead.mean).norm(dim=1) / scale
        half = ahead.mean.shape[1] / 2
        return sqrt(2) * exp(lgamma(half + 0.5) - lgamma(half)) / scale.sqrt()

    def _likely(self, ahead: LookAhead) -> Float[Tensor, "n o"]:
        """The most likely label of every point."""
        return signs(ahead.mean.argmax(1), self.classes) if self.classes else ahead.mean

    def _open(self, pool: Pool, y: Float[Tensor, "l o"] | None, generator: Generator) -> LookAhead:
        """The Gaussian process around a network that is trained on the labels."""
        seeds = torch.randint(2**31, (2,), generator=generator).tolist()
        looked = torch.arange(len(pool))
        if self.most < len(pool):
            looked = torch.randperm(len(pool), generator=generator)[: self.most].sort().values
        module = self._network(pool, y, seeds[0])
        kernel = EmpiricalNTK(module, self.output, seed=seeds[1])
        prior = float(kernel.diag(pool.x[looked]).double().mean())
        check_variance(prior)
        ahead = LookAhead(kernel, pool.x, looked, self.noise * prior, outputs(module, pool.x))
        if y is not None:
            known = pool.known()
            ahead.condition_(known, y - outputs(module, known))
        return ahead

    def _network(self, pool: Pool, y: Float[Tensor, "l o"] | None, seed: int) -> nn.Module:
        if y is None:
            return self.recipe.untrained(tuple(pool.x.shape[1:]), seed=seed)
        other: dict[str, Any] = {"clip": self.clip} if self.classes else {}
        return self.recipe(pool.known(), y, seed=seed, loss="mse", **other).module(0)

    def _targets(self, pool: Pool) -> Float[Tensor, "l o"] | None:
        """The targets of the network at the labelled points."""
        y = labels_of(pool, self.classes, "MLMOC")
        if y is None:
            return None
        if self.classes:
            return signs(y, self.classes)
        return y.double() if y.ndim == 2 else y.double()[:, None]


def signs(y: Int[Tensor, " n"], classes: int) -> Float[Tensor, "n o"]:
    """+1 for the class and -1 elsewhere.

    >>> signs(torch.tensor([1]), 3).tolist()
    [[-1.0, 1.0, -1.0]]
    """
    return 2 * nn.functional.one_hot(y.long(), classes).double() - 1
