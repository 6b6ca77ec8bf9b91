"""A request for a selection: all arguments of `evgp.pick`, resolved and checked once."""

import warnings
from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, fields
from functools import cached_property
from hashlib import blake2b
from math import inf, prod
from pathlib import Path
from typing import Any, ClassVar, TypeGuard, cast
from weakref import ref

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
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
    number,
    numbers,
    one_of,
    path_of,
    recorded,
    seed_of,
    shown,
    unequal,
)
from evgp._defaults import MAX_CATEGORIES, NOISE
from evgp._executor import Executor, Here, Progress, silent
from evgp._linalg import BLOCK
from evgp._progress import check_progress
from evgp._reading import reading_within
from evgp._typing import ArrayLike
from evgp.criteria import Criterion, criterion_named
from evgp.datasets import Labelled, PoolData, ReadOptions, Samples, Streamed, read_with
from evgp.datasets.scaling import scale_of
from evgp.errors import (
    BadArgument,
    DataWarning,
    NetworkError,
    PoolError,
    RowsOutOfRange,
    WrongCount,
    WrongShape,
)
from evgp.kernels import (
    NTK,
    OF_NETWORKS,
    EmpiricalNTK,
    Features,
    Kernel,
    Source,
    checked,
    kernel_named,
)
from evgp.nets import (
    Buildable,
    Finite,
    Network,
    WithWeights,
    check_not_lazy,
    mlp,
    network_named,
)
from evgp.nets.named import Named
from evgp.search import Greedy, greedy_of
from evgp.selection.features import features_of
from evgp.selection.shards import SHARD

METHODS = ("auto", "dense", "features", "sharded")
STORAGES = ("float64", "float32", "auto")
NO_ROWS = torch.empty(0, dtype=torch.int64)
# Limit of costs and budgets, so that sums of costs and gains per cost stay finite.
_MONEY = 1e100
# Types that points can be given as. A frame is anything with named columns.
Frame = Any
Given = ArrayLike | Samples | str | Path | Streamed | PoolData | tuple[int, ...] | Frame


@dataclass(frozen=True)
class Shape:
    """The shape of a pool whose points are not available, for planning."""

    rows: int
    shape: tuple[int, ...]
    costs: ClassVar[None] = None
    without_text: ClassVar[tuple[int, ...]] = ()
    size_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        integer(self.rows, "rows", 1)
        for axis in self.shape or (0,):
            integer(axis, "features", 1)

    def __len__(self) -> int:
        return self.rows

    def like(self, other: object, name: str) -> "Shape":
        """Return the shape of other points, such as test points."""
        if not is_shape(other):
            raise BadArgument.of(PoolError)(name, "as a shape, like x", shown(other))
        return Shape(other[0], other[1:])

    def labelled(self, path: str | Path) -> Labelled:
        """Refuse a file of labelled rows, because there is no pool to find them in."""
        raise BadArgument.of(PoolError)(
            "labelled", "as row numbers, because x is a shape", str(path)
        )

    @property
    def x(self) -> "Shape":
        """The shape itself, which stands for the points."""
        return self


