"""The result of training: many members of one network."""

import copy
import warnings
from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from evgp._checks import BYTES, integer
from evgp._machine import available_memory
from evgp._typing import Array
from evgp.training.checks import TrainingError, inputs
from evgp.training.gradients import Evaluator
from evgp.training.members import Stack


@dataclass(frozen=True, eq=False, repr=False)
class Ensemble:
    """Many initialisations of one network, trained at once; made by `evgp.train`.

    Attributes
    ----------
    losses : tensor, shape (e,)
        Final training losses.
    steps : tensor of int, shape (e,)
        Steps of each member.
    shape : tuple of int
        Shape of a sample.
    lr : float
        Learning rate.
    template, stack, evaluator, sample
        Internal.

    Examples
    --------
    >>> from evgp import mlp, train
    >>> x = torch.linspace(-1, 1, 5)[:, None]
    >>> ensemble = train(mlp(1, 16), x, x[:, 0] ** 2, members=3, steps=10)
    >>> ensemble.predict(x).shape, ensemble.steps.tolist()
    (torch.Size([3, 5, 1]), [10, 10, 10])
    """

    losses: Float[Tensor, " e"]
    steps: Int[Tensor, " e"]
    shape: tuple[int, ...]
    lr: float
    template: nn.Module = field(repr=False)
    stack: Stack = field(repr=False)
    evaluator: Evaluator = field(repr=False)
    sample: int = field(repr=False)  # bytes of one point in one member

    @property
    def members(self) -> int:
        """Number of members."""
        return self.stack.members

    @property
    def road(self) -> Evaluator:
        """The former name of `evaluator`."""
        warnings.warn(
            "Ensemble.road is now Ensemble.evaluator; the old name will be removed in the next "
            "release.",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.evaluator

    def predict(self, x: Array, *, memory: int | None = None) -> Float[Tensor, "e n o"]:
        """The outputs of every member; points go in blocks that fit into `memory` bytes."""
        points = inputs(x, self.stack.flat.dtype, self.template)
        if tuple(points.shape[1:]) != self.shape:
            raise TrainingError(
                f"expected points of shape {self.shape}, as in training; got "
                f"{tuple(points.shape[1:])}"
            )
        if memory is not None:
            memory = integer(memory, "memory", 1, BYTES, why="in bytes", error=TrainingError)
        room = available_memory() // 4 if memory is None else memory
        step = max(1, room // max(1, 2 * self.members * self.sample))
        with torch.no_grad():
            parts = [
                self.evaluator.outputs(self.stack, block) for block in torch.split(points, step)
            ]
        return torch.cat(parts, 1)

    def module(self, member: int) -> nn.Module:
        """One member as a separate torch module."""
        member = integer(member, "member", 0, self.members - 1, error=TrainingError)
        module = copy.deepcopy(self.template)
        places = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        for name, values in self.stack.everything().items():
            places[name].data.copy_(values[member])
        return module

    def __len__(self) -> int:
        return self.members

    def __repr__(self) -> str:
        least, most = float(self.losses.min()), float(self.losses.max())
        return f"Ensemble(members={self.members}, losses {least:.3g} to {most:.3g})"
