"""Fewer test points for a strategy that uses all of them."""

from dataclasses import dataclass, replace

from torch import Generator

from evgp._checks import integer, keep, seed_of
from evgp.pool import Pool, Selection
from evgp.selection.features import thinned
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
class Thinned:
    """Another strategy, with the test points thinned by k-means++ to `points`.

    Parameters
    ----------
    inner : Strategy
    points : int
        Number of test points.
    seed : int

    Examples
    --------
    >>> import torch
    >>> from evgp.strategies import Random
    >>> Thinned(Random(), 2)(Pool(torch.eye(4)), 1, generator=torch.Generator()).indices.shape
    (1,)
    """

    inner: Strategy
    points: int
    seed: int = 0

    def __post_init__(self) -> None:
        keep(self, points=integer(self.points, "points", 1), seed=seed_of(self.seed))
        strategy_of(self.inner, "inner")

    @property
    def learns(self) -> bool:
        """The same as for the inner strategy."""
        return learns(self.inner)

    @property
    def ahead(self) -> bool:
        """The same as for the inner strategy."""
        return is_ahead(self.inner)

    def renewed(self, seed: int) -> "Thinned":
        """The strategy with another random network, if it uses one."""
        return replace(self, inner=renewed(self.inner, seed))

    def __call__(self, pool: Pool, k: int, *, generator: Generator) -> Selection:
        """Return k picks by the inner strategy."""
        unlabelled(pool, k, generator)
        fewer = thinned(pool, self.points, self.seed)
        return picked(self.inner(fewer, k, generator=generator), "inner")