@dataclass(frozen=True, eq=False)
class InMemory:
    """Points in memory."""

    x: Shaped[Tensor, " n *d"]
    in_memory: ClassVar[bool] = True

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one point."""
        return tuple(self.x.shape[1:])

    def __len__(self) -> int:
        return len(self.x)

    def blocks(
        self, start: int, stop: int, size: int = BLOCK
    ) -> Iterator[tuple[int, Shaped[np.ndarray, " b *d"]]]:
        """Yield the rows of a range in blocks, each with the number of its first row."""
        for first in range(start, stop, size):
            yield first, self.x[first : min(stop, first + size)].numpy()

    def take(self, rows: Int[np.ndarray, " r"]) -> Shaped[np.ndarray, " r *d"]:
        """Return a few rows, in the given order."""
        return self.x[torch.from_numpy(rows)].numpy()

    def content(self, executor: Executor) -> str:
        """Return a hash of all points."""
        state = blake2b(repr((self.x.shape, self.x.dtype)).encode(), digest_size=16)
        for _, block in self.blocks(0, len(self)):
            state.update(np.ascontiguousarray(block).data)
        return state.hexdigest()


Points = InMemory | Streamed | Shape


@dataclass(frozen=True)
class Sizes:
    """The sizes that the cost of a run depends on.

    `apart` is the number of test points in a matrix of their own: 0 if the test points are the
    candidates themselves.
    """

    rows: int
    shape: tuple[int, ...]
    k: int
    tests: int
    labelled: int
    candidates: int
    apart: int
    width: int
    inputs: int  # bytes of the points, both as given and scaled


@dataclass(frozen=True, eq=False, kw_only=True)
class Request:
    """A checked request: the pool, the test points, the criterion, and how to search.

    Names are resolved to objects. `kernel` may be None if `features` are an object. `test` are rows
    of the pool that replace `x_test`. `candidates` is None if every unlabelled row may be picked.
    `search` is "auto" if the plan decides. `given` holds arguments that a selection records as the
    user gave them, and `data` is the pool as it was read, to name and show its rows. `source` is
    the pool as it was given: its path, or a weak reference, which does not keep it in memory.
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
    labelled: Int[Tensor, " l"] = NO_ROWS
    candidates: Int[Tensor, " c"] | None = None
    costs: Float[Tensor, " n"] | None = None
    budget: float = inf
    search: Greedy | str = "auto"
    final: bool = False
    features: str | Features | None = None
    noise: float = NOISE
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
    data: PoolData | Shape | None = None
    source: Any = None

    @classmethod
    def of(
        cls,
        x: Given,
        k: int | None = None,
        *,
        budget: float | None = None, costs: ArrayLike | str | None = None,
        x_test: Given | None = None, test_weights: ArrayLike | None = None,
        labelled: ArrayLike | str | Path | None = None, x_labelled: Given | None = None,
        candidates: ArrayLike | None = None,
        id: str | None = None, column: str | None = None, drop: str | Sequence[str] = (),
        impute: bool = False, max_categories: int = MAX_CATEGORIES,
        delimiter: str | None = None, decimal: str | None = None, encoding: str | None = None,
        dates: str | None = None, array: str | None = None, image_size: int | None = None,
        network: Network | Source | str = mlp(),
        kernel: Kernel | str | None = None,
        criterion: str | Criterion = "ev",
        greedy: str | Greedy = "auto", final: bool = False,
        noise: float = NOISE,
        scale: str | None = "auto",
        text: str | Sequence[str] = (), embed: object = None,
        storage: str = "auto",
        thin: int | None = None,
        features: str | Features | None = None,
        method: str = "auto",
        memory: int | str | None = None,
        executor: Executor | None = None, cache: str | Path | None = None,
        seed: int | None = None, random_state: int | None = None,
        progress: Progress | bool | None = None,
        standardise: bool | None = None,
    ) -> "Request":  # fmt: skip
        """Return the request that these arguments describe.

        Parameters
        ----------
        x : array, frame, dataset, path or PoolData
            The pool, one point per row: an array or tensor; a pandas or polars frame or an Arrow
            table; a torch `Dataset` or `DataLoader`, or a Hugging Face dataset, whose labels are
            not read; the path of a file (CSV, TSV, Parquet, Arrow, npy, npz), of a folder of such
            files of one kind, or of images; or what `evgp.read_pool` returned. A folder of Parquet,
            Arrow or npy files, a file too large for memory, and `evgp.open_pool(...)` stay on the
            disk.
        k : int, optional
            Number of rows to pick. Not needed with `costs` and a `budget`.
        budget : float, optional
            Maximum total cost of the picks; needs `costs`.
        costs : array or str, optional
            Cost of labelling each row, or the name of the column with the costs; needs `budget`.
        x_test : like x, optional
            The points at which predictions must be good; the pool itself by default.
        test_weights : array, optional
            Weight of each test point.
        labelled : array of int, Selection or path, optional
            Rows that already have a label, or a file that lists them.
        x_labelled : like x, optional
            Labelled points outside the pool.
        candidates : array of int or Selection, optional
            The only rows that may be picked.
        column : str, optional
            The only column to use as features, such as one of embeddings. A single column of lists
            of numbers is found by itself; other columns are then used too.
        id, drop : str, str or list of str
            Columns that are not features: the one with the names of the rows, and those to drop.
        impute : bool, default False
            Fill missing values with the column's mean, or the most frequent value of a category.
        max_categories : int, default 50
            Maximum number of distinct values in a categorical column.
        delimiter, decimal, encoding : str, optional
            The delimiter, the decimal sign ("." or ",") and the encoding of a CSV file; recognised
            by default.
        dates : {"day-first", "month-first"}, optional
            How to read dates such as 3/4/2021 if no cell of the column shows the order.
        array, image_size : str, int
            The array of an npz file, the size images are resized to.
        network : Network, torch module, function or str
            The network that will be trained. An `mlp` (the default) has an exact kernel of infinite
            width. All others use the empirical kernel at initialisation: a torch module, a function
            that returns one, a `cnn`, or a name ("resnet18", the name of a plugin,
            "package.module:name").
        kernel : Kernel or str, optional
            Kernel that replaces the network's kernel: an object, or a name ("nngp", ...).
        criterion : str or Criterion, default "ev"
            What to optimise: "ev" (the mean variance), "median", "p90" or "max" (of the variance),
            "mi" (mutual information), or "cells" (one pick in each of k cells, for about one label
            per class).
        greedy : str or Greedy, default "auto"
            Search algorithm: "exact" (the default for most criteria), "lazy", "stochastic",
            "exchange" or "two-rounds". The picks of "exact" for k begin those for any larger k.
        final : bool, default False
            Exchange picks for better ones until none helps, for exactly k labels. The picks are
            then not the beginning of a longer list.
        noise : float, default 1e-6
            Variance of the noise in a label, as a fraction of the mean prior variance.
        scale : str or None, default "auto"
            How numbers are scaled over the pool: each column to mean 0 and standard deviation 1
            ("columns"); the same with far values pulled in ("smooth"); all columns by one number
            ("common"). With 32 or more columns rows can then be scaled to equal length
            ("smooth-unit", "unit"). "auto" takes one number for all if the columns share a unit, as
            pixels and embeddings do, else "smooth", and equal rows if there are many columns.
            Constant columns are dropped. None, or "none", leaves numbers as they are.
        text : str or list of str
            Columns of text, which are joined and embedded. A single column of free text is found by
            itself.
        embed : str or object, optional
            What turns texts or images into vectors. For text: "tfidf" (the default), the folder of
            a sentence-transformers model, or the name of one that was downloaded before. For
            images: "torchvision:NAME", "timm:NAME" or a torch module, with "@FILE" for the weights.
            For both: "package.module:function", or a function. Vectors are cached by content.
        storage : {"auto", "float64", "float32"}
            Type of the large matrix. "auto" is float32 only if float64 would not fit.
        thin : int, optional
            Keep only this many test points, spread out by k-means++.
        features : str or Features, optional
            Features that replace the pool x test matrix: "nystrom-512" (inducing points of the
            kernel), "sketch-512" (of a torch module's gradients), "raw" (the inputs themselves,
            unscaled, such as embeddings), or an object. By default they are used only if the
            matrix would not fit, or would take minutes and many times as long, with a warning.
        method : {"auto", "dense", "features", "sharded"}
            The exact matrix, features in memory, or features on disk, read a block at a time.
            "auto" is the first that fits, or features where the matrix would take minutes.
        memory : int or str, optional
            Maximum memory of the run, such as "2GB"; most of the free memory by default.
        executor : Executor, optional
            Where a sharded run computes, such as `evgp.integrations.dask.executor(client)`.
        cache : path, optional
            Folder in which a sharded run keeps its features for the next run. Without it they are
            removed once the picks are made. A run that was interrupted resumes where it stopped.
        seed, random_state : int, optional
            Random seed; 0 by default. The same seed gives the same picks. Give one of the two.
        progress : bool or function, optional
            True shows a progress bar in a terminal or notebook; a function is called with the name
            of the stage, the number of steps done, and their total.
        standardise : bool, optional
            The former name: True is scale="columns", False is scale=None.
        """
        if random_state is not None:
            seed = either_seed(seed, random_state)
        seed = 0 if seed is None else seed_of(seed)
        raw = isinstance(features, str) and features == "raw"
        network = network_named(network) if isinstance(network, str) else network
        prior = kernel_of(network, seed, kernel)
        in_shards = one_of(method, "method", METHODS) == "sharded" or executor is not None
        how = ReadOptions(
            id=id, column=column, drop=drop, impute=impute, max_categories=max_categories,
            delimiter=delimiter, decimal=decimal, encoding=encoding, dates=dates, array=array,
            text=text, embed=embed, image_size=image_size,
            costs=costs if isinstance(costs, str) else None,
            scale=None if raw else scale_of(scale, standardise),
            **asked_of_inputs(network, prior, features))  # fmt: skip
        with reading_within(room := None if memory is None else bytes_of(memory)):
            others = x_test, x_labelled, labelled
            data, rows, points = _opened(x, how, others, in_shards, room, progress=progress)
        money = data.costs if how.costs else costs, budget
        if candidates is None and data.without_text:
            candidates = np.delete(np.arange(len(data)), data.without_text)
        if test_weights is not None:
            test_weights = _weights_of(test_weights, points["x" if x_test is None else "x_test"])
        return cls(
            **affordable(k, rows, candidates, money, len(points["x"])), search=greedy_of(greedy),
            **points, test_weights=test_weights, cache=cache, features=features, noise=noise,
            given={"k": k and int(k), "budget": budget, "scale": how.scale}, storage=storage,
            network=described(network if kernel is None else prior), data=data, method=method,
            criterion=criterion_named(criterion), executor=executor, progress=progress, memory=room,
            kernel=prior, final=final, thin=thin, seed=seed)  # fmt: skip

    def __post_init__(self) -> None:
        keep(
            self,
            noise=noise_of(self.noise),
            storage=one_of(self.storage, "storage", STORAGES),
            thin=getattr(self.criterion, "test_points", None)
            if self.thin is None
            else integer(self.thin, "thin", 1),
            method=one_of(self.method, "method", METHODS),
            cache=None if self.cache is None else path_of(self.cache, "cache"),
            seed=seed_of(self.seed),
            final=flag(self.final, "final"),
            progress=check_progress(self.progress),
        )
        if self.executor is not None:
            such_as = "evgp.integrations.dask.executor(client)"
            instance(self.executor, "executor", Executor, such_as)
            if self.method not in ("auto", "sharded"):
                raise PoolError(
                    f"expected method='sharded' with an executor, got {self.method!r}; leave it out"
                )
        if self.test_weights is not None and can(self.criterion, "ignores_weights"):
            raise PoolError(
                "mutual information does not support test_weights; use criterion='ev', or repeat "
                "test points"
            )
        if self.features is not None:
            features_of(self.features)
        if self.method == "dense" and self.features is not None:
            raise PoolError(f"expected no features with method='dense', got {self.features!r}")

    @cached_property
    def sizes(self) -> "Sizes":
        """The sizes that the cost of a run depends on."""
        points = self.x if self.x_test is None else self.x_test
        tests = len(points if self.test is None else self.test)
        tests = tests if self.thin is None else min(tests, self.thin)
        labelled = len(self.labelled) + (0 if self.x_labelled is None else len(self.x_labelled))
        n = len(self.x)
        free = n - len(self.labelled) if self.candidates is None else len(self.candidates)
        own = self.x_test is None and self.test is None and tests == free == n and labelled == 0
        apart = 0 if own else tests
        # For a table on disk, an upper bound: each categorical column may become many features.
        shape = (self.x if self.data is None else self.data).shape
        width = prod(shape)
        inputs = 8 * width * (2 * n + apart)
        return Sizes(n, shape, self.k, tests, labelled, free, apart, width, inputs)

    @property
    def pool(self) -> PoolData:
        """The pool as it was read."""
        if not can(self.data, "is_read"):
            raise PoolError("expected a pool that was read, got only a shape")
        return cast(PoolData, self.data)

    def rows(self) -> Int[Tensor, " c"]:
        """Return the rows that may be picked."""
        if self.candidates is not None:
            return self.candidates
        free = torch.ones(len(self.x), dtype=torch.bool)
        free[self.labelled] = False
        return free.nonzero().squeeze(1)

    def report(self, stage: str, done: int, total: int) -> None:
        """Report progress to the user's function, if there is one."""
        if callable(self.progress):
            self.progress(stage, done, total)

    def place(self) -> Executor:
        """Return the executor of sharded runs; this process by default."""
        return Here() if self.executor is None else self.executor


