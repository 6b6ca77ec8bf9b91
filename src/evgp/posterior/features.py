r"""The posterior in feature space: nothing grows with the number of test points.

For a kernel $\phi(x)^\top \phi(x')$ with p features the posterior covariance is
$\phi^\top P \phi'$ with $P = I - V^\top V$, one row of V a pick, and test points enter through
$M = \sum_t w_t \phi_t \phi_t^\top$ alone. A pick with variance $v_*$ and noise $s_*$ gives
$u = P \phi_* / \sqrt{v_* + s_*}$ and $w = P M u$; then, for all candidates at once,

$$ q = \Phi [u\; w], \qquad f \leftarrow f - 2 q_0 q_1 + (u^\top M u) q_0^2, \qquad
   v \leftarrow v - q_0^2, \qquad P \leftarrow P - u u^\top $$

so that a pick is one read of the features. To forget point $i$, let $F F^\top$ be the covariance of
the picks and $h \propto F^{-1} e_i$: then $r = V^\top h$ is added back, with the signs above
reversed.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from evgp._linalg import BLOCK, JITTER, mirror_of
from evgp.errors import PoolError
from evgp.kernels import Features
from evgp.pool import Pool
from evgp.posterior.feature_rows import FeatureRows, Some, Stored, moment
from evgp.posterior.feature_sums import EXACT, Change, FeatureSums, Sums, columns_of, root_of
from evgp.posterior.posterior import AHEAD, FINALISTS, Posterior, TestCovariance

_SMALL = 1 << 24  # entries of features that are read in no time


@dataclass
class _Gap:
    """A point that is removed for now, and the sums with it."""

    row: int
    h: Tensor
    sums: Sums
    p: Tensor


@dataclass
class _Expected:
    """Picks that were prepared, with products of all rows with the vectors of each."""

    rows: list[int]
    changes: list[Change]
    products: Float[Tensor, "2 t c"]
    done: int = 0


class FeaturePosterior:
    """The posterior of candidates, and the mean over test points: exact for the features.

    Opening costs O((c + l) p² + l³) and one read of the c x p features; `observe_` O(p² + k p), and
    one read at the next `fall()`; `forget_` the same, with the read at once. Memory: the features
    as stored, six numbers per row, and (3 p + k) p float64.

    `state` has P and M; `observe_` updates it. `rest` is the mean variance of the test points that
    the features miss, which no label lowers. `noise` is the variance of each candidate's label,
    its own residual included. `variance()` is a lower bound, so that gains from it are ceilings;
    rows requested by number are exact. `sums` are those of `rows`, if they are stored elsewhere.
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
        self._expected: _Expected | None = None
        self._rows: list[int] = []
        self._vs = state.m.new_empty(0, len(state.m))
        self._inverse = state.m.new_empty(0, 0)
        self._gap: _Gap | None = None
        self._root: Tensor | None = None

    # -- queries ----------------------------------------------------------------------------

    def variance(self) -> Float[Tensor, " c"]:
        """Variance of each candidate: exact for rows requested by number, else a lower bound."""
        self._fold()
        return (self._sums.v - self._sums.v_slack).clamp(min=0)

    def noise(self) -> Float[Tensor, " c"]:
        """Variance of a label, for each candidate."""
        return self._s

    def mean_variance(self) -> float:
        """Mean variance of the test points."""
        return self._state.mean_variance() + self._rest

    def scale(self) -> float:
        """Mean variance of the test points before any label."""
        return self._scale

    def weights(self) -> Float[Tensor, " q"]:
        """Ones: for each direction that represents the test points, and for their residual."""
        return torch.ones(len(self._state.m) + 1, dtype=torch.float64)

    def test_variance(self) -> Float[Tensor, " q"]:
        """Variances of directions that add up to the test points' mean, and the residual."""
        root = self._directions()
        inside = ((root @ self._state.p) * root).sum(1).clamp(min=0)
        return torch.cat([inside, inside.new_tensor([self._rest])])

    def slack(self) -> Float[Tensor, " c"]:
        """Bound on the rounding error of `fall()`."""
        self._fold()
        return self._sums.f_slack

    def fall(self, rows: Int[Tensor, " r"] | None = None) -> Float[Tensor, " r"]:
        """Weighted sum of cov² over the test points: exact for `rows`, running sums for all."""
        self._fold()
        if rows is None:
            return self._sums.f.clamp(min=0)
        phi = self._phi.take(rows)
        inner = phi @ self._state.p
        exact = ((inner @ self._state.m) * inner).sum(1).clamp(min=0)
        sums = self._sums
        sums.v[rows], sums.f[rows] = (inner * phi).sum(1), exact
        sums.v_slack[rows], sums.f_slack[rows] = 0.0, exact.abs() * EXACT
        return exact

    def covariance(self, rows: Int[Tensor, " r"]) -> Float[Tensor, "r q"]:
        """Covariance between candidates and the directions of `test_variance`."""
        inside = self._phi.take(rows) @ self._state.p @ self._directions().T
        return torch.cat([inside, inside.new_zeros(len(rows), 1)], dim=1)

    def informed_variance(self) -> Float[Tensor, " c"]:
        """Not available: in feature space there are no individual test points."""
        raise PoolError(
            "expected a criterion that works with features, such as 'ev'; got mutual information, "
            "which needs the test points one by one"
        )

    def observed(self) -> list[int]:
        """The rows labelled so far."""
        gone = self._gap.row if self._gap is not None else None
        return [row for row in self._rows if row != gone]

    # -- updates ----------------------------------------------------------------------------

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
        self._fold()
        inverse = u.new_zeros(k + 1, k + 1)
        inverse[:k, :k] = self._inverse
        inverse[k, :k] = -(b @ self._inverse) / scale
        inverse[k, k] = 1 / scale
        self._inverse = inverse
        self._vs = torch.cat([self._vs, u[None]])
        self._rows.append(row)
        change, ahead = self._state.change_(u, -1), self._expected
        if ahead is None or ahead.done == len(ahead.rows) or ahead.rows[ahead.done] != row:
            self._expected = None
            self._waiting.append(change)
            return
        # The products are those of the same vectors, computed in the same way.
        self._sums.move_(ahead.changes[ahead.done], ahead.products[:, ahead.done])
        ahead.done += 1

    def worth(self) -> int:
        """How many picks to prepare for at once: one for features that are read in no time."""
        return ahead_of(*self._phi.shape)

    def pairs(self, rows: Int[Tensor, " r"]) -> tuple[Float[Tensor, "r r"], Float[Tensor, "r r"]]:
        """Covariance of these candidates, and weighted sums of products over the test points.

        O(r p² + r² p) for r rows.
        """
        self._fold()
        phi = self._phi.take(rows)
        inner = phi @ self._state.p
        return inner @ phi.T, inner @ self._state.m @ inner.T

    def expect_(self, rows: list[int]) -> None:
        """Prepare for these picks, in this order: O(t p²), and one read of the features for all."""
        if self._gap is not None:
            self._close()
        self._fold()
        state = FeatureSums(self._state.p.clone(), self._state.m)
        changes = []
        for phi, noise in zip(self._phi.take(torch.tensor(rows)), self._s[rows], strict=True):
            changes.append(state.change_(state.direction(phi, float(noise))[0], -1))
        vectors = torch.stack([*(c.u for c in changes), *(c.w for c in changes)])
        products = torch.empty(0)
        for start, block in self._phi.blocks():
            if start == 0:
                products = block.new_empty(len(vectors), self._phi.shape[0])
            torch.mm(vectors.to(block.dtype), block.T, out=products[:, start : start + len(block)])
        self._expected = _Expected([*rows], changes, products.view(2, len(rows), -1))

    def forget_(self, row: int) -> None:
        """Take a label back; the next `observe_` fills the gap or closes it."""
        if self._gap is not None:
            self._close()
        if row not in self._rows:
            raise PoolError(f"expected an observed row, got {row}")
        self._fold()
        self._expected = None
        h = self._inverse[:, self._rows.index(row)]
        h = h / h.norm()
        self._gap = _Gap(row, h, self._sums.copy(), self._state.p.clone())
        self._waiting.append(self._state.change_(h @ self._vs, 1))
        self._fold()

    def follow_(self, change: Change) -> None:
        """Note a pick made elsewhere; the shared state includes it already."""
        self._waiting.append(change)

    # -- internals --------------------------------------------------------------------------

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


