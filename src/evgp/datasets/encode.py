"""Encode columns or arrays as a matrix: numbers scaled, categories one-hot, as in the pool."""

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

from evgp._defaults import MAX_CATEGORIES
from evgp._executor import Executor
from evgp._linalg import BLOCK, in_pairs
from evgp._reading import check_memory
from evgp.datasets import checks
from evgp.datasets.arrays import check_columns
from evgp.datasets.checks import MissingCells
from evgp.datasets.columns import (
    Category,
    Number,
    counted,
    cycles_of,
    is_category,
    is_number,
    is_time,
    phases,
    to_numbers,
    to_text,
)
from evgp.datasets.scaling import ColumnMoments, described, shape_rows_
from evgp.datasets.tables import Table, check_names
from evgp.datasets.vectors import Column, Vector, empty, is_vector, length_of, matrix_of, member
from evgp.errors import (
    DatasetError,
    DataWarning,
    TooFewRows,
    TooManyCategories,
    UnusableColumn,
    quoted,
)

# Maximum numbers processed at once.
_AT_ONCE = 2**22

# Rows as stored in the files.
Raw: TypeAlias = pa.Table | np.ndarray


@dataclass(frozen=True, eq=False)
class Survey:
    """Statistics of the rows from start to stop, and a sample of these rows as stored.

    Surveys of 2^j blocks each, merged by `in_pairs`, agree to the last digit for every j.
    """

    source: str
    start: int
    stop: int
    moments: ColumnMoments
    sample: Raw
    words: Mapping[str, Mapping[str, int] | None] = field(default_factory=dict)
    missing: tuple[MissingCells, ...] = ()
    most: int = MAX_CATEGORIES
    total: int = 0  # rows of the whole pool
    # Whether a column of text is ignored (None in `words`) because another column describes the
    # rows.
    passes: bool = False
    # Smallest and largest phase of the day, week and year in each column of times.
    clocks: Mapping[str, Float[np.ndarray, "2 3"]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rows = self.stop - self.start
        kept = dict(self.words)
        for name, counts in self.words.items():
            if counts is not None and len(counts) > self.most:
                whole = rows == self.total
                try:
                    checks.check(self.source, name, counts, rows, self.most, whole=whole)
                except (TooManyCategories, UnusableColumn):
                    if not self.passes:
                        raise
                    kept[name] = None
        object.__setattr__(self, "words", kept)

    def merge(self, other: "Survey") -> "Survey":
        """Return the survey of both ranges; the other must begin at the end of this one."""
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
            {name: _added(self.words[name], other.words[name]) for name in self.words},
            checks.joined(self.missing, other.missing),
            self.most,
            self.total,
            self.passes,
            {name: _wider(self.clocks[name], other.clocks[name]) for name in self.clocks},
        )


def _added(
    first: Mapping[str, int] | None, second: Mapping[str, int] | None
) -> Mapping[str, int] | None:
    return None if first is None or second is None else checks.added(first, second)


def _wider(
    first: Float[np.ndarray, "2 3"], second: Float[np.ndarray, "2 3"]
) -> Float[np.ndarray, "2 3"]:
    return np.stack([np.minimum(first[0], second[0]), np.maximum(first[1], second[1])])


def _clock(seconds: Float[np.ndarray, " n"]) -> Float[np.ndarray, "2 3"]:
    """Return the smallest and the largest phase of the times that are not missing."""
    turns = phases(seconds[np.isfinite(seconds)])
    return np.stack([turns.min(axis=1, initial=np.inf), turns.max(axis=1, initial=-np.inf)])


def _stacked(first: Raw, second: Raw) -> Raw:
    if isinstance(first, np.ndarray):
        return np.concatenate([first, second]) if len(second) else first
    return pa.concat_tables([first, second]) if len(second) else first


def step_of(width: int) -> int:
    """Return how many rows are surveyed at once: a block, or a part of one if rows are wide.

    The result is a power of two, so that the parts of a block merge as a subtree.

    >>> step_of(20), step_of(3 * 224 * 224)
    (4096, 16)
    """
    step = BLOCK
    while step > 1 and step * width > _AT_ONCE:
        step //= 2
    return step


def surveyed(layout: "TableLayout | ArrayLayout", rows: Raw, width: int) -> Survey:
    """Survey rows in memory, a block at a time."""
    step, none = step_of(width), np.empty(0, dtype=np.int64)
    starts = range(0, max(1, len(rows)), step)
    parts = (layout.survey(first, rows[first : first + step], none) for first in starts)
    return in_pairs(parts, Survey.merge)


