"""LCMD: the farthest row of the largest cluster around labelled points and picks.

Holzmueller, Zaverkin, Kaestner & Steinwart, A Framework and Benchmark for Deep Batch Active
Learning for Regression, JMLR 2023 (bmdal-reg).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Generator

from evgp.pool import Pool, Selection
from evgp.strategies._cells import points_of
from evgp.strategies.diversity import Embed, flat
from evgp.strategies.strategy import unlabelled

_EXACT = "donot_use_mm_for_euclid_dist"  # without a product, so that copies have no distance


@dataclass(frozen=True)
class LCMD:
    """Largest cluster, maximum distance: rows belong to the nearest labelled point or pick.

    The next pick is the farthest row of the cluster with the largest sum of squared distances, and
    its distance is the gain. Without labels the first pick is the row of largest norm. Labelled
    points are centres from the start (`LCMD-TP` of the paper), so rounds do not matter. O(n (l + k)
    d) time, O(n d) memory; ties go to the lowest row.

    Parameters
    ----------
    embed : callable
        Features, such as `Gradients(kernel)`; the inputs by default.

    Examples
    --------
    >>> pool = Pool(torch.tensor([[0.0], [1.0], [2.0], [20.0], [24.0]]))
    >>> LCMD()(pool, 3, generator=torch.Generator()).indices.tolist()
    [4, 0, 3]
    """

    embed: Embed = flat
    learns: ClassVar[bool] = False
    ahead: ClassVar[bool] = True

    def __call__(self, pool: Pool, k: int, *, generator: Generator) -> Selection:
        """Return k picks, each with its distance from the points before it."""
        free = unlabelled(pool, k, generator)
        x, known, unit = points_of(self.embed, pool)
        inside = x[: len(pool)]
        nearest = torch.full((len(pool),), torch.inf, dtype=torch.float64)
        cell = torch.zeros(len(pool), dtype=torch.int64)
        may = torch.zeros(len(pool), dtype=torch.bool)
        may[free] = True
        centres, rows, gains = 0, [], []
        for at in range(len(known) + k):
            if at < len(known):
                row = int(known[at])
            elif centres == 0:
                norm = inside.square().sum(1)
                row = int(norm.argmax())
                gains.append(float(norm[row]))
            else:
                heavy = torch.bincount(cell, weights=nearest, minlength=centres)
                here = may & (heavy[cell] == heavy.max())
                row = int(torch.where(here, nearest, -torch.inf).argmax())
                row = row if bool(may[row]) else int(may.nonzero()[0])  # only copies are left
                gains.append(float(nearest[row]))
            if at >= len(known):
                rows.append(row)
                may[row] = False
            apart = torch.cdist(inside, x[row][None], compute_mode=_EXACT)[:, 0].square()
            closer = apart < nearest
            cell[closer] = centres
            nearest = torch.where(closer, apart, nearest)
            centres += 1
        return Selection(np.array(rows), np.sqrt(gains) * unit)
