"""Plain MLPs, many at once: one batched product for each layer, forwards and backwards."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from evgp.nets import Activation, LeakyRelu, NTKLinear
from evgp.training.losses import Loss
from evgp.training.stack import Stack

_ELEMENTWISE = {
    nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.ELU, nn.SELU, nn.GELU, nn.SiLU, nn.Mish, nn.Softplus,
    nn.Sigmoid, nn.Tanh, nn.Identity,
}  # fmt: skip


@dataclass(frozen=True)
class Linear:
    r"""$z = s\,h W^\top + t\,b$ by the names of $W$ and $b$ in a stack."""

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
        """Fill in the gradients, from the inputs and the slope behind the layer."""
        into.views[self.weight].baddbmm_(slope.mT, h, beta=0, alpha=self.scale)
        if self.bias is not None:
            torch.sum(slope, 1, out=into.views[self.bias])
            if self.bias_scale != 1:
                into.views[self.bias].mul_(self.bias_scale)

    def descend_(
        self, stack: Stack, h: Float[Tensor, "e n d"], slope: Float[Tensor, "e n o"], lr: float,
        decay: float,
    ) -> None:  # fmt: skip
        """Take a step down the gradient, which is never written."""
        keep = 1 - lr * decay
        stack.views[self.weight].baddbmm_(slope.mT, h, beta=keep, alpha=-lr * self.scale)
        if self.bias is not None:
            bias = stack.views[self.bias]
            bias.mul_(keep).sub_(slope.sum(1), alpha=lr * self.bias_scale)

    def before(self, stack: Stack, slope: Float[Tensor, "e n o"]) -> Float[Tensor, "e n d"]:
        """The slope before the layer, from that behind it."""
        weight = stack.views[self.weight]
        out = slope.new_empty(*slope.shape[:2], weight.shape[2])
        return out.baddbmm_(slope, weight, beta=0, alpha=self.scale)


@dataclass(frozen=True)
class Batched:
    """A road for plain MLPs."""

    parts: tuple[Linear | nn.Module, ...]

    @classmethod
    def of(cls, module: nn.Module, ndim: int) -> "Batched | None":
        """The road of this module for inputs of so many axes, if it is a plain MLP."""
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
                # Autograd knows the slope of every activation; it is asked for nothing else.
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
        return nn.ReLU()  # the same, and much quicker backwards
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