@runtime_checkable
class Streamed(Protocol):
    """Rows in one or more files, read a block at a time; no file stays open.

    Row numbers run through all files. Any process may hold a copy and read its own range.
    Implementations set `in_files = True`, and `by_name = True` if columns have names of their own;
    `flat()`, if there is one, returns the same rows with one axis.
    """

    in_files: ClassVar[bool]

    @property
    def name(self) -> str:
        """Name of the pool in messages."""

    @property
    def files(self) -> tuple[str, ...]:
        """Paths of the files, in order."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of a row as stored in the files."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns; empty if rows have more than one axis."""

    @property
    def widest(self) -> int:
        """Maximum number of features of an encoded row."""

    def __len__(self) -> int: ...

    def digest(self, file: str) -> str:
        """Return a hash of all bytes of a file."""

    def survey(self, start: int, stop: int, rows: Int[np.ndarray, " r"]) -> Survey:
        """Compute statistics of a range in one pass, and keep the sorted `rows` that are in it."""

    def fitted(self, survey: Survey) -> "Fitted":
        """Return the pool with the scaling and categories of a survey of all rows."""

    def cells(self, column: str, rows: Int[np.ndarray, " r"]) -> list[object]:
        """Return the values of one column in a few rows, in the given order."""

    def numbers(self, column: str, start: int, stop: int) -> Float[np.ndarray, " n"]:
        """Return one column of a range as float64; every cell must be a number."""

    def raw(
        self, start: int, stop: int, size: int, columns: Sequence[str]
    ) -> Iterator[tuple[int, Raw]]:
        """Yield the rows of a range as stored, cut at the multiples of `size`."""

    def raw_at(self, rows: Int[np.ndarray, " r"], columns: Sequence[str]) -> Raw:
        """Return a few rows as stored, in the given order."""


@runtime_checkable
class Code(Protocol):
    """Encodes stored rows as numbers."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features; empty if they have none."""

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the columns that are read."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of an encoded row."""

    @property
    def unchanged(self) -> bool:
        """Whether encoded rows equal the floating-point numbers in the files."""

    @property
    def scale(self) -> str | None:
        """How numbers are scaled."""

    def encode(
        self, raw: Raw, first: int, source: str
    ) -> tuple[Shaped[np.ndarray, " n *d"], list[str]]:
        """Return encoded rows, and the columns with unknown categories."""

    def check(self, other: Streamed) -> list[str]:
        """Refuse a pool that cannot be encoded; return notes on harmless differences."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A pool in files with its scaling and categories, to be read as numbers.

    `kept` are the rows that the survey kept, as stored; `notes` lists suspicious columns.
    """

    pool: Streamed
    code: Code
    kept: Raw
    notes: tuple[str, ...] = ()

    @property
    def sample(self) -> Shaped[np.ndarray, " r *d"]:
        """The rows that the survey kept, encoded."""
        return self.sampled(np.arange(len(self.kept)))

    def sampled(self, rows: Int[np.ndarray, " s"]) -> Shaped[np.ndarray, " s *d"]:
        """Encode some of the rows that the survey kept."""
        raw = self.kept[rows] if isinstance(self.kept, np.ndarray) else self.kept.take(rows)
        return self.code.encode(raw, 0, self.pool.name)[0]

    def bare(self) -> "Fitted":
        """Return a copy without the kept rows, to be sent to workers."""
        return Fitted(self.pool, self.code, self.kept[:0], self.notes)

    def __len__(self) -> int:
        return len(self.pool)

    @property
    def as_is(self) -> tuple[str, ...]:
        """Paths of the files if their numbers equal the encoded rows; else empty."""
        return self.pool.files if self.code.unchanged else ()

    def content(self, executor: Executor) -> str:
        """Return a hash of the content of all files and of how they are encoded."""
        calls = [(self.pool, file) for file in self.pool.files]
        digests = executor.run(_digest, calls, list(self.pool.files))
        return blake2b(repr((digests, self.code)).encode(), digest_size=16).hexdigest()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features; empty if samples have more than one axis."""
        return self.code.names

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of an encoded row."""
        return self.code.shape

    def blocks(
        self, start: int, stop: int, size: int = BLOCK
    ) -> Iterator[tuple[int, Shaped[np.ndarray, " b *d"]]]:
        """Yield the encoded rows of a range in blocks, cut at the multiples of `size`.

        Each block comes with the number of its first row.
        """
        if size < 1:
            raise DatasetError(f"expected blocks of at least 1 row, got size={size}")
        warned: set[str] = set()
        for first, raw in self.pool.raw(start, stop, size, self.code.sources):
            x, unknown = self.code.encode(raw, first, self.pool.name)
            self._warn([name for name in unknown if name not in warned])
            warned.update(unknown)
            yield first, x

    def take(self, rows: Int[np.ndarray, " r"]) -> Shaped[np.ndarray, " r *d"]:
        """Return a few encoded rows, in the given order."""
        raw = self.pool.raw_at(rows, self.code.sources)
        try:
            x, unknown = self.code.encode(raw, 0, self.pool.name)
        except DatasetError:
            # Encode row by row, so that the error names the row's number in the pool.
            for at, row in enumerate(rows.tolist()):
                self.code.encode(raw[at : at + 1], row, self.pool.name)
            raise
        self._warn(unknown)
        return x

    def like(self, other: Streamed) -> "Fitted":
        """Return another pool, such as test points, with this pool's scaling and categories."""
        for note in self.code.check(other):
            warnings.warn(f"{other.name}: {note}", DataWarning, stacklevel=2)
        return Fitted(other, self.code, self.kept[:0])

    def _warn(self, unknown: Sequence[str]) -> None:
        for name in unknown:
            warnings.warn(
                f"{self.pool.name}: column {name!r}: values that the pool does not have; they "
                "count as none of its categories",
                DataWarning,
                stacklevel=3,
            )


