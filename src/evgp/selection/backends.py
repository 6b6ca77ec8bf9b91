"""Three ways to run a request: the exact matrix, features in memory, and shards on disk.

A backend estimates its cost (`memory`, `seconds`, `disk`) and makes the picks (`run`).
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any, ClassVar, Protocol, TypeAlias, cast, runtime_checkable

import numpy as np
import torch
from jaxtyping import Int
from torch import Generator, Tensor

from evgp._checks import can, recorded
from evgp._executor import counted
from evgp._linalg import in_pairs
from evgp._machine import speed
from evgp.datasets import Fitted, Streamed, Survey, step_of
from evgp.errors import DataWarning, NotFiniteGain, PoolError
from evgp.kernels import Features, Kernel
from evgp.pool import Pool, Selection
from evgp.posterior import DENSE, FeatureStart, Start
from evgp.posterior.dense import ahead_memory, by_pool
from evgp.posterior.features import prepared_memory
from evgp.search import Budget, Greedy, best_of
from evgp.selection.features import (
    P,
    features_named,
    fewer,
    looked_at,
    rank_for,
    thinned,
    width_of,
)
from evgp.selection.request import InMemory, Request
from evgp.selection.run import (
    ScaledKernel,
    by_row,
    check_by_features,
    check_degree,
    check_picks,
    check_variance,
    evenly_spaced,
    in_units,
    measured,
    scaled_features,
    unit_of,
)
from evgp.selection.sharded_run import sharded_picks


def read(request: Request) -> tuple[Pool, dict[str, object]]:
    """Read the points of a request into memory, with the pool's scaling; return what it was."""
    known: dict[str, object] = {}
    if can(request.x, "in_files"):
        fitted = fit(request)
        known = settings_of(fitted)
        pools = (fitted, *like(fitted, request))
        parts = [None if pool is None else _whole(pool) for pool in pools]
    else:
        inputs = (request.x, request.x_test, request.x_labelled)
        if any(points is not None and not can(points, "in_memory") for points in inputs):
            raise PoolError(
                "expected points to pick from, got only their shape, which is enough for a plan; "
                "pass the points"
            )
        parts = [None if points is None else cast(InMemory, points).x for points in inputs]
    x, x_test, x_labelled = parts
    assert x is not None
    pool = Pool(x, x_test, request.test, request.test_weights, request.labelled, x_labelled)
    return (pool if request.thin is None else thinned(pool, request.thin, request.seed)), known


def settings_of(fitted: Fitted) -> dict[str, object]:
    """Return what is known about files only after they were read: their scaling and width."""
    code = fitted.code
    return {"scale": code.scale, "features": prod(fitted.shape), "names": code.names}


def fit(request: Request, sample: Int[np.ndarray, " r"] | None = None) -> Fitted:
    """Fit the scaling and the categories of a pool on disk, and keep a sample of its rows.

    One pass: O(n d) time, and the memory of a few blocks and of the sample.
    """
    pool = cast(Streamed, request.x)
    rows = np.arange(min(8, len(pool))) if sample is None else sample
    starts = range(0, len(pool), request.shard)
    ends = [(start, min(len(pool), start + request.shard)) for start in starts]
    calls = [(pool, low, high, rows[(rows >= low) & (rows < high)]) for low, high in ends]
    names = [f"{pool.name}, rows {low} to {high - 1}" for low, high in ends]
    each = counted(request.report, "reading", len(ends))
    fitted = pool.fitted(in_pairs(request.place().run(_survey, calls, names, each), Survey.merge))
    for note in fitted.notes:
        warnings.warn(note, DataWarning, stacklevel=2)
    return fitted


def _survey(pool: Streamed, start: int, stop: int, rows: Int[np.ndarray, " r"]) -> Survey:
    return pool.survey(start, stop, rows)


