"""Three ways to run a request: the exact matrix, features in memory, and shards on the disk.

A backend knows what it takes (`memory`, `seconds`, `disk`) and does it (`run`).
"""

import warnings
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Protocol, cast, runtime_checkable

import numpy as np
import torch
from jaxtyping import Int
from torch import Generator, Tensor

from evgp._checks import can
from evgp._errors import DataWarning, PoolError
from evgp._executor import counted
from evgp._linalg import in_pairs
from evgp._machine import speed
from evgp.datasets import Fitted, Streamed, Survey, step_of
from evgp.kernels import Features, Kernel
from evgp.pool import Pool, Selection
from evgp.search import Budget, Greedy
from evgp.selection import checks
from evgp.selection.features import P, features_named, fewer, looked_at, width_of
from evgp.selection.large import Large
from evgp.selection.request import Request
from evgp.selection.run import Opened, check_by_features, open_features, open_kernel, searched
from evgp.selection.shards import Held
from evgp.theory import DENSE


def read(request: Request) -> Pool:
    """The points of a request in memory, on the pool's scale."""
    if can(request.x, "in_files"):
        fitted = fit(request)
        parts = [None if one is None else _whole(one) for one in (fitted, *like(fitted, request))]
    else:
        given = (request.x, request.x_test, request.x_labelled)
        if any(one is not None and not can(one, "in_memory") for one in given):
            raise PoolError(
                "expected points to pick from, got their shape alone, which a plan can be made "
                "for; give the points"
            )
        parts = [None if one is None else cast(Held, one).x for one in given]
    x, x_test, x_labelled = parts
    assert x is not None
    pool = Pool(x, x_test, request.test, request.test_weights, request.labelled, x_labelled)
    return pool if request.thin is None else checks.thinned(pool, request.thin, request.seed)


def fit(request: Request, sample: Int[np.ndarray, " r"] | None = None) -> Fitted:
    """One pass over a pool in files: its scaling, its categories, and the rows of a sample.

    O(n d) time, and the memory of a few blocks and of the sample.
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
    """Test and labelled points in files, on the scale of the pool."""
    test, outside = (
        None if one is None else fitted.like(cast(Streamed, one))
        for one in (request.x_test, request.x_labelled)
    )
    return test, outside


def _whole(pool: Fitted) -> Tensor:
    """All of a pool in files, as numbers."""
    return torch.from_numpy(np.concatenate([block for _, block in pool.blocks(0, len(pool))]))


# What torch and its like take before the first row is read, and scratch space.
_LIBRARIES = 800_000_000
# The same where only what cannot be dropped counts: not the libraries' own files.
_ANONYMOUS = 450_000_000
# Rows, and numbers, of the sample that inducing points are chosen from.
_SAMPLE, _NUMBERS = 20_000, 1 << 23
# Bytes kept for each row of a shard: five sums, its noise, and what a look at all rows takes.
_KEPT = 100
_STORAGE = {"float32": torch.float32, "float64": torch.float64}


@runtime_checkable
class Backend(Protocol):
    """One way to run a request."""

    @property
    def request(self) -> Request:
        """What it runs."""
        ...

    @property
    def name(self) -> str:
        """What to call it."""
        ...

    @property
    def kind(self) -> str:
        """Which features it uses; empty where it needs none."""
        ...

    def memory(self, storage: str) -> int:
        """Bytes at the peak."""
        ...

    def seconds(self, storage: str, search: Greedy) -> float:
        """A rough guess from a glance at this machine's speed."""
        ...

    def disk(self) -> int:
        """Bytes that it writes."""
        ...

    def in_less(self) -> "Backend":
        """The same with less memory, where there is a slower way."""
        ...

    def run(self, search: Greedy, storage: str, generator: Generator | None = None) -> Selection:
        """The picks."""
        ...


