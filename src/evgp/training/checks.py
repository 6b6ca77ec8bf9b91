"""Inputs, targets and settings, checked before the first step."""

from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from evgp._checks import BYTES, finite, integer, number, numbers, one_of, seed_of, shown
from evgp._typing import Array
from evgp.errors import BadArgument, EvgpError
from evgp.nets import looks_up
from evgp.training.optimisers import CrossEntropy, Loss, SquaredError

LOSSES = ("auto", "mse", "cross_entropy")
OPTIMISERS = ("gd", "sgd", "adam")
_MANY = 1_000_000  # members
STEPS = 10**12
_FLOAT32 = 1e30  # squares of larger numbers overflow in float32


class TrainingError(EvgpError, ValueError):
    """Networks cannot be trained on this data, or training diverged."""


def inputs(x: Array, dtype: torch.dtype, module: nn.Module) -> Tensor:
    """Samples as a tensor; integers stay integers if the network looks them up."""
    points = raw("x", x)
    if points.ndim < 2 or len(points) == 0:
        raise BadArgument.of(TrainingError)(
            "x", "of shape (points, features ...), at least one point", str(tuple(points.shape))
        )
    if looks_up(module):
        return points.long()
    samples = points.to(dtype)
    _finite("x", points, samples)
    return samples


def targets(y: Array, n: int, loss: str, dtype: torch.dtype) -> tuple[Tensor, Loss]:
    """Targets n x o with squared error, or n labels with cross-entropy."""
    one_of(loss, "loss", LOSSES, error=TrainingError)
    labels = raw("y", y)
    if labels.ndim not in (1, 2) or len(labels) != n:
        raise TrainingError(
            f"expected one target for each of {n} points, got y of shape {tuple(labels.shape)}; "
            "give n numbers, n x outputs, or n labels"
        )
    whole = not labels.is_floating_point()
    if loss == "mse" or (loss == "auto" and not whole):
        values = labels.to(dtype)
        _finite("y", labels, values)
        return (values[:, None] if values.ndim == 1 else values), SquaredError()
    if not whole or labels.ndim != 1:
        kind = str(labels.dtype).removeprefix("torch.")
        raise TrainingError(
            f"expected labels as {n} integers for cross_entropy, got {kind} of shape "
            f"{tuple(labels.shape)}; convert them, or use loss='mse'"
        )
    return labels.long(), CrossEntropy()


def outputs_match(outputs: Float[Tensor, "n o"], y: Shaped[Tensor, " l ..."], loss: Loss) -> None:
    """Check that the network has as many outputs as the targets need."""
    have = outputs.shape[1]
    if isinstance(loss, SquaredError):
        if y.shape[1] != have:
            raise TrainingError(
                f"expected a network with {y.shape[1]} outputs, one per column of y; got {have}; "
                "set outputs= of the network, or pass labels as integers"
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
    optimiser: object,
    lr: object,
    steps: object,
    batch: object,
    *,
    seed: object,
    **others: object,
) -> None:
    """Check the settings of training."""
    one_of(optimiser, "optimiser", OPTIMISERS, error=TrainingError)
    integer(members, "members", 1, _MANY, error=TrainingError)
    integer(steps, "steps", 0, STEPS, error=TrainingError)
    seed_of(seed, error=TrainingError)
    number(lr, "lr", 0, _FLOAT32, above=True, error=TrainingError)
    if batch is not None:
        integer(batch, "batch", 1, error=TrainingError)
    if others.get("memory") is not None:
        integer(others["memory"], "memory", 1, BYTES, why="in bytes", error=TrainingError)
    if others.get("clip") is not None:
        why = "or None to clip nothing"
        number(others["clip"], "clip", 0, _FLOAT32, above=True, why=why, error=TrainingError)
    number(others["momentum"], "momentum", 0, _FLOAT32, error=TrainingError)
    number(others["weight_decay"], "weight_decay", 0, _FLOAT32, error=TrainingError)
    if optimiser == "gd" and batch is not None:
        raise TrainingError(
            f"expected no batch with optimiser='gd', which uses all points in each step; got "
            f"{batch}; use optimiser='sgd'"
        )
    if optimiser == "adam" and others.get("momentum"):
        raise TrainingError(
            f"expected no momentum with optimiser='adam', which has its own; got "
            f"{others['momentum']}"
        )


def stop_of(stop: Any) -> Any:
    """When a member is done: at a loss, by a function, or after all steps (None)."""
    if stop is None or (callable(stop) and not isinstance(stop, type | nn.Module)):
        return stop
    why = "a loss, or a function of outputs and y"
    return number(stop, "stop", 0, _FLOAT32, why=why, error=TrainingError)


def dtype_of(dtype: object) -> torch.dtype:
    """The type that networks compute in, checked."""
    if not isinstance(dtype, torch.dtype) or dtype not in (torch.float32, torch.float64):
        raise BadArgument.of(TrainingError)("dtype", "torch.float32 or torch.float64", shown(dtype))
    return dtype


class Diverged(TrainingError):
    """A loss became NaN, infinite or far larger than at the start: `lr` was too large."""

    def __init__(self, member: int, step: int, lr: float) -> None:
        super().__init__(
            "expected a loss that falls, got inf, NaN or a thousand times the first one for member "
            f"{member} at step {step}; lower lr from {lr:g}, to {lr / 10:g} for instance, or set "
            "clip"
        )
        self.lr = lr
        self._arguments = (member, step, lr)

    def __reduce__(self) -> tuple[type["Diverged"], tuple[int, int, float]]:
        return Diverged, self._arguments  # errors travel between processes


def raw(name: str, value: Array) -> Tensor:
    """The value as a tensor, in its own type."""
    tensor = numbers(value, name, error=TrainingError)
    return tensor.clone() if tensor.is_inference() else tensor  # autograd needs a normal tensor


def _finite(name: str, original: Tensor, value: Tensor) -> None:
    finite(original, name, error=TrainingError)
    if not bool(torch.isfinite(value).all()):
        kind, largest = str(value.dtype).removeprefix("torch."), float(original.abs().max())
        raise TrainingError(
            f"expected numbers in {name} that {kind} can hold, got {largest:g}; "
            "scale them, or train with dtype=torch.float64"
        )
