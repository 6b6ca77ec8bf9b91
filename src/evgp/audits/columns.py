"""The columns of an audit: scaled by the training rows, and what these say nothing about."""

import warnings
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from evgp._errors import DataWarning, PoolError
from evgp._linalg import CONSTANT
from evgp.datasets import ReadOptions, from_array

# Squares of what is larger would leave the range of float64.
_LARGEST = 1e150


def scaled(
    points: Float[Tensor, "n d"], others: dict[str, Float[Tensor, "m d"]]
) -> tuple[Float[Tensor, "n e"], dict[str, Float[Tensor, "m e"]]]:
    """Training rows, and others by their scale; without the columns that are constant in training.

    A column that varies in the others alone is a `DataWarning`: networks were never told what it
    does, and the audit does not see it.
    """
    if len(points) < 2:
        raise PoolError(
            "expected two training rows at least, to scale columns by; got 1: add rows, or scale "
            "them yourself with standardise=False"
        )
    data = from_array(points, ReadOptions(), "x_train")
    assert data.code is not None
    kept = torch.zeros(points.shape[1], dtype=torch.bool)
    kept[torch.from_numpy(data.code.kept)] = True
    for name, rows in others.items():
        moves = (~kept & varies(points, rows)).nonzero().squeeze(1).tolist()
        if moves:
            warnings.warn(unseen([str(one) for one in moves], name), DataWarning, stacklevel=3)
    return data.in_memory, {name: data.tensor_like(rows, name) for name, rows in others.items()}


def varies(points: Float[Tensor, "n d"], others: Float[Tensor, "m d"]) -> Bool[Tensor, " d"]:
    """Whether others have values that constant columns of the points have not, beyond rounding.

    >>> one = torch.ones(2, 2, dtype=torch.float64)
    >>> varies(one, torch.tensor([[1 + 1e-15, 2.0]], dtype=torch.float64))
    tensor([False,  True])
    """
    size = torch.maximum(points.abs().amax(0), others.abs().amax(0))
    return ((others - points[0]).abs() > CONSTANT * size).any(0)


def unseen(names: Sequence[str], where: str) -> str:
    """What to say of columns that only test rows or the pool tell apart.

    >>> unseen(["'age'"], "test")[:70]
    "column 'age' is constant in the training rows, varies in the test rows"
    """
    shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    one = len(names) == 1
    return (
        f"column{'' if one else 's'} {shown} {'is' if one else 'are'} constant in the training "
        f"rows, {'varies' if one else 'vary'} in the {where} rows: what networks do along "
        f"{'it' if one else 'them'} is not in these numbers; label rows in which "
        f"{'it differs' if one else 'they differ'}, or do not trust the audit there"
    )


def check_size(parts: dict[str, Float[Tensor, "n d"]]) -> None:
    """Refuse numbers whose squares are none."""
    for name, rows in parts.items():
        largest = float(rows.abs().max())
        if not largest < _LARGEST:
            raise PoolError(
                f"expected numbers below {_LARGEST:.0e} in {name}, on the scale of the training "
                f"rows; got {largest:.3g}: look for wild values there"
            )


def known_rows(points: Float[Tensor, "n d"], pool: Float[Tensor, "p d"]) -> Bool[np.ndarray, " p"]:
    """Which rows of the pool are training rows too, to the last digit.

    >>> x = torch.eye(3, dtype=torch.float64)
    >>> known_rows(x[:2], x)
    array([ True,  True, False])
    """
    # Adding zero makes -0.0 and 0.0 the same bytes.
    known = {row.tobytes() for row in points.numpy() + 0.0}
    return np.array([row.tobytes() in known for row in pool.numpy() + 0.0])
