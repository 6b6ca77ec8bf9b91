"""Checks of a pool's columns: missing values, suspicious columns, outliers and duplicates."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Float

from evgp.datasets.columns import (
    Category,
    Number,
    counted,
    factorize,
    is_number,
    is_time,
    missing,
    shown,
    to_numbers,
)
from evgp.datasets.tables import Table
from evgp.datasets.vectors import Column, Vector, member
from evgp.errors import DatasetError, MissingValues, TooManyCategories, UnusableColumn, quoted

# One more than `shown` shows, so that it can indicate that there are more.
_FIRST = 4
_WORD = re.compile(r"[^\W\d_]{2,}")
# A character of a script that is written without spaces.
_SOLID = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]"
)
_SEVERAL = 3  # words in an average text
_LOOKED_AT = 1_000  # distinct texts whose words are counted
_BEGIN = 2_000  # characters of each that are looked at


@dataclass(frozen=True)
class MissingCells:
    """Missing or infinite values of one column, and the first few rows with them.

    >>> str(MissingCells("size", "infinite", 2, (4, 8)))
    "2 infinite in column 'size' (rows 4, 8)"
    """

    column: str
    what: str
    count: int
    rows: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.count:,} {self.what} in column {self.column!r} ({shown(self.rows)})"


def in_numbers(column: str, values: Float[np.ndarray, " n"], first: int = 0) -> list[MissingCells]:
    """Find missing, NaN and infinite numbers; `first` is the number of the first row.

    >>> in_numbers("size", np.array([1.0, np.nan]), first=10)
    [MissingCells(column='size', what='missing or NaN', count=1, rows=(11,))]
    """
    if np.isfinite(values).all():
        return []
    return [
        *_missing_cells(column, "missing or NaN", np.isnan(values), first),
        *_missing_cells(column, "infinite", np.isinf(values), first),
    ]


def in_lists(column: str, values: Float[np.ndarray, "d n"], first: int = 0) -> list[MissingCells]:
    """Find missing lists, and missing, NaN and infinite numbers in the others.

    >>> [str(one) for one in in_lists("e", np.array([[1.0, np.nan], [np.nan, np.nan]]))]
    ["1 missing in column 'e' (row 1)", "1 missing or NaN in column 'e[1]' (row 0)"]
    """
    good = np.isfinite(values)
    if good.all():
        return []
    none = np.isnan(values).all(axis=0)
    holes = _missing_cells(column, "missing", none, first)
    for place in np.flatnonzero(~(good | none).all(axis=1)).tolist():
        holes += in_numbers(member(column, place), np.where(none, 0.0, values[place]), first)
    return holes


def in_cells(column: str, cells: pa.ChunkedArray, first: int = 0) -> list[MissingCells]:
    """Find missing values in a column of any type; `first` is the number of the first row."""
    if is_number(cells.type) or is_time(cells.type):
        return in_numbers(column, to_numbers(cells), first)
    if not (cells.null_count or pa.types.is_dictionary(cells.type)):
        return []
    return _missing_cells(column, "missing", missing(cells), first)


def joined(
    first: Sequence[MissingCells], second: Sequence[MissingCells]
) -> tuple[MissingCells, ...]:
    """Merge the missing values of two consecutive ranges of rows.

    >>> a = MissingCells("size", "infinite", 1, (4,))
    >>> b = MissingCells("size", "infinite", 2, (7, 9))
    >>> joined([a], [b])
    (MissingCells(column='size', what='infinite', count=3, rows=(4, 7, 9)),)
    """
    merged = {(cells.column, cells.what): cells for cells in first}
    for cells in second:
        key = (cells.column, cells.what)
        before = merged.get(key, MissingCells(*key, 0, ()))
        rows = (before.rows + cells.rows)[:_FIRST]
        merged[key] = MissingCells(*key, before.count + cells.count, rows)
    return tuple(merged.values())


def listed(missing_cells: Sequence[MissingCells]) -> str:
    """Format the missing values of the first few columns."""
    beyond = len(missing_cells) - 5
    more = f"; and {counted(beyond, 'more column')}" if beyond > 0 else ""
    return "; ".join(map(str, missing_cells[:5])) + more


def missing_values(
    source: str,
    missing_cells: Sequence[MissingCells],
    advice: str,
    expected: str = "a value in each cell",
) -> MissingValues:
    """Return the error for these missing values."""
    columns: dict[str, int] = {}
    for cells in missing_cells:
        columns[cells.column] = columns.get(cells.column, 0) + cells.count
    rows = tuple(sorted({row for cells in missing_cells for row in cells.rows}))
    return MissingValues(source, columns, rows, listed(missing_cells), advice, expected)


def refuse(missing_cells: Iterable[MissingCells], source: str, remedy: str) -> None:
    """Raise if there are missing values, with their columns and rows and what to do."""
    if present := list(missing_cells):
        raise missing_values(source, present, remedy)


def _missing_cells(
    column: str, what: str, where: Bool[np.ndarray, " n"], first: int
) -> list[MissingCells]:
    rows = np.flatnonzero(where)
    if not len(rows):
        return []
    return [MissingCells(column, what, len(rows), tuple((rows[:_FIRST] + first).tolist()))]


_ID = re.compile(r"(^|[_\W])(id|key|index|idx|uuid|guid|row|unnamed: \d+)$", re.I)
# A number with such a name is an id if it differs in each row; with the others it must count, too.
_NAMED = re.compile(r"(^|[_\W])(id|key|uuid|guid)$", re.I)
_HASH = (
    r"^\{?[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}\}?$|^([0-9a-f]{40}|[0-9a-f]{64})$"
)
# A short code, such as K0001, DE-4711 or user_12.
_CODE = r"^[A-Za-z][A-Za-z_]{0,9}[-_.:/#]?[0-9][0-9A-Za-z_-]{0,19}$"
_LABEL = re.compile(
    r"^(y|y_true|(.*_)?(label|target|class|outcome)(s|es)?|response|ground_?truth)$", re.I
)
# Columns with these names are taken for the label only if they have few distinct values.
_MAYBE_LABEL = re.compile(
    r"^(species|diagnos[ie]s|disease|survived|churn(ed)?|fraud|spam|approved|(is|has)[_ ].+)$", re.I
)
_FEW = 20
# In a shorter table, integers are often distinct by chance.
_MANY = 10
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*\Z", re.A)
_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*\Z", re.A)
_HUGE = 1e15
_FAR = 30.0
_POINT = 1e-6
# Share of a column's variance that only an outlier has, in columns of at least so many rows.
_MOST, _SHORT = 0.8, 10
SUSPECT = 0.79  # share of the variance from which a row is looked at, as sums round
_NEAR = 0.01  # spread of the other values, relative to the distance of the outlier
_ROWS = 512  # rows looked at at once


@dataclass(frozen=True)
class ColumnLook:
    """What stands out in a column: distinct integers, few distinct values, an outlier."""

    name: str
    all_differ: bool = False
    has_few: bool = False
    wild: str = ""


def of_pool(table: Table, columns: Sequence[Column], x: Float[np.ndarray, "n d"]) -> list[str]:
    """Return notes on columns that may be ids or the label, on outliers, and on duplicate rows."""
    looks = []
    start = 0
    for column in columns:
        if isinstance(column, Vector):
            looks += _in_lists(column, table, x[:, start : start + len(column.features)])
        else:
            cells, name, wild = table.column(column.name), column.name, ""
            differ = pa.types.is_integer(cells.type) and _all_differ(cells)
            few = _MAYBE_LABEL.match(name) is not None and _has_few(cells)
            if isinstance(column, Number) and (row := _wild(column, x[:, start])) is not None:
                wild = f" row {row}: {to_numbers(cells.slice(row, 1))[0]:.6g}"
            looks.append(ColumnLook(name, differ, few, wild))
        start += len(column.features)
    notes = of_looks(looks)
    copied = copies(x)
    if copied:
        be = "is a copy of another" if copied == 1 else "are copies of others"
        notes.append(f"{copied:,} of {counted(len(x), 'row')} {be}")
    return notes


def _in_lists(column: Vector, table: Table, x: Float[np.ndarray, "n d"]) -> list[ColumnLook]:
    """Return what stands out in the numbers of a column of lists."""
    parts = (np.abs(x[row : row + _ROWS]).max(axis=0) for row in range(0, len(x), _ROWS))
    largest = np.max(list(parts), axis=0)
    looks = []
    for at, (place, number) in enumerate(zip(column.places, column.numbers, strict=True)):
        size = largest[at] * number.std / number.own
        far = size >= (_FAR if number.scaled else _HUGE) or number.scale >= _HUGE / 2
        if far and (row := _wild(number, x[:, at])) is not None:
            value = table.column(column.name)[row].as_py()[place]
            looks.append(ColumnLook(number.name, wild=f" row {row}: {value:.6g}"))
    return looks


def of_looks(looks: Sequence[ColumnLook]) -> list[str]:
    """Return notes on columns that may be ids or the label, and on outliers.

    >>> of_looks([ColumnLook("user_id")])
    ["column 'user_id': named like an id (id= or drop= leaves it out)"]
    """
    counting, ids, labels, maybe, wild = [], [], [], [], []
    for look in looks:
        if look.all_differ:
            counting.append(look.name)
        elif _ID.search(look.name):
            ids.append(look.name)
        if _LABEL.match(look.name):
            labels.append(look.name)
        elif _MAYBE_LABEL.match(look.name) and look.has_few:
            maybe.append(look.name)
        if look.wild:
            wild.append(f"column {look.name!r}{look.wild}")
    groups = {
        "a different integer in each row, like an id (id= or drop= leaves it out)": counting,
        "named like an id (id= or drop= leaves it out)": ids,
        "named like the label, which should not influence the picks (drop= leaves it out)": labels,
        "perhaps the label, which should not influence the picks (drop= leaves it out)": maybe,
    }
    notes = [f"column {quoted(names)}: {what}" for what, names in groups.items() if names]
    if wild:
        more = f", and in {counted(len(wild) - 3, 'column')} more" if len(wild) > 3 else ""
        notes.append(f"possible outliers: {'; '.join(wild[:3])}{more}; check that they are real")
    return notes


def counts_rows(name: str, low: float, high: float, rows: int) -> bool:
    """Whether integers that differ in each of so many rows, from low to high, are an id.

    >>> counts_rows("user_id", 5, 999, rows=20), counts_rows("price_index", 5, 999, rows=20)
    (True, False)
    """
    if rows < _MANY or _ID.search(name) is None:
        return False
    return _NAMED.search(name) is not None or bool(high - low == rows - 1)


def is_id(name: str, cells: pa.ChunkedArray) -> bool:
    """Whether a column only names the rows: another id, UUID or hash in each.

    >>> [is_id(name, pa.chunked_array([range(7, 27)])) for name in ("id", "size")]
    [True, False]
    """
    kind, named = cells.type, _ID.search(name) is not None
    if cells.null_count or len(cells) < _MANY:
        return False
    if pa.types.is_integer(kind) and named and _all_differ(cells):
        ends = pc.min_max(cells).as_py()
        return counts_rows(name, ends["min"], ends["max"], len(cells))
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return False
    first = cells[:_FEW]
    coded = any(_match(first, code) and _match(cells, code) for code in (_HASH, _CODE))
    return (coded or named) and _all_differ(cells)


def _match(cells: pa.ChunkedArray, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(cells, pattern)).as_py())


def left_out(column: str) -> str:
    """Return the note on a column that only names the rows."""
    return (
        f"column {column!r} left out: a different value in each row, like an id (id={column!r} "
        "names the picks by it)"
    )


def numeric_hint(name: str, counts: Mapping[str, int]) -> str:
    """Describe a text column that was probably meant to be numeric; empty if it is plain text.

    >>> numeric_hint("size", {"1": 5, "2": 5, "n/a": 2})
    "most values in column 'size' are numbers, but 'n/a' is not"
    """
    total = sum(counts.values())
    numeric = [_NUMBER.match(word) is not None for word in counts]
    if 0.5 * total <= _rows(counts, numeric) < total:
        other = next(word for word, is_one in zip(counts, numeric, strict=True) if not is_one)
        return f"most values in column {name!r} are numbers, but {other!r} is not"
    commas = [_COMMA.match(word) is not None for word in counts]
    if total and _rows(counts, commas) >= 0.5 * total:
        return f"column {name!r} seems to hold decimal commas (decimal=',' reads them)"
    return ""


def _rows(counts: Mapping[str, int], chosen: Sequence[bool]) -> int:
    return sum(count for count, is_chosen in zip(counts.values(), chosen, strict=True) if is_chosen)


def copies(x: Float[np.ndarray, "n d"]) -> int:
    """Count the rows that are duplicates of an earlier one.

    >>> copies(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]))
    1
    """
    # An exact integer hash of each row; a sum of products in floats would depend on its order.
    total = np.zeros(len(x), dtype=np.uint64)
    random = np.random.default_rng(0)
    multipliers = random.integers(1, 2**63, size=(x.shape[1],), dtype=np.uint64)
    for row in range(0, len(x), _ROWS):
        # Adding zero makes -0.0 and 0.0 the same bits; the shifts spread exponent bits downwards.
        bits = (x[row : row + _ROWS] + 0.0).view(np.uint64)
        bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
        bits = (bits ^ (bits >> np.uint64(33))) * (2 * multipliers + np.uint64(1))
        total[row : row + _ROWS] = bits.sum(axis=1, dtype=np.uint64)
    return len(x) - len(np.unique(total))


def _all_differ(cells: pa.ChunkedArray) -> bool:
    return len(cells) >= _MANY and pc.count_distinct(cells).as_py() == len(cells)


def _has_few(cells: pa.ChunkedArray) -> bool:
    if pa.types.is_dictionary(cells.type):  # pyarrow cannot count these
        cells = pa.chunked_array([part.indices for part in cells.unify_dictionaries().chunks])
    return int(pc.count_distinct(cells).as_py()) <= few_of(len(cells))


def few_of(rows: int) -> int:
    """Return the maximum number of distinct values that may be classes."""
    return min(_FEW, rows // 2)


def far_ends(
    ends: Float[np.ndarray, "2 d"], scaled: Float[np.ndarray, "2 d"], standardised: bool
) -> list[str]:
    """Format the minimum or maximum of each column if it is far from the mean; else empty.

    >>> far_ends(np.array([[-1.0], [1e6]]), np.array([[-1.0], [1e6]]), True)
    [': 1e+06']
    """
    sizes = np.abs(scaled)
    far = (sizes >= (_FAR if standardised else _HUGE)).any(axis=0)
    values = np.where(sizes[0] >= sizes[1], *ends)
    return [f": {value:.6g}" if is_far else "" for value, is_far in zip(values, far, strict=True)]


def _wild(column: Number, values: Float[np.ndarray, " n"]) -> int | None:
    """Return the row of a huge value, or of one far from the mean; None if there is no such row."""
    row = int(np.abs(values).argmax())
    values = values * (column.std / column.own)  # in standard deviations of this column
    if not column.scaled:
        return row if abs(values[row]) >= _HUGE else None
    # In a short column a huge value is only a few standard deviations from the mean, but it makes
    # all other values nearly equal.
    huge = column.scale >= _HUGE / 2 and bool(
        np.median(np.abs(values - np.median(values))) < _POINT
    )
    return row if huge or abs(values[row]) >= _FAR or is_alone(values, row) else None


def is_alone(values: Float[np.ndarray, " n"], row: int) -> bool:
    """Whether one row has most of a column's variance though the others differ, unlike a rare flag.

    >>> is_alone(np.array([1.0, 2, 3, 4, 5, 6, 7, 8, 9, 1e6]), 9), is_alone(np.eye(20)[0], 0)
    (True, False)
    """
    if len(values) < _SHORT:
        return False
    values = values / max(np.abs(values).max(), 1e-300)  # so that squares do not overflow
    others, from_mean = np.delete(values, row), np.square(values - values.mean())
    apart = _NEAR * np.abs(others - values[row]).min()
    near = bool(others.min() < others.max() < others.min() + apart)
    return near and bool(from_mean[row] > _MOST * from_mean.sum())


# Maximum number of characters in the name of a category.
_LONGEST = 1_000


def counts_of(cells: pa.ChunkedArray) -> dict[str, int]:
    """Count how often each category occurs, in order of first occurrence.

    >>> counts_of(pa.chunked_array([["b", "a", None, "b"]]))
    {'b': 2, 'a': 1}
    """
    total: dict[str, int] = {}
    for chunk in cells.chunks:
        values, rows = factorize(chunk)
        codes, first, count = np.unique(rows[rows >= 0], return_index=True, return_counts=True)
        order = np.argsort(first)
        categories = values.take(pa.array(codes[order])).to_pylist()
        for category, times in zip(categories, count[order].tolist(), strict=True):
            total[category] = total.get(category, 0) + times
    return total


def added(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    """Add the counts of two consecutive ranges of rows.

    >>> added({"b": 2}, {"a": 1, "b": 1})
    {'b': 3, 'a': 1}
    """
    total = dict(first)
    for word, count in second.items():
        total[word] = total.get(word, 0) + count
    return total


def several_words(values: Sequence[str]) -> bool:
    """Whether texts have three words or more on average.

    >>> several_words(["the cat sat down", "a dog ran off"]), several_words(["A. Miller"])
    (True, False)
    """
    looked_at = [text[:_BEGIN] for text in values[:: -(-len(values) // _LOOKED_AT)]]
    return sum(map(_words, looked_at)) >= _SEVERAL * len(looked_at)


def _words(text: str) -> float:
    solid = len(_SOLID.findall(text))
    return len(_WORD.findall(_SOLID.sub(" ", text) if solid else text)) + solid / 2


def check(
    source: str,
    name: str,
    counts: Mapping[str, int],
    rows: int,
    most: int,
    *,
    written: bool = True,
    whole: bool = True,
) -> str:
    """Raise if a text column is not categorical; else return a hint at what it may have been.

    `written` is False for booleans; `whole` is False while more rows are to come.
    """
    refused = len(counts) > most or (whole and len(counts) == rows)
    if refused and written and len(counts) > 1 and several_words([*counts]):
        advice = f"embed it (docs/text.md), or leave it out with drop={name!r}"
        raise UnusableColumn(source, name, "numbers or categories", "free text", advice)
    if (longest := max(map(len, counts), default=0)) > _LONGEST:
        got, advice = f"text of up to {longest:,} characters", f"leave it out with drop={name!r}"
        raise UnusableColumn(source, name, "numbers or categories", got, advice)
    if not whole and len(counts) <= most:
        return ""
    hint = numeric_hint(name, counts)
    differ = len(counts) == rows and written
    if hint and (differ or len(counts) > most):
        raise DatasetError(
            f"{source}: {hint}; correct it, or leave the column out with drop={name!r}"
        )
    if differ and all(word.startswith("[") and "..." in word for word in counts):
        got, advice = "arrays that NumPy shortened with '...'", "write all numbers, or Parquet"
        raise UnusableColumn(source, name, "lists of numbers", got, advice)
    if differ:
        got, advice = (
            f"a different value in each of {rows:,} rows",
            f"use id={name!r} or drop={name!r}",
        )
        raise UnusableColumn(source, name, "numbers or categories", got, advice)
    if len(counts) > most:
        raise TooManyCategories(source, name, most, len(counts), None if whole else rows)
    return hint


def category(name: str, counts: Mapping[str, int], written: bool) -> Category:
    """Return the encoding of a categorical column, with the most frequent value for imputation.

    >>> category("kind", {"b": 2, "a": 1}, written=True).features
    ('kind=a', 'kind=b')
    """
    commonest = min(counts, key=lambda word: (-counts[word], word))
    return Category(name, tuple(sorted(counts)), commonest, written)
