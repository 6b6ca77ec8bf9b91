"""Random picks: what every strategy must beat."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Generator

from evgp.pool import Pool, Selection
from evgp.strategies.strategy import unlabelled


@dataclass(frozen=True)
class Random:
    """Rows drawn without replacement; O(n).

    >>> pool = Pool(torch.zeros(5, 2))
    >>> len(set(Random()(pool, 3, generator=torch.Generator().manual_seed(0)).indices.tolist()))
    3
    """

    @property
    def learns(self) -> bool:
        """Labels play no part."""
        return False

    @property
    def ahead(self) -> bool:
        """Neither rounds nor labels change its picks."""
        return True

    def __call__(self, pool: Pool, k: int, *, generator: Generator) -> Selection:
        """k picks; a random pick promises no gain."""
        free = unlabelled(pool, k, generator)
        drawn = free[torch.randperm(len(free), generator=generator)[:k]]
        return Selection(drawn.numpy(), np.zeros(k))
