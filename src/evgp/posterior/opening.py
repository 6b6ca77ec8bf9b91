"""Opening posteriors in feature space: features of the pool once, test points as one matrix."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from evgp._errors import PoolError
from evgp._linalg import BLOCK
from evgp.kernels import Features
from evgp.pool import Pool
from evgp.posterior.covariance import TestCovariance
from evgp.posterior.featured import FeaturePosterior
from evgp.posterior.posterior import Posterior
from evgp.posterior.rows import FeatureRows, Some, Stored, moment
from evgp.posterior.sums import FeatureSums, columns_of, root_of


@dataclass(frozen=True, eq=False)
class FeatureStart:
    r"""Opens fresh posteriors over given candidates of a pool of feature rows.

    `residual` is what the features miss of each row, `moment` and `rest` are the test points, and
    `noise` the absolute variance of a label; labelled rows are known from the start.
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
        """Features of every point once: the pool's kept in `storage`, the test points' summed.

        `noise` is a fraction of the mean prior variance over the test points.
        """
        rows, residual = featurise(features, pool.x, storage)
        weights, at = pool.test_weights(), pool.test_rows()
        if at is not None:
            every = torch.zeros(len(residual), dtype=torch.float64)
            every.index_add_(0, at, weights.double())  # a row may be a test point twice
            total, rest = moment(rows, every), float(every @ residual)
        else:
            test, own = featurise(features, pool.test_points(), storage)
            total, rest = moment(test, weights), float(weights @ own)
        prior = float(total.trace()) + rest
        inside, own = total.new_empty(0, len(total)), total.new_empty(0)
        if len(known := pool.known()):
            made, own = featurise(features, known, torch.float64)
            inside = made.take(torch.arange(len(known)))
        return cls(rows, residual, total, rest, noise * prior, inside, own)

    @property
    def prior(self) -> float:
        """The mean variance of the test points without labels."""
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
        """Of the test points after the labels at the start, in directions that stand for them."""
        root = root_of(self.moment)
        base = columns_of(self.known, self.noise + self.known_residual) @ root.T
        matrix = root @ root.T
        variance = matrix.diagonal() - base.square().sum(0)
        ones = torch.ones(len(root), dtype=torch.float64)
        return TestCovariance(matrix, base, ones, variance.clamp(min=0))


def featurise(
    features: Features, x: Shaped[Tensor, " n *d"], storage: torch.dtype
) -> tuple[Stored, Float[Tensor, " n"]]:
    """Features and what they miss, block by block: rows as kept, residuals in float64."""
    phis, rests = [], []
    for start in range(0, len(x), BLOCK):
        block = x[start : start + BLOCK]
        phi = features.phi(block)
        phis.append(phi.to(storage))
        check_finite(phis[-1], start)
        rests.append(features.residual(block, phi))
    return Stored(torch.cat(phis)), torch.cat(rests).double()


def check_finite(phi: Float[Tensor, "b p"], first: int) -> None:
    """Refuse features that the type they are kept in cannot hold; `first` numbers the first row."""
    if not bool(torch.isfinite(phi).all()):
        row = first + int((~torch.isfinite(phi)).any(1).nonzero()[0])
        kind = str(phi.dtype).removeprefix("torch.")
        raise PoolError(
            f"expected features that {kind} can hold, got NaN, inf or too large a number in row "
            f"{row}; scale the inputs, or leave that row out"
        )
