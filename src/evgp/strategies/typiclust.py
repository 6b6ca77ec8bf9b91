"""TypiClust: the most typical row of each cluster, for the first labels.

Hacohen, Dekel & Weinshall, Active Learning on a Budget: Opposite Strategies Suit High and Low
Budgets, ICML 2022.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int
from sklearn.neighbors import NearestNeighbors
from torch import Generator, Tensor

from evgp._checks import integer, keep
from evgp.pool import Pool, Selection
from evgp.strategies._cells import clustered, points_of, walked
from evgp.strategies._trained import seed_from
from evgp.strategies.diversity import Embed, flat
from evgp.strategies.strategy import unlabelled

_EPS = 1e-7  # as in scikit-activeml: copies have no distance


@dataclass(frozen=True)
class TypiClust:
    r"""One row from each of l + k clusters that has no label yet, larger clusters first.

    l is the number of labels; clusters are by k-means with ten starts. The row taken is the one of
    largest typicality, the inverse of its mean distance to its nearest `neighbours` in the cluster;
    typicalities are the gains. Where clusters are fewer than picks they are gone through again, as
    the authors do. Picks depend on k: k = 5 is no prefix of k = 10.

    O(n (l + k) d) for each step of k-means, and O(s^2 d) for the neighbours in a cluster of s rows;
    O(n d) memory. Ties go to the lowest row.

    Parameters
    ----------
    neighbours : int
        Number of rows over which typicality is a mean.
    most : int
        Largest number of clusters.
    least : int
        Smaller clusters are left for the end.
    embed : callable
        Features in which distances are measured; the inputs by default.

    Examples
    --------
    >>> import torch
    >>> pool = Pool(torch.tensor([[0.0], [1.0], [2.0], [20.0], [21.0], [24.0], [20.5]]))
    >>> TypiClust(least=1)(pool, 2, generator=torch.Generator()).indices.tolist()
    [4, 1]
    """

    neighbours: int = 20
    most: int = 500
    least: int = 6
    embed: Embed = flat
    learns: ClassVar[bool] = False
    ahead: ClassVar[bool] = False

    def __post_init__(self) -> None:
        keep(self, neighbours=integer(self.neighbours, "neighbours", 1))
        keep(self, most=integer(self.most, "most", 1), least=integer(self.least, "least", 1))

    def __call__(self, pool: Pool, k: int, *, generator: Generator) -> Selection:
        """Return k picks, each with its typicality."""
        unlabelled(pool, k, generator)
        x, known, unit = points_of(self.embed, pool)
        cell, _ = clustered(x, min(len(known) + k, self.most), seed_from(generator))
        rows, gains = self.walk(x, cell, known, k)
        return Selection(rows, gains / unit)

    def walk(
        self, x: Float[Tensor, "n p"], cell: Int[np.ndarray, " n"], known: Int[Tensor, " l"], k: int
    ) -> tuple[Int[np.ndarray, " k"], Float[np.ndarray, " k"]]:
        """Return k rows and their typicalities, for given clusters."""

        def score(rows: Int[np.ndarray, " m"], _: int) -> Float[np.ndarray, " m"]:
            return typicality(x.numpy()[rows], self.neighbours)

        return walked(cell, known, k, score, least=self.least)


def typicality(x: Float[np.ndarray, "n p"], neighbours: int) -> Float[np.ndarray, " n"]:
    """One over the mean distance of each row to its nearest others; 1 for a row alone.

    >>> typicality(np.array([[0.0], [1.0], [3.0]]), 2).round(3).tolist()
    [0.5, 0.667, 0.4]
    """
    if len(x) == 1:
        return np.ones(1)
    count = min(neighbours, len(x) - 1)
    apart, _ = NearestNeighbors(n_neighbors=count + 1).fit(x).kneighbors(x)
    return count / (apart.sum(1) + _EPS)
