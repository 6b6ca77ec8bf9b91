"""Rows of a comparison on disk: Parquet or CSV, whole or not there."""

import csv
from collections.abc import Sequence
from dataclasses import MISSING, fields
from io import TextIOWrapper
from math import isnan, nan
from pathlib import Path

from evgp import datasets
from evgp._checks import path_of
from evgp._errors import DatasetError
from evgp._reading import check_memory, check_plain, opened
from evgp.arena.row import Row
from evgp.datasets.files import FORMULA_SIGNS
from evgp.datasets.parquet import read_parquet
from evgp.datasets.tables import check_file

SUFFIXES = (".parquet", ".csv")
_TYPES = {field.name: field.type for field in fields(Row) if isinstance(field.type, type)}
_NEEDED = tuple(field.name for field in fields(Row) if field.default is MISSING)
_KINDS = ("regression", "classification")
_QUOTED = tuple(f"'{sign}" for sign in FORMULA_SIGNS)


def write_rows(path: str | Path, rows: Sequence[Row]) -> None:
    """Write rows as Parquet or CSV, by the end of the file's name; NaN is a missing value there.

    >>> import tempfile
    >>> row = Row("yacht", "regression", "evgp", 0, 0, 10, 10, 5, 0.1, 0.2, 3.0, mse=0.5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_rows(Path(folder, "rows.parquet"), [row])
    ...     [made.mse for made in read_rows(Path(folder, "rows.parquet"))]
    [0.5]
    """
    datasets.check_writable(path, SUFFIXES)
    columns = {name: [_missing(getattr(row, name)) for row in rows] for name in _TYPES}
    if Path(path).suffix.lower() == ".csv":
        datasets.write_rows(path, columns)
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrow = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    # Said outright: a metric that no row has would lose its type otherwise.
    schema = pa.schema([(name, arrow[kind]) for name, kind in _TYPES.items()])
    with datasets.atomic(path) as part, part.open("wb") as stream:
        pq.write_table(pa.table(columns, schema=schema), stream, write_page_checksum=True)


def read_rows(path: str | Path) -> tuple[Row, ...]:
    """Read the rows that `write_rows` wrote; a metric that is not there is NaN."""
    path = path_of(path, "path", error=DatasetError)
    check_file(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise DatasetError(f"{path}: expected the rows of a comparison in .parquet or .csv")
    names, records = _from_csv(path) if suffix == ".csv" else _from_parquet(path)
    absent = [name for name in _NEEDED if name not in names]
    if absent:
        raise DatasetError(
            f"{path}: expected the rows of a comparison, got a table without {', '.join(absent)}; "
            "name a file that evgp compare wrote"
        )
    return tuple(_row(path, number, record) for number, record in enumerate(records, 1))


def _from_csv(path: Path) -> tuple[Sequence[str], list[dict[str, object]]]:
    try:
        # A row is a hundred short cells, and its text no small part of what Python makes of it.
        check_memory(50 * check_plain(path), str(path))
        with opened(path) as content:
            stream = TextIOWrapper(content, encoding="utf-8-sig", newline="")
            reader = csv.DictReader(stream, strict=True)
            records: list[dict[str, object]] = [dict(record) for record in reader]
    except (UnicodeDecodeError, csv.Error) as error:
        raise _foreign(path) from error
    for record in records:
        for name, cell in record.items():
            # The quote keeps spreadsheets from running a name, and is no part of it.
            if isinstance(cell, str) and cell.startswith(_QUOTED):
                record[name] = cell[1:]
    return reader.fieldnames or (), records


def _from_parquet(path: Path) -> tuple[Sequence[str], list[dict[str, object]]]:
    import pyarrow as pa

    try:
        table = read_parquet(path)
        check_memory(10 * table.nbytes, str(path))
        return table.column_names, table.to_pylist()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _foreign(path) from error


def _foreign(path: Path) -> DatasetError:
    return DatasetError(
        f"{path}: expected the rows of a comparison, got a damaged or foreign file; name one that "
        "evgp compare wrote"
    )


def _row(path: Path, number: int, record: dict[str, object]) -> Row:
    cells = {name: _cell(path, number, name, record.get(name)) for name in _TYPES}
    if cells["kind"] not in _KINDS:
        raise DatasetError(
            f"{path}: expected regression or classification as the kind in row {number}, got "
            f"{cells['kind']!r}"
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
        raise DatasetError(
            f"{path}: expected a number as {name} in row {number}, got {cell!r}"
        ) from error
    if not isinstance(cell, str):
        raise DatasetError(f"{path}: expected text as {name} in row {number}, got {cell!r}")
    return cell


def _missing(cell: str | int | float) -> str | int | float | None:
    return None if isinstance(cell, float) and isnan(cell) else cell
