"""Pools of any type as tables: frames, arrays, datasets and files."""

from collections.abc import Container, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from jaxtyping import Int, Shaped
from torch import Tensor

from evgp._checks import can
from evgp._extras import EXTRAS
from evgp.datasets.columns import plain
from evgp.datasets.images import read_images
from evgp.datasets.samples import Columned, is_samples, one_split, stack
from evgp.datasets.streamed import KINDS, as_given, is_address, open_as_is
from evgp.datasets.tables import Table, read_table, text_files
from evgp.errors import DatasetError, PoolError, UnusableColumn
from evgp.pool import Selection

if TYPE_CHECKING:
    import pandas

_KINDS = (
    "a pandas or polars frame, an Arrow table, an array with rows and columns, a Hugging Face "
    "dataset, the path of a file, or evgp.open_pool(...)"
)


_FIRST = 4  # picks by which a pool is recognised


def picked_frame(selection: Selection, pool: Any = None) -> "pandas.DataFrame":
    """Return the picks as a pandas DataFrame with the columns of the pool; O(k) per column."""
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
    theirs = _their_columns(selection, pool)
    if theirs is None:
        return pd.DataFrame(ours)
    theirs.columns = [_free(name, ours) for name in theirs.columns]
    return pd.concat([pd.DataFrame(ours, index=theirs.index), theirs], axis=1)


def _their_columns(selection: Selection, pool: Any) -> "pandas.DataFrame | None":
    """Return the columns of the pool for the picks; None if they have no names."""
    kept, rows = selection.__dict__.get("_rows"), selection.indices
    if pool is None:
        if kept is not None:
            return None if isinstance(kept, np.ndarray) else _pandas_of(kept)
        if (pool := _with_names(selection.pool)) is None:
            return None
    pool = opened(pool)
    check_same_rows(selection, len(pool))
    if isinstance(pool, np.ndarray) and pool.ndim > 2:  # images have no columns
        return None
    if can(pool, "in_files"):
        pool, rows = table_of(pool, rows), np.arange(len(rows))
    check_order(selection, pool, rows)
    return _pandas_of(pool.iloc[rows] if is_pandas(pool) else table_of(pool, rows).data)


def _pandas_of(part: Any) -> "pandas.DataFrame":
    """Return rows of a pandas frame, with their index, or of an Arrow table as a frame."""
    if not is_pandas(part):
        return part.to_pandas()
    return part.to_frame() if part.ndim == 1 else part.copy()


def _with_names(pool: Any) -> Any:
    """Open a pool in files, or one of images with further columns; None if it has no names."""
    if isinstance(pool, str | Path):
        path = Path(pool)
        files = path.rglob("*") if path.is_dir() else [path]
        if is_address(pool) or any(file.suffix.lower() in KINDS for file in files):
            pool = open_as_is(pool)
    return pool if can(pool, "by_name") or isinstance(pool, Columned) else None


def check_order(selection: Selection, pool: Any, at: Int[np.ndarray, " k"] | None = None) -> None:
    """Refuse an opened pool whose rows are in another order, by the ids or cells of the picks.

    `at` are the positions of the picks in the pool, if it is a part of it. Cells may differ, as
    after scaling, unless those of the first pick are in another row.
    """
    at = selection.indices if at is None else at
    here, names = _cells_of(pool, at), list(map(str, selection.ids))
    id, kept = selection.settings.get("id"), selection.__dict__.get("_rows")
    if names and id in here and names != list(map(str, here[id])):
        raise _other_order(f"other values in column {id!r}")
    known = {} if kept is None or not len(kept) else _cells_of(kept[:_FIRST])
    known = {
        name: cells
        for name, cells in known.items()
        if name in here and isinstance(cells[0], int | float | str)
    }
    if all(here[name][: len(cells)] == cells for name, cells in known.items()):
        return
    first = {name: cells[0] for name, cells in known.items()}
    rows = enumerate(zip(*(_cells_of(pool)[name] for name in first), strict=True))
    matches = [row for row, cells in rows if cells == tuple(first.values())]
    if matches and at[0] not in matches:
        raise _other_order(f"row {selection.indices[0]} as row {matches[0]}")


