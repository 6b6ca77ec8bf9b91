"""What the rest of the package asks of a kernel."""

from dataclasses import Field
from typing import Any, ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Shaped
from torch import Tensor


@runtime_checkable
class Kernel(Protocol):
    """Covariance between two batches of inputs."""

    def __call__(
        self, x1: Float[Tensor, " n *d"], x2: Float[Tensor, " m *d"] | None = None
    ) -> Float[Tensor, "n m"]:
        """The n x m matrix; with one argument the symmetric n x n one."""
        ...

    def diag(self, x: Float[Tensor, " n *d"]) -> Float[Tensor, " n"]:
        """Each point with itself: the diagonal of the symmetric matrix, exactly."""
        ...


@runtime_checkable
class Features(Protocol):
    """A kernel as an inner product, plus what the inner product misses."""

    def phi(self, x: Shaped[Tensor, " n *d"]) -> Float[Tensor, "n p"]:
        """The features of each point."""
        ...

    def residual(
        self, x: Shaped[Tensor, " n *d"], phi: Float[Tensor, "n p"]
    ) -> Float[Tensor, " n"]:
        """The variance of each point that its features `phi` miss, which no other point shares."""
        ...


@runtime_checkable
class Storing(Protocol):
    """A kernel, as a dataclass, that can store its matrix in another type than it computes in."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    storage: torch.dtype | None

    def __call__(
        self, x1: Float[Tensor, " n *d"], x2: Float[Tensor, " m *d"] | None = None
    ) -> Float[Tensor, "n m"]:
        """As `Kernel`, in the type of `storage`."""
        ...
