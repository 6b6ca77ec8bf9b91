"""Features that a strategy measures distances in: gradients of a network, rows of norm one."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from evgp.kernels import EmpiricalNTK, Sketch


@dataclass(frozen=True)
class Gradients:
    """An `embed=` for strategies: p random features of the gradients of a network.

    Products of random signs, as in bmdal-reg. O(n p (inputs + outputs)) for each layer, on top of
    the network's own passes; n p memory.

    Parameters
    ----------
    kernel : EmpiricalNTK
    p : int
        Number of features.
    seed : int

    Examples
    --------
    >>> from evgp import mlp
    >>> Gradients(EmpiricalNTK(mlp(1, 16)), p=8)(torch.eye(3)).shape
    torch.Size([3, 8])
    """

    kernel: EmpiricalNTK
    p: int = 512
    seed: int = 0

    def __call__(self, x: Shaped[Tensor, " n *d"]) -> Float[Tensor, "n p"]:
        """The features, in float64."""
        with torch.enable_grad():  # embeddings are computed without
            return Sketch(self.kernel, self.p, self.seed, "kronecker").phi(x).detach().double()


def unit_rows(x: Float[Tensor, "n p"]) -> Float[Tensor, "n p"]:
    """Rows of norm one; rows of zeros stay.

    >>> unit_rows(torch.tensor([[3.0, 4.0], [0.0, 0.0]]).double()).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    norm = x.norm(dim=1, keepdim=True)
    return x / torch.where(norm > 0, norm, 1.0)
