"""From columns or arrays to a matrix: numbers scaled and words one-hot, as the pool says."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from math import prod
from typing import Any, ClassVar, Protocol, TypeAlias, runtime_checkable

import numpy as np
import pyarrow as pa
from jaxtyping import Float, Int, Shaped

from evgp._errors import DatasetError, DataWarning
from evgp._executor import Executor
from evgp._linalg import BLOCK, in_pairs
from evgp._reading import check_memory
from evgp.datasets import findings
from evgp.datasets.columns import (
    Category,
    Column,
    ColumnMoments,
    Number,
    counted,
    is_category,
    is_constant,
    is_number,
    is_time,
    to_numbers,
    to_words,
)
from evgp.datasets.findings import ColumnLook, Hole, of_ends, of_looks
from evgp.datasets.tables import Table, quoted

# Numbers looked at together.
_AT_ONCE = 2**22

# Rows as they are in files.
Raw: TypeAlias = pa.Table | np.ndarray


@dataclass(frozen=True, eq=False)
class Survey:
    """Statistics of the rows from start to stop, and some of these rows as they are.

    Surveys of 2^j blocks each, merged by `in_pairs`, are the same to the last digit whatever j.
    """

    source: str
    start: int
    stop: int
    moments: ColumnMoments
    sample: Raw
    words: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    holes: tuple[Hole, ...] = ()
    most: int = 50
    total: int = 0  # rows of the whole pool

    def __post_init__(self) -> None:
        rows = self.stop - self.start
        for name, counts in self.words.items():
            if len(counts) > self.most:
                findings.check(self.source, name, counts, rows, self.most, whole=rows == self.total)

    def merge(self, other: "Survey") -> "Survey":
        """The survey of both ranges, where the other begins at the end of this one."""
        if other.start != self.stop:
            raise DatasetError(
                f"{self.source}: expected a survey that begins at row {self.stop}, got one that "
                f"begins at {other.start}; merge them in order"
            )
        return Survey(
            self.source,
            self.start,
            other.stop,
            self.moments.merge(other.moments),
            _stacked(self.sample, other.sample),
            {name: findings.added(self.words[name], other.words[name]) for name in self.words},
            findings.joined(self.holes, other.holes),
            self.most,
            self.total,
        )


def _stacked(one: Raw, other: Raw) -> Raw:
    if isinstance(one, np.ndarray):
        return np.concatenate([one, other]) if len(other) else one
    return pa.concat_tables([one, other]) if len(other) else one


def step_of(width: int) -> int:
    """Rows surveyed together: a block, or a part of one where rows are wide.

    It is a power of two, so that the parts of a block are merged as a tree of their own.

    >>> step_of(20), step_of(3 * 224 * 224)
    (4096, 16)
    """
    step = BLOCK
    while step > 1 and step * width > _AT_ONCE:
        step //= 2
    return step


@runtime_checkable
class Streamed(Protocol):
    """Rows in one or many files, read a block at a time; no file stays open.

    Rows are counted through all files. Any process may hold a copy and read its own range. It says
    `in_files = True`.
    """

    in_files: ClassVar[bool]

    @property
    def name(self) -> str:
        """What to call it in messages."""

    @property
    def files(self) -> tuple[str, ...]:
        """Its files in order."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a row as it is in the files."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns, where rows have any."""

    @property
    def widest(self) -> int:
        """The most numbers that an encoded row may have."""

    def __len__(self) -> int: ...

    def digest(self, file: str) -> str:
        """A hash of all bytes of a file."""

    def survey(self, start: int, stop: int, rows: Int[np.ndarray, " r"]) -> Survey:
        """Statistics of a range in one pass, and those of the sorted rows that lie in it."""

    def fitted(self, survey: Survey) -> "Fitted":
        """The pool with the scaling and categories of a survey of all rows."""

    def cells(self, column: str, rows: Int[np.ndarray, " r"]) -> list[object]:
        """Plain values of one column in a few rows, in the order given."""

    def numbers(self, column: str, start: int, stop: int) -> Float[np.ndarray, " n"]:
        """One column of a range as float64, where every cell must be a number."""

    def raw(
        self, start: int, stop: int, size: int, columns: Sequence[str]
    ) -> Iterator[tuple[int, Raw]]:
        """A range as it is in the files, cut at the multiples of a size."""

    def raw_at(self, rows: Int[np.ndarray, " r"], columns: Sequence[str]) -> Raw:
        """A few rows as they are in the files, in the order given."""


@runtime_checkable
class Code(Protocol):
    """From rows as they are in files to numbers."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the features, where they have any."""

    @property
    def sources(self) -> tuple[str, ...]:
        """Columns that it reads."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of an encoded row."""

    @property
    def unchanged(self) -> bool:
        """Whether encoded rows are the floating point numbers that are in the files."""

    def encode(
        self, raw: Raw, first: int, source: str
    ) -> tuple[Shaped[np.ndarray, " n *d"], list[str]]:
        """Encoded rows, and columns with words that it does not know."""

    def check(self, other: Streamed) -> list[str]:
        """Refuse a pool that it cannot encode; notes on one that differs."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A pool with its scaling and categories, to be read as numbers.

    `kept` are the rows that the survey kept, as they are, and `notes` what looks odd.
    """

    pool: Streamed
    code: Code
    kept: Raw
    notes: tuple[str, ...] = ()

    @property
    def sample(self) -> Shaped[np.ndarray, " r *d"]:
        """The rows that the survey kept."""
        return self.sampled(np.arange(len(self.kept)))

    def sampled(self, rows: Int[np.ndarray, " s"]) -> Shaped[np.ndarray, " s *d"]:
        """Some of the rows that the survey kept."""
        some = self.kept[rows] if isinstance(self.kept, np.ndarray) else self.kept.take(rows)
        return self.code.encode(some, 0, self.pool.name)[0]

    def bare(self) -> "Fitted":
        """The same without these, to be sent elsewhere."""
        return Fitted(self.pool, self.code, self.kept[:0], self.notes)

    def __len__(self) -> int:
        return len(self.pool)

    @property
    def as_is(self) -> tuple[str, ...]:
        """The files, if their floating point numbers are the encoded rows; else none."""
        return self.pool.files if self.code.unchanged else ()

    def content(self, executor: Executor) -> str:
        """A hash of all that the files hold and of how they are read."""
        calls = [(self.pool, file) for file in self.pool.files]
        digests = executor.run(_digest, calls, list(self.pool.files))
        return blake2b(repr((digests, self.code)).encode(), digest_size=16).hexdigest()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features; none where samples have more than one axis."""
        return self.code.names

    @property
    def shape(self) -> tuple[int, ...]:
        """Of an encoded sample."""
        return self.code.shape

    def blocks(
        self, start: int, stop: int, size: int = BLOCK
    ) -> Iterator[tuple[int, Shaped[np.ndarray, " b *d"]]]:
        """The encoded rows of a range in order, cut at the multiples of a size.

        Each block comes with the number of its first row.
        """
        if size < 1:
            raise DatasetError(f"expected blocks of at least 1 row, got size={size}")
        told: set[str] = set()
        for first, raw in self.pool.raw(start, stop, size, self.code.sources):
            x, unknown = self.code.encode(raw, first, self.pool.name)
            self._tell([name for name in unknown if name not in told])
            told.update(unknown)
            yield first, x

    def take(self, rows: Int[np.ndarray, " r"]) -> Shaped[np.ndarray, " r *d"]:
        """A few encoded rows, in the order given."""
        raw = self.pool.raw_at(rows, self.code.sources)
        try:
            x, unknown = self.code.encode(raw, 0, self.pool.name)
        except DatasetError:
            # Once more row by row, for an error with the row's number in the pool.
            for at, row in enumerate(rows.tolist()):
                self.code.encode(raw[at : at + 1], row, self.pool.name)
            raise
        self._tell(unknown)
        return x

    def like(self, other: Streamed) -> "Fitted":
        """Another pool, such as test points, with the scaling and categories of this one."""
        for note in self.code.check(other):
            warnings.warn(f"{other.name}: {note}", DataWarning, stacklevel=2)
        return Fitted(other, self.code, self.kept[:0])

    def _tell(self, unknown: Sequence[str]) -> None:
        for name in unknown:
            warnings.warn(
                f"{self.pool.name}: column {name!r} holds words that the pool does not have; they "
                "count as none of its categories",
                DataWarning,
                stacklevel=3,
            )


def _digest(pool: Streamed, file: str) -> str:
    return pool.digest(file)


# What to do about cells without a value.
FILL = "fill them in, or use impute=True"


@dataclass(frozen=True)
class Encoder:
    """What was learnt from the pool's columns, to be applied to any table with the same names.

    >>> table = Table(pa.table({"size": [1, 3, 3, 1], "kind": ["a", "b", "a", "a"]}), "pool.csv")
    >>> encoder = Encoder.fit(table)
    >>> encoder.names
    ('size', 'kind=a', 'kind=b')
    >>> encoder.transform(table)[:2]
    array([[-1.,  1.,  0.],
           [ 1.,  0.,  1.]])
    """

    columns: tuple[Column, ...]
    ignored: tuple[str, ...] = ()
    impute: bool = False
    notes: tuple[str, ...] = ()
    source: str = "the pool"

    @classmethod
    def fit(cls, table: Table, **options: Any) -> "Encoder":
        """Learn scaling and categories; takes what `fit_transform` takes."""
        return cls.fit_transform(table, **options)[0]

    @classmethod
    def fit_transform(
        cls,
        table: Table,
        *,
        id: str | None = None,
        drop: Sequence[str] = (),
        impute: bool = False,
        max_categories: int = 50,
        standardise: bool = True,
    ) -> tuple["Encoder", Float[np.ndarray, "n d"]]:
        """Learn scaling and categories, and encode the table; `notes` says what looks odd.

        Without `standardise` numbers stay as they are, and so do constant columns.
        """
        left_out = ((id,) if id is not None else ()) + tuple(drop)
        for name in left_out:
            table.column(name)
        layout = TableLayout(
            table.source,
            len(table),
            table.data.schema,
            left_out,
            max_categories,
            standardise,
            impute,
        )
        for name in layout.used:
            usable(table.source, name, table.column(name).type)
        return layout.fit(table.data)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features, column by column."""
        return tuple(name for column in self.columns for name in column.features)

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the table's columns that the features come from."""
        return tuple(column.name for column in self.columns)

    @property
    def words(self) -> tuple[str, ...]:
        """The columns of words: those to be read from a CSV as text."""
        words = [column for column in self.columns if isinstance(column, Category)]
        return tuple(column.name for column in words if column.written)

    def transform(self, table: Table) -> Float[np.ndarray, "n d"]:
        """The features of a table, matched by column name, with the pool's scaling and categories.

        What differs from the pool without stopping the work is a `DataWarning`.
        """
        odd = self.compare(table)
        notes = _refuse_holes(table, self.sources, self.impute) + odd
        x, unknown = self.matrix(table)
        notes += [
            f"{counted(count, 'cell')} of column {name!r} with words that {self.source} does not "
            "have; they count as none of its categories"
            for name, count in unknown.items()
        ]
        for note in notes:
            warnings.warn(f"{table.source}: {note}", DataWarning, stacklevel=2)
        return x

    def compare(self, table: Table) -> list[str]:
        """Refuse a table without the pool's columns, or of other kinds; notes on further ones."""
        here, known = set(table.names), {*self.sources, *self.ignored}
        absent = [name for name in self.sources if name not in here]
        if absent:
            raise DatasetError(
                f"{table.source}: expected the columns of {self.source}, got none named "
                f"{quoted(absent)}"
            )
        self.matrix(Table(table.data.slice(0, 0), table.source))
        extra = [name for name in table.names if name not in known]
        if not extra:
            return []
        return [f"ignored {_named(extra, 'column')} that {self.source} does not have"]

    def matrix(self, table: Table) -> tuple[Float[np.ndarray, "n d"], dict[str, int]]:
        """The features of a table without holes, and the number of unknown words by column."""
        # The matrix, and what is made of the column with the most categories on the way.
        widest = max((len(column.features) for column in self.columns), default=0)
        check_memory(8 * len(table) * (len(self.names) + 2 * widest), table.source)
        x = np.empty((len(table), len(self.names)))
        unknown: dict[str, int] = {}
        start = 0
        for column in self.columns:
            stop = start + len(column.features)
            x[:, start:stop] = self._encode(column, table, unknown)
            start = stop
        return x, unknown

    def _encode(
        self, column: Column, table: Table, unknown: dict[str, int]
    ) -> Float[np.ndarray, "n d"]:
        cells = table.column(column.name)
        if isinstance(column, Number):
            if not (is_number(cells.type) or is_time(cells.type)):
                raise DatasetError(
                    f"{table.source}: expected numbers in column {column.name!r}, as in "
                    f"{self.source}, got {cells.type}"
                )
            values = to_numbers(cells)
            with np.errstate(over="ignore"):
                made = column.encode(np.where(np.isfinite(values), values, column.fill))
            if not np.isfinite(made).all():
                row = int(np.argmin(np.isfinite(made[:, 0])))
                raise DatasetError(
                    f"{table.source}: expected numbers near those of {self.source} in column "
                    f"{column.name!r}, got {values[row]:.6g} in row {row}, which is too far from "
                    "them to be scaled; check it"
                )
            return made
        if not (is_category(cells.type) or is_number(cells.type)):
            raise DatasetError(
                f"{table.source}: expected words in column {column.name!r}, as in {self.source}, "
                f"got {cells.type}"
            )
        codes = column.codes(to_words(cells))
        if none := int((codes < 0).sum()):
            unknown[column.name] = none
        return column.encode(codes)


