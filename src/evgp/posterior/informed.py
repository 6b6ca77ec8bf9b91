r"""Variance of a candidate if the test outputs were known, for mutual information.

With $s$ the noise, $T$ the test points and $L$ the labelled ones:

- $x \notin T$: $\mathrm{var}(x \mid y_L, y_T)$, by conditioning on both and on each further pick;
- $x \in T$: $\mathrm{var}(x \mid y_{T - L - x})$, *not* conditioned on $L$ and without $x$ itself:
  $1 / Q_{xx} - s$ with $Q = (\Theta_{T - L} + s I)^{-1}$, downdated when a point leaves $T - L$.

Krause, Singh & Guestrin, Near-Optimal Sensor Placements in Gaussian Processes, JMLR 2008.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from evgp._linalg import safe_cholesky
from evgp.kernels import Kernel


class Informed:
    """O(m³ + m² c) to open, O(m² + k c) a pick; m x m and m x c float64 of memory."""

    def __init__(
        self,
        kernel: Kernel,
        x: Float[Tensor, " c *d"],
        x_test: Float[Tensor, " m *d"],
        *,
        in_test: Int[Tensor, " c"] | None,
        test_labelled: Bool[Tensor, " m"],
        known: Float[Tensor, " l *d"] | None,
        noise: float,
    ) -> None:
        self._kernel, self._s = kernel, noise
        self._place = in_test if in_test is not None else torch.full((len(x),), -1)
        test = x_test.double()
        alive = ~test_labelled  # a labelled point among the test points leaves T - L
        self._at = (torch.cumsum(alive, 0) - 1).masked_fill(~alive, -1)
        self._q = torch.cholesky_inverse(safe_cholesky(kernel(test[alive]), noise))
        outside = (self._place < 0).nonzero().squeeze(1)
        self._where = torch.full((len(x),), -1)
        self._where[outside] = torch.arange(len(outside))
        self._x = x[outside].double()
        given = test if known is None else torch.cat([test[alive], known.double()])
        factor = safe_cholesky(kernel(given), noise)
        self._b = torch.linalg.solve_triangular(factor, kernel(given, self._x), upper=False)
        self._v = kernel.diag(self._x) - self._b.square().sum(0)

    def variance(self) -> Float[Tensor, " c"]:
        """Of every candidate, whichever case it is."""
        out = torch.empty(len(self._place), dtype=torch.float64)
        inside = self._place >= 0
        at = self._at[self._place[inside]]
        diagonal = self._q.diagonal()[at.clamp(min=0)]
        # A picked test point is asked about no more; any finite value serves.
        out[inside] = torch.where(at >= 0, 1 / diagonal - self._s, self._s)
        out[~inside] = self._v
        return out.clamp(min=0)

    def observe_(self, row: int) -> None:
        """A pick leaves the test points, or informs those outside them."""
        place = int(self._place[row])
        if place >= 0:
            at = int(self._at[place])
            column = self._q[at].clone()
            self._q -= torch.outer(column, column) / column[at]
            self._q[at, at] = 1 / self._s
            self._at[place] = -1
            return
        j = int(self._where[row])
        column = self._kernel(self._x[j : j + 1], self._x)[0] - self._b[:, j] @ self._b
        column = column / (self._v[j].clamp(min=0) + self._s).sqrt()
        self._b = torch.cat([self._b, column[None]])
        self._v -= column.square()
