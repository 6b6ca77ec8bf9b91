"""A kernel computed once: for kernels whose single columns cost a pass through a network."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Tabulated:
    """A kernel matrix; inputs are row numbers, one a point.

    Asked for everything in the type it is stored in, it gives the matrix itself, not a copy.

    >>> kernel = Tabulated(torch.tensor([[2.0, 1.0], [1.0, 3.0]]))
    >>> kernel.diag(torch.tensor([[1.0]])).tolist()
    [3.0]
    """

    matrix: Float[Tensor, "n n"]
    storage: torch.dtype | None = None
    is_checked: ClassVar[bool] = True

    def __call__(
        self, x1: Float[Tensor, "n 1"], x2: Float[Tensor, "m 1"] | None = None
    ) -> Float[Tensor, "n m"]:
        """Rows and columns of the matrix."""
        rows = x1[:, 0].long()
        columns = rows if x2 is None else x2[:, 0].long()
        every = torch.arange(len(self.matrix))
        if torch.equal(columns, every):
            part = self.matrix if torch.equal(rows, every) else self.matrix[rows]
        else:
            part = self.matrix[rows[:, None], columns]
        return part.to(self.storage or x1.dtype)

    def diag(self, x: Float[Tensor, "n 1"]) -> Float[Tensor, " n"]:
        """Each point with itself."""
        return self.matrix.diagonal()[x[:, 0].long()].to(self.storage or x.dtype)
