"""Shared by all strategies of a comparison: the data, the network, its training, the budget."""

import hashlib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor

from evgp._checks import flag, instance, integer, keep, noise_of, number, one_of, word, words
from evgp._defaults import NOISE
from evgp._reading import opened
from evgp.comparison.learners import NAMES, check_learner
from evgp.comparison.rows import NETWORK
from evgp.datasets import Dataset, load, load_csv, names
from evgp.datasets.scaling import SCALES, scale_of
from evgp.errors import DatasetError, DataWarning, PoolError, UnknownName
from evgp.nets import Buildable, Network, mlp, network_named
from evgp.search import greedy_named
from evgp.strategies import Hybrid, Setting, Strategy, strategy_named
from evgp.strategies.named import warm_start
from evgp.strategies.strategy import learns
from evgp.training import Recipe, paper_recipe

# Options of a table that are passed on to `load_csv` as they are.
_READING = ("decimal", "encoding", "dates", "column", "embed")


@dataclass(frozen=True)
class DatasetSource:
    """A dataset by name, or a table with a column of labels.

    Parameters
    ----------
    source : str
        Name of a dataset, or path of a table.
    label : str, optional
        Column with the labels of a table.
    task : str, optional
        "regression" or "classification".
    pool, test : int, optional
        Number of points to pick from, and to test on.
    id, drop, impute, delimiter, decimal, encoding, column, text, embed, dates : optional
        As in `evgp.read_pool`.

    Examples
    --------
    >>> DatasetSource("kin8nm").name, DatasetSource("house prices.csv", label="price").name
    ('kin8nm', 'house prices')
    """

    source: str
    label: str | None = None
    task: str | None = None
    id: str | None = None
    drop: tuple[str, ...] = ()
    impute: bool = False
    pool: int | None = None
    test: int | None = None
    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    column: str | None = None
    text: tuple[str, ...] = ()
    embed: str | None = None
    dates: str | None = None

    def __post_init__(self) -> None:
        word(self.source, "source", error=DatasetError)
        for name in ("label", "task", "id", "delimiter", *_READING):
            if getattr(self, name) is not None:
                word(getattr(self, name), name, error=DatasetError)
        for name in ("drop", "text"):
            keep(self, **{name: words(getattr(self, name), name, error=DatasetError)})
        flag(self.impute, "impute", error=DatasetError)
        for name, least in (("pool", 2), ("test", 0)):
            if getattr(self, name) is not None:
                count = integer(getattr(self, name), name, least, error=DatasetError)
                keep(self, **{name: count})

    @property
    def name(self) -> str:
        """Name of the dataset in the rows, in which invalid UTF-8 becomes question marks."""
        if self.source in names():
            return self.source
        return Path(self.source).name.split(".")[0].encode("utf-8", "replace").decode()

    def checksum(self) -> str | None:
        """Checksum of the user's table, to detect changes; None for a named dataset."""
        if self.source in names():
            return None
        with opened(self.source) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def load(self, seed: int) -> Dataset:
        """The pool and the test set for one seed."""
        if self.source in names():
            own = ("label", "id", "drop", "impute", "text", *_READING)
            if options := ", ".join(f"{name}=" for name in own if getattr(self, name)):
                raise DatasetError(
                    f"{self.source} is a dataset of the paper and knows its labels; leave out "
                    f"{options}, or give a path such as ./{self.source}.csv"
                )
            return load(self.source, seed=seed, task=self.task, pool=self.pool, test=self.test)
        if self.label is None:
            if not Path(self.source).exists() and not Path(self.source).suffix:
                others = "or a table of your own"
                raise UnknownName.of(DatasetError)("a dataset", self.source, tuple(names()), others)
            raise DatasetError(
                f"{self.source}: expected the name of the column that holds the labels, got none; "
                "pass label="
            )
        data = load_csv(
            self.source,
            self.label,
            task=self.task or "auto",
            seed=seed,
            id=self.id,
            drop=self.drop,
            impute=self.impute,
            delimiter=self.delimiter,
            text=self.text,
            **{name: getattr(self, name) for name in _READING},
            test=0.5 if self.test is None else self.test,
        )
        return data if self.pool is None else _fewer(data, self.pool)

    @property
    def varies(self) -> bool:
        """Whether seeds may differ in their classes or columns."""
        return self.source not in names() or self.pool is not None


