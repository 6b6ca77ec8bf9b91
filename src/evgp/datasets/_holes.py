"""Cells without a value: how many, and where the first are."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float

from evgp._errors import DatasetError
from evgp.datasets._columns import (
    counted,
    is_number,
    is_time,
    missing,
    shown,
    to_numbers,
)

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
