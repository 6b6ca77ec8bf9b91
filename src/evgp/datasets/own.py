"""A user's table with a column of labels, as a pool and a test set."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from evgp._checks import integer, one_of, path_of, word
from evgp._defaults import MAX_CATEGORIES
from evgp.datasets import checks
from evgp.datasets.columns import (
    counted,
    is_category,
    is_number,
    to_numbers,
    to_objects,
    to_text,
)
from evgp.datasets.dataset import Dataset, Kind, RawParts, generator, scaled_targets
from evgp.datasets.encode import usable
from evgp.datasets.formats import recognise
from evgp.datasets.labelled import ids
from evgp.datasets.look import all_problems
from evgp.datasets.options import ReadOptions, split, split_all
from evgp.datasets.pool_data import PoolData
from evgp.datasets.read import read_for_network
from evgp.datasets.tables import Table, read_table
from evgp.datasets.text import text_columns
from evgp.datasets.vectors import is_vector
from evgp.errors import DatasetError, DataWarning, SeveralTexts, TooFewRows, quoted

# Integers are classes if there are at most this many distinct ones, each in at least so many rows.
_FEW = 20
_EACH = 5


def load_csv(
    path: str | Path,
    label: str,
    *,
    task: str = "auto",
    test: float | int = 0.5,
    seed: int = 0,
    id: str | None = None,
    column: str | None = None,
    drop: str | Sequence[str] = (),
    impute: bool = False,
    max_categories: int = MAX_CATEGORIES,
    text: str | Sequence[str] = (),
    embed: object = None,
    scale: str | None = "columns",
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    dates: str | None = None,
) -> Dataset:
    """Load any table with a column of labels (CSV, Parquet, ...), split by the seed. `test` is a
    share of the rows, or their number, which may be 0. Scaling and categories are learnt on the
    pool and applied to the test set. Vectors, such as those of `text` and `embed`, are scaled as in
    `evgp.pick`, other columns each by itself, unless `scale` is given. The other options are those
    of `evgp.read_pool`. Labels that are words, or at most 20 distinct integers with five rows each,
    are classes; other numbers are targets, with mean 0 and standard deviation 1 over the pool.
    `task` overrides this; `about` records the choice.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "iris.csv")
    ...     _ = file.write_text("width,kind\\n1,a\\n2,b\\n3,b\\n4,a\\n5,a\\n6,b\\n7,a\\n8,b\\n")
    ...     flowers = load_csv(file, "kind")
    >>> flowers, flowers.about
    (Dataset('iris', classification of 2 classes, pool 4 x 1, test 4), "2 classes in column 'kind'")
    """
    path_of(path, "path", error=DatasetError)
    word(label, "label", error=DatasetError)
    options = ReadOptions(
        id=id, column=column, drop=drop, impute=impute, max_categories=max_categories, text=text,
        embed=embed, delimiter=delimiter, decimal=decimal, encoding=encoding, dates=dates,
        scale=scale,
    )  # fmt: skip
    table, notes = _table(Path(path), options)
    if id is not None:
        ids(table, id)
    out = _not_inputs(label, options, table.names)
    values = _labels(table.source, label, table.column(label))
    kind = _kind(table.source, label, values, task)
    rows, rows_test = _split(len(table), test, seed, table.source)
    _warn(table.source, notes)
    x, x_test, raw = _features(table, rows, rows_test, out=out, options=options)
    fields: dict[str, Any] = {
        "name": Path(table.source).name.split(".")[0],
        "kind": kind,
        "x": x,
        "x_test": x_test,
        "rows": torch.from_numpy(rows),
        "rows_test": torch.from_numpy(rows_test),
        "raw": raw,
        "scale": raw.options.scale,
    }
    if kind == "regression":
        numbers = values.astype(np.float64)
        y, y_test, mean, std = scaled_targets(numbers[rows], numbers[rows_test], table.source)
        fields["about"] = f"numbers in column {label!r}, as targets"
        return Dataset(**fields, y=y, y_test=y_test, y_mean=mean, y_std=std)
    classes, codes = np.unique(values, return_inverse=True)
    names = tuple(class_name(value) for value in classes)
    _check_classes(table.source, names, codes[rows], codes[rows_test])
    y, y_test = (torch.from_numpy(codes[part]) for part in (rows, rows_test))
    fields |= {"about": f"{len(names)} classes in column {label!r}", "class_names": names}
    return Dataset(**fields, y=y, y_test=y_test, classes=len(names))


def _not_inputs(label: str, options: ReadOptions, names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of labels, ids and those to drop; refuses a label that is used twice."""
    id = () if options.id is None else (options.id,)
    others = (*id, *split(options.drop, names))
    if label in (options.column, *others, *split(options.text, names)):
        raise DatasetError(
            f"expected a label column to learn from, got {label!r} in id=, column=, drop= or text= "
            "too; name it once"
        )
    return (label, *others)