def too_few(source: str, rows: int) -> DatasetError:
    """What to say of a pool without a choice."""
    return DatasetError(f"{source}: expected at least 2 rows to choose from, got {rows}")


def usable(source: str, name: str, kind: pa.DataType) -> None:
    """Refuse a column that holds neither numbers nor words."""
    if not (is_number(kind) or is_time(kind) or is_category(kind)):
        raise DatasetError(
            f"{source}: expected numbers or words in column {name!r}, got {kind}; spread it over "
            f"plain columns, or leave it out with drop={name!r}"
        )


def nothing(source: str, constant: int, left_out: int) -> DatasetError:
    """What to say of a pool whose rows are all alike."""
    return DatasetError(
        f"{source}: expected a column that differs between rows, got "
        f"{counted(constant, 'constant column')} and {left_out} left out; there is nothing to "
        "choose by"
    )


def none_left(source: str, left_out: int) -> DatasetError:
    """What to say of a pool whose columns are all left out."""
    return DatasetError(
        f"{source}: expected a column to choose by, got {left_out} left out and no other; leave "
        "out fewer"
    )


def dropped(constant: Sequence[str]) -> str:
    """The note on constant columns."""
    return f"dropped {_named(constant, 'constant column')}"


def as_seconds(name: str) -> str:
    """The note on a column of times."""
    return f"column {name!r} holds times, taken as seconds"


