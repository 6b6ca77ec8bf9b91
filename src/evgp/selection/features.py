"""Features in place of a kernel, for pools whose matrix would be too large."""

from typing import cast

import numpy as np
import torch
from jaxtyping import Int, Shaped
from sklearn.cluster import KMeans, kmeans_plusplus
from torch import Tensor

from evgp._checks import can
from evgp._errors import PoolError
from evgp._linalg import unit_for
from evgp.kernels import EmpiricalNTK, Features, Inducing, Kernel, Raw, Sketch

P = 512
INDUCING = ("kmeans++", "kmeans", "entropy", "random")
# Inducing points are chosen among at most this many points and numbers, drawn at random.
_LOOKED_AT, _NUMBERS = 20_000, 1 << 23


def width_of(name: str) -> int | None:
    """The number of features that a name asks for; None for raw ones, which bring their own.

    >>> width_of("nystrom"), width_of("sketch-1024"), width_of("raw")
    (512, 1024, None)
    """
    kind, _, number = name.partition("-")
    right = kind in ("nystrom", "sketch") and (number == "" or number.isdecimal())
    if name == "raw" or not right or (number and int(number) < 1):
        if name == "raw":
            return None
        raise PoolError(
            f"expected features raw, nystrom, sketch, or as nystrom-512 with their number; got "
            f"{name!r}"
        )
    return int(number) if number else P


def features_named(
    name: str | Features, kernel: Kernel | None, x: Shaped[Tensor, " n *d"], seed: int
) -> Features:
    """The features of this name; objects pass."""
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
    """u points that stand for all: spread by k-means++, centres, of most entropy, or random.

    "entropy" takes the point of largest variance given those before it, under `kernel`. At most
    20,000 points, drawn at random, are looked at.

    >>> inducing_points(torch.eye(5), 3).shape
    torch.Size([3, 5])
    """
    if not 1 <= u <= len(x):
        raise PoolError(f"expected 1 to {len(x)} inducing points, one for each point; got {u}")
    if how not in INDUCING:
        raise PoolError(f"expected inducing points by {', '.join(INDUCING)}; got {how!r}")
    random = np.random.default_rng(seed)
    if len(x) > max(u, _LOOKED_AT):
        x = x[torch.from_numpy(looked_at(len(x), u, seed))]
    x = x[torch.from_numpy(fewer(len(x), x[0].numel(), u, seed))]
    if how == "random":
        return x[torch.from_numpy(np.sort(random.choice(len(x), u, replace=False)))]
    if how == "entropy":
        return x[_most_entropy(x, u, kernel)]
    unit = unit_for(x)
    flat = (x.double() / unit).reshape(len(x), -1).numpy()
    if how == "kmeans":
        made = KMeans(u, n_init=1, random_state=seed).fit(flat).cluster_centers_ * unit
        return torch.from_numpy(made).reshape(u, *x.shape[1:])
    _, rows = kmeans_plusplus(flat, u, random_state=seed)
    return x[torch.from_numpy(np.unique(rows))]  # fewer where points are copies of each other


def looked_at(n: int, u: int, seed: int) -> Int[np.ndarray, " r"]:
    """The rows of a pool that inducing points are chosen from, in order: 20,000 of more.

    >>> looked_at(3, 2, seed=0).tolist(), len(looked_at(10**9, 512, seed=0))
    ([0, 1, 2], 20000)
    """
    most = max(u, _LOOKED_AT)
    if n <= most:
        return np.arange(n)
    random = np.random.default_rng(seed)
    return np.sort(random.choice(n, most, replace=False, shuffle=False))


def fewer(n: int, width: int, u: int, seed: int) -> Int[np.ndarray, " r"]:
    """Of n points that are looked at, those that stay where points are wide.

    >>> len(fewer(20_000, 64, 512, seed=0)), len(fewer(20_000, 3072, 512, seed=0))
    (20000, 2730)
    """
    most = max(u, _NUMBERS // width)
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, most, replace=False, shuffle=False))


def _most_entropy(x: Shaped[Tensor, " n *d"], u: int, kernel: Kernel | None) -> Tensor:
    """Rows by pivoted Cholesky: O(n u) kernel values, O(n u²) time."""
    if kernel is None:
        raise PoolError("expected a kernel to judge entropy by, got none")
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
