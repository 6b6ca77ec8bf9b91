"""How one column becomes numbers: scaled, or one 0/1 column for each category."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Float, Int, Shaped

_DAY = 86_400.0
_A_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


@dataclass(frozen=True)
class Number:
    r"""A column of numbers or times, $(x / s - \mu) / \sigma$ with the pool's values.

    The scale $s$ is a power of two near the largest magnitude in the pool, so that squares of huge
    or tiny numbers neither overflow nor vanish, and dividing by it rounds nothing.
    """

    name: str
    scale: float
    mean: float
    std: float
    fill: float
    scaled: bool = True

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the columns it becomes."""
        return (self.name,)

    def encode(self, values: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n 1"]:
        """The scaled column."""
        return ((values / self.scale - self.mean) / self.std)[:, None]


@dataclass(frozen=True)
class Category:
    """A column of words, as one 0/1 column for each word the pool knows.

    `written` says that the words stand in the file as they are, unlike true and false.
    """

    name: str
    values: tuple[str, ...]
    fill: str
    written: bool = True

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the columns it becomes."""
        return tuple(f"{self.name}={value}" for value in self.values)

    def encode(self, codes: Int[np.ndarray, " n"]) -> Float[np.ndarray, "n d"]:
        """Rows with a single one, or none where the word is unknown (-1)."""
        return (codes[:, None] == np.arange(len(self.values))).astype(np.float64)

    def codes(self, words: pa.ChunkedArray) -> Int[np.ndarray, " n"]:
        """Position of each word among those the pool knows, or -1; empty cells are filled."""
        known = pa.array(self.values, pa.string())
        parts = [np.empty(0, np.int64)]
        for chunk in words.chunks:
            values, rows = word_table(chunk)
            found = pc.fill_null(pc.index_in(values, value_set=known), -1).to_numpy()
            parts.append(np.append(found, self.values.index(self.fill))[rows])
        return np.concatenate(parts)


Column = Number | Category


def is_constant(column: Number, low: float, high: float) -> bool:
    """Whether the column, with values from low to high, says nothing: one, up to rounding."""
    return bool(low == high or column.std <= 8 * np.finfo(float).eps)


def is_number(kind: pa.DataType) -> bool:
    """Whether cells of this kind are plain numbers."""
    return (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_null(kind)
    )


def is_time(kind: pa.DataType) -> bool:
    """Whether cells of this kind are dates, times or durations."""
    return pa.types.is_temporal(kind) and not pa.types.is_interval(kind)


def is_category(kind: pa.DataType) -> bool:
    """Whether cells of this kind are words."""
    if pa.types.is_dictionary(kind):
        return is_category(kind.value_type) or is_number(kind.value_type)
    return (
        pa.types.is_boolean(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
    )


def to_numbers(column: pa.ChunkedArray) -> Float[np.ndarray, " n"]:
    """Numbers, dates (in seconds) or nothing, as float64 with NaN for missing cells."""
    kind = column.type
    if is_time(kind):
        return _seconds(column)
    if pa.types.is_float16(kind):
        column = column.cast(pa.float32())
    # Whole numbers beyond 2^53 are rounded to the nearest float64, which is what is wanted here.
    values = column.cast(pa.float64(), safe=False).to_numpy()
    return np.asarray(values, dtype=np.float64)


def to_words(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Words as strings, missing cells as nulls; a dictionary stays one, as words may be long."""
    if pa.types.is_dictionary(column.type):
        return column.cast(pa.dictionary(pa.int64(), pa.string()))
    return column.cast(pa.string())


def word_table(words: pa.Array) -> tuple[pa.Array, Int[np.ndarray, " n"]]:
    """Different words, and which of them is in each cell; -1 where a cell is empty.

    >>> values, rows = word_table(pa.array(["b", "a", None, "b"]))
    >>> values.to_pylist(), rows
    (['b', 'a'], array([ 0,  1, -1,  0]))
    """
    if not pa.types.is_dictionary(words.type):
        words = words.dictionary_encode()
    # Other libraries count words in unsigned numbers, which have no place for -1.
    rows = np.asarray(pc.fill_null(words.indices.cast(pa.int64()), -1).to_numpy(False))
    values = words.dictionary
    if values.null_count:  # the empty cell may be among the words, too
        empty = np.append(np.asarray(values.is_null()), True)
        rows = np.where(empty[rows], -1, rows)
    return values, rows


def to_objects(words: pa.ChunkedArray) -> Shaped[np.ndarray, " n"]:
    """Words as Python's strings, of which equal ones in a dictionary are one; None where empty."""
    parts = [np.empty(0, dtype=object)]
    for chunk in words.chunks:
        values, rows = word_table(chunk)
        parts.append(np.array([*values.to_pylist(), None], dtype=object)[rows])
    return np.concatenate(parts)


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column whose cells Python can hold: times, which may be too fine or too far, as text."""
    return column.cast(pa.string()) if pa.types.is_temporal(column.type) else column


def missing(column: pa.ChunkedArray) -> Bool[np.ndarray, " n"]:
    """Which cells are empty."""
    if pa.types.is_dictionary(column.type):
        rows = [word_table(chunk)[1] for chunk in column.chunks]
        return np.concatenate([np.empty(0, dtype=bool), *(part < 0 for part in rows)])
    return np.asarray(column.is_null().to_numpy(), dtype=bool)


def _seconds(column: pa.ChunkedArray) -> Float[np.ndarray, " n"]:
    """Times in seconds, the same for a time in every unit that it can be written in.

    >>> one, same = (pa.chunked_array([[1_500]]), pa.chunked_array([[1_500_000_000]]))
    >>> _seconds(one.cast(pa.timestamp("ms"))) == _seconds(same.cast(pa.timestamp("ns")))
    array([ True])
    """
    kind = column.type
    empty = np.asarray(column.is_null().to_numpy(), dtype=bool)
    if pa.types.is_date32(kind):
        days = np.asarray(pc.fill_null(column.cast(pa.int32()), 0).to_numpy(), dtype=np.float64)
        return np.where(empty, np.nan, _DAY * days)
    if pa.types.is_date64(kind):
        ticks, each = column.cast(pa.int64()), 1_000
    else:
        width = pa.int32() if pa.types.is_time32(kind) else pa.int64()
        ticks, each = column.cast(width), _A_SECOND[kind.unit]
    whole = np.asarray(pc.fill_null(ticks, 0).to_numpy(), dtype=np.int64)
    seconds, rest = np.divmod(whole, each)
    return np.where(empty, np.nan, seconds + rest / each)


def shown(rows: Sequence[int] | Int[np.ndarray, " r"]) -> str:
    """The first few rows of a longer list.

    >>> shown([4, 8, 15, 16])
    'rows 4, 8, 15, ...'
    """
    listed = ", ".join(str(row) for row in rows[:3])
    return ("row " if len(rows) == 1 else "rows ") + listed + (", ..." if len(rows) > 3 else "")


def counted(count: int, what: str) -> str:
    """A number of things, in words.

    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


@dataclass(frozen=True, eq=False)
class ColumnMoments:
    r"""Count, mean, sum of squared deviations and range of the finite numbers of each column.

    Mean and spread count in units of $2^e$ and $4^e$, with $2^e$ near the largest magnitude, so
    that squares of huge or tiny numbers neither overflow nor vanish. The mean has a `rest` that a
    single float64 would round off: without it, means of parts that lie close together, far from
    zero, would differ by rounding only.

    >>> one, other = (ColumnMoments.of(np.array([part])) for part in ([1.0, 2.0, np.nan], [6.0]))
    >>> both = one.merge(other)
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

    def merge(self, other: "ColumnMoments") -> "ColumnMoments":
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
        return ColumnMoments(
            count, exponent, *_two_sum(mean, lost + rest), inside + between, low, high, rising
        )

    def numbers(self, names: Sequence[str], rows: int, scaled: bool) -> list[Number]:
        """The scaling of each column over all rows, where the mean stands for what is missing."""
        unit = np.ldexp(1.0, self.exponent)
        fill = (unit * self.mean).tolist()
        if not scaled:
            plain = zip(names, fill, strict=True)
            return [Number(name, 1.0, 0.0, 1.0, middle, scaled=False) for name, middle in plain]
        parts = (unit.tolist(), self.mean.tolist(), np.sqrt(self.spread / rows).tolist(), fill)
        return [Number(*one) for one in zip(names, *parts, strict=True)]


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
