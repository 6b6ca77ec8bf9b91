"""Read any pool as numbers: frames, arrays, datasets, files and folders of images."""

import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, TypedDict, cast

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from evgp._checks import can, flag, integer, keep, numbers, path_of, points, word, words
from evgp._defaults import MAX_CATEGORIES
from evgp._executor import Progress, silent
from evgp._machine import available_memory
from evgp.datasets import checks
from evgp.datasets.arrays import npy_header, read_array
from evgp.datasets.checks import ColumnLook, is_alone, of_looks
from evgp.datasets.columns import is_category, plain
from evgp.datasets.encode import ArrayCode, ArrayLayout, Encoder, Streamed, surveyed
from evgp.datasets.formats import apply, recognise
from evgp.datasets.frames import array_of, opened, table_of
from evgp.datasets.images import ArrayPictures, Images, pictures_of, read_images
from evgp.datasets.labelled import OURS, Labelled, ids, read_labelled
from evgp.datasets.look import TableReport, all_problems, problems_of, remedies, report_of
from evgp.datasets.photographs import (
    as_bytes,
    embedded_images,
    embedded_pixels,
    photographs_noted,
)
from evgp.datasets.samples import Columned, is_samples, stack
from evgp.datasets.scaling import scale_of
from evgp.datasets.streamed import KINDS, StreamedArray, open_as_is, open_like, open_pool
from evgp.datasets.tables import Cells, Table, read_table
from evgp.datasets.text import TextColumns, TextEncoder, is_free_text, text_columns, texts_of
from evgp.datasets.vectors import chosen, is_vector
from evgp.embedders import Embedder, Tfidf, embedder_of
from evgp.errors import BadArgument, DatasetError, DataWarning, PoolError, quoted

Points: TypeAlias = Tensor | Streamed
_ARRAYS = (".npy", ".npz")
_READ = 1 << 16  # number of ids read at once
_LOOKED = 100_000  # number of rows of a pool in files that are looked at


class Written(TypedDict):
    """How CSV files are written; what is None is recognised."""

    delimiter: str | None
    decimal: str | None
    encoding: str | None


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Options for reading a pool.

    `column` is the only column used as features; `id`, `drop` and `costs` name columns that are not
    features. With `impute`, missing values are filled with the mean of a numeric column or the most
    frequent value of a categorical one. `delimiter`, `decimal` and `encoding` are for CSV files and
    recognised by default, `array` names an array of an .npz file, and `image_size` is for folders
    of images. `text` names columns of text, and `embed` is what turns these, or images, into
    vectors.

    The others describe the inputs of the network: with `fixed` they have a fixed shape, so constant
    columns of an array stay (as zeros); with `channels_first` they are images; integers of shapes
    for which `looks_up` returns True are not scaled.
    """

    id: str | None = None
    column: str | None = None
    drop: str | Sequence[str] = ()
    costs: str | None = None
    impute: bool = False
    max_categories: int = MAX_CATEGORIES
    scale: str | None = "auto"
    text: str | Sequence[str] = ()
    embed: object = None
    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    array: str | None = None
    image_size: int | None = None
    fixed: bool = False
    channels_first: bool = False
    looks_up: Callable[[tuple[int, ...]], bool] | None = None

    def __post_init__(self) -> None:
        for name in ("id", "column", "costs", "delimiter", "decimal", "encoding", "array"):
            if getattr(self, name) is not None:
                word(getattr(self, name), name)
        flag(self.impute, "impute")
        keep(
            self,
            drop=words(self.drop, "drop"),
            text=words(self.text, "text"),
            # The inputs of a network with a shape of its own are scaled by column, or by channel.
            scale="columns" if self.fixed and self.scale == "auto" else scale_of(self.scale),
            max_categories=integer(self.max_categories, "max_categories", 1),
        )

    def array_of(self, path: Path, other: object) -> str | None:
        """Return the array's name, unless `array` is meant for the `other` file, an archive."""
        archives = [isinstance(p, Path) and p.suffix.lower() == ".npz" for p in (path, other)]
        return None if archives == [False, True] else self.array

    def flattens(self, shape: tuple[int, ...]) -> bool:
        """Whether the axes of rows of this shape become one, so that columns are scaled."""
        return len(shape) > 1 and not self.fixed and self.scale not in (None, "columns")

    @property
    def dialect(self) -> "Written":
        """How CSV files are written, as far as it was given."""
        return Written(delimiter=self.delimiter, decimal=self.decimal, encoding=self.encoding)

    def given(self) -> dict[str, object]:
        """Return the options that were given, as arguments of `evgp.read_pool`."""
        names = ("id", "column", "drop", "costs", "impute", "max_categories")
        more = ("delimiter", "decimal", "encoding", "array")
        values = {name: getattr(self, name) for name in (*names, *more)}
        unset = (None, (), False)
        given = {name: value for name, value in values.items() if value not in unset}
        if given["max_categories"] == MAX_CATEGORIES:
            del given["max_categories"]
        return given | ({"drop": [*self.drop]} if self.drop else {})

    def of_columns(self) -> list[str]:
        """Return the options in use that apply to columns only."""
        named = ("id", "column", "drop", "costs", "impute", "text")
        return [f"{name}=" for name in named if getattr(self, name)]


