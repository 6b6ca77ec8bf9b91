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
from dataclasses import dataclass, fields

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
    default: str = "auto",
    error: type[EvgpError] = PoolError,
) -> str | None:
    """Return a checked scale, None for "none"; `standardise=` is its former name.

    >>> scale_of("auto"), scale_of(None), scale_of("none")
    ('auto', None, None)
    """
    if standardise is not None:
        new = "columns" if flag(standardise, "standardise", error=error) else None
        if not (isinstance(scale, str) and scale == default):
            raise error("expected scale= or standardise=, its former name, got both; pass scale=")
        warnings.warn(
            f"standardise={standardise} is now scale={new!r}", DeprecationWarning, stacklevel=4
        )
        return new
    if scale is not None:
        scale = one_of(scale, "scale", (*SCALES, "none"), error=error)
    return None if scale == "none" else scale


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
        "auto": "chosen by the columns of each pool when it is read",
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


@dataclass(frozen=True, eq=False)
class ColumnMoments:
    r"""Count, mean, sum of squared deviations and range of the finite numbers of each column.

    Mean and spread are in units of $2^e$ and $4^e$, with $2^e$ near the largest magnitude, so that
    squares of huge or tiny numbers neither overflow nor vanish. The mean has a `rest` that a single
    float64 would round off: without it, the difference of two close means that are far from zero
    would be rounding error only.

    >>> a, b = (ColumnMoments.of(np.array([part])) for part in ([1.0, 2.0, np.nan], [6.0]))
    >>> both = a.merge(b)
    >>> both.count, both.low, both.high, np.ldexp(both.mean, both.exponent)
    (array([3]), array([1.]), array([6.]), array([3.]))
    """

    count: Int[np.ndarray, " d"]
    exponent: Int[np.ndarray, " d"]
    mean: Float[np.ndarray, " d"]
    rest: Float[np.ndarray, " d"]
    spread: Float[np.ndarray, " d"]
    low: Float[np.ndarray, " d"]
    high: Float[np.ndarray, " d"]
    rising: Bool[np.ndarray, " d"]

    @classmethod
    def of(cls, columns: Float[np.ndarray, "d n"]) -> "ColumnMoments":
        """Compute the moments of d columns, or channels, in two passes, over finite numbers."""
        valid = np.isfinite(columns)
        whole = bool(valid.all())
        low = np.min(columns, axis=1, initial=np.inf, where=valid)
        high = np.max(columns, axis=1, initial=-np.inf, where=valid)
        exponent = _exponent(low, high)
        # C order, so that sums do not depend on the memory layout of the input.
        y = np.divide(np.where(valid, columns, 0.0), np.ldexp(1.0, exponent)[:, None], order="C")
        count = valid.sum(axis=1)
        means = []
        for _ in range(2):  # the second mean is what rounding left of the first
            means.append(y.sum(axis=1) / np.maximum(count, 1))
            y -= means[-1][:, None]
            if not whole:
                y[~valid] = 0.0
        spread = np.square(y, out=y).sum(axis=1)
        rising = np.asarray((columns[:, 1:] > columns[:, :-1]).all(axis=1))
        return cls(count, exponent, *_two_sum(*means), spread, low, high, rising)

    def merge(self, other: "ColumnMoments") -> "ColumnMoments":
        """Return the moments of both parts; the rows of `other` follow those of this part.

        Chan, Golub and LeVeque, Algorithms for computing the sample variance, 1983.
        """
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        exponent = _exponent(low, high)
        shift1, shift2 = (np.clip(part.exponent - exponent, -2200, 0) for part in (self, other))
        mean, rest = np.ldexp(self.mean, shift1), np.ldexp(self.rest, shift1)
        apart = (np.ldexp(other.mean, shift2) - mean) + (np.ldexp(other.rest, shift2) - rest)
        count = self.count + other.count
        share = other.count / np.maximum(count, 1)
        mean, lost = _two_sum(mean, apart * share)
        between = np.square(apart) * (self.count * share)
        inside = np.ldexp(self.spread, 2 * shift1) + np.ldexp(other.spread, 2 * shift2)
        rising = self.rising & other.rising & (self.high < other.low)
        return ColumnMoments(
            count, exponent, *_two_sum(mean, lost + rest), inside + between, low, high, rising
        )

    def share(self) -> Float[np.ndarray, " d"]:
        """Return the largest share of each column's variance that a single row may have.

        >>> ColumnMoments.of(np.array([[1.0, 1.0, 1.0, 5.0]])).share()
        array([0.75])
        """
        unit = np.ldexp(1.0, self.exponent)
        ends = np.stack([self.low, self.high]) / unit - self.mean
        return np.square(ends).max(axis=0) / np.maximum(self.spread, np.finfo(float).tiny)

    def at(self, places: Int[np.ndarray, " p"]) -> "ColumnMoments":
        """Return the moments of some of the columns."""
        return ColumnMoments(*(getattr(self, part.name)[places] for part in fields(self)))

    def scaling(self, rows: int, scale: str | None, each: int = 1) -> "Scaling":
        """Return how to scale columns of so many rows, with these moments.

        Standard deviations are over all rows, with missing values replaced by the mean. A column is
        constant if it is so up to rounding. `each` is the number of features of a column: more than
        one for a channel of images.
        """
        exponent, unit, std = (
            self.exponent,
            np.ldexp(1.0, self.exponent),
            np.sqrt(self.spread / rows),
        )
        flat = (self.low >= self.high) | (std <= 8 * np.finfo(float).eps)
        if scale is None:
            ones = np.ones_like(unit)
            return Scaling(None, ones, np.zeros_like(unit), ones, ones, flat)
        # Standard deviations relative to the largest unit, as they may not fit into a float64.
        top = int(exponent[~flat].max(initial=-(2**31))) if not flat.all() else 0
        sizes = np.ldexp(std, np.clip(exponent - top, -2200, 0))[~flat]
        kind = scale
        if scale == "auto" and len(sizes) == 0:
            kind = "columns"
        elif scale == "auto":
            many = len(sizes) * each >= _MANY
            typical = float(np.median(sizes) if many else sizes.min())
            shared = float(sizes.max()) < _SHARED * typical
            kind = ("unit" if many else "common") if shared else "smooth-unit" if many else "smooth"
        divisor = std
        if kind in ("common", "unit") and len(sizes):
            common = float(np.sqrt(np.square(sizes).mean()))
            with np.errstate(over="ignore"):
                divisor = np.ldexp(common, np.clip(top - exponent, -2200, 2200))
        return Scaling(kind, unit, self.mean, std, divisor, flat)


def _exponent(low: Float[np.ndarray, " d"], high: Float[np.ndarray, " d"]) -> Int[np.ndarray, " d"]:
    """Return the exponent of the power of two at or below the largest magnitude; 0 if empty."""
    largest = np.where(low <= high, np.maximum(np.abs(low), np.abs(high)), 1.0)
    return np.frexp(largest)[1].astype(np.int64) - 1


def _two_sum(
    a: Float[np.ndarray, " d"], b: Float[np.ndarray, " d"]
) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, " d"]]:
    """Return a sum and its rounding error (Knuth's two-sum)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


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
