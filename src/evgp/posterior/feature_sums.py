"""Sums in feature space: P and M for the whole pool, and a few numbers for every row."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from inspect import unwrap

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from evgp._linalg import BLOCK, safe_cholesky
from evgp._machine import each_alone
from evgp.posterior.feature_rows import FeatureRows

# Compiling takes a second or two, which pays off only for large matrices.
_WORTH = 1 << 24

Fused = Callable[..., None]


def fused(size: int, dtype: torch.dtype) -> tuple[Fused, Fused] | None:
    """Compiled updates of all sums in one pass over float32 rows, if numba is installed.

    The first takes the rows, the second their products. None if compiling does not pay off: `size`
    is the number of entries of the whole matrix.
    """
    return _compiled() if size >= _WORTH and dtype == torch.float32 else None


def in_parallel(work: Callable[[int, int], object], n: int) -> None:
    """Work on n rows, in as many threads as torch would use.

    Plain threads, because two thread pools that spin while waiting slow each other down.
    """
    threads = torch.get_num_threads()
    step = -(-n // threads)
    if threads == 1 or step == n:
        work(0, n)
        return
    futures = [_threads(threads).submit(work, i, min(n, i + step)) for i in range(0, n, step)]
    for future in futures:
        future.result()


@cache
def _threads(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix="evgp")


@cache
def _compiled() -> tuple[Fused, Fused] | None:
    try:
        import numba
    except ImportError:
        return None

    def products(block, u, w, p0, p1):  # type: ignore[no-untyped-def]
        for i in range(block.shape[0]):
            s0 = np.float32(0)
            s1 = np.float32(0)
            for j in range(block.shape[1]):
                x = block[i, j]
                s0 += x * u[j]
                s1 += x * w[j]
            p0[i] = s0
            p1[i] = s1

    def move(p0, p1, size, sign, a, b, exact, norm, f, v, f_slack, v_slack):  # type: ignore[no-untyped-def]  # noqa: PLR0917
        for i in range(p0.shape[0]):
            q0 = np.float64(p0[i])
            q1 = np.float64(p1[i])
            change = q0 * (size * q0 + 2 * sign * q1)
            f_slack[i] += exact * (abs(f[i]) + abs(change))
            v_slack[i] += exact * (abs(v[i]) + q0 * q0)
            f[i] += change
            v[i] += sign * q0 * q0
            q0 = abs(q0)
            q1 = abs(q1)
            v_slack[i] += norm[i] * a * (2 * q0 + a * norm[i])
            lost = 2 * (b + size * a) * q0 + 2 * a * q1 + a * (2 * b + size * a) * norm[i]
            f_slack[i] += norm[i] * lost

    fast = numba.njit(nogil=True, fastmath={"reassoc", "contract", "nsz"}, cache=True)
    # Tests wrap every function to check its types, which numba cannot compile.
    return fast(unwrap(products)), fast(unwrap(move))


# The rounding of one operation in float64, with some to spare.
EXACT = 4e-16
_AT_ONCE = 1 << 16  # rows whose sums stay in the cache


def columns_of(known: Float[Tensor, "l p"], noise: Float[Tensor, " l"]) -> Float[Tensor, "l p"]:
    """V of labelled points, such that P = I - V'V; O(l² (l + p))."""
    factor = safe_cholesky(known @ known.T, noise)
    return torch.linalg.solve_triangular(factor, known, upper=False)


def root_of(m: Float[Tensor, "p p"]) -> Float[Tensor, "p p"]:
    """R with R'R = M: its rows are directions that represent the test points."""
    values, vectors = torch.linalg.eigh(m)
    return (vectors * values.clamp(min=0).sqrt()).T


@dataclass(frozen=True)
class Change:
    """How one pick (sign -1), or taking one back (+1), changes the sums of every row."""

    u: Float[Tensor, " p"]
    w: Float[Tensor, " p"]
    size: float
    sign: int


@dataclass
class FeatureSums:
    """P and M, which all rows share in feature space."""

    p: Float[Tensor, "p p"]
    m: Float[Tensor, "p p"]

    @classmethod
    def of(
        cls,
        moment: Float[Tensor, "p p"],
        known: Float[Tensor, "l p"] | None = None,
        known_noise: Float[Tensor, " l"] | None = None,
    ) -> "FeatureSums":
        """P and M before any pick, given the labelled points."""
        p = torch.eye(len(moment), dtype=torch.float64)
        if known is not None and len(known):
            assert known_noise is not None
            base = columns_of(known, known_noise)
            p -= base.T @ base
        return cls(p, moment)

    def mean_variance(self) -> float:
        """Mean variance of the test points, without what the features miss."""
        return float((self.p * self.m).sum())

    def direction(self, phi: Float[Tensor, " p"], noise: float) -> tuple[Tensor, float]:
        """u of a point, and the standard deviation of its label."""
        u = self.p @ phi
        scale = float((phi @ u).clamp(min=0) + noise) ** 0.5
        return u / scale, scale

    def change_(self, u: Float[Tensor, " p"], sign: int) -> Change:
        """Update P along u; returns the change for all rows."""
        inner = self.m @ u
        change = Change(u, self.p @ inner, float(u @ inner), sign)
        self.p.addr_(u, u, alpha=sign)
        return change