def taken(hint: str, categories: int) -> str:
    """The note on words that may have been meant otherwise."""
    return f"{hint} (taken as {categories} categories)"


def filled(holes: Sequence[Hole]) -> str:
    """The note on cells that had no value."""
    total = counted(sum(hole.count for hole in holes), "cell")
    return f"filled {total} with the pool's mean or most frequent word: {findings.listed(holes)}"


def _refuse_holes(table: Table, names: Sequence[str], impute: bool) -> list[str]:
    """Raise for missing and infinite cells, with columns and rows, or note that they are filled."""
    found = [hole for name in names for hole in findings.in_cells(name, table.column(name))]
    if not impute:
        findings.refuse(found, table.source, FILL)
    return [filled(found)] if found else []


def _named(names: Sequence[str], what: str) -> str:
    return f"{counted(len(names), what)} ({quoted(names)})"


@dataclass(frozen=True)
class TableLayout:
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
        out = set(self.left_out)
        return tuple(name for name in self.schema.names if name not in out)

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
            holes += findings.in_numbers(name, row, first)
        counts = {}
        numeric = set(self.numeric)
        for name in (one for one in self.used if one not in numeric):
            words = to_words(table.column(name))
            counts[name] = findings.counts_of(words)
            holes += findings.in_cells(name, words, first)
        last = first + len(table)
        inside = slice(*np.searchsorted(rows, [first, last]))
        return Survey(
            self.source,
            first,
            last,
            ColumnMoments.of(x),
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
        notes = (*encoder.notes, *findings.of_pool(whole, encoder.columns, x))
        return replace(encoder, notes=notes), x

    def learn(self, survey: Survey) -> Encoder:
        """Scaling and categories, with notes on what looks odd."""
        encoder, looks = self._learnt(survey)
        return replace(encoder, notes=(*encoder.notes, *findings.of_looks(looks)))

    def _learnt(self, survey: Survey) -> tuple[Encoder, list[findings.ColumnLook]]:
        """Scaling and categories, and how the columns look."""
        if self.rows < 2:
            raise too_few(self.source, self.rows)
        notes: list[str] = []
        if survey.holes and not self.impute:
            findings.refuse(survey.holes, self.source, FILL)
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
        self, at: int, made: Number, moments: ColumnMoments, notes: list[str]
    ) -> tuple[Column | None, findings.ColumnLook]:
        name, low, high = made.name, float(moments.low[at]), float(moments.high[at])
        if low > high or (self.standardise and is_constant(made, low, high)):
            return None, findings.ColumnLook(name)
        kind = self.schema.field(name).type
        if is_time(kind):
            notes.append(as_seconds(name))
        whole = pa.types.is_integer(kind)
        return made, findings.ColumnLook(
            name,
            all_differ=whole and self.rows >= 10 and bool(moments.rising[at]),
            has_few=whole and findings.are_few(high - low + 1, self.rows),
            wild=findings.of_ends(made, low, high),
        )

    def _words(
        self, name: str, counts: Mapping[str, int], notes: list[str]
    ) -> tuple[Column | None, findings.ColumnLook]:
        look = findings.ColumnLook(name, has_few=findings.are_few(len(counts), self.rows))
        if len(counts) < 2:
            return None, look
        most, written = self.max_categories, not pa.types.is_boolean(self.schema.field(name).type)
        hint = findings.check(self.source, name, counts, self.rows, most, written=written)
        if hint:
            notes.append(taken(hint, len(counts)))
        return findings.category(name, counts, written), look


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
            findings.refuse(findings.in_cells(name, table.column(name), first), source, FILL)
        x, unknown = self.encoder.matrix(table)
        return x, list(unknown)

    def check(self, other: Streamed) -> list[str]:
        """Refuse a pool that it cannot encode; notes on one that differs."""
        layout = getattr(other, "layout", None)
        if not isinstance(layout, TableLayout):
            raise DatasetError(
                f"{other.name}: expected a table, as {self.encoder.source}, got an array; save it "
                "with the same columns"
            )
        # What the other pool leaves out for itself is no surprise.
        here = [name for name in layout.schema.names if name in {*layout.used, *self.sources}]
        return self.encoder.compare(Table(layout.schema.empty_table().select(here), other.name))