def _table(path: Path, options: ReadOptions) -> tuple[Table, tuple[str, ...]]:
    """Return the table, which all seeds share; it is read again only if the file has changed."""
    try:
        state = path.stat()
    except OSError:
        read_table(path)  # raises the right error
        raise
    names = (*(() if options.id is None else (options.id,)), *split_all(options.text))
    written = tuple(options.dialect.values())
    return _read_once(path, written, names, (state.st_mtime_ns, state.st_size, state.st_ino))


@lru_cache(maxsize=4)
def _read_once(
    path: Path, written: tuple[Any, ...], text: tuple[str, ...], _: tuple[int, ...]
) -> tuple[Table, tuple[str, ...]]:
    delimiter, decimal, encoding, dates = written
    table = read_table(
        path, delimiter=delimiter, decimal=decimal, encoding=encoding, dates=dates, text=text
    )
    recognised = recognise(table.data, decimal, text, dates)
    return Table(recognised.data, table.source), () if table.noted else recognised.notes


def _labels(source: str, label: str, cells: pa.ChunkedArray) -> Shaped[np.ndarray, " n"]:
    """Return the labels, checked: numbers or words, none missing and not all equal."""
    if not (is_number(cells.type) or is_category(cells.type)):
        raise DatasetError(
            f"{source}: expected numbers or words in label column {label!r}, got {cells.type}; "
            "name another column"
        )
    if missing := checks.in_cells(label, cells):
        advice = "fill them in, or leave those rows out"
        raise checks.missing_values(source, missing, advice, "a label in each row")
    if pa.types.is_integer(cells.type):
        values = np.asarray(cells.to_numpy())
    elif is_number(cells.type):
        values = to_numbers(cells)
    else:
        values = to_objects(to_text(cells))
    if (values == values[0]).all():
        raise DatasetError(
            f"{source}: expected labels that differ in column {label!r}, got "
            f"{class_name(values[0])!r} in {'all' if len(values) > 1 else 'its'} "
            f"{counted(len(values), 'row')}; name another column"
        )
    return values


def _kind(source: str, label: str, values: Shaped[np.ndarray, " n"], task: str) -> Kind:
    one_of(task, "task", ("auto", "regression", "classification"), error=DatasetError)
    numbers = values.dtype.kind in "iuf"
    if task == "regression" and not numbers:
        raise DatasetError(
            f"{source}: expected numbers in column {label!r} for a regression, got words such as "
            f"{str(values[0])!r}; use task='classification'"
        )
    different = len(np.unique(values))
    whole = numbers and bool((values == np.floor(values)).all())
    few = different <= min(_FEW, max(2, len(values) // _EACH))
    if task == "regression" or (task == "auto" and numbers and not (whole and few)):
        return "regression"
    if 2 * different > len(values):
        remedy = "use task='regression'" if numbers else "name another column"
        raise DatasetError(
            f"{source}: expected classes in column {label!r}, got {different:,} different labels "
            f"in {counted(len(values), 'row')}; {remedy}"
        )
    return "classification"


def _split(
    n: int, test: float | int, seed: int, source: str
) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " m"]]:
    """Return the rows of the pool and of the test set; the test set gets an odd row."""
    share = isinstance(test, float | np.floating) and 0 < test < 1
    if not share:
        why = "the number of rows, or as a share between 0 and 1"
        integer(test, "test", 0, why=why, error=DatasetError)
    # Rounding errors of a share must not add a row.
    count = ceil(n * test - 1e-9) if share else int(test)
    if n - count < 2:
        advice = f"take a smaller test part than test={test}, or more rows"
        raise TooFewRows(source, 2, max(n - count, 0), advice, "for the pool")
    order = generator(seed).permutation(n)
    return order[: n - count], order[n - count :]


