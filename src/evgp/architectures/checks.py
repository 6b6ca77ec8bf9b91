"""Checks of the networks, points and labels that architectures are ranked by."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from evgp._checks import finite, integer, noise_of, number, numbers, seed_of, shown
from evgp._checks import points as checked_points
from evgp._linalg import standardised
from evgp._machine import available_memory
from evgp._typing import Array
from evgp.datasets import ReadOptions, from_array, read_columns
from evgp.errors import BadArgument, DataWarning, MemoryPlanError, PoolError, size
from evgp.nets import Network

_MIN_LABELS = 4  # fewer cannot be split into folds that differ


def named_networks(networks: Mapping[str, Any] | Sequence[Any]) -> dict[str, Network]:
    """Networks by name; those of a list are called by their `repr`."""
    if isinstance(networks, Network) or not isinstance(networks, Mapping | Sequence):
        raise PoolError(
            "expected a list of networks, or networks by name, such as "
            f"evgp.architectures.candidates(); got {type(networks).__name__}"
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
    """Raise if settings make no sense, or if there are more labels than fit in memory."""
    number(kappa, "kappa", 0, 1, above=True, below=True, why="the share held out")
    integer(folds, "folds", 2, 1_000_000)
    noise_of(noise)
    seed_of(seed)
    out = max(1, round(kappa * n))
    if n < _MIN_LABELS or out > n - 2:
        raise PoolError(
            f"expected at least {_MIN_LABELS} labels, and at least two to train on in each fold; "
            f"got {n} labels, of which {out} are held out (kappa={kappa})"
        )
    need, free = 8 * 8 * n**2, available_memory()
    if need > free:
        fits = int((free / 64) ** 0.5)
        raise MemoryPlanError(
            f"{n:,} labels do not fit in the {size(free)} of free memory, which is enough "
            f"for {fits:,}; rank networks on a random part of them"
        )


def checked_inputs(
    x: Any, y: Array | Sequence[str], reading: ReadOptions
) -> tuple[Float[Tensor, " n *d"], Float[Tensor, "n o"]]:
    """Points, and targets: numbers, or centred one-hot classes."""
    data, scale = read_columns(x, reading), reading.scale
    points = checked_points(x if data is None else data.in_memory, "x")
    codes = _classes(y)
    if codes is None:
        values = numbers(y, "y").double()
        if values.ndim not in (1, 2) or values.numel() == 0:
            raise BadArgument.of(PoolError)(
                "y", "of shape (n,) or (n, outputs)", str(tuple(values.shape))
            )
        targets = finite(values if values.ndim > 1 else values[:, None], "y")
    else:
        targets = torch.nn.functional.one_hot(codes).double()
        targets = targets - targets.mean(0)
    if len(points) != len(targets):
        raise PoolError(
            f"expected as many labels as points, got {len(targets)} labels for {len(points)} points"
        )
    if len(points) >= _MIN_LABELS and bool((targets == targets[0]).all()):
        raise PoolError("all labels are equal; label more points")
    if scale is None or len(points) < _MIN_LABELS:
        return points, targets
    if data is None:
        points = from_array(points, ReadOptions(scale=scale), "x").in_memory
    return points, targets if codes is not None else standardised(targets)


def _classes(y: Array | Sequence[str]) -> Int[Tensor, " n"] | None:
    """The codes of classes, or None if labels are numbers."""
    try:
        plain = y.detach().cpu().numpy() if isinstance(y, Tensor) else np.asarray(y)
    except Exception as error:  # somebody else's object may raise anything
        raise BadArgument.of(PoolError)("y", "as a list of labels", shown(y)) from error
    if plain.dtype.kind == "O" and not all(isinstance(label, str | int) for label in plain.flat):
        raise BadArgument.of(PoolError)(
            "y", "as numbers, or as classes given by strings or integers", "other objects"
        )
    if plain.ndim != 1 or plain.dtype.kind in "fc" or not len(plain):
        return None
    words = plain if plain.dtype.kind in "iub" else np.array([str(label) for label in plain])
    names, codes = np.unique(words, return_inverse=True)
    if plain.dtype.kind in "iu" and len(names) > max(20, len(plain) // 4):
        warnings.warn(
            f"{len(names)} different integers in y were read as classes; pass floats if they are "
            "numbers to predict",
            DataWarning,
            stacklevel=3,
        )
    return torch.from_numpy(codes.reshape(-1).astype(np.int64))
