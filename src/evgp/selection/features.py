"""Smaller problems for pools whose matrix would be too large: features, fewer test points."""

from dataclasses import replace
from typing import cast

import numpy as np
import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from evgp._checks import can, shown
from evgp._linalg import unit_for
from evgp.errors import BadArgument, PoolError, UnknownName
from evgp.kernels import EmpiricalNTK, Features, Inducing, Kernel, Raw, Sketch
from evgp.pool import Pool

# Default number of features, and the largest that is chosen automatically.
P, _MOST = 512, 4096
INDUCING = ("kmeans++", "kmeans", "entropy", "random")
# Inducing points are chosen among at most this many points and numbers, drawn at random.
_LOOKED_AT, _NUMBERS = 20_000, 1 << 23


def features_of(features: object) -> str | Features | None:
    """Return features given as an object or a name; names are resolved when they are computed.

    >>> features_of("nystrom-512")
    'nystrom-512'
    """
    if features is None or isinstance(features, str):
        return features
    if isinstance(features, Features) and not isinstance(features, type):
        return features
    raise BadArgument.of(PoolError)(
        "features",
        "as a name, such as raw or nystrom-512, or an object with phi and residual",
        shown(features),
    )


def rank_for(k: int) -> int:
    """Return the number of features for k picks: at least twice as many, a power of two.

    Features of rank p cannot represent the variance left after p picks, and represent it badly well
    before.

    >>> rank_for(20), rank_for(1000), rank_for(100_000)
    (512, 2048, 4096)
    """
    return min(_MOST, max(P, 1 << (2 * k - 1).bit_length()))


def width_of(name: str, default: int = P) -> int | None:
    """Return the number of features in a name; None for "raw", where the inputs are the features.

    >>> width_of("nystrom"), width_of("sketch-1024"), width_of("raw")
    (512, 1024, None)
    """
    kind, _, number = name.partition("-")
    right = kind in ("nystrom", "sketch") and (number == "" or number.isdecimal())
    if name == "raw" or not right or (number and int(number) < 1):
        if name == "raw":
            return None
        others = "or as nystrom-512 with their number"
        raise UnknownName.of(PoolError)("features", name, ("raw", "nystrom", "sketch"), others)
    return int(number) if number else default


def features_named(
    name: str | Features, kernel: Kernel | None, x: Shaped[Tensor, " n *d"], seed: int
) -> Features:
    """Return the features of this name; an object is returned unchanged."""
    if not isinstance(name, str):
        return name
    p = width_of(name)
    if p is None:
        return Raw()
    assert kernel is not None
    if name.startswith("sketch"):
        if not can(kernel, "gradients"):
            raise PoolError(
                "expected a torch module as network for a sketch, got a kernel without gradients; "
                "use nystrom"
            )
        return Sketch(cast(EmpiricalNTK, kernel), p, seed)
    return Inducing(kernel, inducing_points(x, min(p, len(x)), seed=seed))


def inducing_points(
    x: Shaped[Tensor, " n *d"],
    u: int,
    how: str = "kmeans++",
    *,
    seed: int = 0,
    kernel: Kernel | None = None,
) -> Shaped[Tensor, " u *d"]:
    """Choose u inducing points by k-means++ seeding, as k-means centres, by entropy, or at random.

    "entropy" repeatedly takes the point of largest variance given the previous ones, under
    `kernel`. The points are chosen from at most 20,000, drawn at random.

    >>> inducing_points(torch.eye(5), 3).shape
    torch.Size([3, 5])
    """
    if not 1 <= u <= len(x):
        bounds = f"from 1 to {len(x)}, at most one per point"
        raise BadArgument.of(PoolError)("the number of inducing points", bounds, str(u))
    if how not in INDUCING:
        raise UnknownName.of(PoolError)("a way to choose inducing points", how, tuple(INDUCING))
    random = np.random.default_rng(seed)
    if len(x) > max(u, _LOOKED_AT):
        x = x[torch.from_numpy(looked_at(len(x), u, seed))]
    x = x[torch.from_numpy(fewer(len(x), x[0].numel(), u, seed))]
    if how == "random":
        return x[torch.from_numpy(np.sort(random.choice(len(x), u, replace=False)))]
    if how == "entropy":
        return x[_most_entropy(x, u, kernel)]
    from sklearn.cluster import KMeans, kmeans_plusplus  # which takes seconds to import

    unit = unit_for(x)
    flat = (x.double() / unit).reshape(len(x), -1).numpy()
    if how == "kmeans":
        centres = KMeans(u, n_init=1, random_state=seed).fit(flat).cluster_centers_ * unit
        return torch.from_numpy(centres).reshape(u, *x.shape[1:])
    _, rows = kmeans_plusplus(flat, u, random_state=seed)
    return x[torch.from_numpy(np.unique(rows))]  # fewer than u if points are duplicates


