"""Scale priors, and measure picks: the variance after each, the certificate.

Kernels are scaled to variances near one, so that no square over- or underflows. The noise is a
fraction of the prior variance, so scaling a kernel changes no pick, and scaling by a power of two
changes no digit either. Only kernels whose variances are far from one are scaled.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import frexp, inf, isfinite, ldexp

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from evgp._checks import can, recorded, shown
from evgp.bounds import ceiling, certify
from evgp.criteria import Criterion
from evgp.errors import PluginError, PoolError
from evgp.kernels import Features, Kernel
from evgp.pool import Pool, Selection
from evgp.posterior import DensePosterior, FeatureStart, Start
from evgp.search import Budget, Greedy, Progress

# Variances from 2^-40 to 2^40 are not scaled: cubes of their standard deviations fit in float32.
_NEAR_ONE = 40
# Beyond these, variances before or after the picks leave the range of float64.
_LEAST, _MOST = 1e-280, 1e280


@dataclass(frozen=True)
class ScaledKernel:
    """A kernel times a power of two.

    >>> import torch
    >>> from evgp.kernels import Tabulated
    >>> ScaledKernel(Tabulated(torch.eye(2)), 4.0).diag(torch.tensor([[0.0], [1.0]]))
    tensor([4., 4.])
    """

    kernel: Kernel
    by: float

    def __call__(
        self, x1: Float[Tensor, " n *d"], x2: Float[Tensor, " m *d"] | None = None
    ) -> Float[Tensor, "n m"]:
        """Return the n x m kernel matrix; with one argument, the symmetric n x n matrix."""
        return self.kernel(x1, x2) * self.by

    def diag(self, x: Float[Tensor, " n *d"]) -> Float[Tensor, " n"]:
        """Return the variance of each point: the diagonal of the kernel matrix."""
        return self.kernel.diag(x) * self.by


@dataclass(frozen=True, eq=False)
class ScaledFeatures:
    """Features times a power of two."""

    features: Features
    by: float

    @property
    def threadsafe(self) -> bool:
        """Whether several threads may compute the features at once."""
        return can(self.features, "threadsafe")

    def phi(self, x: Shaped[Tensor, " n *d"]) -> Float[Tensor, "n p"]:
        """Return the features of each point, in float64."""
        return self.features.phi(x).double() * self.by

    def residual(
        self, x: Shaped[Tensor, " n *d"], phi: Float[Tensor, "n p"]
    ) -> Float[Tensor, " n"]:
        """Return the part of each point's variance that the features miss."""
        return self.features.residual(x, phi / self.by) * self.by**2


