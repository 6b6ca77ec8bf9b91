"""What is missing, wrong or odd in the columns of a pool."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Float

from evgp._errors import DatasetError
from evgp.datasets.columns import (
    Category,
    Column,
    Number,
    counted,
    is_number,
    is_time,
    missing,
    shown,
    to_numbers,
    word_table,
)
from evgp.datasets.tables import Table, quoted

# One more than `shown` shows, so that it can tell that there are more.
_FIRST = 4


@dataclass(frozen=True)
class Hole:
    """Empty or infinite cells of one column, and the first few rows they are in.

    >>> str(Hole("size", "infinite", 2, (4, 8)))
    "2 infinite in column 'size' (rows 4, 8)"
    """

    column: str
    what: str
    count: int
    rows: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.count:,} {self.what} in column {self.column!r} ({shown(self.rows)})"


def in_numbers(column: str, values: Float[np.ndarray, " n"], first: int = 0) -> list[Hole]:
    """Numbers that are none, where the first row has the number `first`.

    >>> in_numbers("size", np.array([1.0, np.nan]), first=10)
    [Hole(column='size', what='missing or NaN', count=1, rows=(11,))]
    """
    if np.isfinite(values).all():
        return []
    none, infinite = np.isnan(values), np.isinf(values)
    return _hole(column, "missing or NaN", none, first) + _hole(column, "infinite", infinite, first)


def in_cells(column: str, cells: pa.ChunkedArray, first: int = 0) -> list[Hole]:
    """Cells of any kind without a value."""
    if is_number(cells.type) or is_time(cells.type):
        return in_numbers(column, to_numbers(cells), first)
    if not (cells.null_count or pa.types.is_dictionary(cells.type)):
        return []
    return _hole(column, "missing", missing(cells), first)


def joined(one: Sequence[Hole], other: Sequence[Hole]) -> tuple[Hole, ...]:
    """The holes of two runs of rows, the first one before the other.

    >>> a, b = Hole("size", "infinite", 1, (4,)), Hole("size", "infinite", 2, (7, 9))
    >>> joined([a], [b])
    (Hole(column='size', what='infinite', count=3, rows=(4, 7, 9)),)
    """
    found = {(hole.column, hole.what): hole for hole in one}
    for hole in other:
        key = (hole.column, hole.what)
        before = found.get(key, Hole(*key, 0, ()))
        rows = (before.rows + hole.rows)[:_FIRST]
        found[key] = Hole(*key, before.count + hole.count, rows)
    return tuple(found.values())


def listed(holes: Sequence[Hole]) -> str:
    """The first few holes in words."""
    more = f"; and {counted(len(holes) - 5, 'more column')}" if len(holes) > 5 else ""
    return "; ".join(map(str, holes[:5])) + more


def refuse(holes: Iterable[Hole], source: str, remedy: str) -> None:
    """Raise if there are any, with columns, rows and what to do."""
    if found := list(holes):
        raise DatasetError(
            f"{source}: expected a value in each cell, got {listed(found)} (rows count from 0); "
            + remedy
        )


def _hole(column: str, what: str, where: Bool[np.ndarray, " n"], first: int) -> list[Hole]:
    rows = np.flatnonzero(where)
    if not len(rows):
        return []
    return [Hole(column, what, len(rows), tuple((rows[:_FIRST] + first).tolist()))]


_ID = re.compile(r"(^|[_\W])(id|key|index|idx|uuid|guid|row|unnamed: \d+)$", re.I)
_LABEL = re.compile(
    r"^(y|y_true|(.*_)?(label|target|class|outcome)(s|es)?|response|ground_?truth)$", re.I
)
# Such a name is the label's only with few values.
_MAYBE_LABEL = re.compile(
    r"^(species|diagnos[ie]s|disease|survived|churn(ed)?|fraud|spam|approved|(is|has)[_ ].+)$", re.I
)
_FEW = 20
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*\Z", re.A)
_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*\Z", re.A)
_HUGE = 1e15
_FAR = 30.0
_POINT = 1e-6


@dataclass(frozen=True)
class ColumnLook:
    """What a column looks like: whole numbers that all differ, few values, one far from all."""

    name: str
    all_differ: bool = False
    has_few: bool = False
    wild: str = ""


def of_pool(table: Table, columns: Sequence[Column], x: Float[np.ndarray, "n d"]) -> list[str]:
    """Notes on columns that may be ids or the label, on wild values, and on copies."""
    looks = []
    start = 0
    for column in columns:
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


def of_looks(looks: Sequence[ColumnLook]) -> list[str]:
    """Notes on columns that may be ids or the label, and on wild values.

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
    found = {
        "another whole number in each row, as in an id (id= or drop= leaves it out)": counting,
        "named like an id (id= or drop= leaves it out)": ids,
        "named like the label, which must not steer the picks (drop= leaves it out)": labels,
        "perhaps the label, which must not steer the picks (drop= leaves it out)": maybe,
    }
    notes = [f"column {quoted(names)}: {what}" for what, names in found.items() if names]
    if wild:
        more = f", and in {counted(len(wild) - 3, 'column')} more" if len(wild) > 3 else ""
        notes.append(f"possible outliers: {'; '.join(wild[:3])}{more}; check that they are real")
    return notes


def of_words(name: str, counts: Mapping[str, int]) -> str:
    """What a column of words may have been meant to be; empty when it is simply words.

    >>> of_words("size", {"1": 5, "2": 5, "n/a": 2})
    "most of column 'size' are numbers, but 'n/a' is not"
    """
    total = sum(counts.values())
    numeric = [_NUMBER.match(word) is not None for word in counts]
    if 0.5 * total <= _rows(counts, numeric) < total:
        other = next(word for word, is_one in zip(counts, numeric, strict=True) if not is_one)
        return f"most of column {name!r} are numbers, but {other!r} is not"
    commas = [_COMMA.match(word) is not None for word in counts]
    if total and _rows(counts, commas) >= 0.5 * total:
        return f"column {name!r} seems to hold decimal commas, where points are expected"
    return ""


