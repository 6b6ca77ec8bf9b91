"""The report of a selection from Python, whatever it was picked from."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Float, Int, Shaped

from evgp._checks import can, word
from evgp._errors import DatasetError, DataWarning, PoolError
from evgp.datasets import (
    ArrayPictures,
    Columned,
    Encoder,
    Table,
    array_of,
    check_same_rows,
    check_writable,
    ids,
    opened,
    pictures_of,
    stack,
    table_of,
    write_text,
)
from evgp.datasets.columns import is_number
from evgp.pool import Selection
from evgp.report.render import render
from evgp.report.summarise import summarise

# Rows besides the picks that are read for the map of a pool that stays in its files.
_MAP = 5_000


def write_report(
    selection: Selection, path: str | Path, pool: Any, *, x: Any = None, id: str | None = None
) -> None:
    """Write the page of a selection; `Selection.report` says what may be handed over."""
    check_writable(path, (".html", ".htm"))
    if id is not None:
        word(id, "id", error=DatasetError)
    source = Path(pool).name if isinstance(pool, str | Path) else ""
    pool = opened(pool, text=() if id is None else (id,))
    n = len(pool)
    check_same_rows(selection, n)
    if x is not None:
        x = array_of(x, "x")
        check_same_rows(selection, len(x), "x")
    elif isinstance(pool, Columned):
        x = stack(pool, "pool").numpy()
    rows = _rows_to_read(selection, pool)
    part = pool if rows is None else pool.raw_at(rows, pool.columns)
    table = None if isinstance(part, np.ndarray) and part.ndim > 2 else _table(part)
    if table is None and x is None:
        x = part
    elif x is not None and rows is not None:
        x = x[rows]
    summary = summarise(
        selection if rows is None else _placed(selection, rows),
        x=_encoded(table, id) if table is not None and x is None else _flat(x),
        ids=_names(pool, table, id),
        columns={} if table is None else {name: table.cells(name) for name in table.names},
        network=str(selection.settings.get("network", "")),
        source=source,
        pictures=_pictures(part) if table is None else None,
        numbers=rows,
        total=None if rows is None else n,
    )
    write_text(path, render(summary))


def _rows_to_read(selection: Selection, pool: Any) -> Int[np.ndarray, " r"] | None:
    """Of a pool that stays in its files, the picks and some others for the map; None for all."""
    if not can(pool, "in_files"):
        return None
    n = len(pool)
    others = np.random.default_rng(0).choice(n, min(_MAP, n), replace=False)
    return np.union1d(selection.indices, others)


def _placed(selection: Selection, rows: Int[np.ndarray, " r"]) -> Selection:
    """The same picks, numbered among the rows that were read."""
    return replace(selection, indices=np.searchsorted(rows, selection.indices))


def _table(part: Any) -> Table:
    """The columns to show; pictures and lists of numbers are none for a page."""
    table = table_of(part)
    kinds = {name: table.column(name).type for name in table.names}
    shown = [
        name for name, kind in kinds.items()
        if not (pa.types.is_nested(kind) or pa.types.is_binary(kind))
    ]  # fmt: skip
    return Table(table.data.select(shown), table.source)


def _pictures(x: Shaped[np.ndarray, " n *d"]) -> ArrayPictures | None:
    return pictures_of(x) if x.ndim == 4 and x.shape[1] in (1, 3) else None


def _names(pool: Any, table: Table | None, id: str | None) -> list[str] | None:
    """What rows are called: a column, or the index of a frame that is more than a count."""
    if id is not None:
        if table is None:
            raise PoolError(f"expected columns with id={id!r}, got an array without any")
        return [str(name) for name in ids(table, id)]
    index = getattr(pool, "index", None) if hasattr(pool, "iloc") else None
    if index is None or np.array_equal(np.asarray(index), np.arange(len(index))):
        return None
    return [str(name) for name in index]


def _encoded(table: Table, id: str | None) -> Float[np.ndarray, "n d"]:
    """The columns as numbers, scaled as the command scales them; free text and ids play no part."""
    names = [name for name in table.names if name != id]
    try:
        return _matrix(table, names)
    except DatasetError:
        usable = [name for name in names if _is_usable(table, name)]
    if usable:
        return _matrix(table, usable)
    if any(is_number(table.column(name).type) for name in names):
        return np.zeros((len(table), 1))  # all rows are alike
    raise PoolError(
        "expected columns of numbers in the pool, to draw its map from, got none; give x, the "
        "array that was picked from"
    )


def _matrix(table: Table, names: Sequence[str]) -> Float[np.ndarray, "n d"]:
    part = Table(table.data.select(names), table.source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # a map needs no more than a guess
        return Encoder.fit(part, impute=True).transform(part)


def _is_usable(table: Table, name: str) -> bool:
    try:
        _matrix(table, [name])
    except DatasetError:
        return False
    return True


def _flat(x: Shaped[np.ndarray, " n *d"]) -> Float[np.ndarray, "n d"]:
    """Rows of numbers; pixels need no more than float32."""
    if x.dtype.kind not in "biuf":
        raise PoolError(f"expected numbers in x, got {x.dtype}")
    flat = x.reshape(len(x), -1)
    flat = flat if flat.dtype.kind == "f" else flat.astype(np.float32)
    if not np.isfinite(flat).all():
        raise PoolError("expected finite numbers in x, got NaN or infinity; drop or impute them")
    return flat
