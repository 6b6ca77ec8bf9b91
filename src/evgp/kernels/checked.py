"""A kernel of somebody else's, with what it gives checked each time."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import torch
from jaxtyping import Float
from torch import Tensor

from evgp._capabilities import can
from evgp._errors import EvgpError, PluginError
from evgp.kernels.kernel import Kernel, Storing

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
                f"{float(variances.min()):g}; mend the kernel"
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
                    f"{worst:g} apart; mend the kernel"
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
                "mend the kernel"
            )
        if tuple(made.shape) != shape:
            told = " and ".join(str(len(one)) for one in points)
            raise PluginError(
                f"expected {what} of shape {shape} from the kernel {name} for {told} points, got "
                f"{tuple(made.shape)}; mend the kernel"
            )
        if made.numel() and not bool(torch.stack(torch.aminmax(made)).isfinite().all()):
            wrong = int((~made.isfinite()).sum())
            raise PluginError(
                f"expected finite values from the kernel {name}, got {wrong} NaN or inf in {what} "
                f"of {made.numel()}; mend the kernel, or scale its inputs"
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
