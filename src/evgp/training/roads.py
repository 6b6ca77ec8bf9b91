"""Outputs and gradients of many members: in batched products, by vmap, or one by one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn
from torch.func import functional_call, vmap

from evgp._errors import NetworkError
from evgp.nets import outputs_of, saved_bytes
from evgp.training.batched import Batched
from evgp.training.losses import Loss
from evgp.training.stack import Stack


@runtime_checkable
class Road(Protocol):
    """A way to run many members at once."""

    def outputs(self, stack: Stack, x: Shaped[Tensor, " n *d"]) -> Float[Tensor, "e n o"]:
        """The outputs of all members."""
        ...

    def gradient_(
        self, into: Stack, stack: Stack, x: Shaped[Tensor, " n *d"], y: Tensor, loss: Loss
    ) -> tuple[Float[Tensor, " e"], Float[Tensor, "e n o"]]:
        """Overwrite `into` with the gradients; the losses and outputs before any step."""
        ...


@dataclass(frozen=True, eq=False)
class ByVmap:
    """Any torch module that `torch.func.vmap` understands."""

    module: nn.Module

    def outputs(self, stack: Stack, x: Shaped[Tensor, " n *d"]) -> Float[Tensor, "e n o"]:
        return self._call(stack.everything(), x)

    def gradient_(
        self, into: Stack, stack: Stack, x: Shaped[Tensor, " n *d"], y: Tensor, loss: Loss
    ) -> tuple[Float[Tensor, " e"], Float[Tensor, "e n o"]]:
        def call(leaves: dict[str, Tensor]) -> Tensor:
            return self._call({**stack.fixed, **leaves}, x)

        return _gradient_(into.views, stack.views, call, y, loss)

    def _call(self, values: dict[str, Tensor], x: Tensor) -> Tensor:
        def one(some: dict[str, Tensor]) -> Tensor:
            return functional_call(self.module, some, (x,))

        return vmap(one)(values)


@dataclass(frozen=True, eq=False)
class Singly:
    """Any torch module, one member after another."""

    module: nn.Module

    def outputs(self, stack: Stack, x: Shaped[Tensor, " n *d"]) -> Float[Tensor, "e n o"]:
        rows = range(stack.members)
        values = stack.everything()
        call = [{name: some[row] for name, some in values.items()} for row in rows]
        return torch.stack([functional_call(self.module, one, (x,)) for one in call])

    def gradient_(
        self, into: Stack, stack: Stack, x: Shaped[Tensor, " n *d"], y: Tensor, loss: Loss
    ) -> tuple[Float[Tensor, " e"], Float[Tensor, "e n o"]]:
        found = []
        for row in range(stack.members):
            fixed = {name: value[row] for name, value in stack.fixed.items()}

            def call(leaves: dict[str, Tensor], fixed: dict[str, Tensor] = fixed) -> Tensor:
                return functional_call(self.module, {**fixed, **leaves}, (x,))[None]

            own, gradient = (
                {name: view[row] for name, view in some.views.items()} for some in (stack, into)
            )
            found.append(_gradient_(gradient, own, call, y, loss))
        values, outputs = zip(*found, strict=True)
        return torch.cat(values), torch.cat(outputs)


def road_for(module: nn.Module, x: Shaped[Tensor, " n *d"]) -> Road:
    """The quickest road for this module.

    Batched products for plain MLPs. Convolutions go one by one: on a processor nothing is gained by
    stacking them, and less memory is used. So does what vmap refuses.

    >>> type(road_for(nn.Sequential(nn.Linear(3, 2), nn.ReLU()), torch.zeros(4, 3))).__name__
    'Batched'
    """
    plain = Batched.of(module, x.ndim)
    if plain is not None:
        return plain
    if any(isinstance(part, nn.modules.conv._ConvNd) for part in module.modules()):
        return Singly(module)
    mapped, stack = ByVmap(module), Stack.gathered(lambda _: module, 2, module)
    few = x[:3]
    with torch.no_grad():
        alone = outputs_of(module, few)
        try:
            together = mapped.outputs(stack, few)
        except RuntimeError:  # what vmap cannot follow, such as a branch on values
            return Singly(module)
    return mapped if torch.allclose(together[1], alone, rtol=1e-3, atol=1e-5) else Singly(module)


def sample_bytes(module: nn.Module, x: Shaped[Tensor, " n *d"]) -> int:
    """Bytes that a forward pass keeps for the backward one, for each further sample."""
    return max(x[0].numel() * 8, saved_bytes(lambda some: outputs_of(module, some), x))


def _gradient_(
    into: dict[str, Tensor],
    values: dict[str, Tensor],
    call: Callable[[dict[str, Tensor]], Tensor],
    y: Tensor,
    loss: Loss,
) -> tuple[Tensor, Tensor]:
    with torch.enable_grad():
        leaves = {name: value.detach().requires_grad_() for name, value in values.items()}
        outputs = call(leaves)
    value, slope = loss.both(outputs.detach(), y)
    if not outputs.requires_grad:
        raise NetworkError("expected outputs that depend on the parameters, got none that do")
    found = torch.autograd.grad(outputs, list(leaves.values()), slope, allow_unused=True)
    for name, gradient in zip(leaves, found, strict=True):
        if gradient is None:
            into[name].zero_()
        else:
            into[name].copy_(gradient)
    return value, outputs.detach()
