"""BAIT: picks that leave the least mean variance of a linear model on given features.

Ash, Goel, Krishnamurthy & Kakade, Gone Fishing: Neural Active Learning with Fisher Embeddings,
NeurIPS 2021; for regression as in Holzmueller et al., A Framework and Benchmark for Deep Batch
Active Learning for Regression, JMLR 2023 (bmdal-reg).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Generator, Tensor

from evgp._checks import flag, keep, noise_of
from evgp.pool import Pool, Selection
from evgp.strategies._cells import lowest, points_of
from evgp.strategies.diversity import Embed, flat
from evgp.strategies.strategy import unlabelled

_NOTHING = 1e-13  # gains below this share of the first are rounding


@dataclass(frozen=True)
class BAIT:
    r"""The greedy for the mean posterior variance of Bayesian linear regression on features.

    With $S$ the posterior covariance of the weights, $C = \Phi^\top \Phi$ over pool and labelled
    points, and `noise` $s$ (bmdal-reg's sigma^2 = 0.01),

    $$ \text{gain}(x)
       = \frac{\phi^\top S C S \phi}{\mathrm{tr}(C)\,(\phi^\top S \phi + s)} $$

    Once nothing is left to gain the rest is random.

    O(n p (l + k)) time on top of O(n p^2) for $C$, O(n p) memory; `backward` doubles k and adds
    O(k^3). Ties go to the lowest row.

    Parameters
    ----------
    noise : float
        A share of the mean prior variance.
    backward : bool
        Pick twice as many, and drop those whose loss costs least; picks then depend on k.
    embed : callable
        Features, such as `Gradients(kernel)`; the inputs by default.

    Examples
    --------
    >>> pool = Pool(torch.tensor([[3.0, 0.0], [2.0, 0.0], [0.0, 2.0]]))
    >>> BAIT()(pool, 2, generator=torch.Generator()).indices.tolist()
    [0, 2]
    """

    noise: float = 0.01
    backward: bool = False
    embed: Embed = flat
    learns: ClassVar[bool] = False

    def __post_init__(self) -> None:
        keep(self, noise=noise_of(self.noise))
        flag(self.backward, "backward")

    @property
    def ahead(self) -> bool:
        """Whether one long list serves all rounds: not with `backward`, which depends on k."""
        return not self.backward

    def __call__(self, pool: Pool, k: int, *, generator: Generator) -> Selection:
        """Return k picks, each with the share of the prior variance that it removes."""
        free = unlabelled(pool, k, generator)
        x, known, _ = points_of(self.embed, pool)
        state = _State.of(x, self.noise)
        for row in known.tolist():
            state.observe_(row)
        start = state.weights.clone()
        may = torch.zeros(len(x), dtype=torch.bool)
        may[free] = True
        rows: list[int] = []
        gains: list[float] = []
        for _ in range(min(2 * k, len(free)) if self.backward else k):
            gain = torch.where(may, state.gains(), -torch.inf)
            row = lowest(gain.numpy())
            if not float(gain[row]) > _NOTHING * state.first:
                break
            rows.append(row)
            gains.append(float(gain[row]) / state.prior)
            may[row] = False
            state.observe_(row)
        kept = state.kept(rows, start, k) if len(rows) > k else list(range(len(rows)))
        rows, gains = [rows[at] for at in kept], [gains[at] for at in kept]
        left = may.nonzero()[:, 0]
        rest = left[torch.randperm(len(left), generator=generator)[: k - len(rows)]].tolist()
        gains += [0.0] * len(rest)
        return Selection(np.array(rows + rest, dtype=np.int64), np.array(gains))


@dataclass(eq=False)
class _State:
    """Posterior of the weights, and for each row its variance and the numerator of its gain."""

    phi: Float[Tensor, "n p"]
    noise: float
    gram: Float[Tensor, "p p"]
    weights: Float[Tensor, "p p"]
    variance: Float[Tensor, " n"]
    numerator: Float[Tensor, " n"]
    prior: float
    first: float = 0.0

    @classmethod
    def of(cls, phi: Float[Tensor, "n p"], noise: float) -> "_State":
        gram = phi.T @ phi
        variance = phi.square().sum(1)
        state = cls(
            phi,
            noise * float(variance.mean()),
            gram,
            torch.eye(phi.shape[1], dtype=torch.float64),
            variance,
            ((phi @ gram) * phi).sum(1),
            float(variance.sum()),
        )
        state.first = float(state.gains().max())
        return state

    def gains(self) -> Float[Tensor, " n"]:
        """The variance, summed over all rows, that each would remove."""
        below = self.variance + self.noise
        return torch.where(below > 0, self.numerator / below.clamp(min=1e-300), 0.0)

    def observe_(self, row: int) -> None:
        """Condition on one row."""
        u = self.weights @ self.phi[row]
        below = float(self.phi[row] @ u) + self.noise
        if below <= 0:
            return
        v = self.gram @ u
        a, b = self.phi @ u, self.phi @ (self.weights @ v)
        self.numerator += a * (a * (float(u @ v) / below) - 2 * b) / below
        self.numerator.clamp_(min=0)
        self.variance = (self.variance - a.square() / below).clamp_(min=0)
        self.weights -= torch.outer(u, u / below)

    def kept(self, rows: list[int], start: Float[Tensor, "p p"], k: int) -> list[int]:
        """Return the places of k rows, after dropping those whose loss costs least, one by one."""
        phi = self.phi[rows]
        half = phi @ start
        noise = torch.eye(len(rows), dtype=torch.float64) * max(self.noise, 1e-300)
        inverse = torch.linalg.inv(half @ phi.T + noise)
        middle = half @ self.gram @ half.T
        kept = list(range(len(rows)))
        while len(kept) > k:
            loss = (inverse @ middle * inverse).sum(1) / inverse.diagonal()
            out = int(loss.argmin())
            rest = torch.tensor([at for at in range(len(kept)) if at != out])
            column = inverse[:, out]
            inverse = inverse - torch.outer(column, column / inverse[out, out])
            inverse, middle = inverse[rest][:, rest], middle[rest][:, rest]
            del kept[out]
        return kept
