"""A pool to choose from and a test part to be good on, with their labels."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from jaxtyping import Float, Int
from torch import Tensor

Kind: TypeAlias = Literal["regression", "classification"]


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A pool and a test part, scaled by the pool, and where they come from.

    Targets of a regression are one float64 column with mean 0 and deviation 1 over the pool; in
    the unit of the data they are `y * y_std + y_mean`. Those of a classification are 0, 1, ...,
    and `class_names` says what for. `rows` and `rows_test` are the rows they have at their source:
    both count through one table, except where the data came as a train part and a test part.

    >>> import torch
    >>> x = torch.zeros(2, 3, dtype=torch.float64)
    >>> Dataset("two", "classification", x, torch.tensor([0, 1]), x[:1], torch.tensor([1]), 2)
    Dataset('two', classification of 2 classes, pool 2 x 3, test 1)
    """

    name: str
    kind: Kind
    x: Float[Tensor, " n *d"]
    y: Float[Tensor, "n 1"] | Int[Tensor, " n"]
    x_test: Float[Tensor, " m *d"]
    y_test: Float[Tensor, "m 1"] | Int[Tensor, " m"]
    classes: int = 0
    about: str = ""
    citation: str = ""
    licence: str = ""
    class_names: tuple[str, ...] = ()
    rows: Int[Tensor, " n"] | None = None
    rows_test: Int[Tensor, " m"] | None = None
    y_mean: float = 0.0
    y_std: float = 1.0

    def __repr__(self) -> str:
        kind = f"{self.kind} of {self.classes} classes" if self.classes else self.kind
        shape = " x ".join(f"{size:,}" for size in self.x.shape)
        return f"Dataset({self.name!r}, {kind}, pool {shape}, test {len(self.x_test):,})"