@dataclass(frozen=True, eq=False)
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

    Examples
    --------
    >>> data = read_pool(np.array([[1.0, 5.0], [3.0, 9.0]]), scale="columns")
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
    in_files: ClassVar[bool] = False

    def __len__(self) -> int:
        return len(self.x)

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

    def cells_of(
        self, rows: Int[np.ndarray, " k"], text_only: bool = False
    ) -> dict[str, list[object]]:
        """Return the pool's own columns in some rows; empty if they have no names of their own.

        With `text_only`, columns of lists and bytes are left out, which CSV files have no room for.
        """
        return {}

    def ids_of(self, rows: Int[np.ndarray, " k"]) -> tuple[str | int, ...]:
        """Return the ids of some rows; empty if rows have no ids."""
        if self.ids is None:
            return ()
        names = (self.ids[row] for row in rows.tolist())
        return tuple(name if isinstance(name, str | int) else str(name) for name in names)


@dataclass(frozen=True, eq=False)
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
    def original(self) -> Table:
        """The table before it was encoded."""
        return self.table

    def cells_of(
        self, rows: Int[np.ndarray, " k"], text_only: bool = False
    ) -> dict[str, list[object]]:
        """Return the columns of the table in some rows; an array has no names of its own."""
        is_array = Path(self.source).suffix.lower() in _ARRAYS
        return {} if is_array else shown_cells(self.table.data.take(rows), text_only)

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


@dataclass(frozen=True, eq=False)
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

    def like(self, other: Any, name: str = "x_test", progress: Progress = silent) -> Points:
        """Scale another array, given as an array or a file."""
        if isinstance(other, str | Path):
            other = _array_file(Path(other), self.options, self.source)
        if self.embedder is not None:
            pixels = array_of(other, name)
            return self.coded(_vectors(embedded_pixels(pixels, self.embedder, name)), name)
        x = as_points(getattr(other, "original", other), name, self.options)
        shape = self.row
        if tuple(x.shape[1:]) != shape:
            raise BadArgument.of(PoolError)(
                name, f"with features of shape {shape}, as in x", str(tuple(x.shape[1:]))
            )
        return self.coded(x, name)

    def coded(self, x: Shaped[Tensor, " n *d"], name: str) -> Shaped[Tensor, " n *e"]:
        """Return points with the pool's scaling."""
        if self.code is None:
            same = x.is_floating_point() == self.in_memory.is_floating_point()
            return x if same else x.double()
        return torch.from_numpy(self.code.encode(x.numpy(), 0, name)[0])


@dataclass(frozen=True, eq=False)
class ImageData(ArrayData):
    """A folder of images; their ids are the file names."""

    pictures: Images = field(kw_only=True)

    @property
    def original(self) -> Shaped[np.ndarray, " n *d"]:
        """The pixels."""
        return self.pictures.x

    def like(self, other: Any, name: str = "x_test", progress: Progress = silent) -> Points:
        """Read another folder of images, or take an array of pixels."""
        if not isinstance(other, str | Path):
            return super().like(other, name)
        folder = Path(other)
        if not folder.is_dir():
            raise DatasetError(f"{folder}: expected a folder of images, as the pool is one")
        raw = self.embedder is None
        images = read_images(folder, like=self.pictures, note_size=raw, progress=progress)
        for note in images.notes:
            warnings.warn(f"{folder}: {note}", DataWarning, stacklevel=3)
        if self.embedder is not None:
            vectors = embedded_images(images, self.embedder, progress)
            return self.coded(_vectors(vectors), str(folder))
        return self.coded(torch.from_numpy(images.x).double(), str(folder))

    def labelled(self, path: str | Path) -> Labelled:
        """Read a folder of further images, or a list of file names of this folder."""
        if Path(path).is_dir():
            x = self.like(path)
            return Labelled(x=x, note=f"{path}: {len(x):,} labelled images")
        return read_labelled(path, None, self.names(), id="id", **self.options.dialect)


