"""Any pool as numbers: frames, arrays, files, folders of images and datasets, all in one way."""

import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from evgp._checks import can, flag, integer, keep, numbers, path_of, points, word, words
from evgp._errors import DatasetError, DataWarning, PoolError
from evgp._executor import Progress, silent
from evgp._linalg import in_pairs
from evgp._machine import available_memory
from evgp.datasets.arrays import read_array
from evgp.datasets.encode import ArrayCode, ArrayLayout, Encoder, Streamed, Survey, step_of
from evgp.datasets.frames import opened, table_of
from evgp.datasets.images import ArrayPictures, Images, pictures_of, read_images
from evgp.datasets.labelled import Labelled, ids, read_labelled
from evgp.datasets.samples import is_samples, stack
from evgp.datasets.streamed import KINDS, is_address, open_pool
from evgp.datasets.tables import Cells, Table, read_table

Points: TypeAlias = Tensor | Streamed
_ARRAYS = (".npy", ".npz")
_READ = 1 << 16  # ids read together


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How to read a pool.

    `id`, `drop` and `costs` name columns that are not features. With `impute`, the mean of a column
    of numbers and the most frequent word stand for cells without a value. `delimiter` is for CSV
    files, `array` names one in an .npz file, `image_size` is for folders of images.

    The others say what the network takes: with `fixed` its inputs have one shape, so that constant
    columns of an array stay (as zeros); with `channels_first` they are images; whole numbers of
    shapes that it `looks_up` stay what they are.
    """

    id: str | None = None
    drop: str | Sequence[str] = ()
    costs: str | None = None
    impute: bool = False
    max_categories: int = 50
    standardise: bool = True
    delimiter: str | None = None
    array: str | None = None
    image_size: int | None = None
    fixed: bool = False
    channels_first: bool = False
    looks_up: Callable[[tuple[int, ...]], bool] | None = None

    def __post_init__(self) -> None:
        for name in ("id", "costs", "delimiter", "array"):
            if getattr(self, name) is not None:
                word(getattr(self, name), name)
        flag(self.impute, "impute")
        flag(self.standardise, "standardise")
        keep(
            self,
            drop=words(self.drop, "drop"),
            max_categories=integer(self.max_categories, "max_categories", 1),
        )

    def array_of(self, path: Path, other: object) -> str | None:
        """The array's name, where the pool is an archive and the test file is not, or both are."""
        archives = [isinstance(one, Path) and one.suffix.lower() == ".npz" for one in (path, other)]
        return None if archives == [False, True] else self.array

    def given(self) -> list[str]:
        """Options that are for columns, and are used."""
        named = ("id", "drop", "costs", "impute")
        return [f"{name}=" for name in named if getattr(self, name)]


@dataclass(frozen=True, eq=False)
class PoolData(ABC):
    """A pool that was read: its rows as numbers, and all else that is known of them.

    Attributes
    ----------
    source : str
        What messages call it.
    x : tensor or Streamed
        The rows on the pool's scale, or the files that they stay in.
    options : ReadOptions
        How it was read.
    ids : sequence or None
        What rows are called.
    costs : array or None
        What a label costs, by row.
    notes : tuple of str
        What looks odd, and what was done about it.
    """

    source: str
    x: Points
    options: ReadOptions
    ids: Sequence[object] | None = None
    costs: Float[np.ndarray, " n"] | None = None
    notes: tuple[str, ...] = ()
    pictures: Images | ArrayPictures | None = None
    in_files: ClassVar[bool] = False

    def __len__(self) -> int:
        return len(self.x)

    @property
    def in_memory(self) -> Shaped[Tensor, " n *d"]:
        """The rows, where they do not stay in files."""
        if self.in_files:
            raise PoolError(f"{self.source}: expected a pool in memory, got one in files")
        return cast(Tensor, self.x)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one row."""
        return tuple(self.x.shape[1:])

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the inputs, where they come from columns."""
        return ()

    @property
    def used(self) -> int:
        """Columns that are used, where there are columns."""
        return 0

    @property
    def columns(self) -> Mapping[str, Cells]:
        """What is shown of each row, by column."""
        return {}

    @abstractmethod
    def like(self, other: Any, name: str = "x_test", progress: Progress = silent) -> Points:
        """Other points, such as test points, with the columns and on the scale of this pool."""

    def tensor_like(self, other: Any, name: str = "x_test") -> Shaped[Tensor, " m *d"]:
        """Other points in memory, as this pool is."""
        self.in_memory  # noqa: B018  refuses a pool in files
        return cast(Tensor, self.like(other, name))

    def labelled(self, path: str | Path) -> Labelled:
        """Understand a file of labelled rows: ids, row numbers, or rows of their own."""
        how = self.options
        return read_labelled(path, None, self.names(), id=how.id, delimiter=how.delimiter)

    def names(self) -> Sequence[object]:
        """What rows are called: their ids, or their numbers."""
        return range(len(self)) if self.ids is None else self.ids

    def ids_of(self, rows: Int[np.ndarray, " k"]) -> tuple[str | int, ...]:
        """What some rows are called; nothing where rows have numbers only."""
        if self.ids is None:
            return ()
        found = (self.ids[row] for row in rows.tolist())
        return tuple(one if isinstance(one, str | int) else str(one) for one in found)


