"""One search over one prior: picks with their gains, the variance after each, the certificate."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Generator, Tensor

from evgp._capabilities import can
from evgp._checks import integer, shown
from evgp._errors import PluginError, PoolError
from evgp.criteria import Criterion
from evgp.greedy import Greedy, Progress, Purse, best_of, silent
from evgp.kernels import Features, Kernel
from evgp.pool import Certificate, Pool, Selection
from evgp.posterior import DensePosterior, FeatureStart, Start
from evgp.selection.units import (
    ScaledKernel,
    check_degree,
    check_variance,
    in_units,
    scaled_features,
    unit_of,
)
from evgp.theory import Ceiling, ceiling, certify


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
    purse: Purse,
    *,
    generator: Generator,
    progress: Progress = silent,
) -> Selection:
    """Picks among the candidates, within the purse, measured and certified.

    Where rows have costs, the better of two searches: by gain, and by gain per cost. Either alone
    can be arbitrarily bad; the better of both is not.
    """
    start = opened.start
    check_degree(criterion, opened.unit)
    purses = [purse] if purse.costs is None else [purse, replace(purse, by_rate=True)]
    found = [
        search(start, criterion, candidates, one, generator=generator, progress=progress)
        for one in purses
    ]
    for one in found:
        if not isinstance(one, Selection):
            raise PluginError(f"expected a Selection from {shown(search)}, got {shown(one)}")
    picks = measured(
        criterion,
        start,
        best_of(found),
        purse=purse,
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
    purse: Purse,
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
    certificate = _certify(picks, purse, bound, most)
    progress("certifying", 1, 1)
    return replace(picks, certificate=certificate)


def _certify(picks: Selection, purse: Purse, bound: Ceiling, most: int) -> Certificate:
    counts = None
    if purse.costs is not None and picks.costs is not None:
        cheapest = torch.cumsum(purse.costs.sort().values, 0).numpy()
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
