"""Linear algebra: tiles, safe factorisation, sums in pairs, arrays in and out."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from math import frexp, ldexp
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from evgp._checks import Error, numbers
from evgp._typing import AnyArray, Array
from evgp.errors import NotPositiveDefinite, NumericalWarning, PoolError

# Jitter is a fraction of the mean diagonal, so that the scale of a kernel does not matter.
JITTER = 1e-10
_TRIES = 6
# Sums over rows run over blocks of this many, whatever the shards, chunks or threads.
BLOCK = 4096
# A column that varies by less than this share of its largest magnitude is constant up to rounding.
CONSTANT = 1e-12

T = TypeVar("T")


def as_tensor(x: Array, name: str = "the inputs", *, error: Error = PoolError) -> Tensor:
    """A tensor view of NumPy or torch input; integers become float64.

    >>> as_tensor(np.array([1, 2])).dtype
    torch.float64
    """
    tensor = numbers(x, name, error=error)
    wide = tensor.dtype in (torch.float32, torch.float64)
    return tensor if wide else tensor.to(torch.float64)


def like(example: AnyArray, result: Tensor) -> AnyArray:
    """The result as a NumPy array if the example is one."""
    if isinstance(example, Tensor):
        return result
    return result.numpy()


def tiles(n: int, m: int, rows: int = 512, columns: int = 1024) -> Iterator[tuple[slice, slice]]:
    """Row and column slices that cover an n x m matrix once.

    >>> [(r.stop - r.start, c.stop - c.start) for r, c in tiles(3, 5, 2, 4)]
    [(2, 4), (2, 1), (1, 4), (1, 1)]
    """
    for top in range(0, n, rows):
        for left in range(0, m, columns):
            yield slice(top, min(top + rows, n)), slice(left, min(left + columns, m))


def mirror_(a: Float[Tensor, "n n"]) -> None:
    """Copy the part above the diagonal to the part below it, block by block."""
    for start in range(0, len(a), 1024):
        stop = start + 1024
        block = a[start:stop, start:stop]
        block.copy_(block.triu() + block.triu(1).T)
        a[stop:, start:stop] = a[start:stop, stop:].T


def safe_cholesky(
    a: Float[Tensor, "l l"], noise: float | Float[Tensor, " l"] | None = None
) -> Float[Tensor, "l l"]:
    r"""Lower Cholesky factor of a matrix plus noise, with jitter raised tenfold until it succeeds.

    Jitter starts at $10^{-10}$ of the mean diagonal; a warning has its value. The matrix is not
    changed: it may belong to a kernel.

    >>> safe_cholesky(torch.eye(2, dtype=torch.float64), noise=3.0).tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """
    if noise is not None:
        a = a.clone()
        a.diagonal().add_(noise)
    if not bool(torch.isfinite(a).all()):
        raise NotPositiveDefinite(
            f"expected finite covariances, got {int((~torch.isfinite(a)).sum())} that are NaN or "
            "infinite; check the inputs for huge values, or standardise them"
        )
    factor, info = torch.linalg.cholesky_ex(a)
    if int(info) == 0:
        return factor
    scale = float(a.diagonal().mean())
    for attempt in range(_TRIES):
        jitter = JITTER * 10**attempt
        lifted = a.clone()
        lifted.diagonal().add_(jitter * scale)
        factor, info = torch.linalg.cholesky_ex(lifted)
        if int(info) == 0:
            warnings.warn(
                f"added jitter of {jitter:.0e} x the mean variance to factorise a covariance of "
                f"{a.shape[0]} points; raise noise to avoid it",
                NumericalWarning,
                stacklevel=2,
            )
            return factor
    raise NotPositiveDefinite(
        f"expected a positive definite covariance of {a.shape[0]} points, got one that fails even "
        f"with jitter {JITTER * 10 ** (_TRIES - 1):.0e}; raise noise, or check the kernel"
    )


def standardised(values: Float[Tensor, " n *d"]) -> Float[Tensor, " n *d"]:
    """Columns scaled to mean 0 and standard deviation 1, in float64.

    A column is divided by a power of two near its largest magnitude first, so that no square
    over- or underflows. One whose standard deviation is below 1e-12 of that magnitude counts as
    constant and becomes zeros.

    >>> x = torch.tensor([[2.0**900, 5.0], [3 * 2.0**900, 5.0]], dtype=torch.float64)
    >>> standardised(x).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    exponent = np.frexp(values.double().abs().amax(0).numpy())[1]
    unit = torch.as_tensor(np.ldexp(1.0, exponent - 1), dtype=torch.float64)
    inside = values.double() / unit
    mean = inside.mean(0)
    mean = mean + (inside - mean).mean(0)  # corrects the rounding of the first pass
    std = (inside - mean).square().mean(0).sqrt()
    constant = std <= CONSTANT * inside.abs().amax(0)
    scaled = (inside - mean) / torch.where(constant, 1.0, std)
    return torch.where(constant, 0.0, scaled)


def unit_for(*parts: Tensor) -> float:
    """A power of two near the largest magnitude if its square may overflow in float64, else 1.

    >>> unit_for(torch.tensor([3.0])), unit_for(torch.tensor([1e200], dtype=torch.float64)) > 1e199
    (1.0, True)
    """
    largest = max((float(part.abs().max()) for part in parts if part.numel()), default=0.0)
    exponent = frexp(largest)[1]
    return ldexp(1.0, exponent - 1) if largest > 0 and abs(exponent) > 300 else 1.0


def mirror_of(u: Float[Tensor, " k"]) -> Float[Tensor, " k"]:
    """The unit normal of the reflection that maps a unit vector to the last axis, up to sign.

    >>> u = torch.tensor([0.6, 0.8], dtype=torch.float64)
    >>> v = mirror_of(u)
    >>> (u - 2 * v * (v @ u)).round(decimals=9).abs().tolist()
    [0.0, 1.0]
    """
    mirror = u.clone()
    mirror[-1] += 1.0 if float(u[-1]) >= 0 else -1.0
    return mirror / mirror.norm()


def in_pairs(parts: Iterable[T], add: Callable[[T, T], T]) -> T:
    """The sum of parts, added in the order of a binary tree over their positions.

    Runs of 2^j parts that start at a multiple of 2^j are added separately, so that shards of
    2^j blocks may add theirs first, for the same sum to the last digit. Keeps O(log parts) of them.

    >>> in_pairs("abcdefg", lambda a, b: f"({a}{b})")
    '(((ab)(cd))((ef)g))'
    >>> in_pairs(["((ab)(cd))", "((ef)g)"], lambda a, b: f"({a}{b})")
    '(((ab)(cd))((ef)g))'
    """
    kept: list[tuple[int, T]] = []
    for part in parts:
        level, total = 0, part
        while kept and kept[-1][0] == level:
            level, total = level + 1, add(kept.pop()[1], total)
        kept.append((level, total))
    total = kept.pop()[1]
    while kept:
        total = add(kept.pop()[1], total)
    return total
