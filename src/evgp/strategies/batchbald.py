"""BatchBALD: batches whose labels together are most informative about which network is right.

Kirsch, van Amersfoort & Gal, BatchBALD: Efficient and Diverse Batch Acquisition for Deep Bayesian
Active Learning, NeurIPS 2019.
"""

from dataclasses import dataclass
from math import log

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Generator, Tensor

from evgp._checks import integer, keep, number
from evgp.errors import PoolError
from evgp.pool import Pool, Selection
from evgp.strategies._trained import fits, labels_of, outputs, penultimate, recipe_of, seed_from
from evgp.strategies.strategy import unlabelled
from evgp.training import Recipe

_TILE = 2**18  # entries in a tile of candidates: larger tiles do not stay in the cache
_LEAST = 1e-300  # so that 0 log 0 is 0


@dataclass(frozen=True, eq=False)
class Joint:
    r"""Configurations of labels of the picks: all of them, or a sample.

    With equally likely members $w_1 \dots w_E$, a configuration $c = (y_1 \dots y_b)$ of labels has
    the probability $q_c = \frac1E \sum_e \prod_i p_e(y_i)$, and given it member $e$ has the weight
    $\pi_{ce} \propto \prod_i p_e(y_i)$. One more label $y$ then adds

    $$ I(y; w \mid y_1 \dots y_b)
       = \sum_c q_c \Big[ H\Big(\sum_e \pi_{ce}\, p_e(y)\Big) - \sum_e \pi_{ce} H(p_e(y)) \Big] $$

    to $I(y_1 \dots y_b; w)$, so that greedy maximisation of the joint information never needs the
    joint distribution of b + 1 labels.

    `likelihood` is the log-likelihood of each configuration under each member, `weights` are the
    probabilities of all configurations or one over the number of those sampled.

    >>> sure = torch.tensor([[[0.0, -torch.inf]], [[-torch.inf, 0.0]]]).double()
    >>> joint = Joint.empty(2)
    >>> joint.information(sure).tolist(), log(2)
    ([0.6931471805599453], 0.6931471805599453)
    >>> float(joint.extended(sure[:, 0]).information(sure)) == 0
    True
    """

    likelihood: Float[Tensor, "c e"]
    weights: Float[Tensor, " c"]
    sampled: bool = False

    @classmethod
    def empty(cls, members: int) -> "Joint":
        """The joint of no labels: one configuration, equally likely under every member."""
        empty = torch.zeros(1, members, dtype=torch.float64)
        return cls(empty, torch.ones(1, dtype=torch.float64))

    def posterior(self) -> Float[Tensor, "c e"]:
        """Probability of each member given each configuration."""
        return torch.softmax(self.likelihood, dim=1)

    def information(self, logs: Float[Tensor, "e n o"]) -> Float[Tensor, " n"]:
        """The information that each candidate's label adds; O(c e n o) in tiles of candidates."""
        posterior = self.posterior()
        share = self.weights @ posterior
        step = max(1, _TILE // (len(posterior) * logs.shape[2]))
        parts = []
        for block in torch.split(logs, step, dim=1):
            p = block.exp()
            mixed = posterior @ p.flatten(1)
            part = mixed.clamp(min=_LEAST).log_().mul_(mixed)
            whole = -(self.weights @ part).view(p.shape[1:]).sum(1)
            parts.append(whole - share @ torch.special.entr(p).sum(2))
        return torch.cat(parts).clamp(min=0)

    def extended(self, logs: Float[Tensor, "e o"]) -> "Joint":
        """The joint with every label of one more point: o times as many configurations."""
        likelihood = (self.likelihood[:, None] + logs.T).flatten(0, 1)
        likelihood = likelihood[(likelihood > -torch.inf).any(1)]  # without impossible ones
        weights = (torch.logsumexp(likelihood, dim=1) - log(likelihood.shape[1])).exp()
        return Joint(likelihood, weights)

    def drawn(self, logs: Float[Tensor, "e o"], samples: int, *, generator: Generator) -> "Joint":
        """The joint with a sampled label of one more point, for each of so many configurations.

        A label is drawn given the configuration's other labels, so that samples come from $q$.
        """
        before = self if self.sampled else self._thinned(samples, generator)
        chances = (before.posterior() @ logs.exp()).cumsum(1)
        at = torch.rand(len(chances), 1, generator=generator, dtype=torch.float64)
        label = (chances <= at * chances[:, -1:]).sum(1).clamp(max=logs.shape[1] - 1)
        return Joint(before.likelihood + logs.T[label], before.weights, sampled=True)

    def _thinned(self, samples: int, generator: Generator) -> "Joint":
        """A systematic sample of all configurations, in proportion to their probabilities."""
        total = self.weights.cumsum(0)
        at = torch.rand((), generator=generator, dtype=torch.float64) + torch.arange(samples)
        rows = torch.searchsorted(total, at / samples * total[-1], right=True)
        rows = rows.clamp(max=len(total) - 1)
        return Joint(self.likelihood[rows], total.new_full((samples,), 1 / samples), sampled=True)


# Rounding error of the information, in nats: within it, ties go to the lowest row.
_TIE = 1e-12


@dataclass(frozen=True)
class BatchBALD:
    r"""Greedy maximisation of the information between the labels of a batch and the network.

    $$ I(y_1 \dots y_b; w) = H(y_1 \dots y_b) - \sum_i \mathrm{E}_w\, H(y_i \mid w) $$

    Gains are the information that each pick adds; ties go to the lowest row. The networks $w$ are
    `members` that the recipe trains on the labelled points, untrained before there are labels. The
    information of a batch cannot exceed the logarithm of their number.

    With `dropout` one network is trained *without* dropout (`evgp.train` refuses it: members must
    only differ in their initialisation), and `members` masks then drop that share of the inputs
    of its last layer, the same ones at all points. The MC-dropout of the paper differs:
    it trains with dropout in several layers.

    All `classes`^b configurations of labels are used while there are at most `exact`; beyond that,
    `samples` are drawn from their joint distribution, as in the paper. With c configurations
    each pick is O(c n members classes), after training; O(n members classes) memory, and tiles.

    Parameters
    ----------
    recipe : Recipe
        Trains the networks.
    classes : int
        Number of classes.
    members : int
        Number of networks, or of masks.
    dropout : float
        Share of the inputs of the last layer that a mask drops; 0 trains `members` networks.
    exact : int
        Up to so many configurations of labels all are used.
    samples : int
        Number drawn beyond that.

    Examples
    --------
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
                "classification; use MaxVariance or EVGP for numbers"
            )
        keep(self, members=integer(self.members, "members", 2))
        keep(self, exact=integer(self.exact, "exact", 1))
        keep(self, samples=integer(self.samples, "samples", 1))
        keep(self, dropout=number(self.dropout, "dropout", 0, 1, below=True))
        recipe_of(self.recipe)

    def __call__(self, pool: Pool, k: int, *, generator: Generator) -> Selection:
        """Return k picks, each with the information that it adds, in nats."""
        free = unlabelled(pool, k, generator)
        y = labels_of(pool, self.classes, "BatchBALD")
        fits(self.recipe, pool, self.classes, "BatchBALD")
        logits = self._logits(pool, pool.x[free], y, generator)
        rows, gains = self.batch(torch.log_softmax(logits, dim=2), k, generator=generator)
        return Selection(free.numpy()[rows], np.array(gains))

    def batch(
        self, logs: Float[Tensor, "e n o"], k: int, *, generator: Generator
    ) -> tuple[list[int], list[float]]:
        """Return k rows and their gains, from the log-probabilities of any kind of members."""
        joint = Joint.empty(len(logs))
        taken = torch.zeros(logs.shape[1], dtype=torch.bool)
        rows: list[int] = []
        gains: list[float] = []
        for count in range(1, k + 1):
            information = torch.where(taken, -torch.inf, joint.information(logs))
            row = int((information >= information.max() - _TIE).nonzero()[0])
            rows.append(row)
            gains.append(float(information[row]))
            taken[row] = True
            if count < k:
                joint = self._after(joint, logs[:, row], count + 1, generator)
        return rows, gains

    def _after(
        self, joint: Joint, logs: Float[Tensor, "e o"], count: int, generator: Generator
    ) -> Joint:
        """The joint with one more pick; with the next candidate it has `count` labels."""
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
            ensemble = self.recipe(pool.known(), y, members=self.members, seed=seed)
            return ensemble.predict(x).double()
        every = range(self.members)
        return torch.stack(
            [outputs(self.recipe.untrained(shape, seed=seed, member=i), x) for i in every]
        )
