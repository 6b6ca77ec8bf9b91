"""A pool that was read: rows of numbers, or the files that they stay in."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from evgp._checks import can, numbers, points
from evgp._executor import Progress, silent
from evgp._repr import html_card
from evgp.datasets import checks
from evgp.datasets.arrays import read_array
from evgp.datasets.checks import SUSPECT, ColumnLook, is_alone, of_looks
from evgp.datasets.embedded_files import open_embedded
from evgp.datasets.encode import ArrayCode, ArrayLayout, Encoder, Streamed, surveyed
from evgp.datasets.formats import apply, recognise
from evgp.datasets.frames import array_of, opened, table_of
from evgp.datasets.images import ArrayPictures, Images
from evgp.datasets.labelled import OURS, Labelled, ids, read_labelled
from evgp.datasets.look import all_problems
from evgp.datasets.options import ReadOptions, address, split
from evgp.datasets.photographs import (
    embedded_pixels,
)
from evgp.datasets.samples import is_samples, stack
from evgp.datasets.streamed import KINDS, StreamedTable, as_given, open_like
from evgp.datasets.tables import Cells, Table, read_table
from evgp.datasets.text import TextColumns, TextEncoder, TextPart
from evgp.datasets.vectors import Vector, chosen, is_vector
from evgp.embedders import Embedder
from evgp.errors import (
    BadArgument,
    DatasetError,
    DataWarning,
    PoolError,
    SeveralTexts,
    TableProblems,
)

Points: TypeAlias = Tensor | Streamed
ARRAYS = (".npy", ".npz")
_READ = 1 << 16  # number of ids read at once
_NAMED = 20  # features listed in a notebook
_FEW = 4  # picks of an array that a selection keeps


@dataclass(frozen=True, eq=False, repr=False)
class PoolData(ABC):
    """A pool after reading: its rows as numbers, with their ids, costs and notes.

    Returned by `evgp.read_pool`.

    Attributes
    ----------
    source : str
        Name of the pool in messages.
    x : tensor or Streamed
        The rows as numbers, or the files that they stay in.
    options : ReadOptions
        How the pool was read.
    ids : sequence or None
        Names of the rows.
    costs : array or None
        Cost of each row's label.
    notes : tuple of str
        What looks suspicious, and what was done about it.
    pictures : Images, ArrayPictures or None
        The rows as images, if they are images.
    features : tuple of str
        Names of the features, or of the columns of files; empty if the pool has no columns.
    without_text : tuple of int
        Rows whose text is empty, which are not picked.

    Examples
    --------
    >>> import evgp
    >>> data = evgp.read_pool(np.array([[1.0, 5.0], [3.0, 9.0]]), scale="columns")
    >>> len(data), data.x.tolist()
    (2, [[-1.0, -1.0], [1.0, 1.0]])
    """

    source: str
    x: Points
    options: ReadOptions
    ids: Sequence[object] | None = None
    costs: Float[np.ndarray, " n"] | None = None
    notes: tuple[str, ...] = ()
    pictures: Images | ArrayPictures | None = None
    features: tuple[str, ...] = ()
    without_text: tuple[int, ...] = ()
    in_files: ClassVar[bool] = False
    is_read: ClassVar[bool] = True

    def __len__(self) -> int:
        return len(self.x)

    def __repr__(self) -> str:
        of = f"{self.used} columns" if self.used else "x".join(map(str, self.shape))
        return f"{type(self).__name__}({self.source}: {len(self):,} rows of {of})"

    def _repr_html_(self) -> str:
        lines = {
            "rows": f"{len(self):,}",
            "columns": f"{self.used:,}" if self.used else "x".join(map(str, self.shape)),
            "ids": "row numbers" if self.options.id is None else self.options.id,
            "scale": "none" if self.scale is None else self.scale,
        }
        what = "Columns" if self.in_files else "Features"
        more = ", ..." if len(self.features) > _NAMED else ""
        named = [f"{what}: {', '.join(self.features[:_NAMED])}{more}"] if self.features else []
        card = {"pool": list(lines), "": list(lines.values())}
        return html_card(self.source, card, [*named, *self.notes])

    @property
    def in_memory(self) -> Shaped[Tensor, " n *d"]:
        """The rows as a tensor; raises if the pool stays in files."""
        if self.in_files:
            raise PoolError(f"{self.source}: expected a pool in memory, got one in files")
        return cast(Tensor, self.x)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one row."""
        return tuple(self.x.shape[1:])

    @property
    def scale(self) -> str | None:
        """How numbers were scaled; for a pool in files, how they will be."""
        return self.options.scale

    @property
    def used(self) -> int:
        """Number of columns used as features; 0 if the pool has no columns."""
        return 0

    @property
    def columns(self) -> Mapping[str, Cells]:
        """Columns to show of each row, by name."""
        return {}

    @property
    def original(self) -> Any:
        """The pool before it was encoded: its table, array or files."""
        return self.x

    @property
    def has_vectors(self) -> bool:
        """Whether some columns are vectors: lists of numbers, or embedded texts."""
        return False

    @abstractmethod
    def again(self, options: ReadOptions) -> "PoolData":
        """Read the original again, with other options."""

    @abstractmethod
    def like(self, other: Any, name: str = "x_test", progress: Progress = silent) -> Points:
        """Read other points, such as test points, with this pool's columns and scaling."""

    def tensor_like(self, other: Any, name: str = "x_test") -> Shaped[Tensor, " m *d"]:
        """Read other points into memory, with this pool's columns and scaling."""
        self.in_memory  # noqa: B018  refuses a pool in files
        return cast(Tensor, self.like(other, name))

    def labelled(self, path: str | Path) -> Labelled:
        """Read a file of labelled rows: ids, row numbers, or points outside the pool."""
        how = self.options
        return read_labelled(path, None, self.names(), id=how.id, **how.dialect)

    def names(self) -> Sequence[object]:
        """Return the ids of all rows, or their numbers."""
        return range(len(self)) if self.ids is None else self.ids

    def rows_of(self, rows: Int[np.ndarray, " k"]) -> pa.Table | None:
        """Return some rows of the pool as they were given; None if columns have no names."""
        return None

    def kept_of(self, rows: Int[np.ndarray, " k"]) -> Any:
        """Return what a selection keeps of its picks, to show and recognise them."""
        return self.rows_of(rows)

    def ids_of(self, rows: Int[np.ndarray, " k"]) -> tuple[str | int, ...]:
        """Return the ids of some rows; empty if rows have no ids."""
        if self.ids is None:
            return ()
        names = (self.ids[row] for row in rows.tolist())
        return tuple(name if isinstance(name, str | int) else str(name) for name in names)