def unit_of(variance: float) -> float:
    """Return the power of four to divide a variance by if it is far from one, else 1.

    >>> unit_of(0.7), unit_of(2.0**101) == 2.0**102, unit_of(1e-200) < 1e-198
    (1.0, True, True)
    """
    if not _LEAST <= variance <= _MOST:
        check_variance(variance)
    exponent = frexp(variance)[1]
    return 1.0 if abs(exponent) <= _NEAR_ONE else ldexp(1.0, 2 * (exponent // 2))


def check_variance(variance: float) -> None:
    """Refuse a variance of zero, or one that float64 cannot represent."""
    if variance == 0:
        raise PoolError(
            "expected test points with some variance, got a mean prior variance of 0, so no pick "
            "can lower it (are all features zero, or smaller than 1e-150?)"
        )
    if not (isfinite(variance) and _LEAST <= variance <= _MOST):
        raise PoolError(
            f"expected a mean prior variance from {_LEAST:g} to {_MOST:g} over the test points, "
            f"got {variance:g}; scale the inputs, or the kernel"
        )


def scaled_features(features: Features, x: Shaped[Tensor, " r *d"]) -> tuple[Features, float]:
    """Scale features to magnitudes near one, judged by a few points; also return the unit."""
    phi = features.phi(x).double()
    largest = max(float(phi.abs().max()), float(features.residual(x, phi).max()) ** 0.5)
    if not isfinite(largest):
        raise PoolError("expected finite features, got NaN or inf; scale the inputs")
    exponent = frexp(largest)[1] if largest > 0 else 0
    if 2 * abs(exponent) <= _NEAR_ONE:
        return features, 1.0
    check_variance(ldexp(1.0, 2 * exponent) if exponent < 500 else inf)
    return ScaledFeatures(features, ldexp(1.0, -exponent)), ldexp(1.0, 2 * exponent)


def in_units(picks: Selection, criterion: Criterion, unit: float) -> Selection:
    """Return a selection in the original units, after its kernel was divided by `unit`."""
    if unit == 1:
        return picks
    certificate = picks.certificate
    if certificate is not None:
        certificate = replace(certificate, lowest=certificate.lowest * unit)
    return replace(
        picks,
        gains=gains_in_units(picks.gains, criterion, unit),
        prior_variance=picks.prior_variance * unit,
        start_variance=picks.start_variance * unit,
        variance_left=picks.variance_left * unit,
        test_before=picks.test_before * unit,
        test_after=picks.test_after * unit,
        certificate=certificate,
    )


def gains_in_units(
    gains: Float[np.ndarray, " *k"], criterion: Criterion, unit: float
) -> Float[np.ndarray, " *k"]:
    """Return gains in the original units of the kernel."""
    return gains * unit ** check_degree(criterion, unit)


def check_degree(criterion: Criterion, unit: float) -> int:
    """Return the power of the kernel's scale that gains grow with; refuse an unknown one."""
    degree = getattr(criterion, "degree", None)
    if degree is None and unit != 1:
        raise PoolError(
            f"expected inputs of moderate size for the criterion {criterion!r}, got a mean prior "
            f"variance near {unit:.0e}; scale the inputs, or give the criterion a degree"
        )
    return 0 if degree is None else int(degree)


def check_picks(picks: object, search: Greedy, rows: Int[Tensor, " c"], k: int) -> None:
    """Refuse what a search of a user returns in place of at most k candidates, each once."""
    if not isinstance(picks, Selection):
        raise PluginError(f"expected a Selection from {recorded(search)}, got {shown(picks)}")
    picked = picks.indices
    if len(picked) > k or len(np.unique(picked)) < len(picked):
        got = f"{len(picked)} rows" if len(picked) > k else "a row twice"
    elif len(others := np.setdiff1d(picked, rows.numpy())):
        got = f"row {others[0]}"
    else:
        return
    raise PluginError(
        f"expected at most {k} of the rows that may be picked, each once, from the search "
        f"{recorded(search)}, got {got}"
    )


def check_by_features(criterion: Criterion, what: str) -> None:
    """Refuse a criterion that needs the variance of each test point separately."""
    if not can(criterion, "by_features"):
        raise PoolError(
            f"expected a criterion that works with {what}, such as 'ev'; got "
            f"{recorded(criterion)}, which needs the test points one by one (it has no "
            "by_features = True)"
        )


def measured(
    criterion: Criterion,
    start: Start | FeatureStart,
    picks: Selection,
    *,
    budget: Budget,
    prior: float,
    most: int,
    progress: Progress,
) -> Selection:
    """Replay picks in float64 to compute the variance after each, and the certificate.

    `most` is the number of points to pick from.
    """
    posterior = start(torch.from_numpy(picks.indices))
    before = posterior.test_variance()
    covariance = None
    if can(criterion, "certifiable"):
        progress("certifying", 0, 1)
        covariance = start.test_covariance(posterior)
    first, left = posterior.mean_variance(), []
    for row in range(len(picks)):
        posterior.observe_(row)
        left.append(posterior.mean_variance())
    single = isinstance(posterior, DensePosterior)  # features give the mean variance only
    picks = replace(
        picks,
        prior_variance=prior,
        start_variance=first,
        variance_left=np.array(left),
        test_before=before.numpy() if single else np.empty(0),
        test_after=posterior.test_variance().numpy() if single else np.empty(0),
    )
    if covariance is None:
        return picks
    guess = posterior.columns() if isinstance(posterior, DensePosterior) else None
    if guess is not None and guess.shape[1] != len(covariance):
        guess = None  # the covariance is between rows of the pool
    bound = ceiling(covariance, len(picks), guess=guess)
    counts = None
    if budget.costs is not None and picks.costs is not None:
        cheapest = torch.cumsum(budget.costs.sort().values, 0).numpy()
        spent = np.cumsum(picks.costs) * (1 + 1e-12)
        counts = np.searchsorted(cheapest, spent, side="right").tolist()
    certificate = certify(
        bound, prior=prior, start=first, left=picks.variance_left, counts=counts, most=most
    )
    progress("certifying", 1, 1)
    return replace(picks, certificate=certificate)


def evenly_spaced(*parts: Shaped[Tensor, "..."]) -> Shaped[Tensor, " r *d"]:
    """Return up to 64 evenly spaced points of each part."""
    rows = [np.unique(np.linspace(0, len(part) - 1, 64).astype(np.int64)) for part in parts]
    return torch.cat([part[torch.from_numpy(at)] for part, at in zip(parts, rows, strict=True)])


def by_row(tabulate: Callable[[Tensor], Kernel], pool: Pool) -> tuple[Kernel, Pool]:
    """Tabulate the kernel between all points, and return the pool as row numbers of the table."""
    parts = [part for part in (pool.x, pool.x_test, pool.x_labelled) if part is not None]
    table = tabulate(torch.cat(parts))
    rows = torch.arange(sum(len(part) for part in parts), dtype=torch.float64)[:, None]
    places = iter(torch.split(rows, [len(part) for part in parts]))
    x = next(places)
    x_test = None if pool.x_test is None else next(places)
    x_labelled = None if pool.x_labelled is None else next(places)
    return table, replace(pool, x=x, x_test=x_test, x_labelled=x_labelled)
