"""EV-GP: picks that reduce the test variance of the NTK Gaussian process the most.

Hemachandra et al., Training-Free Neural Active Learning with Initialization-Robustness
Guarantees, ICML 2023.
"""

from dataclasses import dataclass, replace
from math import inf
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

from evgp._checks import can, instance, keep, noise_of, shown
from evgp._defaults import NOISE
from evgp._progress import check_progress
from evgp.criteria import Criterion, ExpectedVariance, criterion_named
from evgp.errors import BadArgument, PoolError
from evgp.kernels import Features, Kernel, check_storage, checked, is_random, redrawn
from evgp.pool import Pool, Selection
from evgp.search import Exact, Greedy, Progress, greedy_of, silent
from evgp.selection.backends import DenseBackend, FeaturesBackend
from evgp.selection.features import features_of
from evgp.selection.request import InMemory, Request, affordable


@dataclass(frozen=True)
class EVGP:
    """EV-GP as a strategy: a kernel (or features), a criterion and a search.

    Called as `strategy(pool, k, generator=...)`, with an `evgp.Pool`; `evgp.pick` does the same
    for arrays and tables.

    Parameters
    ----------
    kernel : Kernel or Features
        The covariance, such as `evgp.NTK(evgp.mlp())`.
    criterion : Criterion
        What a pick should achieve, such as `evgp.ExpectedVariance()`.
    greedy : Greedy
        How to search, such as `evgp.search.Exact()`.
    noise : float
        Variance of a label, as a fraction of the mean prior variance over the test points; it is
        fixed once per run, so that the scale of a kernel changes no pick.
    storage : torch.dtype
        Type of the matrix of candidates and test points; float32 halves the memory.

    Examples
    --------
    >>> from evgp import NTK, Pool, mlp
    >>> pool = Pool(torch.eye(4, dtype=torch.float64))
    >>> len(EVGP(NTK(mlp()))(pool, 2, generator=torch.Generator()))
    2
    """

    kernel: Kernel | Features
    criterion: Criterion = ExpectedVariance()
    greedy: Greedy = Exact()
    noise: float = NOISE
    storage: torch.dtype = torch.float64
    learns: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if isinstance(self.kernel, Features) and not isinstance(self.kernel, type | Kernel):
            features_of(self.kernel)
        else:
            object.__setattr__(self, "kernel", checked(self.kernel))
        criterion_named(self.criterion)
        if isinstance(greedy_of(self.greedy), str):
            raise PoolError(
                f"expected a search such as evgp.search.Exact(), got {shown(self.greedy)}"
            )
        keep(self, noise=noise_of(self.noise))
        check_storage(self.storage)
        if self.storage is None:
            raise BadArgument.of(PoolError)("storage", "torch.float32 or torch.float64", "None")

    @property
    def ahead(self) -> bool:
        """Whether one long list serves all rounds: not for random kernels, nor for exchange."""
        return can(self.greedy, "nested") and not is_random(self.kernel)

    def renewed(self, seed: int) -> "EVGP":
        """The strategy with the kernel of another random network, if its kernel is random."""
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
        """Return k picks, or as many as the budget buys, with gains, variances and certificate."""
        instance(pool, "a pool", Pool, "evgp.Pool(x)")
        instance(generator, "a generator", Generator, "torch.Generator()")
        no_limit = not isinstance(budget, int | float) or budget == inf
        limit = None if costs is None and no_limit else budget
        kernel = self.kernel if isinstance(self.kernel, Kernel) else None
        request = Request(
            **affordable(k, pool.labelled, candidates, (costs, limit), len(pool)),
            x=InMemory(pool.x),
            kernel=kernel,
            features=None if isinstance(self.kernel, Kernel) else self.kernel,
            criterion=self.criterion,
            x_test=None if pool.x_test is None else InMemory(pool.x_test),
            x_labelled=None if pool.x_labelled is None else InMemory(pool.x_labelled),
            test=pool.test,
            test_weights=pool.weights,
            noise=self.noise,
            progress=check_progress(progress),
        )
        backend = FeaturesBackend(request) if kernel is None else DenseBackend(request)
        return backend.run(self.greedy, str(self.storage).removeprefix("torch."), generator)
