"""Losses: a value for each member, and its derivative with respect to the outputs."""

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Shaped
from torch import Tensor


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