def looked_at(n: int, u: int, seed: int) -> Int[np.ndarray, " r"]:
    """Draw the rows of a pool from which inducing points are chosen, sorted: at most 20,000.

    >>> looked_at(3, 2, seed=0).tolist(), len(looked_at(10**9, 512, seed=0))
    ([0, 1, 2], 20000)
    """
    most = max(u, _LOOKED_AT)
    if n <= most:
        return np.arange(n)
    random = np.random.default_rng(seed)
    return np.sort(random.choice(n, most, replace=False, shuffle=False))


def fewer(n: int, width: int, u: int, seed: int) -> Int[np.ndarray, " r"]:
    """Draw fewer of n sampled points if the points are so wide that they take too much memory.

    >>> len(fewer(20_000, 64, 512, seed=0)), len(fewer(20_000, 3072, 512, seed=0))
    (20000, 2730)
    """
    most = max(u, _NUMBERS // width)
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, most, replace=False, shuffle=False))


def _most_entropy(x: Shaped[Tensor, " n *d"], u: int, kernel: Kernel | None) -> Tensor:
    """Choose rows by pivoted Cholesky decomposition: O(n u) kernel values, O(n u²) time."""
    if kernel is None:
        raise PoolError("expected a kernel to compute the entropy, got none")
    left = kernel.diag(x).double().clone()
    columns = left.new_empty(0, len(x))
    rows: list[int] = []
    for _ in range(u):
        row = int(left.argmax())
        if float(left[row]) <= 0:
            break
        column = kernel(x[row : row + 1], x)[0].double()
        column = (column - columns[:, row] @ columns) / left[row].sqrt()
        left = (left - column.square()).clamp(min=0)
        left[[*rows, row]] = 0
        columns = torch.cat([columns, column[None]])
        rows.append(row)
    return torch.tensor(sorted(rows))


def thinned(pool: Pool, points: int, seed: int) -> Pool:
    """Reduce the test points to a few, spread out by k-means++ and weighted by the points around
    them.

    k-means++ prefers remote points, so each point that is kept carries the weight of all points
    that are nearest to it. Time O(n m d) for m of n test points in d dimensions.
    """
    x = pool.test_points()
    if points >= len(x):
        return pool
    from sklearn.cluster import kmeans_plusplus  # which takes seconds to import
    from sklearn.metrics import pairwise_distances_argmin

    weights = pool.test_weights()
    flat = (x.double() / unit_for(x)).reshape(len(x), -1).numpy()
    _, centres = kmeans_plusplus(flat, points, random_state=seed, sample_weight=weights.numpy())
    kept = np.unique(centres)
    nearest = torch.from_numpy(pairwise_distances_argmin(flat, flat[kept]))
    part = weights.new_zeros(len(kept)).index_add_(0, nearest, weights)
    rows = torch.from_numpy(kept)
    if pool.x_test is None:
        return replace(pool, test=rows if pool.test is None else pool.test[rows], weights=part)
    return replace(pool, x_test=x[rows], weights=part)
