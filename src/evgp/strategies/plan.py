"""What a run will take, before it starts: memory, time, and what it would choose."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import psutil
import torch

from evgp._errors import MemoryPlanError, PoolError
from evgp.criteria import BLOCK, Criterion, ExpectedVariance, MutualInformation, Percentile
from evgp.greedy import Exchange, Greedy
from evgp.nets import Network, mlp
from evgp.strategies.names import choose_greedy, criterion_named, thinned_to
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
            f"{self.k:,} picks: {self.greedy}, {self.storage} storage, about {_size(self.memory)} "
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

    def memory(self, storage: str) -> int:
        """Bytes at the peak: the large matrix, the columns of the picks, the inputs."""
        n, m, size = self.n, self.m, 4 if storage == "float32" else 8
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
        return matrix + columns + inputs + extra + _LIBRARIES

    def seconds(self, storage: str, network: Network, greedy: Greedy) -> float:
        """A rough guess from a glance at this machine's speed."""
        n, m, k = self.n, self.m, self.k
        flops, stream = _speed()
        size = 4 if storage == "float32" else 8
        pairs = n * m * (0.5 if self.own else 1.0)
        kernel = pairs * (2 * self.d / flops + 8e-9 * len(network.layers))
        picks = k * (n * m * size / stream + 4 * k * n * 8 / stream + 2e-3)
        if isinstance(self.criterion, Percentile):
            picks = k * n * m * (k / flops + 4e-8)
        swaps = 8 * k * (4 * k * n * 8 / stream + 3e-3) if isinstance(greedy, Exchange) else 0.0
        certificate = 3 * m**3 / flops if m <= DENSE else 8 * m * m * (k + 64) / flops
        return kernel + picks + swaps + certificate


def plan(
    n: int,
    d: int,
    k: int,
    *,
    m: int | None = None,
    labelled: int = 0,
    network: Network = mlp(),
    criterion: str | Criterion = "ev",
    greedy: str | Greedy = "auto",
    storage: str = "auto",
    thin: int | None = None,
) -> Plan:
    """Memory and time for k picks of n rows with d features, on this machine.

    `m` is the number of test points where they are not the pool; `thin` keeps that many of them.

    >>> plan(1000, 8, 10).fits
    True
    """
    for name, value in (("n", n), ("d", d), ("k", k)):
        if value < 1:
            raise PoolError(f"expected {name} >= 1, got {value}")
    if storage not in ("float64", "float32", "auto"):
        raise PoolError(f"expected storage among float64, float32, auto; got {storage!r}")
    rule = criterion_named(criterion)
    thin = thinned_to(thin, rule)
    points = n if m is None else m
    points = points if thin is None else min(points, thin)
    own = m is None and points == n and labelled == 0
    sizes = Sizes(n, d, k, points, labelled, rule, own)
    available = available_memory()
    room = _SHARE * available
    chosen = storage
    if storage == "auto":
        chosen = "float64" if sizes.memory("float64") <= room else "float32"
    need = sizes.memory(chosen)
    made = choose_greedy(greedy, n - labelled, k, rule)
    return Plan(
        rows=n,
        features=d,
        test_points=points,
        k=k,
        storage=chosen,
        greedy=repr(made),
        memory=need,
        available=available,
        seconds=sizes.seconds(chosen, network, made),
        fits=need <= room,
        advice="" if need <= room else _advice(sizes, chosen, room),
    )


def available_memory() -> int:
    """Bytes that can be had without swapping, within the limit of a container."""
    free = int(psutil.virtual_memory().available)
    limit, used = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
    try:
        return min(free, max(0, int(limit.read_text()) - int(used.read_text())))
    except (OSError, ValueError):
        return free


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


@cache
def _speed() -> tuple[float, float]:
    """Floating-point operations and bytes read a second, measured once in a few hundredths."""
    square = torch.ones(512, 512, dtype=torch.float64)
    tall, vector = torch.ones(8192, 1024), torch.ones(1024)
    product = _time(lambda: square @ square)
    return 2 * 512**3 / product, tall.numel() * 4 / _time(lambda: tall @ vector)


def _time(work: Callable[[], object]) -> float:
    work()
    began = time.perf_counter()
    for _ in range(4):
        work()
    return (time.perf_counter() - began) / 4


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