def _rows(counts: Mapping[str, int], chosen: Sequence[bool]) -> int:
    return sum(count for count, one in zip(counts.values(), chosen, strict=True) if one)


def copies(x: Float[np.ndarray, "n d"]) -> int:
    """How many rows are copies of an earlier one.

    >>> copies(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]))
    1
    """
    # An exact integer hash of each row; a sum of products in floats would depend on its order.
    total = np.zeros(len(x), dtype=np.uint64)
    random = np.random.default_rng(0)
    multipliers = random.integers(1, 2**63, size=(x.shape[1],), dtype=np.uint64)
    for j, multiplier in enumerate(multipliers):
        # Adding zero makes -0.0 and 0.0 the same bits; the shifts spread exponent bits downwards.
        bits = (x[:, j] + 0.0).view(np.uint64)
        bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
        total += (bits ^ (bits >> np.uint64(33))) * (2 * multiplier + np.uint64(1))
    return len(x) - len(np.unique(total))


def _all_differ(cells: pa.ChunkedArray) -> bool:
    # In a short table whole numbers often differ by chance.
    return len(cells) >= 10 and pc.count_distinct(cells).as_py() == len(cells)


def _has_few(cells: pa.ChunkedArray) -> bool:
    if pa.types.is_dictionary(cells.type):  # which pyarrow does not count
        cells = pa.chunked_array([part.indices for part in cells.unify_dictionaries().chunks])
    return are_few(int(pc.count_distinct(cells).as_py()), len(cells))


def are_few(values: float, rows: int) -> bool:
    """Whether there are so few values that they may be classes."""
    return values <= min(_FEW, rows // 2)


def of_ends(column: Number, low: float, high: float) -> str:
    """The least or the largest value, where it is far from the mean; empty otherwise.

    >>> of_ends(Number("size", 1.0, 0.0, 1.0, 0.0), -1.0, 1e6)
    ': 1e+06'
    """
    scaled = np.abs(column.encode(np.array([low, high]))[:, 0])
    far = scaled >= (_FAR if column.scaled else _HUGE)
    return f": {(low, high)[int(scaled.argmax())]:.6g}" if far.any() else ""


def _wild(column: Number, values: Float[np.ndarray, " n"]) -> int | None:
    """The row of a huge value, or of one far from the mean; None without such."""
    row = int(np.abs(values).argmax())
    if not column.scaled:
        return row if abs(values[row]) >= _HUGE else None
    # In a short column one huge value is few deviations away, but all others become one point.
    squeezed = bool(np.median(np.abs(values - np.median(values))) < _POINT)
    huge = column.scale >= _HUGE / 2 and squeezed
    return row if huge or abs(values[row]) >= _FAR else None


# Letters of a word that may still be the name of a category.
_LONGEST = 1_000


def counts_of(words: pa.ChunkedArray) -> dict[str, int]:
    """How often each word occurs, in the order of their first rows.

    >>> counts_of(pa.chunked_array([["b", "a", None, "b"]]))
    {'b': 2, 'a': 1}
    """
    total: dict[str, int] = {}
    for chunk in words.chunks:
        values, rows = word_table(chunk)
        found, first, count = np.unique(rows[rows >= 0], return_index=True, return_counts=True)
        order = np.argsort(first)
        words_here = values.take(pa.array(found[order])).to_pylist()
        for word, times in zip(words_here, count[order].tolist(), strict=True):
            total[word] = total.get(word, 0) + times
    return total


def added(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """The counts of two runs of rows, the first one before the other.

    >>> added({"b": 2}, {"a": 1, "b": 1})
    {'b': 3, 'a': 1}
    """
    total = dict(one)
    for word, count in other.items():
        total[word] = total.get(word, 0) + count
    return total


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
    """Raise where words are not categories; otherwise what they may have been meant to be.

    `written` is False for true and false; `whole` is False while further rows are to come.
    """
    if (longest := max(map(len, counts), default=0)) > _LONGEST:
        raise DatasetError(
            f"{source}: expected numbers or categories in column {name!r}, got text of up to "
            f"{longest:,} letters; leave it out with drop={name!r}"
        )
    if not whole and len(counts) <= most:
        return ""
    hint = of_words(name, counts)
    differ = len(counts) == rows and written
    if hint and (differ or len(counts) > most):
        raise DatasetError(
            f"{source}: {hint}; correct it, or leave the column out with drop={name!r}"
        )
    if differ:
        raise DatasetError(
            f"{source}: expected numbers or categories in column {name!r}, got another word in "
            f"each of {rows:,} rows; use id={name!r} or drop={name!r}"
        )
    if len(counts) > most:
        seen = "" if whole else f" in {rows:,} of the rows"
        raise DatasetError(
            f"{source}: expected at most {most} categories in column {name!r}, got "
            f"{len(counts):,}{seen}; use drop={name!r}, or raise max_categories="
        )
    return hint


def category(name: str, counts: Mapping[str, int], written: bool) -> Category:
    """The words in order, to be filled in with the commonest.

    >>> category("kind", {"b": 2, "a": 1}, written=True).features
    ('kind=a', 'kind=b')
    """
    commonest = min(counts, key=lambda word: (-counts[word], word))
    return Category(name, tuple(sorted(counts)), commonest, written)
