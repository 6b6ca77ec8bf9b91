"""What the last layer of a network sees, and the outputs that it makes of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from evgp._errors import NetworkError
from evgp._linalg import BLOCK
from evgp.nets import NTKLinear, outputs_of, steady_outputs
from evgp.training.checks import inputs
from evgp.training.fresh import fit_for_training
from evgp.training.roads import sample_bytes

Last = nn.Linear | NTKLinear
_ROOM = 2**28  # bytes that the activations of a block may take


@dataclass(frozen=True, eq=False)
class Penultimate:
    r"""Inputs $h$ of the last layer as its parameters see them: the outputs are $h W^\top$.

    A bias is one more column of both. So $\partial f_j / \partial W_j = h$, in the NTK
    parametrisation too, where $h$ carries the scale of the layer.
    """

    h: Float[Tensor, "n p"]
    weight: Float[Tensor, "o p"]
    biased: bool

    def outputs(self, keep: Float[Tensor, " p"] | None = None) -> Float[Tensor, "n o"]:
        """The network's outputs, with inputs of its last layer multiplied by `keep`."""
        weight = self.weight if keep is None else self.weight * keep
        return self.h @ weight.T


def penultimate(module: nn.Module, x: Shaped[Tensor, " n *d"]) -> Penultimate:
    """The last layer of a network at these points, in float64.

    O(n p) memory: points go through the network in blocks.

    >>> seen = penultimate(nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2)), torch.eye(3))
    >>> seen.h.shape, seen.outputs().shape
    (torch.Size([3, 6]), torch.Size([3, 2]))
    """
    points = _checked(module, x)
    last = _last_layer(module, points[:2])
    scale, bias = _scales(last)
    rows = _rows(module, points)
    parts: list[Tensor] = []
    with _heard([last], parts), torch.no_grad():
        for block in torch.split(points, rows):
            module(block)
            parts[-1] = _with_ones(parts[-1].double() * scale, bias)
        weight = last.weight.double()
        if bias:
            weight = torch.cat([weight, last.bias.double()[:, None]], dim=1)
    seen = Penultimate(torch.cat(parts), weight, bool(bias))
    if not bool(torch.isfinite(seen.h).all() & torch.isfinite(seen.weight).all()):
        raise NetworkError(
            "expected finite inputs of the last layer, got NaN or inf; standardise the pool, or "
            "check the network"
        )
    return seen


def outputs(module: nn.Module, x: Shaped[Tensor, " n *d"]) -> Float[Tensor, "n o"]:
    """The outputs of any network, in blocks and in float64.

    >>> outputs(nn.Linear(3, 2), torch.eye(3)).shape
    torch.Size([3, 2])
    """
    points = _checked(module, x)
    with torch.no_grad():
        blocks = torch.split(points, _rows(module, points))
        return torch.cat([outputs_of(module, block).double() for block in blocks])


def _checked(module: nn.Module, x: Tensor) -> Tensor:
    fit_for_training(module)
    points = inputs(x, next(module.parameters()).dtype, module)
    steady_outputs(module, points[:2])
    return points


def _rows(module: nn.Module, points: Tensor) -> int:
    return max(1, min(BLOCK, _ROOM // max(1, sample_bytes(module, points[:4]))))


def _last_layer(module: nn.Module, x: Tensor) -> Last:
    """The layer whose outputs are the network's."""
    linear = [part for part in module.modules() if isinstance(part, Last)]
    # What makes the weights of a linear layer (a weight norm) is called within it.
    within = {inner for part in linear for inner in part.modules() if inner is not part}
    owners = [
        part
        for part in module.modules()
        if part not in within and (part in linear or [*part.parameters(recurse=False)])
    ]
    seen: list[Tensor] = []
    called: list[nn.Module] = []
    with _heard(owners, seen, called), torch.no_grad():
        out = outputs_of(module, x)
        last = called[-1] if called else None
        if isinstance(last, Last) and called.count(last) == 1 and seen[-1].ndim == 2:
            scale, bias = _scales(last)
            made = seen[-1] @ last.weight.T * scale
            if last.bias is not None:
                made = made + bias * last.bias
            near = 1e-4 * float(made.abs().max())
            if made.shape == out.shape and torch.allclose(made, out, rtol=1e-3, atol=near):
                return last
    raise NetworkError(
        "expected a network whose last layer with parameters is linear (torch.nn.Linear, or the "
        f"Dense of evgp.mlp) and gives its outputs, got {type(last).__name__} last, or something "
        "that changes what it gives; end the network with a linear layer that gives the logits"
    )


def _scales(last: Last) -> tuple[float, float]:
    """What the layer multiplies its inputs by, and the input that its bias sees (0 without)."""
    if isinstance(last, NTKLinear):
        return last.w_std / last.weight.shape[1] ** 0.5, last.b_std
    return 1.0, 0.0 if last.bias is None else 1.0


def _with_ones(h: Tensor, bias: float) -> Tensor:
    return torch.cat([h, h.new_full((len(h), 1), bias)], dim=1) if bias else h


@contextmanager
def _heard(
    layers: list[Any], seen: list[Tensor], called: list[nn.Module] | None = None
) -> Iterator[None]:
    """Write down what goes into these layers, and which they are."""

    def hear(layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        seen.append(args[0] if args else next(iter(kwargs.values())))
        if called is not None:
            called.append(layer)

    handles = [layer.register_forward_pre_hook(hear, with_kwargs=True) for layer in layers]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