def _features(
    table: Table,
    rows: Int[np.ndarray, " n"],
    rows_test: Int[np.ndarray, " m"],
    out: Sequence[str],
    options: ReadOptions,
) -> tuple[Float[Tensor, "n d"], Float[Tensor, "m d"], RawParts]:
    for name in out:
        table.column(name)
    data = table.data.drop_columns(list(dict.fromkeys(out)))
    if not data.column_names:
        raise DatasetError(f"{table.source}: the table has no columns other than the label")
    try:
        prepared = _pool_part(Table(data, table.source), rows, options)
    except DatasetError as error:
        used = data.column_names if options.column is None else [options.column]
        used = [name for name in used if not checks.is_id(name, data[name])]
        free = error.columns if isinstance(error, SeveralTexts) else ()
        given, most = options.given(), options.max_categories
        several = all_problems(Table(data, table.source), used, given, most, free)
        if several is None:
            raise
        raise several from error
    test = data.take(rows_test)
    raw = RawParts(data.take(rows), test, prepared.options)
    if not len(rows_test):
        return prepared.in_memory, prepared.in_memory[:0], raw
    return prepared.in_memory, prepared.tensor_like(Table(test, f"{table.source} (test)")), raw


def _pool_part(table: Table, rows: Int[np.ndarray, " n"], options: ReadOptions) -> PoolData:
    """Encode some rows; before that, what is missing is refused by its row in the file."""
    used = table.names if options.column is None else [options.column]
    others = [name for name in table.names if name not in used]
    wanted, most = split(options.text, table.names), options.max_categories
    texts = text_columns(table, wanted, others, most, options.embed)
    for name in used:
        usable(table.source, name, table.column(name).type)
    if not options.impute:
        plain = [name for name in used if name not in texts]
        plain = [name for name in plain if not is_vector(table.column(name).type)]
        holes = [hole for name in plain for hole in checks.in_cells(name, table.column(name))]
        checks.refuse(holes, table.source, "correct them, or have them filled with impute=True")
    pool = Table(table.data.take(rows), f"{table.source} (pool)")
    made = read_for_network(pool, replace(options, id=None, drop=()))
    _warn(pool.source, made.notes)
    return made


def _warn(source: str, notes: Sequence[str]) -> None:
    for note in notes:
        warnings.warn(f"{source}: {note}", DataWarning, stacklevel=4)


def _check_classes(
    source: str, names: Sequence[str], codes: Int[np.ndarray, " n"], test: Int[np.ndarray, " m"]
) -> None:
    unseen: Bool[np.ndarray, " m"] = ~np.isin(test, codes)
    if not unseen.any():
        return
    lost = [names[code] for code in np.unique(test[unseen])]
    raise DatasetError(
        f"{source}: expected every class in the pool, got {quoted(lost)} in the test part only "
        f"({counted(int(unseen.sum()), 'row')}); use another seed or a smaller test part, or "
        "remove such rare classes"
    )


def class_name(value: object) -> str:
    """Return the name of a class as people write it.

    >>> class_name(3.0), class_name(0.5), class_name(True), class_name("a")
    ('3', '0.5', 'true', 'a')
    """
    if isinstance(value, bool):
        return str(value).lower()
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return f"{value:.0f}" if whole else str(value)
