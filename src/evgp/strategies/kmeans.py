"""K-means: the row nearest to each centre.

Lloyd, Least Squares Quantization in PCM, IEEE Transactions on Information Theory 1982; for a first
batch of labels: Zhdanov, Diverse Mini-Batch Active Learning, 2019.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int
from torch import Generator

from evgp.pool import Pool, Selection
from evgp.strategies._cells import clustered, points_of, walked
from evgp.strategies._trained import seed_from
from evgp.strategies.diversity import Embed, flat
from evgp.strategies.strategy import unlabelled


@dataclass(frozen=True)
class KMeans:
    """The row nearest to each centre of k-means, the best of ten starts, by scikit-learn.

    With l labels there are l + k clusters, and picks come from those without a label, larger ones
    first; gains are the sizes of the clusters, as shares of all rows. Picks depend on k: k = 5 is
    no prefix of k = 10. O(n (l + k) d) for each step of k-means, O(n d) memory; beyond 50,000 rows
    steps are on 4,096 of them. Where copies leave fewer clusters, these are gone through again;
    ties go to the lowest row.

    Parameters
    ----------
    embed : callable
        Features in which distances are measured; the inputs by default.

    Examples
    --------
    >>> import torch
    >>> pool = Pool(torch.tensor([[0.0], [1.0], [2.0], [20.0], [21.0]]))
    >>> KMeans()(pool, 2, generator=torch.Generator()).indices.tolist()
    [1, 3]
    """

    embed: Embed = flat
    learns: ClassVar[bool] = False
    ahead: ClassVar[bool] = False

    def __call__(self, pool: Pool, k: int, *, generator: Generator) -> Selection:
        """Return k picks, each with the share of rows in its cluster."""
        unlabelled(pool, k, generator)
        x, known, _ = points_of(self.embed, pool)
        cell, centres = clustered(x, len(known) + k, seed_from(generator))

        def score(rows: Int[np.ndarray, " m"], name: int) -> Float[np.ndarray, " m"]:
            return -np.square(x.numpy()[rows] - centres[name]).sum(1)

        rows, _ = walked(cell, known, k, score)
        return Selection(rows, np.bincount(cell)[cell[rows]] / len(cell))
