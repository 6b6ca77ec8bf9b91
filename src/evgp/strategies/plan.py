"""What a run will take, before it starts: memory, time, and what it would choose."""

from dataclasses import dataclass, replace
from math import prod

import torch
from torch import Tensor

from evgp._errors import MemoryPlanError, NetworkError, PoolError
from evgp._machine import available_memory, speed
from evgp.criteria import BLOCK, Criterion, ExpectedVariance, MutualInformation, Percentile
from evgp.greedy import Exchange, Greedy
from evgp.kernels import NTK, EmpiricalNTK, Kernel, Source
from evgp.nets import Buildable, Network, mlp
from evgp.strategies.names import choose_greedy, criterion_named, thinned_to
from evgp.strategies.reduce import P, width_of
from evgp.theory import DENSE

# What torch and its like take before the first row is read, and scratch space.
_LIBRARIES = 700_000_000
# Of the memory that is free, how much a run may plan to use.
_SHARE = 0.8


@dataclass(frozen=True)
class Plan:
    """What a run will take on this machine, and what it would choose."""

    rows: int
    features: int
    test_points: int
    k: int
    method: str
    storage: str
    greedy: str
    memory: int
    available: int
    seconds: float
    fits: bool
    advice: str

    def __str__(self) -> str:
        verdict = "fits" if self.fits else "does not fit"
        text = (
            f"{self.rows:,} rows x {self.features:,} features, {self.test_points:,} test points, "
            f"{self.k:,} picks: {self.method}, {self.greedy}, {self.storage} storage, about "
            f"{_size(self.memory)} "
            f"of memory ({verdict} in the {_size(self.available)} available) and about "
            f"{_duration(self.seconds)}."
        )
        return f"{text} {self.advice[0].upper()}{self.advice[1:]}." if self.advice else text


@dataclass(frozen=True)
class Sizes:
    """The numbers that a run's cost depends on."""

    n: int
    d: int
    k: int
    m: int
    labelled: int
    criterion: Criterion
    own: bool  # the candidates are the test points, so one matrix serves both
    table: tuple[int, float] | None = None  # bytes and seconds of an empirical kernel's matrix
    p: int | None = None  # features, where these take the place of the matrix

    def memory(self, storage: str) -> int:
        """Bytes at the peak: the large matrix, the columns of the picks, the inputs."""
        n, m, size = self.n, self.m, 4 if storage == "float32" else 8
        if self.p is not None:
            kept = n * self.p * size + 80 * n + 8 * self.d * (2 * n + (0 if self.own else m))
            square = 8 * self.p * (6 * self.p + 4 * self.k) + 3 * 8 * 4096 * self.p
            return kept + square + (0 if self.own else 8 * m * self.p) + _LIBRARIES
        matrix = n * m * size
        columns = 8 * (3 * self.k + self.labelled) * (n + (0 if self.own else m))
        inputs = 8 * self.d * (2 * n + (0 if self.own else m))
        extra = 0
        if isinstance(self.criterion, ExpectedVariance):
            solver = 8 * m * m * 2 if m <= DENSE else 8 * m * (self.k + 64) * 4
            extra = (0 if self.own else m * m * size) + solver
        if isinstance(self.criterion, MutualInformation):
            extra = 8 * (3 * m * m + 2 * m * n)
        if isinstance(self.criterion, Percentile):
            extra = 12 * 8 * BLOCK
        table = 0 if self.table is None else self.table[0]
        return matrix + columns + inputs + extra + table + _LIBRARIES

    def seconds(self, storage: str, layers: int, greedy: Greedy) -> float:
        """A rough guess from a glance at this machine's speed."""
        n, m, k = self.n, self.m, self.k
        flops, stream = speed()
        size = 4 if storage == "float32" else 8
        if self.p is not None:
            making = (n + (0 if self.own else m)) * 2 * self.p * (self.d + 3 * self.p) / flops
            reads = k * (n * self.p * size / stream + 3e-7 * n + 2e-3)
            return making + reads * (9 if isinstance(greedy, Exchange) else 1)
        pairs = n * m * (0.5 if self.own else 1.0)
        kernel = pairs * (2 * self.d / flops + 8e-9 * layers)
        kernel = kernel if self.table is None else self.table[1]
        picks = k * (n * m * size / stream + 4 * k * n * 8 / stream + 2e-3)
        if isinstance(self.criterion, Percentile):
            picks = k * n * m * (k / flops + 4e-8)
        swaps = 8 * k * (4 * k * n * 8 / stream + 3e-3) if isinstance(greedy, Exchange) else 0.0
        certificate = 3 * m**3 / flops if m <= DENSE else 8 * m * m * (k + 64) / flops
        return kernel + picks + swaps + certificate