def like(fitted: Fitted, request: Request) -> tuple[Fitted | None, Fitted | None]:
    """Return the test points and labelled points on disk, with the pool's scaling."""
    test, outside = (
        None if points is None else fitted.like(cast(Streamed, points))
        for points in (request.x_test, request.x_labelled)
    )
    return test, outside


def _whole(pool: Fitted) -> Tensor:
    """Read all of a pool on disk as numbers."""
    return torch.from_numpy(np.concatenate([block for _, block in pool.blocks(0, len(pool))]))


# Bytes that torch and other libraries take before the first row is read, and scratch space.
_LIBRARIES = 800_000_000
# The same without the pages of the libraries' own files, which the system can drop at any time.
_ANONYMOUS = 450_000_000
# Maximum rows, and numbers, of the sample from which inducing points are chosen.
_SAMPLE, _NUMBERS = 20_000, 1 << 23
# Bytes kept for each row of a shard: five sums, its noise, and scratch space for scoring all rows.
_KEPT = 100
Speeds: TypeAlias = tuple[float, float]  # operations, and bytes read, per second
_STORAGE = {"float32": torch.float32, "float64": torch.float64}


@runtime_checkable
class Backend(Protocol):
    """One way to run a request."""

    @property
    def request(self) -> Request:
        """The request that this backend runs."""
        ...

    @property
    def name(self) -> str:
        """Name of the backend: dense, features or sharded."""
        ...

    @property
    def kind(self) -> str:
        """Name of the features that it uses; empty if it uses the exact kernel."""
        ...

    @property
    def width(self) -> int:
        """Number of features that it uses; 0 if it uses the exact kernel."""
        ...

    def memory(self, storage: str) -> int:
        """Estimate the peak memory in bytes."""
        ...

    def seconds(self, storage: str, search: Greedy, speeds: Speeds | None = None) -> float:
        """Estimate the run time roughly, from a short measurement of this machine's speed.

        `speeds` are those of another machine: operations, and bytes read, per second.
        """
        ...

    @property
    def disk(self) -> int:
        """Number of bytes written to disk."""
        ...

    def in_less(self) -> "Backend":
        """Return a slower variant that needs less memory, or the backend itself if none exists."""
        ...

    def run(self, search: Greedy, storage: str, generator: Generator | None = None) -> Selection:
        """Make the picks."""
        ...


@dataclass(frozen=True, eq=False)
class Opened:
    """A factory of posteriors over candidates, and the mean prior variance of the test points.

    Variances are in a `unit` in which neither squares nor cubes leave the range of floats.
    """

    start: Start | FeatureStart
    prior: float
    unit: float = 1.0
    known: Mapping[str, object] = field(default_factory=dict)  # settings


@dataclass(frozen=True, eq=False)
class InMemoryBackend(ABC):
    """Searches over posteriors of all points, which are in memory; nothing is written to disk."""

    request: Request
    disk: ClassVar[int] = 0

    def in_less(self) -> "InMemoryBackend":
        """Return this backend: it has no variant that needs less memory."""
        return self

    @abstractmethod
    def opened(self, storage: str) -> Opened:
        """Return a factory of posteriors, with the mean prior variance."""

    def run(self, search: Greedy, storage: str, generator: Generator | None = None) -> Selection:
        """Search for picks within the budget, then measure and certify them.

        If rows have costs, return the better of two searches: by gain, and by gain per cost. Either
        alone can be arbitrarily bad; the better of the two cannot.
        """
        request, opened = self.request, self.opened(storage)
        start, criterion, rows = opened.start, request.criterion, request.rows()
        if opened.unit != 1:
            check_degree(criterion, opened.unit)
        prices = None if request.costs is None else request.costs[rows]
        budget = Budget(request.k, prices, request.budget)
        budgets = [budget] if prices is None else [budget, replace(budget, by_rate=True)]
        generator = generator or torch.Generator().manual_seed(request.seed)
        try:
            runs = [
                search(start, criterion, rows, limit, generator=generator, progress=request.report)
                for limit in budgets
            ]
        except NotFiniteGain as error:
            raise error if error.in_pool else replace(error, row=int(rows[error.row])) from None
        for run in runs:
            check_picks(run, search, rows, request.k)
        picks = measured(
            criterion,
            start,
            runs[0] if len(runs) == 1 else best_of(runs),
            budget=budget,
            prior=opened.prior,
            most=len(request.x),
            progress=request.report,
        )
        picks = replace(picks, settings={**picks.settings, **opened.known})
        return picks if opened.unit == 1 else in_units(picks, criterion, opened.unit)


