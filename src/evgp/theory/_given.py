"""Points and numbers as they were given, each refused in a sentence where it cannot be used."""

from math import inf

import torch
from jaxtyping import Float
from torch import Tensor

from evgp._errors import PoolError
from evgp._linalg import as_tensor
from evgp._typing import Array

# Eigenvalues are exact to about this share of the largest, times the number of points.
_ROUNDING = 2.3e-16


def points(x: Array, name: str, columns: int | None = None) -> Float[Tensor, "n d"]:
    """Finite rows of numbers, with so many columns."""
    made = as_tensor(x).double()
    if made.ndim != 2 or 0 in made.shape:
        raise PoolError(
            f"expected {name} of shape (rows, columns) with one of each at least, got "
            f"{tuple(made.shape)}; reshape it, or give more points"
        )
    if columns is not None and made.shape[1] != columns:
        raise PoolError(
            f"expected {name} with {columns} columns, as x; got {made.shape[1]}; give both the same"
        )
    if not bool(torch.isfinite(made).all()):
        raise PoolError(f"expected finite numbers in {name}, got NaN or inf; mend or drop them")
    return made


def at_least_zero(value: float, name: str) -> float:
    """A finite number that is not negative."""
    if not 0 <= value < inf:
        raise PoolError(f"expected a {name} that is finite and not negative, got {value}")
    return float(value)


def least_eigenvalue(theta: Float[Tensor, "n n"]) -> float:
    """Above 0 by more than rounding."""
    values = torch.linalg.eigvalsh(theta)
    if float(values[0]) <= len(values) * _ROUNDING * float(values[-1]):
        raise PoolError(
            "expected labelled points that differ, got a singular kernel matrix; leave copies out"
        )
    return float(values[0])
