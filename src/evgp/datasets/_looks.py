"""What looks unlike it was meant: ids and labels among the features, copies, wild values."""

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Float

from evgp.datasets._columns import Column, Number, counted, to_numbers
from evgp.datasets.tables import Table

_ID = re.compile(r"(^|[_\W])(id|key|index|idx|uuid|guid|row|unnamed: \d+)$", re.I)
_LABEL = re.compile(
    r"^(y|y_true|(.*_)?(label|target|class|outcome)(s|es)?|response|ground_?truth)$", re.I
)
# Such a name is the label's only with few values.
_MAYBE_LABEL = re.compile(
    r"^(species|diagnos[ie]s|disease|survived|churn(ed)?|fraud|spam|approved|(is|has)[_ ].+)$", re.I
)
_FEW = 20
_NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"
_HUGE = 1e15
_FAR = 30.0
_POINT = 1e-6


def of_pool(table: Table, columns: Sequence[Column], x: Float[np.ndarray, "n d"]) -> list[str]:
    """Notes on columns that may be ids or the label, on wild values, and on copies."""
    counting, ids, labels, maybe, wild = [], [], [], [], []
    start = 0
    for column in columns:
        cells, name = table.column(column.name), column.name
        if pa.types.is_integer(cells.type) and _all_differ(cells):
            counting.append(name)
        elif _ID.search(name):
            ids.append(name)
        if _LABEL.match(name):
            labels.append(name)
        elif _MAYBE_LABEL.match(name) and _has_few(cells):
            maybe.append(name)
        if isinstance(column, Number) and (row := _wild(column, x[:, start])) is not None:
            value = to_numbers(cells.slice(row, 1))[0]
            wild.append(f"column {name!r} row {row}: {value:.6g}")
        start += len(column.features)
    copied = copies(x)
    found = {
        "another whole number in each row, as in an id (--id or --drop leaves it out)": counting,
        "named like an id (--id or --drop leaves it out)": ids,
        "named like the label, which must not steer the picks (--drop leaves it out)": labels,
        "perhaps the label, which must not steer the picks (--drop leaves it out)": maybe,
    }
    notes = [f"column {quoted(names)}: {what}" for what, names in found.items() if names]
    if wild:
        more = f", and in {counted(len(wild) - 3, 'column')} more" if len(wild) > 3 else ""
        notes.append(f"values far from all others ({'; '.join(wild[:3])}{more}): are they meant?")
    if copied:
        be = "is a copy of another" if copied == 1 else "are copies of others"
        notes.append(f"{copied:,} of {counted(len(x), 'row')} {be}")
    return notes


def quoted(names: Sequence[str]) -> str:
    """The first few names of a longer list.

    >>> quoted(["a", "b"])
    "'a', 'b'"
    """
    shown = ", ".join(repr(name) for name in names[:8])
    return shown + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def of_words(name: str, words: pa.ChunkedArray) -> str:
    """What a column of words may have been meant to be; empty when it is simply words."""
    present = words.drop_null()
    numeric = pc.match_substring_regex(present, _NUMBER)
    share = pc.mean(numeric.cast(pa.int8())).as_py() or 0.0
    if 0.5 <= share < 1:
        row = int(np.flatnonzero(~np.asarray(numeric.fill_null(True).to_numpy(), dtype=bool))[0])
        return f"most of column {name!r} are numbers, but {present[row].as_py()!r} is not"
    commas = pc.match_substring_regex(present, r"^\s*[+-]?\d+,\d+\s*$")
    if len(present) and pc.mean(commas.cast(pa.int8())).as_py() >= 0.5:
        return f"column {name!r} seems to hold decimal commas, where points are expected"
    return ""


def copies(x: Float[np.ndarray, "n d"]) -> int:
    """How many rows are copies of an earlier one.

    >>> copies(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]))
    1
    """
    # An exact integer hash of each row; a sum of products in floats would depend on its order.
    total = np.zeros(len(x), dtype=np.uint64)
    random = np.random.default_rng(0)
    multipliers = random.integers(1, 2**63, size=(x.shape[1],), dtype=np.uint64)
    for j, multiplier in enumerate(multipliers):
        # Adding zero makes -0.0 and 0.0 the same bits; the shifts spread exponent bits downwards.
        bits = (x[:, j] + 0.0).view(np.uint64)
        bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
        total += (bits ^ (bits >> np.uint64(33))) * (2 * multiplier + np.uint64(1))
    return len(x) - len(np.unique(total))


def _all_differ(cells: pa.ChunkedArray) -> bool:
    # In a short table whole numbers often differ by chance.
    return len(cells) >= 10 and pc.count_distinct(cells).as_py() == len(cells)


def _has_few(cells: pa.ChunkedArray) -> bool:
    return int(pc.count_distinct(cells).as_py()) <= min(_FEW, len(cells) // 2)


def _wild(column: Number, values: Float[np.ndarray, " n"]) -> int | None:
    """The row of a huge value, or of one far from the mean; None without such."""
    row = int(np.abs(values).argmax())
    if not column.scaled:
        return row if abs(values[row]) >= _HUGE else None
    # In a short column one huge value is few deviations away, but all others become one point.
    squeezed = bool(np.median(np.abs(values - np.median(values))) < _POINT)
    huge = column.scale >= _HUGE / 2 and squeezed
    return row if huge or abs(values[row]) >= _FAR else None
