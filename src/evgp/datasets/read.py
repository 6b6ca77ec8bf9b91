"""Read any pool as numbers: frames, arrays, datasets, files and folders of images."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import torch

from evgp._checks import can, path_of, shown
from evgp._defaults import MAX_CATEGORIES
from evgp._executor import Progress, silent
from evgp._machine import available_memory
from evgp.datasets import checks
from evgp.datasets.arrays import npy_header, read_array
from evgp.datasets.columns import is_category
from evgp.datasets.embedded_files import open_embedded, texts_in_files
from evgp.datasets.encode import Streamed
from evgp.datasets.folders import folder_images, from_images, from_pixels
from evgp.datasets.frames import array_of, table_of
from evgp.datasets.images import pictures_of
from evgp.datasets.look import TableReport, problems_of, remedies, report_of, several_texts
from evgp.datasets.options import READING, ReadOptions, address, split, split_all
from evgp.datasets.pool_data import (
    ARRAYS,
    FileData,
    PoolData,
    are_texts,
    array_at,
    as_points,
    as_table,
    channels_first,
    from_array,
    from_table,
    is_table,
    recognised,
    with_columns,
)
from evgp.datasets.samples import Columned, is_samples, stack
from evgp.datasets.scaling import scale_of
from evgp.datasets.streamed import KINDS, open_as_is, open_pool, text_size
from evgp.datasets.tables import Table, read_table, text_files
from evgp.datasets.text import empty_noted, free_columns, texts_of
from evgp.errors import DatasetError, DataWarning, PoolError

_LOOKED = 100_000  # number of rows of a pool in files that are looked at


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
    dates: str | None = None,
    array: str | None = None,
    image_size: int | None = None,
    standardise: bool | None = None,
) -> PoolData:
    """Read a pool as numbers, ready for `evgp.pick`, `evgp.plan` and everything else.

    Parameters
    ----------
    pool
        A pandas or polars frame, an Arrow table, an array or tensor, a torch or Hugging Face
        dataset, or the path of a file (CSV, TSV, Parquet, Arrow, npy, npz), of a folder of such
        files of one kind, or of a folder of images.
    column : str, optional
        The only column to use as features, such as one of embeddings.
    id, drop, costs : str, list of str, str
        Columns that are not features: the names of the rows, columns to drop, the costs of labels.
    impute, max_categories, scale, text, embed
        As in `evgp.pick`: how columns become numbers.
    delimiter, decimal, encoding : str, optional
        Delimiter, decimal sign ("." or ",") and encoding of CSV files; recognised by default, with
        a note if they are unusual.
    dates : {"day-first", "month-first"}, optional
        How to read dates such as 3/4/2021 if no cell of the column shows the order.
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
        id=id, column=column, drop=drop, costs=costs, impute=impute, max_categories=max_categories,
        scale=scale_of(scale, standardise), text=text, embed=embed, delimiter=delimiter,
        decimal=decimal, encoding=encoding, dates=dates, array=array, image_size=image_size,
    )  # fmt: skip
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
    """Read a pool with these options; a pool that is too large for memory stays in its files.

    With `in_files` it always stays there; `memory` is the number of bytes that may be used.
    """
    if can(pool, "is_read"):  # by this function
        return _read_again(pool, options)
    if can(pool, "in_files"):  # opened by `open_pool`
        for option in ("column", "text", "embed"):
            if (given := getattr(options, option)) not in (None, ()):
                raise DatasetError(
                    f"{pool.name}: expected no {option}= with a pool that is open, got "
                    f"{shown(given)}; give the path of the pool"
                )
        options = _as_opened(pool, options)
        pool = with_columns(pool, options)
        costs = None if options.costs is None else pool.numbers(options.costs, 0, len(pool))
        return FileData(pool.name, pool, options, costs=costs, features=pool.columns)
    if isinstance(pool, str | Path):
        path_of(pool, "the pool", error=DatasetError)
        return _from_path(pool, options, in_files, memory, progress)
    of_columns = options.of_columns()
    # Plain numbers are neither a table nor texts.
    array = (
        isinstance(pool, np.ndarray | torch.Tensor) and getattr(pool.dtype, "kind", "f") in "biuf"
    )
    table = not array and is_table(pool)
    if of_columns and not (table or options.fixed or is_samples(pool)):
        table = True
    if not array and isinstance(pool, Columned) and not options.fixed:
        table = bool(of_columns) or _is_plain(pool)
    if not table and of_columns:
        raise no_columns(name, of_columns)
    texts = not array and are_texts(pool)
    if table or (texts and (options.embed is not None or checks.several_words([*{*pool}]))):
        return from_table(as_table(pool, name), options, progress)
    if options.embed is not None:
        raw = stack(pool, name).numpy() if is_samples(pool) else array_of(pool, name)
        return from_pixels(raw, options, name, progress)
    return from_array(as_points(pool, name, options), options, name)


