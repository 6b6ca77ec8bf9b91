"""Tidy rows of a study: a column for each setting and each number, one table in one file."""

import csv
from collections.abc import Iterable, Sequence
from io import StringIO
from math import isfinite
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float

from evgp._errors import DatasetError
from evgp._reading import read_text
from evgp.datasets import atomic

Record: TypeAlias = dict[str, Any]
Rows: TypeAlias = Sequence[Record]


def where(rows: Rows, **values: object) -> list[Record]:
    """Those with these values; a tuple means one of them.

    >>> where([{"seed": 0, "mse": 0.5}, {"seed": 1, "mse": 0.4}], seed=1)
    [{'seed': 1, 'mse': 0.4}]
    """
    return [row for row in rows if all(_is(row.get(name), want) for name, want in values.items())]


def _is(value: object, want: object) -> bool:
    return value in want if isinstance(want, tuple) else value == want


def column(rows: Rows, name: str) -> Float[np.ndarray, " n"]:
    """Numbers of one column; what is missing is NaN.

    >>> column([{"mse": 0.5}, {}], "mse")
    array([0.5, nan])
    """
    found = (row.get(name) for row in rows)
    return np.array([np.nan if value is None else value for value in found], dtype=np.float64)


def distinct(rows: Rows, name: str) -> list[Any]:
    """The values of a column in the order in which they come; without those that are missing.

    >>> distinct([{"seed": 1}, {"seed": 0}, {"seed": 1}, {}], "seed")
    [1, 0]
    """
    return list(dict.fromkeys(row[name] for row in rows if row.get(name) is not None))


def mean_by(rows: Rows, by: str, name: str) -> tuple[list[Any], Float[np.ndarray, "k 2"]]:
    """For each value of `by`, sorted, the mean of a column and its standard error.

    >>> mean_by([{"n": 1, "mse": 2.0}, {"n": 1, "mse": 4.0}], "n", "mse")
    ([1], array([[3., 1.]]))
    """
    keys = sorted(distinct(rows, by))
    made = []
    for key in keys:
        values = column(where(rows, **{by: key}), name)
        values = values[np.isfinite(values)]
        error = values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else 0.0
        made.append((values.mean() if len(values) else np.nan, error))
    return keys, np.array(made, dtype=np.float64).reshape(-1, 2)


def write(path: Path, rows: Rows) -> None:
    """Write a CSV with the union of all columns, numbers to nine digits."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    with atomic(path) as part, part.open("w", encoding="utf-8", newline="") as stream:
        out = csv.writer(stream, lineterminator="\n")
        out.writerow(names)
        out.writerows([_written(row.get(name)) for name in names] for row in rows)


def read(path: Path) -> list[Record]:
    """The rows of a file that `write` wrote; what is missing there is missing here."""
    if not path.exists():
        raise DatasetError(f"{path}: expected the rows of a study, got no file; run it")
    text = read_text(path)
    try:
        lines = list(csv.reader(StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        raise _damaged(path, str(error)) from error
    if len(lines) < 2:
        raise _damaged(path, "a head alone" if lines else "an empty file")
    names, *rest = lines
    for number, cells in enumerate(rest, 2):
        if len(cells) != len(names):
            raise _damaged(path, f"{len(cells)} of {len(names)} values in line {number}")
    if not text.endswith("\n"):
        raise _damaged(path, "a last line that was cut")
    return [
        {name: _read(cell) for name, cell in zip(names, cells, strict=True) if cell != ""}
        for cells in rest
    ]


def _damaged(path: Path, what: str) -> DatasetError:
    return DatasetError(
        f"{path}: expected the rows of a study, got {what}; make them anew with --draw"
    )


def plain(records: Iterable[Record]) -> list[Record]:
    """Records that JSON can hold: numbers that are not finite are left out."""
    return [
        {
            name: value
            for name, value in row.items()
            if value is not None and not (isinstance(value, float) and not isfinite(value))
        }
        for row in records
    ]


def _written(value: object) -> object:
    return "" if value is None else f"{value:.9g}" if isinstance(value, float) else value


def _read(cell: str) -> Any:
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell
