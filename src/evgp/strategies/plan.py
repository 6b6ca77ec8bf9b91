"""What a run will take, before it starts: memory, time, and what it would choose."""

import re
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import torch
from torch import Tensor

from evgp._errors import MemoryPlanError, NetworkError, PoolError
from evgp._memory import available_memory
from evgp._repr import html_card
from evgp._typing import ArrayLike
from evgp.criteria import Criterion, ExpectedVariance, Linearised
from evgp.greedy import Greedy
from evgp.kernels import NTK, EmpiricalNTK, Kernel, Source, checked, kernel_named
from evgp.nets import Buildable, Network, mlp, network_named
from evgp.strategies.checks import rows_of
from evgp.strategies.names import choose_greedy, criterion_named, thinned_to
from evgp.strategies.reduce import P, width_of
from evgp.strategies.sizes import Sizes

# Of the memory that is free, how much a run may plan to use.
_SHARE = 0.8
METHODS = ("auto", "dense", "features", "sharded")


@dataclass(frozen=True)
class Plan:
    """What a run will take on this machine, and what it would choose."""

    rows: int
    features: int
    test_points: int
    k: int
    method: str
    kind: str
    storage: str
    greedy: str
    memory: int
    available: int
    seconds: float
    fits: bool
    advice: str
    disk: int = 0
    scratch: bool = False
    room: int = 0

    def __str__(self) -> str:
        verdict = "fits" if self.fits else "does not fit"
        how = f"{self.method} ({self.kind})" if self.kind else self.method
        disk = f", {_size(self.disk)} on the disk" if self.disk else ""
        text = (
            f"{self.rows:,} rows x {self.features:,} features, {self.test_points:,} test points, "
            f"{self.k:,} picks: {how}, {self.greedy}, {self.storage} storage, about "
            f"{_size(self.memory)} "
            f"of memory ({verdict} in the {_size(self.available)} available){disk} and about "
            f"{_duration(self.seconds)}."
        )
        return f"{text} {self.advice[0].upper()}{self.advice[1:]}." if self.advice else text

    def _repr_html_(self) -> str:
        lines = {
            "pool": f"{self.rows:,} rows x {self.features:,} features",
            "test points": f"{self.test_points:,}",
            "picks": f"{self.k:,}",
            "method": f"{self.method} ({self.kind})" if self.kind else self.method,
            "search": self.greedy,
            "storage": self.storage,
            "memory": f"about {_size(self.memory)} of {_size(self.available)} available",
            "disk": _size(self.disk) if self.disk else "none",
            "time": f"about {_duration(self.seconds)}",
        }
        title = "This run fits in memory" if self.fits else "This run does not fit in memory"
        advice = [f"{self.advice[0].upper()}{self.advice[1:]}."] if self.advice else []
        return html_card(title, {"plan": list(lines), "": list(lines.values())}, advice)


def plan(
    n: int,
    d: int | tuple[int, ...],
    k: int,
    *,
    m: int | None = None,
    labelled: int | ArrayLike = 0,
    network: Network | Source | str = mlp(),
    kernel: Kernel | str | None = None,
    criterion: str | Criterion = "ev",
    greedy: str | Greedy = "auto",
    storage: str = "auto",
    thin: int | None = None,
    features: str | None = None,
    method: str = "auto",
    memory: int | str | None = None,
    held: bool = True,
) -> Plan:
    """Memory and time for k picks of n rows with d features, on this machine.

    `d` is a number, or the shape of a sample, such as (3, 32, 32). `m` is the number of test points
    where they are not the pool; `thin` keeps that many of them. `labelled` is the number of
    labelled rows, or these rows themselves, such as an earlier selection. A network with a finite
    reading only, or an `EmpiricalNTK` as `kernel`, is tried on a few samples to see what it takes.
    `features` ("raw", "nystrom-512", "sketch-512") take the place of the matrix of pool and test
    points; by default they do so only where that matrix would not fit. `method` is "dense" (the
    matrix), "features" (in memory) or "sharded" (features on the disk); "auto" takes the first of
    them that fits in `memory`, such as "2GB", by default most of what is free. Without `held` the
    inputs stay in their files.

    >>> plan(1000, 8, 10).fits
    True
    """
    shape = d if isinstance(d, tuple) else (d,)
    for name, value in (("n", n), ("d", min(shape, default=0)), ("k", k)):
        if value < 1:
            raise PoolError(f"expected {name} >= 1, got {value}")
    if storage not in ("float64", "float32", "auto"):
        raise PoolError(f"expected storage among float64, float32, auto; got {storage!r}")
    if not isinstance(labelled, int | np.integer):
        labelled = len(rows_of(labelled, "labelled", n))
    rule = criterion_named(criterion)
    thin = thinned_to(thin, rule)
    points = n if m is None else m
    points = points if thin is None else min(points, thin)
    own = m is None and points == n and labelled == 0
    used = kernel_of(network_of(network), kernel=kernel)
    table = None
    if isinstance(used, EmpiricalNTK):
        table = used.cost(_samples(used, shape), n + labelled + (0 if m is None else points))
    sizes = Sizes(
        n, prod(shape), k, points, labelled, rule, own, table, thinned=thin is not None, held=held
    )
    available = available_memory()
    room = _SHARE * available if memory is None else float(bytes_of(memory))
    finite = isinstance(used, EmpiricalNTK)
    way, sizes = _way(sizes, method, features, finite=finite, room=room, storage=storage)
    chosen = "float32" if sizes.sharded else storage
    if chosen == "auto":
        chosen = "float64" if sizes.memory("float64") <= room else "float32"
    need = sizes.memory(chosen)
    made = choose_greedy(greedy, n - labelled, k, rule, sharded=sizes.sharded)
    return Plan(
        rows=n,
        features=prod(shape),
        test_points=points,
        k=k,
        method="sharded" if sizes.sharded else "dense" if sizes.p is None else "features",
        kind=way,
        storage=chosen,
        greedy=repr(made),
        memory=need,
        available=available if memory is None else int(room),
        seconds=sizes.seconds(chosen, _layers(used), made),
        fits=need <= room,
        advice="" if need <= room else _advice(sizes, chosen, room),
        disk=sizes.disk(),
        scratch=sizes.scratch,
        room=int(room),
    )