@dataclass(frozen=True, eq=False)
class FileData(PoolData):
    """A pool that stays in its files and is read a block at a time."""

    x: Streamed
    in_files: ClassVar[bool] = True

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one row, with an upper bound of the features of categorical columns."""
        return (self.x.widest,) if len(self.x.shape) == 1 else self.x.shape

    @property
    def used(self) -> int:
        """Number of columns used as features; 0 if the files have no columns."""
        return self.x.shape[0] if self.x.columns else 0

    def like(self, other: Any, name: str = "x_test", progress: Progress = silent) -> Points:
        """Open other files, given as a path or an opened pool."""
        other = getattr(other, "original", other)
        if can(other, "in_files"):
            return _with_columns(other, self.options)
        if not isinstance(other, str | Path):
            raise BadArgument.of(PoolError)(
                name, "as a path, as x is one", str(type(other).__name__)
            )
        how = self.options
        other = open_like(
            address(other) or other,
            self.x,
            impute=how.impute,
            max_categories=how.max_categories,
            scale=how.scale,
        )
        return _with_columns(other, how)

    def labelled(self, path: str | Path) -> Labelled:
        """Read ids or row numbers; rows with the pool's columns but no ids are outside the pool."""
        id = self.options.id
        if Path(path).suffix.lower() in KINDS:
            how = self.options
            rows = open_like(
                path, self.x, impute=how.impute, max_categories=how.max_categories, scale=how.scale
            )
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

    def cells_of(
        self, rows: Int[np.ndarray, " k"], text_only: bool = False
    ) -> dict[str, list[object]]:
        """Read the columns of some rows from the files."""
        raw = self.x.raw_at(rows, self.x.columns)
        return {} if isinstance(raw, np.ndarray) else shown_cells(raw, text_only)

    def part(self, rows: Int[np.ndarray, " r"]) -> PoolData:
        """Read a few rows to show them; they are scaled on their own, not as in the pool."""
        raw, how = self.x.raw_at(rows, self.x.columns), self.options
        if self.x.columns and not isinstance(raw, np.ndarray):
            how = replace(how, max_categories=len(rows) + 1)
            return replace(from_table(Table(raw, self.source), how), notes=self.notes)
        x = torch.from_numpy(np.asarray(raw, dtype=np.float64).reshape(len(rows), -1))
        return ArrayData(self.source, x, how, notes=self.notes)


def shown_cells(table: pa.Table, text_only: bool) -> dict[str, list[object]]:
    """Return the columns of a table as Python values; times are text.

    >>> shown_cells(pa.table({"a": [1], "b": [[2.0, 3.0]]}), text_only=True)
    {'a': [1]}
    """
    columns = zip(table.column_names, table.columns, strict=True)
    return {
        name: plain(cells).to_pylist()
        for name, cells in columns
        if not (text_only and (pa.types.is_nested(cells.type) or pa.types.is_binary(cells.type)))
    }


def read_pool(
    pool: Any,
    *,
    id: str | None = None,
    column: str | None = None,
    drop: Sequence[str] = (),
    costs: str | None = None,
    impute: bool = False,
    max_categories: int = MAX_CATEGORIES,
    scale: str | None = "auto",
    text: str | Sequence[str] = (),
    embed: object = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    array: str | None = None,
    image_size: int | None = None,
    standardise: bool | None = None,
) -> PoolData:
    """Read a pool as numbers, ready for `evgp.pick`, `evgp.plan` and everything else.

    Parameters
    ----------
    pool
        A pandas or polars frame, an Arrow table, an array or tensor, a torch or Hugging Face
        dataset, or the path of a file (CSV, TSV, Parquet, Arrow, npy, npz) or folder of images.
    column : str, optional
        The only column to use as features, such as one of embeddings. A column of lists of numbers
        is found without it if it is the only one; other columns are then used too.
    id, drop, costs : str, list of str, str
        Columns that are not features: the names of the rows, columns to drop, the costs of labels.
    impute : bool
        Fill missing values with the column's mean, or the most frequent value of a category.
    max_categories : int
        Maximum number of distinct values in a categorical column.
    scale : str or None, default "auto"
        How numbers are scaled over the pool: each column to mean 0 and standard deviation 1
        ("columns"); the same with far values pulled in ("smooth"); all columns by one number
        ("common"). With 32 or more columns rows can then be scaled to equal length
        ("smooth-unit", "unit"). "auto" takes one number for all if the columns share a unit, as
        pixels and embeddings do, else "smooth", and equal rows if there are many columns.
        Constant columns are dropped. None leaves numbers as they are.
    text : str or list of str
        Columns of text, which are joined and embedded. A column of free text is found without it
        if it is the only one.
    embed : str or object, optional
        What turns texts or images into vectors. For text: "tfidf" (the default), the folder of a
        sentence-transformers model, or the name of one that was downloaded before. For images:
        "torchvision:NAME", "timm:NAME" or a torch module, with "@FILE" for the weights. For both:
        "package.module:function", or a function. Vectors are cached by content.
    delimiter, decimal, encoding : str, optional
        Sign between columns, decimal sign ("." or ",") and encoding of CSV files; recognised by
        default, and said in a note if they are not the usual ones.
    array, image_size : str, int
        Array of an .npz file to read, and size to resize images to.
    standardise : bool, optional
        The former name: True is scale="columns", False is scale=None.

    Returns
    -------
    PoolData

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"size": [1, 3, 3, 1], "kind": list("abaa"), "name": list("wxyz")})
    >>> data = read_pool(frame, id="name")
    >>> data.features, data.x[0].tolist(), data.ids
    (('size', 'kind=a', 'kind=b'), [-1.0, 1.0, 0.0], ['w', 'x', 'y', 'z'])
    """
    options = ReadOptions(
        id=id,
        column=column,
        drop=drop,
        costs=costs,
        impute=impute,
        max_categories=max_categories,
        scale=scale_of(scale, standardise),
        text=text,
        embed=embed,
        delimiter=delimiter,
        decimal=decimal,
        encoding=encoding,
        array=array,
        image_size=image_size,
    )
    return read_with(pool, options)


