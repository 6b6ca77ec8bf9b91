"""What the columns of a streamed table are, and what a survey teaches of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from jaxtyping import Float, Int

from evgp._errors import DatasetError
from evgp.datasets import _holes, _looks, _words
from evgp.datasets._columns import (
    Column,
    Number,
    is_constant,
    is_number,
    is_time,
    to_numbers,
    to_words,
)
from evgp.datasets._moments import Moments
from evgp.datasets.encode import Encoder, as_seconds, dropped, nothing, taken, too_few
from evgp.datasets.fitted import Streamed
from evgp.datasets.survey import Raw, Survey
from evgp.datasets.tables import Table

FILL_FIRST = "fill them first: --impute is not for pools that stay in their files"


@dataclass(frozen=True)
class Layout:
    """Named columns of a known kind; those `left_out` are no features."""

    source: str
    rows: int
    schema: pa.Schema
    left_out: tuple[str, ...] = ()
    max_categories: int = 50
    standardise: bool = True

    @cached_property
    def used(self) -> tuple[str, ...]:
        """The columns that become features."""
        return tuple(name for name in self.schema.names if name not in set(self.left_out))

    @cached_property
    def numeric(self) -> tuple[str, ...]:
        """Those that hold numbers or times."""
        kinds = {name: self.schema.field(name).type for name in self.used}
        return tuple(name for name, kind in kinds.items() if is_number(kind) or is_time(kind))

    def survey(self, first: int, table: pa.Table, rows: Int[np.ndarray, " r"]) -> Survey:
        """Statistics of a block, and those of the sorted rows that lie in it."""
        x = np.empty((len(self.numeric), len(table)))
        holes = []
        for row, name in zip(x, self.numeric, strict=True):
            row[:] = to_numbers(table.column(name))
            if found := _holes.in_numbers(name, row, first):
                holes += found
                row[~np.isfinite(row)] = 0.0
        counts = {}
        for name in self.used:
            if name not in self.numeric:
                words = to_words(table.column(name))
                counts[name] = _words.counts_of(words)
                holes += _holes.in_cells(name, words, first)
        last = first + len(table)
        inside = slice(*np.searchsorted(rows, [first, last]))
        return Survey(
            self.source,
            first,
            last,
            Moments.of(x.T[:, :, None]),
            table.take(rows[inside] - first),
            counts,
            tuple(holes),
            self.max_categories,
        )

    def learn(self, survey: Survey) -> Encoder:
        """Scaling and categories, with notes on what looks odd, as `Encoder.fit` has them."""
        if self.rows < 2:
            raise too_few(self.source, self.rows)
        _holes.refuse(survey.holes, self.source, FILL_FIRST)
        notes: list[str] = []
        columns, looks, constant = [], [], []
        moments = survey.moments
        scaled = moments.numbers(self.numeric, self.standardise)
        numbers = {number.name: (at, number) for at, number in enumerate(scaled)}
        for name in self.used:
            if name in numbers:
                column, look = self._number(*numbers[name], moments, notes)
            else:
                column, look = self._words(name, survey.words[name], notes)
            if column is None:
                constant.append(name)
            else:
                columns.append(column)
                looks.append(look)
        if constant:
            notes.append(dropped(constant))
        if not columns:
            raise nothing(self.source, len(constant), len(self.left_out))
        notes += _looks.of_looks(looks)
        ignored = (*self.left_out, *constant)
        return Encoder(tuple(columns), ignored, False, tuple(notes), self.source)

    def _number(
        self, at: int, made: Number, moments: Moments, notes: list[str]
    ) -> tuple[Column | None, _looks.Look]:
        name, low, high = made.name, float(moments.low[at]), float(moments.high[at])
        if self.standardise and is_constant(made, low, high):
            return None, _looks.Look(name)
        kind = self.schema.field(name).type
        if is_time(kind):
            notes.append(as_seconds(name))
        whole = pa.types.is_integer(kind)
        return made, _looks.Look(
            name,
            all_differ=whole and self.rows >= 10 and bool(moments.rising[at]),
            has_few=whole and _looks.are_few(high - low + 1, self.rows),
            wild=_looks.of_ends(made, low, high),
        )

    def _words(
        self, name: str, counts: Mapping[str, int], notes: list[str]
    ) -> tuple[Column | None, _looks.Look]:
        look = _looks.Look(name, has_few=_looks.are_few(len(counts), self.rows))
        if len(counts) < 2:
            return None, look
        most, written = self.max_categories, not pa.types.is_boolean(self.schema.field(name).type)
        hint = _words.check(self.source, name, counts, self.rows, most, written=written)
        if hint:
            notes.append(taken(hint, len(counts)))
        return _words.category(name, counts, written), look


@dataclass(frozen=True)
class TableCode:
    """An encoder for blocks of a table."""

    encoder: Encoder

    @property
    def unchanged(self) -> bool:
        """Columns of a table are brought together, so they change."""
        return False

    @property
    def names(self) -> tuple[str, ...]:
        """Of the features."""
        return self.encoder.names

    @property
    def sources(self) -> tuple[str, ...]:
        """Columns that it reads."""
        return self.encoder.sources

    @property
    def shape(self) -> tuple[int, ...]:
        """Of an encoded row."""
        return (len(self.encoder.names),)

    def encode(
        self, raw: Raw, first: int, source: str
    ) -> tuple[Float[np.ndarray, "n d"], list[str]]:
        """Encoded rows, and columns with words that it does not know."""
        table = Table(raw, source)
        for name in self.sources:
            _holes.refuse(_holes.in_cells(name, table.column(name), first), source, FILL_FIRST)
        x, unknown = self.encoder.matrix(table)
        return x, list(unknown)

    def check(self, other: Streamed) -> list[str]:
        """Refuse a pool that it cannot encode; notes on one that differs."""
        layout = getattr(other, "layout", None)
        if not isinstance(layout, Layout):
            raise DatasetError(
                f"{other.name}: expected a table, as {self.encoder.source}, got an array; save it "
                "with the same columns"
            )
        # What the other pool leaves out for itself is no surprise.
        here = [name for name in layout.schema.names if name in {*layout.used, *self.sources}]
        return self.encoder.compare(Table(layout.schema.empty_table().select(here), other.name))
