r"""The certificate: how much better any k points could have been, at most.

Let $A$ be the weighted covariance of the test points after the labels at the start. Observing any
k points, in the pool or not, with noise or without, lowers $\mathrm{tr} A$ by at most
$\mathrm{top}_k(A)$, the sum of its k largest eigenvalues. If test points are many more than rows of
the pool, $A$ is what all these rows together would take away, which is less, and has as many
eigenvalues as there are rows; the bound is then for any k rows of the pool. Eigenvalues of an
unconverged solver are too small, which would make that false. So, for any orthonormal $Q$, with
$T = Q^\top A Q$, the remainder $A_2 = (I - QQ^\top) A (I - QQ^\top)$ and the residual
$R = AQ - QT$, we use

$$ \mathrm{top}_k(A) \le \max_{r \le k} \left[ \mathrm{top}_{k-r}(T) + \min(\mathrm{tr} A_2,
   \sqrt{r}\, |A_2|_F) \right] + \sum_{i \le k} \sigma_i(R), \qquad
   \mathrm{top}_k(A) \le \mathrm{top}_k(T) + \min(\mathrm{tr} A_2, \sqrt{k}\, |A_2|_F) $$

by Ky Fan's inequality for sums of symmetric matrices: in the first A is split into its diagonal
blocks $T$, $A_2$ and its off-diagonal part, whose eigenvalues are $\pm \sigma_i(R)$; in the second
into two matrices with the eigenvalues of $T$ and of $A_2$ (Bourin & Lee 2012). Both are safe
however far $Q$ is from converged, and close once it has.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from evgp._moved import find
from evgp.errors import NotPositiveDefinite
from evgp.pool import Certificate, Needed
from evgp.posterior import DENSE, TestCovariance

__path__: list[str] = []  # so that `from evgp.theory import ratio_bound` asks `_moved.OldNames`

SHARES = (0.5, 0.8, 0.9, 0.95)
_ROUNDS = 3
# Rounding of the stored matrix and of products with it, as a share of its Frobenius norm.
_ROUNDING = {torch.float32: 2.4e-7, torch.float64: 1e-14}


@dataclass(frozen=True)
class Ceiling:
    """Upper bound on the reduction of the mean variance by any j points.

    Attributes
    ----------
    parts : tuple
        Bounds, of which the lowest counts.
    total : float
        The whole variance.
    rounding : float
        Allowance for rounding.
    """

    parts: tuple["_Part", ...]
    total: float
    rounding: float

    def __call__(self, j: int) -> float:
        """The bound for j points; never more than the whole variance."""
        if j <= 0:
            return 0.0
        least = min(part.bound(j) for part in self.parts)
        # An error E moves the sum of j eigenvalues by at most sqrt(j) |E|_F.
        return min(least + j**0.5 * self.rounding, self.total)


@dataclass(frozen=True)
class _Part:
    """One choice of Q: its Ritz values, the remainder, and how far it is from invariant."""

    ritz: Float[Tensor, " p1"]  # cumulative, from 0
    trace: float
    norm: float
    residual: Float[Tensor, " p1"]  # cumulative singular values, from 0

    def bound(self, j: int) -> float:
        """The bound for j points, in O(p): below r = j - p only the part outside grows."""
        p = len(self.ritz) - 1
        r = torch.arange(max(0, j - p), j + 1)
        outside = torch.clamp(self.norm * r.double().sqrt(), max=self.trace)
        mixed = (self.ritz[(j - r).clamp(max=p)] + outside).max() + self.residual[min(j, p)]
        added = self.ritz[min(j, p)] + outside[-1]
        return float(torch.minimum(mixed, added))


def ceiling(
    covariance: TestCovariance, k: int, *, guess: Float[Tensor, "q m"] | None = None
) -> Ceiling:
    """The bound for every number of points, tightest up to k.

    All eigenvalues up to m = 3,072, in O(m³); beyond, block iterations from `guess` in O(m² k) and
    4 m k float64 of memory. Deterministic.

    Parameters
    ----------
    covariance : TestCovariance
    k : int
        Number of points.
    guess : tensor, shape (q, m), optional
        Rows that should span the largest directions, such as the columns of the picks.

    Returns
    -------
    Ceiling
    """
    m, total = len(covariance), covariance.trace()
    share, size_of = _ROUNDING[covariance.matrix.dtype], covariance.size()
    rounding = share * size_of
    if m <= DENSE:
        try:
            values = torch.linalg.eigvalsh(covariance.dense()).flip(0).clamp(min=0)
        except torch.linalg.LinAlgError as error:  # type: ignore[attr-defined]
            raise NotPositiveDefinite(
                "expected points of similar scale, got some so far from the others that their "
                "covariance has no eigenvalues; scale the columns, or drop those points"
            ) from error
        exact = _Part(_cumulative(values), 0.0, 0.0, torch.zeros(m + 1, dtype=torch.float64))
        return Ceiling((exact,), total, rounding)
    size = min(m, k + 64)
    generator = torch.Generator().manual_seed(0)
    q = torch.randn(m, size, generator=generator, dtype=torch.float64)
    if guess is not None:
        known = (guess * covariance.weights.sqrt()).T[:, : size - 16]
        q[:, : known.shape[1]] = known
    q = torch.linalg.qr(q).Q
    for _ in range(_ROUNDS - 1):
        q = torch.linalg.qr(covariance.apply(q)).Q
    image = covariance.apply(q)
    ritz, turn = torch.linalg.eigh(_symmetric(q.T @ image))
    ritz, turn = ritz.flip(0), turn.flip(1)
    image = image @ turn
    residual = image - (q @ turn) * ritz
    # Cancellation below may cause an error of this size, which is added to stay safe.
    squares = covariance.squares() + 4 * share * size_of**2
    sizes = sorted({size, max(1, 3 * size // 4), max(1, size // 2), max(1, size // 4)})
    parts = tuple(_part(ritz[:p], image[:, :p], residual[:, :p], total, squares) for p in sizes)
    return Ceiling(parts, total, rounding)


def _part(
    ritz: Float[Tensor, " p"],
    image: Float[Tensor, "m p"],
    residual: Float[Tensor, "m p"],
    total: float,
    squares: float,
) -> _Part:
    trace = max(0.0, total - float(ritz.sum()))
    left = squares - 2 * float(image.square().sum()) + float(ritz.square().sum())
    singular = torch.linalg.eigvalsh(residual.T @ residual).clamp(min=0).sqrt().flip(0)
    return _Part(_cumulative(ritz), trace, max(0.0, left) ** 0.5, _cumulative(singular))


def certify(
    bound: Callable[[int], float],
    *,
    prior: float,
    start: float,
    left: Float[np.ndarray, " k"],
    counts: Sequence[int] | None = None,
    most: int,
) -> Certificate:
    """The certificate of every prefix, from an upper bound.

    Parameters
    ----------
    bound : callable
        Largest reduction by j points.
    prior, start : float
        Mean variance without labels, and before the picks.
    left : array, shape (k,)
        Mean variance after each pick.
    counts : sequence of int, optional
        Numbers of points that the same money could buy, if rows have costs.
    most : int
        Number of points.

    Returns
    -------
    Certificate
    """
    sizes = range(1, len(left) + 1) if counts is None else counts
    falls = np.array([min(bound(j), start) for j in sizes])
    reached = start - left
    share = np.where(falls > 0, np.clip(reached / np.where(falls > 0, falls, 1), 0, 1), 1.0)
    needed = {}
    for part in SHARES:
        goal = (1 - part) * prior
        enough = np.flatnonzero(left <= goal)
        ours = 0 if start <= goal else int(enough[0]) + 1 if len(enough) else None
        needed[part] = Needed(_fewest(bound, start - goal, most), ours)
    return Certificate(np.maximum(start - falls, 0.0), share, needed)


def _fewest(bound: Callable[[int], float], fall: float, most: int) -> int:
    """The smallest j whose bound reaches this fall; most + 1 if none does."""
    if fall <= 0:
        return 0
    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(middle) >= fall * (1 - 1e-9) else (middle, high)
    return high


def _cumulative(values: Float[Tensor, " p"]) -> Float[Tensor, " p1"]:
    return torch.cat([values.new_zeros(1), values.cumsum(0)])


def _symmetric(a: Float[Tensor, "p p"]) -> Float[Tensor, "p p"]:
    return (a + a.T) / 2


if not TYPE_CHECKING:
    __getattr__ = partial(find, __name__)