@dataclass(frozen=True, eq=False)
class DenseBackend:
    """The exact kernel: one matrix of candidates x test points, in memory.

    `table` are the bytes and seconds of a kernel that is computed for all points at once.
    """

    request: Request
    table: tuple[int, float] = (0, 0.0)
    kind: str = ""
    name: str = "dense"

    def memory(self, storage: str) -> int:
        """The large matrix, the columns of the picks, the inputs, what the criterion takes."""
        sizes, criterion = self.request.sizes, self.request.criterion
        size = _STORAGE[storage].itemsize
        n, m, k = sizes.rows, sizes.tests, sizes.k
        columns = 8 * (3 * k + sizes.labelled) * (n + sizes.apart)
        extra = 0
        if can(criterion, "certifiable"):
            solver = 8 * m * m * 2 if m <= DENSE else 8 * m * (k + 64) * 4
            extra = sizes.apart * m * size + solver
        if more := getattr(criterion, "extra_memory", None):
            extra += more(n, m)
        return n * m * size + columns + sizes.inputs + extra + self.table[0] + _LIBRARIES

    def seconds(self, storage: str, search: Greedy) -> float:
        """The kernel, a read of the matrix a pick, swaps, the certificate."""
        asked, sizes, (flops, stream) = self.request, self.request.sizes, speed()
        n, m, k, size = sizes.rows, sizes.tests, sizes.k, _STORAGE[storage].itemsize
        pairs = n * m * (1.0 if sizes.apart else 0.5)
        kernel = self.table[1] or pairs * (2 * sizes.width / flops + 8e-9 * _layers(asked.kernel))
        picks = k * (n * m * size / stream + 4 * k * n * 8 / stream + 2e-3)
        if can(asked.criterion, "pairwise"):
            picks = k * n * m * (k / flops + 4e-8)
        swaps = 8 * k * (4 * k * n * 8 / stream + 3e-3) if can(search, "swaps") else 0.0
        certificate = 3 * m**3 / flops if m <= DENSE else 8 * m * m * (k + 64) / flops
        return kernel + picks + swaps + certificate

    def disk(self) -> int:
        """Nothing."""
        return 0

    def in_less(self) -> Backend:
        """There is none."""
        return self

    def run(self, search: Greedy, storage: str, generator: Generator | None = None) -> Selection:
        """Search over the exact kernel."""
        return _searched(self.request, self.opened(storage), search, generator)

    def opened(self, storage: str) -> Opened:
        """What opens posteriors, and the mean prior variance."""
        asked, pool = self.request, read(self.request)
        assert asked.kernel is not None
        return open_kernel(asked.kernel, pool, asked.noise, _STORAGE[storage], asked.report)


@dataclass(frozen=True, eq=False)
class FeaturesBackend:
    """Features of all points in memory, in place of the matrix."""

    request: Request
    kind: str = ""
    width: int = 0
    name: str = "features"

    def memory(self, storage: str) -> int:
        """The features, the inputs, and some p x p matrices."""
        sizes, p = self.request.sizes, self.width
        kept = sizes.rows * (p * _STORAGE[storage].itemsize + 80) + sizes.inputs
        square = 8 * p * (6 * p + 4 * sizes.k) + 3 * 8 * 4096 * p
        return kept + square + 8 * sizes.apart * p + _LIBRARIES

    def seconds(self, storage: str, search: Greedy) -> float:
        """Making the features, and a read of them a pick."""
        return _featurised(self.request, self.width, _STORAGE[storage].itemsize, search)

    def disk(self) -> int:
        """Nothing."""
        return 0

    def in_less(self) -> Backend:
        """There is none."""
        return self

    def run(self, search: Greedy, storage: str, generator: Generator | None = None) -> Selection:
        """Make the features, then search over them."""
        return _searched(self.request, self.opened(storage), search, generator)

    def opened(self, storage: str) -> Opened:
        """What opens posteriors, and the mean prior variance."""
        asked, pool = self.request, read(self.request)
        check_by_features(asked.criterion, "features")
        asked.report("features", 0, 1)
        features = features_named(_chosen(self), asked.kernel, pool.x, asked.seed)
        asked.report("features", 1, 1)
        return open_features(features, pool, asked.noise, _STORAGE[storage])


