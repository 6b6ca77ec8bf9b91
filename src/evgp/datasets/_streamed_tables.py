"""Pools in Parquet and Arrow files."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
from jaxtyping import Float, Int

from evgp._errors import DatasetError
from evgp._linalg import BLOCK, in_pairs
from evgp.datasets import _batches
from evgp.datasets._found import Found, digest
from evgp.datasets._ranges import Ranges
from evgp.datasets.columns import plain
from evgp.datasets.encode import Layout, TableCode, none_left, usable
from evgp.datasets.fitted import Fitted, Survey, step_of
from evgp.datasets.tables import check_names, checked_numbers, no_column, place_of

_AT_LEAST = 64


@dataclass(frozen=True)
class StreamedTable:
    """Rows of files that all have the same columns."""

    layout: Layout
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
        """Of a row before it is encoded."""
        return (len(self.layout.used),)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns."""
        return tuple(self.layout.schema.names)

    @property
    def widest(self) -> int:
        """The most numbers that an encoded row may have."""
        numbers = len(self.layout.numeric)
        return numbers + (len(self.layout.used) - numbers) * self.layout.max_categories

    def __len__(self) -> int:
        return len(self.ranges)

    def digest(self, file: str) -> str:
        """A hash of all bytes of a file."""
        return digest(file)

    def survey(self, start: int, stop: int, rows: Int[np.ndarray, " r"]) -> Survey:
        """Statistics of a range in one pass, and those of the sorted rows that lie in it."""
        rows = self.ranges.sorted(rows, self.name)
        used = self.layout.used
        parts = (
            self.layout.survey(first, table, rows)
            for first, table in self.raw(start, stop, step_of(len(used)), used)
        )
        if start == stop:
            return self.layout.survey(start, self._fields(used).empty_table(), rows)
        return in_pairs(parts, Survey.merge)

    def fitted(self, survey: Survey) -> Fitted:
        """The pool with the scaling and categories of a survey of all rows."""
        self.ranges.check_whole(survey.start, survey.stop, self.name)
        encoder = self.layout.learn(survey)
        code = TableCode(encoder)
        return Fitted(self, code, survey.sample, (*self.remarks, *encoder.notes))

    def cells(self, column: str, rows: Int[np.ndarray, " r"]) -> list[object]:
        """Plain values of one column in a few rows, in the order given."""
        return list(plain(self.raw_at(rows, [column]).column(column)).to_pylist())

    def numbers(self, column: str, start: int, stop: int) -> Float[np.ndarray, " n"]:
        """One column of a range as float64, where every cell must be a number."""
        none = self._fields([column]).empty_table()
        parts = [checked_numbers(self.name, column, none.column(column))]
        for first, table in self.raw(start, stop, 16 * BLOCK, [column]):
            parts.append(checked_numbers(self.name, column, table.column(column), first))
        return np.concatenate(parts)

    def raw(
        self, start: int, stop: int, size: int, columns: Sequence[str]
    ) -> Iterator[tuple[int, pa.Table]]:
        """A range as it is in the files, cut at the multiples of a size."""
        self.ranges.check_range(start, stop, self.name)
        held: list[pa.RecordBatch] = []
        first = at = start
        for piece in self._pieces(start, stop, size, self._fields(columns)):
            batch = piece
            while batch.num_rows:
                full = (at // size + 1) * size
                held.append(batch.slice(0, full - at))
                at += held[-1].num_rows
                batch = batch.slice(held[-1].num_rows)
                if at == full:
                    yield first, pa.Table.from_batches(held)
                    held, first = [], at
        if held:
            yield first, pa.Table.from_batches(held)

    def _pieces(
        self, start: int, stop: int, size: int, fields: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        for file, low, high in self.ranges.parts(start, stop):
            path, count = self.files[file], self.ranges.counts[file]
            for first, batch in _batches.pieces(
                path, count, fields, max(size, _AT_LEAST), _batches.between(low, high)
            ):
                skipped = max(low - first, 0)
                yield batch.slice(skipped, min(high - first, batch.num_rows) - skipped)

    def raw_at(self, rows: Int[np.ndarray, " r"], columns: Sequence[str]) -> pa.Table:
        """A few rows as they are in the files, in the order given."""
        self.ranges.check_rows(rows, self.name)
        fields = self._fields(columns)
        distinct, order = np.unique(rows, return_inverse=True)
        found = [fields.empty_table()]
        for file, local in self.ranges.groups(distinct):
            path, count = self.files[file], self.ranges.counts[file]
            for first, batch in _batches.pieces(path, count, fields, BLOCK, _batches.among(local)):
                inside = slice(*np.searchsorted(local, [first, first + batch.num_rows]))
                found.append(pa.Table.from_batches([batch]).take(local[inside] - first))
        return pa.concat_tables(found).take(order)

    def _fields(self, columns: Sequence[str]) -> pa.Schema:
        schema = self.layout.schema
        for name in columns:
            if place_of(schema, name) < 0:
                raise no_column(self.name, name, schema.names)
        return pa.schema([pa.field(name, schema.field(name).type) for name in columns])


def open_tables(
    found: Found, left_out: Sequence[str], max_categories: int, standardise: bool, impute: bool
) -> StreamedTable:
    """The pool in these files, of which only the metadata is read."""
    counts, schema = [], pa.schema([])
    for number, file in enumerate(found.files):
        count, here = _batches.look(file)
        if number == 0 or not here.equals(schema):
            check_names(here.names, file)
            schema = schema if number else here
            _check_same(file, here, found.files[0], schema)
        counts.append(count)
    ranges = Ranges(tuple(counts))
    if not len(ranges):
        raise DatasetError(f"{found.name}: expected rows of data, got column names only")
    layout = Layout(
        found.name, len(ranges), schema, tuple(left_out), max_categories, standardise, impute
    )
    pool = StreamedTable(layout, found.files, ranges, found.remarks)
    pool._fields(left_out)
    for name in layout.used:
        usable(found.name, name, schema.field(name).type)
    if not layout.used:
        raise none_left(found.name, len(left_out))
    for file in found.files:
        _batches.check_room(file, layout.used)
    return pool


def _check_same(file: str, here: pa.Schema, first: str, schema: pa.Schema) -> None:
    mine = dict(zip(here.names, here.types, strict=True))
    theirs = dict(zip(schema.names, schema.types, strict=True))
    for name in {**theirs, **mine}:
        if mine.get(name) != theirs.get(name):
            raise DatasetError(
                f"{file}: expected column {name!r} of {theirs.get(name, 'none')}, as in {first}, "
                f"got {mine.get(name, 'none')}; write all files with the same columns and types"
            )