def read_with(
    pool: Any,
    options: ReadOptions,
    *,
    name: str = "x",
    in_files: bool = False,
    memory: int | None = None,
    progress: Progress = silent,
) -> PoolData:
    """Read a pool with these options; one that is too large for memory stays in its files.

    With `in_files` it always stays there; `memory` is the number of bytes that may be used.
    """
    if isinstance(pool, PoolData):
        return _read_again(pool, options)
    if can(pool, "in_files"):  # opened by `open_pool`
        if options.column is not None:
            raise DatasetError(
                f"{pool.name}: expected no column= with a pool that is open, got "
                f"{options.column!r}; choose it when you open the pool"
            )
        options = _as_opened(pool, options)
        pool = _with_columns(pool, options)
        costs = None if options.costs is None else pool.numbers(options.costs, 0, len(pool))
        return FileData(pool.name, pool, options, costs=costs, features=pool.columns)
    if isinstance(pool, str | Path):
        path_of(pool, "the pool", error=DatasetError)
        return _from_path(pool, options, in_files, memory, progress)
    return _from_object(pool, options, name, progress)


def _from_object(pool: Any, options: ReadOptions, name: str, progress: Progress) -> PoolData:
    """Read a pool in memory: with columns, a list of texts, or an array."""
    of_columns = options.of_columns()
    table = is_table(pool) or bool(of_columns and not (options.fixed or is_samples(pool)))
    if isinstance(pool, Columned) and not options.fixed:
        table = bool(of_columns) or _is_plain(pool)
    if not table and of_columns:
        raise _no_columns(name, of_columns)
    texts = _are_texts(pool) and (options.embed is not None or _are_free(pool, options))
    if table or texts:
        return from_table(as_table(pool, name), options, progress)
    if options.embed is not None:
        raw = stack(pool, name).numpy() if is_samples(pool) else array_of(pool, name)
        return _from_pixels(raw, options, name, progress)
    return from_array(as_points(pool, name, options), options, name)


def _is_plain(pool: Columned) -> bool:
    """Whether a Hugging Face dataset is a table: numbers and words, no images and lists."""
    if not isinstance(pool.column_names, list) or not len(pool):
        return False  # several splits have a dictionary of names
    return all(np.ndim(cell) == 0 and not hasattr(cell, "size") for cell in pool[0].values())


# Options of a pool that was read before that may be given again.
_READING = (
    "id", "column", "drop", "costs", "impute", "max_categories", "scale", "delimiter", "decimal",
    "encoding", "array", "image_size", "text", "embed",
)  # fmt: skip


def _read_again(pool: PoolData, options: ReadOptions) -> PoolData:
    """Return a pool that was read before; read its table or array again if options differ.

    Options that are not given stay as they were.
    """
    former, usual = pool.options, ReadOptions(fixed=options.fixed)
    kept = {
        name: getattr(former, name)
        for name in _READING
        if getattr(options, name) == getattr(usual, name)
    }
    if options.fixed and former.scale == "auto":
        kept.pop("scale", None)  # a network of its own decides
    wanted = replace(options, **kept)
    wanted = replace(wanted, drop=split(wanted.drop, pool.features)) if wanted.drop else wanted
    same = all(getattr(wanted, name) == getattr(former, name) for name in (*_READING, "fixed"))
    shapes = wanted.channels_first == former.channels_first or len(pool.shape) == 1
    if pool.in_files or (same and shapes):
        return replace(pool, options=wanted) if pool.in_files else pool
    if isinstance(pool, TableData):
        return from_table(pool.table, wanted)
    if wanted.embed is not former.embed:
        raise PoolError(f"{pool.source} was read without this embed=; give it to evgp.read_pool")
    given = pool.original if not isinstance(pool, ArrayData) or pool.given is None else pool.given
    again = from_array(as_points(given, pool.source, wanted), wanted, pool.source)
    if isinstance(pool, ImageData):
        return replace(pool, x=again.x, options=wanted, code=again.code)
    return replace(again, ids=pool.ids, notes=pool.notes, pictures=pool.pictures)