@dataclass(frozen=True, eq=False, repr=False)
class TableData(PoolData):
    """A pool with named columns: its encoder, and the original table."""

    encoder: Encoder = field(kw_only=True)
    table: Table = field(kw_only=True)

    @property
    def scale(self) -> str | None:
        """How numbers were scaled."""
        return self.encoder.scale

    @property
    def used(self) -> int:
        """Number of columns used as features."""
        return len(self.encoder.sources)

    @property
    def columns(self) -> Mapping[str, Cells]:
        """Columns of the original table, by name, without lists of numbers."""
        schema = self.table.data.schema
        names = [name for name in self.table.names if not is_vector(schema.field(name).type)]
        return {name: self.table.cells(name) for name in names}

    @property
    def has_vectors(self) -> bool:
        """Whether some columns are vectors: lists of numbers, or embedded texts."""
        return any(isinstance(column, Vector) for column in self.encoder.columns)

    @property
    def original(self) -> Table:
        """The table before it was encoded."""
        return self.table

    def again(self, options: ReadOptions) -> "TableData":
        """Encode the table again, with other options."""
        return from_table(self.table, options)

    def rows_of(self, rows: Int[np.ndarray, " k"]) -> pa.Table | None:
        """Return some rows of the table as they were given; an array has no names of its own."""
        is_array = Path(self.source).suffix.lower() in ARRAYS
        return None if is_array else self.table.given.take(rows)

    def like(self, other: Any, name: str = "x_test", progress: Progress = silent) -> Points:
        """Encode the same columns of another table, or of a file."""
        if isinstance(other, str | Path):
            array = self.options.array_of(Path(other), Path(self.source))
            table = read_table(
                other,
                **self.options.dialect,
                array=array,
                text=self.encoder.words,
                formats=self.table.formats,
            )
        else:
            table = as_table(other, name)
            table = replace(table, data=apply(table.data, self.table.formats, table.source))
        return torch.from_numpy(self.encoder.transform(table))

    def labelled(self, path: str | Path) -> Labelled:
        """Read a file of ids, of row numbers, or of rows with the columns of the pool."""
        return read_labelled(
            path,
            self.encoder,
            self.names(),
            id=self.options.id,
            **self.options.dialect,
            formats=self.table.formats,
            pool=self.in_memory.numpy(),
        )


