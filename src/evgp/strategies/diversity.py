"""Diverse picks, by distances of inputs or features: k-means++ and k-centre.

Arthur & Vassilvitskii, k-means++: The Advantages of Careful Seeding, SODA 2007; Sener & Savarese,
Active Learning for Convolutional Neural Networks: A Core-Set Approach, ICLR 2018.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Shaped
from sklearn.cluster import kmeans_plusplus
from torch import Generator, Tensor, nn

from evgp._checks import integer, keep, seed_of, shown
from evgp._linalg import BLOCK, unit_for
from evgp.errors import BadArgument, PoolError
from evgp.kernels import EmpiricalNTK, Sketch
from evgp.pool import Pool, Selection
from evgp.strategies.strategy import unlabelled

Embed = Callable[[Shaped[Tensor, " n *d"]], Float[Tensor, "n p"]]


def flat(x: Shaped[Tensor, " n *d"]) -> Float[Tensor, "n p"]:
    """The inputs as they are, one row per point."""
    if x.ndim < 2:
        raise BadArgument.of(PoolError)(
            "x", "of shape (rows, features)", str(tuple(x.shape)), "reshape one column to (-1, 1)"
        )
    return x.flatten(1).double()


def embedded(embed: Embed, x: Shaped[Tensor, " n *d"]) -> Float[Tensor, "n p"]:
    """Points as rows of an embedding, checked."""
    if not callable(embed) or isinstance(embed, type):
        raise BadArgument.of(PoolError)("embed", "as a function of points", shown(embed))
    weights = next(embed.parameters(), None) if isinstance(embed, nn.Module) else None
    with torch.no_grad():
        points = embed(x if weights is None else x.to(weights))
    if not isinstance(points, Tensor) or points.ndim != 2 or len(points) != len(x):
        got = (
            f"{tuple(points.shape)} of {len(x)} rows"
            if isinstance(points, Tensor)
            else shown(points)
        )
        raise PoolError(f"expected an embedding of shape (rows, features), got {got}")
    points = points.double()
    if not bool(torch.isfinite(points).all()):
        raise PoolError("expected finite points, got NaN or inf; drop or impute them")
    return points


@dataclass(frozen=True)
class KMeansPlusPlus:
    """The seeds of k-means++, each drawn in proportion to its squared distance from earlier ones.

    As in the paper, `seed` fixes the whole order at the start: rounds take the next rows of
    one list of `most`, whatever is labelled. O(n d most log most), by scikit-learn.

    Parameters
    ----------
    most : int
        Length of the list.
    seed : int
    embed : callable
        Features in which distances are measured; the inputs by default.

    Examples
    --------
    >>> pool = Pool(torch.arange(6.0)[:, None])
    >>> picks = KMeansPlusPlus()(pool, 4, generator=torch.Generator()).indices
    >>> len(set(picks.tolist()))
    4
    """

    most: int = 1000
    seed: int = 0
    embed: Embed = flat
    learns: ClassVar[bool] = False
    ahead: ClassVar[bool] = True

    def __post_init__(self) -> None:
        keep(self, most=integer(self.most, "most", 1), seed=seed_of(self.seed))

    def __call__(self, pool: Pool, k: int, *, generator: Generator) -> Selection:
        """Return the next k rows of the list that are not labelled yet."""
        free = set(unlabelled(pool, k, generator).tolist())
        count = min(len(pool), max(self.most, k + len(pool.labelled)))
        x = embedded(self.embed, pool.x)
        _, order = kmeans_plusplus((x / unit_for(x)).numpy(), count, random_state=self.seed)
        # Copies of a point may be drawn twice: once is enough, and the remaining rows come last.
        rows = [row for row in dict.fromkeys(order.tolist()) if row in free]
        if len(rows) < k:
            seen = set(rows)
            rows += [row for row in sorted(free) if row not in seen]
        return Selection(np.array(rows[:k], dtype=np.int64), np.zeros(k))


@dataclass(frozen=True)
class CoreSet:
    """Greedy k-centre: always the point farthest from all labelled and picked points.

    Without labels the first pick is random. Gains are the distances covered. O(n k d) time and
    O(n d) memory; ties go to the lowest row.

    Parameters
    ----------
    embed : callable
        Features in which distances are measured; the inputs by default.

    Examples
    --------
    >>> pool = Pool(torch.tensor([[0.0], [1.0], [5.0]]), labelled=torch.tensor([0]))
    >>> CoreSet()(pool, 2, generator=torch.Generator()).indices.tolist()
    [2, 1]
    """

    embed: Embed = flat
    learns: ClassVar[bool] = False
    ahead: ClassVar[bool] = True

    def __call__(self, pool: Pool, k: int, *, generator: Generator) -> Selection:
        """Return k picks, each with its distance from the points before it."""
        free = unlabelled(pool, k, generator)
        x = embedded(self.embed, pool.x)
        known = x[pool.labelled]
        if pool.x_labelled is not None:
            known = torch.cat([known, embedded(self.embed, pool.x_labelled)])
        unit = unit_for(x, known)
        x, known = x / unit, known / unit
        nearest = torch.full((len(x),), torch.inf, dtype=torch.float64)
        for block in torch.split(known, BLOCK) if len(known) else ():
            nearest = torch.minimum(nearest, torch.cdist(x, block).amin(1))
        taken = torch.ones(len(x), dtype=torch.bool)
        taken[free] = False
        rows: list[int] = []
        gains: list[float] = []
        for _ in range(k):
            if not len(known) and not rows:
                row, gain = int(free[torch.randint(len(free), (), generator=generator)]), 0.0
            else:
                row = int(torch.where(taken, -1.0, nearest).argmax())
                gain = float(nearest[row]) * unit
            rows.append(row)
            gains.append(gain)
            taken[row] = True
            nearest = torch.minimum(nearest, (x - x[row]).norm(dim=1))
        return Selection(np.array(rows), np.array(gains))


@dataclass(frozen=True)
class Gradients:
    """An `embed=` for strategies: p random features of the gradients of a network.

    Products of random signs, as in bmdal-reg. O(n p (inputs + outputs)) for each layer, on top of
    the network's own passes; n p memory.

    Parameters
    ----------
    kernel : EmpiricalNTK
    p : int
        Number of features.
    seed : int

    Examples
    --------
    >>> from evgp import mlp
    >>> Gradients(EmpiricalNTK(mlp(1, 16)), p=8)(torch.eye(3)).shape
    torch.Size([3, 8])
    """

    kernel: EmpiricalNTK
    p: int = 512
    seed: int = 0

    def __call__(self, x: Shaped[Tensor, " n *d"]) -> Float[Tensor, "n p"]:
        """The features, in float64."""
        with torch.enable_grad():  # embeddings are computed without
            return Sketch(self.kernel, self.p, self.seed, "kronecker").phi(x).detach().double()


def unit_rows(x: Float[Tensor, "n p"]) -> Float[Tensor, "n p"]:
    """Rows of norm one; rows of zeros stay.

    >>> unit_rows(torch.tensor([[3.0, 4.0], [0.0, 0.0]]).double()).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    norm = x.norm(dim=1, keepdim=True)
    return x / torch.where(norm > 0, norm, 1.0)
