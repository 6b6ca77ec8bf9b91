"""What architectures are ranked by: networks, points and labels that can be used."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from evgp._checks import finite, flag, integer, noise_of, number, numbers, seed_of, shown
from evgp._checks import points as checked_points
from evgp._errors import DataWarning, MemoryPlanError, PoolError
from evgp._linalg import standardised
from evgp._machine import available_memory
from evgp._typing import Array
from evgp.datasets import ReadOptions, from_array, is_table, read_pool
from evgp.nets import Network

_LEAST = 4  # labels: fewer cannot be split into folds that differ


def named_networks(networks: Mapping[str, Any] | Sequence[Any]) -> dict[str, Network]:
    """Networks by name; a list is named by what its networks are."""
    if isinstance(networks, Network) or not isinstance(networks, Mapping | Sequence):
        raise PoolError(
            "expected a list of networks, or networks by name, such as evgp.candidates(); got "
            f"{type(networks).__name__}"
        )
    named = (
        dict(networks)
        if isinstance(networks, Mapping)
        else {repr(network): network for network in networks}
    )
    if not named:
        raise PoolError("expected architectures to choose from, got none")
    for name, network in named.items():
        if not isinstance(network, Network):
            raise PoolError(
                "expected architectures with exact kernels, such as evgp.mlp(...), got "
                f"{type(network).__name__} for {name!r}"
            )
    return named


def check_folds(n: int, folds: int, kappa: float, noise: float, seed: int) -> None:
    """Refuse settings that mean nothing, and more labels than fit in memory."""
    number(kappa, "kappa", 0, 1, above=True, below=True, why="the share left out")
    integer(folds, "folds", 2, 1_000_000)
    noise_of(noise)
    seed_of(seed)
    out = max(1, round(kappa * n))
    if n < _LEAST or out > n - 2:
        raise PoolError(
            f"expected at least {_LEAST} labels, and two that stay in each fold; got {n} labels of "
            f"which {out} are left out (kappa={kappa})"
        )
    need, free = 8 * 8 * n**2, available_memory()
    if need > free:
        fits = int((free / 64) ** 0.5)
        raise MemoryPlanError(
            f"expected at most {fits:,} labels in the {free / 1e9:.1f} GB that are free, got "
            f"{n:,}; a random part of them ranks networks as well"
        )


def checked_inputs(
    x: Array, y: Array | Sequence[str], standardise: bool
) -> tuple[Float[Tensor, " n *d"], Float[Tensor, "n o"]]:
    """Points and targets as they are compared: numbers, or one-hot classes around their mean."""
    if is_table(x):
        x = read_pool(x, standardise=standardise).in_memory
        standardise = False
    points = checked_points(x, "x")
    flag(standardise, "standardise")
    codes = _classes(y)
    if codes is None:
        given = numbers(y, "y").double()
        if given.ndim not in (1, 2) or given.numel() == 0:
            raise PoolError(f"expected y as n labels, or n x outputs; got {tuple(given.shape)}")
        targets = finite(given if given.ndim > 1 else given[:, None], "y")
    else:
        targets = torch.nn.functional.one_hot(codes).double()
        targets = targets - targets.mean(0)
    if len(points) != len(targets):
        raise PoolError(
            f"expected as many labels as points, got {len(targets)} labels for {len(points)} points"
        )
    if len(points) >= _LEAST and bool((targets == targets[0]).all()):
        raise PoolError("expected labels that differ, got one value only; label more points")
    if not standardise or len(points) < _LEAST:
        return points, targets
    scaled = from_array(points, ReadOptions(), "x").in_memory
    return scaled, targets if codes is not None else standardised(targets)


def _classes(y: Array | Sequence[str]) -> Int[Tensor, " n"] | None:
    """The codes of classes, or None where labels are numbers."""
    try:
        plain = y.detach().cpu().numpy() if isinstance(y, Tensor) else np.asarray(y)
    except Exception as error:  # somebody else's object may raise anything
        raise PoolError(f"expected y as a list of labels, got {shown(y)}") from error
    if plain.dtype.kind == "O" and not all(isinstance(one, str | int) for one in plain.flat):
        raise PoolError("expected y as numbers, or as classes by words or integers; got others")
    if plain.ndim != 1 or plain.dtype.kind in "fc" or not len(plain):
        return None
    words = plain if plain.dtype.kind in "iub" else np.array([str(one) for one in plain])
    names, codes = np.unique(words, return_inverse=True)
    if plain.dtype.kind in "iu" and len(names) > max(20, len(plain) // 4):
        warnings.warn(
            f"took {len(names)} different whole numbers as classes; give floats where they are "
            "numbers to predict",
            DataWarning,
            stacklevel=3,
        )
    return torch.from_numpy(codes.reshape(-1).astype(np.int64))
