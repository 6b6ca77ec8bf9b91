"""What the columns of a streamed table are, and what a survey teaches of them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
from jaxtyping import Float, Int

from evgp._errors import DatasetError
from evgp._linalg import in_pairs
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
from evgp.datasets.encode import (
    FILL,
    Encoder,
    as_seconds,
    dropped,
    filled,
    nothing,
    taken,
    too_few,
)
from evgp.datasets.fitted import Streamed
from evgp.datasets.survey import Raw, Survey, step_of
from evgp.datasets.tables import Table


@dataclass(frozen=True)
class Layout:
    """Named columns of a known kind; those `left_out` are no features."""

    source: str
    rows: int
    schema: pa.Schema
    left_out: tuple[str, ...] = ()
    max_categories: int = 50
    standardise: bool = True
    impute: bool = False

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
            holes += _holes.in_numbers(name, row, first)
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
            Moments.of(x),
            table.take(rows[inside] - first) if len(rows) else table.slice(0, 0),
            counts,
            tuple(holes),
            self.max_categories,
            self.rows,
        )

    def fit(self, table: pa.Table) -> tuple[Encoder, Float[np.ndarray, "n d"]]:
        """What a table in memory teaches, as in files but with more of what looks odd; its rows."""
        step, nobody = step_of(len(self.used)), np.empty(0, dtype=np.int64)
        parts = (
            self.survey(first, table.slice(first, step), nobody)
            for first in range(0, max(1, self.rows), step)
        )
        encoder, _ = self._learnt(in_pairs(parts, Survey.merge))
        whole = Table(table, self.source)
        x, _ = encoder.matrix(whole)
        notes = (*encoder.notes, *_looks.of_pool(whole, encoder.columns, x))
        return replace(encoder, notes=notes), x

    def learn(self, survey: Survey) -> Encoder:
        """Scaling and categories, with notes on what looks odd."""
        encoder, looks = self._learnt(survey)
        return replace(encoder, notes=(*encoder.notes, *_looks.of_looks(looks)))

    def _learnt(self, survey: Survey) -> tuple[Encoder, list[_looks.Look]]:
        """Scaling and categories, and how the columns look."""
        if self.rows < 2:
            raise too_few(self.source, self.rows)
        notes: list[str] = []
        if survey.holes and not self.impute:
            _holes.refuse(survey.holes, self.source, FILL)
        if survey.holes:
            notes.append(filled(survey.holes))
        columns, looks, constant = [], [], []
        moments = survey.moments
        scaled = moments.numbers(self.numeric, self.rows, self.standardise)
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
        ignored = (*self.left_out, *constant)
        return Encoder(tuple(columns), ignored, self.impute, tuple(notes), self.source), looks

    def _number(
        self, at: int, made: Number, moments: Moments, notes: list[str]
    ) -> tuple[Column | None, _looks.Look]:
        name, low, high = made.name, float(moments.low[at]), float(moments.high[at])
        if low > high or (self.standardise and is_constant(made, low, high)):
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
        for name in () if self.encoder.impute else self.sources:
            _holes.refuse(_holes.in_cells(name, table.column(name), first), source, FILL)
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