def ahead_of(c: int, p: int) -> int:
    """How many picks to prepare for at once, so that products stay below a quarter of the rows."""
    return 1 if c * p < _SMALL else min(AHEAD, p // 8)


def prepared_memory(c: int, p: int, size: int) -> int:
    """Bytes that guesses of the next picks need, for features of `size` bytes.

    >>> prepared_memory(1_000, 512, 4), prepared_memory(1_000_000, 512, 4)
    (0, 272777216)
    """
    ahead = ahead_of(c, p)
    return 0 if ahead < 2 else 2 * ahead * c * size + 8 * FINALISTS * (2 * p + 6 * FINALISTS)


@dataclass(frozen=True, eq=False)
class FeatureStart:
    r"""Opens posteriors over candidates of a pool of feature rows.

    `residual` is the variance that the features miss, `moment` and `rest` describe the test points,
    and `noise` is the absolute variance of a label; `known` are the labelled points.
    """

    rows: FeatureRows
    residual: Float[Tensor, " n"]
    moment: Float[Tensor, "p p"]
    rest: float
    noise: float
    known: Float[Tensor, "l p"]
    known_residual: Float[Tensor, " l"]

    @classmethod
    def of(
        cls, features: Features, pool: Pool, noise: float, storage: torch.dtype
    ) -> "FeatureStart":
        """Compute features of every point once: stored for the pool, summed for the test points.

        `noise` is a fraction of the mean prior variance over the test points.
        """
        rows, residual = featurise(features, pool.x, storage)
        weights, at = pool.test_weights(), pool.test_rows()
        if at is not None:
            every = torch.zeros(len(residual), dtype=torch.float64)
            every.index_add_(0, at, weights.double())  # a row may occur twice among them
            total, rest = moment(rows, every), float(every @ residual)
        else:
            test, own = featurise(features, pool.test_points(), storage)
            total, rest = moment(test, weights), float(weights @ own)
        prior = float(total.trace()) + rest
        inside, own = total.new_empty(0, len(total)), total.new_empty(0)
        if len(known := pool.known()):
            stored, own = featurise(features, known, torch.float64)
            inside = stored.take(torch.arange(len(known)))
        return cls(rows, residual, total, rest, noise * prior, inside, own)

    @property
    def prior(self) -> float:
        """Mean variance of the test points without labels."""
        return float(self.moment.trace()) + self.rest

    def __call__(self, candidates: Int[Tensor, " c"]) -> FeaturePosterior:
        """A posterior over these pool rows."""
        return FeaturePosterior(
            self._some(candidates),
            self.state(),
            noise=self.noise + self.residual[candidates],
            rest=self.rest,
        )

    def state(self) -> FeatureSums:
        """P and M before the first pick."""
        return FeatureSums.of(self.moment, self.known, self.noise + self.known_residual)

    def _some(self, candidates: Int[Tensor, " c"]) -> FeatureRows:
        n = self.rows.shape[0]
        if len(candidates) == n and torch.equal(candidates, torch.arange(n)):
            return self.rows
        if len(candidates) <= BLOCK or bool((candidates.diff() < 0).any()):
            return Stored(self.rows.take(candidates))
        return Some(self.rows, candidates)

    def __len__(self) -> int:
        return len(self.residual)

    def test_covariance(self, posterior: Posterior) -> TestCovariance:
        """Covariance of the test points' directions, given the labels at the start."""
        root = root_of(self.moment)
        base = columns_of(self.known, self.noise + self.known_residual) @ root.T
        matrix = root @ root.T
        variance = matrix.diagonal() - base.square().sum(0)
        ones = torch.ones(len(root), dtype=torch.float64)
        return TestCovariance(matrix, base, ones, variance.clamp(min=0))


def featurise(
    features: Features, x: Shaped[Tensor, " n *d"], storage: torch.dtype
) -> tuple[Stored, Float[Tensor, " n"]]:
    """Features in `storage` and residuals in float64, block by block."""
    phis, rests = [], []
    for start in range(0, len(x), BLOCK):
        block = x[start : start + BLOCK]
        phi = features.phi(block)
        phis.append(phi.to(storage))
        check_finite(phis[-1], start)
        rests.append(features.residual(block, phi))
    return Stored(torch.cat(phis)), torch.cat(rests).double()


def check_finite(phi: Float[Tensor, "b p"], first: int) -> None:
    """Refuse features that overflow their storage type; `first` is the number of the first row."""
    if not bool(torch.isfinite(phi).all()):
        row = first + int((~torch.isfinite(phi)).any(1).nonzero()[0])
        kind = str(phi.dtype).removeprefix("torch.")
        raise PoolError(
            f"expected features that {kind} can hold, got NaN, inf or too large a number in row "
            f"{row}; scale the inputs, or leave that row out"
        )