@dataclass(frozen=True, eq=False)
class TableData(PoolData):
    """Named columns: the encoder that made numbers of them, and the columns as they were given."""

    encoder: Encoder = field(kw_only=True)
    table: Table = field(kw_only=True)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return self.encoder.names

    @property
    def used(self) -> int:
        """Columns that are used."""
        return len(self.encoder.sources)

    @property
    def columns(self) -> Mapping[str, Cells]:
        """What the table shows of each row."""
        return {name: self.table.cells(name) for name in self.table.names}

    def like(self, other: Any, name: str = "x_test", progress: Progress = silent) -> Points:
        """The same columns of another table, or of a file."""
        if isinstance(other, str | Path):
            array = self.options.array_of(Path(other), Path(self.source))
            delimiter, words = self.options.delimiter, self.encoder.words
            table = read_table(other, delimiter=delimiter, array=array, text=words)
        else:
            table = as_table(other, name)
        return torch.from_numpy(self.encoder.transform(table))

    def labelled(self, path: str | Path) -> Labelled:
        """Ids, row numbers, or rows with the columns of the pool."""
        return read_labelled(
            path,
            self.encoder,
            self.names(),
            id=self.options.id,
            delimiter=self.options.delimiter,
            pool=self.in_memory.numpy(),
        )


@dataclass(frozen=True, eq=False)
class ArrayData(PoolData):
    """Rows of numbers without names; `code` is their scale, where they were scaled."""

    code: ArrayCode | None = field(kw_only=True, default=None)

    def like(self, other: Any, name: str = "x_test", progress: Progress = silent) -> Points:
        """Another array, or a file of one."""
        if isinstance(other, str | Path):
            other = _array_file(Path(other), self.options, self.source)
        x = as_points(other, name, self.options)
        shape = self.shape if self.code is None else self.code.layout.shape
        if tuple(x.shape[1:]) != shape:
            raise PoolError(
                f"expected {name} with features of shape {shape}, as in x; got {tuple(x.shape[1:])}"
            )
        return self.coded(x, name)

    def coded(self, x: Shaped[Tensor, " n *d"], name: str) -> Shaped[Tensor, " n *e"]:
        """Points on the scale of the pool."""
        if self.code is None:
            same = x.is_floating_point() == self.in_memory.is_floating_point()
            return x if same else x.double()
        return torch.from_numpy(self.code.encode(x.numpy(), 0, name)[0])


@dataclass(frozen=True, eq=False)
class ImageData(ArrayData):
    """A folder of images, which are called by the names of their files."""

    pictures: Images = field(kw_only=True)

    def like(self, other: Any, name: str = "x_test", progress: Progress = silent) -> Points:
        """Another folder of images, or an array of pixels."""
        if not isinstance(other, str | Path):
            return super().like(other, name)
        folder = Path(other)
        if not folder.is_dir():
            raise DatasetError(f"{folder}: expected a folder of images, as the pool is one")
        images = read_images(folder, like=self.pictures, progress=progress)
        for note in images.notes:
            warnings.warn(f"{folder}: {note}", DataWarning, stacklevel=3)
        return self.coded(torch.from_numpy(images.x).double(), str(folder))

    def labelled(self, path: str | Path) -> Labelled:
        """A folder of further images, or names of files in this one."""
        if Path(path).is_dir():
            x = self.like(path)
            return Labelled(x=x, note=f"{path}: {len(x):,} labelled images")
        return read_labelled(path, None, self.names(), id="id", delimiter=self.options.delimiter)


