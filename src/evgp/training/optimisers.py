"""Losses and optimisers for all members at once, each equal to torch's for one."""

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from evgp.training.members import Stack


@runtime_checkable
class Loss(Protocol):
    """A loss of each member, with its derivative."""

    def both(
        self, outputs: Float[Tensor, "e n o"], y: Shaped[Tensor, " n ..."]
    ) -> tuple[Float[Tensor, " e"], Float[Tensor, "e n o"]]:
        """The value for each member, and its derivative with respect to the outputs."""
        ...


class SquaredError:
    r"""$L = \frac{1}{n o} \sum (f - y)^2$, like torch's `MSELoss`.

    >>> value, slope = SquaredError().both(torch.zeros(1, 2, 1), torch.tensor([[1.0], [3.0]]))
    >>> value.tolist(), slope.flatten().tolist()
    ([5.0], [-1.0, -3.0])
    """

    def both(
        self, outputs: Float[Tensor, "e n o"], y: Shaped[Tensor, " n ..."]
    ) -> tuple[Float[Tensor, " e"], Float[Tensor, "e n o"]]:
        rest = outputs - y
        value = rest.square().mean((1, 2))
        return value, rest.mul_(2 / max(1, y.numel()))


class CrossEntropy:
    r"""$L = -\frac1n \sum_i \log p_{y_i}(x_i)$ with $p$ the softmax, like torch's.

    >>> value, slope = CrossEntropy().both(torch.zeros(1, 1, 2), torch.tensor([0]))
    >>> round(float(value), 4), slope.flatten().tolist()
    (0.6931, [-0.5, 0.5])
    """

    def both(
        self, outputs: Float[Tensor, "e n o"], y: Shaped[Tensor, " n ..."]
    ) -> tuple[Float[Tensor, " e"], Float[Tensor, "e n o"]]:
        logs = torch.log_softmax(outputs, -1)
        at = y.expand(len(outputs), -1)[..., None]
        value = -logs.gather(-1, at).mean((1, 2))
        slope = logs.exp_()
        slope.scatter_add_(-1, at, slope.new_full((), -1.0).expand(at.shape))
        return value, slope.div_(max(1, len(y)))


@runtime_checkable
class Optimiser(Protocol):
    """Updates parameters from gradients."""

    def step_(self, stack: Stack, gradient: Stack) -> None:
        """One step of every member; the gradient may be overwritten."""
        ...

    def keep_(self, rows: Int[Tensor, " r"]) -> None:
        """Keep the state of these members only."""
        ...


@dataclass
class GradientDescent:
    r"""$v \leftarrow \mu v + \nabla L + w \theta$, $\theta \leftarrow \theta - \eta v$."""

    lr: float
    momentum: float = 0.0
    weight_decay: float = 0.0
    _velocity: Stack | None = field(default=None, init=False, repr=False)

    def step_(self, stack: Stack, gradient: Stack) -> None:
        step = gradient.flat
        if self.weight_decay:
            step.add_(stack.flat, alpha=self.weight_decay)
        if self.momentum:
            if self._velocity is None:
                self._velocity = stack.zeros()
            step = self._velocity.flat.mul_(self.momentum).add_(step)
        stack.flat.add_(step, alpha=-self.lr)

    def keep_(self, rows: Int[Tensor, " r"]) -> None:
        if self._velocity is not None:
            self._velocity = self._velocity.take(rows)


@dataclass
class Adam:
    r"""Kingma & Ba 2015: $\theta \leftarrow \theta - \eta\, \hat m / (\sqrt{\hat v} + 10^{-8})$.

    Weight decay is added to the gradient, as in `torch.optim.Adam`.
    """

    lr: float
    weight_decay: float = 0.0
    _first: Stack | None = field(default=None, init=False, repr=False)
    _second: Stack | None = field(default=None, init=False, repr=False)
    _count: int = field(default=0, init=False, repr=False)

    def step_(self, stack: Stack, gradient: Stack) -> None:
        if self._first is None or self._second is None:
            self._first, self._second = stack.zeros(), stack.zeros()
        step = gradient.flat
        if self.weight_decay:
            step.add_(stack.flat, alpha=self.weight_decay)
        self._count += 1
        first = self._first.flat.lerp_(step, 1 - 0.9)
        second = self._second.flat.mul_(0.999).addcmul_(step, step, value=1 - 0.999)
        torch.sqrt(second, out=step)
        step.div_((1 - 0.999**self._count) ** 0.5).add_(1e-8)
        stack.flat.addcdiv_(first, step, value=-self.lr / (1 - 0.9**self._count))

    def keep_(self, rows: Int[Tensor, " r"]) -> None:
        if self._first is not None and self._second is not None:
            self._first, self._second = self._first.take(rows), self._second.take(rows)


def clip_(gradient: Stack, most: float) -> None:
    r"""Clip each member's gradient to a norm of at most `most`, as `clip_grad_norm_` does."""
    parts = [view.flatten(1).square().sum(1) for view in gradient.views.values()]
    norms = torch.stack(parts).sum(0).sqrt()
    scale = (most / (norms + 1e-6)).clamp(max=1.0)
    for view in gradient.views.values():
        view.mul_(scale.view(-1, *[1] * (view.ndim - 1)))
