r"""A labelled set looked at before any training: how much will networks disagree, where, and why?

With $A = (\Theta_X + s I)^{-1}$ and $W = A \Theta_{XT}$, leaving out training row i raises the
NTKGP variance at t by $W_{it}^2 / A_{ii}$: every row at once, without another factorisation.
"""

from dataclasses import dataclass, field
from math import nan

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from evgp._errors import PoolError
from evgp._linalg import JITTER, as_tensor, safe_cholesky
from evgp._typing import Array
from evgp.kernels import NNGP, NTK
from evgp.nets import Network, mlp
from evgp.pool import Pool, Selection
from evgp.posterior import trained
from evgp.strategies import EVGP

_DRAWS = 20
# A row is redundant if leaving it out raises the mean variance by less than this part of it.
_REDUNDANT = 1e-3


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """What a training set leaves open at the test points.

    `deviation` is how much networks of infinite width, trained on the set from random
    initialisations, will differ at each test row; `ceiling` the NTKGP's deviation, which is never
    less, and `prior` both before any label. `influence` is how much the mean variance of the NTKGP
    would rise without each training row. `random` are the mean variances (of trained networks) that
    random sets of the same size from the pool leave; `further` the labels that would help most.
    """

    deviation: Float[np.ndarray, " m"]
    ceiling: Float[np.ndarray, " m"]
    prior: tuple[float, float]
    influence: Float[np.ndarray, " n"]
    random: Float[np.ndarray, " r"] = field(default_factory=lambda: np.empty(0))
    further: Selection | None = None

    @property
    def variance(self) -> float:
        """Of trained networks, mean over the test points."""
        return float((self.deviation**2).mean())

    def at_risk(self, k: int = 10) -> Int[np.ndarray, " k"]:
        """The test rows on which networks will differ most, worst first."""
        return np.argsort(-self.deviation, kind="stable")[:k]

    def matter(self, k: int = 10) -> Int[np.ndarray, " k"]:
        """The training rows that would be missed most, first."""
        return np.argsort(-self.influence, kind="stable")[:k]

    def redundant(self) -> Int[np.ndarray, " r"]:
        """The training rows that would hardly be missed, each taken alone."""
        limit = _REDUNDANT * float((self.ceiling**2).mean())
        return np.flatnonzero(self.influence < limit)

    def __repr__(self) -> str:
        share = 1 - self.variance / self.prior[0] if self.prior[0] > 0 else nan
        return (
            f"Audit({len(self.influence)} training rows remove {share:.0%} of the spread at "
            f"{len(self.deviation)} test rows; {len(self.redundant())} are redundant)"
        )


def audit(
    x_train: Array,
    x_test: Array,
    network: Network = mlp(),
    *,
    pool: Array | None = None,
    k: int = 10,
    noise: float = 1e-6,
    standardise: bool = True,
    seed: int = 0,
) -> Audit:
    """How much networks trained on a set will disagree at test points, before any is trained.

    With a `pool` of unlabelled points the k of them that would help most are picked, and random
    sets of the training set's size are drawn from it to compare with. Columns are scaled by the
    training set. `noise` is a fraction of the mean prior variance. O(n³ + n² m), and the cost of
    `EVGP` for the pool.

    >>> x = np.random.default_rng(0).normal(size=(60, 3))
    >>> audit(x[:30], x[30:])
    Audit(30 training rows remove 98% of the spread at 30 test rows; 3 are redundant)
    """
    if not isinstance(network, Network):
        raise PoolError(
            f"expected a network with exact kernels, such as evgp.mlp(), got {network!r}"
        )
    points, test = (_points(one, name) for one, name in ((x_train, "x_train"), (x_test, "x_test")))
    more = None if pool is None else _points(pool, "pool")
    for name, part in (("x_test", test), ("pool", more)):
        if part is not None and part.shape[1:] != points.shape[1:]:
            raise PoolError(
                f"expected {name} with {points.shape[1]} columns, as x_train; got {part.shape[1]}"
            )
    if standardise:
        mean, scale = points.mean(0), points.std(0, correction=0)
        factor = torch.where(scale > 0, 1 / torch.where(scale > 0, scale, 1.0), 0.0)
        points, test = (points - mean) * factor, (test - mean) * factor
        more = None if more is None else (more - mean) * factor
    ntk, nngp = NTK(network), NNGP(network)
    spread = trained(ntk, nngp, points, torch.zeros(len(points)), test, noise=noise).variance
    ceiling, influence = _left(ntk, points, test, noise)
    drawn, further = np.empty(0), None
    if more is not None:
        drawn = _random(network, more, test, len(points), noise=noise, seed=seed)
        further = EVGP(ntk, noise=noise)(
            Pool(more, test, x_labelled=points),
            min(k, len(more)),
            generator=torch.Generator().manual_seed(seed),
        )
    return Audit(
        spread.sqrt().numpy(),
        ceiling.sqrt().numpy(),
        (float(nngp.diag(test).mean()), float(ntk.diag(test).mean())),
        influence.numpy(),
        drawn,
        further,
    )


def _left(
    ntk: NTK, points: Float[Tensor, "n d"], test: Float[Tensor, "m d"], noise: float
) -> tuple[Float[Tensor, " m"], Float[Tensor, " n"]]:
    """The NTKGP's variance at the test points, and what each training row does for its mean."""
    prior = ntk.diag(test)
    matrix = ntk(points)
    matrix.diagonal().add_(max(noise, JITTER) * float(prior.mean()))
    factor = safe_cholesky(matrix)
    cross = ntk(points, test)
    half = torch.linalg.solve_triangular(factor, cross, upper=False)
    weights = torch.linalg.solve_triangular(factor.T, half, upper=True)
    inverse = torch.linalg.solve_triangular(
        factor, torch.eye(len(points), dtype=torch.float64), upper=False
    )
    influence = weights.square().mean(1) / inverse.square().sum(0)
    return (prior - half.square().sum(0)).clamp(min=0), influence


def _random(
    network: Network,
    pool: Float[Tensor, "p d"],
    test: Float[Tensor, "m d"],
    count: int,
    *,
    noise: float,
    seed: int,
) -> Float[np.ndarray, " r"]:
    """Mean variances of networks trained on random sets of the pool; none if it is too small."""
    if count > len(pool):
        return np.empty(0)
    generator = torch.Generator().manual_seed(seed)
    found = []
    for _ in range(_DRAWS):
        rows = torch.randperm(len(pool), generator=generator)[:count]
        made = trained(
            NTK(network), NNGP(network), pool[rows], torch.zeros(count), test, noise=noise
        )
        found.append(float(made.variance.mean()))
    return np.array(found)


def _points(x: Array, name: str) -> Float[Tensor, "n d"]:
    made = as_tensor(x).double()
    if made.ndim < 2 or len(made) == 0:
        raise PoolError(f"expected {name} of shape (rows, features), got {tuple(made.shape)}")
    if not bool(torch.isfinite(made).all()):
        raise PoolError(f"expected finite numbers in {name}, got NaN or inf; mend or drop them")
    return made.flatten(1)
