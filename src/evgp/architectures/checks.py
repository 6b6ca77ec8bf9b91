"""What architectures are ranked by: networks, points and labels that can be used."""

import warnings
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from evgp._errors import DataWarning, MemoryPlanError, PoolError
from evgp._linalg import as_tensor, standardised
from evgp._memory import available_memory
from evgp._typing import Array
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
    if not (isfinite(kappa) and 0 < kappa < 1):
        raise PoolError(f"expected kappa between 0 and 1, the share left out; got {kappa}")
    if isinstance(folds, bool) or folds != int(folds) or folds < 2:
        raise PoolError(f"expected two folds at least, a whole number; got {folds}")
    if not (isfinite(noise) and noise >= 0):
        raise PoolError(f"expected noise >= 0, a share of the prior variance; got {noise}")
    if seed < 0:
        raise PoolError(f"expected a seed from 0, got {seed}")
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
    points = as_tensor(x).double()
    codes = _classes(y)
    if codes is None:
        given = y if isinstance(y, Tensor) else torch.from_numpy(np.asarray(y))
        targets = given.double() if given.ndim > 1 else given.double()[:, None]
    else:
        targets = torch.nn.functional.one_hot(codes).double()
        targets = targets - targets.mean(0)
    if len(points) != len(targets):
        raise PoolError(
            f"expected as many labels as points, got {len(targets)} labels for {len(points)} points"
        )
    for name, part in (("x", points), ("y", targets)):
        if not bool(torch.isfinite(part).all()):
            raise PoolError(f"expected finite numbers in {name}, got NaN or inf; mend or drop them")
    if len(points) >= _LEAST and bool((targets == targets[0]).all()):
        raise PoolError("expected labels that differ, got one value only; label more points")
    if not standardise or len(points) < _LEAST:
        return points, targets
    return standardised(points), targets if codes is not None else standardised(targets)


def _classes(y: Array | Sequence[str]) -> Int[Tensor, " n"] | None:
    """The codes of classes, or None where labels are numbers."""
    plain = y.detach().cpu().numpy() if isinstance(y, Tensor) else np.asarray(y)
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
