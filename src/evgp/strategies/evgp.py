"""EV-GP: pick what lowers the NTK Gaussian process's test variance most, before any training.

Hemachandra et al., Training-Free Neural Active Learning with Initialization-Robustness
Guarantees, ICML 2023.
"""

from dataclasses import dataclass, replace
from math import inf

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

from evgp._errors import PoolError
from evgp.criteria import Criterion, ExpectedVariance, Linearised
from evgp.greedy import Exact, Greedy, Lazy, Progress, Purse, best_of, silent
from evgp.kernels import EmpiricalNTK, Features, Kernel, Tabulated, is_random, redrawn
from evgp.pool import Certificate, Pool, Selection
from evgp.posterior import DensePosterior, FeatureStart, Start
from evgp.theory import Ceiling, ceiling, certify


@dataclass(frozen=True)
class EVGP:
    """The strategy: a kernel (or features), a criterion and a greedy.

    `noise` is a fraction of the mean prior variance over the test points, fixed once per run, so
    that the scale of a kernel changes no pick.

    >>> from evgp import NTK, Pool, mlp
    >>> pool = Pool(torch.eye(4, dtype=torch.float64))
    >>> len(EVGP(NTK(mlp()))(pool, 2, generator=torch.Generator()))
    2
    """

    kernel: Kernel | Features
    criterion: Criterion = ExpectedVariance()
    greedy: Greedy = Exact()
    noise: float = 1e-6
    storage: torch.dtype = torch.float64

    @property
    def learns(self) -> bool:
        """Labels play no part."""
        return False

    @property
    def ahead(self) -> bool:
        """Rounds change no pick, unless each has a kernel of its own or the whole set is mended."""
        return isinstance(self.greedy, Exact | Lazy) and not is_random(self.kernel)

    def renewed(self, seed: int) -> "EVGP":
        """With the kernel of another random network, if it has one."""
        return replace(self, kernel=redrawn(self.kernel, seed))

    def __call__(
        self,
        pool: Pool,
        k: int | None = None,
        *,
        costs: Float[Tensor, " n"] | None = None,
        budget: float = inf,
        candidates: Int[Tensor, " c"] | None = None,
        generator: Generator,
        progress: Progress = silent,
    ) -> Selection:
        """k picks, or what the budget buys, with their gains, variances and certificate."""
        free = pool.unlabelled() if candidates is None else candidates
        prices = None if costs is None else costs[free]
        purse = Purse(most_picks(k, len(free), prices, budget), prices, budget)
        start, prior = self._open(pool, progress)
        check_prior(prior)
        made = self.greedy(
            start, self.criterion, free, purse, generator=generator, progress=progress
        )
        if prices is not None:
            rated = self.greedy(
                start,
                self.criterion,
                free,
                replace(purse, by_rate=True),
                generator=generator,
                progress=progress,
            )
            # Gain per cost alone, or gain alone, can be arbitrarily bad; the better of both is not.
            made = best_of([made, rated])
        return measured(
            self.criterion,
            start,
            made,
            purse=purse,
            prior=prior,
            most=len(start),
            progress=progress,
        )

    def _open(self, pool: Pool, progress: Progress) -> tuple[Start | FeatureStart, float]:
        """What opens posteriors, and the mean prior variance over the test points."""
        if not isinstance(self.kernel, Kernel):
            if not isinstance(self.criterion, ExpectedVariance | Linearised):
                raise PoolError(
                    "expected the expected variance as criterion with features, got "
                    f"{self.criterion!r}, which needs the test points one by one"
                )
            made = FeatureStart.of(self.kernel, pool, self.noise, self.storage)
            return made, made.prior
        kernel: Kernel = self.kernel
        if isinstance(kernel, EmpiricalNTK):
            progress("kernel", 0, 1)
            kernel, pool = tabulate(kernel, pool)
            progress("kernel", 1, 1)
        prior = float(pool.test_weights() @ kernel.diag(pool.test_points()).double())
        return Start(kernel, pool, self.noise * prior, self.storage), prior


def measured(
    criterion: Criterion,
    start: Start | FeatureStart,
    made: Selection,
    *,
    purse: Purse,
    prior: float,
    most: int,
    progress: Progress,
) -> Selection:
    """Replay picks in float64: the variance after each, and what was guaranteed.

    `most` is the number of points that there are to pick from.
    """
    posterior = start(torch.from_numpy(made.indices))
    before = posterior.test_variance()
    covariance = None
    if isinstance(criterion, ExpectedVariance):
        progress("certifying", 0, 1)
        covariance = start.test_covariance(posterior)
    first, left = posterior.mean_variance(), []
    for row in range(len(made)):
        posterior.observe_(row)
        left.append(posterior.mean_variance())
    single = isinstance(posterior, DensePosterior)  # features know the mean alone
    made = replace(
        made,
        prior_variance=prior,
        start_variance=first,
        variance_left=np.array(left),
        test_before=before.numpy() if single else np.empty(0),
        test_after=posterior.test_variance().numpy() if single else np.empty(0),
    )
    if covariance is None:
        return made
    guess = posterior.columns() if isinstance(posterior, DensePosterior) else None
    bound = ceiling(covariance, len(made), guess=guess)
    certificate = _certify(made, purse, bound, most)
    progress("certifying", 1, 1)
    return replace(made, certificate=certificate)


def _certify(made: Selection, purse: Purse, bound: Ceiling, most: int) -> Certificate:
    counts = None
    if purse.costs is not None and made.costs is not None:
        cheapest = torch.cumsum(purse.costs.sort().values, 0).numpy()
        spent = np.cumsum(made.costs) * (1 + 1e-12)
        counts = np.searchsorted(cheapest, spent, side="right").tolist()
    return certify(
        bound,
        prior=made.prior_variance,
        start=made.start_variance,
        left=made.variance_left,
        counts=counts,
        most=most,
    )


def check_prior(prior: float) -> None:
    """Refuse points about which nothing is unknown."""
    if not prior > 0:
        raise PoolError(
            f"expected test points with some variance, got a mean prior variance of {prior:g} (are "
            "all features zero?), so no pick can lower it"
        )


def most_picks(k: int | None, free: int, prices: Float[Tensor, " c"] | None, budget: float) -> int:
    """The number of picks to aim for, checked."""
    whole = isinstance(k, int | np.integer) and not isinstance(k, bool)
    if k is not None and not (whole and 1 <= k <= free):
        raise PoolError(f"expected k from 1 to {free}, the rows that may be picked; got k={k!r}")
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


def tabulate(kernel: EmpiricalNTK, pool: Pool) -> tuple[Kernel, Pool]:
    """The kernel between all points, once, and the pool as row numbers of it."""
    parts = [part for part in (pool.x, pool.x_test, pool.x_labelled) if part is not None]
    table = Tabulated(kernel(torch.cat(parts)))
    rows = torch.arange(sum(len(part) for part in parts), dtype=torch.float64)[:, None]
    places = iter(torch.split(rows, [len(part) for part in parts]))
    x = next(places)
    x_test = None if pool.x_test is None else next(places)
    x_labelled = None if pool.x_labelled is None else next(places)
    return table, replace(pool, x=x, x_test=x_test, x_labelled=x_labelled)
