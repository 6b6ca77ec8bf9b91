r"""The posterior in feature space: nothing grows with the number of test points.

For a kernel $\phi(x)^\top \phi(x')$ with p features the posterior covariance is
$\phi^\top P \phi'$ with $P = I - V^\top V$, one row of V a pick, and test points enter through
$M = \sum_t w_t \phi_t \phi_t^\top$ alone. A pick with variance $v_*$ and noise $s_*$ gives
$u = P \phi_* / \sqrt{v_* + s_*}$ and $w = P M u$; then, for all candidates at once,

$$ q = \Phi [u\; w], \qquad f \leftarrow f - 2 q_0 q_1 + (u^\top M u) q_0^2, \qquad
   v \leftarrow v - q_0^2, \qquad P \leftarrow P - u u^\top $$

so that a pick is one read of the features. To forget point $i$, let $F F^\top$ be the covariance of
the picks and $h \propto F^{-1} e_i$: then $r = V^\top h$ comes back, with the signs above turned.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from evgp._errors import PoolError
from evgp._linalg import JITTER, mirror_of
from evgp.posterior.rows import FeatureRows
from evgp.posterior.sums import EXACT, Change, FeatureSums, Sums, root_of


@dataclass
class _Gap:
    """A point taken out for now, and what to go back to."""

    row: int
    h: Tensor
    sums: Sums
    p: Tensor


class FeaturePosterior:
    """Candidates given labelled points, and test points as a mean: exact for the features.

    Opening costs O((c + l) p² + l³) and one read of the c x p features; `observe_` O(p² + k p), and
    one read when `fall()` is next asked for; `forget_` the same, read at once. Memory: the features
    as they are kept, six numbers a row, and (3 p + k) p float64.

    `state` has P and M, and `observe_` moves it on; `rest` is the mean variance of the test points
    that no feature carries, which no label lowers. `noise` is that of each candidate's label, its
    own rest included. `variance()` never exceeds the truth, so that gains from it are ceilings;
    rows asked for by number are exact. `sums`, where they are kept elsewhere, are those of `rows`.
    """

    def __init__(
        self,
        rows: FeatureRows,
        state: FeatureSums,
        *,
        noise: Float[Tensor, " c"],
        rest: float = 0.0,
        sums: Sums | None = None,
    ) -> None:
        self._phi, self._state, self._rest = rows, state, rest
        self._scale = float(state.m.trace()) + rest
        least = JITTER * self._scale
        self._s = noise.clamp(min=least) if bool((noise < least).any()) else noise
        self._sums = Sums.of(rows, state) if sums is None else sums
        self._waiting: list[Change] = []
        self._rows: list[int] = []
        self._vs = state.m.new_empty(0, len(state.m))
        self._inverse = state.m.new_empty(0, 0)
        self._gap: _Gap | None = None
        self._root: Tensor | None = None

    # -- what may be asked ------------------------------------------------------------------

    def variance(self) -> Float[Tensor, " c"]:
        """Of each candidate: exact where it was asked for by number, else no more than it is."""
        self._fold()
        return (self._sums.v - self._sums.v_slack).clamp(min=0)

    def noise(self) -> Float[Tensor, " c"]:
        """Variance of a label, for each candidate."""
        return self._s

    def mean_variance(self) -> float:
        """Over the test points."""
        return self._state.mean_variance() + self._rest

    def scale(self) -> float:
        """Mean variance of the test points before any label."""
        return self._scale

    def weights(self) -> Float[Tensor, " q"]:
        """One for each direction that stands for the test points, and for their rest."""
        return torch.ones(len(self._state.m) + 1, dtype=torch.float64)

    def test_variance(self) -> Float[Tensor, " q"]:
        """In directions that together have the mean variance of the test points, and the rest."""
        root = self._directions()
        inside = ((root @ self._state.p) * root).sum(1).clamp(min=0)
        return torch.cat([inside, inside.new_tensor([self._rest])])

    def slack(self) -> Float[Tensor, " c"]:
        """How far `fall()` may be from the truth, by rounding."""
        self._fold()
        return self._sums.f_slack

    def fall(self, rows: Int[Tensor, " r"] | None = None) -> Float[Tensor, " r"]:
        """Weighted sum over test points of cov²: exact for given rows, running sums for all."""
        self._fold()
        if rows is None:
            return self._sums.f.clamp(min=0)
        phi = self._phi.take(rows)
        inner = phi @ self._state.p
        exact = ((inner @ self._state.m) * inner).sum(1)
        sums = self._sums
        sums.v[rows], sums.f[rows] = (inner * phi).sum(1), exact
        sums.v_slack[rows], sums.f_slack[rows] = 0.0, exact.abs() * EXACT
        return exact

    def covariance(self, rows: Int[Tensor, " r"]) -> Float[Tensor, "r q"]:
        """Between candidates and the directions of `test_variance`."""
        inside = self._phi.take(rows) @ self._state.p @ self._directions().T
        return torch.cat([inside, inside.new_zeros(len(rows), 1)], dim=1)

    def informed_variance(self) -> Float[Tensor, " c"]:
        """Not in feature space: the test points are not there one by one."""
        raise PoolError(
            "expected the expected variance as criterion with features, got mutual information, "
            "which needs the test points one by one; use criterion='ev'"
        )

    def observed(self) -> list[int]:
        """The rows labelled so far."""
        gone = self._gap.row if self._gap is not None else None
        return [row for row in self._rows if row != gone]

    # -- what changes it --------------------------------------------------------------------

    def observe_(self, row: int) -> None:
        """Label a candidate."""
        if row in self.observed():
            raise PoolError(f"expected a row not yet observed, got {row}")
        if self._gap is not None:
            if self._gap.row == row:
                self._sums, self._state.p, self._gap = self._gap.sums, self._gap.p, None
                return
            self._close()
        k = len(self._rows)
        phi = self._phi.take(torch.tensor([row]))[0]
        u, scale = self._state.direction(phi, float(self._s[row]))
        b = self._vs @ phi
        inverse = u.new_zeros(k + 1, k + 1)
        inverse[:k, :k] = self._inverse
        inverse[k, :k] = -(b @ self._inverse) / scale
        inverse[k, k] = 1 / scale
        self._inverse = inverse
        self._vs = torch.cat([self._vs, u[None]])
        self._rows.append(row)
        self._waiting.append(self._state.change_(u, -1))

    def forget_(self, row: int) -> None:
        """Take a label back; the next `observe_` fills the gap or closes it."""
        if self._gap is not None:
            self._close()
        if row not in self._rows:
            raise PoolError(f"expected an observed row, got {row}")
        self._fold()
        h = self._inverse[:, self._rows.index(row)]
        h = h / h.norm()
        self._gap = _Gap(row, h, self._sums.copy(), self._state.p.clone())
        self._waiting.append(self._state.change_(h @ self._vs, 1))
        self._fold()

    def follow_(self, change: Change) -> None:
        """Take note of a pick from elsewhere, which has moved the shared state already."""
        self._waiting.append(change)

    # -- inside -----------------------------------------------------------------------------

    def _fold(self) -> None:
        """Bring all rows up to the last change: one read of the features."""
        if not self._waiting:
            return
        for start, block in self._phi.blocks():
            for change in self._waiting:
                self._sums.apply_(change, block, start, self._phi.shape[0])
        self._waiting.clear()

    def _close(self) -> None:
        """Rotate the forgotten row to the end of V and drop it."""
        assert self._gap is not None
        at, h = self._rows.index(self._gap.row), self._gap.h
        mirror = mirror_of(h)
        for block in (self._vs, self._inverse):
            block.addr_(mirror, mirror @ block, alpha=-2)
        keep = [i for i in range(len(self._rows)) if i != at]
        self._vs, self._inverse = self._vs[:-1], self._inverse[:-1][:, keep]
        self._rows.pop(at)
        self._gap = None

    def _directions(self) -> Float[Tensor, "p p"]:
        if self._root is None:
            self._root = root_of(self._state.m)
        return self._root
