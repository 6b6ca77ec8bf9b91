"""Warm starts: one strategy for the first labels, then another."""

from dataclasses import dataclass, field, replace

import numpy as np
import torch
from jaxtyping import Int, Shaped
from torch import Generator, Tensor

from evgp._checks import integer, keep
from evgp.errors import PoolError
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
    """A warm start: `first` picks until `after` points are labelled, then `then` does.

    A batch that spans the change is picked by both. The second cannot learn from labels that
    are not there yet, so `after` should be a whole number of batches. `x_first` are the points of
    the pool as the first strategy sees them, if it sees another scaling.

    Parameters
    ----------
    first, then : Strategy
    after : int
        Number of labels.
    x_first : tensor, shape (n, ...), optional

    Examples
    --------
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
    x_first: Shaped[Tensor, " n *d"] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        keep(self, after=integer(self.after, "after", 1, why="a number of labels"))
        strategy_of(self.first, "first")
        strategy_of(self.then, "then")

    @property
    def learns(self) -> bool:
        """Whether either strategy learns from labels."""
        return learns(self.first) or learns(self.then)

    @property
    def ahead(self) -> bool:
        """Whether one long list serves all rounds, for both strategies."""
        return is_ahead(self.first) and is_ahead(self.then)

    def renewed(self, seed: int) -> "Hybrid":
        """The strategies with other random networks, if they use some."""
        return replace(self, first=renewed(self.first, seed), then=renewed(self.then, seed))

    def __call__(self, pool: Pool, k: int, *, generator: Generator) -> Selection:
        """Return k picks by the first strategy, the second, or both."""
        free = unlabelled(pool, k, generator)
        early = min(k, max(0, self.after - len(pool.known())))
        if early == 0:
            return picked(self.then(pool, k, generator=generator), "then")
        selection = picked(self.first(self._seen(pool), early, generator=generator), "first")
        if early == k:
            return selection
        if not learns(self.then):  # points whose labels are not there yet count as known
            waiting = torch.cat([pool.labelled, torch.from_numpy(selection.indices)])
            known = replace(pool, labelled=waiting, y=None)
            rest = picked(self.then(known, k - early, generator=generator), "then")
            return Selection(
                np.concatenate([selection.indices, rest.indices]),
                np.concatenate([selection.gains, rest.gains]),
            )
        left = np.setdiff1d(free.numpy(), selection.indices)
        rest = self.then(self._rest(pool, left), k - early, generator=generator)
        rest = picked(rest, "then")
        return Selection(
            np.concatenate([selection.indices, left[rest.indices]]),
            np.concatenate([selection.gains, rest.gains]),
        )

    def _seen(self, pool: Pool) -> Pool:
        """The pool as the first strategy sees it."""
        if self.x_first is None:
            return pool
        alone = pool.x_test is None and pool.x_labelled is None
        if not alone or len(self.x_first) != len(pool.x):
            raise PoolError(
                "expected the pool whose points are x_first, without points from outside; let "
                "strategies change after a whole number of batches"
            )
        return replace(pool, x=self.x_first)

    def _rest(self, pool: Pool, left: Int[np.ndarray, " c"]) -> Pool:
        """The remaining rows as a separate pool, for the second strategy."""
        known = pool.known()
        return Pool(
            pool.x[torch.from_numpy(left)],
            pool.test_points(),
            weights=pool.weights,
            x_labelled=known if len(known) else None,
            y=pool.y,
        )
