r"""The exact posterior, one Cholesky column at a time, and how it is opened.

Let $\Theta'$ be the covariance after the points labelled at the start, and let a pick with
variance $v_*$ and noise $s$ give the scaled column $a = \mathrm{cov}(\cdot, x_*) / \sqrt{v_* + s}$
over candidates ($a_C$) and test points ($a_T$). Then, with test weights $w$,

$$ \mathrm{cov} \leftarrow \mathrm{cov} - a a^\top, \qquad
   f_j \leftarrow f_j - 2 a_{C,j} (C^\top w a_T)_j + a_{C,j}^2 |a_T|_w^2, \qquad
   C^\top w a_T = \Theta'_{CT} w a_T - B_C^\top (B_T w a_T) $$

where $f_j = \sum_t w_t \mathrm{cov}(x_j, t)^2$ and the rows of $B$ are the columns $a$ so far. The
large matrix $\Theta_{CT}$ is read once per pick and never written.

Forgetting needs no read at all. With $B = F^{-1} \Theta'_{S\cdot}$, $F F^\top = \Theta'_S + s I$,
the column that point $i$ would have if it came last is $B^\top u$ with $u \propto F^{-1} e_i$, and
$\Theta'_{CT} w a_T$ is the same combination of the products kept from earlier picks. A Householder
reflection that maps $u$ to the last axis then removes it from $B$ in O(k (c + m)).
"""

from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor
from torch.nn.functional import pad

from evgp._linalg import JITTER, mirror_of, safe_cholesky
from evgp.errors import PoolError
from evgp.kernels import Kernel, Storing, Wide
from evgp.pool import Pool
from evgp.posterior.posterior import AHEAD, DENSE, FINALISTS, Posterior, TestCovariance


class Informed:
    r"""Variance of a candidate if the test outputs were known, for mutual information.

    With $s$ the noise, $T$ the test points and $L$ the labelled ones:

    - $x \notin T$: $\mathrm{var}(x \mid y_L, y_T)$, conditioned on both and on each further pick;
    - $x \in T$: $\mathrm{var}(x \mid y_{T - L - x})$, *not* conditioned on $L$ and without $x$
      itself: $1 / Q_{xx} - s$ with $Q = (\Theta_{T - L} + s I)^{-1}$, downdated when a point
      leaves $T - L$.

    Krause, Singh & Guestrin, Near-Optimal Sensor Placements in Gaussian Processes, JMLR 2008.

    O(m³ + m² c) to open, O(m² + k c) for a pick; memory for m x m and m x c float64.
    """

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
        alive = ~test_labelled  # T - L: labelled test points are left out
        self._at = (torch.cumsum(alive, 0) - 1).masked_fill(~alive, -1)
        self._q = torch.cholesky_inverse(safe_cholesky(kernel(test[alive]), noise))
        outside = (self._place < 0).nonzero().squeeze(1)
        self._where = torch.full((len(x),), -1)
        self._where[outside] = torch.arange(len(outside))
        self._x = x[outside].double()
        observed = test if known is None else torch.cat([test[alive], known.double()])
        factor = safe_cholesky(kernel(observed), noise)
        self._b = torch.linalg.solve_triangular(factor, kernel(observed, self._x), upper=False)
        self._v = kernel.diag(self._x) - self._b.square().sum(0)

    def variance(self) -> Float[Tensor, " c"]:
        """Informed variance of every candidate, in either case."""
        out = torch.empty(len(self._place), dtype=torch.float64)
        inside = self._place >= 0
        at = self._at[self._place[inside]]
        diagonal = self._q.diagonal()[at.clamp(min=0)]
        # The value of a picked test point is not used again; any finite one will do.
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


_TILE = 512
_SMALL = 1 << 22  # entries of a matrix that is read in no time
_NEW = 128  # candidates whose covariances with all test points are computed at once
# Rounding of a few operations in float64, relative to their operands.
_EXACT = 4e-16