@dataclass(frozen=True, eq=False)
class DenseBackend(InMemoryBackend):
    """The exact kernel: one matrix of candidates x test points, in memory."""

    name: ClassVar[str] = "dense"
    kind: ClassVar[str] = ""
    width: ClassVar[int] = 0

    @cached_property
    def table(self) -> tuple[int, float]:
        """Bytes and seconds of a kernel that is computed for all points at once."""
        request, sizes = self.request, self.request.sizes
        kernel: Any = request.kernel
        tests = 0 if request.x_test is None else sizes.tests
        count = sizes.rows + sizes.labelled + tests
        cost: tuple[int, float] = kernel.cost(_samples(kernel, sizes.shape), count)
        return cost

    def memory(self, storage: str) -> int:
        """Estimate the memory of the matrix, the picks' columns, the inputs and the criterion."""
        sizes, criterion = self.request.sizes, self.request.criterion
        size = _STORAGE[storage].itemsize
        n, c, m, k = sizes.rows, sizes.candidates, sizes.tests, sizes.k
        columns = 8 * (3 * k + sizes.labelled) * (c + sizes.apart) + 3 * 8 * sizes.labelled**2
        extra = 0
        if can(criterion, "certifiable"):
            columns += ahead_memory(c, m, size)
            side = n if by_pool(n, m) else m
            solver = 8 * side * side * 2 if side <= DENSE else 8 * side * (k + 64) * 4
            extra = sizes.apart * m * size + solver
            if side < m:
                extra = 8 * (2 * n * m + 3 * n * n) + solver
        if more := getattr(criterion, "extra_memory", None):
            extra += more(n, m)
        if hasattr(self.request.kernel, "cost"):
            extra += self.table[0]
        return c * m * size + columns + sizes.inputs + extra + _LIBRARIES

    def seconds(self, storage: str, search: Greedy, speeds: Speeds | None = None) -> float:
        """Estimate the time of the kernel, one pass per pick, the swaps and the certificate."""
        request, sizes, (flops, stream) = self.request, self.request.sizes, speeds or speed()
        n, c, m, k = sizes.rows, sizes.candidates, sizes.tests, sizes.k
        size, pairs = _STORAGE[storage].itemsize, c * m * (1.0 if sizes.apart else 0.5)
        # Layers of an analytic kernel; five is a guess for other kernels.
        layers = getattr(getattr(request.kernel, "network", None), "layers", range(5))
        kernel = pairs * (2 * sizes.width / flops + 8e-9 * len(layers))
        if hasattr(request.kernel, "cost"):
            kernel = self.table[1]
        picks = k * (c * m * size / stream + 4 * k * c * 8 / stream + 2e-3)
        if can(request.criterion, "pairwise"):
            picks = k * c * m * (k / flops + 4e-8)
        swaps = 8 * k * (4 * k * c * 8 / stream + 3e-3) if can(search, "swaps") else 0.0
        side = n if by_pool(n, m) else m
        values = 3 * side**3 if side <= DENSE else 8 * side * side * (k + 64)
        certificate = (values + (2 * n * n * m if side < m else 0)) / flops
        return kernel + picks + swaps + certificate

    def opened(self, storage: str) -> Opened:
        """Open the kernel on the pool; the noise is a fraction of the mean prior variance.

        The mean is taken over the test points once per run, so that the scale of a kernel changes
        no pick.
        """
        request, kernel, (inputs, known) = self.request, self.request.kernel, read(self.request)
        assert kernel is not None
        pool = inputs
        if tabulate := getattr(kernel, "tabulated", None):
            request.report("kernel", 0, 1)
            kernel, pool = by_row(tabulate, pool)
            request.report("kernel", 1, 1)
        prior = float(pool.test_weights() @ kernel.diag(pool.test_points()).double())
        if (unit := unit_of(prior)) != 1:
            kernel, prior = ScaledKernel(kernel, 1 / unit), prior / unit
        noise = request.noise * prior
        return Opened(Start(kernel, pool, noise, _STORAGE[storage], inputs), prior, unit, known)


