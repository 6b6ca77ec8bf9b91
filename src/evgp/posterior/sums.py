"""What is kept in feature space: P and M for all, and a few sums for every row."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from evgp._linalg import BLOCK, safe_cholesky
from evgp._machine import each_alone
from evgp.posterior._fused import fused, in_parallel
from evgp.posterior.rows import FeatureRows

# The rounding of one operation in float64, with some to spare.
EXACT = 4e-16


def columns_of(known: Float[Tensor, "l p"], noise: Float[Tensor, " l"]) -> Float[Tensor, "l p"]:
    """V of labelled points, so that P is I - V'V; O(l² (l + p))."""
    factor = safe_cholesky(known @ known.T, noise)
    return torch.linalg.solve_triangular(factor, known, upper=False)


def root_of(m: Float[Tensor, "p p"]) -> Float[Tensor, "p p"]:
    """R with R'R = M: each row stands for as much of the test points as it carries."""
    values, vectors = torch.linalg.eigh(m)
    return (vectors * values.clamp(min=0).sqrt()).T


@dataclass(frozen=True)
class Change:
    """What one pick (sign -1) or one pick taken back (+1) does to the sums of every row."""

    u: Float[Tensor, " p"]
    w: Float[Tensor, " p"]
    size: float
    sign: int


@dataclass
class FeatureSums:
    """What is known in feature space, for all rows wherever they are: P and M."""

    p: Float[Tensor, "p p"]
    m: Float[Tensor, "p p"]

    @classmethod
    def of(
        cls,
        moment: Float[Tensor, "p p"],
        known: Float[Tensor, "l p"] | None = None,
        known_noise: Float[Tensor, " l"] | None = None,
    ) -> "FeatureSums":
        """Before any pick, with what is labelled already."""
        p = torch.eye(len(moment), dtype=torch.float64)
        if known is not None and len(known):
            assert known_noise is not None
            base = columns_of(known, known_noise)
            p -= base.T @ base
        return cls(p, moment)

    def mean_variance(self) -> float:
        """Over the test points, as far as features carry it."""
        return float((self.p * self.m).sum())

    def direction(self, phi: Float[Tensor, " p"], noise: float) -> tuple[Tensor, float]:
        """u of a point, and the deviation of its label."""
        u = self.p @ phi
        scale = float((phi @ u).clamp(min=0) + noise) ** 0.5
        return u / scale, scale

    def change_(self, u: Float[Tensor, " p"], sign: int) -> Change:
        """Move P along u, and say what that does to all rows."""
        inner = self.m @ u
        made = Change(u, self.p @ inner, float(u @ inner), sign)
        self.p.addr_(u, u, alpha=sign)
        return made


@dataclass
class Sums:
    """What is kept for every row: variance, sum of squared covariances, and their rounding."""

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
        """Before any pick: O(c p²), one read. `kept` is where to keep them, by default memory."""
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
        # Rounding of one product of length p, which runs over eight sums side by side, or more.
        eps = torch.finfo(dtype).eps / 2 * (4 + rows.shape[1] / 8)
        return cls(v, f, norm, v_slack, f_slack, eps)

    def apply_(self, change: Change, block: Float[Tensor, "b p"], start: int, n: int) -> None:
        """Bring a block of rows up to date, and widen what rounding may hide."""
        a, b = self.eps * float(change.u.norm()), self.eps * float(change.w.norm())
        u, w = change.u.to(block.dtype), change.w.to(block.dtype)
        size, sign = change.size, change.sign
        at = slice(start, start + len(block))
        kept = [one[at] for one in (self.norm, self.f, self.v, self.f_slack, self.v_slack)]
        compiled = fused(n * block.shape[1], block.dtype)
        if compiled is not None and block.is_contiguous():
            rows, uw = block.numpy(), (u.numpy(), w.numpy())
            sums = [one.numpy() for one in kept]

            def work(low: int, high: int) -> None:
                parts = [one[low:high] for one in sums]
                compiled(rows[low:high], *uw, size, float(sign), a, b, EXACT, *parts)

            in_parallel(work, len(rows))
            return
        norm, f, v, f_slack, v_slack = kept
        q0, q1 = (block @ u).double(), (block @ w).double()
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
        """As they are now."""
        every = (self.v, self.f, self.v_slack, self.f_slack)
        v, f, v_slack, f_slack = (one.clone() for one in every)
        return Sums(v, f, self.norm, v_slack, f_slack, self.eps)
