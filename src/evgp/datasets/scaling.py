"""How numbers are scaled, so that distances between rows mean something.

- `columns`: every column to mean 0 and standard deviation 1;
- `smooth`: the same, then $u / \\sqrt{1 + (u / 3)^2}$, so that heavy tails and bad outliers do not
  decide which rows look far apart;
- `common`: every column to mean 0, all divided by one number, for columns that share a unit, such
  as pixels: a pixel that is nearly always 0 must not count as much as the others;
- `unit` and `smooth-unit`: as `common` and `smooth`, then every row to length $\\sqrt d$, for
  embeddings, pixels and other tables of many columns;
- `auto`: chosen from the columns' standard deviations alone, so it does not depend on the order of
  rows, nor on how a pool is split.

Everything is learnt on the pool and applied to test, labelled and streamed points.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from evgp._checks import flag, one_of
from evgp.errors import EvgpError, PoolError

SCALES = ("auto", "columns", "smooth", "smooth-unit", "common", "unit")
# Columns share a unit if the largest standard deviation is less than this many times the median
# one, or, of few columns, the smallest one: a small column may then matter by itself.
_SHARED = 7.0
_MANY = 32  # columns; rows of so many are scaled to equal length
_CLIP = 3.0  # standard deviations that a smooth scaling never exceeds


def scale_of(
    scale: object,
    standardise: object = None,
    error: type[EvgpError] = PoolError,
) -> str | None:
    """Return a checked scale; `standardise=` is what `scale=` was called before.

    >>> scale_of("auto"), scale_of(None)
    ('auto', None)
    """
    if standardise is not None:
        new = "columns" if flag(standardise, "standardise", error=error) else None
        warnings.warn(
            f"standardise={standardise} is now scale={new!r}", DeprecationWarning, stacklevel=4
        )
        return new
    return None if scale is None else one_of(scale, "scale", SCALES, error=error)


def described(scale: str | None) -> str:
    """Describe a scaling in a few words.

    >>> described("unit")
    'one scale for all columns, then rows of equal length'
    """
    return {
        "columns": "each column to standard deviation 1",
        "smooth": "each column to standard deviation 1, far values pulled in",
        "smooth-unit": "each column to standard deviation 1, far values pulled in, then rows of "
        "equal length",
        "common": "one scale for all columns",
        "unit": "one scale for all columns, then rows of equal length",
    }.get(scale or "", "none")


@dataclass(frozen=True, eq=False)
class Scaling:
    r"""The scaling of each column, $(x / s - \mu) / \sigma$, and what happens to rows after it.

    `std` are the columns' own standard deviations, which `divisor` ($\sigma$) need not be; `flat`
    columns are constant up to rounding.
    """

    kind: str | None
    unit: Float[np.ndarray, " d"]
    mean: Float[np.ndarray, " d"]
    std: Float[np.ndarray, " d"]
    divisor: Float[np.ndarray, " d"]
    flat: Bool[np.ndarray, " d"]

    @classmethod
    def of(
        cls,
        scale: str | None,
        *,
        exponent: Int[np.ndarray, " d"],
        mean: Float[np.ndarray, " d"],
        std: Float[np.ndarray, " d"],
        flat: Bool[np.ndarray, " d"],
        each: int = 1,
    ) -> "Scaling":
        """Choose the scaling of columns with these moments, in units of 2^exponent.

        `each` is the number of features of a column: more than one for a channel of images.
        """
        unit = np.ldexp(1.0, exponent)
        if scale is None:
            ones = np.ones_like(unit)
            return cls(None, ones, np.zeros_like(unit), ones, ones, flat)
        # Standard deviations relative to the largest unit, as they may not fit into a float64.
        top = int(exponent[~flat].max(initial=-(2**31))) if not flat.all() else 0
        sizes = np.ldexp(std, np.clip(exponent - top, -2200, 0))[~flat]
        kind = _chosen(sizes, each) if scale == "auto" else scale
        divisor = std
        if kind in ("common", "unit") and len(sizes):
            common = float(np.sqrt(np.square(sizes).mean()))
            with np.errstate(over="ignore"):
                divisor = np.ldexp(common, np.clip(top - exponent, -2200, 2200))
        return cls(kind, unit, mean, std, divisor, flat)


def _chosen(sizes: Float[np.ndarray, " d"], each: int) -> str:
    """Choose a scaling by the standard deviations of all columns that are not constant."""
    count = len(sizes) * each
    if len(sizes) == 0:
        return "columns"
    typical = float(np.median(sizes) if count >= _MANY else sizes.min())
    shared = float(sizes.max()) < _SHARED * typical
    if count >= _MANY:
        return "unit" if shared else "smooth-unit"
    return "common" if shared else "smooth"


def shape_rows_(x: Float[np.ndarray, "n d"], kind: str | None) -> None:
    """Do in place what follows the scaling of single columns: row by row, so shards agree.

    >>> x = np.array([[3.0, 4.0], [0.0, 0.0], [30.0, 0.0]])
    >>> shape_rows_(x, "unit")
    >>> np.square(x).sum(1)
    array([2., 0., 2.])
    """
    if kind in ("smooth", "smooth-unit"):
        np.divide(x, np.hypot(1.0, x / _CLIP), out=x)
    if kind in ("unit", "smooth-unit"):
        largest = np.abs(x).max(axis=1, initial=0.0, keepdims=True)
        x /= np.where(largest > 0, largest, 1.0)  # first, so that squares cannot overflow
        length = np.sqrt(np.square(x).sum(axis=1, keepdims=True))
        x *= x.shape[1] ** 0.5 / np.where(length > 0, length, 1.0)