def _cells_of(pool: Any, rows: Int[np.ndarray, " r"] | None = None) -> dict[str, list[Any]]:
    """Return the columns of a table or an array as Python values, by name."""
    data = table_of(pool, rows).data
    columns = zip(data.column_names, data.columns, strict=True)
    return {name: plain(column).to_pylist() for name, column in columns}


def _other_order(got: str) -> PoolError:
    return PoolError(f"expected the rows of the pool in their original order, got {got}")


def opened(pool: Any, text: Sequence[str] = ()) -> Any:
    """Open a pool given by a path, and convert other pools to a table or an array.

    The columns in `text` are read from a CSV file as text.
    """
    pool = getattr(pool, "original", pool)  # of a pool that `read_pool` read
    if not isinstance(pool, str | Path):
        if is_pandas(pool) or hasattr(pool, "cells") or isinstance(pool, Columned):
            return pool  # tables and pools in files have a method `cells`
        if is_samples(pool):
            return stack(pool, "pool").numpy()
        return _arrow(pool) if hasattr(pool, "__arrow_c_stream__") else array_of(pool)
    path = Path(pool)
    if text_files(path) or not (is_address(pool) or path.is_dir() or path.suffix.lower() in KINDS):
        return read_table(pool, text=text)
    if path.is_dir() and not any(f.suffix.lower() in KINDS for f in path.rglob("*")):
        return read_images(path).x
    return open_as_is(pool)


def is_pandas(pool: object) -> bool:
    """Whether a pool is a pandas frame or series."""
    return hasattr(pool, "iloc")


def check_same_rows(selection: Selection, rows: int, what: str = "the pool") -> None:
    """Refuse a pool whose number of rows differs from the pool that was picked from."""
    known = selection.settings.get("rows")
    highest = int(selection.indices.max()) if len(selection) else -1
    if (isinstance(known, int) and known != rows) or highest >= rows:
        had = f"{known:,}" if isinstance(known, int) else f"at least {highest + 1:,}"
        raise PoolError(f"expected {what} that was picked from, with {had} rows; got {rows:,} rows")


def table_of(
    pool: Any, rows: Int[np.ndarray, " r"] | None = None, source: str = "the pool"
) -> Table:
    """Return an opened pool as a table: all its rows, or some of them in the given order.

    `source` is the name of a pool that has none.

    >>> table_of(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1])).data.to_pydict()
    {'x0': [3.0], 'x1': [4.0]}
    """
    if can(pool, "in_files"):
        raw = as_given(pool, np.arange(len(pool)) if rows is None else rows)
        return Table(raw if isinstance(raw, pa.Table) else _named(raw), pool.name)
    if isinstance(pool, Columned):
        one_split(pool, "pool")
        part: Any = pool if rows is None else pool.select(rows.tolist())  # type: ignore[attr-defined]
        return Table(part.with_format("arrow")[:], source)
    if isinstance(pool, np.ndarray):
        return Table(_named(pool, rows, source), source)
    if is_pandas(pool):
        frame = pool.to_frame() if pool.ndim == 1 else pool
        frame = frame if rows is None else frame.iloc[rows]
        cells = [_cells(frame.iloc[:, j], source) for j in range(frame.shape[1])]
        return Table(pa.Table.from_arrays(cells, list(map(str, frame.columns))), source)
    data = getattr(pool, "data", pool)  # a `Table` has `data`; an Arrow table is used directly
    return Table(data if rows is None else data.take(rows), getattr(pool, "source", source))


def array_of(pool: Any, name: str = "pool") -> Shaped[np.ndarray, " n *d"]:
    """Return an array, a tensor or nested lists as a NumPy array."""
    try:
        array = pool.detach().cpu().numpy() if isinstance(pool, Tensor) else np.asarray(pool)
    except ValueError as error:
        raise DatasetError(f"the rows of {name} have different lengths") from error
    if array.ndim == 0:
        raise DatasetError(f"expected {_KINDS} as {name}, got {type(pool).__name__}")
    return array