def _digest(pool: Streamed, file: str) -> str:
    return pool.digest(file)


# Advice about missing values.
FILL = "fill them in, or use impute=True"


@dataclass(frozen=True)
class Encoder:
    """The scaling and categories of a pool's columns, applicable to tables with the same columns.

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
    scale: str | None = "columns"
    unchanged: ClassVar[bool] = False  # the columns of a table are joined into a matrix

    @classmethod
    def fit(cls, table: Table, **options: Any) -> "Encoder":
        """Fit the scaling and categories; takes the arguments of `fit_transform`."""
        return cls.fit_transform(table, **options)[0]

    @classmethod
    def fit_transform(
        cls,
        table: Table,
        *,
        id: str | None = None,
        drop: Sequence[str] = (),
        impute: bool = False,
        max_categories: int = MAX_CATEGORIES,
        scale: str | None = "auto",
    ) -> tuple["Encoder", Float[np.ndarray, "n d"]]:
        """Fit the scaling and categories, and encode the table; `notes` lists suspicious columns.

        Without a `scale`, numbers are not scaled, and constant columns are kept.
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
            scale,
            impute,
        )
        lengths = {}
        for name in layout.used:
            if is_vector(table.data.schema.field(name).type):
                if (length := length_of(table.data.column(name))) is None:
                    raise empty(table.source, name)
                lengths[name] = length
        layout = layout.with_lengths(lengths)
        encoder = layout.learnt(surveyed(layout, table.data, layout.width))
        x, _ = encoder.columns_of(table)
        notes = (*encoder.notes, *checks.of_pool(table, encoder.columns, x))
        encoder.shape_(x)
        return replace(encoder, notes=notes), x

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features, column by column."""
        return tuple(name for column in self.columns for name in column.features)

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the table's columns that the features come from."""
        return tuple(column.name for column in self.columns)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of an encoded row."""
        return (len(self.names),)

    @property
    def words(self) -> tuple[str, ...]:
        """Names of the categorical columns that must be read from a CSV file as text."""
        categorical = [column for column in self.columns if isinstance(column, Category)]
        return tuple(column.name for column in categorical if column.written)

    def transform(self, table: Table) -> Float[np.ndarray, "n d"]:
        """Encode a table with the pool's scaling and categories; columns are matched by name.

        Differences from the pool that do no harm cause a `DataWarning`.
        """
        differences = self.compare(table)
        notes = _refuse_missing(table, self.columns, self.impute) + differences
        x, unknown = self.matrix(table)
        notes += [
            f"column {name!r}: values that {self.source} does not have, in "
            f"{counted(count, 'cell')}; they count as none of its categories"
            for name, count in unknown.items()
        ]
        for note in notes:
            warnings.warn(f"{table.source}: {note}", DataWarning, stacklevel=2)
        return x

    def compare(self, table: Table) -> list[str]:
        """Refuse a table without the pool's columns and types; return notes on extra columns."""
        here, known = set(table.names), {*self.sources, *self.ignored}
        absent = [name for name in self.sources if name not in here]
        if absent:
            raise DatasetError(
                f"{table.source}: column{'s'[: len(absent) - 1]} {quoted(absent)} of {self.source} "
                f"{'is' if len(absent) == 1 else 'are'} missing"
            )
        self.matrix(Table(table.data.slice(0, 0), table.source))
        extra = [name for name in table.names if name not in known]
        if not extra:
            return []
        return [f"ignored {_named(extra, 'column')} that {self.source} does not have"]

    def encode(
        self, raw: Raw, first: int, source: str
    ) -> tuple[Float[np.ndarray, "n d"], list[str]]:
        """Return encoded rows of a file, and the columns with unknown categories."""
        table = Table(raw, source)
        for column in () if self.impute else self.columns:
            checks.refuse(_missing(table, column, first), source, FILL)
        x, unknown = self.matrix(table)
        return x, list(unknown)

    def check(self, other: Streamed) -> list[str]:
        """Refuse a pool in files that cannot be encoded; return notes on harmless differences."""
        layout = getattr(other, "layout", None)
        if not isinstance(layout, TableLayout):
            raise DatasetError(
                f"{other.name}: expected a table, like {self.source}, got an array; save it with "
                "the same columns"
            )
        # Columns that the other pool leaves out need no note.
        here = [name for name in layout.schema.names if name in {*layout.used, *self.sources}]
        return self.compare(Table(layout.schema.empty_table().select(here), other.name))

    def matrix(self, table: Table) -> tuple[Float[np.ndarray, "n d"], dict[str, int]]:
        """Encode a table without missing values; also count unknown categories by column."""
        x, unknown = self.columns_of(table)
        self.shape_(x)
        return x, unknown

    def shape_(self, x: Float[np.ndarray, "n d"]) -> None:
        """Finish the scaling of encoded columns in place, by group, so that groups count equally.

        Plain columns are one group, in which one-hot columns stay as they are, and each column of
        lists is another.
        """
        if self.scale is None:
            return
        kinds = [type(column) for column in self.columns for _ in column.features]
        if self.scale in ("smooth", "smooth-unit", "unit"):
            # In a column of times, the cycles follow the time itself.
            firsts = [at == 0 for column in self.columns for at in range(len(column.features))]
            numbers = [kind is Number and first for kind, first in zip(kinds, firsts, strict=True)]
            if all(numbers):
                shape_rows_(x, self.scale)
            elif any(numbers):
                part = np.ascontiguousarray(x[:, numbers])
                shape_rows_(part, self.scale)
                x[:, numbers] = part
        if Vector not in kinds:
            return
        plain, others = self._weights()
        if plain != 1:
            x[:, [kind is not Vector for kind in kinds]] *= plain
        start = 0
        for column, weight in zip(self.columns, others, strict=True):
            stop = start + len(column.features)
            if isinstance(column, Vector):
                shape_rows_(x[:, start:stop], column.scale)
                if weight != 1:
                    x[:, start:stop] *= weight
            start = stop

    def _weights(self) -> tuple[float, list[float]]:
        """Return the weight of plain columns, and of each column if it holds lists.

        The mean square of a row is about 1 for each plain column, and for each number of a list.
        With weights it is the same for all groups, and still about 1 for each feature.
        """
        lists = [column for column in self.columns if isinstance(column, Vector)]
        count = len(self.columns) - len(lists)
        share = len(self.names) / (len(lists) + (count > 0))
        sizes = [len(column.features) for column in self.columns]
        return (share / max(count, 1)) ** 0.5, [(share / size) ** 0.5 for size in sizes]

    def columns_of(self, table: Table) -> tuple[Float[np.ndarray, "n d"], dict[str, int]]:
        """Encode each column by itself; also count unknown categories by column."""
        # The matrix, and the temporary arrays of the column with the most categories.
        widest = max((len(column.features) for column in self.columns), default=0)
        check_memory(8 * len(table) * (len(self.names) + 2 * widest), table.source)
        x = np.empty((len(table), len(self.names)))
        unknown: dict[str, int] = {}
        start = 0
        for column in self.columns:
            cells, stop = table.column(column.name), start + len(column.features)
            if isinstance(column, Vector):
                x[:, start:stop] = self._lists(column, table)
            elif isinstance(column, Number):
                if not (is_number(cells.type) or is_time(cells.type)):
                    raise self._other_kind(table, column, "numbers", cells)
                values = to_numbers(cells)
                with np.errstate(over="ignore"):
                    encoded = column.encode(np.where(np.isfinite(values), values, column.fill))
                if not np.isfinite(encoded).all():
                    row = int(np.argmin(np.isfinite(encoded[:, 0])))
                    raise DatasetError(
                        f"{table.source}: expected numbers near those of {self.source} in column "
                        f"{column.name!r}, got {values[row]:.6g} in row {row}, which is too far "
                        "from them to be scaled; check it"
                    )
                x[:, start:stop] = encoded
            else:
                if not (is_category(cells.type) or is_number(cells.type)):
                    raise self._other_kind(table, column, "words", cells)
                codes = column.codes(to_text(cells))
                if none := int((codes < 0).sum()):
                    unknown[column.name] = none
                x[:, start:stop] = column.encode(codes)
            start = stop
        return x, unknown

    def _other_kind(
        self, table: Table, column: Column, expected: str, cells: pa.ChunkedArray
    ) -> DatasetError:
        return DatasetError(
            f"{table.source}: expected {expected} in column {column.name!r}, as in "
            f"{self.source}, got {cells.type}"
        )

    def _lists(self, column: Vector, table: Table) -> Float[np.ndarray, "n d"]:
        cells = table.column(column.name)
        if not is_vector(cells.type):
            raise DatasetError(
                f"{table.source}: expected lists of {column.length} numbers in column "
                f"{column.name!r}, as in {self.source}, got {cells.type}"
            )
        x = np.empty((len(table), len(column.features)))
        step = step_of(column.length)
        for row in range(0, len(table), step):
            part = cells.slice(row, step)
            values = matrix_of(part, column.length, column.name, table.source, row)
            x[row : row + step] = column.encode(values)
        if not np.isfinite(x).all():
            row, at = np.argwhere(~np.isfinite(x))[0].tolist()
            raise DatasetError(
                f"{table.source}: expected numbers near those of {self.source} in column "
                f"{column.features[at]!r}, got one in row {row} that is too far from them to be "
                "scaled; check it"
            )
        return x


