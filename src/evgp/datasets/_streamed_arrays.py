"""Pools in NumPy files, whose samples may have any number of axes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int, Shaped

from evgp._errors import DatasetError
from evgp._linalg import BLOCK, in_pairs
from evgp.datasets._found import Found, digest, opened
from evgp.datasets._ranges import Ranges
from evgp.datasets.arrays import Header, check_columns, npy_header
from evgp.datasets.encode import ArrayLayout, none_left
from evgp.datasets.fitted import Fitted, Survey, step_of
from evgp.datasets.tables import all_finite, no_column


@dataclass(frozen=True)
class StreamedArray:
    """Rows of arrays that agree in all axes but the first, and in type."""

    layout: ArrayLayout
    files: tuple[str, ...]
    ranges: Ranges
    remarks: tuple[str, ...] = ()
    in_files: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """What to call it in messages."""
        return self.layout.source

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a row."""
        return self.layout.shape

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns, where a row has one axis."""
        return self.layout.columns

    @property
    def widest(self) -> int:
        """The most numbers that an encoded row may have."""
        return prod(self.shape)

    def __len__(self) -> int:
        return len(self.ranges)

    def digest(self, file: str) -> str:
        """A hash of all bytes of a file."""
        return digest(file)

    def survey(self, start: int, stop: int, rows: Int[np.ndarray, " r"]) -> Survey:
        """Statistics of a range in one pass, and those of the sorted rows that lie in it."""
        rows = self.ranges.sorted(rows, self.name)
        parts = (
            self.layout.survey(first, x, rows)
            for first, x in self.raw(start, stop, step_of(prod(self.shape)), ())
        )
        if start == stop:
            return self.layout.survey(start, np.empty((0, *self.shape), self.layout.dtype), rows)
        return in_pairs(parts, Survey.merge)

    def fitted(self, survey: Survey) -> Fitted:
        """The pool with the scaling of a survey of all rows."""
        self.ranges.check_whole(survey.start, survey.stop, self.name)
        code, notes = self.layout.learn(survey)
        return Fitted(self, code, survey.sample, (*self.remarks, *notes))

    def cells(self, column: str, rows: Int[np.ndarray, " r"]) -> list[object]:
        """Plain values of one column in a few rows, in the order given."""
        at = self._place(column)
        return list(self.raw_at(rows, ())[:, at].tolist())

    def numbers(self, column: str, start: int, stop: int) -> Float[np.ndarray, " n"]:
        """One column of a range as float64, where every cell must be a number."""
        at = self._place(column)
        values = np.empty(stop - start)
        for first, x in self.raw(start, stop, BLOCK, ()):
            values[first - start : first - start + len(x)] = x[:, at]
        return all_finite(self.name, column, values, start)

    def raw(
        self, start: int, stop: int, size: int, columns: Sequence[str]
    ) -> Iterator[tuple[int, Shaped[np.ndarray, " b *d"]]]:
        """A range as it is in the files, cut at the multiples of a size; with all columns."""
        self.ranges.check_range(start, stop, self.name)
        while start < stop:
            end = min(stop, (start // size + 1) * size)
            parts = [self._read(*part) for part in self.ranges.parts(start, end)]
            yield start, parts[0] if len(parts) == 1 else np.concatenate(parts)
            start = end

    def raw_at(
        self, rows: Int[np.ndarray, " r"], columns: Sequence[str]
    ) -> Shaped[np.ndarray, " r *d"]:
        """A few rows as they are in the files, in the order given; with all columns."""
        self.ranges.check_rows(rows, self.name)
        distinct, order = np.unique(rows, return_inverse=True)
        found = [np.empty((0, *self.shape), self.layout.dtype)]
        for file, local in self.ranges.groups(distinct):
            runs = np.split(local, np.flatnonzero(np.diff(local) > 1) + 1)
            found += [self._read(file, int(run[0]), int(run[-1]) + 1) for run in runs]
        return np.concatenate(found)[order]

    def _read(self, file: int, start: int, stop: int) -> Shaped[np.ndarray, " n *d"]:
        path, shape = self.files[file], (self.ranges.counts[file], *self.shape)
        with opened(path) as stream:
            header = npy_header(stream, path, empty=True)
            if (header.shape, header.dtype) != (shape, self.layout.dtype):
                raise DatasetError(
                    f"{path}: expected {_told(shape, self.layout.dtype)}, as when the pool was "
                    f"opened, got {_told(header.shape, header.dtype)}; leave the files alone while "
                    "they are read, and start again"
                )
            if header.columns_first:
                return _across(path, header, stream.tell(), start, stop)
            row = prod(self.shape) * header.dtype.itemsize
            stream.seek(start * row, 1)
            data = stream.read((stop - start) * row)
        if len(data) < (stop - start) * row:
            raise DatasetError(f"{path}: ended early, it was cut short; save it again")
        return np.frombuffer(data, header.dtype).reshape(stop - start, *self.shape)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: at for at, name in enumerate(self.layout.columns)}

    def _place(self, column: str) -> int:
        if column not in self._places:
            raise no_column(self.name, column, self.layout.columns or ("no names",))
        return self._places[column]


def _across(
    path: str, header: Header, offset: int, start: int, stop: int
) -> Shaped[np.ndarray, " n *d"]:
    """Rows of an array that lies column by column in its file, which is mapped for it."""
    mapped = np.memmap(path, header.dtype, "r", offset, header.shape, order="F")
    return np.array(mapped[start:stop], order="C")


def _told(shape: tuple[int, ...], dtype: np.dtype) -> str:
    return f"{'x'.join(map(str, shape))} numbers of {dtype}"


def open_arrays(found: Found, left_out: Sequence[str], standardise: bool) -> StreamedArray:
    """The pool in these files, of which only the headers are read."""
    headers = []
    for path in found.files:
        with opened(path) as stream:
            headers.append(npy_header(stream, path, empty=True))
        one, first = headers[-1], headers[0]
        if (one.shape[1:], one.dtype) != (first.shape[1:], first.dtype):
            rest = ("rows", *first.shape[1:])
            raise DatasetError(
                f"{path}: expected {'x'.join(map(str, rest))} numbers of {first.dtype}, as in "
                f"{found.files[0]}, got {_told(one.shape, one.dtype)}; save all files alike"
            )
    ranges = Ranges(tuple(header.shape[0] for header in headers))
    if not len(ranges):
        raise DatasetError(f"{found.name}: expected rows of data, got none")
    shape, dtype = headers[0].shape[1:], headers[0].dtype
    if len(shape) == 1:
        check_columns(shape[0], found.name)
    layout = ArrayLayout(found.name, len(ranges), shape, dtype, tuple(left_out), standardise)
    pool = StreamedArray(layout, found.files, ranges, found.remarks)
    for name in left_out:
        pool._place(name)
    if not len(layout.used):
        raise none_left(found.name, len(left_out))
    return pool
