"""What the rest of the package asks of a kernel."""

from dataclasses import Field, dataclass, replace
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from evgp._checks import shown
from evgp._errors import NetworkError


@runtime_checkable
class Kernel(Protocol):
    """Covariance between two batches of inputs.

    A kernel may say more about itself, and has it used; what it does not say is taken as no:

    - `threadsafe`: several threads may ask it at once;
    - `gradients`: it is of a network whose gradients can be sketched;
    - `tabulated(x)`: the kernel between all points at once, where single columns cost as much;
    - `cost(x, n)`: bytes and seconds of the n x n matrix, from a few samples x;
    - `looks_up(shape)`: whether inputs of this shape are indices, which must stay integers;
    - `fresh(seed)`: the kernel of another random network.
    """

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
    """A kernel as an inner product, plus what the inner product misses.

    Features may say that they are `threadsafe`, and that they are the `identity`: the inputs.
    """

    def phi(self, x: Shaped[Tensor, " n *d"]) -> Float[Tensor, "n p"]:
        """The features of each point."""
        ...

    def residual(
        self, x: Shaped[Tensor, " n *d"], phi: Float[Tensor, "n p"]
    ) -> Float[Tensor, " n"]:
        """The variance of each point that its features `phi` miss, which no other point shares."""
        ...


def storage_of(storage: object) -> None:
    """Refuse a type that no kernel is stored in; None is that of the inputs."""
    right = isinstance(storage, torch.dtype) and storage in (torch.float32, torch.float64)
    if storage is not None and not right:
        raise NetworkError(
            f"expected storage torch.float32, torch.float64 or None, got {shown(storage)}"
        )


Prior = TypeVar("Prior")


def is_random(kernel: object) -> bool:
    """Is it of a network drawn at random, or made of such a kernel, so that it can be redrawn?"""
    inner = getattr(kernel, "kernel", None)
    return hasattr(kernel, "fresh") if inner is None else is_random(inner)


def redrawn(kernel: Prior, seed: int) -> Prior:
    """The kernel, or features, of another initialisation; what is not random stays."""
    if not is_random(kernel):
        return kernel
    made: Any = kernel
    inner = getattr(made, "kernel", None)
    return made.fresh(seed) if inner is None else replace(made, kernel=redrawn(inner, seed))


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


@dataclass(frozen=True)
class Wide:
    """A kernel in float64, whatever it would store and whatever its inputs are."""

    kernel: Kernel
    is_checked: ClassVar[bool] = True

    def __call__(
        self, x1: Float[Tensor, " n *d"], x2: Float[Tensor, " m *d"] | None = None
    ) -> Float[Tensor, "n m"]:
        """The n x m matrix; with one argument the symmetric n x n one."""
        return self._whole()(x1.double(), None if x2 is None else x2.double()).double()

    def diag(self, x: Float[Tensor, " n *d"]) -> Float[Tensor, " n"]:
        """Each point with itself."""
        return self._whole().diag(x.double()).double()

    def _whole(self) -> Kernel:
        kernel = self.kernel
        return replace(kernel, storage=None) if isinstance(kernel, Storing) else kernel
