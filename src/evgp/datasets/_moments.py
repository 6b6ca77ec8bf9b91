"""Mean and spread of columns, from parts that are merged."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from evgp.datasets._columns import Number


@dataclass(frozen=True, eq=False)
class Moments:
    r"""Count, mean, sum of squared deviations and range of the finite numbers of each column.

    Mean and spread count in units of $2^e$ and $4^e$, with $2^e$ near the largest magnitude, so
    that squares of huge or tiny numbers neither overflow nor vanish. The mean has a `rest` that a
    single float64 would round off: without it, means of parts that lie close together, far from
    zero, would differ by rounding only.

    >>> one, other = (Moments.of(np.array([part])) for part in ([1.0, 2.0, np.nan], [6.0]))
    >>> both = one.merge(other)
    >>> both.count, both.low, both.high, both.scale() * both.mean
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
    def of(cls, columns: Float[np.ndarray, "d n"]) -> "Moments":
        """Those of d columns, or channels, in two passes; what is not finite is left out."""
        valid = np.isfinite(columns)
        whole = bool(valid.all())
        low = np.min(columns, axis=1, initial=np.inf, where=valid)
        high = np.max(columns, axis=1, initial=-np.inf, where=valid)
        exponent = _exponent(low, high)
        # Column by column in memory, so that sums do not depend on how the columns came.
        y = np.divide(np.where(valid, columns, 0.0), np.ldexp(1.0, exponent)[:, None], order="C")
        count = valid.sum(axis=1)
        mean, rest = (_centred(y, count, valid, whole) for _ in range(2))
        spread = np.square(y, out=y).sum(axis=1)
        rising = np.asarray((columns[:, 1:] > columns[:, :-1]).all(axis=1))
        return cls(count, exponent, *_two_sum(mean, rest), spread, low, high, rising)

    def merge(self, other: "Moments") -> "Moments":
        """Those of both, where the other's rows follow.

        Chan, Golub and LeVeque, Algorithms for computing the sample variance, 1983.
        """
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        exponent = _exponent(low, high)
        one, two = (np.clip(part.exponent - exponent, -2200, 0) for part in (self, other))
        mean, rest = np.ldexp(self.mean, one), np.ldexp(self.rest, one)
        apart = (np.ldexp(other.mean, two) - mean) + (np.ldexp(other.rest, two) - rest)
        count = self.count + other.count
        share = other.count / np.maximum(count, 1)
        mean, lost = _two_sum(mean, apart * share)
        between = np.square(apart) * (self.count * share)
        inside = np.ldexp(self.spread, 2 * one) + np.ldexp(other.spread, 2 * two)
        rising = self.rising & other.rising & (self.high < other.low)
        return Moments(
            count, exponent, *_two_sum(mean, lost + rest), inside + between, low, high, rising
        )

    def numbers(self, names: Sequence[str], rows: int, scaled: bool) -> list[Number]:
        """The scaling of each column over all rows, where the mean stands for what is missing."""
        unit, fill = self.scale().tolist(), (self.scale() * self.mean).tolist()
        if not scaled:
            plain = zip(names, fill, strict=True)
            return [Number(name, 1.0, 0.0, 1.0, middle, scaled=False) for name, middle in plain]
        parts = (self.mean.tolist(), self.deviation(rows).tolist(), fill)
        return [Number(*one) for one in zip(names, unit, *parts, strict=True)]

    def scale(self) -> Float[np.ndarray, " d"]:
        """The unit that mean and deviation count in."""
        return np.ldexp(1.0, self.exponent)

    def deviation(self, rows: int) -> Float[np.ndarray, " d"]:
        """The standard deviation over as many rows, in that unit."""
        return np.sqrt(self.spread / rows)


def _exponent(low: Float[np.ndarray, " d"], high: Float[np.ndarray, " d"]) -> Int[np.ndarray, " d"]:
    """Of the power of two at or below the largest magnitude; 0 without any number."""
    largest = np.where(low <= high, np.maximum(np.abs(low), np.abs(high)), 1.0)
    return np.frexp(largest)[1].astype(np.int64) - 1


def _centred(
    y: Float[np.ndarray, "d n"],
    count: Int[np.ndarray, " d"],
    valid: Bool[np.ndarray, "d n"],
    whole: bool,
) -> Float[np.ndarray, " d"]:
    """Take the mean of each column from its valid numbers, in place; what was taken."""
    mean = y.sum(axis=1) / np.maximum(count, 1)
    y -= mean[:, None]
    if not whole:
        y[~valid] = 0.0
    return mean


def _two_sum(
    a: Float[np.ndarray, " d"], b: Float[np.ndarray, " d"]
) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, " d"]]:
    """A sum and what its rounding lost (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)
