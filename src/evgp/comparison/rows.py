"""Rows of a comparison: the metrics, and reading and writing the table."""

import csv
from collections.abc import Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from io import TextIOWrapper
from math import isnan, nan
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float

from evgp import datasets
from evgp._checks import path_of
from evgp._reading import check_memory, check_plain, opened
from evgp.datasets import Kind
from evgp.datasets.files import FORMULA_SIGNS
from evgp.datasets.parquet import read_parquet
from evgp.datasets.tables import check_file
from evgp.errors import DamagedFile, DatasetError, WrongFormat


@dataclass(frozen=True)
class Measure:
    """A metric: its name in words, which direction is better, and where it applies.

    Metrics that are `central` are tested against random picks, and drawn first.
    """

    words: str
    kind: Kind
    lower: bool = True
    central: bool = False


MEASURES = {
    "mse": Measure("test MSE", "regression", central=True),
    "output_variance_p90": Measure("output variance, 90th percentile", "regression", central=True),
    "output_variance": Measure("output variance, mean", "regression"),
    "bias": Measure("empirical bias", "regression"),
    "accuracy": Measure("test accuracy", "classification", lower=False, central=True),
    "output_entropy": Measure("output entropy", "classification", central=True),
    "disagreement": Measure("disagreement", "classification"),
    "nll": Measure("negative log-likelihood", "classification"),
    "calibration_error": Measure("calibration error", "classification"),
}


NETWORK = "network"
LEARNERS = {
    NETWORK: "networks",
    "1nn": "1-NN",
    "linear": "linear models",
    "ntk": "NTK ridge",
    "trees": "extra trees",
    "boosting": "gradient boosting",
}
"""Names of the learners in words."""


@dataclass(frozen=True)
class Row:
    """One round of one cell by one learner; metrics that do not apply are NaN.

    A cell is a dataset, a strategy and a seed. `labels` is the number of labels after the round,
    `members` the networks that were trained on it (1 for other learners). Rows of one dataset share
    `batch`, which is 0 where each number of labels is picked as one batch, and differ in members
    only if a study was extended. `lr` is the step size of the training, which is reduced if
    training diverges.
    """

    dataset: str
    kind: str
    strategy: str
    seed: int
    round: int
    labels: int
    batch: int
    members: int
    train_loss: float
    pick_seconds: float
    train_seconds: float
    mse: float = nan
    output_variance_p90: float = nan
    output_variance: float = nan
    bias: float = nan
    accuracy: float = nan
    output_entropy: float = nan
    disagreement: float = nan
    nll: float = nan
    calibration_error: float = nan
    lr: float = nan
    learner: str = NETWORK


Record: TypeAlias = dict[str, Any]
Records: TypeAlias = Sequence[Record]
SUFFIXES = (".parquet", ".csv")
_TYPES = {field.name: field.type for field in fields(Row) if isinstance(field.type, type)}
_DEFAULTS = {field.name: field.default for field in fields(Row) if field.default is not MISSING}
_NEEDED = tuple(field.name for field in fields(Row) if field.default is MISSING)
_KINDS = ("regression", "classification")
_QUOTED = tuple(f"'{sign}" for sign in FORMULA_SIGNS)


def where(records: Records, **values: object) -> list[Record]:
    """The rows with these values; a tuple means any of its values.

    >>> where([{"seed": 0, "mse": 0.5}, {"seed": 1, "mse": 0.4}], seed=1)
    [{'seed': 1, 'mse': 0.4}]
    """
    rows = list(records)
    for name, want in values.items():
        accepted = want if isinstance(want, tuple) else (want,)
        rows = [row for row in rows if row.get(name) in accepted]
    return rows


def column(records: Records, name: str) -> Float[np.ndarray, " n"]:
    """The numbers of one column; missing values are NaN.

    >>> column([{"mse": 0.5}, {}], "mse")
    array([0.5, nan])
    """
    values = (row.get(name) for row in records)
    return np.array([nan if value is None else value for value in values], dtype=np.float64)


def distinct(records: Records, name: str) -> list[Any]:
    """The distinct values of a column in order of appearance, without missing ones.

    >>> distinct([{"seed": 1}, {"seed": 0}, {"seed": 1}, {}], "seed")
    [1, 0]
    """
    return list(dict.fromkeys(row[name] for row in records if row.get(name) is not None))


def write_records(path: str | Path, records: Records, *, digits: int | None = None) -> None:
    """Write a CSV file with all columns; numbers are exact, or rounded to `digits`."""
    datasets.check_writable(path, (".csv",))
    names = dict.fromkeys(name for row in records for name in row)
    columns = {name: [_written(row.get(name), digits) for row in records] for name in names}
    datasets.write_rows(path, columns)


def read_records(path: Path) -> list[Record]:
    """Read a file of `write_records`; raises `DamagedFile` if it is not one."""
    names, lines = _from_csv(path)
    return [
        {name: _number(cell) for name, cell in zip(names, cells, strict=True) if cell != ""}
        for cells in lines
    ]


