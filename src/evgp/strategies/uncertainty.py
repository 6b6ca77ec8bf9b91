"""Uncertainty sampling: the rows at which trained networks are least sure of the class.

Scheffer, Decomain & Wrobel, Active Hidden Markov Models for Information Extraction, IDA 2001
(margin); Shannon, A Mathematical Theory of Communication, 1948, as in Settles, Active Learning
Literature Survey, 2009 (entropy).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from evgp._checks import integer, keep, number
from evgp.errors import PoolError
from evgp.pool import Pool, Selection
from evgp.strategies._trained import accurate, fits, labels_of, recipe_of, seed_from
from evgp.strategies.random import Random
from evgp.strategies.strategy import unlabelled
from evgp.training import Recipe


@dataclass(frozen=True)
class Margin:
    """The rows where the two most likely classes are closest, k at once.

    Probabilities are the mean of networks trained from scratch on the labelled points. Gains are
    one minus the difference. Before there are labels picks are random. O(n) on top of training and
    a forward pass; ties go to the lowest row.

    Parameters
    ----------
    recipe : Recipe
        Trains the networks.
    classes : int
        Number of classes.
    members : int
        Number of networks.
    accuracy : float
        Share of labels at which training stops, unless the recipe has a `stop`.

    Examples
    --------
    >>> from evgp import mlp
    >>> margin = Margin(Recipe(mlp(1, 16, outputs=2)), classes=2)
    >>> x, ends = torch.arange(6.0)[:, None], torch.tensor([0, 5])
    >>> pool = Pool(x, labelled=ends, y=torch.tensor([0, 1]))
    >>> len(margin(pool, 2, generator=torch.Generator().manual_seed(0)))
    2
    """

    recipe: Recipe
    classes: int
    members: int = 5
    accuracy: float = 0.99
    learns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check(self)

    def __call__(self, pool: Pool, k: int, *, generator: Generator) -> Selection:
        """Return k picks, each with one minus its margin."""
        return _most(self, pool, k, generator, closeness)


@dataclass(frozen=True)
class Entropy:
    """The rows where the entropy of the predicted classes is largest, k at once.

    Probabilities, training, cold start, cost and ties are those of `Margin`. Gains are entropies.

    Parameters
    ----------
    recipe : Recipe
        Trains the networks.
    classes : int
        Number of classes.
    members : int
        Number of networks.
    accuracy : float
        Share of labels at which training stops, unless the recipe has a `stop`.

    Examples
    --------
    >>> from evgp import mlp
    >>> entropy = Entropy(Recipe(mlp(1, 16, outputs=2)), classes=2)
    >>> x, ends = torch.arange(6.0)[:, None], torch.tensor([0, 5])
    >>> pool = Pool(x, labelled=ends, y=torch.tensor([0, 1]))
    >>> len(entropy(pool, 2, generator=torch.Generator().manual_seed(0)))
    2
    """

    recipe: Recipe
    classes: int
    members: int = 5
    accuracy: float = 0.99
    learns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check(self)

    def __call__(self, pool: Pool, k: int, *, generator: Generator) -> Selection:
        """Return k picks, each with its entropy in nats."""
        return _most(self, pool, k, generator, entropies)


def closeness(chances: Float[Tensor, "n o"]) -> Float[Tensor, " n"]:
    """One minus the difference between the two largest probabilities.

    >>> closeness(torch.tensor([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125]])).tolist()
    [0.75, 0.375]
    """
    top = chances.topk(2, dim=1).values
    return 1 - (top[:, 0] - top[:, 1])


def entropies(chances: Float[Tensor, "n o"]) -> Float[Tensor, " n"]:
    """Entropy of each row of probabilities.

    >>> entropies(torch.tensor([[1.0, 0.0], [0.5, 0.5]]).double()).tolist()
    [0.0, 0.6931471805599453]
    """
    return torch.special.entr(chances).sum(1)


def _check(strategy: Margin | Entropy) -> None:
    name = type(strategy).__name__
    integer(strategy.classes, "classes", 0)
    if strategy.classes < 2:
        raise PoolError(
            f"expected at least 2 classes for {name}, which compares their probabilities, got "
            f"{strategy.classes}; for numbers use a strategy such as BADGE or EVGP"
        )
    keep(strategy, members=integer(strategy.members, "members", 1))
    keep(strategy, accuracy=number(strategy.accuracy, "accuracy", 0, 1, above=True))
    recipe_of(strategy.recipe)


def _most(
    strategy: Margin | Entropy,
    pool: Pool,
    k: int,
    generator: Generator,
    score: Callable[[Float[Tensor, "n o"]], Float[Tensor, " n"]],
) -> Selection:
    """Return the k rows of largest score, by the mean probabilities of trained networks."""
    free, name = unlabelled(pool, k, generator), type(strategy).__name__
    y = labels_of(pool, strategy.classes, name)
    fits(strategy.recipe, pool, strategy.classes, name)
    if y is None:
        return Random()(pool, k, generator=generator)
    other: dict[str, Any] = {}
    if strategy.recipe.settings.get("stop") is None:
        other["stop"] = partial(accurate, strategy.accuracy)
    seed = seed_from(generator)
    ensemble = strategy.recipe(pool.known(), y, members=strategy.members, seed=seed, **other)
    scores = score(torch.softmax(ensemble.predict(pool.x[free]).double(), dim=2).mean(0))
    best = scores.argsort(descending=True, stable=True)[:k]
    return Selection(free[best].numpy(), scores[best].numpy())