def too_few(source: str, rows: int) -> DatasetError:
    """Return the error for a pool with too few rows to choose from."""
    return TooFewRows(source, 2, rows)


def usable(source: str, name: str, kind: pa.DataType) -> None:
    """Refuse a column that is neither numeric nor categorical, nor holds lists of numbers."""
    if not (is_number(kind) or is_time(kind) or is_category(kind) or is_vector(kind)):
        advice = f"split it into one column per value, or leave it out with drop={name!r}"
        raise UnusableColumn(source, name, "numbers or words", str(kind), advice)


def nothing(source: str, constant: Sequence[str], left_out: int) -> DatasetError:
    """Return the error for a pool whose rows are all alike."""
    return DatasetError(
        f"{source}: expected a column whose values differ, got "
        f"{_named(constant, 'constant column')} and {left_out} left out; there is nothing to "
        "choose by"
    )


def none_left(source: str, left_out: int) -> DatasetError:
    """Return the error for a pool whose columns are all left out."""
    return DatasetError(
        f"{source}: expected a column to choose by, but all {left_out} are left out; leave out "
        "fewer"
    )


def dropped(constant: Sequence[str]) -> str:
    """Return the note on constant columns."""
    return f"dropped {_named(constant, 'constant column')}"


def as_seconds(column: Number) -> str:
    """Return the note on a column of times."""
    more = f", and as points on a circle: {', '.join(column.cycles)}" if column.cycles else ""
    return f"column {column.name!r} holds times, taken as seconds{more}"


