r"""A Gaussian process that says how much one label more would change it, tile by tile.

With $V = C^{-1} K_{LX}$ and $C C^\top = K_L + s I$ the covariance given the labelled points $L$ is
$\mathrm{cov}(x, c) = K_{xc} - V_x^\top V_c$; a pick adds one row to $V$.
"""

from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from evgp._linalg import safe_cholesky
from evgp.kernels import Kernel

# Bytes of a tile of covariances: large, so that few passes over the points looked at are made.
TILE = 1 << 27


@dataclass
class LookAhead:
    """Mean, variance and covariances at all points, given some labels.

    `looked` are the rows at which change is averaged. O(l n) memory beside the tiles.

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
        """Learn labels at other points; `rest` is how far they lie from the mean there."""
        factor = safe_cholesky(self.kernel(known).double(), self.noise)
        cross = self.kernel(known, self.x).double()
        self.columns = torch.linalg.solve_triangular(factor, cross, upper=False)
        solved = torch.linalg.solve_triangular(factor, rest, upper=False)
        self.mean = self.mean + self.columns.T @ solved
        self.variance = (self.variance - self.columns.square().sum(0)).clamp(min=0)

    def spread(self, rows: Int[Tensor, " r"]) -> Float[Tensor, " r"]:
        r"""$\frac1m \sum_{x \ne c} |\mathrm{cov}(x, c)|$ for each row $c$."""
        step = max(1, TILE // (8 * len(self.looked)))
        parts = [self._tile(some) for some in torch.split(rows, step)]
        self._ceiling[rows] = torch.cat(parts) / len(self.looked)
        return self._ceiling[rows]

    def ceiling(self, rows: Int[Tensor, " r"]) -> Float[Tensor, " r"]:
        """What the spread of each row is at most, from what is known of it: O(n), no kernel."""
        deviation = self.variance.sqrt()
        return torch.minimum(self._ceiling, deviation * deviation[self.looked].mean())[rows]

    def _tile(self, rows: Int[Tensor, " r"]) -> Float[Tensor, " r"]:
        tile = self.kernel(self.x[rows], self._seen).double()
        tile.addmm_(self.columns[:, rows].T, self.columns[:, self.looked], alpha=-1)
        place = self._place[rows]
        own = (place >= 0).nonzero()[:, 0]
        tile[own, place[own]] = 0
        return tile.abs_().sum(1)

    def observe_(self, row: int, label: Float[Tensor, " o"]) -> None:
        """Learn a label of one row: a rank-one step, O(l n)."""
        column = self.kernel(self.x[row : row + 1], self.x)[0].double()
        column -= self.columns[:, row] @ self.columns
        scale = float(self.variance[row]) + self.noise
        self.mean = self.mean + column[:, None] * ((label - self.mean[row]) / scale)
        column /= scale**0.5
        self.columns = torch.cat([self.columns, column[None]])
        self.variance = (self.variance - column.square()).clamp(min=0)
        # A covariance changes by the product of its two entries of the column, up or down.
        self._ceiling += column.abs() * column[self.looked].abs().mean()
