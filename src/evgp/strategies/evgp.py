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
from evgp.criteria import Criterion, ExpectedVariance
from evgp.greedy import Exact, Greedy, Progress, Purse, silent
from evgp.kernels import Kernel
from evgp.pool import Certificate, Pool, Selection
from evgp.posterior import DensePosterior, Start, TestCovariance
from evgp.theory import ceiling, certify


@dataclass(frozen=True)
class EVGP:
    """The strategy: a kernel, a criterion and a greedy.

    `noise` is a fraction of the mean prior variance over the test points, fixed once per run, so
    that the scale of a kernel changes no pick.

    >>> from evgp import NTK, Pool, mlp
    >>> pool = Pool(torch.eye(4, dtype=torch.float64))
    >>> len(EVGP(NTK(mlp()))(pool, 2, generator=torch.Generator()))
    2
    """

    kernel: Kernel
    criterion: Criterion = ExpectedVariance()
    greedy: Greedy = Exact()
    noise: float = 1e-6
    storage: torch.dtype = torch.float64

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
        weights = pool.test_weights()
        prior = float(weights @ self.kernel.diag(pool.test_points()).double())
        start = Start(self.kernel, pool, self.noise * prior, self.storage)
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
            made = max(made, rated, key=lambda one: float(one.gains.sum()))
        return self._measure(start, made, purse, prior, progress)

    def _measure(
        self, start: Start, made: Selection, purse: Purse, prior: float, progress: Progress
    ) -> Selection:
        """Replay the picks in float64: variances after each, and what was guaranteed."""
        weights = start.pool.test_weights()
        posterior = start(torch.from_numpy(made.indices))
        before = posterior.test_variance()
        left = []
        for row in range(len(made)):
            posterior.observe_(row)
            left.append(float(weights @ posterior.test_variance()))
        made = replace(
            made,
            prior_variance=prior,
            start_variance=float(weights @ before),
            variance_left=np.array(left),
            test_before=before.numpy(),
            test_after=posterior.test_variance().numpy(),
        )
        if not isinstance(self.criterion, ExpectedVariance):
            return made
        progress("certifying", 0, 1)
        certificate = self._certify(start, made, purse, posterior)
        progress("certifying", 1, 1)
        return replace(made, certificate=certificate)

    def _certify(
        self, start: Start, made: Selection, purse: Purse, posterior: DensePosterior
    ) -> Certificate:
        covariance = TestCovariance(
            start.test_matrix(),
            posterior.base(),
            start.pool.test_weights(),
            torch.from_numpy(made.test_before),
        )
        bound = ceiling(covariance, len(made), guess=posterior.columns())
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
            most=len(start.pool),
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
