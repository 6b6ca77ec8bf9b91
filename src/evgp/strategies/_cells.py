"""Shared by distance-based strategies: the rows to compare, k-means, and walks through cells."""

import warnings
from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float, Int
from sklearn.cluster import KMeans as Clustering
from sklearn.cluster import MiniBatchKMeans
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from evgp._linalg import BLOCK, unit_for
from evgp.pool import Pool
from evgp.strategies.diversity import Embed, embedded

# Pools of more rows than this are clustered in batches of `BLOCK`.
LARGE = 50_000
_TIE = 1e-9
STARTS = 10  # with one start k-means and TypiClust are clearly worse


def points_of(embed: Embed, pool: Pool) -> tuple[Float[Tensor, "r p"], Int[Tensor, " l"], float]:
    """Return the rows of the pool followed by outside labelled points, which of them are labelled,
    and their unit.

    >>> pool = Pool(torch.eye(2), labelled=torch.tensor([1]), x_labelled=torch.ones(1, 2))
    >>> points_of(lambda x: x, pool)[1].tolist()
    [1, 2]
    """
    x = embedded(embed, pool.x)
    if pool.x_labelled is not None:
        x = torch.cat([x, embedded(embed, pool.x_labelled)])
    unit = unit_for(x)
    return x / unit, torch.cat([pool.labelled, torch.arange(len(pool), len(x))]), unit


def clustered(
    x: Float[Tensor, "n p"], count: int, seed: int
) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, "c p"]]:
    """The cell of each row, and the centres, by k-means with ten starts.

    Copies may leave fewer cells than `count`. O(n count p) for each step of a start; beyond 50,000
    rows by steps on 4,096 of them.

    >>> cell, centres = clustered(torch.tensor([[0.0], [1.0], [9.0]]).double(), 2, 0)
    >>> sorted(centres[:, 0].tolist()), bool(cell[0] == cell[1])
    ([0.5, 9.0], True)
    """
    rows = x.numpy()
    if count >= len(rows):
        return np.arange(len(rows)), rows
    kind = MiniBatchKMeans if len(rows) > LARGE else Clustering
    more = {"batch_size": BLOCK} if len(rows) > LARGE else {}
    with warnings.catch_warnings():  # on copies: fewer cells than asked for
        warnings.simplefilter("ignore", ConvergenceWarning)
        clustering = kind(count, n_init=STARTS, random_state=seed, **more).fit(rows)
    return clustering.labels_.astype(np.int64), clustering.cluster_centers_


def lowest(scores: Float[np.ndarray, " n"]) -> int:
    """The first row whose score equals the largest, up to rounding.

    Ties are common: two rows that cover each other, or share a cell, are equally good.

    >>> lowest(np.array([0.1, 0.3, 0.1 + 0.2]))
    1
    """
    most = float(scores.max())
    return int((scores >= most - _TIE * abs(most)).argmax())


def walked(
    cell: Int[np.ndarray, " n"],
    known: Int[Tensor, " l"],
    k: int,
    score: Callable[[Int[np.ndarray, " m"], int], Float[np.ndarray, " m"]],
    *,
    least: int = 1,
) -> tuple[Int[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Return k rows, the best of each cell in turn: cells without labels first, larger ones first.
    `score` returns the scores of a cell's remaining rows. After the last cell, the walk starts
    over. Cells with fewer than `least` rows are used once the others are empty. Ties go to the
    lowest row.

    >>> rows, gains = walked(np.array([0, 1, 1]), torch.tensor([1]), 2, lambda rows, _: 1.0 * rows)
    >>> rows.tolist()
    [0, 2]
    """
    names, first, size = np.unique(cell, return_index=True, return_counts=True)
    labelled = np.bincount(np.searchsorted(names, cell[known.numpy()]), minlength=len(names))
    order = names[np.lexsort((first, -size, labelled))]
    sizes = dict(zip(names.tolist(), size.tolist(), strict=True))
    taken = np.zeros(len(cell), dtype=bool)
    taken[known.numpy()] = True
    rows: list[int] = []
    gains: list[float] = []
    large = [name for name in order.tolist() if sizes[name] >= least]
    small = [name for name in order.tolist() if sizes[name] < least]
    for left in (large, small):
        while left and len(rows) < k:
            for name in left.copy():
                members = np.flatnonzero((cell == name) & ~taken)
                if len(members) == 0:
                    left.remove(name)
                elif len(rows) < k:
                    scores = score(members, name)
                    best = lowest(scores)
                    rows.append(int(members[best]))
                    gains.append(float(scores[best]))
                    taken[members[best]] = True
    return np.array(rows, dtype=np.int64), np.array(gains)
