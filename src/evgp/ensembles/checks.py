"""Inputs, targets and settings, checked before the first step."""

from math import isfinite

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from evgp._errors import EvgpError
from evgp._linalg import shared
from evgp._typing import Array
from evgp.ensembles.losses import CrossEntropy, Loss, SquaredError
from evgp.nets import looks_up

LOSSES = ("auto", "mse", "cross_entropy")
OPTIMISERS = ("gd", "sgd", "adam")


class TrainingError(EvgpError, ValueError):
    """Members cannot be trained on this, or have diverged."""


def inputs(x: Array, dtype: torch.dtype, module: nn.Module) -> Tensor:
    """Samples as a tensor; whole numbers stay whole where the network looks them up."""
    points = raw("x", x)
    if points.ndim < 2 or len(points) == 0:
        raise TrainingError(
            f"expected x of shape (points, features ...), at least one point; got "
            f"{tuple(points.shape)}"
        )
    if looks_up(module):
        return points.long()
    points = points.to(dtype)
    _finite("x", points)
    return points


def targets(y: Array, n: int, loss: str, dtype: torch.dtype) -> tuple[Tensor, Loss]:
    """Targets n x o with squared error, or n labels with cross-entropy."""
    if loss not in LOSSES:
        raise TrainingError(f"expected loss among {', '.join(LOSSES)}; got {loss!r}")
    given = raw("y", y)
    if given.ndim not in (1, 2) or len(given) != n:
        raise TrainingError(
            f"expected one target for each of {n} points, got y of shape {tuple(given.shape)}; "
            "give n numbers, n x outputs, or n labels"
        )
    whole = not given.is_floating_point()
    if loss == "mse" or (loss == "auto" and not whole):
        values = given.to(dtype)
        _finite("y", values)
        return (values[:, None] if values.ndim == 1 else values), SquaredError()
    if not whole or given.ndim != 1:
        kind = str(given.dtype).removeprefix("torch.")
        raise TrainingError(
            f"expected labels as {n} whole numbers for cross_entropy, got {kind} of shape "
            f"{tuple(given.shape)}; convert them, or use loss='mse'"
        )
    return given.long(), CrossEntropy()


def outputs_match(outputs: Float[Tensor, "n o"], y: Shaped[Tensor, " l ..."], loss: Loss) -> None:
    """Does the network have as many outputs as the targets ask for?"""
    have = outputs.shape[1]
    if isinstance(loss, SquaredError):
        if y.shape[1] != have:
            raise TrainingError(
                f"expected a network with {y.shape[1]} outputs, as y has columns; got {have}; set "
                "outputs= of the network, or give labels as whole numbers"
            )
        return
    low, high = int(y.min()), int(y.max())
    if low < 0 or high >= have or have < 2:
        raise TrainingError(
            f"expected labels from 0 to outputs - 1, got {low} to {high} for a network with {have} "
            f"outputs; set outputs={max(high + 1, 2)}, or use loss='mse' to fit numbers"
        )


def settings(
    members: object,
    optimiser: str,
    lr: float,
    steps: object,
    batch: object,
    *,
    seed: object,
    **others: float | None,
) -> None:
    """Numbers that make sense."""
    if optimiser not in OPTIMISERS:
        raise TrainingError(f"expected optimiser among {', '.join(OPTIMISERS)}; got {optimiser!r}")
    whole = {"members": (members, 1), "steps": (steps, 0), "batch": (batch, 1), "seed": (seed, 0)}
    for name, (count, least) in whole.items():
        if count is None and name == "batch":
            continue
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < least:
            raise TrainingError(f"expected {name} >= {least}, a whole number; got {count!r}")
    if not (isfinite(lr) and lr > 0):
        raise TrainingError(f"expected lr > 0, got {lr}")
    for name, value in others.items():
        if value is not None and not (isfinite(value) and value >= 0):
            raise TrainingError(f"expected {name} >= 0, got {value}")
    if others.get("clip") == 0:
        raise TrainingError("expected clip > 0, got 0; leave it out to clip nothing")
    if others.get("memory") == 0:
        raise TrainingError("expected memory in bytes, at least 1; got 0")
    if optimiser == "gd" and batch is not None:
        raise TrainingError(
            f"expected no batch with optimiser='gd', which takes all points at each step; got "
            f"{batch}; use optimiser='sgd'"
        )
    if optimiser == "adam" and others.get("momentum"):
        raise TrainingError(
            f"expected no momentum with optimiser='adam', which has its own; got "
            f"{others['momentum']}"
        )


class Diverged(TrainingError):
    """A loss is no number any more, or far beyond where it began; `lr` was too large a step."""

    def __init__(self, member: int, step: int, lr: float) -> None:
        super().__init__(
            "expected a loss that falls, got inf, NaN or a thousand times the first one for member "
            f"{member} at step {step}; lower lr from {lr:g}, to {lr / 10:g} for instance, or set "
            "clip"
        )
        self.lr = lr
        self._made_of = (member, step, lr)

    def __reduce__(self) -> tuple[type["Diverged"], tuple[int, int, float]]:
        return Diverged, self._made_of  # errors travel between processes


def raw(name: str, value: Array) -> Tensor:
    """A tensor of what was given, as it is."""
    try:
        made = value.detach().cpu() if isinstance(value, Tensor) else shared(np.asarray(value))
    except (TypeError, ValueError) as error:
        raise TrainingError(
            f"expected numbers in {name}, got {type(value).__name__} of other things; encode them"
        ) from error
    if made.is_complex():
        raise TrainingError(f"expected real numbers in {name}, got complex ones; split them up")
    return made.clone() if made.is_inference() else made  # which has no part in gradients


def _finite(name: str, value: Tensor) -> None:
    if not bool(torch.isfinite(value).all()):
        raise TrainingError(f"expected finite numbers in {name}, got NaN or inf; mend or drop them")