def write_rows(path: str | Path, rows: Sequence[Row]) -> None:
    """Write rows as Parquet or CSV, depending on the file name; NaN becomes a missing value.

    >>> import tempfile
    >>> row = Row("yacht", "regression", "evgp", 0, 0, 10, 10, 5, 0.1, 0.2, 3.0, mse=0.5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_rows(Path(folder, "rows.parquet"), [row])
    ...     [made.mse for made in read_rows(Path(folder, "rows.parquet"))]
    [0.5]
    """
    datasets.check_writable(path, SUFFIXES)
    columns = {name: [_written(getattr(row, name)) for row in rows] for name in _TYPES}
    if Path(path).suffix.lower() == ".csv":
        datasets.write_rows(path, columns)
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrow = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    # Explicit types: a metric that no row has would lose its type.
    schema = pa.schema([(name, arrow[kind]) for name, kind in _TYPES.items()])
    with datasets.atomic(path) as part, part.open("wb") as stream:
        pq.write_table(pa.table(columns, schema=schema), stream, write_page_checksum=True)


def read_rows(path: str | Path) -> tuple[Row, ...]:
    """Read the rows of a comparison; a missing metric is NaN.

    Parameters
    ----------
    path : str or Path
        A file of rows: .parquet or .csv.

    Returns
    -------
    tuple of Row
    """
    path = path_of(path, "path", error=DatasetError)
    check_file(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise DatasetError(f"{path}: expected the rows of a comparison in .parquet or .csv")
    try:
        if suffix == ".csv":
            names, lines = _from_csv(path)
            records: Records = [dict(zip(names, cells, strict=True)) for cells in lines]
        else:
            names, records = _from_parquet(path)
    except DamagedFile as error:
        raise WrongFormat.of(DatasetError)(
            str(path),
            "the rows of a comparison",
            "a damaged or foreign file",
            "name one that evgp compare wrote",
        ) from error
    absent = [name for name in _NEEDED if name not in names]
    if absent:
        raise WrongFormat.of(DatasetError)(
            str(path),
            "the rows of a comparison",
            f"a table without {', '.join(absent)}",
            "name a file that evgp compare wrote",
        )
    return tuple(_row(path, number, record) for number, record in enumerate(records, 1))


def record_of(row: Row) -> Record:
    """Convert a row to the record in a finished cell; the default learner is left out.

    >>> row = Row("yacht", "regression", "evgp", 0, 0, 10, 10, 5, 0.1, 0.2, 3.0, mse=0.5)
    >>> "learner" in record_of(row), row_of(record_of(row)).learner
    (False, 'network')
    """
    record = asdict(row)
    if row.learner == NETWORK:  # as in cells from before there were other learners
        del record["learner"]
    return record


def row_of(record: Record) -> Row:
    """Convert a record of a finished cell to a row; a missing metric is NaN.

    >>> row_of({"dataset": "yacht"})
    Traceback (most recent call last):
    KeyError: 'kind'
    """
    values: dict[str, Any] = {}
    for name, kind in _TYPES.items():
        usual = nan if kind is float else _DEFAULTS.get(name)
        value = record[name] if usual is None else record.get(name, usual)
        if not isinstance(value, int | float if kind is float else kind):
            raise TypeError(f"{name}: {value!r}")
        values[name] = value
    return Row(**values)


def _from_csv(path: Path) -> tuple[list[str], list[list[str]]]:
    """The column names and the cells of each line, without quotes before formulas."""
    try:
        # Python needs many times the size of a file of short cells.
        check_memory(50 * check_plain(path), str(path))
        with opened(path) as content:
            stream = TextIOWrapper(content, encoding="utf-8-sig", newline="")
            names, *lines = [cells for cells in csv.reader(stream, strict=True) if cells] or [[]]
    except (UnicodeDecodeError, csv.Error) as error:
        raise DamagedFile(str(path), str(error)) from error
    for number, cells in enumerate(lines, 2):
        if len(cells) != len(names):
            why = f"line {number} has {len(cells)} of {len(names)} values"
            raise DamagedFile(str(path), why)
    # The quote keeps spreadsheets from running text as a formula, and is not part of it.
    return names, [[c[1:] if c.startswith(_QUOTED) else c for c in cells] for cells in lines]


def _from_parquet(path: Path) -> tuple[list[str], list[Record]]:
    import pyarrow as pa

    try:
        table = read_parquet(path)
        check_memory(10 * table.nbytes, str(path))
        return table.column_names, table.to_pylist()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DamagedFile(str(path), str(error)) from error


def _row(path: Path, number: int, record: Record) -> Row:
    cells = {
        name: _cell(path, number, name, record.get(name, _DEFAULTS.get(name))) for name in _TYPES
    }
    if cells["kind"] not in _KINDS:
        raise WrongFormat.of(DatasetError)(
            str(path),
            f"regression or classification as the kind in row {number}",
            repr(cells["kind"]),
        )
    return Row(**cells)  # type: ignore[arg-type]  # every cell has the type of its field


def _cell(path: Path, number: int, name: str, cell: object) -> str | int | float:
    kind = _TYPES[name]
    try:
        if kind is float:
            return nan if cell is None or cell == "" else float(cell)  # type: ignore[arg-type]
        if kind is int:
            return int(cell)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError) as error:
        raise WrongFormat.of(DatasetError)(
            str(path), f"a number as {name} in row {number}", repr(cell)
        ) from error
    if not isinstance(cell, str):
        raise WrongFormat.of(DatasetError)(str(path), f"text as {name} in row {number}", repr(cell))
    return cell


def _written(value: object, digits: int | None = None) -> object:
    if not isinstance(value, float):
        return value
    return None if isnan(value) else value if digits is None else f"{value:.{digits}g}"


def _number(cell: str) -> Any:
    """A cell as a number if it is one, else as text."""
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell
