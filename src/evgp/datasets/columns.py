"""Encode one column as numbers: scaled, or as one 0/1 column for each category."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Float, Int, Shaped

_DAY = 86_400.0
_WAVES = {"sin": np.sin, "cos": np.cos}
# Cycles of times: the minimum number of seconds between the first and the last time for a cycle to
# add information, and the minimum share of a cycle that the times must cover.
CYCLES = {
    "hour": (_DAY, 1 / 1440),
    "weekday": (14 * _DAY, 1 / 14),
    "day of year": (365 * _DAY, 7 / 366),
}
_A_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


@dataclass(frozen=True)
class Number:
    r"""A numeric or time column, encoded as $(x / s - \mu) / \sigma$ with the pool's values.

    $\sigma$ is the column's own standard deviation, `own`, or one that all columns share.

    The scale $s$ is a power of two near the largest magnitude in the pool, so that squares of huge
    or tiny numbers neither overflow nor vanish, and the division by $s$ is exact.
    """

    name: str
    scale: float
    mean: float
    std: float
    fill: float
    scaled: bool = True
    own: float = 1.0
    cycles: tuple[str, ...] = ()  # of times, such as the hour of the day

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features that the column becomes."""
        waves = (f"{self.name} ({cycle}, {wave})" for cycle in self.cycles for wave in _WAVES)
        return (self.name, *waves)

    def encode(self, values: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n d"]:
        """Return the scaled column, and sine and cosine of each cycle.

        Both together vary as much as one scaled column.
        """
        scaled = ((values / self.scale - self.mean) / self.std)[:, None]
        if not self.cycles:
            return scaled
        turns = dict(zip(CYCLES, 2 * np.pi * phases(values), strict=True))
        waves = [wave(turns[cycle]) for cycle in self.cycles for wave in _WAVES.values()]
        return np.column_stack([scaled, *waves])


@dataclass(frozen=True)
class Category:
    """A categorical column, encoded as one 0/1 column for each category of the pool.

    `written` says that the file contains the categories as text, unlike the booleans of a file.
    """

    name: str
    values: tuple[str, ...]
    fill: str
    written: bool = True

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features that the column becomes."""
        return tuple(f"{self.name}={value}" for value in self.values)

    def encode(self, codes: Int[np.ndarray, " n"]) -> Float[np.ndarray, "n d"]:
        """Return one-hot rows; a row of zeros where the category is unknown (-1)."""
        return (codes[:, None] == np.arange(len(self.values))).astype(np.float64)

    def codes(self, cells: pa.ChunkedArray) -> Int[np.ndarray, " n"]:
        """Return the index of each cell's category, or -1 if unknown; fill missing values."""
        known = pa.array(self.values, pa.string())
        parts = [np.empty(0, np.int64)]
        for chunk in cells.chunks:
            values, rows = factorize(chunk)
            codes = pc.fill_null(pc.index_in(values, value_set=known), -1).to_numpy()
            parts.append(np.append(codes, self.values.index(self.fill))[rows])
        return np.concatenate(parts)


def is_constant(column: Number, low: float, high: float) -> bool:
    """Whether a column with values from low to high is constant, up to rounding."""
    return bool(low == high or column.std <= 8 * np.finfo(float).eps)


def is_number(kind: pa.DataType) -> bool:
    """Whether cells of this type are plain numbers."""
    return (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_null(kind)
    )


def is_time(kind: pa.DataType) -> bool:
    """Whether cells of this type are dates, times or durations."""
    return pa.types.is_temporal(kind) and not pa.types.is_interval(kind)


def is_category(kind: pa.DataType) -> bool:
    """Whether cells of this type are categorical: text, booleans or dictionaries."""
    if pa.types.is_dictionary(kind):
        return is_category(kind.value_type) or is_number(kind.value_type)
    return (
        pa.types.is_boolean(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
    )


def to_numbers(column: pa.ChunkedArray) -> Float[np.ndarray, " n"]:
    """Return numbers, or times in seconds, as float64 with NaN for missing values."""
    kind = column.type
    if is_time(kind):
        return _seconds(column)
    if pa.types.is_float16(kind):
        column = column.cast(pa.float32())
    # Integers beyond 2^53 are rounded to the nearest float64, as intended here.
    values = column.cast(pa.float64(), safe=False).to_numpy()
    return np.asarray(values, dtype=np.float64)


def to_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return categories as strings; a dictionary stays one, as its strings may be long."""
    if pa.types.is_dictionary(column.type):
        return column.cast(pa.dictionary(pa.int64(), pa.string()))
    return column.cast(pa.string())


def factorize(cells: pa.Array) -> tuple[pa.Array, Int[np.ndarray, " n"]]:
    """Return the distinct strings, and the index of each cell's string; -1 for missing values.

    >>> values, rows = factorize(pa.array(["b", "a", None, "b"]))
    >>> values.to_pylist(), rows
    (['b', 'a'], array([ 0,  1, -1,  0]))
    """
    if not pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_encode()
    # Other libraries write unsigned indices, which cannot represent -1.
    rows = np.asarray(pc.fill_null(cells.indices.cast(pa.int64()), -1).to_numpy(False))
    values = cells.dictionary
    if values.null_count:  # a null can be one of the dictionary's values, too
        empty = np.append(np.asarray(values.is_null()), True)
        rows = np.where(empty[rows], -1, rows)
    return values, rows


def to_objects(cells: pa.ChunkedArray) -> Shaped[np.ndarray, " n"]:
    """Return Python strings, shared between equal cells of a dictionary; None for missing."""
    parts = [np.empty(0, dtype=object)]
    for chunk in cells.chunks:
        values, rows = factorize(chunk)
        parts.append(np.array([*values.to_pylist(), None], dtype=object)[rows])
    return np.concatenate(parts)


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column that Python can represent: times, which may be out of range, become text."""
    return column.cast(pa.string()) if pa.types.is_temporal(column.type) else column


def missing(column: pa.ChunkedArray) -> Bool[np.ndarray, " n"]:
    """Return which cells are missing."""
    if pa.types.is_dictionary(column.type):
        rows = [factorize(chunk)[1] for chunk in column.chunks]
        return np.concatenate([np.empty(0, dtype=bool), *(part < 0 for part in rows)])
    return np.asarray(column.is_null().to_numpy(), dtype=bool)


def _seconds(column: pa.ChunkedArray) -> Float[np.ndarray, " n"]:
    """Return times in seconds; the same time gives the same number in every unit.

    >>> ms, ns = (pa.chunked_array([[1_500]]), pa.chunked_array([[1_500_000_000]]))
    >>> _seconds(ms.cast(pa.timestamp("ms"))) == _seconds(ns.cast(pa.timestamp("ns")))
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


def phases(seconds: Float[np.ndarray, " n"]) -> Float[np.ndarray, "3 n"]:
    """Return how far times are through the day, the week and the year, from 0 to 1.

    >>> phases(np.array([0.0, 86_400.0 * 4 + 21_600])).round(3)  # Thursday, 1 January; and Monday
    array([[0.   , 0.25 ],
           [0.429, 0.   ],
           [0.   , 0.011]])
    """
    whole = np.floor(seconds / _DAY)
    dates = whole.astype("datetime64[D]")
    in_year = (dates - dates.astype("datetime64[Y]")).astype(np.float64)
    return np.stack([seconds / _DAY - whole, (whole + 3) % 7 / 7, in_year / 366])


def cycles_of(
    kind: pa.DataType, low: float, high: float, spans: Float[np.ndarray, " 3"]
) -> tuple[str, ...]:
    """Return the cycles that add information to times from low to high.

    `spans` are the differences between the largest and the smallest phase of each cycle.
    """
    if pa.types.is_duration(kind):
        return ()
    if pa.types.is_time(kind):  # within half a day, midnight is on one side only
        return ("hour",) if spans[0] >= 0.5 else ()
    return tuple(
        name
        for (name, (long, apart)), span in zip(CYCLES.items(), spans.tolist(), strict=True)
        if high - low >= long and span >= apart
    )


def shown(rows: Sequence[int] | Int[np.ndarray, " r"]) -> str:
    """Format the first few row numbers of a list.

    >>> shown([4, 8, 15, 16])
    'rows 4, 8, 15, ...'
    """
    listed = ", ".join(str(row) for row in rows[:3])
    return ("row " if len(rows) == 1 else "rows ") + listed + (", ..." if len(rows) > 3 else "")


def counted(count: int, noun: str) -> str:
    """Format a count with its noun, in singular or plural.

    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