@dataclass
class Sums:
    """Numbers kept for every row: variance, sum of squared covariances, and their rounding."""

    v: Float[Tensor, " c"]
    f: Float[Tensor, " c"]
    norm: Float[Tensor, " c"]
    v_slack: Float[Tensor, " c"]
    f_slack: Float[Tensor, " c"]
    eps: float

    @classmethod
    def of(
        cls, rows: FeatureRows, state: FeatureSums, kept: Float[Tensor, "5 c"] | None = None
    ) -> "Sums":
        """The sums before any pick: O(c p²), one read. `kept` is memory to store them in."""
        kept = torch.empty(5, rows.shape[0], dtype=torch.float64) if kept is None else kept
        v, f, norm, v_slack, f_slack = kept
        p, dtype = state.p, torch.float64
        plain = torch.equal(p, torch.eye(len(p), dtype=p.dtype))

        def fill(part: tuple[int, Tensor]) -> torch.dtype:
            start, block = part
            at, wide = slice(start, start + len(block)), block.double()
            inner = wide if plain else wide @ p
            v[at], f[at] = (inner * wide).sum(1), ((inner @ state.m) * inner).sum(1)
            norm[at] = wide.norm(dim=1)
            return block.dtype

        for dtype in each_alone(fill, rows.blocks(BLOCK)):  # noqa: B007
            pass
        v_slack.zero_()
        f_slack.zero_()
        # Rounding of one product of length p, which runs over at least eight sums in parallel.
        eps = torch.finfo(dtype).eps / 2 * (4 + rows.shape[1] / 8)
        return cls(v, f, norm, v_slack, f_slack, eps)

    def apply_(self, change: Change, block: Float[Tensor, "b p"], start: int, n: int) -> None:
        """Apply a change to a block of rows, and add to the bounds on their rounding."""
        u, w = change.u.to(block.dtype), change.w.to(block.dtype)
        compiled = fused(n * block.shape[1], block.dtype)
        if compiled is None or not block.is_contiguous():
            products = torch.stack([block @ u, block @ w])
        else:
            products = block.new_empty(2, len(block))
            rows, vectors, sums = block.numpy(), (u.numpy(), w.numpy()), products.numpy()

            def work(low: int, high: int) -> None:
                compiled[0](rows[low:high], *vectors, *sums[:, low:high])

            in_parallel(work, len(rows))
        self._move_(change, products, start, self.eps, compiled)

    def move_(self, change: Change, products: Float[Tensor, "2 c"]) -> None:
        """Apply a change whose products with all rows were computed with those of others."""
        # These run over one sum in runs of at most 512 terms, and not over eight in parallel.
        p, n = len(change.u), products.shape[1]
        eps = self.eps * (1 + min(p, 512) / (4 + p / 8))
        compiled = fused(n * p, products.dtype)
        for start in range(0, n, _AT_ONCE):
            part = products[:, start : start + _AT_ONCE]
            self._move_(change, part, start, eps, compiled)

    def _move_(
        self,
        change: Change,
        products: Float[Tensor, "2 b"],
        start: int,
        eps: float,
        compiled: tuple[Fused, Fused] | None,
    ) -> None:
        """Apply a change to some rows, from their products with its two vectors."""
        size, sign, at = change.size, change.sign, slice(start, start + products.shape[1])
        a, b = eps * float(change.u.norm()), eps * float(change.w.norm())
        kept = [part[at] for part in (self.norm, self.f, self.v, self.f_slack, self.v_slack)]
        if compiled is not None:
            vectors, sums = products.numpy(), [part.numpy() for part in kept]

            def work(low: int, high: int) -> None:
                own = (*vectors[:, low:high], size, float(sign), a, b, EXACT)
                compiled[1](*own, *(array[low:high] for array in sums))

            in_parallel(work, products.shape[1])
            return
        norm, f, v, f_slack, v_slack = kept
        q0, q1 = products.double()
        moved = q0 * (q0 * size + q1 * (2 * sign))
        f_slack.add_(f.abs() + moved.abs(), alpha=EXACT)
        v_slack.add_(v.abs() + q0.square(), alpha=EXACT)
        f.add_(moved)
        v.addcmul_(q0, q0, value=sign)
        q0, q1 = q0.abs(), q1.abs()
        v_slack.addcmul_(norm, q0 * (2 * a) + norm * (a * a))
        lost = q0 * (2 * (b + size * a)) + q1 * (2 * a) + norm * (a * (2 * b + size * a))
        f_slack.addcmul_(norm, lost)

    def copy(self) -> "Sums":
        """A copy of the sums."""
        every = (self.v, self.f, self.v_slack, self.f_slack)
        v, f, v_slack, f_slack = (part.clone() for part in every)
        return Sums(v, f, self.norm, v_slack, f_slack, self.eps)