@dataclass(frozen=True, eq=False, repr=False)
class ArrayData(PoolData):
    """A numeric array without column names; `code` is its scaling, None if it was not scaled.

    With an `embedder`, its rows are the vectors of images.
    """

    code: ArrayCode | None = field(kw_only=True, default=None)
    given: Shaped[np.ndarray, " n *d"] | None = field(kw_only=True, default=None, repr=False)
    doubts: tuple[str, ...] = field(kw_only=True, default=())  # notes that need a warning
    embedder: Embedder | None = field(kw_only=True, default=None)

    @property
    def scale(self) -> str | None:
        """How numbers were scaled."""
        return None if self.code is None else self.code.scale

    @property
    def original(self) -> Shaped[np.ndarray, " n *d"]:
        """The array before it was scaled."""
        return self.in_memory.numpy() if self.given is None else self.given

    @property
    def row(self) -> tuple[int, ...]:
        """Shape of a row before the scaling."""
        return tuple(self.original.shape[1:])

    def again(self, options: ReadOptions) -> "ArrayData":
        """Scale the array again, with other options."""
        if options.embed is not self.options.embed:
            raise PoolError(
                f"{self.source} was read without this embed=; give it to evgp.read_pool"
            )
        points = self.original if self.given is None else self.given
        read = from_array(as_points(points, self.source, options), options, self.source)
        return replace(read, ids=self.ids, notes=self.notes, pictures=self.pictures)

    def like(self, other: Any, name: str = "x_test", progress: Progress = silent) -> Points:
        """Scale another array, given as an array or a file."""
        if isinstance(other, str | Path):
            other = array_at(Path(other), self.options, self.source)
        if self.embedder is not None:
            pixels = array_of(other, name)
            return self.coded(vectors_as_points(embedded_pixels(pixels, self.embedder, name)), name)
        x = as_points(getattr(other, "original", other), name, self.options)
        shape = self.row
        if tuple(x.shape[1:]) != shape:
            raise BadArgument.of(PoolError)(
                name, f"with features of shape {shape}, like x", str(tuple(x.shape[1:]))
            )
        return self.coded(x, name)

    def kept_of(self, rows: Int[np.ndarray, " k"]) -> Any:
        """Return the first few picks of an array with rows and columns, to recognise it by."""
        return self.original[rows[:_FEW]] if self.original.ndim == 2 else None

    def coded(self, x: Shaped[Tensor, " n *d"], name: str) -> Shaped[Tensor, " n *e"]:
        """Return points with the pool's scaling."""
        if self.code is None:
            same = x.is_floating_point() == self.in_memory.is_floating_point()
            return x if same else x.double()
        return torch.from_numpy(self.code.encode(x.numpy(), 0, name)[0])