def read_for_network(pool: Any, options: ReadOptions, name: str = "x") -> PoolData:
    """Read inputs of networks; with scale="columns", vectors are scaled as in `evgp.pick`."""
    data = read_with(pool, options, name=name)
    again = options.scale == "columns" and data.has_vectors
    return data.again(replace(data.options, scale="auto")) if again else data


def read_columns(x: Any, options: ReadOptions, name: str = "x") -> PoolData | None:
    """Read a table, a list of texts or images to embed for a network; None for other arrays."""
    if not (is_table(x) or are_texts(x) or options.of_columns() or options.embed is not None):
        return None
    return read_for_network(x, options, name)


def _is_plain(pool: Columned) -> bool:
    """Whether a Hugging Face dataset is a table: numbers and words, no images and lists."""
    if not isinstance(pool.column_names, list) or not len(pool):
        return False  # several splits have a dictionary of names
    return all(np.ndim(cell) == 0 and not hasattr(cell, "size") for cell in pool[0].values())


def _read_again(pool: PoolData, options: ReadOptions) -> PoolData:
    """Return a pool that was read before; read its table or array again if options differ.

    Options that are not passed stay as they were.
    """
    former, usual = pool.options, ReadOptions(fixed=options.fixed)
    kept = {
        name: getattr(former, name)
        for name in READING
        if getattr(options, name) == getattr(usual, name)
    }
    if options.fixed and former.scale == "auto":
        kept.pop("scale", None)  # a network of its own decides
    wanted = replace(options, **kept)
    wanted = replace(wanted, drop=split(wanted.drop, pool.features)) if wanted.drop else wanted
    same = all(getattr(wanted, name) == getattr(former, name) for name in (*READING, "fixed"))
    shapes = wanted.channels_first == former.channels_first or len(pool.shape) == 1
    return pool if same and shapes and not pool.in_files else pool.again(wanted)


def _as_opened(pool: Streamed, options: ReadOptions) -> ReadOptions:
    """Return the options of a pool that `open_pool` opened; all others must be passed there."""
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
    dates: str | None = None,
) -> TableReport:
    """Examine a table: each column, how it would be used, what looks suspicious, and all problems.

    Takes the options of `evgp.read_pool`. Of a pool in files, the first rows are read.

    >>> import pyarrow as pa
    >>> print(look(pa.table({"size": [1, None, 3], "kind": ["a", "b", "a"]})))
    pool: 3 rows, 2 columns
      size: int64, number
      kind: string, 2 categories
      problem: 1 missing or NaN in column 'size' (row 1)
    """
    options = ReadOptions(
        id=id, drop=drop, costs=costs, max_categories=max_categories, delimiter=delimiter,
        decimal=decimal, encoding=encoding, dates=dates,
    )  # fmt: skip
    table, notes = _looked_at(pool, options)
    table, notes = recognised(table, options, notes)
    dropped = split(options.drop, table.names)
    for name in dropped:
        table.column(name)
    uses = dict.fromkeys(dropped, "left out")
    for other, use in ((id, "names the rows"), (costs, "costs")):
        if other is not None:
            table.column(other)
            uses[other] = use
    rest = [name for name in table.names if name not in uses]
    naming = [name for name in rest if checks.is_id(name, table.column(name))]
    uses |= dict.fromkeys(naming, "left out: id")
    texts = free_columns(table, tuple(uses), max_categories)
    uses |= dict.fromkeys(texts, "text, embedded by tfidf")
    uses |= dict.fromkeys(texts[1:], f"text, joined with {texts[0]!r}" if texts else "")
    named = [name for name in rest if name not in uses]
    problems = several_texts(texts)
    also = {"text": ",".join(texts)} if problems else {}
    problems += problems_of(table, named, max_categories)
    read, options = _without_texts(table, texts), replace(options, impute=True)
    try:
        data = from_table(read, options)
        # Next to what describes rows, text that cannot be a category is left out.
        problems = [problem for problem in problems if problem.remedy in ("impute", "text")]
        helps = remedies(problems, id or next(iter(naming), None), dropped)
        used = {column.name for column in data.encoder.columns}
        left = [name for name in named if name not in used]
        text = [name for name in left if is_category(table.column(name).type)]
        uses |= {name: "left out: text" for name in text if _differs(table, name)}
    except DatasetError:
        helps = remedies(problems, id or next(iter(naming), None), dropped)
        try:
            data = from_table(read, replace(options, **cast(Any, helps)))
        except DatasetError as error:
            message = str(error).removeprefix(f"{table.source}: ")
            return report_of(table, uses, (), [*notes, message], problems=problems, options=None)
    empty = [row for row, text in enumerate(texts_of(table, texts)) if not text]
    notes += [
        *empty_noted(texts, empty, len(table)),
        *(note for note in data.notes if "its 2 numbers" not in note),
    ]
    return report_of(
        table, uses, data.encoder.columns, notes, problems=problems, options=helps | also
    )


