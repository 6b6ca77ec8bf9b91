"""Mean and spread of columns, from parts that are merged."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from evgp.datasets._columns import Number


@dataclass(frozen=True, eq=False)
class Moments:
    r"""Count, mean, sum of squared deviations and range of each column.

    Mean and spread count in units of $2^e$ and $4^e$, with $2^e$ near the largest magnitude, so
    that squares of huge or tiny numbers neither overflow nor vanish. The mean has a `rest` that a
    single float64 would round off: without it, means of parts that lie close together, far from
    zero, would differ by rounding only.

    >>> one, other = (Moments.of(np.array(part)[:, None, None]) for part in ([1.0, 2.0], [6.0]))
    >>> both = one.merge(other)
    >>> both.count, both.low, both.high, both.scale() * both.mean
    (3, array([1.]), array([6.]), array([3.]))
    """

    count: int
    exponent: Int[np.ndarray, " d"]
    mean: Float[np.ndarray, " d"]
    rest: Float[np.ndarray, " d"]
    spread: Float[np.ndarray, " d"]
    low: Float[np.ndarray, " d"]
    high: Float[np.ndarray, " d"]
    rising: Bool[np.ndarray, " d"]

    @classmethod
    def none(cls, d: int) -> "Moments":
        """Those of no rows."""
        zero, far = np.zeros(d), np.full(d, np.inf)
        return cls(0, zero.astype(np.int64), zero, zero, zero, far, -far, zero == 0)

    @classmethod
    def of(cls, x: Float[np.ndarray, "n d s"]) -> "Moments":
        """Those of rows with d columns, or d channels of s numbers each, in two passes."""
        n, d, s = x.shape
        if n * s == 0:
            return cls.none(d)
        low, high = x.min(axis=(0, 2)), x.max(axis=(0, 2))
        exponent = _exponent(low, high)
        y = x / np.ldexp(1.0, exponent)[:, None]
        mean = y.mean(axis=(0, 2))
        y -= mean[:, None]
        rest = y.mean(axis=(0, 2))
        y -= rest[:, None]
        spread = np.square(y, out=y).sum(axis=(0, 2))
        rising = (x[1:, :, 0] > x[:-1, :, 0]).all(axis=0) & (s == 1)
        return cls(n * s, exponent, *_two_sum(mean, rest), spread, low, high, rising)

    def merge(self, other: "Moments") -> "Moments":
        """Those of both, where the other's rows follow.

        Chan, Golub and LeVeque, Algorithms for computing the sample variance, 1983.
        """
        if not (self.count and other.count):
            return self if self.count else other
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        exponent = _exponent(low, high)
        one, two = (np.clip(part.exponent - exponent, -2200, 0) for part in (self, other))
        mean, rest = np.ldexp(self.mean, one), np.ldexp(self.rest, one)
        apart = (np.ldexp(other.mean, two) - mean) + (np.ldexp(other.rest, two) - rest)
        count = self.count + other.count
        mean, lost = _two_sum(mean, apart * (other.count / count))
        between = np.square(apart) * (self.count * other.count / count)
        inside = np.ldexp(self.spread, 2 * one) + np.ldexp(other.spread, 2 * two)
        rising = self.rising & other.rising & (self.high < other.low)
        return Moments(
            count, exponent, *_two_sum(mean, lost + rest), inside + between, low, high, rising
        )

    def numbers(self, names: Sequence[str], scaled: bool) -> list[Number]:
        """The scaling of each column."""
        unit, fill = self.scale().tolist(), (self.scale() * self.mean).tolist()
        if not scaled:
            plain = zip(names, fill, strict=True)
            return [Number(name, 1.0, 0.0, 1.0, middle, scaled=False) for name, middle in plain]
        made = zip(names, unit, self.mean.tolist(), self.deviation().tolist(), fill, strict=True)
        return [Number(*one) for one in made]

    def scale(self) -> Float[np.ndarray, " d"]:
        """The unit that mean and deviation count in."""
        return np.ldexp(1.0, self.exponent)

    def deviation(self) -> Float[np.ndarray, " d"]:
        """The standard deviation, in that unit."""
        return np.sqrt(self.spread / self.count)


def _exponent(low: Float[np.ndarray, " d"], high: Float[np.ndarray, " d"]) -> Int[np.ndarray, " d"]:
    """Of the power of two at or below the largest magnitude."""
    return np.frexp(np.maximum(np.abs(low), np.abs(high)))[1].astype(np.int64) - 1


def _two_sum(
    a: Float[np.ndarray, " d"], b: Float[np.ndarray, " d"]
) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, " d"]]:
    """A sum and what its rounding lost (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)