@dataclass(frozen=True, eq=False)
class FileData(PoolData):
    """A pool that stays in its files, to be read a block at a time."""

    x: Streamed
    in_files: ClassVar[bool] = True

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one row, with as many columns as its words may become."""
        return (self.x.widest,) if len(self.x.shape) == 1 else self.x.shape

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the columns in the files."""
        return self.x.columns

    @property
    def used(self) -> int:
        """Columns in the files, where there are any."""
        return self.x.shape[0] if self.x.columns else 0

    def like(self, other: Any, name: str = "x_test", progress: Progress = silent) -> Points:
        """Other files."""
        if can(other, "in_files"):
            return cast(Streamed, other)
        if not isinstance(other, str | Path):
            raise PoolError(f"expected {name} as a path, as x is one; got {type(other).__name__}")
        how = self.options
        return open_pool(
            address(other) or other,
            impute=how.impute,
            max_categories=how.max_categories,
            standardise=how.standardise,
        )

    def labelled(self, path: str | Path) -> Labelled:
        """Rows with the columns of the pool and without ids are outside it; else ids or numbers."""
        id = self.options.id
        if Path(path).suffix.lower() in KINDS:
            rows = open_pool(path)
            needed = {*self.x.columns} - {id, self.options.costs, *self.options.drop}
            if (id is None or id not in rows.columns) and needed <= {*rows.columns}:
                return Labelled(
                    x=rows,
                    note=f"{path}: read as {len(rows):,} labelled rows from outside the pool; "
                    "give ids for those that are in it",
                )
        return super().labelled(path)

    def names(self) -> Sequence[object]:
        """What rows are called, read from the files."""
        if self.options.id is None:
            return range(len(self))
        starts = range(0, len(self), _READ)
        ranges = (np.arange(start, min(len(self), start + _READ)) for start in starts)
        return [name for rows in ranges for name in self.x.cells(self.options.id, rows)]

    def ids_of(self, rows: Int[np.ndarray, " k"]) -> tuple[str | int, ...]:
        """What some rows are called, read from the files."""
        if self.options.id is None:
            return ()
        found = self.x.cells(self.options.id, rows)
        return tuple(one if isinstance(one, str | int) else str(one) for one in found)

    def part(self, rows: Int[np.ndarray, " r"]) -> PoolData:
        """A few rows, read to be shown: on a scale of their own."""
        raw, how = self.x.raw_at(rows, self.x.columns), self.options
        if self.x.columns and not isinstance(raw, np.ndarray):
            how = replace(how, max_categories=len(rows) + 1)
            return replace(from_table(Table(raw, self.source), how), notes=self.notes)
        x = torch.from_numpy(np.asarray(raw, dtype=np.float64).reshape(len(rows), -1))
        return ArrayData(self.source, x, how, notes=self.notes)


