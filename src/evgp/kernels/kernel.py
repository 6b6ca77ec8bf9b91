"""The protocol of kernels.

Kernels from other packages are checked whenever they are used; a kernel whose single columns cost a
pass through a network is computed once, as a table.
"""

from dataclasses import Field, dataclass, replace
from typing import Any, ClassVar, Protocol, TypeVar, cast, runtime_checkable

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from evgp._checks import can, recorded, shown
from evgp.errors import BadArgument, EvgpError, NetworkError, PluginError, Stopped


@runtime_checkable
class Kernel(Protocol):
    """Covariance between two batches of inputs.

    A kernel may have further attributes, which are used where present; a missing one means no:

    - `threadsafe`: several threads may call it at once;
    - `gradients`: it belongs to a network whose gradients can be sketched;
    - `tabulated(x)`: the kernel between all points at once, if a single column costs as much;
    - `cost(x, n)`: bytes and seconds that the n x n matrix takes, estimated from a few samples x;
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

    Features may have the attributes `threadsafe` and `identity` (the features are the inputs).
    """

    def phi(self, x: Shaped[Tensor, " n *d"]) -> Float[Tensor, "n p"]:
        """The features of each point."""
        ...

    def residual(
        self, x: Shaped[Tensor, " n *d"], phi: Float[Tensor, "n p"]
    ) -> Float[Tensor, " n"]:
        """The variance of each point that its features `phi` miss, which no other point shares."""
        ...


def check_storage(storage: object) -> None:
    """Check the type that a kernel is stored in; None is the type of the inputs."""
    right = isinstance(storage, torch.dtype) and storage in (torch.float32, torch.float64)
    if storage is not None and not right:
        raise BadArgument.of(NetworkError)(
            "storage", "torch.float32, torch.float64 or None", shown(storage)
        )


Prior = TypeVar("Prior")


def is_random(kernel: object) -> bool:
    """Whether the kernel depends on a random network, directly or inside, and can be redrawn."""
    inner = getattr(kernel, "kernel", None)
    return hasattr(kernel, "fresh") if inner is None else is_random(inner)


def redrawn(kernel: Prior, seed: int) -> Prior:
    """The kernel, or features, of another initialisation; one that is not random stays the same."""
    if not is_random(kernel):
        return kernel
    random: Any = kernel
    inner = getattr(random, "kernel", None)
    return random.fresh(seed) if inner is None else replace(random, kernel=redrawn(inner, seed))


@runtime_checkable
class Storing(Protocol):
    """A dataclass kernel that can store its matrix in another type than it computes in."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    storage: torch.dtype | None

    def __call__(
        self, x1: Float[Tensor, " n *d"], x2: Float[Tensor, " m *d"] | None = None
    ) -> Float[Tensor, "n m"]:
        """The matrix, as for `Kernel`, in the type of `storage`."""
        ...


@dataclass(frozen=True)
class Wide:
    """A kernel in float64, whatever its own storage and the type of its inputs."""

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
    """A kernel matrix as a kernel, whose inputs are row numbers.

    When asked for all of it in the type it is stored in, it returns the matrix itself, not a copy.

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


_LOOKED_AT = 32  # points whose matrix is checked to be a covariance
_CLOSE = 1e-3  # of the largest variance: float32 may round this much; larger errors are real


@dataclass(frozen=True)
class Checked:
    """A kernel whose values are checked to be finite and of the right shape.

    A few points are used to check that it is a covariance: symmetric, the same for (x) and (x, x),
    without negative eigenvalues. Costs one more pass over the values.

    >>> from evgp.kernels import Tabulated
    >>> Checked(Tabulated(torch.eye(2))).diag(torch.tensor([[0.0], [1.0]]))
    tensor([1., 1.])
    """

    kernel: Kernel
    is_checked: ClassVar[bool] = True

    def __repr__(self) -> str:
        return recorded(self.kernel)

    @property
    def threadsafe(self) -> bool:
        """Whether the inner kernel is thread-safe."""
        return can(self.kernel, "threadsafe")

    def __call__(
        self, x1: Float[Tensor, " n *d"], x2: Float[Tensor, " m *d"] | None = None
    ) -> Float[Tensor, "n m"]:
        """The n x m matrix; with one argument the symmetric n x n one."""
        points = (x1,) if x2 is None else (x1, x2)
        matrix = self._values(self.kernel, "a matrix", points, (len(x1), len(points[-1])))
        if x2 is None:
            self._not_below(matrix.diagonal(), "its matrix")
        return matrix

    def diag(self, x: Float[Tensor, " n *d"]) -> Float[Tensor, " n"]:
        """Each point with itself."""
        variances = self._values(self.kernel.diag, "diag(x)", (x,), (len(x),))
        self._not_below(variances, "diag(x)")
        if len(variances):
            self._agrees(x[:_LOOKED_AT], variances[:_LOOKED_AT].double())
        return variances

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
                f"points with the eigenvalue {lowest:g}; those of a covariance are not negative"
            )

    def _values(
        self, function: Any, what: str, points: tuple[Tensor, ...], shape: tuple[int, ...]
    ) -> Tensor:
        name = self._name()
        try:
            values = function(*points)
        except EvgpError:
            raise
        except Exception as error:  # a user's kernel may raise anything
            raise Stopped.of(PluginError)(
                f"the kernel {name}", f"{type(error).__name__}: {error}"
            ) from error
        if not isinstance(values, Tensor) or not values.is_floating_point():
            kind = values.dtype if isinstance(values, Tensor) else type(values).__name__
            raise PluginError(
                f"expected {what} from the kernel {name} as a torch tensor of floats, got {kind}; "
                "fix the kernel"
            )
        if tuple(values.shape) != shape:
            counts = " and ".join(str(len(batch)) for batch in points)
            raise PluginError(
                f"expected {what} of shape {shape} from the kernel {name} for {counts} points, got "
                f"{tuple(values.shape)}; fix the kernel"
            )
        if values.numel() and not bool(torch.stack(torch.aminmax(values)).isfinite().all()):
            wrong = int((~values.isfinite()).sum())
            raise PluginError(
                f"expected finite values from the kernel {name}, got {wrong} NaN or inf in {what} "
                f"of {values.numel()}; fix the kernel, or scale its inputs"
            )
        return values.detach()

    def _name(self) -> str:
        return type(self.kernel).__qualname__


def checked(kernel: object) -> Kernel:
    """Return a kernel: ours unchanged, any other with checks of its values.

    >>> from evgp.kernels import NNGP
    >>> from evgp.nets import mlp
    >>> checked(NNGP(mlp(1))) == NNGP(mlp(1))
    True
    """
    if can(kernel, "is_checked"):
        return cast(Kernel, kernel)
    if isinstance(kernel, type) or not isinstance(kernel, Kernel):
        kind = f"the class {kernel.__name__}" if isinstance(kernel, type) else type(kernel).__name__
        raise PluginError(
            "expected a kernel as an object with __call__(x1, x2=None) and diag(x), or its name; "
            f"got {kind}"
        )
    # The posterior decides about storage: it asks for float64 and rounds itself.
    return Checked(replace(kernel, storage=None) if isinstance(kernel, Storing) else kernel)
