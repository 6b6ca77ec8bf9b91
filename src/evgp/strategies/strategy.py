"""The protocol of strategies, and the checks that they share."""

from typing import Protocol, runtime_checkable

from jaxtyping import Int, Shaped
from torch import Generator, Tensor

from evgp._checks import function, instance, integer, shown
from evgp.errors import PoolError
from evgp.pool import Pool, Selection


@runtime_checkable
class Strategy(Protocol):
    """Picks k of the unlabelled rows of a pool, in order."""

    def __call__(self, pool: Pool, k: int, *, generator: Generator) -> Selection:
        """Return k picks; all randomness comes from the generator."""
        ...


@runtime_checkable
class Renewing(Protocol):
    """A strategy that uses a random network, and another one in each round."""

    def renewed(self, seed: int) -> Strategy:
        """The same strategy with another random network."""
        ...


def renewed(strategy: Strategy, seed: int) -> Strategy:
    """The strategy for the next round, with another random network if it uses one."""
    return strategy.renewed(seed) if isinstance(strategy, Renewing) else strategy


def is_ahead(strategy: Strategy) -> bool:
    """Whether it can pick for all rounds at once, because rounds and labels change no pick."""
    return bool(getattr(strategy, "ahead", False))


def learns(strategy: Strategy) -> bool:
    """Whether it uses labels; strategies without the attribute are assumed to."""
    return bool(getattr(strategy, "learns", True))


def unlabelled(pool: Pool, k: int, generator: Generator | None = None) -> Int[Tensor, " c"]:
    """The rows that may be picked; checks the arguments of a strategy.

    >>> import torch
    >>> unlabelled(Pool(torch.zeros(4, 1), labelled=torch.tensor([1])), 2).tolist()
    [0, 2, 3]
    """
    free = instance(pool, "a pool", Pool, "evgp.Pool(x)").unlabelled()
    integer(k, "k", 1, len(free), why="the rows that may be picked")
    if generator is not None:
        instance(generator, "a generator", Generator, "torch.Generator()")
    return free


def strategy_of(value: object, name: str) -> None:
    """Check that this can be called as a strategy."""
    function(value, name, "a strategy, such as evgp.strategies.Random()")


def picked(selection: object, name: str) -> Selection:
    """Check the result of a strategy, which may be a user's own."""
    if not isinstance(selection, Selection):
        raise PoolError(f"expected a Selection from {name}, got {shown(selection)}")
    return selection


def labels(pool: Pool, who: str) -> Shaped[Tensor, " l ..."] | None:
    """The labels of the labelled points; None if there are none.

    >>> import torch
    >>> labels(Pool(torch.zeros(4, 1)), "BADGE") is None
    True
    """
    instance(pool, "a pool", Pool, "evgp.Pool(x)")
    count = len(pool.labelled) + (0 if pool.x_labelled is None else len(pool.x_labelled))
    if count == 0:
        return None
    if pool.y is None:
        raise PoolError(
            f"expected the labels of the {count} labelled points for {who}, which learns from "
            "them, got none; pass them as Pool(..., y=...), or use a strategy that needs none, "
            "such as EVGP"
        )
    return pool.y