@dataclass(frozen=True)
class ArrayLayout:
    """Rows of one shape and type: columns x0, x1, ..., or channels with further axes.

    Constant columns are dropped, unless the shape is `fixed`; then they are zeros, as channels are.
    """

    source: str
    rows: int
    shape: tuple[int, ...]
    dtype: np.dtype
    left_out: tuple[str, ...] = ()
    standardise: bool = True
    fixed: bool = False

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns; none where a row has more than one axis."""
        return tuple(f"x{at}" for at in range(self.shape[0])) if len(self.shape) == 1 else ()

    @cached_property
    def used(self) -> Int[np.ndarray, " p"]:
        """The places of the columns that become features, or of all channels."""
        out = [int(name[1:]) for name in self.left_out]
        return np.setdiff1d(np.arange(self.shape[0]), out)

    def name(self, place: int) -> str:
        """Of a column, or of a channel."""
        return f"x{place}" if len(self.shape) == 1 else f"channel {place}"

    def holes(
        self, x: Float[np.ndarray, "n p s"], places: Int[np.ndarray, " p"], first: int
    ) -> tuple[Hole, ...]:
        """What is not finite in these columns or channels of a block that begins at row `first`."""
        if np.isfinite(x).all():
            return ()
        found: list[Hole] = []
        for at, place in enumerate(places.tolist()):
            for what, where in (("NaN", np.isnan(x[:, at])), ("infinite", np.isinf(x[:, at]))):
                rows = np.flatnonzero(where.any(axis=1))[:4] + first
                if len(rows):
                    count = int(where.sum())
                    found.append(Hole(self.name(place), what, count, tuple(rows.tolist())))
        return tuple(found)

    def survey(self, first: int, x: Raw, rows: Int[np.ndarray, " r"]) -> Survey:
        """Statistics of a block, and those of the sorted rows that lie in it."""
        values = as_float(x, self.used)
        holes = self.holes(values, self.used, first)
        last = first + len(x)
        inside = slice(*np.searchsorted(rows, [first, last]))
        moments = ColumnMoments.of(values.transpose(1, 0, 2).reshape(len(self.used), -1))
        return Survey(self.source, first, last, moments, x[rows[inside] - first], {}, holes)

    def learn(self, survey: Survey) -> tuple["ArrayCode", list[str]]:
        """Scaling by column, or by channel, and notes on what looks odd."""
        if self.rows < 2:
            raise too_few(self.source, self.rows)
        findings.refuse(survey.holes, self.source, FILL)
        moments, names = survey.moments, [self.name(at) for at in self.used.tolist()]
        made = moments.numbers(names, int(moments.count[0]), self.standardise)
        ends = list(zip(moments.low.tolist(), moments.high.tolist(), strict=True))
        flat = np.array([is_constant(one, *end) for one, end in zip(made, ends, strict=True)])
        constant = [name for name, is_flat in zip(names, flat, strict=True) if is_flat]
        notes = []
        kept = np.ones(len(made), dtype=bool)
        if self.standardise and constant:
            if flat.all():
                raise nothing(self.source, len(constant), len(self.left_out))
            droppable = bool(self.columns) and not self.fixed
            kept = ~flat if droppable else kept
            zero = f"{quoted(constant)}: the same number everywhere, taken as 0"
            notes.append(dropped(constant) if droppable else zero)
        if self.columns:
            notes += of_looks([ColumnLook(names[at], False, False, of_ends(made[at], *ends[at]))
                               for at in np.flatnonzero(kept & ~flat)])  # fmt: skip
        whole = self.dtype.kind in "iu" and not self.standardise
        if whole and moments.high.max() >= 2.0**63:
            raise DatasetError(
                f"{self.source}: expected whole numbers below 2^63, got {moments.high.max():.6g}; "
                "save them as int64"
            )
        wide = np.array([(one.scale, one.mean, one.std) for one in made])[kept]
        wide[flat[kept] & self.standardise, 2] = np.inf
        return ArrayCode(self, self.used[kept], wide[:, 0], wide[:, 1], wide[:, 2], whole), notes


@dataclass(frozen=True, eq=False)
class ArrayCode:
    """A scale for each column or channel that is kept; whole numbers may stay what they are."""

    layout: ArrayLayout
    kept: Int[np.ndarray, " p"]
    unit: Float[np.ndarray, " p"]
    mean: Float[np.ndarray, " p"]
    std: Float[np.ndarray, " p"]
    whole: bool = False

    @property
    def unchanged(self) -> bool:
        """Whether encoded rows are the floating point numbers that are in the files."""
        whole = len(self.layout.shape) == 1 and len(self.kept) == self.layout.shape[0]
        return whole and self.layout.dtype.kind == "f" and not self.layout.standardise

    @property
    def names(self) -> tuple[str, ...]:
        """Of the features; none where a row has more than one axis."""
        return tuple(self.layout.columns[at] for at in self.kept) if self.layout.columns else ()

    @property
    def sources(self) -> tuple[str, ...]:
        """The same: an array is read with all its columns."""
        return self.names

    @property
    def shape(self) -> tuple[int, ...]:
        """Of an encoded row."""
        return (len(self.kept), *self.layout.shape[1:])

    def encode(
        self, raw: Raw, first: int, source: str
    ) -> tuple[Shaped[np.ndarray, " n *d"], list[str]]:
        """Encoded rows; there are no words in an array."""
        if self.whole:
            return np.array(raw[:, self.kept], dtype=np.int64, order="C"), []
        x = as_float(raw, self.kept)
        findings.refuse(self.layout.holes(x, self.kept, first), source, FILL)
        if self.layout.standardise:
            x /= self.unit[:, None]
            x -= self.mean[:, None]
            x /= self.std[:, None]
        return x.reshape(len(x), *self.shape), []

    def check(self, other: Streamed) -> list[str]:
        """Refuse a pool of another shape."""
        layout = getattr(other, "layout", None)
        if not isinstance(layout, ArrayLayout) or layout.shape != self.layout.shape:
            raise DatasetError(
                f"{other.name}: expected rows of shape {self.layout.shape}, as in "
                f"{self.layout.source}, got {other.shape}; save both alike"
            )
        if self.whole and layout.dtype.kind not in "iu":
            raise DatasetError(
                f"{other.name}: expected whole numbers, as in {self.layout.source}, got "
                f"{layout.dtype}; save both alike"
            )
        return []


def as_float(x: Raw, places: Int[np.ndarray, " p"]) -> Float[np.ndarray, "n p s"]:
    """A fresh copy of some columns or channels in float64, with further axes made one."""
    some = x if len(places) == x.shape[1] else x[:, places]
    # A number beyond float64 becomes inf here, and is reported as such.
    with np.errstate(over="ignore"):
        return np.array(some, dtype=np.float64, order="C").reshape(
            len(x), len(places), prod(x.shape[2:])
        )