@dataclass(frozen=True)
class Protocol:
    """The budget, how it is spent, and how networks are trained on the labels.

    Parameters
    ----------
    budget, batch : int
        Labels in all, and in each round.
    start : int
        Random labels before the first round, the same for all strategies; part of the budget.
    members : int
        Networks of an ensemble.
    network : str
    depth, width : int
        Size of an mlp.
    lr : float, optional
        Learning rate; that of the paper by default.
    steps : int, optional
        Training steps (epochs for classes); those of the paper by default.
    search : str
        Search of EV-GP.
    noise : float
        Noise of EV-GP.
    learners : tuple of str
        Fitted to the labels: "network", "1nn", "linear", "ntk", "trees", "boosting".
    budgets : tuple of int
        For cold starts, in place of `budget` and `batch`: each is picked as one batch.
    scale : str or None
        As in `evgp.pick`.

    Examples
    --------
    >>> Protocol(budget=60, batch=20, start=20).rounds
    2
    >>> Protocol(budgets=(10, 20, 40), learners=("1nn", "linear")).budget
    40
    """

    budget: int = 100
    batch: int = 20
    start: int = 0
    members: int = 10
    network: str = "mlp"
    depth: int = 2
    width: int = 512
    lr: float | None = None
    steps: int | None = None
    search: str = "exact"
    noise: float = NOISE
    learners: tuple[str, ...] = (NETWORK,)
    budgets: tuple[int, ...] = ()
    scale: str | None = "auto"

    def __post_init__(self) -> None:
        learners = [check_learner(name) for name in words(self.learners, "learners")]
        if not learners:
            raise PoolError(f"expected learners, such as {NAMES[1]}, got none")
        keep(self, learners=tuple(name for name in NAMES if name in learners))
        self._check_budgets()
        least = {"budget": 1, "batch": 1, "start": 0, "members": 2, "depth": 0, "width": 1}
        for name, bound in least.items():
            keep(self, **{name: integer(getattr(self, name), name, bound)})
        keep(self, noise=noise_of(self.noise), scale=scale_of(self.scale))
        word(self.network, "network")
        if self.lr is not None:
            keep(self, lr=number(self.lr, "lr", 0, above=True))
        if self.steps is not None:
            keep(self, steps=integer(self.steps, "steps", 0))
        greedy_named(self.search)
        spent = self.budget - self.start
        batches = max(1, spent // self.batch)
        if spent != batches * self.batch:
            raise PoolError(
                f"expected a budget that is a multiple of the batch size, got {self.budget} labels"
                + (f", {self.start} of them at the start," if self.start else "")
                + f" in batches of {self.batch}; take {self.budget - spent + self.batch * batches}"
            )

    def _check_budgets(self) -> None:
        instance(self.budgets, "budgets", Sequence, "a list of numbers of labels")
        start = integer(self.start, "start", 0)
        why, least = f"each more than the {start} labels of the start" if start else "", 1 + start
        every = {integer(budget, "each of budgets", least, why=why) for budget in self.budgets}
        keep(self, budgets=tuple(sorted(every)))
        if not every:
            return
        for name, value in (("budget", max(every)), ("batch", max(every) - self.start)):
            usual = type(self).__dataclass_fields__[name].default
            if getattr(self, name) not in (usual, value):
                raise PoolError(
                    f"expected {name} or budgets, got {name} {getattr(self, name)} and budgets "
                    f"{', '.join(map(str, self.budgets))}; leave out one of them"
                )
            object.__setattr__(self, name, value)

    def cold(self, budget: int) -> "Protocol":
        """The same with one batch up to one of the budgets."""
        return replace(self, budgets=(), budget=budget, batch=budget - self.start)

    @property
    def rounds(self) -> int:
        """Number of batches, or of budgets."""
        return len(self.budgets) or (self.budget - self.start) // self.batch

    def inputs(self, data: Dataset, strategy: str) -> Shaped[Tensor, " n *d"]:
        """The pool as a strategy sees it, scaled as in `evgp.pick`.

        Strategies that train networks see what the networks see: standardised columns. A name such
        as "evgp@columns" says which scaling it is to see. Of a warm start these are the points of
        the later strategy.
        """
        if (warm := warm_start(strategy)) is not None:
            return self.inputs(data, warm.then)
        name, scale = split_scale(strategy, self.scale)
        if self.network != "mlp" or data.raw is None:
            return data.x
        learning = learns(strategy_named(name, self.setting(data, 0)))
        return data.x if learning and "@" not in strategy else data.scaled(scale)[0]

    def setting(self, data: Dataset, seed: int, x: Tensor | None = None) -> Setting:
        """The setting of strategies on this data, or on a pool `x` of another scaling."""
        outputs = data.classes or 1
        kernel: Any = (
            mlp(self.depth, self.width, outputs=outputs)
            if self.network == "mlp"
            else network_named(self.network, outputs)
        )
        # The authors trained in torch's own parametrisation, with correspondingly large steps.
        trained = kernel.standard("xavier") if isinstance(kernel, Network) else kernel
        return Setting(
            data.x if x is None else x,
            kernel,
            self.recipe(trained, data.classes),
            data.classes,
            most=self.budget,
            batch=self.batch,
            seed=seed,
            search=greedy_named(self.search),
            noise=self.noise,
        )

    def recipe(self, network: Buildable | Callable[..., Any], classes: int) -> Recipe:
        """Return the training of the paper, with the options that were set."""
        paper = paper_recipe(network, classes=classes, resnet=self.network == "resnet18")
        settings = dict(paper.settings)
        epochs = paper.epochs
        if self.lr is not None:
            settings["lr"] = self.lr
        if self.steps is not None:
            epochs = self.steps if epochs is not None else None
            if epochs is None:
                settings["steps"] = self.steps
        return replace(paper, settings=settings, epochs=epochs)

    def fits(self, data: Dataset) -> None:
        """Raise if the pool is smaller than the budget, or lacks a class of the test set."""
        if not len(data.x_test):
            raise PoolError(f"expected points to test on in {data.name}, got none; leave out test")
        if self.budget > len(data.x):
            raise PoolError(
                f"expected a budget of at most {len(data.x):,}, the points in the pool of "
                f"{data.name}; got {self.budget:,}"
            )
        lost = sorted(set(data.y_test.tolist()) - set(data.y.tolist())) if data.classes else []
        if lost:
            listed = ", ".join(repr(data.class_names[code]) for code in lost[:5])
            raise DatasetError(
                f"{data.name}: expected every class in the pool, got {listed}"
                f"{', ...' if len(lost) > 5 else ''} in the test part only; take a larger pool"
            )

    def check(self, data: Dataset, strategies: tuple[str, ...], seed: int) -> None:
        """Raise if a strategy cannot run on this data, before anything runs."""
        self.fits(data)
        setting = self.setting(data, seed)
        module = setting.recipe.untrained(tuple(data.x.shape[1:]))
        with torch.no_grad():
            shape = tuple(module(data.x[:2].float()).shape[1:])
        if shape != (data.classes or 1,):
            raise PoolError(
                f"expected {data.classes or 1} outputs for {data.name}, got a network with "
                f"{' x '.join(map(str, shape))}"
            )
        made = {name: self.strategy(name, data, seed) for name in strategies}
        learning = [name for name, strategy in made.items() if learns(strategy)]
        if learning and self.budgets and not self.start:
            warnings.warn(
                f"{', '.join(learning)}: with budgets there are no labels to learn from, and picks "
                "are those of a first round, mostly random; set start=, or budget= and batch=",
                DataWarning, stacklevel=3,
            )  # fmt: skip

    def strategy(self, name: str, data: Dataset, seed: int) -> Strategy:
        """The strategy with this name, for this data; each part of a warm start sees its own."""
        if (warm := warm_start(name)) is not None:
            first, then = (self.strategy(part, data, seed) for part in (warm.first, warm.then))
            x, later = self.inputs(data, warm.first), self.inputs(data, warm.then)
            after = self.batch if warm.after is None else warm.after
            return Hybrid(first, then, after, None if torch.equal(x, later) else x)
        setting = self.setting(data, seed, self.inputs(data, name))
        return strategy_named(split_scale(name, self.scale)[0], setting)


def split_scale(name: str, scale: str | None) -> tuple[str, str | None]:
    """Split the name of a strategy from the scaling of the pool that it is to see.

    >>> split_scale("evgp@columns", "auto"), split_scale("evgp", "auto")
    (('evgp', 'columns'), ('evgp', 'auto'))
    """
    name, at, own = name.partition("@")
    if not at:
        return name, scale
    own = one_of(own, f"the scaling of {name}", (*SCALES, "none"))
    return name, scale_of(own)


def _fewer(data: Dataset, count: int) -> Dataset:
    """The first points of a shuffled pool, with the targets scaled by these points only."""
    n = len(data.x)
    if integer(count, "pool", 2) > n:
        raise DatasetError(
            f"expected pool from 2 to {n:,} points, got {count}; leave it out for the usual number"
        )
    rows = None if data.rows is None else data.rows[:count]
    smaller = replace(data, x=data.x[:count], y=data.y[:count], rows=rows)
    if data.classes:
        return smaller
    mean, std = float(smaller.y.mean()), float(smaller.y.std(correction=0))
    if std < 1e-12:
        raise DatasetError(
            f"{data.name}: expected targets that differ in a pool of {count}, got one value only; "
            "take a larger pool"
        )
    return replace(
        smaller,
        y=(smaller.y - mean) / std,
        y_test=(data.y_test - mean) / std,
        y_mean=data.y_mean + mean * data.y_std,
        y_std=data.y_std * std,
    )
