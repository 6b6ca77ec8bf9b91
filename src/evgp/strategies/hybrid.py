"""Warm starts: one strategy until so many labels are there, then another."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Int
from torch import Generator

from evgp._checks import integer, keep
from evgp.pool import Pool, Selection
from evgp.strategies.strategy import (
    Strategy,
    is_ahead,
    learns,
    picked,
    renewed,
    strategy_of,
    unlabelled,
)


@dataclass(frozen=True)
class Hybrid:
    """`first` picks until `after` points are labelled, `then` picks the rest.

    A batch that reaches over the change is picked by both. The second cannot learn from labels that
    are still to come, so choose `after` as a whole number of batches.

    >>> import torch
    >>> from evgp.strategies import CoreSet, Random
    >>> warm = Hybrid(first=Random(), then=CoreSet(), after=2)
    >>> pool = Pool(torch.arange(6.0)[:, None])
    >>> len(warm(pool, 4, generator=torch.Generator().manual_seed(0)))
    4
    """

    first: Strategy
    then: Strategy
    after: int

    def __post_init__(self) -> None:
        keep(self, after=integer(self.after, "after", 1, why="a number of labels"))
        strategy_of(self.first, "first")
        strategy_of(self.then, "then")

    @property
    def learns(self) -> bool:
        """Labels play a part if they do for one of both."""
        return learns(self.first) or learns(self.then)

    @property
    def ahead(self) -> bool:
        """Rounds and labels change no pick if they change none of both."""
        return is_ahead(self.first) and is_ahead(self.then)

    def renewed(self, seed: int) -> "Hybrid":
        """With other random networks, where they look at some."""
        return replace(self, first=renewed(self.first, seed), then=renewed(self.then, seed))

    def __call__(self, pool: Pool, k: int, *, generator: Generator) -> Selection:
        """k picks of the one, the other, or both."""
        free = unlabelled(pool, k, generator)
        early = min(k, max(0, self.after - len(pool.known())))
        if early == 0:
            return picked(self.then(pool, k, generator=generator), "then")
        made = picked(self.first(pool, early, generator=generator), "first")
        if early == k:
            return made
        if not learns(self.then):  # points that wait for their labels count as known
            waiting = torch.cat([pool.labelled, torch.from_numpy(made.indices)])
            known = replace(pool, labelled=waiting, y=None)
            rest = picked(self.then(known, k - early, generator=generator), "then")
            return Selection(
                np.concatenate([made.indices, rest.indices]),
                np.concatenate([made.gains, rest.gains]),
            )
        left = np.setdiff1d(free.numpy(), made.indices)
        rest = self.then(self._rest(pool, left), k - early, generator=generator)
        rest = picked(rest, "then")
        return Selection(
            np.concatenate([made.indices, left[rest.indices]]),
            np.concatenate([made.gains, rest.gains]),
        )

    def _rest(self, pool: Pool, left: Int[np.ndarray, " c"]) -> Pool:
        """The rows that are left, for the second strategy, as a pool of their own."""
        known = pool.known()
        return Pool(
            pool.x[torch.from_numpy(left)],
            pool.test_points(),
            weights=pool.weights,
            x_labelled=known if len(known) else None,
            y=pool.y,
        )