@dataclass(frozen=True, eq=False, repr=False)
class FileData(PoolData):
    """A pool that stays in its files and is read a block at a time.

    `texts` are its columns of text, if vectors are read in their place.
    """

    x: Streamed
    texts: TextColumns | None = field(kw_only=True, default=None)
    in_files: ClassVar[bool] = True

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one row, with an upper bound of the features of categorical columns."""
        return (self.x.widest,) if len(self.x.shape) == 1 else self.x.shape

    @property
    def used(self) -> int:
        """Number of columns used as features; 0 if the files have no columns."""
        return self.x.shape[0] if self.x.columns else 0

    def again(self, options: ReadOptions) -> "FileData":
        """Return the same files, to be read with other options."""
        return replace(self, options=options)

    def like(self, other: Any, name: str = "x_test", progress: Progress = silent) -> Points:
        """Open other files, given as a path or an opened pool."""
        other = getattr(other, "original", other)
        if can(other, "in_files"):
            return with_columns(other, self.options)
        if not isinstance(other, str | Path):
            raise BadArgument.of(PoolError)(
                name, "as a path, as x is one", str(type(other).__name__)
            )
        return with_columns(self._opened_like(address(other) or other, progress), self.options)

    def _opened_like(self, where: str | Path, progress: Progress = silent) -> Streamed:
        how = self.options
        if self.texts is not None:
            used = cast(StreamedTable, self.x).layout.used
            opened = open_embedded(where, self.texts, how, like=used, progress=progress)
            for note in opened.notes[1:]:
                warnings.warn(f"{where}: {note}", DataWarning, stacklevel=3)
            return opened.pool
        most = how.max_categories
        return open_like(where, self.x, impute=how.impute, max_categories=most, scale=how.scale)

    def labelled(self, path: str | Path) -> Labelled:
        """Read ids or row numbers; rows with the pool's columns but no ids are outside the pool."""
        id = self.options.id
        if Path(path).suffix.lower() in KINDS:
            how, rows = self.options, self._opened_like(path)
            needed = {*self.x.columns} - {id, how.costs, *how.drop}
            if how.column is not None:
                needed = {how.column}
            ours = OURS <= {*rows.columns}
            if (id is None or id not in rows.columns) and needed <= {*rows.columns} and not ours:
                return Labelled(
                    x=rows,
                    note=f"{path}: read as {len(rows):,} labelled rows from outside the pool; "
                    "give ids for those that are in it",
                )
        return super().labelled(path)

    def names(self) -> Sequence[object]:
        """Read the ids of all rows from the files."""
        if self.options.id is None:
            return range(len(self))
        starts = range(0, len(self), _READ)
        ranges = (np.arange(start, min(len(self), start + _READ)) for start in starts)
        return [name for rows in ranges for name in self.x.cells(self.options.id, rows)]

    def ids_of(self, rows: Int[np.ndarray, " k"]) -> tuple[str | int, ...]:
        """Read the ids of some rows from the files."""
        if self.options.id is None:
            return ()
        names = self.x.cells(self.options.id, rows)
        return tuple(name if isinstance(name, str | int) else str(name) for name in names)

    def rows_of(self, rows: Int[np.ndarray, " k"]) -> pa.Table | None:
        """Read the columns of some rows from the files."""
        raw = as_given(self.x, rows)
        return None if isinstance(raw, np.ndarray) else raw

    def kept_of(self, rows: Int[np.ndarray, " k"]) -> None:
        """Return nothing: the files stay, and reading them takes time."""

    def part(self, rows: Int[np.ndarray, " r"]) -> PoolData:
        """Read a few rows to show them; they are scaled by themselves, not as in the pool."""
        raw, how = self.x.raw_at(rows, self.x.columns), self.options
        if self.x.columns and not isinstance(raw, np.ndarray):
            how = replace(how, max_categories=len(rows) + 1, text=(), embed=None)
            read, given = from_table(Table(raw, self.source), how), self.rows_of(rows)
            return replace(read, notes=self.notes, table=Table(given, self.source))
        x = torch.from_numpy(np.asarray(raw, dtype=np.float64).reshape(len(rows), -1))
        return ArrayData(self.source, x, how, notes=self.notes)


