"""ProbCover: balls of one radius that cover most rows.

Yehuda, Dekel, Hacohen & Weinshall, Active Learning Through a Covering Lens, NeurIPS 2022.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

from evgp._checks import integer, keep, number, seed_of
from evgp._linalg import BLOCK
from evgp.pool import Pool, Selection
from evgp.strategies._cells import clustered, points_of
from evgp.strategies.diversity import Embed, flat
from evgp.strategies.strategy import unlabelled

_ROOM = 1 << 24  # distances at a time
_BELOW = 1 - 1e-9  # the radius stays below the distance that would spoil a ball


@dataclass(frozen=True)
class ProbCover:
    r"""Always the row whose ball of one radius covers most rows that no label or pick covers yet.

    The radius is the largest at which a share `purity` of the balls holds rows of one cluster only,
    for as many clusters (k-means with ten starts) as there are classes, 2 for numbers: the $(1 -
    \text{purity})$ quantile of the distances to the nearest row of another cluster. The paper reads
    it off a curve, scikit-activeml off a grid; here it is exact, and of any scale. Gains are the
    shares of rows that a pick newly covers. Once all are covered the rest is random, as in
    scikit-activeml.

    O(n^2 d) time in blocks, O(n d) memory: distances are computed again, not kept. Ties go to the
    lowest row.

    Parameters
    ----------
    classes : int
        Number of classes; 0 for numbers.
    purity : float
        Share of balls with rows of one cluster only.
    radius : float, optional
        Of the balls, in place of `purity`.
    seed : int
        Of the clusters.
    embed : callable
        Features in which distances are measured; the inputs by default.

    Examples
    --------
    >>> pool = Pool(torch.tensor([[0.0], [1.0], [2.0], [20.0], [21.0]]))
    >>> ProbCover(radius=1.5)(pool, 2, generator=torch.Generator()).indices.tolist()
    [1, 3]
    """

    classes: int = 0
    purity: float = 0.95
    radius: float | None = None
    seed: int = 0
    embed: Embed = flat
    learns: ClassVar[bool] = False
    ahead: ClassVar[bool] = True

    def __post_init__(self) -> None:
        keep(self, classes=integer(self.classes, "classes", 0), seed=seed_of(self.seed))
        keep(self, purity=number(self.purity, "purity", 0, 1, above=True))
        if self.radius is not None:
            keep(self, radius=number(self.radius, "radius", 0, above=True))

    def __call__(self, pool: Pool, k: int, *, generator: Generator) -> Selection:
        """Return k picks, each with the share of rows that it newly covers."""
        free = unlabelled(pool, k, generator)
        x, known, unit = points_of(self.embed, pool)
        x = x - x[: len(pool)].mean(0)
        inside = x[: len(pool)]
        radius = self.radius / unit if self.radius is not None else self._radius(inside)
        may = torch.zeros(len(pool), dtype=torch.bool)
        may[free] = True
        uncovered = torch.ones(len(pool), dtype=torch.bool)
        count = torch.zeros(len(pool), dtype=torch.int64)
        for block in torch.split(known, _rows(inside)) if len(known) else ():
            uncovered &= ~(distances(x[block], inside) <= radius).any(0)
        _cover_(count, inside, uncovered.nonzero()[:, 0], radius, 1)
        rows: list[int] = []
        gains: list[float] = []
        for _ in range(k):
            row = int(torch.where(may, count, -1).argmax())
            if not int(count[row]):
                left = may.nonzero()[:, 0]
                row = int(left[torch.randint(len(left), (), generator=generator)])
            rows.append(row)
            gains.append(float(count[row]) / len(pool))
            may[row] = False
            new = uncovered & (distances(inside[row : row + 1], inside)[0] <= radius)
            new[row] = uncovered[row]  # despite rounding
            uncovered &= ~new
            _cover_(count, inside, new.nonzero()[:, 0], radius, -1)
        return Selection(np.array(rows), np.array(gains))

    def _radius(self, x: Float[Tensor, "n p"]) -> float:
        cell, _ = clustered(x, min(max(self.classes, 2), len(x)), self.seed)
        return pure_radius(x, torch.from_numpy(cell), self.purity)


def pure_radius(x: Float[Tensor, "n p"], cell: Int[Tensor, " n"], purity: float) -> float:
    """The largest radius at which this share of balls holds rows of one cell only.

    >>> x = torch.tensor([[0.0], [1.0], [5.0], [7.0]]).double()
    >>> round(pure_radius(x, torch.tensor([0, 0, 1, 1]), 0.5), 6)
    5.0
    """
    nearest = []
    for rows in torch.split(torch.arange(len(x)), _rows(x)):
        apart = distances(x[rows], x)
        nearest.append(apart.masked_fill_(cell[rows, None] == cell, torch.inf).amin(1))
    spoilt = int(
        (1 - purity) * len(x) + 1e-9
    )  # number of balls that may hold a row of another cluster
    return float(torch.cat(nearest).sort().values[min(spoilt, len(x) - 1)]) * _BELOW


def distances(a: Float[Tensor, "n p"], b: Float[Tensor, "m p"]) -> Float[Tensor, "n m"]:
    """Distances by one product.

    >>> distances(torch.eye(1).double(), torch.zeros(1, 1).double()).tolist()
    [[1.0]]
    """
    both = a.square().sum(1)[:, None] + b.square().sum(1)
    return torch.addmm(both, a, b.T, alpha=-2).clamp_(min=0).sqrt_()


def _cover_(
    count: Int[Tensor, " n"],
    x: Float[Tensor, "n p"],
    rows: Int[Tensor, " m"],
    radius: float,
    by: int,
) -> None:
    """Add `by` to the counts of the rows whose balls hold these rows, for each of them."""
    for block in torch.split(rows, _rows(x)) if len(rows) else ():
        near = distances(x[block], x) <= radius
        near[torch.arange(len(block)), block] = True
        count += by * near.sum(0)


def _rows(x: Tensor) -> int:
    return max(1, min(BLOCK, _ROOM // max(1, len(x))))
