"""What looks unlike it was meant: ids and labels among the features, copies, wild values."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Float

from evgp.datasets._columns import Number

_ID = re.compile(r"(^|[_\W])(id|key|index|idx|uuid|guid|row|unnamed: \d+)$", re.I)
_LABEL = re.compile(
    r"^(y|y_true|(.*_)?(label|target|class|outcome)(s|es)?|response|ground_?truth)$", re.I
)
_NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"
_HUGE = 1e15
_FAR = 30.0


def of_column(name: str, column: pa.ChunkedArray) -> list[str]:
    """Notes on a column that may be an id or the label."""
    found = []
    n = len(column)
    if pa.types.is_integer(column.type) and n >= 10 and pc.count_distinct(column).as_py() == n:
        found.append(
            f"column {name!r} looks like an id (another whole number in each row): if it is one, "
            f"use --id {name!r} or --drop {name!r}"
        )
    elif _ID.search(name):
        found.append(f"column {name!r} is named like an id: if it is one, use --drop {name!r}")
    if _LABEL.match(name):
        found.append(
            f"column {name!r} is named like the label: if it is, use --drop {name!r}, for a label "
            "must not steer what gets labelled"
        )
    return found


def of_values(name: str, values: Float[np.ndarray, " n"], column: Number) -> list[str]:
    """Notes on numbers that may be slips or codes for "missing"."""
    if np.abs(values).max() >= _HUGE:
        row = int(np.abs(values).argmax())
        return [
            f"column {name!r} holds huge values (row {row}: {values[row]:.3g}): are they meant?"
        ]
    far = np.abs(column.encode(values)[:, 0])
    if column.scaled and far.max() >= _FAR:
        row = int(far.argmax())
        return [
            f"column {name!r} has a value {far[row]:.0f} standard deviations from the mean "
            f"(row {row}: {values[row]:.3g}): is it meant?"
        ]
    return []


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