def is_table(pool: object) -> bool:
    """Whether an object has named columns, whatever its type."""
    named = any(hasattr(pool, name) for name in ("iloc", "__arrow_c_stream__", "cells"))
    return (named and not is_samples(pool)) or _are_lists(pool)


def _are_lists(pool: object) -> bool:
    """Whether a pool is an array of lists, as a frame gives for a column of them."""
    if not (isinstance(pool, np.ndarray) and pool.dtype.kind == "O" and pool.ndim == 1):
        return False
    return any(isinstance(cell, list | tuple | np.ndarray | Tensor) for cell in pool)


def as_table(pool: Any, name: str) -> Table:
    """Return a pool as a table; the columns of an array are named x0, x1, ..."""
    if are_texts(pool):  # in a NumPy array, each would take as much memory as the longest
        return Table(pa.table({"text": pa.array(list(pool), pa.large_string())}), name)
    return table_of(opened(pool), source=name)


def are_texts(pool: object) -> bool:
    """Whether a pool is a list of texts."""
    if isinstance(pool, np.ndarray) and (pool.ndim != 1 or pool.dtype.kind not in "OUT"):
        return False
    listed = isinstance(pool, list | tuple | np.ndarray) and len(pool) > 0
    return listed and all(isinstance(text, str) for text in pool)  # type: ignore[attr-defined]


def as_points(x: Any, name: str, options: ReadOptions) -> Shaped[Tensor, " n *d"]:
    """Return an array or dataset as finite float64 points, one per row, or as integers."""
    array = isinstance(x, np.ndarray | Tensor)
    tensor = stack(x, name) if not array and is_samples(x) else numbers(x, name)
    if options.channels_first:
        tensor = channels_first(tensor)
    result = points(tensor, name)
    if options.looks_up is not None and not tensor.is_floating_point():
        result = tensor if options.looks_up(tuple(tensor.shape[1:])) else result
    # Copy the caller's array, which may change later.
    shared = isinstance(x, np.ndarray) and result.data_ptr() == tensor.data_ptr()
    return result.clone() if shared else result


def from_array(x: Shaped[Tensor, " n *d"], options: ReadOptions, name: str) -> ArrayData:
    """Scale an array by column or by channel; integers are not scaled.

    Further axes, such as those of images, are flattened to columns, unless the network needs them
    or the scale is "columns", which is by channel.
    """
    if options.scale is None or not x.is_floating_point():
        return ArrayData(name, x, options)
    flat = x.ndim > 2 and options.flattens(tuple(x.shape[1:]))
    array = (x.flatten(1) if flat else x).numpy()
    layout = ArrayLayout(
        name, len(array), array.shape[1:], array.dtype, scale=options.scale, fixed=options.fixed
    )
    survey = surveyed(layout, array, prod(layout.shape))
    code = layout.learn(survey)
    scaled = torch.from_numpy(code.encode(array, 0, name)[0])
    looks = []  # at single rows that have most of the variance of a column
    for place in (
        np.flatnonzero(survey.moments.share() > SUSPECT).tolist() if array.ndim == 2 else ()
    ):
        column = array[:, place]
        with np.errstate(over="ignore", invalid="ignore"):
            row = int(np.abs(column - column.mean()).argmax())
        if is_alone(column, row):
            looks.append(ColumnLook(f"x{place}", wild=f" row {row}: {column[row]:.6g}"))
    doubts = tuple(of_looks(looks)) if looks else ()
    notes = (*code.notes, *(() if code.notes else doubts))
    return ArrayData(name, scaled, options, notes=notes, code=code, given=x.numpy(), doubts=doubts)