def _as_opened(pool: Streamed, options: ReadOptions) -> ReadOptions:
    """Return the options of a pool that `open_pool` opened; others must be given there."""
    layout = getattr(pool, "layout", None)
    usual = ReadOptions(fixed=options.fixed)
    changed: dict[str, Any] = {}
    for name in ("scale", "impute", "max_categories"):
        asked, opened_with = getattr(options, name), getattr(layout, name, None)
        if not hasattr(layout, name) or asked == opened_with:
            continue
        if asked != getattr(usual, name):
            raise PoolError(
                f"{pool.name} was opened with {name}={opened_with!r}, got {name}={asked!r}; give "
                "it to evgp.open_pool"
            )
        changed[name] = opened_with
    out = set(getattr(layout, "left_out", ()))
    others = [name for name in split(options.drop, pool.columns) if name not in out]
    if others:
        raise PoolError(
            f"{pool.name} was opened with {', '.join(map(repr, others))} as features, got drop=; "
            "give it to evgp.open_pool"
        )
    return replace(options, **changed)


def is_table(pool: object) -> bool:
    """Whether an object has named columns, whatever its type."""
    named = any(hasattr(pool, name) for name in ("iloc", "__arrow_c_stream__", "cells"))
    return named and not is_samples(pool)


def as_table(pool: Any, name: str) -> Table:
    """Return a pool as a table; the columns of an array are named x0, x1, ..."""
    if _are_texts(pool):  # as an array of NumPy, each would take the space of the longest
        return Table(pa.table({"text": pa.array(list(pool), pa.large_string())}), name)
    table = table_of(opened(pool))
    return Table(table.data, name) if table.source == "the pool" else table


def _are_texts(pool: object) -> bool:
    """Whether a pool is a list of texts."""
    if isinstance(pool, np.ndarray) and (pool.ndim != 1 or pool.dtype.kind not in "OUT"):
        return False
    listed = isinstance(pool, list | tuple | np.ndarray) and len(pool) > 0
    return listed and all(isinstance(text, str) for text in pool)  # type: ignore[attr-defined]


def _are_free(texts: Any, options: ReadOptions) -> bool:
    return is_free_text(as_table(texts, "").column("text"), options.max_categories)


def as_points(x: Any, name: str, options: ReadOptions) -> Shaped[Tensor, " n *d"]:
    """Return an array or dataset as finite float64 points, one per row, or as integers."""
    tensor = stack(x, name) if is_samples(x) else numbers(x, name)
    if options.channels_first:
        tensor = _channels_first(tensor)
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
    array = (x.flatten(1) if options.flattens(tuple(x.shape[1:])) else x).numpy()
    layout = ArrayLayout(
        name, len(array), array.shape[1:], array.dtype, scale=options.scale, fixed=options.fixed
    )
    code = layout.learn(surveyed(layout, array, prod(layout.shape)))
    scaled = torch.from_numpy(code.encode(array, 0, name)[0])
    doubts = _outliers(array)
    notes = (*code.notes, *(() if code.notes else doubts))
    return ArrayData(name, scaled, options, notes=notes, code=code, given=x.numpy(), doubts=doubts)


def _outliers(x: Shaped[np.ndarray, " n *d"]) -> tuple[str, ...]:
    """Return a note on single rows that have most of the variance of a column."""
    if x.ndim != 2:
        return ()
    with np.errstate(over="ignore", invalid="ignore"):
        rows = np.abs(x - x.mean(axis=0)).argmax(axis=0).tolist()
    looks = [
        ColumnLook(f"x{place}", wild=f" row {row}: {x[row, place]:.6g}")
        for place, row in enumerate(rows)
        if is_alone(x[:, place], row)
    ]
    return tuple(of_looks(looks)) if looks else ()


def from_table(table: Table, options: ReadOptions, progress: Progress = silent) -> TableData:
    """Encode a table as numbers."""
    id, costs = options.id, options.costs
    found = recognise(table.data, options.decimal, () if id is None else (id,))
    table = Table(found.data, table.source, {**table.formats, **found.formats})
    names = None if id is None else ids(table, id)
    prices = None if costs is None else table.numbers(costs)
    dropped = split(options.drop, table.names) if options.drop else ()
    for name in dropped:
        table.column(name)
    not_used = (*dropped, *(() if costs is None else (costs,)))
    named = not_used if id is None else (*not_used, id)
    only = chosen(table.data.schema, options.column, named, table.source)
    words = split(options.text, table.names)
    rest = (name for name in table.names if name not in {*named, *only, *words})
    naming = checks.id_columns(table.data, rest)
    texts = TextPart.of(table, options, (*named, *only, *naming), progress)
    out = {*named, *only, *naming, *texts.left_out}
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
        used = [name for name in texts.table.names if name not in out]
        several = all_problems(texts.table, used, options.given(), options.max_categories)
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
            *found.notes,
            *texts.notes,
            *(checks.left_out(name) for name in naming),
            *encoder.notes,
        ),
        features=encoder.names,
        encoder=encoder if texts.columns is None else TextEncoder.of(encoder, texts.columns),
        table=table,
    )


