"""Points and numbers as the caller passed them, checked."""

import torch
from jaxtyping import Float
from torch import Tensor

from evgp._checks import instance
from evgp._checks import points as checked
from evgp._typing import Array
from evgp.errors import BadArgument, NetworkError, PoolError
from evgp.nets import Network

# Eigenvalues are accurate to about this share of the largest, times the number of points.
_ROUNDING = 2.3e-16


def points(x: Array, name: str, columns: int | None = None) -> Float[Tensor, "n d"]:
    """Finite rows of numbers, with so many columns."""
    rows = checked(x, name)
    if rows.ndim != 2:
        raise BadArgument.of(PoolError)(name, "of shape (rows, columns)", str(tuple(rows.shape)))
    if columns is not None and rows.shape[1] != columns:
        raise BadArgument.of(PoolError)(
            name, f"with {columns} columns, as x", str(rows.shape[1]), "give both the same"
        )
    return rows


def network_of(network: object) -> Network:
    """A network with exact kernels, checked."""
    return instance(network, "a network", Network, "evgp.mlp()", error=NetworkError)


def least_eigenvalue(theta: Float[Tensor, "n n"]) -> float:
    """The smallest eigenvalue, checked to be above 0 by more than rounding."""
    values = torch.linalg.eigvalsh(theta)
    if float(values[0]) <= len(values) * _ROUNDING * float(values[-1]):
        raise PoolError(
            "expected labelled points that differ, got a singular kernel matrix; drop copies"
        )
    return float(values[0])