def _way(
    sizes: Sizes, method: str, features: str | None, *, finite: bool, room: float, storage: str
) -> tuple[str, Sizes]:
    """The first way that fits: the features that it uses, and its sizes."""
    if method not in METHODS:
        raise PoolError(f"expected a method among {', '.join(METHODS)}; got {method!r}")
    if method == "dense" and features is not None:
        raise PoolError(f"expected no features with method='dense', got {features!r}")
    kind = features or f"{'sketch' if finite else 'nystrom'}-{P}"
    some = replace(sizes, p=width_of(kind) or sizes.d, table=None)
    parts = replace(some, sharded=True)
    parts = replace(parts, scratch=parts.memory("float32") > room)
    ways = {"dense": sizes, "features": some, "sharded": parts}
    able = isinstance(sizes.criterion, ExpectedVariance | Linearised)
    if method == "sharded" and not able:
        raise PoolError(
            "expected the expected variance as criterion for a sharded run, got "
            f"{sizes.criterion!r}, which needs the test points one by one"
        )
    if method == "sharded" and sizes.thinned:
        raise PoolError(
            "expected no thin for a sharded run, where any number of test points are one matrix; "
            "leave it out"
        )
    if method != "auto":
        names = [method]
    elif features is not None:
        names = ["features", "sharded"]
    elif able and not sizes.thinned and (some.p or 0) < sizes.n:
        names = ["dense", "features", "sharded"]
    else:
        names = ["dense"]
    for name in names:
        # A matrix that would fit in float32 is advised, not replaced.
        least = "float32" if storage == "auto" or name != "features" else storage
        if ways[name].memory(least) <= room:
            break
    else:
        # Nothing fits: advice is given on what would take least.
        name = min(names, key=lambda one: ways[one].memory("float32"))
    return ("" if name == "dense" else kind), ways[name]


def bytes_of(text: int | str) -> int:
    """A number of bytes, as people write it.

    >>> bytes_of("2GB"), bytes_of("512 MiB"), bytes_of(1000)
    (2000000000, 536870912, 1000)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?b?)\s*", str(text).lower())
    if found is None or float(found[1]) <= 0:
        raise PoolError(f"expected an amount of memory such as 2GB or 500MB, got {text!r}")
    base, power = (1024 if "i" in found[2] else 1000), "kmgt".find(found[2][:1] or "b") + 1
    return int(float(found[1]) * base ** max(0, power))


def network_of(network: Network | Source | str) -> Network | Source:
    """The network that is given or named.

    >>> network_of("mlp")
    Network(depth=2, width=512, activation=relu, w_std=1, b_std=0.1)
    """
    return network_named(network) if isinstance(network, str) else network


def kernel_of(
    network: Network | Source, seed: int = 0, kernel: Kernel | str | None = None
) -> Kernel:
    """The kernel that is given or named, else that of a network: analytic, or else empirical.

    >>> kernel_of(mlp())
    NTK(network=Network(depth=2, width=512, activation=relu, w_std=1, b_std=0.1), storage=None)
    """
    if isinstance(kernel, str):
        return checked(kernel_named(kernel, network))
    if kernel is not None:
        return checked(kernel)
    if not (callable(network) or isinstance(network, Buildable)):
        raise NetworkError(
            f"expected a network such as evgp.mlp(), a name, a torch module or a function that "
            f"makes one; got {network!r}"
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
            f"expected a run within {_size(made.room)} of memory, got {_what(made)}, which takes "
            f"{_size(made.memory)}; {made.advice}"
        )


def _what(made: Plan) -> str:
    if made.method == "dense":
        return f"{made.rows:,} rows x {made.test_points:,} test points in {made.storage}"
    where = "on the disk" if made.method == "sharded" else f"in {made.storage}"
    return f"{made.rows:,} rows of {made.features:,} columns with {made.kind} features {where}"


def _advice(sizes: Sizes, storage: str, room: float) -> str:
    if room < sizes.memory(storage) <= _SHARE * available_memory():
        return f"this machine has enough for it, so allow memory='{_size(sizes.memory(storage))}'"
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
