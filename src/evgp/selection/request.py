"""Everything that is asked of a selection, resolved and checked once, when it is made."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, prod
from pathlib import Path
from typing import Any, TypeGuard, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor

from evgp._checks import (
    SEEDS,
    bytes_of,
    can,
    flag,
    instance,
    integer,
    keep,
    noise_of,
    one_of,
    path_of,
    seed_of,
    shown,
)
from evgp._errors import DataWarning, NetworkError, PoolError
from evgp._executor import Executor, Here, Progress, silent
from evgp._progress import check_progress
from evgp._typing import ArrayLike
from evgp.criteria import Criterion
from evgp.datasets import PoolData, ReadOptions, Samples, Streamed, read_with
from evgp.kernels import NTK, EmpiricalNTK, Features, Kernel, Source, checked, kernel_named
from evgp.nets import Buildable, Finite, Network, mlp, network_named, sized
from evgp.search import Greedy
from evgp.selection import checks
from evgp.selection.checks import (
    METHODS,
    STORAGES,
    criterion_named,
    features_of,
    greedy_of,
    thinned_to,
)
from evgp.selection.run import most_picks
from evgp.selection.shards import SHARD, Held

# What points can be given as: a frame is anything with named columns.
Frame = Any
Given = ArrayLike | Samples | str | Path | Streamed | PoolData | tuple[int, ...] | Frame


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
    asked, and `data` the pool as it was read, to name and show its rows.
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
    storage: str = "auto"
    thin: int | None = None
    method: str = "auto"
    memory: int | None = None
    executor: Executor | None = None
    cache: str | Path | None = None
    seed: int = 0
    progress: Progress | bool | None = None
    shard: int = field(default_factory=lambda: SHARD)
    given: Mapping[str, object] = field(default_factory=dict)
    data: PoolData | None = None

    @classmethod
    def of(
        cls,
        x: Given,
        k: int | None = None,
        *,
        budget: float | None = None,
        costs: ArrayLike | str | None = None,
        x_test: Given | None = None,
        test_weights: ArrayLike | None = None,
        labelled: ArrayLike | str | Path | None = None,
        x_labelled: Given | None = None,
        candidates: ArrayLike | None = None,
        id: str | None = None,
        drop: str | Sequence[str] = (),
        impute: bool = False,
        max_categories: int = 50,
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
        seed: int | None = None,
        random_state: int | None = None,
        progress: Progress | bool | None = None,
    ) -> "Request":
        """The request that these words describe; `evgp.pick` says what each of them means."""
        rule = criterion_named(criterion)
        network = network_named(network) if isinstance(network, str) else network
        seed = either_seed(seed, random_state)
        prior, features = kernel_of(network, seed, kernel), features_of(features)
        how = ReadOptions(
            id=id, drop=drop, costs=costs if isinstance(costs, str) else None, impute=impute,
            max_categories=max_categories, fixed=not takes_any_width(prior, features),
            standardise=flag(standardise, "standardise") and features != "raw",
            channels_first=isinstance(network, Finite), looks_up=getattr(prior, "looks_up", None),
        )  # fmt: skip
        room = None if memory is None else bytes_of(memory)
        data = _read(x, how, one_of(method, "method", METHODS), executor, room)
        points, tests, outside, rows = _rows(data, x, x_test, x_labelled, labelled)
        known = checks.rows_of(rows, "labelled", n := len(points))
        some = None if candidates is None else checks.free_rows(candidates, known, n)
        costs = data.costs if data is not None and how.costs is not None else costs
        prices, money = checks.money(costs, budget, n)
        weights = _weights(test_weights, rule, points, tests)
        return cls(
            x=points, k=_most(k, known, some, (prices, money), n), kernel=prior, criterion=rule,
            network=described(network if kernel is None else prior), x_test=tests,
            x_labelled=outside, test_weights=weights, labelled=known, candidates=some,
            costs=prices, budget=money, search=greedy_of(greedy), features=features, noise=noise,
            storage=storage, thin=thin, method=method, memory=room, executor=executor,
            seed=seed, progress=progress, data=data, cache=cache,
            given={"k": k and int(k), "budget": budget, "standardise": bool(standardise)},
        )  # fmt: skip

    def __post_init__(self) -> None:
        keep(
            self,
            noise=noise_of(self.noise),
            storage=one_of(self.storage, "storage", STORAGES),
            thin=thinned_to(self.thin, self.criterion),
            method=one_of(self.method, "method", METHODS),
            executor=None if self.executor is None else _executor(self.executor),
            cache=None if self.cache is None else path_of(self.cache, "cache"),
            seed=seed_of(self.seed),
            progress=check_progress(self.progress),
        )
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
            shape=self.x.shape if self.data is None else self.data.shape,
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


def either_seed(seed: int | None, random_state: int | None) -> int:
    """The seed, by either of its names; 0 where neither is given.

    >>> either_seed(None, 7), either_seed(7, 7), either_seed(None, None)
    (7, 7, 0)
    """
    found = 0 if seed is None else seed_of(seed)
    if random_state is None:
        return found
    other = integer(random_state, "random_state", 0, SEEDS - 1)
    if seed is not None and found != other:
        raise PoolError(
            f"expected one seed, got seed={found} and random_state={other}, which is another word "
            "for it; leave one of them out"
        )
    return other


def _executor(executor: object) -> Executor:
    return instance(executor, "executor", Executor, "evgp.integrations.dask.executor(client)")


def described(network: object) -> str:
    """Short, also for a torch module of many lines."""
    if isinstance(network, torch.nn.Module):
        sized(network)
        count = sum(param.numel() for param in network.parameters())
        return f"{type(network).__name__} with {count:,} parameters"
    return repr(network)


def is_shape(x: object) -> TypeGuard[tuple[int, ...]]:
    """Whether this is the shape of points, in place of the points."""
    return isinstance(x, tuple) and len(x) > 1 and all(isinstance(axis, int) for axis in x)


def _shape(x: Any) -> Shape:
    return Shape(x[0], x[1:])


def takes_any_width(kernel: Kernel, features: object) -> bool:
    """Whether columns that say nothing may be left out, as no part expects a number of them."""
    return can(kernel, "any_width") and (features is None or isinstance(features, str))


def _read(
    x: Given, how: ReadOptions, method: str, executor: object, memory: int | None
) -> PoolData | None:
    """The pool, or None for a shape; what looks odd is a warning, unless it was read before."""
    if is_shape(x):
        return None
    in_files = method == "sharded" or executor is not None
    data = read_with(x, how, in_files=in_files, memory=memory)
    if data is not x and (data.features or data.pictures is not None):
        for note in data.notes:
            warnings.warn(note, DataWarning, stacklevel=4)
    return data


def _rows(
    data: PoolData | None, x: Given, x_test: Given | None, x_labelled: Given | None, labelled: Any
) -> tuple[Points, Points | None, Points | None, Any]:
    """Points of the pool, of the test, labelled outside the pool, and rows of it with a label."""
    points = _shape(x) if data is None else _points(data.x)
    tests, outside = (
        None if one is None
        else _shape(one) if is_shape(one)
        else _points(_alongside(data, name).like(one, name))
        for one, name in ((x_test, "x_test"), (x_labelled, "x_labelled"))
    )  # fmt: skip
    if not isinstance(labelled, str | Path):
        return points, tests, outside, labelled
    found = _alongside(data, "labelled").labelled(labelled)
    warnings.warn(found.note, DataWarning, stacklevel=4)
    if found.x is None:
        return points, tests, outside, found.rows
    if outside is not None:
        raise PoolError(
            f"expected x_labelled or rows from outside the pool in {labelled}, got both; give one "
            "of them"
        )
    return points, tests, _points(found.x), found.rows


def _alongside(data: PoolData | None, name: str) -> PoolData:
    if data is None:
        raise PoolError(f"expected {name} as a shape, as x is one; got something else")
    return data


def _points(x: Any) -> Held | Streamed:
    return cast(Streamed, x) if can(x, "in_files") else Held(torch.as_tensor(x))


def _weights(
    given: ArrayLike | None, rule: Criterion, points: Points, tests: Points | None
) -> Float[Tensor, " m"] | None:
    if given is not None and can(points, "in_files"):
        raise PoolError("expected no test_weights with files; repeat test points instead")
    return checks.test_weights(given, rule, len(points if tests is None else tests))


def _most(
    k: int | None,
    known: Int[Tensor, " l"],
    some: Int[Tensor, " c"] | None,
    money: tuple[Float[Tensor, " n"] | None, float],
    n: int,
) -> int:
    """The number of picks to aim for, of the rows that may be picked."""
    prices, budget = money
    if some is None and (prices is not None or len(known) == n):
        some = checks.free_rows(None, known, n)  # refuses where there is nothing to pick
    count = n - len(known) if some is None else len(some)
    return most_picks(k, count, None if prices is None else prices[some], budget)