def plan(
    n: int,
    d: int | tuple[int, ...],
    k: int,
    *,
    m: int | None = None,
    labelled: int = 0,
    network: Network | Source = mlp(),
    kernel: Kernel | None = None,
    criterion: str | Criterion = "ev",
    greedy: str | Greedy = "auto",
    storage: str = "auto",
    thin: int | None = None,
    features: str | None = None,
) -> Plan:
    """Memory and time for k picks of n rows with d features, on this machine.

    `d` is a number, or the shape of a sample, such as (3, 32, 32). `m` is the number of test points
    where they are not the pool; `thin` keeps that many of them. A network with a finite reading
    only, or an `EmpiricalNTK` as `kernel`, is tried on a few samples to see what it takes.
    `features` ("raw", "nystrom-512", "sketch-512") take the place of the matrix of pool and test
    points; by default they do so only where that matrix would not fit.

    >>> plan(1000, 8, 10).fits
    True
    """
    shape = d if isinstance(d, tuple) else (d,)
    for name, value in (("n", n), ("d", min(shape, default=0)), ("k", k)):
        if value < 1:
            raise PoolError(f"expected {name} >= 1, got {value}")
    if storage not in ("float64", "float32", "auto"):
        raise PoolError(f"expected storage among float64, float32, auto; got {storage!r}")
    rule = criterion_named(criterion)
    thin = thinned_to(thin, rule)
    points = n if m is None else m
    points = points if thin is None else min(points, thin)
    own = m is None and points == n and labelled == 0
    used = kernel if kernel is not None else kernel_of(network)
    table = None
    if isinstance(used, EmpiricalNTK):
        table = used.cost(_samples(used, shape), n + labelled + (0 if m is None else points))
    sizes = Sizes(n, prod(shape), k, points, labelled, rule, own, table)
    available = available_memory()
    room = _SHARE * available
    if features is None and isinstance(rule, ExpectedVariance) and thin is None:
        least = sizes.memory("float32")
        small = replace(sizes, p=P)
        kind = "sketch" if isinstance(used, EmpiricalNTK) else "nystrom"
        fits = small.memory("float32" if storage == "auto" else storage) <= room
        features = f"{kind}-{P}" if least > room and fits and P < n else None
    if features is not None:
        sizes = replace(sizes, p=width_of(features) or prod(shape), table=None)
    chosen = storage
    if storage == "auto":
        chosen = "float64" if sizes.memory("float64") <= room else "float32"
    need = sizes.memory(chosen)
    made = choose_greedy(greedy, n - labelled, k, rule)
    return Plan(
        rows=n,
        features=prod(shape),
        test_points=points,
        k=k,
        method=features or "dense",
        storage=chosen,
        greedy=repr(made),
        memory=need,
        available=available,
        seconds=sizes.seconds(chosen, _layers(used), made),
        fits=need <= room,
        advice="" if need <= room else _advice(sizes, chosen, room),
    )


def kernel_of(network: Network | Source, seed: int = 0) -> Kernel:
    """The kernel of a network: analytic where there is one, else the empirical.

    >>> kernel_of(mlp())
    NTK(network=Network(depth=2, width=512, activation=relu, w_std=1, b_std=0.1), storage=None)
    """
    if isinstance(network, str) or not (callable(network) or isinstance(network, Buildable)):
        raise NetworkError(
            f"expected a network such as evgp.mlp(), a torch module or a function that makes one; "
            f"got {network!r}"
        )
    return NTK(network) if isinstance(network, Network) else EmpiricalNTK(network, seed=seed)


def _layers(kernel: Kernel) -> int:
    """Layers that an analytic kernel goes through; a guess for others."""
    return len(getattr(getattr(kernel, "network", None), "layers", (1, 2, 3, 4, 5)))


def _samples(kernel: EmpiricalNTK, shape: tuple[int, ...]) -> Tensor:
    """A few points of this shape; the values do not matter for the cost."""
    if kernel.looks_up(shape):
        return torch.zeros(8, *shape, dtype=torch.long)
    return torch.randn(8, *shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def refuse(made: Plan) -> None:
    """Stop before a run that would not fit."""
    if not made.fits:
        raise MemoryPlanError(
            f"expected a run within {_size(int(_SHARE * made.available))} of memory, got "
            f"{made.rows:,} rows x {made.test_points:,} test points in {made.storage}, which takes "
            f"{_size(made.memory)}; {made.advice}"
        )


def _advice(sizes: Sizes, storage: str, room: float) -> str:
    if storage == "float64" and sizes.memory("float32") <= room:
        return f"float32 storage would take {_size(sizes.memory('float32'))}"
    for points in (20_000, 10_000, 5_000, 2_000, 1_000):
        need = replace(sizes, m=points, own=False).memory("float32")
        if points < sizes.m and need <= room:
            return f"float32 storage with thin={points} (test points) would take {_size(need)}"
    return "pick from a sample of the rows, or use a machine with more memory"


def _size(count: int) -> str:
    """Bytes for a person.

    >>> _size(1_500_000_000)
    '1.5 GB'
    """
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count / 1e3:.1f} kB"


def _duration(seconds: float) -> str:
    """Seconds for a person.

    >>> _duration(200)
    '3 minutes'
    """
    if seconds < 1.5:
        return "a second"
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
