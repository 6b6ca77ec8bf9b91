"""What the rest of the package asks of a kernel.

Kernels of others are checked each time they are used; a kernel whose single columns cost a pass
through a network is computed once, as a table.
"""

from dataclasses import Field, dataclass, replace
from typing import Any, ClassVar, Protocol, TypeVar, cast, runtime_checkable

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from evgp._checks import can, shown
from evgp._errors import EvgpError, NetworkError, PluginError


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


_LOOKED_AT = 32  # points on which the matrix is held against what a covariance is
_CLOSE = 1e-3  # of the largest variance: what float32 may round off, and no error of sense


@dataclass(frozen=True)
class Checked:
    """A kernel whose values have the right shape and are finite, or else it is named and refused.

    On some points it is tried whether it is a covariance: symmetric, the same by both ways to ask,
    without negative eigenvalues. One more pass over what it gives.

    >>> from evgp.kernels import Tabulated
    >>> Checked(Tabulated(torch.eye(2))).diag(torch.tensor([[0.0], [1.0]]))
    tensor([1., 1.])
    """

    kernel: Kernel
    is_checked: ClassVar[bool] = True

    def __repr__(self) -> str:
        return repr(self.kernel)

    @property
    def threadsafe(self) -> bool:
        """As the kernel says."""
        return can(self.kernel, "threadsafe")

    def __call__(
        self, x1: Float[Tensor, " n *d"], x2: Float[Tensor, " m *d"] | None = None
    ) -> Float[Tensor, "n m"]:
        """The n x m matrix; with one argument the symmetric n x n one."""
        points = (x1,) if x2 is None else (x1, x2)
        made = self._asked(self.kernel, "a matrix", points, (len(x1), len(points[-1])))
        if x2 is None:
            self._not_below(made.diagonal(), "its matrix")
        return made

    def diag(self, x: Float[Tensor, " n *d"]) -> Float[Tensor, " n"]:
        """Each point with itself."""
        made = self._asked(self.kernel.diag, "diag(x)", (x,), (len(x),))
        self._not_below(made, "diag(x)")
        if len(made):
            self._agrees(x[:_LOOKED_AT], made[:_LOOKED_AT].double())
        return made

    def _not_below(self, variances: Float[Tensor, " n"], where: str) -> None:
        if bool((variances < 0).any()):
            raise PluginError(
                f"expected variances of at least 0 in {where} from the kernel {self._name()}, got "
                f"{float(variances.min()):g}; fix the kernel"
            )

    def _agrees(self, x: Float[Tensor, " n *d"], own: Float[Tensor, " n"]) -> None:
        matrix, crossed = self(x).double(), self(x, x).double()
        close = _CLOSE * float(torch.maximum(matrix.abs().max(), own.max()))
        for what, apart in (
            ("diag(x) as the diagonal of its matrix", matrix.diagonal() - own),
            ("the same matrix for (x) and (x, x)", matrix - crossed),
            ("a symmetric matrix", crossed - crossed.T),
        ):
            if (worst := float(apart.abs().max())) > close:
                raise PluginError(
                    f"expected {what} from the kernel {self._name()}, got values that are "
                    f"{worst:g} apart; fix the kernel"
                )
        lowest = float(torch.linalg.eigvalsh((matrix + matrix.T) / 2)[0])
        if lowest < -close:
            raise PluginError(
                f"expected a covariance from the kernel {self._name()}, got a matrix of {len(x)} "
                f"points with the eigenvalue {lowest:g}; no Gaussian process has such"
            )

    def _asked(
        self, ask: Any, what: str, points: tuple[Tensor, ...], shape: tuple[int, ...]
    ) -> Tensor:
        name = self._name()
        try:
            made = ask(*points)
        except EvgpError:
            raise
        except Exception as error:  # a user's kernel may raise anything
            raise PluginError(
                f"the kernel {name} stopped: {type(error).__name__}: {error}"
            ) from error
        if not isinstance(made, Tensor) or not made.is_floating_point():
            kind = made.dtype if isinstance(made, Tensor) else type(made).__name__
            raise PluginError(
                f"expected {what} from the kernel {name} as a torch tensor of floats, got {kind}; "
                "fix the kernel"
            )
        if tuple(made.shape) != shape:
            told = " and ".join(str(len(one)) for one in points)
            raise PluginError(
                f"expected {what} of shape {shape} from the kernel {name} for {told} points, got "
                f"{tuple(made.shape)}; fix the kernel"
            )
        if made.numel() and not bool(torch.stack(torch.aminmax(made)).isfinite().all()):
            wrong = int((~made.isfinite()).sum())
            raise PluginError(
                f"expected finite values from the kernel {name}, got {wrong} NaN or inf in {what} "
                f"of {made.numel()}; fix the kernel, or scale its inputs"
            )
        return made.detach()

    def _name(self) -> str:
        return type(self.kernel).__qualname__


def checked(kernel: object) -> Kernel:
    """A kernel that is given as an object: ours as it is, another's with its values checked.

    >>> from evgp.kernels import NNGP
    >>> from evgp.nets import mlp
    >>> checked(NNGP(mlp(1))) == NNGP(mlp(1))
    True
    """
    if can(kernel, "is_checked"):
        return cast(Kernel, kernel)
    if isinstance(kernel, type) or not isinstance(kernel, Kernel):
        given = (
            f"the class {kernel.__name__}" if isinstance(kernel, type) else type(kernel).__name__
        )
        raise PluginError(
            "expected a kernel as an object with __call__(x1, x2=None) and diag(x), or its name; "
            f"got {given}"
        )
    # What is stored is for the posterior to say, which asks for float64 and rounds it itself.
    return Checked(replace(kernel, storage=None) if isinstance(kernel, Storing) else kernel)
