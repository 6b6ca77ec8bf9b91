"""Uncertainty sampling: the point with the largest variance, given those before it.

Seo et al., Gaussian Process Regression: Active Data Selection and Test Point Rejection, IJCNN 2000;
the greedy of D-optimal designs.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Generator

from evgp._checks import keep, noise_of
from evgp._defaults import NOISE
from evgp.kernels import Kernel, checked, is_random, redrawn
from evgp.pool import Pool, Selection
from evgp.selection.run import check_variance
from evgp.strategies.strategy import unlabelled


@dataclass(frozen=True)
class MaxVariance:
    """Pick the largest posterior variance, by a pivoted Cholesky factorisation.

    Test points do not matter. Gains are the variances. O(n (k + l)²) time and O(n (k + l)) memory;
    the matrix is never formed.

    Parameters
    ----------
    kernel : Kernel
    noise : float
        A fraction of the mean prior variance over the pool.

    Examples
    --------
    >>> from evgp import NTK, mlp
    >>> pool = Pool(torch.tensor([[1.0, 0.0], [1.0, 0.1], [3.0, 0.0]]).double())
    >>> MaxVariance(NTK(mlp()))(pool, 1, generator=torch.Generator()).indices.tolist()
    [2]
    """

    kernel: Kernel
    noise: float = NOISE
    learns: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel", checked(self.kernel))
        keep(self, noise=noise_of(self.noise))

    @property
    def ahead(self) -> bool:
        """Whether one long list serves all rounds: not for random kernels."""
        return not is_random(self.kernel)

    def renewed(self, seed: int) -> "MaxVariance":
        """The strategy with the kernel of another random network, if its kernel is random."""
        return replace(self, kernel=redrawn(self.kernel, seed))

    def __call__(self, pool: Pool, k: int, *, generator: Generator) -> Selection:
        """Return k picks, each with its variance before it is labelled."""
        free = unlabelled(pool, k, generator)
        points = pool.x if pool.x_labelled is None else torch.cat([pool.x, pool.x_labelled])
        left = self.kernel.diag(points).double().clone()
        mean = float(left[: len(pool)].mean())
        check_variance(mean)
        noise = self.noise * mean
        columns = left.new_empty(0, len(points))
        outside = range(len(pool), len(points))
        for row in (*pool.labelled.tolist(), *outside):
            columns, left = self._observe(points, columns, left, row, noise)
        may = torch.zeros(len(points), dtype=torch.bool)
        may[free] = True
        rows: list[int] = []
        gains: list[float] = []
        for _ in range(k):
            row = int(torch.where(may, left, -torch.inf).argmax())
            rows.append(row)
            gains.append(float(left[row]))
            may[row] = False
            columns, left = self._observe(points, columns, left, row, noise)
        return Selection(np.array(rows), np.array(gains))

    def _observe(
        self,
        points: torch.Tensor,
        columns: torch.Tensor,
        left: torch.Tensor,
        row: int,
        noise: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The columns with one more, and the variances that it leaves."""
        column = self.kernel(points[row : row + 1], points)[0].double()
        column = column - columns[:, row] @ columns
        scale = max(float(left[row]), 0.0) + noise
        column = column / max(scale, 1e-300) ** 0.5
        return torch.cat([columns, column[None]]), (left - column.square()).clamp(min=0)