@dataclass
class _Gap:
    """A point that is taken out for now: its column, and the sums with it."""

    row: int
    u: Tensor
    a_c: Tensor
    a_t: Tensor
    saved: tuple[Tensor, ...]


@dataclass
class _Expected:
    """Picks that were prepared, and what each does: its columns, and products with the matrix.

    `products` are those after the labels at the start, `inner` those after all earlier picks.
    """

    rows: list[int]
    b_c: Float[Tensor, "t c"]
    b_t: Float[Tensor, "t m"]
    products: Float[Tensor, "t c"]
    inner: Float[Tensor, "t c"]
    done: int = 0

    def next_is(self, row: int) -> bool:
        """Whether this row is the next of them."""
        return self.done < len(self.rows) and self.rows[self.done] == row


@dataclass
class _Pairs:
    """What `pairs` said of some candidates after `done` picks."""

    rows: Int[Tensor, " r"]
    own: Float[Tensor, "r r"]
    sums: Float[Tensor, "r r"]
    done: int

    def up_to_date(
        self,
        at: Int[Tensor, " q"],
        b: Float[Tensor, "k q"],
        h: Float[Tensor, "k q"],
        gram: Float[Tensor, "k k"],
    ) -> "_Pairs":
        """The same for some of them after k picks, from their columns and products."""
        own, sums = self.own[at[:, None], at], self.sums[at[:, None], at]
        for j in range(self.done, len(b)):
            a, size = b[j], float(gram[j, j])
            inner = h[j] - gram[j, :j] @ b[:j]
            own.addr_(a, a, alpha=-1)
            sums.addr_(a, inner, alpha=-1).addr_(inner - size * a, a, alpha=-1)
        return _Pairs(self.rows[at], own, sums, len(b))