@dataclass(frozen=True, eq=False)
class TextPart:
    """A table whose texts, if it has any, were replaced by vectors, and what to say about them."""

    table: Table
    columns: TextColumns | None = None
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, table: Table, options: ReadOptions, left_out: Sequence[str], progress: Progress
    ) -> "TextPart":
        """Embed the columns that were named, or the only column of free text."""
        wanted = split(options.text, table.names)
        most, embed = options.max_categories, options.embed
        names = text_columns(table, wanted, left_out, most, embed)
        if not names:
            return cls(table)
        if len(set(texts_of(table, names))) < 2:
            note = f"dropped column {quoted(names)}: the same text in every row"
            return cls(table, left_out=names, notes=(note,))
        columns = TextColumns.learn(table, names, embed)
        vectors, notes = columns.replaced(table, progress)
        width = vectors.column(names[0]).type.list_size
        note = columns.described(width, bool(wanted))
        return cls(vectors, columns, notes=(note, *notes))


def look(
    pool: Any,
    *,
    id: str | None = None,
    drop: str | Sequence[str] = (),
    costs: str | None = None,
    max_categories: int = MAX_CATEGORIES,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> TableReport:
    """Look at a table: each column, how it would be used, what is odd, and all problems.

    Takes the options of `evgp.read_pool`. Of a pool in files, the first rows are read.

    >>> import pyarrow as pa
    >>> print(look(pa.table({"size": [1, None, 3], "kind": ["a", "b", "a"]})))
    pool: 3 rows, 2 columns
      size: int64, number
      kind: string, 2 categories
      problem: 1 missing or NaN in column 'size' (row 1)
    """
    options = ReadOptions(
        id=id,
        drop=drop,
        costs=costs,
        max_categories=max_categories,
        delimiter=delimiter,
        decimal=decimal,
        encoding=encoding,
    )
    table, notes = _looked_at(pool, options)
    found = recognise(table.data, decimal, () if id is None else (id,))
    table = Table(found.data, table.source, {**table.formats, **found.formats})
    dropped = split(options.drop, table.names)
    for name in dropped:
        table.column(name)
    uses = dict.fromkeys(dropped, "left out")
    for other, use in ((id, "names the rows"), (costs, "costs")):
        if other is not None:
            table.column(other)
            uses[other] = use
    rest = [name for name in table.names if name not in uses]
    uses |= dict.fromkeys(checks.id_columns(table.data, rest), "left out: id")
    problems = problems_of(table, [name for name in rest if name not in uses], max_categories)
    helps = remedies(problems, id, dropped)
    notes = [*notes, *found.notes]
    with suppress(DatasetError):  # free text is embedded, or left out next to what describes rows
        data = from_table(table, replace(options, impute=True))
        problems = [problem for problem in problems if problem.remedy == "impute"]
        helps = remedies(problems, id, dropped)
        used = {column.name for column in data.encoder.columns}
        left = [name for name in rest if name not in used and name not in uses]
        text = [name for name in left if is_category(table.column(name).type)]
        uses |= {name: "left out: text" for name in text if _differs(table, name)}
        notes += data.notes
        return report_of(table, uses, data.encoder.columns, notes, problems=problems, options=helps)
    try:
        data = from_table(table, replace(options, **cast(Any, {"impute": True, **helps})))
    except DatasetError as error:
        message = str(error).removeprefix(f"{table.source}: ")
        return report_of(table, uses, (), [*notes, message], problems=problems, options=None)
    notes += data.notes
    return report_of(table, uses, data.encoder.columns, notes, problems=problems, options=helps)


def _differs(table: Table, name: str) -> bool:
    return len(table.column(name).unique()) > 1


def _looked_at(pool: Any, options: ReadOptions) -> tuple[Table, list[str]]:
    """Return a pool as a table, and notes on how it was read."""
    if isinstance(pool, str | Path):
        if address(pool) is None and not Path(pool).is_dir():
            text = () if options.id is None else (options.id,)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", DataWarning)
                table = read_table(pool, **options.dialect, text=text)
            return table, [str(w.message) for w in caught if issubclass(w.category, DataWarning)]
        pool = open_pool(address(pool) or pool)
    if not can(pool, "in_files"):
        return as_table(pool, "pool"), []
    rows = np.arange(min(len(pool), _LOOKED))
    notes = [f"only the first {_LOOKED:,} of {len(pool):,} rows were looked at"]
    return table_of(pool, rows), notes if len(pool) > _LOOKED else []


def _from_path(
    where: str | Path,
    options: ReadOptions,
    in_files: bool,
    memory: int | None,
    progress: Progress,
) -> PoolData:
    path = Path(where)
    if in_files or stays_in_files(where, options, memory):
        return _from_files(where, options)
    if path.is_dir():
        if of_columns := options.of_columns():
            raise _no_columns(f"{path}: a folder of images", of_columns)
        return _from_folder(path, options, progress)
    if options.embed is not None and path.suffix.lower() in _ARRAYS and path.is_file():
        if of_columns := options.of_columns():
            raise _no_columns(f"{path}: an array of images", of_columns)
        return _from_pixels(_array_file(path, options, None), options, str(path), progress)
    if options.image_size is not None:
        raise DatasetError(
            f"{path}: image_size= is for a folder of images; leave it out for a file"
        )
    if path.suffix.lower() in _ARRAYS and path.is_file():
        if options.fixed or (not options.of_columns() and _has_axes(path, options)):
            return _from_array_file(path, options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataWarning)
        text = (*(() if options.id is None else (options.id,)), *_split_all(options.text))
        table = read_table(path, **options.dialect, array=options.array, text=text)
    notes = tuple(str(item.message) for item in caught if issubclass(item.category, DataWarning))
    encoded = from_table(table, options, progress)
    return replace(encoded, notes=(*notes, *encoded.notes))


def _has_axes(path: Path, options: ReadOptions) -> bool:
    """Whether rows of an array in a file have more than one axis, by its header if it is .npy."""
    if path.suffix.lower() == ".npz":
        return bool(read_array(path, options.array).ndim > 2)
    with path.open("rb") as stream:
        return len(npy_header(stream, str(path)).shape) > 2


def _split_all(names: Sequence[str]) -> tuple[str, ...]:
    """Return names of columns before these are known: a comma may divide names, or be in one."""
    return tuple(dict.fromkeys((*names, *split(names, ()))))


def _from_folder(path: Path, options: ReadOptions, progress: Progress) -> ImageData:
    """Read a folder of images: their pixels, or with an embedder their vectors."""
    if options.embed is None:
        images = read_images(path, size=options.image_size, progress=progress)
        data = from_array(torch.from_numpy(images.x).double(), options, str(path))
        # A network of its own looks at pixels as it was made to.
        raw = [] if options.fixed else photographs_noted(images)
        said, embedder = (*images.notes, *raw), None
    else:
        embedder = image_embedder(options)
        images = read_images(path, note_size=False, progress=progress)
        vectors = embedded_images(images, embedder, progress)
        data = from_array(_vectors(vectors), options, str(path))
        said = (*images.notes, _embedding_noted(embedder, vectors))
    notes = tuple(f"{path}: {note}" for note in said)
    return ImageData(
        str(path), data.x, options, images.names, None, notes, code=data.code, pictures=images,
        given=data.given, embedder=embedder,
    )  # fmt: skip


def _from_pixels(
    raw: Shaped[np.ndarray, " n *d"], options: ReadOptions, name: str, progress: Progress
) -> ArrayData:
    """Return the vectors of an array of images."""
    embedder = image_embedder(options)
    vectors = embedded_pixels(raw, embedder, name, progress)
    data = from_array(_vectors(vectors), options, name)
    notes = (f"{name}: {_embedding_noted(embedder, vectors)}", *data.notes)
    return replace(data, notes=notes, pictures=pictures_of(as_bytes(raw, name)), embedder=embedder)


def image_embedder(options: ReadOptions) -> Embedder:
    """Return the embedder of images that the options name."""
    embedder = embedder_of(options.embed, "images", options.image_size)
    assert not isinstance(embedder, Tfidf)  # it reads text
    return embedder


def _embedding_noted(embedder: Embedder, vectors: Float[np.ndarray, "n d"]) -> str:
    return (
        f"images embedded by {embedder.name} at {embedder.side} x {embedder.side} pixels "
        f"({vectors.shape[1]:,} numbers each)"
    )


def _vectors(x: Float[np.ndarray, "n d"]) -> Float[Tensor, "n d"]:
    return torch.from_numpy(x).double()


def _from_array_file(path: Path, options: ReadOptions) -> PoolData:
    """Read an array with the axes that a network needs, and its pictures if it contains images."""
    if of_columns := options.of_columns():
        raise _no_columns(f"{path}: an array for a network of its own", of_columns)
    raw = _array_file(path, options, None)
    x = as_points(raw, str(path), options)
    data = from_array(x, options, str(path))
    if options.flattens(tuple(x.shape[1:])):
        shape, count = "x".join(map(str, x.shape)), prod(x.shape[1:])
        flat = f"{path}: {shape} numbers, flattened to {count:,} in each row"
        data = replace(data, notes=(flat, *data.notes))
    if x.shape != raw.shape:
        was, now = ("x".join(map(str, shape)) for shape in (raw.shape, x.shape[1:]))
        data = replace(data, notes=(f"{was} numbers, taken as images of {now}", *data.notes))
    if x.ndim == 4 and x.shape[1] in (1, 3):
        pixels = torch.tensor(raw)
        pixels = _channels_first(pixels) if options.channels_first else pixels
        data = replace(data, pictures=pictures_of(pixels.numpy()))
    return data


def stays_in_files(where: str | Path, options: ReadOptions, memory: int | None) -> bool:
    """Whether a pool is an address, a folder of tables or arrays, or too large for memory."""
    path = Path(where)
    if address(where) is not None:
        return True
    if path.is_dir():
        return any(file.suffix.lower() in KINDS for file in path.rglob("*"))
    if path.suffix.lower() not in KINDS or not path.is_file():
        return False
    room = available_memory() // 2 if memory is None else memory // 4
    try:
        pool = _opened_files(path, options)
    except DatasetError:
        return False  # reading it will raise the right error
    return 8 * len(pool) * pool.widest > room


def _from_files(where: str | Path, options: ReadOptions) -> PoolData:
    refused = ("delimiter", "decimal", "encoding", "array", "image_size", "text", "embed")
    names = [f"{name}=" for name in refused if getattr(options, name)]
    if names:
        raise DatasetError(
            f"{where}: {', '.join(names)} cannot apply to a pool that stays in its files; leave it "
            "out"
        )
    pool = _opened_files(where, options)
    drop = split(options.drop, pool.columns)
    costs = None if options.costs is None else pool.numbers(options.costs, 0, len(pool))
    options = replace(options, drop=drop)
    return FileData(pool.name, pool, options, costs=costs, features=pool.columns)


def _opened_files(where: str | Path, options: ReadOptions) -> Streamed:
    place = address(where) or where
    # A comma may be part of a column's name; the columns are needed only in that case.
    commas = any("," in name for name in options.drop)
    known = open_as_is(place).columns if commas else ()
    pool = open_pool(
        place,
        id=options.id,
        column=options.column,
        drop=split(options.drop, known),
        costs=options.costs,
        impute=options.impute,
        max_categories=options.max_categories,
        scale=options.scale,
    )
    return _with_columns(pool, options)


def _with_columns(pool: Streamed, options: ReadOptions) -> Streamed:
    """Return a pool in files with its further axes flattened, if the network needs none."""
    if isinstance(pool, StreamedArray) and options.flattens(pool.shape):
        return pool.flat()
    return pool


def _array_file(path: Path, options: ReadOptions, other: str | None) -> Any:
    if path.suffix.lower() not in _ARRAYS:
        raise DatasetError(f"{path}: expected an .npy or .npz file, as the pool is one")
    if path.is_dir() or not path.exists():
        read_table(path)  # raises the right error
    return read_array(path, options.array_of(path, None if other is None else Path(other)))


def _channels_first(x: Shaped[Tensor, " n *d"]) -> Shaped[Tensor, " n *e"]:
    """Move the channels of images to the front if they are clearly elsewhere or missing."""
    if x.ndim == 3:
        return x[:, None]
    if x.ndim == 4 and x.shape[1] not in (1, 3) and x.shape[3] in (1, 3):
        return x.movedim(3, 1).contiguous()
    return x


def _no_columns(what: str, options: Sequence[str]) -> DatasetError:
    """Return the error for options for columns if the pool has none."""
    return DatasetError(
        f"{what} has no columns, so {', '.join(options)} cannot apply; leave it out"
    )


def address(path: str | Path) -> str | None:
    """Restore the address that a path was before pathlib merged its slashes; None if it was none.

    >>> address(Path("s3://bucket/pool")), address(Path("pool.parquet"))
    ('s3://bucket/pool', None)
    """
    match = re.fullmatch(r"([a-z][a-z0-9+.-]+):/+(.*)", str(path))
    if match is None or Path(path).exists():
        return None
    return f"{match[1]}://{'/' if match[1] == 'file' else ''}{match[2]}"


def split(names: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Split comma-separated names, unless the whole text is a known name itself.

    >>> split(["a, b", "c,d"], known=["a", "b", "c,d"])
    ('a', 'b', 'c,d')
    """
    parts = (
        [name] if name in known else [part.strip() for part in name.split(",") if part.strip()]
        for name in names
    )
    return tuple(dict.fromkeys(name for part in parts for name in part))
