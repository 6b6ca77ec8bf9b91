"""Whatever people hand over as a pool, as a table to show: frames, arrays, datasets, files."""

from collections.abc import Container, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from jaxtyping import Int, Shaped
from torch import Tensor

from evgp._checks import can
from evgp._errors import DatasetError, PoolError
from evgp._extras import EXTRAS
from evgp.datasets.samples import Columned, is_samples, one_split, stack
from evgp.datasets.streamed import KINDS, is_address, open_pool
from evgp.datasets.tables import Table, read_table
from evgp.pool import Selection

if TYPE_CHECKING:
    import pandas

_KINDS = (
    "a pandas or polars frame, an Arrow table, an array with rows and columns, a Hugging Face "
    "dataset, the path of a file, or evgp.open_pool(...)"
)


def picked_frame(selection: Selection, pool: Any = None) -> "pandas.DataFrame":
    """The picks as a pandas DataFrame, followed by the columns of the pool. O(k) a column."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            "expected pandas, which is not installed; do `pip install pandas`, or "
            f"`{EXTRAS['adapters'].install}`"
        ) from error
    k, left = len(selection), selection.variance_left
    ours: dict[str, Any] = {
        "rank": np.arange(1, k + 1),
        "row": selection.indices,
        **({"id": list(selection.ids)} if selection.ids else {}),
        "gain": selection.gains,
        "variance_left": left if len(left) else np.full(k, np.nan),
    }
    if selection.costs is not None:
        ours["cost"] = selection.costs
    if pool is None:
        return pd.DataFrame(ours)
    pool = opened(pool)
    check_same_rows(selection, len(pool))
    if is_pandas(pool):
        part = pool.iloc[selection.indices]
        theirs = part.to_frame() if part.ndim == 1 else part.copy()
    else:
        theirs = table_of(pool, selection.indices).data.to_pandas()
    theirs.columns = [_free(name, ours) for name in theirs.columns]
    return pd.concat([pd.DataFrame(ours, index=theirs.index), theirs], axis=1)


def opened(pool: Any, text: Sequence[str] = ()) -> Any:
    """A path as the table or the files that it names; anything else as it is.

    Columns in `text` are taken from a CSV as they are written.
    """
    if not isinstance(pool, str | Path):
        if is_pandas(pool) or hasattr(pool, "cells") or isinstance(pool, Columned):
            return pool  # a table, or files, have cells
        if is_samples(pool):
            return stack(pool, "pool").numpy()
        return _arrow(pool) if hasattr(pool, "__arrow_c_stream__") else array_of(pool)
    if is_address(pool) or Path(pool).is_dir() or Path(pool).suffix.lower() in KINDS:
        return open_pool(pool)
    return read_table(pool, text=text)


def is_pandas(pool: object) -> bool:
    """Is this a frame or a series of pandas?"""
    return hasattr(pool, "iloc")


def check_same_rows(selection: Selection, rows: int, what: str = "the pool") -> None:
    """Refuse a pool that has not the rows that were picked from, by their number."""
    known = selection.settings.get("rows")
    highest = int(selection.indices.max()) if len(selection) else -1
    if (isinstance(known, int) and known != rows) or highest >= rows:
        had = f"{known:,}" if isinstance(known, int) else f"at least {highest + 1:,}"
        raise PoolError(
            f"expected {what} with the rows that were picked from, {had} in number; got {rows:,}"
        )


def table_of(pool: Any, rows: Int[np.ndarray, " r"] | None = None) -> Table:
    """An opened pool as named columns: all its rows, or some in the order given.

    >>> table_of(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1])).data.to_pydict()
    {'x0': [3.0], 'x1': [4.0]}
    """
    if can(pool, "in_files"):
        raw = pool.raw_at(np.arange(len(pool)) if rows is None else rows, pool.columns)
        return Table(raw if isinstance(raw, pa.Table) else _named(raw), pool.name)
    if isinstance(pool, Columned):
        one_split(pool, "pool")
        some: Any = pool if rows is None else pool.select(rows.tolist())  # type: ignore[attr-defined]
        return Table(some.with_format("arrow")[:], "the pool")
    if isinstance(pool, np.ndarray):
        return Table(_named(pool, rows), "the pool")
    if is_pandas(pool):
        frame = pool.to_frame() if pool.ndim == 1 else pool
        frame = frame if rows is None else frame.iloc[rows]
        cells = [_cells(frame.iloc[:, j]) for j in range(frame.shape[1])]
        return Table(pa.Table.from_arrays(cells, list(map(str, frame.columns))), "the pool")
    data = getattr(pool, "data", pool)  # that of a table; an Arrow table is its own
    source = getattr(pool, "source", "the pool")
    return Table(data if rows is None else data.take(rows), source)


def array_of(pool: Any, name: str = "pool") -> Shaped[np.ndarray, " n *d"]:
    """An array or tensor, or what becomes one."""
    try:
        array = pool.detach().cpu().numpy() if isinstance(pool, Tensor) else np.asarray(pool)
    except ValueError as error:
        raise DatasetError(f"expected rows of equal length in {name}, got {error}") from error
    if array.ndim == 0:
        raise DatasetError(f"expected {_KINDS} as {name}, got {type(pool).__name__}")
    return array


def _arrow(frame: Any) -> pa.Table:
    try:
        # Polars' own conversion: pa.table keeps its string views, which Arrow cannot take rows of.
        return pa.table(frame.to_arrow() if hasattr(frame, "to_arrow") else frame)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise DatasetError(f"expected {_KINDS} as pool, got {type(frame).__name__}") from error


def _named(x: Shaped[np.ndarray, " n *d"], rows: Int[np.ndarray, " r"] | None = None) -> pa.Table:
    """The columns of an array by number, or its only values; all rows, or some."""
    if x.ndim > 2:
        shape = " x ".join(map(str, x.shape))
        raise DatasetError(
            f"expected an array with rows and columns, got {shape}; give a table of what is known "
            "of each row, such as file names, or leave the pool out"
        )
    x = np.asfortranarray(x if rows is None else x[rows])
    if x.ndim == 1:
        return pa.table({"value": _cells(x)})
    return pa.table({f"x{j}": _cells(x[:, j]) for j in range(x.shape[1])})


def _cells(column: Any) -> pa.Array:
    """A column of whatever kind; objects that Arrow has no type for are written out."""
    try:
        return pa.array(column, from_pandas=True)
    except OverflowError:  # whole numbers beyond 64 bits
        with suppress(OverflowError, TypeError, ValueError):
            return pa.array([None if value is None else float(value) for value in column])
    except (pa.ArrowException, TypeError, ValueError):
        pass
    words = (None if value is None else str(value) for value in column)
    # A surrogate is no letter, and Arrow takes none.
    return pa.array([one and one.encode("utf-8", "backslashreplace").decode() for one in words])


def _free(name: Any, taken: Container[object]) -> Any:
    """The name of a column of the pool, changed where it is one of ours."""
    return f"{name}_pool" if name in taken else name
