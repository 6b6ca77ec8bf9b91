"""The report and the plot of a selection from Python."""

import warnings
from collections.abc import Container, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
from jaxtyping import Float, Int, Shaped

from evgp._checks import can, word
from evgp.datasets import (
    ArrayPictures,
    Cells,
    Columned,
    Encoder,
    Table,
    array_of,
    check_order,
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
from evgp.datasets.streamed import as_given
from evgp.datasets.vectors import is_vector
from evgp.errors import DatasetError, DataWarning, PoolError
from evgp.pool import Selection
from evgp.report.render import render
from evgp.report.summary import summarise

# Rows besides the picks that are read for the map of a pool that stays in its files.
_MAP = 5_000


def write_report(
    selection: Selection, path: str | Path, pool: Any, *, x: Any = None, id: str | None = None
) -> None:
    """Write the page of a selection; `Selection.report` documents the arguments."""
    check_writable(path, (".html", ".htm"))
    if id is not None:
        word(id, "id", error=DatasetError)
    dropped = cast("list[str]", selection.settings.get("drop") or [])
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
    part = pool if rows is None else as_given(pool, rows)
    table = None if isinstance(part, np.ndarray) and part.ndim > 2 else _table(part)
    if table is not None:
        check_order(selection, table, None if rows is None else np.searchsorted(rows, selection))
    known = selection.settings.get("id")
    if id is None and table is not None and known in table.names:
        id = known
    if table is None and x is None:
        x = part
    elif x is not None and rows is not None:
        x = x[rows]
    summary = summarise(
        selection if rows is None else _placed(selection, rows),
        x=_encoded(table, {id, *dropped}) if table is not None and x is None else _flat(x),
        ids=_names(pool, table, id),
        columns=_shown(table),
        network=str(selection.settings.get("network", "")),
        source=source,
        pictures=_pictures(part) if table is None else None,
        numbers=rows,
        total=None if rows is None else n,
    )
    write_text(path, render(summary))


def _rows_to_read(selection: Selection, pool: Any) -> Int[np.ndarray, " r"] | None:
    """The picks and some others for the map if the pool stays in files, else None for all rows."""
    if not can(pool, "in_files"):
        return None
    n = len(pool)
    others = np.random.default_rng(0).choice(n, min(_MAP, n), replace=False)
    return np.union1d(selection.indices, others)


def _placed(selection: Selection, rows: Int[np.ndarray, " r"]) -> Selection:
    """The same picks, numbered among the rows that were read."""
    return replace(selection, indices=np.searchsorted(rows, selection.indices))


def _table(part: Any) -> Table:
    """The columns to show or to draw a map from, without images."""
    table = table_of(part)
    kinds = {name: table.column(name).type for name in table.names}
    kept = [
        name for name, kind in kinds.items()
        if is_vector(kind) or not (pa.types.is_nested(kind) or pa.types.is_binary(kind))
    ]  # fmt: skip
    return Table(table.data.select(kept), table.source)


def _shown(table: Table | None) -> dict[str, Cells]:
    """The columns to show, without lists of numbers."""
    if table is None:
        return {}
    kinds = {name: table.column(name).type for name in table.names}
    return {name: table.cells(name) for name, kind in kinds.items() if not is_vector(kind)}


def _pictures(x: Shaped[np.ndarray, " n *d"]) -> ArrayPictures | None:
    return pictures_of(x) if x.ndim == 4 and x.shape[1] in (1, 3) else None


def _names(pool: Any, table: Table | None, id: str | None) -> list[str] | None:
    """Names of rows: a column, or the index of a data frame unless it is 0, 1, 2, ..."""
    if id is not None:
        if table is None:
            raise PoolError(f"id={id!r} needs a pool with columns, got an array")
        return [str(name) for name in ids(table, id)]
    index = getattr(pool, "index", None) if hasattr(pool, "iloc") else None
    if index is None or np.array_equal(np.asarray(index), np.arange(len(index))):
        return None
    return [str(name) for name in index]


def _encoded(table: Table, out: Container[str | None]) -> Float[np.ndarray, "n d"]:
    """The columns as numbers, scaled as for picking, without free text, and those left out."""
    names = [name for name in table.names if name not in out]
    try:
        return _matrix(table, names)
    except DatasetError:
        usable = [name for name in names if _is_usable(table, name)]
    if usable:
        return _matrix(table, usable)
    kinds = [table.column(name).type for name in names]
    if any(is_number(kind) or is_vector(kind) for kind in kinds):
        return np.zeros((len(table), 1))  # all rows are equal
    raise PoolError(
        "the pool has no numeric columns to draw a map from; pass x, the array that was picked from"
    )


def _matrix(table: Table, names: Sequence[str]) -> Float[np.ndarray, "n d"]:
    part = Table(table.data.select(names), table.source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # a rough encoding is enough for a map
        return Encoder.fit(part, impute=True).transform(part)


def _is_usable(table: Table, name: str) -> bool:
    try:
        _matrix(table, [name])
    except DatasetError:
        return False
    return True


def _flat(x: Shaped[np.ndarray, " n *d"]) -> Float[np.ndarray, "n d"]:
    """Rows of numbers; float32 is enough for pixels."""
    if x.dtype.kind not in "biuf":
        raise PoolError(f"expected numbers in x, got {x.dtype}")
    flat = x.reshape(len(x), -1)
    flat = flat if flat.dtype.kind == "f" else flat.astype(np.float32)
    if not np.isfinite(flat).all():
        raise PoolError("expected finite numbers in x, got NaN or infinity; drop or impute them")
    return flat


if TYPE_CHECKING:
    from matplotlib.axes import Axes

OURS, FLOOR = "#3d4fd1", "#0f766e"


def plot_curve(selection: Selection, ax: "Axes | None" = None) -> "Axes":
    """Draw the mean variance left by number of labels, above the certificate's floor. O(k)."""
    if not len(selection.variance_left):
        raise PoolError("this selection has no variance_left to plot; only EV-GP computes it")
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots()
    labels = range(len(selection) + 1)
    left = [selection.start_variance, *selection.variance_left]
    if selection.certificate is not None:
        floor = [selection.start_variance, *selection.certificate.lowest]
        ax.fill_between(labels, floor, left, color=OURS, alpha=0.12, linewidth=0)
        ax.plot(labels, floor, "--", color=FLOOR, linewidth=1.2, label="lower bound for any choice")
    ax.plot(labels, left, color=OURS, linewidth=2, label="these picks")
    ax.legend(frameon=False)
    ax.set(xlabel="labels", ylabel="mean variance left", xlim=(0, len(selection)), ylim=(0, None))
    ax.spines[["top", "right"]].set_visible(False)
    return ax
