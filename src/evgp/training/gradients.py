"""Outputs and gradients of many members: in batched products, by vmap, or one by one."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn
from torch.func import functional_call, vmap

from evgp.errors import NetworkError
from evgp.nets import Activation, LeakyRelu, NTKLinear, outputs_of, saved_bytes
from evgp.training.members import Stack
from evgp.training.optimisers import Loss

_ELEMENTWISE = {
    nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.ELU, nn.SELU, nn.GELU, nn.SiLU, nn.Mish, nn.Softplus,
    nn.Sigmoid, nn.Tanh, nn.Identity,
}  # fmt: skip


@dataclass(frozen=True)
class Linear:
    r"""$z = s\,h W^\top + t\,b$, with the names of $W$ and $b$ in a stack."""

    weight: str
    bias: str | None
    scale: float = 1.0
    bias_scale: float = 1.0

    def forward(self, stack: Stack, h: Float[Tensor, "e n d"]) -> Float[Tensor, "e n o"]:
        weight = stack.views[self.weight].mT
        if self.bias is None:
            return torch.bmm(h, weight).mul_(self.scale)
        bias = stack.views[self.bias][:, None]
        return torch.baddbmm(bias, h, weight, beta=self.bias_scale, alpha=self.scale)

    def gradient_(
        self, into: Stack, h: Float[Tensor, "e n d"], slope: Float[Tensor, "e n o"]
    ) -> None:
        """Fill in the gradients, from the inputs and the slope after the layer."""
        into.views[self.weight].baddbmm_(slope.mT, h, beta=0, alpha=self.scale)
        if self.bias is not None:
            torch.sum(slope, 1, out=into.views[self.bias])
            if self.bias_scale != 1:
                into.views[self.bias].mul_(self.bias_scale)

    def descend_(
        self, stack: Stack, h: Float[Tensor, "e n d"], slope: Float[Tensor, "e n o"], lr: float,
        decay: float,
    ) -> None:  # fmt: skip
        """Take a step down the gradient, without storing the gradient."""
        keep = 1 - lr * decay
        stack.views[self.weight].baddbmm_(slope.mT, h, beta=keep, alpha=-lr * self.scale)
        if self.bias is not None:
            bias = stack.views[self.bias]
            bias.mul_(keep).sub_(slope.sum(1), alpha=lr * self.bias_scale)

    def before(self, stack: Stack, slope: Float[Tensor, "e n o"]) -> Float[Tensor, "e n d"]:
        """The slope before the layer, from that after it."""
        weight = stack.views[self.weight]
        out = slope.new_empty(*slope.shape[:2], weight.shape[2])
        return out.baddbmm_(slope, weight, beta=0, alpha=self.scale)


@dataclass(frozen=True)
class Batched:
    """Plain MLPs, many at once: one batched product for each layer, forwards and backwards."""

    parts: tuple[Linear | nn.Module, ...]

    @classmethod
    def of(cls, module: nn.Module, ndim: int) -> "Batched | None":
        """The evaluator for this module and inputs with so many axes, if it is a plain MLP."""
        leaves = list(_leaves(module, ""))
        if any(_hooked(part) for part in module.modules()):
            return None
        params = [id(p) for _, leaf in leaves for p in leaf.parameters()]
        if len(set(params)) < len(params) or not all(p.requires_grad for p in module.parameters()):
            return None
        parts: list[Linear | nn.Module] = []
        flat = ndim == 2
        for name, leaf in leaves:
            if type(leaf) is nn.Flatten and (leaf.start_dim, leaf.end_dim) == (1, -1):
                flat = True
                continue
            part = _part(name, leaf)
            if part is None or not flat:
                return None
            parts.append(part)
        return cls(tuple(parts)) if any(isinstance(part, Linear) for part in parts) else None

    def outputs(self, stack: Stack, x: Shaped[Tensor, " n *d"]) -> Float[Tensor, "e n o"]:
        h = self._inputs(stack, x)
        for part in self.parts:
            h = part.forward(stack, h) if isinstance(part, Linear) else part(h)
        return h

    def gradient_(
        self, into: Stack, stack: Stack, x: Shaped[Tensor, " n *d"], y: Tensor, loss: Loss
    ) -> tuple[Float[Tensor, " e"], Float[Tensor, "e n o"]]:
        return self._backwards(
            stack, x, y, loss, lambda part, h, slope: part.gradient_(into, h, slope)
        )

    def descend_(  # noqa: PLR0917  as `gradient_`, with the step
        self, stack: Stack, x: Shaped[Tensor, " n *d"], y: Tensor, loss: Loss, lr: float,
        decay: float,
    ) -> tuple[Float[Tensor, " e"], Float[Tensor, "e n o"]]:  # fmt: skip
        """One step of plain gradient descent; the losses and outputs before it."""
        return self._backwards(
            stack, x, y, loss, lambda part, h, slope: part.descend_(stack, h, slope, lr, decay)
        )

    def _backwards(
        self,
        stack: Stack,
        x: Tensor,
        y: Tensor,
        loss: Loss,
        use: Callable[[Linear, Tensor, Tensor], None],
    ) -> tuple[Float[Tensor, " e"], Float[Tensor, "e n o"]]:
        h = self._inputs(stack, x)
        tape: list[tuple[Tensor, Tensor]] = []
        for part in self.parts:
            before = h
            if isinstance(part, Linear):
                h = part.forward(stack, before)
                tape.append((before, h))
            else:
                # Autograd is used for the slopes of activations only.
                with torch.enable_grad():
                    leaf = before.detach().requires_grad_()
                    after = part(leaf)
                tape.append((leaf, after))
                h = after.detach()
        value, slope = loss.both(h, y)
        first = next(i for i, part in enumerate(self.parts) if isinstance(part, Linear))
        for i in range(len(self.parts) - 1, first - 1, -1):
            part, (before, after) = self.parts[i], tape.pop()
            if isinstance(part, Linear):
                earlier = part.before(stack, slope) if i > first else slope
                use(part, before, slope)
                slope = earlier
            elif after is not before:
                (slope,) = torch.autograd.grad(after, before, slope)
        return value, h

    def _inputs(self, stack: Stack, x: Tensor) -> Tensor:
        return x.flatten(1).expand(stack.members, -1, -1)


def _leaves(module: nn.Module, name: str) -> Iterator[tuple[str, nn.Module]]:
    if type(module) is not nn.Sequential:
        yield name, module
        return
    for key, child in module._modules.items():
        assert child is not None
        yield from _leaves(
            child, f"{name}{key}." if type(child) is nn.Sequential else f"{name}{key}"
        )


def _part(name: str, leaf: nn.Module) -> Linear | nn.Module | None:
    weight, bias = (f"{name}.{key}" if name else key for key in ("weight", "bias"))
    if type(leaf) is nn.Linear:
        return Linear(weight, None if leaf.bias is None else bias)
    if type(leaf) is NTKLinear:
        return Linear(weight, bias, leaf.w_std / leaf.weight.shape[1] ** 0.5, leaf.b_std)
    activation = getattr(leaf, "activation", None)
    if isinstance(activation, LeakyRelu) and activation.slope == 0:
        return nn.ReLU()  # the same, with a much faster backward pass
    if isinstance(activation, Activation) and not list(leaf.parameters()):
        return leaf
    if type(leaf) not in _ELEMENTWISE:
        return None
    if getattr(leaf, "inplace", False):
        leaf = copy.copy(leaf)
        leaf.inplace = False  # type: ignore[assignment]
    return leaf


def _hooked(part: nn.Module) -> bool:
    return bool(
        part._forward_hooks or part._forward_pre_hooks or part._backward_hooks
        or part._backward_pre_hooks
    )  # fmt: skip


@runtime_checkable
class Evaluator(Protocol):
    """A way to compute outputs and gradients of many members at once."""

    def outputs(self, stack: Stack, x: Shaped[Tensor, " n *d"]) -> Float[Tensor, "e n o"]:
        """The outputs of all members."""
        ...

    def gradient_(
        self, into: Stack, stack: Stack, x: Shaped[Tensor, " n *d"], y: Tensor, loss: Loss
    ) -> tuple[Float[Tensor, " e"], Float[Tensor, "e n o"]]:
        """Overwrite `into` with the gradients; returns the losses and outputs."""
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
        def output(member: dict[str, Tensor]) -> Tensor:
            return functional_call(self.module, member, (x,))

        return vmap(output)(values)


@dataclass(frozen=True, eq=False)
class OneByOne:
    """Any torch module, one member after another."""

    module: nn.Module

    def outputs(self, stack: Stack, x: Shaped[Tensor, " n *d"]) -> Float[Tensor, "e n o"]:
        rows = range(stack.members)
        values = stack.everything()
        members = [{name: value[row] for name, value in values.items()} for row in rows]
        return torch.stack([functional_call(self.module, member, (x,)) for member in members])

    def gradient_(
        self, into: Stack, stack: Stack, x: Shaped[Tensor, " n *d"], y: Tensor, loss: Loss
    ) -> tuple[Float[Tensor, " e"], Float[Tensor, "e n o"]]:
        results = []
        for row in range(stack.members):
            fixed = {name: value[row] for name, value in stack.fixed.items()}

            def call(leaves: dict[str, Tensor], fixed: dict[str, Tensor] = fixed) -> Tensor:
                return functional_call(self.module, {**fixed, **leaves}, (x,))[None]

            own, gradient = (
                {name: view[row] for name, view in members.views.items()}
                for members in (stack, into)
            )
            results.append(_gradient_(gradient, own, call, y, loss))
        values, outputs = zip(*results, strict=True)
        return torch.cat(values), torch.cat(outputs)


def evaluator_for(module: nn.Module, x: Shaped[Tensor, " n *d"]) -> Evaluator:
    """The fastest evaluator for this module.

    Batched products for plain MLPs. Convolutions go one by one: on a CPU, stacking them gains
    nothing and takes more memory. So do modules that vmap cannot handle.

    >>> type(evaluator_for(nn.Sequential(nn.Linear(3, 2), nn.ReLU()), torch.zeros(4, 3))).__name__
    'Batched'
    """
    plain = Batched.of(module, x.ndim)
    if plain is not None:
        return plain
    if any(isinstance(part, nn.modules.conv._ConvNd) for part in module.modules()):
        return OneByOne(module)
    mapped, stack = ByVmap(module), Stack.gathered(lambda _: module, 2, module)
    few = x[:3]
    with torch.no_grad():
        alone = outputs_of(module, few)
        try:
            together = mapped.outputs(stack, few)
        except RuntimeError:  # vmap cannot follow a branch on values, for example
            return OneByOne(module)
    return mapped if torch.allclose(together[1], alone, rtol=1e-3, atol=1e-5) else OneByOne(module)


def sample_bytes(module: nn.Module, x: Shaped[Tensor, " n *d"]) -> int:
    """Bytes that a forward pass keeps for the backward pass, per additional sample."""
    return max(x[0].numel() * 8, saved_bytes(lambda samples: outputs_of(module, samples), x))


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
        raise NetworkError("expected outputs that depend on the parameters; none of them does")
    gradients = torch.autograd.grad(outputs, list(leaves.values()), slope, allow_unused=True)
    for name, gradient in zip(leaves, gradients, strict=True):
        if gradient is None:
            into[name].zero_()
        else:
            into[name].copy_(gradient)
    return value, outputs.detach()