@dataclass(frozen=True, eq=False)
class _ByFeatures:
    """The features that a backend uses in place of the kernel: those of the request, or others.

    Unless the request says how many, their number follows k; `halved` says how often it was halved
    to save memory.
    """

    request: Request
    halved: int = 0

    @cached_property
    def _name_and_width(self) -> tuple[str, int]:
        features = self.request.features
        if features is not None and not isinstance(features, str):
            width = getattr(features, "p", None) or len(getattr(features, "points", ())) or P
            return recorded(features), width
        kind = features or ("sketch" if can(self.request.kernel, "gradients") else "nystrom")
        width = width_of(kind, rank_for(self.request.k) >> self.halved)
        if width is None:
            return kind, self.request.sizes.width
        return f"{kind.partition('-')[0]}-{width}", width

    @property
    def _can_halve(self) -> bool:
        """Whether fewer features may replace these, and still be more than there are picks."""
        free = self.request.features in (None, "nystrom", "sketch")
        return free and self.width // 2 >= max(P, self.request.k)

    @property
    def kind(self) -> str:
        """Name of the features."""
        return self._name_and_width[0]

    @property
    def width(self) -> int:
        """Number of features."""
        return self._name_and_width[1]

    def features(self, x: Tensor) -> Features:
        """Return the features; inducing points are chosen from these points."""
        chosen, request = self.request.features, self.request
        name = self.kind if chosen is None or isinstance(chosen, str) else chosen
        return features_named(name, request.kernel, x, request.seed)

    def seconds(self, storage: str, search: Greedy, speeds: Speeds | None = None) -> float:
        """Estimate the time of making the features, and of one pass over them per pick."""
        sizes, p, (flops, stream) = self.request.sizes, self.width, speeds or speed()
        n, size = sizes.rows, _STORAGE[storage].itemsize
        making = (n + sizes.apart) * 2 * p * (sizes.width + 3 * p) / flops
        reads = sizes.k * (n * p * size / stream + 3e-7 * n + 2e-3)
        return making + reads * (9 if can(search, "swaps") else 1)


@dataclass(frozen=True, eq=False)
class FeaturesBackend(_ByFeatures, InMemoryBackend):
    """Features of all points in memory, instead of the kernel matrix."""

    name: ClassVar[str] = "features"

    def in_less(self) -> "FeaturesBackend":
        """Return a variant with half the features, if these are still enough for k picks."""
        return replace(self, halved=self.halved + 1) if self._can_halve else self

    def memory(self, storage: str) -> int:
        """Estimate the memory of the features, the inputs and some p x p matrices."""
        sizes, p = self.request.sizes, self.width
        kept = sizes.rows * (p * _STORAGE[storage].itemsize + 80) + sizes.inputs
        if can(self.request.criterion, "certifiable"):
            kept += prepared_memory(sizes.candidates, p, _STORAGE[storage].itemsize)
        square = 8 * p * (6 * p + 4 * sizes.k) + 3 * 8 * 4096 * p
        return kept + square + 8 * sizes.apart * p + _LIBRARIES

    def opened(self, storage: str) -> Opened:
        """Make the features of the pool; the noise is a fraction of the mean prior variance."""
        request, (pool, known) = self.request, read(self.request)
        check_by_features(request.criterion, "features")
        request.report("features", 0, 1)
        features = self.features(pool.x)
        request.report("features", 1, 1)
        features, unit = scaled_features(features, evenly_spaced(pool.x, pool.test_points()))
        start = FeatureStart.of(features, pool, request.noise, _STORAGE[storage])
        check_variance(start.prior)
        return Opened(start, start.prior, unit, known)