def taken(hint: str, categories: int) -> str:
    """Return the note on a categorical column that was probably meant to be numeric."""
    return f"{hint} (taken as {categories} categories)"


def lists_noted(columns: Sequence[Column], texts: Sequence[str]) -> list[str]:
    """Return the notes on columns of lists, and on free text next to them that is left out."""
    lists = [column for column in columns if isinstance(column, Vector)]
    plain = len(columns) - len(lists)
    others = "the other column" if plain == 1 else f"the {plain:,} plain columns together"
    notes = [
        f"column {column.name!r}: its {counted(column.length, 'number')} "
        f"({described(column.scale)}) count as much as {others}"
        for column in lists
        if plain and column.scale
    ]
    if texts:
        names = quoted([column.name for column in lists])
        notes.append(f"left out {_named(texts, 'column')} of text, next to {names}")
    return notes


def filled(missing: Sequence[MissingCells]) -> str:
    """Return the note on missing values that were filled in."""
    total = counted(sum(cells.count for cells in missing), "cell")
    return f"filled {total} with the pool's mean or most frequent value: {checks.listed(missing)}"


def _missing(table: Table, column: Column, first: int = 0) -> list[MissingCells]:
    """Find the missing and infinite values of a column; `first` is the number of the first row."""
    cells = table.column(column.name)
    if not isinstance(column, Vector) or not is_vector(cells.type):
        return checks.in_cells(column.name, cells, first)
    missing: tuple[MissingCells, ...] = ()
    step = step_of(column.length)
    for row in range(0, len(table), step):
        part = cells.slice(row, step)
        values = matrix_of(part, column.length, column.name, table.source, first + row)
        missing = checks.joined(missing, checks.in_lists(column.name, values.T, first + row))
    return list(missing)


def _refuse_missing(table: Table, columns: Sequence[Column], impute: bool) -> list[str]:
    """Raise for missing and infinite values; with `impute`, return a note on them instead."""
    missing = [cells for column in columns for cells in _missing(table, column)]
    if not impute:
        checks.refuse(missing, table.source, FILL)
    return [filled(missing)] if missing else []


def _named(names: Sequence[str], noun: str) -> str:
    return f"{counted(len(names), noun)} ({quoted(names)})"


