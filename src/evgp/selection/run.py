"""One search over one prior: picks with their gains, the variance after each, the certificate.

Kernels are in units near one, so that no square over- or underflows. The noise is a fraction of
the prior variance, so multiplying a kernel by a number changes no pick; a power of two changes no
digit either. Only what is far from one is multiplied.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import frexp, inf, isfinite, ldexp

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Generator, Tensor

from evgp._checks import can, integer, shown
from evgp._errors import PluginError, PoolError
from evgp.criteria import Criterion
from evgp.kernels import Features, Kernel
from evgp.pool import Certificate, Pool, Selection
from evgp.posterior import DensePosterior, FeatureStart, Start
from evgp.search import Budget, Greedy, Progress, best_of, silent
from evgp.theory import Ceiling, ceiling, certify

# Variances from 2^-40 to 2^40 stay as they are: then cubes of standard deviations fit in float32.
_NEAR_ONE = 40
# Beyond these, variances or what is left of them leave the range of float64.
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
        """The n x m matrix; with one argument the symmetric n x n one."""
        return self.kernel(x1, x2) * self.by

    def diag(self, x: Float[Tensor, " n *d"]) -> Float[Tensor, " n"]:
        """Each point with itself."""
        return self.kernel.diag(x) * self.by


@dataclass(frozen=True, eq=False)
class ScaledFeatures:
    """Features times a power of two."""

    features: Features
    by: float

    @property
    def threadsafe(self) -> bool:
        """Whether several threads may ask for them at once."""
        return can(self.features, "threadsafe")

    def phi(self, x: Shaped[Tensor, " n *d"]) -> Float[Tensor, "n p"]:
        """The features of each point, in float64."""
        return self.features.phi(x).double() * self.by

    def residual(
        self, x: Shaped[Tensor, " n *d"], phi: Float[Tensor, "n p"]
    ) -> Float[Tensor, " n"]:
        """What they miss of each point's variance."""
        return self.features.residual(x, phi / self.by) * self.by**2