@dataclass(frozen=True, eq=False)
class ShardsBackend:
    """Features on the disk, a block at a time; `scratch` keeps the sums of rows there too."""

    request: Request
    kind: str
    width: int
    scratch: bool = False
    name: str = "sharded"

    def memory(self, storage: str) -> int:
        """Some p x p matrices, the blocks that are worked on, six numbers a row."""
        sizes, p, d = self.request.sizes, self.width, self.request.sizes.width
        square = 8 * p * (12 * p + 6 * sizes.k)
        # Blocks of rows at once, one a thread and some that wait.
        block = 8 * step_of(2 * d) * (6 * p + 5 * d) * (2 + torch.get_num_threads())
        sample = min(sizes.rows, _SAMPLE, max(p, _NUMBERS // d))
        kept = 5 * 8 * d * sample + (0 if self.scratch else _KEPT * sizes.rows)
        inputs = sizes.inputs if can(self.request.x, "in_memory") else 0
        return square + block + kept + inputs + _ANONYMOUS

    def seconds(self, storage: str, search: Greedy) -> float:
        """Making the features, and a read of them a pick."""
        return _featurised(self.request, self.width, 4, search)

    def in_less(self) -> Backend:
        """With the sums of rows on the disk."""
        return replace(self, scratch=True)

    def disk(self) -> int:
        """The features and what they miss."""
        return self.request.sizes.rows * (4 * self.width + 8)

    def run(self, search: Greedy, storage: str, generator: Generator | None = None) -> Selection:
        """Make the shards, then search over them."""
        asked = self.request
        if asked.test_weights is not None:
            raise PoolError("expected no test_weights in a sharded run; repeat test points instead")
        points, test, outside, seen = self._opened()
        large = Large(
            points,
            features_named(_chosen(self), asked.kernel, seen, asked.seed),
            test,
            asked.labelled.numpy(),
            outside,
            None if asked.candidates is None else asked.candidates.numpy(),
            asked.costs,
            asked.place(),
            asked.shard,
            self.scratch,
            None if asked.cache is None else Path(asked.cache),
        )
        return large.pick(
            asked.k,
            budget=asked.budget,
            noise=asked.noise,
            criterion=asked.criterion,
            two_rounds=getattr(search, "over_shards", "") == "two-rounds",
            progress=asked.report,
        )

    def _opened(
        self,
    ) -> tuple[Fitted | Held, Fitted | Held | None, Fitted | Held | None, Tensor]:
        """Pool, test and labelled points as numbers, and points to choose inducing ones from."""
        asked = self.request
        if can(asked.x, "in_files"):
            width = None if self.kind == "raw" else self.width
            fitted = fit(asked, looked_at(len(asked.x), width, asked.seed) if width else None)
            rows = fewer(len(fitted.kept), prod(fitted.shape), width or 1, asked.seed)
            seen = torch.from_numpy(fitted.sampled(rows))
            return fitted.bare(), *like(fitted, asked), seen
        pool = read(replace(asked, thin=None))
        test, outside = (None if x is None else Held(x) for x in (pool.x_test, pool.x_labelled))
        return Held(pool.x), test, outside, pool.x


def backend_named(name: str, request: Request) -> Backend:
    """One of the three ways: dense, features or sharded."""
    if name == "features":
        return FeaturesBackend(request, *features_of(request))
    if name == "sharded":
        check_by_features(request.criterion, "shards")
        return ShardsBackend(request, *features_of(request))
    if cost := getattr(request.kernel, "cost", None):
        sizes = request.sizes
        tests = 0 if request.x_test is None else sizes.tests
        samples = _samples(request.kernel, sizes.shape)
        return DenseBackend(request, cost(samples, sizes.rows + sizes.labelled + tests))
    return DenseBackend(request)


def _searched(
    request: Request, opened: Opened, search: Greedy, generator: Generator | None
) -> Selection:
    rows = request.rows()
    prices = None if request.costs is None else request.costs[rows]
    return searched(
        opened,
        search,
        request.criterion,
        rows,
        Budget(request.k, prices, request.budget),
        generator=generator or torch.Generator().manual_seed(request.seed),
        progress=request.report,
    )


def _chosen(backend: "FeaturesBackend | ShardsBackend") -> str | Features:
    features = backend.request.features
    return backend.kind if features is None or isinstance(features, str) else features


def features_of(request: Request) -> tuple[str, int]:
    """The features that a request asks for, or the usual ones, and how many they are."""
    features = request.features
    if features is not None and not isinstance(features, str):
        width = getattr(features, "p", None) or len(getattr(features, "points", ())) or P
        return repr(features), width
    kind = features or ("sketch" if can(request.kernel, "gradients") else "nystrom")
    width = width_of(kind)
    return (
        kind if width is None else f"{kind.partition('-')[0]}-{width}"
    ), width or request.sizes.width


def _featurised(request: Request, p: int, size: int, search: Greedy) -> float:
    sizes, (flops, stream) = request.sizes, speed()
    n, k = sizes.rows, sizes.k
    making = (n + sizes.apart) * 2 * p * (sizes.width + 3 * p) / flops
    reads = k * (n * p * size / stream + 3e-7 * n + 2e-3)
    return making + reads * (9 if can(search, "swaps") else 1)


def _layers(kernel: Kernel | None) -> int:
    """Layers that an analytic kernel goes through; a guess for others."""
    return len(getattr(getattr(kernel, "network", None), "layers", (1, 2, 3, 4, 5)))


def _samples(kernel: Kernel | None, shape: tuple[int, ...]) -> Tensor:
    """A few points of this shape; the values do not matter for the cost."""
    looks_up = getattr(kernel, "looks_up", None)
    if looks_up is not None and looks_up(shape):
        return torch.zeros(8, *shape, dtype=torch.long)
    return torch.randn(8, *shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