def read_pool(
    pool: Any,
    *,
    id: str | None = None,
    drop: Sequence[str] = (),
    costs: str | None = None,
    impute: bool = False,
    max_categories: int = 50,
    standardise: bool = True,
    delimiter: str | None = None,
    array: str | None = None,
    image_size: int | None = None,
) -> PoolData:
    """Read a pool as numbers, ready for `evgp.pick`, `evgp.plan` and everything else.

    Parameters
    ----------
    pool
        A pandas or polars frame, an Arrow table, an array or tensor, a torch or Hugging Face
        dataset, or the path of a file (CSV, TSV, Parquet, Arrow, npy, npz) or folder of images.
    id, drop, costs : str, list of str, str
        Columns that are not features: what rows are called, what to leave out, what labels cost.
    impute : bool
        Fill cells without a value with the mean of their column, or its most frequent word.
    max_categories : int
        Maximum number of distinct values in a column of words.
    standardise : bool
        Whether columns are scaled to mean 0 and standard deviation 1; constant ones are dropped.
    delimiter, array, image_size
        How to read CSV files, which array of an .npz file to read, and the size of images.

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
        drop=drop,
        costs=costs,
        impute=impute,
        max_categories=max_categories,
        standardise=standardise,
        delimiter=delimiter,
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
    """Read a pool with these options; what is too large for memory stays in its files.

    `in_files` says that it stays there in any case, `memory` how many bytes there are.
    """
    if isinstance(pool, PoolData):
        return pool
    if can(pool, "in_files"):  # by `open_pool`
        costs = None if options.costs is None else pool.numbers(options.costs, 0, len(pool))
        return FileData(pool.name, pool, options, costs=costs)
    if isinstance(pool, str | Path):
        path_of(pool, "the pool", error=DatasetError)
        return _from_path(pool, options, in_files, memory, progress)
    if is_table(pool) or (options.given() and not (options.fixed or is_samples(pool))):
        return from_table(as_table(pool, name), options)
    _refuse(options, name)
    return from_array(as_points(pool, name, options), options, name)


def is_table(pool: object) -> bool:
    """Whether this has named columns, of whatever kind."""
    named = any(hasattr(pool, name) for name in ("iloc", "__arrow_c_stream__", "cells"))
    return named and not is_samples(pool)


def as_table(pool: Any, name: str) -> Table:
    """Named columns of what has them, or x0, x1, ... of an array."""
    table = table_of(opened(pool))
    return Table(table.data, name) if table.source == "the pool" else table


def as_points(x: Any, name: str, options: ReadOptions) -> Shaped[Tensor, " n *d"]:
    """An array or dataset as float64, finite, one point a row; or as whole numbers."""
    tensor = stack(x, name) if is_samples(x) else numbers(x, name)
    if options.channels_first:
        tensor = _channels_first(tensor)
    made = points(tensor, name)
    if options.looks_up is not None and not tensor.is_floating_point():
        made = tensor if options.looks_up(tuple(tensor.shape[1:])) else made
    # An array of the caller's may change, and nobody would notice.
    same = isinstance(x, np.ndarray) and made.data_ptr() == tensor.data_ptr()
    return made.clone() if same else made


def from_array(x: Shaped[Tensor, " n *d"], options: ReadOptions, name: str) -> ArrayData:
    """An array on its own scale, by column or by channel; whole numbers stay what they are."""
    if not (options.standardise and x.is_floating_point()):
        return ArrayData(name, x, options)
    array = x.numpy()
    layout = ArrayLayout(
        name, len(array), array.shape[1:], array.dtype, standardise=True, fixed=options.fixed
    )
    step, nobody = step_of(prod(layout.shape)), np.empty(0, dtype=np.int64)
    parts = (
        layout.survey(first, array[first : first + step], nobody)
        for first in range(0, len(array), step)
    )
    code, notes = layout.learn(in_pairs(parts, Survey.merge))
    scaled = torch.from_numpy(code.encode(array, 0, name)[0])
    return ArrayData(name, scaled, options, notes=tuple(notes), code=code)


def from_table(table: Table, options: ReadOptions) -> TableData:
    """Named columns as numbers."""
    id, costs = options.id, options.costs
    names = None if id is None else ids(table, id)
    prices = None if costs is None else table.numbers(costs)
    dropped = split(options.drop, table.names)
    encoder, x = Encoder.fit_transform(
        table,
        id=id,
        drop=(*dropped, *(() if costs is None else (costs,))),
        impute=options.impute,
        max_categories=options.max_categories,
        standardise=options.standardise,
    )
    return TableData(
        table.source,
        torch.from_numpy(x),
        replace(options, drop=dropped),
        names,
        prices,
        encoder.notes,
        encoder=encoder,
        table=table,
    )


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
        _refuse(options, f"{path}: a folder of images")
        images = read_images(path, size=options.image_size, progress=progress)
        made = from_array(torch.from_numpy(images.x).double(), options, str(path))
        notes = (*(f"{path}: {note}" for note in images.notes), *made.notes)
        return ImageData(
            str(path), made.x, options, images.names, None, notes, code=made.code, pictures=images
        )
    if options.image_size is not None:
        raise DatasetError(
            f"{path}: image_size= is for a folder of images; leave it out for a file"
        )
    if options.fixed and path.suffix.lower() in _ARRAYS and path.is_file():
        return _from_array_file(path, options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataWarning)
        text = () if options.id is None else (options.id,)
        table = read_table(path, delimiter=options.delimiter, array=options.array, text=text)
    notes = tuple(str(item.message) for item in caught if issubclass(item.category, DataWarning))
    data = from_table(table, options)
    return replace(data, notes=(*notes, *data.notes))


def _from_array_file(path: Path, options: ReadOptions) -> PoolData:
    """An array with the axes that a network wants, with pictures to look at where it has any."""
    _refuse(options, f"{path}: an array for a network of its own")
    raw = _array_file(path, options, None)
    x = as_points(raw, str(path), options)
    made = from_array(x, options, str(path))
    if x.shape != raw.shape:
        was, now = ("x".join(map(str, shape)) for shape in (raw.shape, x.shape[1:]))
        made = replace(made, notes=(f"{was} numbers, taken as images of {now}", *made.notes))
    if x.ndim == 4 and x.shape[1] in (1, 3):
        given = torch.tensor(raw)
        pixels = _channels_first(given) if options.channels_first else given
        made = replace(made, pictures=pictures_of(pixels.numpy()))
    return made


def stays_in_files(where: str | Path, options: ReadOptions, memory: int | None) -> bool:
    """Whether a pool is an address, a folder of files, or too large to read."""
    path = Path(where)
    if is_address(where) or address(where) is not None:
        return True
    if path.is_dir():
        return any(one.suffix.lower() in KINDS for one in path.rglob("*"))
    if path.suffix.lower() not in KINDS or not path.is_file():
        return False
    room = available_memory() // 2 if memory is None else memory // 4
    try:
        pool = _opened_files(path, options)
    except DatasetError:
        return False  # who reads it says what is wrong
    return 8 * len(pool) * pool.widest > room


def _from_files(where: str | Path, options: ReadOptions) -> PoolData:
    refused = ("delimiter", "array", "image_size")
    given = [f"{name}=" for name in refused if getattr(options, name)]
    if given:
        raise DatasetError(
            f"{where}: {', '.join(given)} cannot apply to a pool that stays in its files; leave it "
            "out"
        )
    pool = _opened_files(where, options)
    drop = split(options.drop, pool.columns)
    costs = None if options.costs is None else pool.numbers(options.costs, 0, len(pool))
    return FileData(pool.name, pool, replace(options, drop=drop), costs=costs)


def _opened_files(where: str | Path, options: ReadOptions) -> Streamed:
    place = address(where) or where
    # A comma may be part of a name: the columns are looked at only then.
    commas = any("," in name for name in options.drop)
    known = open_pool(place).columns if commas else ()
    return open_pool(
        place,
        id=options.id,
        drop=split(options.drop, known),
        costs=options.costs,
        impute=options.impute,
        max_categories=options.max_categories,
        standardise=options.standardise,
    )


def _array_file(path: Path, options: ReadOptions, other: str | None) -> Any:
    if path.suffix.lower() not in _ARRAYS:
        raise DatasetError(f"{path}: expected an .npy or .npz file, as the pool is one")
    if path.is_dir() or not path.exists():
        read_table(path)  # it says what is wrong
    return read_array(path, options.array_of(path, None if other is None else Path(other)))


def _channels_first(x: Shaped[Tensor, " n *d"]) -> Shaped[Tensor, " n *e"]:
    """For networks here, which want channels first, what is surely meant as such."""
    if x.ndim == 3:
        return x[:, None]
    if x.ndim == 4 and x.shape[1] not in (1, 3) and x.shape[3] in (1, 3):
        return x.movedim(3, 1).contiguous()
    return x


def _refuse(options: ReadOptions, what: str) -> None:
    """Refuse options for columns where there are none."""
    given = options.given()
    if given:
        raise DatasetError(
            f"{what} has no columns, so {', '.join(given)} cannot apply; leave it out"
        )


def address(path: str | Path) -> str | None:
    """The address that a path was before its slashes were merged, if it was one.

    >>> address(Path("s3://bucket/pool")), address(Path("pool.parquet"))
    ('s3://bucket/pool', None)
    """
    found = re.fullmatch(r"([a-z][a-z0-9+.-]+):/+(.*)", str(path))
    if found is None or Path(path).exists():
        return None
    return f"{found[1]}://{'/' if found[1] == 'file' else ''}{found[2]}"


def split(names: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Names divided by commas, unless the whole is a name itself.

    >>> split(["a, b", "c,d"], known=["a", "b", "c,d"])
    ('a', 'b', 'c,d')
    """
    parts = (
        [name] if name in known else [part.strip() for part in name.split(",") if part.strip()]
        for name in names
    )
    return tuple(dict.fromkeys(name for found in parts for name in found))