class DensePosterior:
    """The exact posterior of candidates and test points, given labelled points.

    Opening costs O(l² (l + c + m)) and one read of the c x m matrix; `observe_` O(k (c + m)), and
    one read of that matrix at the next `fall()`; `expect_` O(t k (c + m)) for t picks, and one
    read for all of them; `forget_` O(k c). Memory: the matrix as given, and (3 k + 4 t) (c + m)
    float64.
    """

    def __init__(
        self,
        kernel: Kernel,
        x: Float[Tensor, " c *d"],
        x_test: Float[Tensor, " m *d"],
        cross: Float[Tensor, "c m"],
        *,
        noise: float,
        weights: Float[Tensor, " m"],
        known: Float[Tensor, " l *d"] | None = None,
        in_test: Int[Tensor, " c"] | None = None,
        test_labelled: Bool[Tensor, " m"] | None = None,
        shared: bool = False,
    ) -> None:
        self._kernel, self._x, self._x_test, self._cross = Wide(kernel), x, x_test, cross
        self._w = weights
        self._known = known
        self._in_test = in_test
        none = torch.zeros(len(x_test), dtype=torch.bool)
        self._test_labelled = none if test_labelled is None else test_labelled
        self._shared = shared
        self._v = self._kernel.diag(x).clone()
        self._tv = (self._v if shared else self._kernel.diag(x_test)).clone()
        # Jitter keeps a noiseless twin of a pick from dividing by zero.
        self._s = max(noise, JITTER * float(self._tv.mean()))
        self._scale = float(weights @ self._tv)
        check_sizes(self._v, self._tv, self._scale, cross.dtype)
        self._base_c, self._base_t = self._condition(known)
        self._v -= self._base_c.square().sum(0)
        self._tv -= self._base_t.square().sum(0)
        unit = torch.finfo(cross.dtype).eps / 2
        # Rounding of one product with a row of the matrix. Where its terms are equal, as in a pool
        # of copies, rounding adds up; a product with one vector runs over at least eight sums in
        # parallel, and one with several is cut into runs of at most 512 terms.
        self._eps = unit * (4 + len(x_test) / 8 + min(len(x_test), 512))
        self._f, self._norm = self._start()
        stored = 2 * unit * self._norm
        self._slack = stored * (2 * self._f.sqrt() + stored)
        self._since = torch.zeros(len(x), dtype=torch.int64)
        self._rows: list[int] = []
        self._folded = 0
        self._b_c = torch.empty(0, len(x), dtype=torch.float64)
        self._b_t = self._b_c if shared else torch.empty(0, len(x_test), dtype=torch.float64)
        self._h = torch.empty(0, len(x), dtype=torch.float64)
        self._inverse = torch.empty(0, 0, dtype=torch.float64)
        self._gram = torch.empty(0, 0, dtype=torch.float64)
        self._pairs: _Pairs | None = None
        self._gap: _Gap | None = None
        self._expected: _Expected | None = None
        self._inner: dict[int, Tensor] = {}
        self._cache: dict[int, Tensor] = {}
        self._informed: Informed | None = None

    # -- queries ----------------------------------------------------------------------------

    def variance(self) -> Float[Tensor, " c"]:
        """Posterior variance of each candidate."""
        return self._v.clamp(min=0)

    def noise(self) -> Float[Tensor, " c"]:
        """Variance of a label; the same for every candidate."""
        return torch.full_like(self._v, self._s)

    def weights(self) -> Float[Tensor, " m"]:
        """How much each test point matters; sums to one."""
        return self._w

    def test_variance(self) -> Float[Tensor, " m"]:
        """Posterior variance of each test point."""
        return self._tv.clamp(min=0)

    def mean_variance(self) -> float:
        """Weighted mean variance of the test points."""
        return float(self._w @ self.test_variance())

    def scale(self) -> float:
        """Weighted mean variance of the test points before any label."""
        return self._scale

    def slack(self) -> Float[Tensor, " c"]:
        """Bound on the rounding error of `fall()`, from rounding in the stored matrix."""
        self._fold()
        return self._slack

    def fall(self, rows: Int[Tensor, " r"] | None = None) -> Float[Tensor, " r"]:
        """Weighted sum of cov² over the test points: exact for `rows`, running sums for all."""
        if rows is None:
            self._fold()
            return self._f.clamp(min=0)
        columns = self.covariance(rows)
        exact = columns.square() @ self._w
        self._f[rows] = exact
        self._slack[rows] = exact * _EXACT
        self._since[rows] = len(self._rows)
        if len(rows) <= _TILE:
            self._cache.update(zip(rows.tolist(), columns, strict=True))
        return exact

    def covariance(self, rows: Int[Tensor, " r"]) -> Float[Tensor, "r m"]:
        """Covariance between candidates and test points, in float64: O(r m (k + l))."""
        if len(rows) == 1 and self._expected is not None and self._expected.next_is(int(rows)):
            column = self._expected.b_t[self._expected.done]
            return (column * self._size_of(int(rows)))[None]
        exact = self._cross.dtype == torch.float64
        out = self._cross[rows] if exact else self._kernel(self._x[rows], self._x_test)
        out = out.addmm(self._base_c[:, rows].T, self._base_t, alpha=-1)
        k = len(self._rows)
        out = out.addmm(self._b_c[:k, rows].T, self._b_t[:k], alpha=-1)
        if self._gap is not None:
            out += torch.outer(self._gap.a_c[rows], self._gap.a_t)
        return out

    def informed_variance(self) -> Float[Tensor, " c"]:
        """Variance of each candidate given the (other) test outputs."""
        if self._informed is None:
            self._informed = Informed(
                self._kernel,
                self._x,
                self._x_test,
                in_test=self._in_test,
                test_labelled=self._test_labelled,
                known=self._known,
                noise=self._s,
            )
            for row in self.observed():
                self._informed.observe_(row)
        return self._informed.variance()

    def observed(self) -> list[int]:
        """The rows labelled so far."""
        gone = self._gap.row if self._gap is not None else None
        return [row for row in self._rows if row != gone]

    def candidate_covariance(self) -> Float[Tensor, "c c"]:
        """Covariance of all candidates given the labels at the start, before any pick."""
        return self._kernel(self._x).addmm(self._base_c.T, self._base_c, alpha=-1)

    def base(self) -> Float[Tensor, "l m"]:
        """The columns of the labels at the start over the test points."""
        return self._base_t

    def columns(self) -> Float[Tensor, "k m"]:
        """The columns of the picks over the test points."""
        return self._b_t[: len(self._rows)]

    # -- updates ----------------------------------------------------------------------------

    def observe_(self, row: int) -> None:
        """Label a candidate: one more column."""
        if row in self.observed():
            raise PoolError(f"expected a row not yet observed, got {row}")
        if self._gap is not None:
            if self._gap.row == row:
                self._restore()
                return
            self._close()
        k = len(self._rows)
        self._grow(k + 1)
        scale, b = self._size_of(row), self._b_c[:k, row].clone()
        if self._expected is not None and self._expected.next_is(row):
            at = self._expected.done
            self._b_c[k] = self._expected.b_c[at]
            self._b_t[k] = self._expected.b_t[at]
            self._h[k] = self._expected.products[at]
            self._inner[k] = self._expected.inner[at]
            self._expected.done += 1
        else:
            self._expected = None
            cov_t = self._cache.get(row)
            cov_t = self.covariance(torch.tensor([row]))[0] if cov_t is None else cov_t
            cov_c = cov_t if self._shared else self._of_candidates(torch.tensor([row]))[0]
            self._b_c[k] = cov_c / scale
            if not self._shared:
                self._b_t[k] = cov_t / scale
        self._inverse[k, :k] = -(b @ self._inverse[:k, :k]) / scale
        self._inverse[:k, k] = 0
        self._inverse[k, k] = 1 / scale
        self._v -= self._b_c[k].square()
        self._tv -= self._b_t[k].square()
        self._rows.append(row)
        self._cache.clear()
        if self._informed is not None:
            self._informed.observe_(row)

    def worth(self) -> int:
        """How many picks to prepare for at once: one for a matrix that is read in no time."""
        read = self._cross.numel()
        return 1 if read < _SMALL else min(AHEAD, max(1, read // (16 * sum(self._cross.shape))))

    def pairs(self, rows: Int[Tensor, " r"]) -> tuple[Float[Tensor, "r r"], Float[Tensor, "r r"]]:
        r"""Covariance of these candidates, and weighted sums of products over the test points.

        What was asked for before is brought up to date in O(r²) per pick; each new candidate costs
        O(m (k + r)).
        """
        self._fold()
        k, known = len(self._rows), self._pairs
        old = torch.isin(rows, known.rows) if known is not None else torch.zeros_like(rows) > 0
        own, sums = rows.new_empty(2, len(rows), len(rows), dtype=torch.float64)
        b = self._b_c[:k, rows]
        if known is not None and bool(old.any()):
            at, place = torch.searchsorted(known.rows, rows[old]), old.nonzero()[:, 0]
            known = known.up_to_date(at, b[:, old], self._h[:k, rows[old]], self._gram[:k, :k])
            own[place[:, None], place], sums[place[:, None], place] = known.own, known.sums
        new = (~old).nonzero()[:, 0]
        for part in torch.split(new, _NEW):
            own[part], sums[part] = self._pairs_of(rows[part], rows)
        own[:, new], sums[:, new] = own[new].T, sums[new].T
        self._pairs = _Pairs(rows, own, sums, k)
        return own.clone(), sums.clone()

    def _pairs_of(
        self, new: Int[Tensor, " q"], rows: Int[Tensor, " r"]
    ) -> tuple[Float[Tensor, "q r"], Float[Tensor, "q r"]]:
        """K and G of some candidates with all of `rows`."""
        k, stored = len(self._rows), self._cross.dtype
        base, b = self._base_c[:, rows], self._b_c[:k, rows]
        near = self._cross[new].double().addmm(self._base_c[:, new].T, self._base_t, alpha=-1)
        near = near.addmm(self._b_c[:k, new].T, self._b_t[:k], alpha=-1) * self._w
        sums = (near.to(stored) @ self._cross[rows].T).double()
        sums = sums.addmm(near @ self._base_t.T, base, alpha=-1)
        sums = sums.addmm(near @ self._b_t[:k].T, b, alpha=-1)
        own = self._kernel(self._x[new], self._x[rows])
        own = own.addmm(self._base_c[:, new].T, base, alpha=-1)
        return own.addmm(self._b_c[:k, new].T, b, alpha=-1), sums

    def expect_(self, rows: list[int]) -> None:
        """Prepare for these picks, in this order: one read of the matrix for all of them."""
        if self._gap is not None:
            self._close()
        self._fold()
        self._expected = None
        k, t, at = len(self._rows), len(rows), torch.tensor(rows)
        cov_t = self.covariance(at)
        cov_c = cov_t if self._shared else self._of_candidates(at)
        b_c = torch.empty(t, len(self._x), dtype=torch.float64)
        b_t = b_c if self._shared else torch.empty(t, len(self._x_test), dtype=torch.float64)
        v = self._v[at]
        for j in range(t):
            scale = float(v[j].clamp(min=0) + self._s) ** 0.5
            before = b_c[:j, rows[j]]
            b_c[j] = (cov_c[j] - before @ b_c[:j]) / scale
            if not self._shared:
                b_t[j] = (cov_t[j] - before @ b_t[:j]) / scale
            v -= b_c[j, at].square()
        weighted = self._w * b_t
        products = self._products(weighted)
        inner = products - (weighted @ self._b_t[:k].T) @ self._b_c[:k]
        inner -= (weighted @ b_t.T).tril(-1) @ b_c
        self._expected = _Expected([*rows], b_c, b_t, products, inner)

    def forget_(self, row: int) -> None:
        """Take a label back; the next `observe_` fills the gap or closes it."""
        self._expected = self._pairs = None
        if self._gap is not None:
            self._close()
        if row not in self._rows:
            raise PoolError(f"expected an observed row, got {row}")
        self._fold()
        k, at = len(self._rows), self._rows.index(row)
        u = self._inverse[:k, at] / self._inverse[:k, at].norm()
        a_c, a_t = u @ self._b_c[:k], u @ self._b_t[:k]
        product = u @ self._h[:k] - (self._b_t[:k] @ (self._w * a_t)) @ self._b_c[:k]
        size = float(self._w @ a_t.square())
        saved = tuple(t.clone() for t in (self._f, self._slack, self._since, self._v, self._tv))
        self._gap = _Gap(row, u, a_c, a_t, saved)
        change = a_c * (2 * product + a_c * size)
        self._slack += self._rounding(a_c, size, change)
        self._f += change
        self._v += a_c.square()
        self._tv += a_t.square()
        self._cache.clear()
        self._informed = None

    # -- internals --------------------------------------------------------------------------

    def _condition(
        self, known: Float[Tensor, " l *d"] | None
    ) -> tuple[Float[Tensor, "l c"], Float[Tensor, "l m"]]:
        if known is None or len(known) == 0:
            return self._v.new_empty(0, len(self._x)), self._v.new_empty(0, len(self._x_test))
        factor = safe_cholesky(self._kernel(known), self._s)
        sides = [self._x] if self._shared else [self._x, self._x_test]
        solved = [
            torch.linalg.solve_triangular(factor, self._kernel(known, side), upper=False)
            for side in sides
        ]
        return solved[0], solved[-1]

    def _start(self) -> tuple[Float[Tensor, " c"], Float[Tensor, " c"]]:
        """The sums before any pick, and the weighted norms that rounding is proportional to."""
        falls, norms = [self._v.new_empty(0)], [self._v.new_empty(0)]
        for i in range(0, len(self._x), _TILE):
            block = self._cross[i : i + _TILE].double()
            norms.append((block.square() @ self._w).sqrt())
            block = block.addmm(self._base_c[:, i : i + _TILE].T, self._base_t, alpha=-1)
            falls.append(block.square() @ self._w)
        return torch.cat(falls), torch.cat(norms)

    def _of_candidates(self, rows: Int[Tensor, " r"]) -> Float[Tensor, "r c"]:
        """Covariance between some candidates and all."""
        k = len(self._rows)
        out = self._kernel(self._x[rows], self._x)
        out = out.addmm(self._base_c[:, rows].T, self._base_c, alpha=-1)
        return out.addmm(self._b_c[:k, rows].T, self._b_c[:k], alpha=-1)

    def _size_of(self, row: int) -> float:
        """Standard deviation of a label of this candidate."""
        return float(self._v[row].clamp(min=0) + self._s) ** 0.5

    def _rounding(
        self, a_c: Float[Tensor, " c"], size: float, change: Float[Tensor, " c"]
    ) -> Float[Tensor, " c"]:
        """Rounding of the product in a change of the sums, and of adding the change."""
        product = (2 * self._eps * size**0.5) * a_c.abs() * self._norm
        return product + _EXACT * (self._f.abs() + change.abs())

    def _fold(self) -> None:
        """Bring the running sums up to the last pick: one read of the large matrix."""
        start, stop = self._folded, len(self._rows)
        if start == stop:
            return
        weighted = self._w * self._b_t[start:stop]
        unread = [k for k in range(start, stop) if k not in self._inner]
        if unread:
            self._h[unread] = self._products(weighted[[k - start for k in unread]])
        for k in range(start, stop):
            a_c = self._b_c[k]
            self._gram[k, : k + 1] = self._b_t[: k + 1] @ weighted[k - start]
            size = float(self._gram[k, k])
            inner = self._inner.pop(k, None)
            if inner is None:
                inner = self._h[k] - self._gram[k, :k] @ self._b_c[:k]
            change = a_c * (a_c * size - 2 * inner)
            fresh = self._since <= k  # rows computed exactly since then include this pick
            self._slack += torch.where(fresh, self._rounding(a_c, size, change), 0.0)
            self._f += torch.where(fresh, change, 0.0)
        self._folded = stop

    def _products(self, weighted: Float[Tensor, "t m"]) -> Float[Tensor, "t c"]:
        """Products of the matrix, after the labels at the start, with some vectors: one read."""
        vectors = weighted.to(self._cross.dtype)
        if len(vectors) == 1:
            product = (self._cross @ vectors[0])[None].double()
        else:
            product = (self._cross @ vectors.T).T.double()
        return product - (weighted @ self._base_t.T) @ self._base_c

    def _restore(self) -> None:
        assert self._gap is not None
        self._f, self._slack, self._since, self._v, self._tv = self._gap.saved
        self._gap = None
        self._cache.clear()
        self._informed = None

    def _close(self) -> None:
        """Rotate the forgotten column to the end of B and drop it."""
        assert self._gap is not None
        k, u = len(self._rows), self._gap.u
        at = self._rows.index(self._gap.row)
        mirror = mirror_of(u)
        blocks = [self._b_c, self._h, self._inverse] + ([] if self._shared else [self._b_t])
        for block in blocks:
            part = block[:k] if block is not self._inverse else block[:k, :k]
            part.addr_(mirror, mirror @ part, alpha=-2)
        keep = [i for i in range(k) if i != at]
        self._inverse[: k - 1, : k - 1] = self._inverse[: k - 1][:, keep]
        # Only the part below the diagonal is kept.
        self._gram[: k - 1, : k - 1] = (self._w * self._b_t[: k - 1]) @ self._b_t[: k - 1].T
        self._rows.pop(at)
        self._folded = k - 1
        # The sums stay right; rows computed exactly now count the shorter history.
        self._since.fill_(k - 1)
        self._gap = None

    def _grow(self, k: int) -> None:
        room = len(self._b_c)
        if k <= room:
            return
        more = max(16, room)
        self._b_c = pad(self._b_c, (0, 0, 0, more))
        self._b_t = self._b_c if self._shared else pad(self._b_t, (0, 0, 0, more))
        self._h = pad(self._h, (0, 0, 0, more))
        self._inverse = pad(self._inverse, (0, more, 0, more))
        self._gram = pad(self._gram, (0, more, 0, more))


def check_sizes(
    v: Float[Tensor, " c"], tv: Float[Tensor, " m"], mean: float, stored: torch.dtype
) -> None:
    """Refuse variances whose products overflow."""
    most = 1e280 if stored == torch.float64 else 1e30
    own, test = float(v.max()) if len(v) else 0.0, float(tv.max())
    if not (own**0.5 * test**0.5 < most and max(own, test) < 1e280):
        what = f"candidate {int(v.argmax())}" if own > test else f"test point {int(tv.argmax())}"
        raise PoolError(
            f"expected inputs of similar size, got {what} with {max(own, test) / mean:.0e} times "
            "the mean prior variance; scale the inputs, or leave it out"
        )


@dataclass
class Start:
    """Opens posteriors over candidates; computes the large matrix once.

    `noise` is the absolute variance of a label. `storage` is the type of the c x m matrix only:
    columns, sums and factors are float64. `inputs` is the pool before its points became row numbers
    of a tabulated kernel.
    """

    kernel: Kernel
    pool: Pool
    noise: float
    storage: torch.dtype = torch.float64
    inputs: Pool | None = None
    _kept: tuple[Int[Tensor, " c"], Float[Tensor, "c m"]] | None = field(default=None, repr=False)

    def __call__(self, candidates: Int[Tensor, " c"]) -> DensePosterior:
        """A posterior over these pool rows and the test points."""
        pool, rows, known = self.pool, self.pool.test_rows(), self.pool.known()
        shared = rows is not None and torch.equal(rows, candidates)
        every = torch.equal(candidates, torch.arange(len(pool)))
        x = pool.x if every else pool.x[candidates]
        place = None
        if rows is not None:
            place = torch.full((len(pool),), -1)
            place[rows] = torch.arange(len(rows))
        return DensePosterior(
            self.kernel,
            x,
            x if shared else pool.test_points(),
            self._matrix(candidates, x, None if shared else pool.test_points()),
            noise=self.noise,
            weights=pool.test_weights(),
            known=known if len(known) else None,
            in_test=None if place is None else place[candidates],
            test_labelled=None if rows is None else torch.isin(rows, pool.labelled),
            shared=shared,
        )

    def _matrix(
        self,
        candidates: Int[Tensor, " c"],
        x: Shaped[Tensor, " c *d"],
        x_test: Shaped[Tensor, " m *d"] | None,
    ) -> Float[Tensor, "c m"]:
        """Prior covariance between candidates and test points, cached for the next call."""
        if self._kept is not None and torch.equal(self._kept[0], candidates):
            return self._kept[1]
        matrix = stored(self.kernel, x, x_test, self.storage)
        if len(candidates) * 4 >= len(self.pool):  # few points do not evict the large matrix
            self._kept = (candidates, matrix)
        return matrix

    def __len__(self) -> int:
        return len(self.pool)

    def test_covariance(self, posterior: Posterior) -> TestCovariance:
        """Covariance of the test points given the labels at the start, before any pick."""
        assert isinstance(posterior, DensePosterior)
        pool, rows, weights = self.pool, self.pool.test_rows(), self.pool.test_weights()
        if by_pool(len(pool), len(weights)) and (small := self._known_by_pool()) is not None:
            return small
        if rows is not None and self._kept is not None and torch.equal(rows, self._kept[0]):
            matrix = self._kept[1]  # the test points are the candidates
        else:
            matrix = stored(self.kernel, pool.test_points(), None, self.storage)
        return TestCovariance(matrix, posterior.base(), weights, posterior.test_variance())

    def _known_by_pool(self) -> TestCovariance | None:
        r"""The covariance of test points that all rows of the pool explain, as a matrix of rows.

        $A_C = W^{1/2} \Theta_{TC} (\Theta_C + s)^{-1} \Theta_{CT} W^{1/2}$, given the labels at the
        start. No rows of the pool reduce the variance by more than the same number of its
        eigenvalues, which are those of the c x c matrix here. Rounding may raise them, by lowering
        $s$, and never lower them; None if $s$ is too small for that.
        """
        candidates = self.pool.unlabelled()
        posterior = self(candidates)
        inner = posterior.candidate_covariance()
        slack = 8 * len(inner) * torch.finfo(torch.float64).eps * float(inner.diagonal().sum())
        if not slack < self.noise / 4:
            return None
        inner.diagonal().add_(self.noise - slack)
        factor, failed = torch.linalg.cholesky_ex(inner)
        if int(failed):
            return None
        rows = torch.arange(len(candidates))
        cross = posterior.covariance(rows) * self.pool.test_weights().sqrt()
        seen = torch.linalg.solve_triangular(factor, cross, upper=False)
        matrix = (1 + 1e-9) * (seen @ seen.T)
        none, ones = matrix[:0], torch.ones(len(matrix), dtype=matrix.dtype)
        return TestCovariance(matrix, none, ones, matrix.diagonal().clone())


def condition(
    kernel: Kernel, pool: Pool, candidates: Int[Tensor, " c"], *, noise: float
) -> DensePosterior:
    """Posterior over candidates and test points, given the labelled points.

    >>> from evgp.kernels import NTK
    >>> from evgp.nets import mlp
    >>> pool = Pool(torch.eye(3, dtype=torch.float64), labelled=torch.tensor([2]))
    >>> posterior = condition(NTK(mlp()), pool, pool.unlabelled(), noise=1e-6)
    >>> posterior.variance().shape, posterior.test_variance().shape
    (torch.Size([2]), torch.Size([3]))
    """
    return Start(kernel, pool, noise)(candidates)


def ahead_memory(c: int, m: int, size: int) -> int:
    """Bytes that guesses of the next picks need, for a matrix of numbers of `size` bytes.

    >>> ahead_memory(1_000, 1_000, 8), ahead_memory(10_000, 10_000, 4)
    (0, 74022912)
    """
    if c * m < _SMALL:
        return 0
    return 8 * 4 * AHEAD * (c + m) + m * (FINALISTS * size + 16 * _NEW) + 8 * 6 * FINALISTS**2


def by_pool(rows: int, tests: int) -> bool:
    """Whether a certificate is computed from the rows of the pool, because there are many more test
    points.

    >>> by_pool(40, 60_000), by_pool(40, 2_000), by_pool(4_000, 5_000)
    (True, False, False)
    """
    return tests > DENSE and 2 * rows <= tests


def stored(
    kernel: Kernel, x1: Tensor, x2: Tensor | None, storage: torch.dtype
) -> Float[Tensor, "n m"]:
    """A kernel matrix in the requested type, without a second copy."""
    if x1.dtype == storage:
        return kernel(x1, x2)
    if isinstance(kernel, Storing):
        return replace(kernel, storage=storage)(x1, x2)
    other = x1 if x2 is None else x2
    out = torch.empty(len(x1), len(other), dtype=storage)
    for i in range(0, len(x1), 1024):
        out[i : i + 1024] = kernel(x1[i : i + 1024], other)
    return out
