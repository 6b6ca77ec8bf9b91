"""Shared by strategies that train networks: checks of labels, inputs of the last layer."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Generator, Tensor, nn

from evgp._checks import instance
from evgp._linalg import BLOCK
from evgp.errors import NetworkError, PoolError
from evgp.nets import NTKLinear, deterministic_outputs, outputs_of
from evgp.pool import Pool
from evgp.strategies.strategy import labels
from evgp.training import Recipe
from evgp.training.checks import inputs
from evgp.training.gradients import sample_bytes
from evgp.training.members import check_trainable

Last = nn.Linear | NTKLinear
_ROOM = 2**28  # bytes for the activations of a block


@dataclass(frozen=True, eq=False)
class Penultimate:
    r"""Inputs $h$ of the last layer, scaled such that the outputs are $h W^\top$.

    A bias is one more column of both. So $\partial f_j / \partial W_j = h$, in the NTK
    parametrisation too, where $h$ carries the scale of the layer.
    """

    h: Float[Tensor, "n p"]
    weight: Float[Tensor, "o p"]
    biased: bool

    def outputs(self, keep: Float[Tensor, " p"] | None = None) -> Float[Tensor, "n o"]:
        """The network's outputs, with the inputs of its last layer multiplied by `keep`."""
        weight = self.weight if keep is None else self.weight * keep
        return self.h @ weight.T


def penultimate(module: nn.Module, x: Shaped[Tensor, " n *d"]) -> Penultimate:
    """The inputs and weights of a network's last layer at these points, in float64.

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
    check_trainable(module)
    points = inputs(x, next(module.parameters()).dtype, module)
    deterministic_outputs(module, points[:2])
    return points


def _rows(module: nn.Module, points: Tensor) -> int:
    return max(1, min(BLOCK, _ROOM // max(1, sample_bytes(module, points[:4]))))


def _last_layer(module: nn.Module, x: Tensor) -> Last:
    """The layer whose outputs are the network's."""
    linear = [part for part in module.modules() if isinstance(part, Last)]
    # Modules that compute the weights of a linear layer (a weight norm) are called within it.
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
            result = seen[-1] @ last.weight.T * scale
            if last.bias is not None:
                result = result + bias * last.bias
            near = 1e-4 * float(result.abs().max())
            if result.shape == out.shape and torch.allclose(result, out, rtol=1e-3, atol=near):
                return last
    raise NetworkError(
        "expected a network whose last layer with parameters is linear (torch.nn.Linear, or the "
        f"Dense of evgp.mlp) and gives the outputs, got {type(last).__name__} last, or something "
        "that changes its result; end the network with a linear layer that gives the logits"
    )


def _scales(last: Last) -> tuple[float, float]:
    """The factor of the layer's inputs, and the input that its bias sees (0 without a bias)."""
    if isinstance(last, NTKLinear):
        return last.w_std / last.weight.shape[1] ** 0.5, last.b_std
    return 1.0, 0.0 if last.bias is None else 1.0


def _with_ones(h: Tensor, bias: float) -> Tensor:
    return torch.cat([h, h.new_full((len(h), 1), bias)], dim=1) if bias else h


@contextmanager
def _heard(
    layers: list[Any], seen: list[Tensor], called: list[nn.Module] | None = None
) -> Iterator[None]:
    """Record the inputs of these layers, and the order of their calls."""

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


def seed_from(generator: Generator) -> int:
    """A seed for networks, drawn from the generator."""
    return int(torch.randint(2**31, (), generator=generator))


def labels_of(pool: Pool, classes: int, who: str) -> Shaped[Tensor, " l ..."] | None:
    """The labels, checked for so many classes (0: numbers), or None before there are any.

    >>> labels_of(Pool(torch.zeros(4, 1)), 3, "BADGE") is None
    True
    """
    y = labels(pool, who)
    if y is None:
        return None
    kind = str(y.dtype).removeprefix("torch.")
    if not classes:
        if not y.is_floating_point():
            raise PoolError(
                f"expected floats as labels for {who} without classes, got {kind}; set classes=, "
                "or pass y.float()"
            )
        return y
    if y.is_floating_point() or y.is_complex() or y.ndim != 1:
        raise PoolError(
            f"expected one integer as the label of each point for {who} with {classes} "
            f"classes, got {kind} of shape {tuple(y.shape)}; pass y.flatten().long()"
        )
    low, high = int(y.min()), int(y.max())
    if low < 0 or high >= classes:
        more = f"set classes={high + 1}, or " if low >= 0 else ""
        raise PoolError(
            f"expected labels from 0 to {classes - 1} for {who} with {classes} classes, got "
            f"{low} to {high}; {more}number the labels from 0"
        )
    return y


def fits(recipe: Recipe, pool: Pool, classes: int, who: str) -> None:
    """Check, before a long training, that the network has one output per class."""
    count = outputs(recipe.untrained(tuple(pool.x.shape[1:])), pool.x[:2]).shape[1]
    if classes and count != classes:
        raise NetworkError(
            f"expected a network with {classes} outputs for {who}, one per class; got {count}; set "
            f"outputs={classes} of the network, or classes= of {who}"
        )


def accurate(
    share: float, outputs: Float[Tensor, "e n o"], y: Int[Tensor, " n"]
) -> Bool[Tensor, " e"]:
    """Which members classify at least this share of their training points correctly.

    >>> accurate(0.99, torch.eye(2).expand(1, 2, 2), torch.tensor([0, 1])).tolist()
    [True]
    """
    return (outputs.argmax(-1) == y).double().mean(-1) >= share


def recipe_of(recipe: object) -> None:
    """Check that this is a recipe."""
    instance(recipe, "a recipe", Recipe, "evgp.training.Recipe(evgp.mlp())")
