"""Everything that is asked of a selection, resolved and checked once, when it is made."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, prod
from pathlib import Path

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from evgp._checks import (
    bytes_of,
    flag,
    instance,
    integer,
    noise_of,
    one_of,
    path_of,
    seed_of,
    shown,
)
from evgp._errors import NetworkError, PoolError
from evgp._executor import Executor, Here, Progress, silent
from evgp._progress import check_progress
from evgp._typing import ArrayLike
from evgp.criteria import Criterion
from evgp.datasets import Samples, Streamed, open_pool
from evgp.greedy import Greedy
from evgp.kernels import NTK, EmpiricalNTK, Features, Kernel, Source, checked, kernel_named
from evgp.nets import Buildable, Network, mlp, network_named, sized
from evgp.selection import checks
from evgp.selection.names import (
    METHODS,
    STORAGES,
    criterion_named,
    features_of,
    greedy_of,
    thinned_to,
)
from evgp.selection.run import most_picks
from evgp.selection.shards import SHARD, Held

Place = str | Path | Streamed
Given = ArrayLike | Samples | Place | tuple[int, ...]


@dataclass(frozen=True)
class Shape:
    """A pool of which only the size is known, to plan for."""

    rows: int
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        integer(self.rows, "rows", 1)
        for axis in self.shape or (0,):
            integer(axis, "features", 1)

    def __len__(self) -> int:
        return self.rows


Points = Held | Streamed | Shape


@dataclass(frozen=True)
class Sizes:
    """How many rows, test points, labelled points and picks there are, and how wide a row is.

    `apart` are the test points that are not the candidates themselves: none where one matrix
    serves both.
    """

    rows: int
    shape: tuple[int, ...]
    k: int
    tests: int
    labelled: int
    candidates: int
    apart: int
    width: int = 0
    inputs: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", prod(self.shape))
        # Bytes of the points, as given and scaled.
        object.__setattr__(self, "inputs", 8 * self.width * (2 * self.rows + self.apart))


@dataclass(frozen=True, eq=False, kw_only=True)
class Request:
    """Which rows to choose from, what for, and how: names are objects, and all fits together.

    `kernel` is None where `features` are given as an object. `test` are rows of the pool in place
    of `x_test`. `candidates` is None where every row without a label may be picked. `search` is
    "auto" where the plan decides. `given` is what the record of a selection repeats as it was
    asked.
    """

    x: Points
    k: int
    criterion: Criterion
    kernel: Kernel | None = None
    network: str = ""
    x_test: Points | None = None
    x_labelled: Points | None = None
    test: Int[Tensor, " m"] | None = None
    test_weights: Float[Tensor, " m"] | None = None
    labelled: Int[Tensor, " l"] = field(default_factory=lambda: torch.empty(0, dtype=torch.long))
    candidates: Int[Tensor, " c"] | None = None
    costs: Float[Tensor, " n"] | None = None
    budget: float = inf
    search: Greedy | str = "auto"
    features: str | Features | None = None
    noise: float = 1e-6
    scaled: bool = True
    storage: str = "auto"
    thin: int | None = None
    method: str = "auto"
    memory: int | None = None
    executor: Executor | None = None
    cache: Path | None = None
    seed: int = 0
    progress: Progress | bool | None = None
    shard: int = field(default_factory=lambda: SHARD)
    given: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        x: Given,
        k: int | None = None,
        *,
        budget: float | None = None,
        costs: ArrayLike | None = None,
        x_test: Given | None = None,
        test_weights: ArrayLike | None = None,
        labelled: ArrayLike | None = None,
        x_labelled: Given | None = None,
        candidates: ArrayLike | None = None,
        network: Network | Source | str = mlp(),
        kernel: Kernel | str | None = None,
        criterion: str | Criterion = "ev",
        greedy: str | Greedy = "auto",
        noise: float = 1e-6,
        standardise: bool = True,
        storage: str = "auto",
        thin: int | None = None,
        features: str | Features | None = None,
        method: str = "auto",
        memory: int | str | None = None,
        executor: Executor | None = None,
        cache: str | Path | None = None,
        seed: int = 0,
        progress: Progress | bool | None = None,
    ) -> "Request":
        """The request that these words describe; `evgp.pick` says what each of them means."""
        rule = criterion_named(criterion)
        network = network_named(network) if isinstance(network, str) else network
        prior = kernel_of(network, seed_of(seed), kernel)
        features = features_of(features)
        raw = isinstance(features, str) and features == "raw"
        scaled = flag(standardise, "standardise") and not raw
        points = _points(x, "x", prior, scaled=scaled)
        given, outside = (
            None if one is None else _points(one, name, prior, like=points)
            for one, name in ((x_test, "x_test"), (x_labelled, "x_labelled"))
        )
        n, tests = len(points), points if given is None else given
        if test_weights is not None and isinstance(points, Streamed):
            raise PoolError("expected no test_weights with files; repeat test points instead")
        known = checks.rows_of(labelled, "labelled", n)
        some = None if candidates is None else checks.free_rows(candidates, known, n)
        if some is None and len(known) == n:
            checks.free_rows(None, known, n)  # refuses, as there is nothing to pick
        prices, money = checks.money(costs, budget, n)
        offered = prices
        if prices is not None and (some is not None or len(known)):
            offered = prices[checks.free_rows(None, known, n) if some is None else some]
        free = n - len(known) if some is None else len(some)
        return cls(
            x=points,
            k=most_picks(k, free, offered, money),
            kernel=prior,
            network=described(network if kernel is None else prior),
            criterion=rule,
            x_test=given,
            x_labelled=outside,
            test_weights=checks.test_weights(test_weights, rule, len(tests)),
            labelled=known,
            candidates=some,
            costs=prices,
            budget=money,
            search=greedy_of(greedy),
            features=features,
            noise=noise_of(noise),
            scaled=scaled and not (isinstance(points, Held) and not points.x.is_floating_point()),
            storage=one_of(storage, "storage", STORAGES),
            thin=thinned_to(thin, rule),
            method=one_of(method, "method", METHODS),
            memory=None if memory is None else bytes_of(memory),
            executor=None if executor is None else _executor(executor),
            cache=None if cache is None else path_of(cache, "cache"),
            seed=seed_of(seed),
            progress=check_progress(progress),
            given={
                "k": None if k is None else int(k),
                "budget": budget,
                "standardise": bool(standardise),
            },
        )

    def __post_init__(self) -> None:
        if self.executor is not None and self.method not in ("auto", "sharded"):
            raise PoolError(
                f"expected method='sharded' with an executor, got {self.method!r}; leave it out"
            )
        if self.method == "dense" and self.features is not None:
            raise PoolError(f"expected no features with method='dense', got {self.features!r}")

    @cached_property
    def sizes(self) -> "Sizes":
        """The numbers that the cost of a run depends on."""
        points = self.x if self.x_test is None else self.x_test
        tests = len(points if self.test is None else self.test)
        tests = tests if self.thin is None else min(tests, self.thin)
        labelled = len(self.labelled) + (0 if self.x_labelled is None else len(self.x_labelled))
        n = len(self.x)
        own = self.x_test is None and self.test is None and tests == n and labelled == 0
        return Sizes(
            rows=n,
            # Of a table in files, the widest that its words may make it.
            shape=(self.x.widest,) if isinstance(self.x, Streamed) else self.x.shape,
            k=self.k,
            tests=tests,
            labelled=labelled,
            candidates=n - len(self.labelled) if self.candidates is None else len(self.candidates),
            apart=0 if own else tests,
        )

    def rows(self) -> Int[Tensor, " c"]:
        """The rows that may be picked."""
        if self.candidates is not None:
            return self.candidates
        return checks.free_rows(None, self.labelled, len(self.x))

    def report(self, stage: str, done: int, total: int) -> None:
        """Say how far the run is, to whoever listens."""
        (self.progress if callable(self.progress) else silent)(stage, done, total)

    def place(self) -> Executor:
        """Where large runs work."""
        return Here() if self.executor is None else self.executor


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
            f"makes one; got {shown(network)}"
        )
    return NTK(network) if isinstance(network, Network) else EmpiricalNTK(network, seed=seed)


def _executor(executor: object) -> Executor:
    return instance(executor, "executor", Executor, "evgp.integrations.dask.executor(client)")


def described(network: object) -> str:
    """Short, also for a torch module of many lines."""
    if isinstance(network, torch.nn.Module):
        sized(network)
        count = sum(param.numel() for param in network.parameters())
        return f"{type(network).__name__} with {count:,} parameters"
    return repr(network)


def _points(
    x: Given, name: str, kernel: Kernel, like: Points | None = None, *, scaled: bool = True
) -> Points:
    """An array in memory, a pool in files, or a shape."""
    in_files = isinstance(x, str | Path | Streamed)
    if like is not None and in_files != isinstance(like, Streamed):
        got = "files" if in_files else type(x).__name__
        raise PoolError(
            f"expected {name} as {'an array' if in_files else 'a path'}, as x is one; got {got}"
        )
    if isinstance(x, Streamed):
        return x
    if isinstance(x, str | Path):
        return open_pool(x, standardise=scaled)
    if isinstance(x, tuple) and len(x) > 1 and all(isinstance(axis, int) for axis in x):
        return Shape(x[0], x[1:])
    whole_numbers = getattr(kernel, "looks_up", None)
    other = like.x if isinstance(like, Held) else None
    points: Shaped[Tensor, " n *d"] = checks.inputs(
        x,
        name,
        other,
        indices=whole_numbers is not None and (other is None or not other.is_floating_point()),
    )
    if whole_numbers and other is None and not points.is_floating_point():
        points = points if whole_numbers(tuple(points.shape[1:])) else points.double()
    return Held(points)