def paper() -> dict[str, Any]:
    """Return the settings of the EV-GP paper, as arguments for `evgp.pick` and `evgp.plan`.

    Hemachandra et al., ICML 2023: inputs standardised by column, the NTK of two hidden layers of
    ReLU units, the mean variance, a greedy search.

    Returns
    -------
    dict
        Arguments by name.

    Examples
    --------
    >>> import evgp
    >>> x = np.random.default_rng(0).normal(size=(30, 3))
    >>> evgp.pick(x, 3, **evgp.paper()).settings["scale"]
    'columns'
    """
    return {
        "network": mlp(2, activation="relu", w_std=1.0, b_std=0.1),
        "criterion": "ev",
        "greedy": "exact",
        "noise": 1e-6,
        "scale": "columns",
    }


def kernel_of(
    network: Network | Source, seed: int = 0, kernel: Kernel | str | None = None
) -> Kernel:
    """Return the given or named kernel, or else the network's kernel: analytic, or empirical.

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


def asked_of_inputs(network: object, kernel: Kernel, features: object) -> dict[str, Any]:
    """Return what a network, its kernel or features require of their inputs, as `ReadOptions`."""
    return {
        "fixed": not (can(kernel, "any_width") and isinstance(features, str | None)),
        "channels_first": isinstance(network, Finite),
        "looks_up": getattr(kernel, "looks_up", None),
    }


_OF_MLP = ("depth", "width", "activation", "w_std", "b_std")
_OF_FINITE = ("weights", "unit", "draws")


@dataclass(frozen=True, kw_only=True)
class Model:
    """A network, or the kernel in its place, in plain values that a file can record.

    >>> Model(depth=1).network_and_kernel()[0]
    Network(depth=1, width=512, activation=relu, w_std=1, b_std=0.1)
    """

    network: str = "mlp"
    depth: int = 2
    width: int = 512
    activation: str = "relu"
    w_std: float = 1.0
    b_std: float = 0.1
    weights: str | Path | None = None
    unit: str = "random"
    draws: int = 1
    kernel: str = "ntk"

    def changed(self) -> dict[str, Any]:
        """Return the values that differ from the defaults."""
        values = {part.name: (getattr(self, part.name), part.default) for part in fields(self)}
        return {name: value for name, (value, usual) in values.items() if value != usual}

    def network_and_kernel(self, seed: int = 0) -> tuple[Named, Kernel | None]:
        """Return the network, and what replaces its NTK, if anything."""
        replaced = self.kernel not in OF_NETWORKS
        if replaced and (args := self._given("network", *_OF_MLP, *_OF_FINITE)):
            raise NetworkError(
                f"kernel={self.kernel!r} takes the place of the network, so leave out {args}"
            )
        network: Named
        if self.network == "mlp":
            network = mlp(self.depth, self.width, self.activation, self.w_std, self.b_std)
        elif args := self._given(*_OF_MLP):
            raise NetworkError(f"expected {args} with network='mlp' only, got {self.network!r}")
        else:
            network = network_named(self.network)
        if isinstance(network, Network) and (args := self._given(*_OF_FINITE)):
            raise NetworkError(
                f"expected {args} with a finite network only; the kernel of an mlp has infinite "
                "width"
            )
        if self.kernel != "ntk":
            return network, kernel_named(self.kernel, network)
        return network, None if isinstance(network, Network) else self._empirical(network, seed)

    def _given(self, *names: str) -> str:
        return ", ".join(f"{name}=" for name in self.changed() if name in names)

    def _empirical(self, network: Named, seed: int) -> Kernel:
        if self.unit not in ("random", "trace") and not self.unit.isdecimal():
            raise NetworkError(f"expected unit= as random, trace or a number, got {self.unit!r}")
        unit = int(self.unit) if self.unit.isdecimal() else self.unit
        if self.weights is not None and self.draws > 1:
            raise NetworkError("expected draws= or weights=, which fix the network; got both")
        source = network if self.weights is None else WithWeights(network, Path(self.weights))
        return EmpiricalNTK(source, unit, self.draws, seed)


def described(network: object) -> str:
    """Describe a network in one line; the repr of a torch module can have many."""
    if isinstance(network, torch.nn.Module):
        check_not_lazy(network)
        count = sum(param.numel() for param in network.parameters())
        return f"{type(network).__name__} with {count:,} parameters"
    return recorded(network)


def either_seed(seed: int | None, random_state: int) -> int:
    """Return the seed that was given by its other name, or by both.

    >>> either_seed(None, 7), either_seed(7, 7)
    (7, 7)
    """
    other = integer(random_state, "random_state", 0, SEEDS - 1)
    if seed is not None and seed_of(seed) != other:
        raise PoolError(
            f"expected one seed, got seed={seed} and random_state={other}; random_state is an "
            "alias of seed, so leave one of them out"
        )
    return other


def is_shape(x: object) -> TypeGuard[tuple[int, ...]]:
    """Whether this is a shape given in place of points."""
    return isinstance(x, tuple) and len(x) > 1 and all(isinstance(axis, int) for axis in x)


def _opened(
    x: Given,
    how: ReadOptions,
    others: tuple[Given | None, Given | None, Any],
    in_files: bool,
    memory: int | None,
    *,
    progress: object,
) -> tuple[PoolData | Shape, Any, dict[str, Any]]:
    """Read the pool, or take its shape; warn about suspicious data, unless it was read before.

    `others` are test points, labelled points outside the pool, and labelled rows. Return the pool,
    the labelled rows, and the fields of a request that hold points, and the path of the pool or a
    weak reference to it.
    """
    data: PoolData | Shape
    if isinstance(x, tuple) and is_shape(x):
        data = Shape(x[0], x[1:])
    else:
        listener = progress if callable(progress) else silent
        data = read_with(x, how, in_files=in_files, memory=memory, progress=listener)
        named = bool(data.features) or data.pictures is not None
        # Constant columns of an array, and rare pixels, need no warning.
        notes = data.notes if named else getattr(data, "doubts", ())
        for note in notes if data is not x else ():
            warnings.warn(note, DataWarning, stacklevel=4)
    x_test, x_labelled, labelled = others
    inputs: dict[str, Any] = {"x": data.x}
    inputs["x_test"] = None if x_test is None else data.like(x_test, "x_test")
    inputs["x_labelled"] = None if x_labelled is None else data.like(x_labelled, "x_labelled")
    if isinstance(labelled, str | Path):
        known = data.labelled(labelled)
        warnings.warn(known.note, DataWarning, stacklevel=4)
        if known.x is not None and x_labelled is not None:
            raise PoolError(
                f"expected x_labelled, or rows from outside the pool in {labelled}; got both; give "
                "one of them"
            )
        labelled = known.rows
        inputs["x_labelled"] = inputs["x_labelled"] if known.x is None else known.x
    for name, points in inputs.items():
        if isinstance(points, np.ndarray | Tensor):
            inputs[name] = InMemory(torch.as_tensor(points))
    try:
        inputs["source"] = x if isinstance(x, str | Path) or can(x, "in_files") else ref(x)
    except TypeError:  # a tuple, a list
        inputs["source"] = None
    return data, labelled, inputs


def affordable(
    k: int | None,
    labelled: ArrayLike | None,
    candidates: ArrayLike | None,
    costs_and_budget: tuple[ArrayLike | None, float | None],
    n: int,
) -> dict[str, Any]:
    """Check k, or the costs and the budget, against n rows of which some are labelled."""
    known, rows = NO_ROWS if labelled is None else rows_of(labelled, "labelled", n), None
    if candidates is not None or len(known) == n:
        rows = _free_rows(candidates, known, n)
    costs, budget = None, inf
    if any(value is not None for value in costs_and_budget):
        costs, budget = _money(*costs_and_budget, n)
    free = n - len(known) if rows is None else len(rows)
    if k is not None:
        most = integer(k, "k", 1, free, why="the rows that may be picked")
    elif costs is not None:
        most = free
    else:
        raise PoolError("expected k, or costs and a budget; got neither")
    if costs is not None:
        prices = costs[_free_rows(None, known, n) if rows is None else rows]
        bought = int((torch.cumsum(prices.sort().values, 0) <= budget * (1 + 1e-12)).sum())
        if bought == 0:
            raise PoolError(
                f"expected a budget that buys at least one item, the cheapest of which costs "
                f"{float(prices.min()):g}; got budget={budget:g}"
            )
        most = min(most, bought)
    limits = {"labelled": known, "candidates": rows, "costs": costs, "budget": budget}
    return {"k": most, **limits}


def rows_of(values: ArrayLike, name: str, n: int) -> Int[Tensor, " l"]:
    """Return row numbers of the pool, sorted and without duplicates."""
    array = _array(values, name)
    if array.ndim == 1 and array.dtype == bool:
        if len(array) != n:
            raise WrongCount.of(PoolError)(f"rows in the mask {name}", n, len(array))
        array = np.flatnonzero(array)
    if array.size == 0:
        return NO_ROWS
    if array.shape == (n,) and n > 2 and set(np.unique(array).tolist()) <= {0, 1}:
        got, advice = f"{n} zeros and ones", "call .astype(bool) for a mask"
        raise BadArgument.of(PoolError)(name, "as row numbers or a mask of booleans", got, advice)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        got = f"shape {array.shape} of {array.dtype}"
        raise BadArgument.of(PoolError)(name, "as a list of row numbers", got)
    wrong = array[(array < 0) | (array >= n)]
    if len(wrong):
        raise RowsOutOfRange(name, n, len(wrong), int(wrong[0]))
    return torch.from_numpy(np.unique(array.astype(np.int64)))


def _array(values: ArrayLike, name: str) -> np.ndarray:
    """Return row numbers or a mask as an array; sets and iterators, without order, are refused."""
    if isinstance(values, Tensor):
        return values.detach().cpu().numpy()
    try:
        array = np.asarray(values)
    except Exception as error:  # a user's object may raise anything
        got = unequal(error)
        raise BadArgument.of(PoolError)(name, "as a list of row numbers", got) from error
    if array.ndim == 0:
        raise BadArgument.of(PoolError)(name, "as a list of row numbers", shown(values))
    return array


def _free_rows(candidates: ArrayLike | None, known: Int[Tensor, " l"], n: int) -> Int[Tensor, " c"]:
    """Return the rows that may be picked: the candidates without the labelled rows."""
    allowed = torch.zeros(n, dtype=torch.bool)
    allowed[rows_of(candidates, "candidates", n) if candidates is not None else slice(None)] = True
    allowed[known] = False
    free = allowed.nonzero().squeeze(1)
    if len(free) == 0:
        raise PoolError(
            f"expected at least one row to pick, got none: {len(known)} of {n} rows are labelled"
            + ("" if candidates is None else f" and only {len(candidates)} are candidates")
        )
    return free


def _money(
    costs: ArrayLike | None, budget: float | None, n: int
) -> tuple[Float[Tensor, " n"], float]:
    """Return the costs and the budget; each needs the other."""
    if budget is not None:
        budget = number(budget, "a budget", 0, _MONEY, above=True)
    if costs is None:
        raise BadArgument.of(PoolError)(
            "costs", "with a budget", "none", "give one price per row, or k"
        )
    if budget is None:
        raise PoolError("expected a budget with costs, got none; say how much may be spent")
    prices = _list_of(costs, "costs")
    if tuple(prices.shape) != (n,):
        each = f"with {n} numbers, one for each row"
        raise WrongShape.of(PoolError)("costs", each, tuple(prices.shape))
    wrong = ~((prices > 0) & torch.isfinite(prices))
    if bool(wrong.any()):
        row = int(wrong.nonzero()[0])
        got = f"{int(wrong.sum())} that are not (first: {float(prices[row]):g} in row {row})"
        raise BadArgument.of(PoolError)("costs", "that are positive and finite", got)
    wrong = (prices < 1 / _MONEY) | (prices > _MONEY)
    if bool(wrong.any()):
        row = int(wrong.nonzero()[0])
        bounds, got = f"from {1 / _MONEY:g} to {_MONEY:g}", f"{float(prices[row]):g} in row {row}"
        raise BadArgument.of(PoolError)("costs", bounds, got, "count in another unit")
    return prices, budget


def _weights_of(values: ArrayLike, points: Sized) -> Float[Tensor, " m"]:
    """Return weights of the test points that sum to one."""
    if can(points, "in_files"):
        raise PoolError("expected no test_weights with files; repeat test points instead")
    m = len(points)
    weights = _list_of(values, "test_weights")
    if tuple(weights.shape) != (m,):
        each = f"with {m} numbers, one for each test point"
        raise WrongShape.of(PoolError)("test_weights", each, tuple(weights.shape))
    if not bool((weights >= 0).all() & torch.isfinite(weights).all()) or float(weights.max()) <= 0:
        raise PoolError("expected finite test_weights >= 0 with at least one above 0")
    weights = weights / weights.max()  # first, so that the sum cannot overflow
    return weights / weights.sum()


def _list_of(values: ArrayLike, name: str) -> Float[Tensor, " n"]:
    """Return a list of numbers as a float64 vector."""
    vector = numbers(values, name)
    if vector.ndim != 1:
        raise BadArgument.of(PoolError)(
            name, "as a list of numbers", f"shape {tuple(vector.shape)}"
        )
    return vector.double()
