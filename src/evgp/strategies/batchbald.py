"""Batches whose labels, taken together, tell most about which network is right.

Kirsch, van Amersfoort & Gal, BatchBALD: Efficient and Diverse Batch Acquisition for Deep Bayesian
Active Learning, NeurIPS 2019.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Generator, Tensor

from evgp._checks import integer, keep, number
from evgp._errors import PoolError
from evgp.pool import Pool, Selection
from evgp.strategies._joint import Joint
from evgp.strategies._learnt import fits, labels_of, recipe_of, seed_from
from evgp.strategies._penultimate import outputs, penultimate
from evgp.strategies.strategy import unlabelled
from evgp.training import Recipe

# Nats: what rounding makes of equal information, so that the lowest row of equals is picked.
_TIE = 1e-12


@dataclass(frozen=True)
class BatchBALD:
    r"""Greedy maximisation of the information between the labels of a batch and the network.

    $$ I(y_1 \dots y_b; w) = H(y_1 \dots y_b) - \sum_i \mathrm{E}_w\, H(y_i \mid w) $$

    Gains are what each pick adds; ties go to the lowest row. The networks $w$ are `members` that
    the recipe trains on what is labelled, or untrained ones before there are labels. The
    information of a batch cannot exceed the logarithm of their number.

    With `dropout` one network is trained *without* dropout (`evgp.train` refuses it, as members may
    differ by their initialisation alone), and `members` masks then drop that share of the inputs
    of its last layer, the same ones at all points. This is less than the MC-dropout of the paper,
    which trains with dropout in several layers.

    All `classes`^b configurations of labels are looked at while they are at most `exact`; beyond,
    `samples` are drawn from their joint distribution, as in the paper. With c configurations
    each pick is O(c n members classes), beside training; O(n members classes) memory, and tiles.

    >>> from evgp import mlp
    >>> strategy = BatchBALD(Recipe(mlp(1, 16, outputs=3)), classes=3)
    >>> pool = Pool(torch.arange(6.0)[:, None])
    >>> len(strategy(pool, 4, generator=torch.Generator().manual_seed(0)))
    4
    """

    recipe: Recipe
    classes: int
    members: int = 10
    dropout: float = 0.0
    exact: int = 50_000
    samples: int = 5_000

    def __post_init__(self) -> None:
        if integer(self.classes, "classes", 0) < 2:
            raise PoolError(
                f"expected at least 2 classes, got {self.classes}; BatchBALD is for "
                "classification, so take MaxVariance or EVGP for numbers"
            )
        keep(self, members=integer(self.members, "members", 2))
        keep(self, exact=integer(self.exact, "exact", 1))
        keep(self, samples=integer(self.samples, "samples", 1))
        keep(self, dropout=number(self.dropout, "dropout", 0, 1, below=True))
        recipe_of(self.recipe)

    def __call__(self, pool: Pool, k: int, *, generator: Generator) -> Selection:
        """k picks with the information that each adds, in nats."""
        free = unlabelled(pool, k, generator)
        y = labels_of(pool, self.classes, "BatchBALD")
        fits(self.recipe, pool, self.classes, "BatchBALD")
        logits = self._logits(pool, pool.x[free], y, generator)
        rows, gains = self.batch(torch.log_softmax(logits, dim=2), k, generator=generator)
        return Selection(free.numpy()[rows], np.array(gains))

    def batch(
        self, logs: Float[Tensor, "e n o"], k: int, *, generator: Generator
    ) -> tuple[list[int], list[float]]:
        """k rows and gains from the log-probabilities of any members, however they were made."""
        joint = Joint.empty(len(logs))
        taken = torch.zeros(logs.shape[1], dtype=torch.bool)
        rows: list[int] = []
        gains: list[float] = []
        for count in range(1, k + 1):
            found = torch.where(taken, -torch.inf, joint.information(logs))
            row = int((found >= found.max() - _TIE).nonzero()[0])
            rows.append(row)
            gains.append(float(found[row]))
            taken[row] = True
            if count < k:
                joint = self._after(joint, logs[:, row], count + 1, generator)
        return rows, gains

    def _after(
        self, joint: Joint, logs: Float[Tensor, "e o"], count: int, generator: Generator
    ) -> Joint:
        """The joint with one more pick; `count` labels are in play with the next candidate's."""
        if not joint.sampled and logs.shape[1] ** count <= self.exact:
            return joint.extended(logs)
        return joint.drawn(logs, self.samples, generator=generator)

    def _logits(
        self,
        pool: Pool,
        x: Shaped[Tensor, " n *d"],
        y: Shaped[Tensor, " l"] | None,
        generator: Generator,
    ) -> Float[Tensor, "e n o"]:
        seed, shape = seed_from(generator), tuple(pool.x.shape[1:])
        if self.dropout:
            module = (
                self.recipe.untrained(shape, seed=seed)
                if y is None
                else self.recipe(pool.known(), y, members=1, seed=seed).module(0)
            )
            seen = penultimate(module, x)
            keep = torch.rand(self.members, seen.h.shape[1], generator=generator) >= self.dropout
            masks = keep.double() / (1 - self.dropout)
            if seen.biased:
                masks[:, -1] = 1.0
            return torch.stack([seen.outputs(mask) for mask in masks])
        if y is not None:
            made = self.recipe(pool.known(), y, members=self.members, seed=seed)
            return made.predict(x).double()
        every = range(self.members)
        return torch.stack(
            [outputs(self.recipe.untrained(shape, seed=seed, member=one), x) for one in every]
        )