@dataclass(frozen=True)
class TableLayout:
    """The schema of a table, and how to encode it; columns in `left_out` are not features."""

    source: str
    rows: int
    schema: pa.Schema
    left_out: tuple[str, ...] = ()
    max_categories: int = MAX_CATEGORIES
    scale: str | None = "auto"
    impute: bool = False
    lengths: tuple[tuple[str, int], ...] = ()  # of the lists in used columns of lists

    @cached_property
    def used(self) -> tuple[str, ...]:
        """Names of the columns that become features."""
        out = set(self.left_out)
        return tuple(name for name in self.schema.names if name not in out)

    def with_lengths(self, lengths: Mapping[str, int]) -> "TableLayout":
        """Return the layout with the lengths of lists, if all columns can be used."""
        for name in self.used:
            usable(self.source, name, self.schema.field(name).type)
        layout = replace(self, lengths=tuple(lengths.items()))
        check_columns(layout.width, self.source)
        check_names(layout.members, self.source)
        return layout

    @cached_property
    def numeric(self) -> dict[str, slice]:
        """Columns with numbers, times or lists of numbers, and the places of their numbers."""
        lengths, start = dict(self.lengths), 0
        places = {}
        for name in self.used:
            kind = self.schema.field(name).type
            if name in lengths or is_number(kind) or is_time(kind):
                stop = start + lengths.get(name, 1)
                places[name] = slice(start, stop)
                start = stop
        return places

    @cached_property
    def members(self) -> tuple[str, ...]:
        """Names of the numbers of a row."""
        names: list[str] = []
        lengths = dict(self.lengths)
        for name in self.numeric:
            length = lengths.get(name)
            names += [name] if length is None else [member(name, at) for at in range(length)]
        return tuple(names)

    @property
    def width(self) -> int:
        """Number of numbers and categories of a row."""
        return len(self.used) + sum(length - 1 for _, length in self.lengths)

    def survey(self, first: int, table: pa.Table, rows: Int[np.ndarray, " r"]) -> Survey:
        """Return statistics of a block, and those of the sorted `rows` that are in it."""
        x = np.empty((len(self.members), len(table)))
        missing: list[MissingCells] = []
        clocks = {}
        lengths = dict(self.lengths)
        for name, places in self.numeric.items():
            cells = table.column(name)
            if name in lengths:
                x[places] = matrix_of(cells, lengths[name], name, self.source, first).T
                continue
            x[places] = to_numbers(cells)
            if is_time(self.schema.field(name).type):
                clocks[name] = _clock(x[places.start])
        for name, places in self.numeric.items() if not np.isfinite(x).all() else ():
            if name in lengths:
                missing += checks.in_lists(name, x[places], first)
            else:
                missing += checks.in_numbers(name, x[places.start], first)
        counts = {}
        for name in (name for name in self.used if name not in self.numeric):
            cells = to_text(table.column(name))
            counts[name] = checks.counts_of(cells)
            missing += checks.in_cells(name, cells, first)
        last = first + len(table)
        inside = slice(*np.searchsorted(rows, [first, last]))
        return Survey(
            self.source,
            first,
            last,
            ColumnMoments.of(x),
            table.take(rows[inside] - first) if len(rows) else table.slice(0, 0),
            counts,
            tuple(missing),
            self.max_categories,
            self.rows,
            bool(self.lengths),
            clocks,
        )

    def learn(self, survey: Survey) -> Encoder:
        """Return the scaling and categories of a survey, with notes on suspicious columns.

        Integers that rise from row to row and are named like an id are left out.
        """
        moments = survey.moments
        naming = [
            name
            for name, places in self.numeric.items()
            if moments.rising[at := places.start]
            and pa.types.is_integer(self.schema.field(name).type)
            and checks.counts_rows(name, moments.low[at], moments.high[at], self.rows)
        ]
        if naming:
            kept = [np.r_[places] for name, places in self.numeric.items() if name not in naming]
            layout = replace(self, left_out=(*self.left_out, *naming))
            part = moments.at(np.concatenate([np.empty(0, np.int64), *kept]))
            encoder = layout.learn(replace(survey, moments=part))
            return replace(encoder, notes=(*map(checks.left_out, naming), *encoder.notes))
        encoder = self.learnt(survey)
        looks = self._looks(survey, encoder.sources)
        return replace(encoder, notes=(*encoder.notes, *checks.of_looks(looks)))

    def learnt(self, survey: Survey) -> Encoder:
        """Return the scaling and categories of a survey, with notes on what was done."""
        if self.rows < 2:
            raise too_few(self.source, self.rows)
        notes: list[str] = []
        texts = [name for name, counts in survey.words.items() if self._is_text(name, counts)]
        missing = [cells for cells in survey.missing if cells.column not in texts]
        if missing and not self.impute:
            checks.refuse(missing, self.source, FILL)
        if missing:
            notes.append(filled(missing))
        numbers, kinds = self._numbers(survey.moments)
        columns: list[Column] = []
        constant = []
        for name in self.used:
            if name in texts:
                continue
            column: Column | None
            if name in self.numeric:
                places = self.numeric[name]
                is_list, part = name in dict(self.lengths), numbers[places]
                column = self._vector(name, part, kinds[name]) if is_list else part[0]
                constant += [
                    self.members[at] for at in range(places.start, places.stop) if not numbers[at]
                ]
            else:
                column = self._category(name, survey.words[name] or {}, notes)
                constant += [] if column else [name]
            if column is None:
                continue
            if isinstance(column, Number) and is_time(self.schema.field(name).type):
                column = self._timed(column, survey)
                notes.append(as_seconds(column))
            columns.append(column)
        if constant:
            notes.append(dropped(constant))
        if not columns:
            raise nothing(self.source, constant, len(self.left_out))
        notes += lists_noted(columns, texts) if self.lengths else []
        ignored = (*self.left_out, *constant, *texts)
        # If a pool has only columns of lists, this is the scaling of the first.
        kind = kinds.get("", next(iter(kinds.values()), None)) if self.scale else None
        return Encoder(tuple(columns), ignored, self.impute, tuple(notes), self.source, kind)

    def _is_text(self, name: str, counts: Mapping[str, int] | None) -> bool:
        """Whether a column is free text, which is left out if a column of lists is there."""
        if counts is None or not self.lengths:
            return counts is None
        written = not pa.types.is_boolean(self.schema.field(name).type)
        try:
            checks.check(self.source, name, counts, self.rows, self.max_categories, written=written)
        except UnusableColumn:
            return True
        return False

    def _numbers(self, moments: ColumnMoments) -> tuple[list[Number | None], dict[str, str | None]]:
        """Return the scaling of each number of a row, None if it is constant; and of each group.

        A column of lists is a group of its own; all others are the group "".
        """
        lists = dict(self.lengths)
        plain = [part.start for name, part in self.numeric.items() if name not in lists]
        groups = {name: np.r_[self.numeric[name]] for name in lists}
        if plain or not lists:
            groups = {"": np.array(plain, dtype=np.int64), **groups}
        numbers: list[Number | None] = [None] * len(self.members)
        kinds = {}
        for group, places in groups.items():
            part = moments.at(places)
            how = part.scaling(self.rows, self.scale)
            kinds[group], scaled = how.kind, how.kind is not None
            flat = (part.low > part.high) | (scaled & how.flat)
            fill = np.ldexp(part.mean, part.exponent)
            parts = (array.tolist() for array in (how.unit, how.mean, how.divisor, fill, how.std))
            for at, constant, unit, mean, std, fill_in, own in zip(
                places.tolist(), flat, *parts, strict=True
            ):
                if not constant:
                    name = self.members[at]
                    numbers[at] = Number(name, unit, mean, std, fill_in, scaled, own)
        return numbers, kinds

    def _vector(
        self, name: str, numbers: Sequence[Number | None], kind: str | None
    ) -> Vector | None:
        """Return a column of lists; None if it is constant."""
        kept = [(at, number) for at, number in enumerate(numbers) if number is not None]
        if not kept:
            return None
        places, members = zip(*kept, strict=True)
        return Vector(name, dict(self.lengths)[name], members, places, kind)

    def _timed(self, column: Number, survey: Survey) -> Number:
        """Return the encoding of a column of times, with the cycles that they show."""
        if not column.scaled:
            return column
        at, (first, last) = self.numeric[column.name].start, survey.clocks[column.name]
        low, high = float(survey.moments.low[at]), float(survey.moments.high[at])
        kind = self.schema.field(column.name).type
        return replace(column, cycles=cycles_of(kind, low, high, last - first))

    def _category(self, name: str, counts: Mapping[str, int], notes: list[str]) -> Category | None:
        """Return the categories of a column, or None if it is constant; note a doubtful one."""
        if len(counts) < 2:
            return None
        most, written = self.max_categories, not pa.types.is_boolean(self.schema.field(name).type)
        hint = checks.check(self.source, name, counts, self.rows, most, written=written)
        if hint:
            notes.append(taken(hint, len(counts)))
        return checks.category(name, counts, written)

    def _looks(self, survey: Survey, names: Sequence[str]) -> list[checks.ColumnLook]:
        """Return what stands out in some columns, judged by their ranges and counts alone."""
        moments, most = survey.moments, checks.few_of(self.rows)
        how = moments.scaling(self.rows, self.scale)
        ends = np.stack([moments.low, moments.high])
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            far = checks.far_ends(ends, (ends / how.unit - how.mean) / how.std, bool(self.scale))
            few = ends[1] - ends[0] + 1 <= most
        lists = dict(self.lengths)
        looks = []
        for name in names:
            if name in survey.words:
                words = survey.words[name] or {}
                looks.append(checks.ColumnLook(name, has_few=len(words) <= most))
                continue
            if name in lists:
                places = self.numeric[name]
                places_far = [at for at in range(places.start, places.stop) if far[at]]
                looks += [checks.ColumnLook(self.members[at], wild=far[at]) for at in places_far]
                continue
            at = self.numeric[name].start
            whole = pa.types.is_integer(self.schema.field(name).type)
            rising = whole and self.rows >= 10 and bool(moments.rising[at])
            looks.append(checks.ColumnLook(name, rising, whole and bool(few[at]), far[at]))
        return looks