def unit_of(variance: float) -> float:
    """The power of four that brings a variance near one, where it is far from it.

    >>> unit_of(0.7), unit_of(2.0**101) == 2.0**102, unit_of(1e-200) < 1e-198
    (1.0, True, True)
    """
    check_variance(variance)
    exponent = frexp(variance)[1]
    return 1.0 if abs(exponent) <= _NEAR_ONE else ldexp(1.0, 2 * (exponent // 2))


def check_variance(variance: float) -> None:
    """Refuse points about which nothing is unknown, or whose variance float64 cannot hold."""
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
    """Features in units near one, by those of some points, and the unit of a variance."""
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
    """A selection whose kernel was divided by the unit, as if it had not been."""
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
    """Gains as they would be with the kernel as it was."""
    return gains * unit ** check_degree(criterion, unit)


def check_degree(criterion: Criterion, unit: float) -> int:
    """With which power of the kernel gains grow; refuse a criterion that does not say so."""
    degree = getattr(criterion, "degree", None)
    if degree is None and unit != 1:
        raise PoolError(
            f"expected inputs of moderate size for the criterion {criterion!r}, got a mean prior "
            f"variance near {unit:.0e}; scale the inputs, or give the criterion a degree"
        )
    return 0 if degree is None else int(degree)


@dataclass(frozen=True, eq=False)
class Opened:
    """What opens posteriors over candidates, and the mean prior variance over the test points.

    All in a `unit` of variance in which neither squares nor cubes leave the range of floats.
    """

    start: Start | FeatureStart
    prior: float
    unit: float = 1.0


def searched(
    opened: Opened,
    search: Greedy,
    criterion: Criterion,
    candidates: Int[Tensor, " c"],
    budget: Budget,
    *,
    generator: Generator,
    progress: Progress = silent,
) -> Selection:
    """Picks among the candidates, within the budget, measured and certified.

    Where rows have costs, the better of two searches: by gain, and by gain per cost. Either alone
    can be arbitrarily bad; the better of both is not.
    """
    start = opened.start
    check_degree(criterion, opened.unit)
    budgets = [budget] if budget.costs is None else [budget, replace(budget, by_rate=True)]
    found = [
        search(start, criterion, candidates, one, generator=generator, progress=progress)
        for one in budgets
    ]
    for one in found:
        if not isinstance(one, Selection):
            raise PluginError(f"expected a Selection from {shown(search)}, got {shown(one)}")
    picks = measured(
        criterion,
        start,
        best_of(found),
        budget=budget,
        prior=opened.prior,
        most=len(start),
        progress=progress,
    )
    return in_units(picks, criterion, opened.unit)


def open_kernel(
    kernel: Kernel, pool: Pool, noise: float, storage: torch.dtype, progress: Progress = silent
) -> Opened:
    """What opens posteriors of an exact kernel; `noise` is a fraction of the mean prior variance.

    The mean is taken over the test points once per run, so that the scale of a kernel changes no
    pick.
    """
    if tabulate := getattr(kernel, "tabulated", None):
        progress("kernel", 0, 1)
        kernel, pool = _by_row(tabulate, pool)
        progress("kernel", 1, 1)
    prior = float(pool.test_weights() @ kernel.diag(pool.test_points()).double())
    if (unit := unit_of(prior)) != 1:
        kernel, prior = ScaledKernel(kernel, 1 / unit), prior / unit
    return Opened(Start(kernel, pool, noise * prior, storage), prior, unit)


def open_features(features: Features, pool: Pool, noise: float, storage: torch.dtype) -> Opened:
    """The same for features in place of the kernel."""
    features, unit = scaled_features(features, _some(pool.x, pool.test_points()))
    start = FeatureStart.of(features, pool, noise, storage)
    check_variance(start.prior)
    return Opened(start, start.prior, unit)


def check_by_features(criterion: Criterion, what: str) -> None:
    """Refuse a criterion that needs the test points one by one."""
    if not can(criterion, "by_features"):
        raise PoolError(
            f"expected the expected variance as criterion with {what}, got {criterion!r}, which "
            "needs the test points one by one"
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
    """Replay picks in float64: the variance after each, and what was guaranteed.

    `most` is the number of points that there are to pick from.
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
    single = isinstance(posterior, DensePosterior)  # features know the mean alone
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
    bound = ceiling(covariance, len(picks), guess=guess)
    certificate = _certify(picks, budget, bound, most)
    progress("certifying", 1, 1)
    return replace(picks, certificate=certificate)


def _certify(picks: Selection, budget: Budget, bound: Ceiling, most: int) -> Certificate:
    counts = None
    if budget.costs is not None and picks.costs is not None:
        cheapest = torch.cumsum(budget.costs.sort().values, 0).numpy()
        spent = np.cumsum(picks.costs) * (1 + 1e-12)
        counts = np.searchsorted(cheapest, spent, side="right").tolist()
    return certify(
        bound,
        prior=picks.prior_variance,
        start=picks.start_variance,
        left=picks.variance_left,
        counts=counts,
        most=most,
    )


def most_picks(k: int | None, free: int, prices: Float[Tensor, " c"] | None, budget: float) -> int:
    """The number of picks to aim for, checked."""
    if k is not None:
        k = integer(k, "k", 1, free, why="the rows that may be picked")
    if prices is None:
        if k is None:
            raise PoolError("expected k, or costs and a budget; got neither")
        return k
    most = free if k is None else k
    affordable = int((torch.cumsum(prices.sort().values, 0) <= budget * (1 + 1e-12)).sum())
    if affordable == 0:
        raise PoolError(
            f"expected a budget that buys at least one item, the cheapest of which costs "
            f"{float(prices.min()):g}; got budget={budget:g}"
        )
    return min(most, affordable)


def _some(*parts: Shaped[Tensor, "..."]) -> Shaped[Tensor, " r *d"]:
    """Up to 64 points of each part, evenly over it."""
    rows = [np.unique(np.linspace(0, len(one) - 1, 64).astype(np.int64)) for one in parts]
    return torch.cat([one[torch.from_numpy(at)] for one, at in zip(parts, rows, strict=True)])


def _by_row(tabulate: Callable[[Tensor], Kernel], pool: Pool) -> tuple[Kernel, Pool]:
    """The kernel between all points, once, and the pool as row numbers of it."""
    parts = [part for part in (pool.x, pool.x_test, pool.x_labelled) if part is not None]
    table = tabulate(torch.cat(parts))
    rows = torch.arange(sum(len(part) for part in parts), dtype=torch.float64)[:, None]
    places = iter(torch.split(rows, [len(part) for part in parts]))
    x = next(places)
    x_test = None if pool.x_test is None else next(places)
    x_labelled = None if pool.x_labelled is None else next(places)
    return table, replace(pool, x=x, x_test=x_test, x_labelled=x_labelled)
