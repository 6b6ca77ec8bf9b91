"""What strategies that learn from labels check before they train a network on them."""

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Generator, Tensor

from evgp._checks import instance
from evgp._errors import NetworkError, PoolError
from evgp.pool import Pool
from evgp.strategies._penultimate import outputs
from evgp.strategies.strategy import labels
from evgp.training import Recipe


def seed_from(generator: Generator) -> int:
    """A seed for networks, drawn from the generator."""
    return int(torch.randint(2**31, (), generator=generator))


def labels_of(pool: Pool, classes: int, who: str) -> Shaped[Tensor, " l ..."] | None:
    """The labels as they must be for so many classes (0: numbers), or None before there are any.

    >>> labels_of(Pool(torch.zeros(4, 1)), 3, "BADGE") is None
    True
    """
    y = labels(pool, who)
    if y is None:
        return None
    kind = str(y.dtype).removeprefix("torch.")
    if not classes:
        if not y.is_floating_point():
            raise PoolError(
                f"expected numbers as labels for {who} without classes, got {kind}; set classes=, "
                "or give y.float()"
            )
        return y
    if y.is_floating_point() or y.is_complex() or y.ndim != 1:
        raise PoolError(
            f"expected one whole number as the label of each point for {who} with {classes} "
            f"classes, got {kind} of shape {tuple(y.shape)}; give y.flatten().long()"
        )
    low, high = int(y.min()), int(y.max())
    if low < 0 or high >= classes:
        more = f"set classes={high + 1}, or " if low >= 0 else ""
        raise PoolError(
            f"expected labels from 0 to {classes - 1} for {who} with {classes} classes, got "
            f"{low} to {high}; {more}number the labels from 0"
        )
    return y


def fits(recipe: Recipe, pool: Pool, classes: int, who: str) -> None:
    """Has the network an output for each class? Asked before it is trained for long."""
    made = outputs(recipe.untrained(tuple(pool.x.shape[1:])), pool.x[:2]).shape[1]
    if classes and made != classes:
        raise NetworkError(
            f"expected a network with {classes} outputs for {who}, one a class; got {made}; set "
            f"outputs={classes} of the network, or classes= of {who}"
        )


def accurate(
    share: float, outputs: Float[Tensor, "e n o"], y: Int[Tensor, " n"]
) -> Bool[Tensor, " e"]:
    """Which members tell this share of their training points right.

    >>> accurate(0.99, torch.eye(2).expand(1, 2, 2), torch.tensor([0, 1])).tolist()
    [True]
    """
    return (outputs.argmax(-1) == y).double().mean(-1) >= share


def recipe_of(recipe: object) -> None:
    """Refuse what is no recipe."""
    instance(recipe, "a recipe", Recipe, "evgp.Recipe(evgp.mlp())")
