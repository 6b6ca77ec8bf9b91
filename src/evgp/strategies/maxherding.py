"""MaxHerding: picks whose neighbourhoods, by a smooth kernel, cover the pool.

Bae, Noh & Sutherland, Generalized Coverage for More Robust Low-Budget Active Learning, ECCV 2024.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Generator, Tensor

from evgp._checks import flag, keep, number
from evgp.pool import Pool, Selection
from evgp.strategies._cells import lowest, points_of
from evgp.strategies.diversity import Embed, flat, unit_rows
from evgp.strategies.strategy import unlabelled

_ROOM = 1 << 21  # entries of the kernel at a time
_CLOSE = 1e-8  # equal up to rounding
_AGAIN = 32  # candidates whose gains are recomputed at a time


@dataclass(frozen=True)
class MaxHerding:
    r"""Greedy growth of the mean over the pool of the largest kernel value with a labelled point.

    $$ \frac1n \sum_i \max_{j \in \text{labelled}} k(x_i, x_j), \qquad
       k(x, x') = \exp(-\gamma |x - x'|^2) $$

    on rows of unit norm, as in the paper. Without `normalise`, and for one column, where only signs
    would be left, rows are centred and divided by one number such that their mean squared norm is
    one. Gains are the growth.

    The gain of a row never grows, so only rows whose last known gain may still be the largest are
    computed again: the picks are those of plain greedy. O(n^2 d) for the first gains and O(n d) for
    each later one; O(n d) memory: the matrix is never formed. Ties go to the lowest row.

    Parameters
    ----------
    gamma : float
        Of the kernel; that of the paper is 1.
    normalise : bool
        Whether rows get unit norm.
    embed : callable
        Features in which distances are measured; the inputs by default.

    Examples
    --------
    >>> pool = Pool(torch.tensor([[0.0], [1.0], [2.0], [20.0], [21.0]]))
    >>> MaxHerding()(pool, 2, generator=torch.Generator()).indices.tolist()
    [1, 3]
    """

    gamma: float = 1.0
    normalise: bool = True
    embed: Embed = flat
    learns: ClassVar[bool] = False
    ahead: ClassVar[bool] = True

    def __post_init__(self) -> None:
        keep(self, gamma=number(self.gamma, "gamma", 0, 1e12, above=True))
        flag(self.normalise, "normalise")

    def __call__(self, pool: Pool, k: int, *, generator: Generator) -> Selection:
        """Return k picks, each with the coverage that it adds."""
        free = unlabelled(pool, k, generator)
        x, known, _ = points_of(self.embed, pool)
        x = self._scaled(x, len(pool))
        inside = x[: len(pool)]
        best = torch.zeros(len(pool), dtype=torch.float64)
        for block in torch.split(known, self._step(pool)) if len(known) else ():
            best = torch.maximum(best, self._kernel(x[block], inside).amax(0))
        ceiling = torch.full((len(pool),), -torch.inf, dtype=torch.float64)
        for block in torch.split(free, self._step(pool)):
            ceiling[block] = self._gains(x[block], inside, best)
        rows: list[int] = []
        gains: list[float] = []
        for number_ in range(k):
            row = self._winner(ceiling, inside, best, exact=number_ == 0)
            rows.append(row)
            gains.append(float(ceiling[row]))
            ceiling[row] = -torch.inf
            best = torch.maximum(best, self._kernel(inside[row : row + 1], inside)[0])
        return Selection(np.array(rows), np.array(gains))

    def _winner(
        self, ceiling: Tensor, x: Float[Tensor, "n p"], best: Float[Tensor, " n"], *, exact: bool
    ) -> int:
        """The row of largest gain; gains are recomputed in place until none can be larger."""
        if exact:
            return lowest(ceiling.numpy())
        known = torch.zeros(len(ceiling), dtype=torch.bool)
        while True:
            value = float(ceiling[known].max()) if bool(known.any()) else -torch.inf
            open_ = torch.where(known, -torch.inf, ceiling)
            high, rows = open_.topk(min(_AGAIN, len(open_)))
            rows = rows[(high >= value * (1 - _CLOSE)) & (high > -torch.inf)]
            if not len(rows):
                return lowest(torch.where(known, ceiling, -torch.inf).numpy())
            ceiling[rows] = torch.minimum(ceiling[rows], self._gains(x[rows], x, best))
            known[rows] = True

    def _gains(
        self, rows: Float[Tensor, "m p"], x: Float[Tensor, "n p"], best: Float[Tensor, " n"]
    ) -> Float[Tensor, " m"]:
        return (self._kernel(rows, x) - best).clamp_(min=0).mean(1)

    def _kernel(self, a: Float[Tensor, "m p"], b: Float[Tensor, "n p"]) -> Float[Tensor, "m n"]:
        apart = a.square().sum(1)[:, None] + b.square().sum(1)
        return torch.addmm(apart, a, b.T, alpha=-2).clamp_(min=0).mul_(-self.gamma).exp_()

    def _scaled(self, x: Float[Tensor, "r p"], n: int) -> Float[Tensor, "r p"]:
        if self.normalise and x.shape[1] > 1:
            return unit_rows(x)
        x = x - x[:n].mean(0)
        return x / (float(x[:n].square().sum(1).mean()) ** 0.5 or 1.0)

    def _step(self, pool: Pool) -> int:
        return max(1, _ROOM // len(pool))
