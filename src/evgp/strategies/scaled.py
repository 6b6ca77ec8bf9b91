"""What a strategy measures distances in: scalings learnt on one pool, gradients of a network.

The centred rows of unit norm are those of Bae et al., Generalized Coverage for More Robust
Low-Budget Active Learning, ECCV 2024, and of most who pick by embeddings.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from evgp._checks import one_of
from evgp._linalg import CONSTANT, unit_for
from evgp.kernels import EmpiricalNTK, Sketch
from evgp.strategies.diversity import flat

SCALES = ("unit", "common", "columns")


@dataclass(frozen=True, eq=False)
class Scaled:
    """An `embed=` for strategies: points scaled as one pool was; O(n d).

    "common" centres the columns and divides all by one number, such that the mean squared norm of
    the pool's rows is one; "unit" centres them and gives every row unit norm; "columns"
    standardises each column. A constant column becomes zero.

    >>> x = torch.tensor([[0.0, 0.0], [4.0, 0.0], [2.0, 6.0]])
    >>> Scaled.of(x, "unit")(torch.tensor([[2.0, 5.0]])).tolist()
    [[0.0, 1.0]]
    """

    centre: Float[Tensor, " p"]
    scale: Float[Tensor, " p"]
    unit: bool = False

    @classmethod
    def of(cls, x: Shaped[Tensor, " n *d"], how: str) -> "Scaled":
        """The scaling of this name, learnt on these points."""
        one_of(how, "a scaling", SCALES)
        rows = flat(x)
        # No square may over- or underflow; columns of their own scale have their own unit too.
        most = rows.abs().amax(0)
        size = torch.where(most > 0, most, 1.0) if how == "columns" else unit_for(rows)
        rows = rows / size
        centre = rows.mean(0)
        spread = (rows - centre).square().mean(0).sqrt()
        spread = torch.where(spread > CONSTANT * rows.abs().amax(0), spread, 0.0)
        if how == "columns":
            scale = torch.where(spread > 0, spread, torch.inf)
        else:
            scale = torch.full_like(spread, float(spread.norm()) or torch.inf)
        return cls(centre * size, scale * size, how == "unit")

    def __call__(self, x: Shaped[Tensor, " n *d"]) -> Float[Tensor, "n p"]:
        """The points, one row each, scaled."""
        rows = (flat(x) - self.centre) / self.scale
        return unit_rows(rows) if self.unit else rows


@dataclass(frozen=True)
class Gradients:
    """An `embed=` for strategies: p random features of the gradients of a network.

    Products of random signs, as in bmdal-reg. O(n p (inputs + outputs)) for each layer, on top of
    the network's own passes; n p memory.

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
