"""Rows counted through all files of a pool."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Int

from evgp._errors import DatasetError


@dataclass(frozen=True)
class Ranges:
    """How many rows each file has, and which of them a global row number means.

    >>> ranges = Ranges((3, 0, 4))
    >>> len(ranges), list(ranges.parts(1, 5))
    (7, [(0, 1, 3), (2, 0, 2)])
    """

    counts: tuple[int, ...]

    def __len__(self) -> int:
        return int(self.starts[-1])

    @cached_property
    def starts(self) -> Int[np.ndarray, " files"]:
        """The global number of the first row of each file, then that of all rows."""
        return np.concatenate([[0], np.cumsum(self.counts, dtype=np.int64)])

    def parts(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """Files with their own row numbers that make up the rows from start to stop."""
        file = int(np.searchsorted(self.starts, start, side="right")) - 1
        while start < stop:
            first, count = int(self.starts[file]), self.counts[file]
            if start < first + count:
                yield file, start - first, min(stop - first, count)
                start = min(stop, first + count)
            file += 1

    def groups(self, rows: Int[np.ndarray, " r"]) -> Iterator[tuple[int, Int[np.ndarray, " q"]]]:
        """Files with those of their own row numbers that are among the sorted global ones.

        >>> [(file, rows.tolist()) for file, rows in Ranges((3, 4)).groups(np.array([1, 3, 5]))]
        [(0, [1]), (1, [0, 2])]
        """
        files = np.searchsorted(self.starts, rows, side="right") - 1
        found, first = np.unique(files, return_index=True)
        for file, part in zip(found.tolist(), np.split(rows, first[1:]), strict=False):
            yield file, part - self.starts[file]

    def check_range(self, start: int, stop: int, source: str) -> None:
        """Refuse a range outside."""
        if not 0 <= start <= stop <= len(self):
            raise DatasetError(
                f"{source}: expected a range of rows within 0 to {len(self)}, got {start} to {stop}"
            )

    def check_whole(self, start: int, stop: int, source: str) -> None:
        """Refuse a range that is not all there is."""
        if (start, stop) != (0, len(self)):
            raise DatasetError(
                f"{source}: expected a survey of rows 0 to {len(self)}, got one of {start} to "
                f"{stop}; merge the surveys of all ranges first"
            )

    def sorted(self, rows: Int[np.ndarray, " r"], source: str) -> Int[np.ndarray, " r"]:
        """Rows that must be in order and inside."""
        self.check_rows(rows, source)
        if (rows[1:] < rows[:-1]).any():
            raise DatasetError(f"{source}: expected sorted rows, got others; sort them first")
        return rows.astype(np.int64)

    def check_rows(self, rows: Int[np.ndarray, " r"], source: str) -> None:
        """Refuse rows outside."""
        wrong = rows[(rows < 0) | (rows >= len(self))]
        if len(wrong):
            raise DatasetError(
                f"{source}: expected rows from 0 to {len(self) - 1}, got {len(wrong)} outside "
                f"(first: {wrong[0]})"
            )