def recognised(
    table: Table, options: ReadOptions, notes: Sequence[str] = ()
) -> tuple[Table, list[str]]:
    """Return a table with numbers and dates in place of text, and notes."""
    skip = () if options.id is None else (options.id,)
    recognised_table = recognise(table.data, options.decimal, skip, options.dates)
    formats, raw = (
        {**table.formats, **recognised_table.formats},
        {**table.raw, **recognised_table.raw},
    )
    new = () if table.noted else recognised_table.notes
    return Table(recognised_table.data, table.source, formats, raw, True), [*notes, *new]


def from_table(table: Table, options: ReadOptions, progress: Progress = silent) -> TableData:
    """Encode a table as numbers."""
    id, costs = options.id, options.costs
    table, new_notes = recognised(table, options)
    names = None if id is None else ids(table, id)
    prices = None if costs is None else table.numbers(costs)
    dropped = split(options.drop, table.names) if options.drop else ()
    for name in dropped:
        table.column(name)
    not_used = (*dropped, *(() if costs is None else (costs,)))
    named = not_used if id is None else (*not_used, id)
    only = chosen(table.data.schema, options.column, named, table.source)
    words = split(options.text, table.names) if options.text else ()
    rest = (name for name in table.names if name not in {*named, *only, *words})
    naming = [name for name in rest if checks.is_id(name, table.data.column(name))]
    out: Sequence[str] = (*named, *only, *naming)
    try:
        texts = TextPart.of(table, options, out, progress)
    except SeveralTexts as error:
        raise _problems(table, out, options, error.columns) or error from None
    out = (*out, *texts.left_out)
    try:
        encoder, x = Encoder.fit_transform(
            texts.table,
            id=id,
            drop=tuple(name for name in table.names if name in out and name != id),
            impute=options.impute,
            max_categories=options.max_categories,
            scale=options.scale,
        )
    except DatasetError as error:
        several = _problems(texts.table, out, options)
        if several is None:
            raise
        raise several from error
    return TableData(
        table.source,
        torch.from_numpy(x),
        replace(options, drop=dropped),
        names,
        prices,
        (
            *new_notes,
            *texts.notes,
            *(checks.left_out(name) for name in naming),
            *(
                encoder.notes
                if texts.columns is None
                else map(texts.columns.named_in, encoder.notes)
            ),
        ),
        features=encoder.names,
        without_text=texts.empty,
        encoder=encoder if texts.columns is None else TextEncoder.of(encoder, texts.columns),
        table=table,
    )


def _problems(
    table: Table, out: Container[str], options: ReadOptions, texts: Sequence[str] = ()
) -> TableProblems | None:
    used = [name for name in table.names if name not in out]
    return all_problems(table, used, options.given(), options.max_categories, texts)


def vectors_as_points(x: Float[np.ndarray, "n d"]) -> Float[Tensor, "n d"]:
    return torch.from_numpy(x).double()


def with_columns(pool: Streamed, options: ReadOptions) -> Streamed:
    """Return a pool in files, with its further axes flattened unless the network needs them."""
    flat = getattr(pool, "flat", None)
    return pool if flat is None or not options.flattens(pool.shape) else cast(Streamed, flat())


def array_at(path: Path, options: ReadOptions, other: str | None) -> Any:
    if path.suffix.lower() not in ARRAYS:
        raise DatasetError(f"{path}: expected an .npy or .npz file, like the pool")
    if path.is_dir() or not path.exists():
        read_table(path)  # raises the right error
    return read_array(path, options.array_of(path, None if other is None else Path(other)))


def channels_first(x: Shaped[Tensor, " n *d"]) -> Shaped[Tensor, " n *e"]:
    """Move the channels of images to the front if they are clearly elsewhere or missing."""
    if x.ndim == 3:
        return x[:, None]
    if x.ndim == 4 and x.shape[1] not in (1, 3) and x.shape[3] in (1, 3):
        return x.movedim(3, 1).contiguous()
    return x