def _arrow(frame: Any) -> pa.Table:
    try:
        # Use Polars' own conversion: pa.table keeps string views, which Arrow cannot `take` from.
        data = frame.to_arrow() if hasattr(frame, "to_arrow") else frame
        column = isinstance(data, pa.Array | pa.ChunkedArray)
        return pa.table({getattr(frame, "name", "") or "value": data} if column else data)
    except (TypeError, ValueError, pa.ArrowException) as error:
        more = "; call its collect() first" if hasattr(frame, "collect") else ""
        raise DatasetError(
            f"expected {_KINDS} as pool, got {type(frame).__name__}{more}"
        ) from error


def _named(
    x: Shaped[np.ndarray, " n *d"],
    rows: Int[np.ndarray, " r"] | None = None,
    source: str = "the pool",
) -> pa.Table:
    """Name the columns of an array by number; return all its rows, or some of them."""
    if x.ndim > 2:
        shape = " x ".join(map(str, x.shape))
        raise DatasetError(
            f"expected an array with rows and columns, got {shape}; pass a table that describes "
            "each row, for example by file names, or leave the pool out"
        )
    x = np.asfortranarray(x if rows is None else x[rows])
    if x.ndim == 1:
        return pa.table({"value": _cells(x, source)})
    return pa.table({f"x{j}": _cells(x[:, j], source) for j in range(x.shape[1])})


def _cells(column: Any, source: str) -> pa.Array | pa.ChunkedArray:
    """Convert a column of any type; objects that Arrow has no type for become text."""
    objects = getattr(getattr(column, "dtype", None), "kind", "") == "O"
    if objects and any(isinstance(value, Tensor) for value in column):
        column = [array_of(v) if isinstance(v, Tensor) else v for v in column]
    try:
        return pa.array(column, from_pandas=True)
    except OverflowError:  # integers beyond 64 bits
        with suppress(OverflowError, TypeError, ValueError):
            floats = [None if value is None else float(value) for value in column]
            if len(set(floats)) == len(set(column)):
                return pa.array(floats)  # otherwise they are names, which must stay distinct
    except (pa.ArrowException, TypeError, ValueError):
        if getattr(getattr(column, "dtype", None), "kind", "O") in "fiu":  # sparse, big-endian
            return pa.array(np.asarray(column).astype(np.float64))
        _check_lists(column, source)
    texts = (None if value is None else str(value) for value in column)
    # Surrogates are not valid characters, and Arrow refuses them.
    return pa.array([text and text.encode("utf-8", "backslashreplace").decode() for text in texts])


def _check_lists(column: Any, source: str) -> None:
    """Refuse anything but rows of numbers among lists."""
    if not any(isinstance(value, list | tuple | np.ndarray) for value in column):
        return
    for row, value in enumerate(column):
        if (got := _no_list(value)) is not None:
            name, wanted = str(getattr(column, "name", "value")), "a list of numbers in each row"
            raise UnusableColumn(source, name, wanted, f"{got} in row {row}", "correct it")


def _no_list(value: Any) -> str | None:
    """Say what a cell is if it is neither missing nor a list of numbers."""
    if isinstance(value, str):
        return "text"
    if not isinstance(value, list | tuple | np.ndarray):
        return None
    try:
        array = np.asarray(value)
    except ValueError:
        return "lists of several lengths"
    if array.ndim != 1:
        return f"an array of {' x '.join(map(str, array.shape))}"
    if array.dtype.kind not in "biuf" and len(array) and any(v is not None for v in value):
        return "a list of words" if array.dtype.kind in "US" else f"a list of {array.dtype}"
    return None


def _free(name: Any, taken: Container[object]) -> Any:
    """Return a column name of the pool, changed if it is already taken."""
    return f"{name}_pool" if name in taken else name
