"""What all strategies of a comparison share: the data, the network, its training, the budget."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from evgp._checks import flag, integer, keep, noise_of, number, word, words
from evgp._errors import DatasetError, PoolError
from evgp._reading import opened
from evgp.datasets import Dataset, load, load_csv, names
from evgp.nets import Buildable, Network, mlp, network_named
from evgp.selection.checks import greedy_named
from evgp.strategies import Setting, Strategy, strategy_named
from evgp.training import Recipe, by_the_paper


@dataclass(frozen=True)
class Subject:
    """A dataset by name, or a table with a column of labels.

    >>> Subject("kin8nm").name, Subject("house prices.csv", label="price").name
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

    def __post_init__(self) -> None:
        word(self.source, "source", error=DatasetError)
        for name in ("label", "task", "id", "delimiter"):
            if getattr(self, name) is not None:
                word(getattr(self, name), name, error=DatasetError)
        object.__setattr__(self, "drop", words(self.drop, "drop", error=DatasetError))
        flag(self.impute, "impute", error=DatasetError)
        for name, least in (("pool", 2), ("test", 0)):
            if getattr(self, name) is not None:
                found = integer(getattr(self, name), name, least, error=DatasetError)
                keep(self, **{name: found})

    @property
    def name(self) -> str:
        """How rows call it; bytes of a file's name that are not UTF-8 are question marks."""
        if self.source in names():
            return self.source
        return Path(self.source).name.split(".")[0].encode("utf-8", "replace").decode()

    def checksum(self) -> str | None:
        """Of the user's table, to notice that it has changed; None for a dataset with a name."""
        if self.source in names():
            return None
        with opened(self.source) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def load(self, seed: int) -> Dataset:
        """The pool and the test part of one seed."""
        if self.source in names():
            if self.label is not None or self.id or self.drop or self.impute:
                raise DatasetError(
                    f"{self.source} is a dataset of the paper and knows its labels; leave out "
                    "label, id, drop and impute, or give a path such as "
                    f"./{self.source}.csv"
                )
            return load(self.source, seed=seed, task=self.task, pool=self.pool, test=self.test)
        if self.label is None:
            known = ", ".join(names())
            if not Path(self.source).exists() and not Path(self.source).suffix:
                raise DatasetError(
                    f"expected a dataset among {known}, or a table of your own; got {self.source!r}"
                )
            raise DatasetError(
                f"{self.source}: expected the name of the column that holds the labels, got none; "
                "say it with label="
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
            test=0.5 if self.test is None else self.test,
        )
        return data if self.pool is None else _fewer(data, self.pool)

    @property
    def varies(self) -> bool:
        """May a seed have classes or columns that another has not?"""
        return self.source not in names() or self.pool is not None


@dataclass(frozen=True)
class Terms:
    """The budget, how it is spent, and how networks are made of the labels.

    `start` labels are drawn at random before the first round, the same for all strategies; they
    are part of the budget. Of `lr` and `steps` (`epochs` for classes) the paper's hold unless they
    are said. `width` is that of the network that is trained. `search` and `noise` are those of
    EV-GP.

    >>> Terms(budget=60, batch=20, start=20).rounds
    2
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
    noise: float = 1e-6

    def __post_init__(self) -> None:
        least = {"budget": 1, "batch": 1, "start": 0, "members": 2, "depth": 0, "width": 1}
        for name, bound in least.items():
            keep(self, **{name: integer(getattr(self, name), name, bound)})
        keep(self, noise=noise_of(self.noise))
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
                f"expected a budget of whole batches, got {self.budget} labels"
                + (f" of which {self.start} are there at the start" if self.start else "")
                + f" in batches of {self.batch}; take {self.budget - spent + self.batch * batches}"
            )

    @property
    def rounds(self) -> int:
        """How many batches are picked."""
        return (self.budget - self.start) // self.batch

    def setting(self, data: Dataset, seed: int) -> Setting:
        """What strategies are made for on this data."""
        outputs = data.classes or 1
        kernel: Any = (
            mlp(self.depth, self.width, outputs=outputs)
            if self.network == "mlp"
            else network_named(self.network, outputs)
        )
        # The authors trained in torch's own parametrisation, whose steps are as large as it takes.
        trained = kernel.standard("xavier") if isinstance(kernel, Network) else kernel
        return Setting(
            data.x,
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
        """The paper's, with what was said otherwise."""
        paper = by_the_paper(network, classes=classes, resnet=self.network == "resnet18")
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
        """Refuse a pool that is smaller than the budget, or lacks a class of the test part."""
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
        """Refuse what cannot run on this data, before anything does."""
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
        for name in strategies:
            strategy_named(name, setting)

    def strategy(self, name: str, data: Dataset, seed: int) -> Strategy:
        """The strategy of this name, made for this data."""
        return strategy_named(name, self.setting(data, seed))


def _fewer(data: Dataset, count: int) -> Dataset:
    """The first points of a pool, which the seed has shuffled; targets scaled by them alone."""
    n = len(data.x)
    if integer(count, "pool", 2) > n:
        raise DatasetError(
            f"expected pool from 2 to {n:,} points, got {count}; leave it out for the usual number"
        )
    rows = None if data.rows is None else data.rows[:count]
    made = replace(data, x=data.x[:count], y=data.y[:count], rows=rows)
    if data.classes:
        return made
    mean, std = float(made.y.mean()), float(made.y.std(correction=0))
    if std < 1e-12:
        raise DatasetError(
            f"{data.name}: expected targets that differ in a pool of {count}, got one value only; "
            "take a larger pool"
        )
    return replace(
        made,
        y=(made.y - mean) / std,
        y_test=(data.y_test - mean) / std,
        y_mean=data.y_mean + mean * data.y_std,
        y_std=data.y_std * std,
    )