@dataclass(frozen=True)
class ArrayLayout:
    """Rows of one shape and type: columns x0, x1, ..., or channels with further axes.

    Constant columns are dropped; constant channels, and columns of a `fixed` shape, become zeros.
    """

    source: str
    rows: int
    shape: tuple[int, ...]
    dtype: np.dtype
    left_out: tuple[str, ...] = ()
    scale: str | None = "auto"
    fixed: bool = False

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns; empty if a row has more than one axis."""
        return tuple(f"x{at}" for at in range(self.shape[0])) if len(self.shape) == 1 else ()

    @cached_property
    def used(self) -> Int[np.ndarray, " p"]:
        """Indices of the columns that become features, or of all channels."""
        out = [int(name[1:]) for name in self.left_out]
        return np.setdiff1d(np.arange(self.shape[0]), out)

    def name(self, place: int) -> str:
        """Return the name of a column or channel."""
        return f"x{place}" if len(self.shape) == 1 else f"channel {place}"

    def missing(
        self, x: Float[np.ndarray, "n p s"], places: Int[np.ndarray, " p"], first: int
    ) -> tuple[MissingCells, ...]:
        """Find NaN and infinite values in some columns or channels of a block from row `first`."""
        missing: list[MissingCells] = []
        for at, place in enumerate(places.tolist()):
            for what, where in (("NaN", np.isnan(x[:, at])), ("infinite", np.isinf(x[:, at]))):
                rows = np.flatnonzero(where.any(axis=1))[:4] + first
                if len(rows):
                    count = int(where.sum())
                    missing.append(
                        MissingCells(self.name(place), what, count, tuple(rows.tolist()))
                    )
        return tuple(missing)

    def survey(self, first: int, x: Raw, rows: Int[np.ndarray, " r"]) -> Survey:
        """Return statistics of a block, and those of the sorted `rows` that are in it."""
        values = as_float(x, self.used)
        missing = () if np.isfinite(values).all() else self.missing(values, self.used, first)
        last = first + len(x)
        inside = slice(*np.searchsorted(rows, [first, last]))
        moments = ColumnMoments.of(values.transpose(1, 0, 2).reshape(len(self.used), -1))
        return Survey(self.source, first, last, moments, x[rows[inside] - first], {}, missing)

    def learn(self, survey: Survey) -> "ArrayCode":
        """Return the scaling of each column or channel, with notes on suspicious columns."""
        if self.rows < 2:
            raise too_few(self.source, self.rows)
        if survey.missing:
            checks.refuse(survey.missing, self.source, FILL)
        moments, has_columns = survey.moments, len(self.shape) == 1
        kind = "x" if has_columns else "channel "
        names = [f"{kind}{place}" for place in self.used.tolist()]
        how = moments.scaling(int(moments.count[0]), self.scale, prod(self.shape[1:]))
        flat, scaled = how.flat, how.kind is not None
        constant = [names[at] for at in np.flatnonzero(flat)]
        notes = []
        kept = np.ones(len(names), dtype=bool)
        if scaled and constant:
            if flat.all():
                raise nothing(self.source, constant, len(self.left_out))
            droppable = has_columns and not self.fixed
            kept = ~flat if droppable else kept
            zero = f"{quoted(constant)}: the same number everywhere, taken as 0"
            notes.append(dropped(constant) if droppable else zero)
        divisor = np.where(flat & scaled, np.inf, how.divisor)
        if has_columns:
            ends = np.stack([moments.low, moments.high])
            with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
                far = checks.far_ends(ends, (ends / how.unit - how.mean) / how.std, scaled)
            places = [at for at in np.flatnonzero(kept & ~flat) if far[at]]
            looks = [checks.ColumnLook(names[at], wild=far[at]) for at in places]
            notes += checks.of_looks(looks) if looks else []
        whole = self.dtype.kind in "iu" and not scaled
        if whole and moments.high.max() >= 2.0**63:
            raise DatasetError(
                f"{self.source}: expected integers below 2^63, got {moments.high.max():.6g}; "
                "save them as int64"
            )
        parts = how.unit[kept], how.mean[kept], divisor[kept]
        return ArrayCode(self, self.used[kept], *parts, how.kind, whole, tuple(notes))


@dataclass(frozen=True, eq=False)
class ArrayCode:
    """The scaling of each column or channel that is kept; integers may stay as they are."""

    layout: ArrayLayout
    kept: Int[np.ndarray, " p"]
    unit: Float[np.ndarray, " p"]
    mean: Float[np.ndarray, " p"]
    std: Float[np.ndarray, " p"]
    scale: str | None = "columns"
    whole: bool = False
    notes: tuple[str, ...] = field(default=(), repr=False)

    @property
    def unchanged(self) -> bool:
        """Whether encoded rows equal the floating-point numbers in the files."""
        whole = len(self.layout.shape) == 1 and len(self.kept) == self.layout.shape[0]
        return whole and self.layout.dtype.kind == "f" and self.scale is None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features; empty if a row has more than one axis."""
        return tuple(self.layout.columns[at] for at in self.kept) if self.layout.columns else ()

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the features; an array is always read with all its columns."""
        return self.names

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of an encoded row."""
        return (len(self.kept), *self.layout.shape[1:])

    def encode(
        self, raw: Raw, first: int, source: str
    ) -> tuple[Shaped[np.ndarray, " n *d"], list[str]]:
        """Return encoded rows; the list of columns with unknown categories is always empty."""
        raw = raw.reshape(len(raw), *self.layout.shape)  # rows whose axes were flattened
        if self.whole:
            return np.array(raw[:, self.kept], dtype=np.int64, order="C"), []
        x = as_float(raw, self.kept)
        if not np.isfinite(x).all():
            checks.refuse(self.layout.missing(x, self.kept, first), source, FILL)
        if self.scale is not None:
            x /= self.unit[:, None]
            x -= self.mean[:, None]
            x /= self.std[:, None]
            shape_rows_(x.reshape(len(x), -1), self.scale)
        return x.reshape(len(x), len(self.kept), *raw.shape[2:]), []

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
                f"{other.name}: expected integers, as in {self.layout.source}, got "
                f"{layout.dtype}; save both alike"
            )
        return []


def as_float(x: Raw, places: Int[np.ndarray, " p"]) -> Float[np.ndarray, "n p s"]:
    """Copy some columns or channels as float64, with all further axes flattened to one."""
    chosen = x if len(places) == x.shape[1] else x[:, places]
    # A number too large for float64 becomes inf here, and is reported later.
    with np.errstate(over="ignore"):
        return np.array(chosen, dtype=np.float64, order="C").reshape(
            len(x), len(places), prod(x.shape[2:])
        )