@dataclass(frozen=True, eq=False)
class ShardsBackend(_ByFeatures):
    """Features on disk, read a block at a time; `scratch` keeps the row sums on disk too."""

    scratch: bool = False
    name: ClassVar[str] = "sharded"

    def memory(self, storage: str) -> int:
        """Estimate the memory of some p x p matrices, the blocks in work, six numbers per row."""
        sizes, p, d = self.request.sizes, self.width, self.request.sizes.width
        square = 8 * p * (12 * p + 6 * sizes.k)
        # Blocks in memory at once: one per thread, and a few in the queue.
        block = 8 * step_of(2 * d) * (6 * p + 5 * d) * (2 + torch.get_num_threads())
        sample = min(sizes.rows, _SAMPLE, max(p, _NUMBERS // d))
        kept = 5 * 8 * d * sample + (0 if self.scratch else _KEPT * sizes.rows)
        inputs = sizes.inputs if can(self.request.x, "in_memory") else 0
        return square + block + kept + inputs + _ANONYMOUS

    def in_less(self) -> Backend:
        """Return a variant that keeps the row sums on disk, or has half the features."""
        if not self.scratch:
            return replace(self, scratch=True)
        return replace(self, halved=self.halved + 1) if self._can_halve else self

    @property
    def disk(self) -> int:
        """Bytes of the features and their residuals."""
        return self.request.sizes.rows * (4 * self.width + 8)

    def run(self, search: Greedy, storage: str, generator: Generator | None = None) -> Selection:
        """Make the shards, then search over them."""
        request = self.request
        if request.test_weights is not None:
            raise PoolError("expected no test_weights in a sharded run; repeat test points instead")
        points, test, outside, seen = self._opened()
        picks = sharded_picks(
            request,
            points,
            self.features(seen),
            test=test,
            outside=outside,
            scratch=self.scratch,
            search=search,
        )
        known = settings_of(cast(Fitted, points)) if can(request.x, "in_files") else {}
        return replace(picks, settings=known)

    def _opened(
        self,
    ) -> tuple[Fitted | InMemory, Fitted | InMemory | None, Fitted | InMemory | None, Tensor]:
        """Return pool, test and labelled points, and a sample to choose inducing points from."""
        request = self.request
        if can(request.x, "in_files"):
            width = None if self.kind == "raw" else self.width
            fitted = fit(request, looked_at(len(request.x), width, request.seed) if width else None)
            rows = fewer(len(fitted.kept), prod(fitted.shape), width or 1, request.seed)
            seen = torch.from_numpy(fitted.sampled(rows))
            return fitted.bare(), *like(fitted, request), seen
        pool, _ = read(replace(request, thin=None))
        test, outside = (None if x is None else InMemory(x) for x in (pool.x_test, pool.x_labelled))
        return InMemory(pool.x), test, outside, pool.x


BACKENDS = {"dense": DenseBackend, "features": FeaturesBackend, "sharded": ShardsBackend}


def _samples(kernel: Kernel | None, shape: tuple[int, ...]) -> Tensor:
    """Return a few points of this shape; their values do not matter for the cost."""
    looks_up = getattr(kernel, "looks_up", None)
    if looks_up is not None and looks_up(shape):
        return torch.zeros(8, *shape, dtype=torch.long)
    return torch.randn(8, *shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