def _without_texts(table: Table, texts: Sequence[str]) -> Table:
    """Return a table with two numbers in place of texts, which are not embedded to be looked at."""
    if not texts:
        return table
    numbers = pa.array(np.arange(2.0 * len(table)))
    data = table.data.drop_columns(list(texts))
    data = data.append_column(texts[0], pa.FixedSizeListArray.from_arrays(numbers, 2))
    return Table(data, table.source)


def _differs(table: Table, name: str) -> bool:
    return len(table.column(name).unique()) > 1


def _looked_at(pool: Any, options: ReadOptions) -> tuple[Table, list[str]]:
    """Return a pool as a table, and notes on how it was read."""
    if isinstance(pool, str | Path):
        if address(pool) is None and (not Path(pool).is_dir() or text_files(Path(pool))):
            text = () if options.id is None else (options.id,)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", DataWarning)
                table = read_table(pool, **options.dialect, text=text)
            return table, [str(w.message) for w in caught if issubclass(w.category, DataWarning)]
        if Path(pool).is_dir() and not stays_in_files(pool, options, None):
            raise DatasetError(f"{pool}: expected a table to look at, got a folder without any")
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
        return _from_files(where, options, progress)
    if path.is_dir() and not text_files(path):
        if of_columns := options.of_columns():
            raise no_columns(f"{path}: a folder of images", of_columns)
        return from_images(folder_images(path, options, progress), options, progress)
    if options.embed is not None and path.suffix.lower() in ARRAYS and path.is_file():
        if of_columns := options.of_columns():
            raise no_columns(f"{path}: an array of images", of_columns)
        return from_pixels(array_at(path, options, None), options, str(path), progress)
    if options.image_size is not None:
        raise DatasetError(
            f"{path}: image_size= is for a folder of images; leave it out for a file"
        )
    if path.suffix.lower() in ARRAYS and path.is_file():
        if options.fixed or (not options.of_columns() and _has_axes(path, options)):
            return _from_array_file(path, options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataWarning)
        text = (
            *(() if options.id is None else (options.id,)),
            *(split_all(options.text) if options.text else ()),
        )
        table = read_table(path, **options.dialect, array=options.array, text=text)
    notes = tuple(str(item.message) for item in caught if issubclass(item.category, DataWarning))
    try:
        encoded = from_table(table, options, progress)
    except DatasetError:
        for note in notes:  # which may say why
            warnings.warn(note, DataWarning, stacklevel=2)
        raise
    return replace(encoded, notes=(*notes, *encoded.notes))


def _has_axes(path: Path, options: ReadOptions) -> bool:
    """Whether rows of an array in a file have more than one axis, by its header if it is .npy."""
    if path.suffix.lower() == ".npz":
        return bool(read_array(path, options.array).ndim > 2)
    with path.open("rb") as stream:
        return len(npy_header(stream, str(path)).shape) > 2


def _from_array_file(path: Path, options: ReadOptions) -> PoolData:
    """Read an array with the axes that a network needs, and its pictures if it contains images."""
    if of_columns := options.of_columns():
        raise no_columns(f"{path}: an array for a user's network", of_columns)
    raw = array_at(path, options, None)
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
        pixels = channels_first(pixels) if options.channels_first else pixels
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
    return 8 * len(pool) * pool.widest + 3 * text_size(str(path)) > room


def _from_files(where: str | Path, options: ReadOptions, progress: Progress) -> PoolData:
    refused = ["delimiter", "decimal", "encoding", "dates", "array", "image_size"]
    place = address(where) or where
    texts = texts_in_files(place, options)
    refused += ["text", "embed"] if texts is None else []
    if names := [f"{name}=" for name in refused if getattr(options, name)]:
        raise DatasetError(
            f"{where}: {', '.join(names)} cannot apply to a pool that stays in its files; leave it "
            "out"
        )
    empty: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    pool: Streamed
    if texts is None:
        pool = _opened_files(where, options)
    else:
        opened = open_embedded(place, texts, options, progress=progress)
        pool, notes, empty = opened.pool, opened.notes, opened.empty
    drop = split(options.drop, pool.columns)
    costs = None if options.costs is None else pool.numbers(options.costs, 0, len(pool))
    options = replace(options, drop=drop)
    return FileData(
        pool.name, pool, options, costs=costs, notes=notes, features=pool.columns,
        without_text=empty, texts=texts,
    )  # fmt: skip


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
    return with_columns(pool, options)


def no_columns(what: str, options: Sequence[str]) -> DatasetError:
    """Return the error for options for columns if the pool has none."""
    return DatasetError(
        f"{what} has no columns, so {', '.join(options)} cannot apply; leave it out"
    )
