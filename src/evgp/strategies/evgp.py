"""EV-GP: pick what lowers the NTK Gaussian process's test variance most, before any training.

Hemachandra et al., Training-Free Neural Active Learning with Initialization-Robustness
Guarantees, ICML 2023.
"""

from dataclasses import dataclass, replace
from math import inf

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

from evgp._checks import can, instance, keep, noise_of, shown
from evgp._errors import PoolError
from evgp._progress import check_progress
from evgp.criteria import Criterion, ExpectedVariance
from evgp.kernels import Features, Kernel, checked, is_random, redrawn, storage_of
from evgp.pool import Pool, Selection
from evgp.search import Exact, Greedy, Progress, silent
from evgp.selection.backends import DenseBackend, FeaturesBackend
from evgp.selection.checks import criterion_named, features_of, free_rows, greedy_of, money
from evgp.selection.request import Request
from evgp.selection.run import most_picks
from evgp.selection.shards import Held


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

    def __post_init__(self) -> None:
        if isinstance(self.kernel, Features) and not isinstance(self.kernel, type | Kernel):
            features_of(self.kernel)
        else:
            object.__setattr__(self, "kernel", checked(self.kernel))
        criterion_named(self.criterion)
        if isinstance(greedy_of(self.greedy), str):
            raise PoolError(f"expected a greedy such as evgp.Exact(), got {shown(self.greedy)}")
        keep(self, noise=noise_of(self.noise))
        storage_of(self.storage)
        if self.storage is None:
            raise PoolError("expected storage torch.float32 or torch.float64, got None")

    @property
    def learns(self) -> bool:
        """Labels play no part."""
        return False

    @property
    def ahead(self) -> bool:
        """Rounds change no pick, unless each has a kernel of its own or the whole set is fixed."""
        return can(self.greedy, "nested") and not is_random(self.kernel)

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
        instance(pool, "a pool", Pool, "evgp.Pool(x)")
        instance(generator, "a generator", Generator, "torch.Generator()")
        n = len(pool)
        free = free_rows(candidates, pool.labelled, n) if candidates is not None else None
        free = pool.unlabelled() if free is None else free
        given = None if not isinstance(budget, int | float) or budget == inf else budget
        costs, budget = money(costs, given if costs is None else budget, n)
        prices = None if costs is None else costs[free]
        kernel = self.kernel if isinstance(self.kernel, Kernel) else None
        request = Request(
            x=Held(pool.x),
            k=most_picks(k, len(free), prices, budget),
            kernel=kernel,
            features=None if isinstance(self.kernel, Kernel) else self.kernel,
            criterion=self.criterion,
            x_test=None if pool.x_test is None else Held(pool.x_test),
            x_labelled=None if pool.x_labelled is None else Held(pool.x_labelled),
            test=pool.test,
            test_weights=pool.weights,
            labelled=pool.labelled,
            candidates=free,
            costs=costs,
            budget=budget,
            noise=self.noise,
            progress=check_progress(progress),
        )
        backend = FeaturesBackend(request) if kernel is None else DenseBackend(request)
        return backend.run(self.greedy, str(self.storage).removeprefix("torch."), generator)
