"""Points and numbers as they were given, each refused in a sentence where it cannot be used."""

import torch
from jaxtyping import Float
from torch import Tensor

from evgp._checks import instance
from evgp._checks import points as checked
from evgp._errors import NetworkError, PoolError
from evgp._typing import Array
from evgp.nets import Network

# Eigenvalues are exact to about this share of the largest, times the number of points.
_ROUNDING = 2.3e-16


def points(x: Array, name: str, columns: int | None = None) -> Float[Tensor, "n d"]:
    """Finite rows of numbers, with so many columns."""
    made = checked(x, name)
    if made.ndim != 2:
        raise PoolError(f"expected {name} of shape (rows, columns), got {tuple(made.shape)}")
    if columns is not None and made.shape[1] != columns:
        raise PoolError(
            f"expected {name} with {columns} columns, as x; got {made.shape[1]}; give both the same"
        )
    return made


def network_of(network: object) -> Network:
    """A network with exact kernels."""
    return instance(network, "a network", Network, "evgp.mlp()", error=NetworkError)


def least_eigenvalue(theta: Float[Tensor, "n n"]) -> float:
    """Above 0 by more than rounding."""
    values = torch.linalg.eigvalsh(theta)
    if float(values[0]) <= len(values) * _ROUNDING * float(values[-1]):
        raise PoolError(
            "expected labelled points that differ, got a singular kernel matrix; leave copies out"
        )
    return float(values[0])
