"""BADGE: batches that are uncertain and diverse, by k-means++ on gradients at guessed labels.

Ash et al., Deep Batch Active Learning by Diverse, Uncertain Gradient Lower Bounds, ICLR 2020.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from evgp._checks import integer, keep, number
from evgp.errors import PoolError
from evgp.pool import Pool, Selection
from evgp.strategies._trained import (
    Penultimate,
    accurate,
    fits,
    labels_of,
    penultimate,
    recipe_of,
    seed_from,
)
from evgp.strategies.strategy import unlabelled
from evgp.training import Recipe

# Squared distances below this share of the squared lengths are rounding of float32 networks.
_ALIKE = 1e-12


@dataclass(frozen=True)
class BADGE:
    r"""k-means++ on the gradients of the last layer, at the label that the network predicts.

    $$ g(x) = (p(x) - e_{\hat y}) \otimes h(x), \qquad \hat y = \arg\max_j p_j(x) $$

    with $p$ the class probabilities and $h$ the inputs of the last layer, with a 1 for its bias.
    The first pick is the longest gradient; each next one is drawn in proportion to its squared
    distance from the nearest pick, and these distances are the gains. Networks are trained from
    scratch on the labelled points; before there are labels the network is untrained.

    Without `classes` the network predicts numbers. Its guess is then its own output, where the
    gradient of the squared error vanishes. Labels that differ from the guess by noise of variance
    one give gradients whose inner product is on average $o\,h(x) \cdot h(x')$ for $o$ outputs:
    k-means++ on the tangent features of the last layer, which bmdal-reg offers too.

    O(n k (h + o)) on top of training and one forward pass; O(n (h + o)) memory, because distances
    are computed from the two factors of a gradient.

    Parameters
    ----------
    recipe : Recipe
        Trains the networks.
    classes : int
        Number of classes; 0 for numbers.
    accuracy : float
        Share of labels at which training stops, unless the recipe has a `stop`.

    Examples
    --------
    >>> from evgp import mlp
    >>> badge = BADGE(Recipe(mlp(1, 16, outputs=3)), classes=3)
    >>> pool = Pool(torch.arange(6.0)[:, None])
    >>> len(badge(pool, 4, generator=torch.Generator().manual_seed(0)))
    4
    """

    recipe: Recipe
    classes: int = 0
    accuracy: float = 0.99

    def __post_init__(self) -> None:
        if integer(self.classes, "classes", 0) == 1:
            raise PoolError("expected classes=0 for numbers, or at least 2 classes; got 1")
        keep(self, accuracy=number(self.accuracy, "accuracy", 0, 1, above=True))
        recipe_of(self.recipe)

    def __call__(self, pool: Pool, k: int, *, generator: Generator) -> Selection:
        """Return k picks, each with its squared distance from those before it."""
        free = unlabelled(pool, k, generator)
        seen = penultimate(self._network(pool, generator), pool.x[free])
        rows, gains = seeds(factor(seen, self.classes), seen.h, k, generator=generator)
        return Selection(free.numpy()[rows], np.array(gains))

    def _network(self, pool: Pool, generator: Generator) -> nn.Module:
        y = labels_of(pool, self.classes, "BADGE")
        fits(self.recipe, pool, self.classes, "BADGE")
        seed = seed_from(generator)
        if y is None:
            return self.recipe.untrained(tuple(pool.x.shape[1:]), seed=seed)
        other: dict[str, Any] = {}
        if self.classes and self.recipe.settings.get("stop") is None:
            other["stop"] = partial(accurate, self.accuracy)
        return self.recipe(pool.known(), y, members=1, seed=seed, **other).module(0)


def factor(seen: Penultimate, classes: int) -> Float[Tensor, "n o"]:
    r"""The derivative of the loss by the outputs, $p - e_{\hat y}$; $\sqrt o$ for numbers.

    >>> seen = Penultimate(torch.ones(1, 1).double(), torch.zeros(2, 1).double(), True)
    >>> factor(seen, classes=2).tolist(), factor(seen, classes=0).square().tolist()
    ([[-0.5, 0.5]], [[2.0000000000000004]])
    """
    if not classes:
        return seen.h.new_full((len(seen.h), 1), len(seen.weight) ** 0.5)
    slope = torch.softmax(seen.outputs(), dim=1)
    guess = slope.argmax(1, keepdim=True)
    # 1 - p as the sum of the others, which keeps its digits where the network is confident.
    slope.scatter_(1, guess, 0.0)
    return slope.scatter_(1, guess, -slope.sum(1, keepdim=True))


def seeds(
    a: Float[Tensor, "n o"], h: Float[Tensor, "n p"], k: int, *, generator: Generator
) -> tuple[list[int], list[float]]:
    r"""k different rows by k-means++ on $a_i \otimes h_i$, longest first, with squared distances.

    $$ \|a_i \otimes h_i - a_j \otimes h_j\|^2
       = |a_i|^2 |h_i|^2 - 2 (a_i \cdot a_j)(h_i \cdot h_j) + |a_j|^2 |h_j|^2 $$

    Once all rows coincide with picks, the rest is drawn at random.

    >>> h = torch.tensor([[1.0], [1.0], [3.0]]).double()
    >>> seeds(torch.ones(3, 1).double(), h, 2, generator=torch.Generator())[1]
    [9.0, 4.0]
    """
    length = a.square().sum(1) * h.square().sum(1)
    nearest = length.clone()
    free = torch.ones(len(h), dtype=torch.bool)
    rows: list[int] = []
    gains: list[float] = []
    for _ in range(k):
        if not bool(nearest.any()):
            row = _drawn(free.double(), generator)
        elif not rows:
            row = int(nearest.argmax())
        else:
            row = _drawn(nearest, generator)
        rows.append(row)
        gains.append(float(nearest[row]))
        free[row] = False
        apart = squared_distances(a, h, length, row)
        nearest = apart if len(rows) == 1 else torch.minimum(nearest, apart)
        nearest[row] = 0.0
    return rows, gains


def squared_distances(
    a: Float[Tensor, "n o"], h: Float[Tensor, "n p"], length: Float[Tensor, " n"], row: int
) -> Float[Tensor, " n"]:
    """Squared distances from one row to all, zero where equal up to rounding; O(n (o + p))."""
    both = length + length[row]
    apart = both - 2 * (a @ a[row]) * (h @ h[row])
    return torch.where(apart > _ALIKE * both, apart, 0.0)


def _drawn(weights: Float[Tensor, " n"], generator: Generator) -> int:
    """A random row, with probability proportional to its weight."""
    total = weights.cumsum(0)
    at = torch.rand((), generator=generator, dtype=torch.float64) * total[-1]
    row = int(torch.searchsorted(total, at, right=True))
    return row if row < len(weights) else int(weights.nonzero()[-1])
