"""Random picks: the baseline that every strategy must beat."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Generator

from evgp.pool import Pool, Selection
from evgp.strategies.strategy import unlabelled


@dataclass(frozen=True)
class Random:
    """Random rows, drawn without replacement; O(n).

    Examples
    --------
    >>> pool = Pool(torch.zeros(5, 2))
    >>> len(set(Random()(pool, 3, generator=torch.Generator().manual_seed(0)).indices.tolist()))
    3
    """

    learns: ClassVar[bool] = False
    ahead: ClassVar[bool] = True

    def __call__(self, pool: Pool, k: int, *, generator: Generator) -> Selection:
        """Return k picks, with gains of 0: random picks promise none."""
        free = unlabelled(pool, k, generator)
        drawn = free[torch.randperm(len(free), generator=generator)[:k]]
        return Selection(drawn.numpy(), np.zeros(k))
