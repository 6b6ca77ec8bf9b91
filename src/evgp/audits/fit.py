r"""Variances that a training set leaves at any points, one block of them at a time.

With $A = (\Theta_X + s I)^{-1}$ and $W = A \Theta_{XT}$ the NTKGP keeps
$\tilde\Theta_{TT'} = \Theta_{TT'} - \Theta_{TX} W'$, and trained networks differ by
$C_{TT'} = K_{TT'} - W^\top K_{XT'} - K_{TX} W' + W^\top K_X W'$, the covariance of what their
initial outputs at T are beyond those explained by X. An additional point changes both by its
residual alone, so that sets of additional labels need no new factorisation of the whole.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from evgp._linalg import JITTER, safe_cholesky
from evgp._machine import available_memory
from evgp.errors import MemoryPlanError, size
from evgp.kernels import NNGP, NTK
from evgp.nets import Network

CELLS = 2**22  # training rows times test rows of a block
_SQUARES = 4  # matrices of training rows times training rows in memory
_SHARE = 0.8  # of the free memory that they may take


@dataclass(frozen=True, eq=False)
class Fit:
    """The factor of $\\Theta_X + s I$, with s a fraction of the mean prior over the test points.

    >>> from evgp import mlp
    >>> x = torch.eye(3, dtype=torch.float64)
    >>> fit = Fit.of(mlp(), x[:2], x, noise=1e-6)
    >>> (fit.variances(x).networks > 0.01).tolist()
    [False, False, True]
    """

    ntk: NTK
    nngp: NNGP
    points: Float[Tensor, "n d"]
    factor: Float[Tensor, "n n"]
    initial: Float[Tensor, "n n"]
    noise: float

    @classmethod
    def of(
        cls,
        network: Network,
        points: Float[Tensor, "n d"],
        test: Float[Tensor, "m d"],
        noise: float,
    ) -> "Fit":
        """Factorise; O(n³) time and O(n²) memory. Raises if that is not free."""
        check_room(len(points))
        ntk, nngp = NTK(network), NNGP(network)
        added = max(noise, JITTER) * float(ntk.diag(test).mean())
        matrix = ntk(points)
        matrix.diagonal().add_(added)
        factor = safe_cholesky(matrix)
        del matrix
        return cls(ntk, nngp, points, factor, nngp(points), added)

    def variances(self, test: Float[Tensor, "m d"]) -> "BlockVariances":
        """The variances at a block of test points; O(n² m) time, O(n m) memory."""
        half, weights = self.solved(test)
        cross = self.nngp(self.points, test)
        process = self.ntk.diag(test) - half.square().sum(0)
        networks = self.nngp.diag(test) + (weights * (self.initial @ weights - 2 * cross)).sum(0)
        return BlockVariances(
            test, half, weights, cross, networks.clamp(min=0), process.clamp(min=0)
        )

    def solved(self, at: Float[Tensor, "m d"]) -> tuple[Float[Tensor, "n m"], Float[Tensor, "n m"]]:
        """$L^{-1} \\Theta_{XT}$ and W."""
        half = torch.linalg.solve_triangular(self.factor, self.ntk(self.points, at), upper=False)
        return half, torch.linalg.solve_triangular(self.factor.T, half, upper=True)

    def inverse_diagonal(self) -> Float[Tensor, " n"]:
        """The diagonal of A, which the effect of leaving out a row is divided by."""
        return torch.cholesky_inverse(self.factor).diagonal().clone()


@dataclass(frozen=True, eq=False)
class BlockVariances:
    """Variances of a block of test points, and what is needed to update them for more labels."""

    test: Float[Tensor, "m d"]
    half: Float[Tensor, "n m"]
    weights: Float[Tensor, "n m"]
    cross: Float[Tensor, "n m"]
    networks: Float[Tensor, " m"]
    process: Float[Tensor, " m"]


@dataclass(frozen=True, eq=False)
class Further:
    r"""Additional points that are labelled one after the other.

    With $L L^\top = \tilde\Theta_S + s I$, $z = L^{-1} \tilde\Theta_{ST}$, $E = L^{-1} C_{ST}$ and
    $F = L^{-1} C_S L^{-\top}$, the first j labels change the variance of trained networks at t by
    $\sum_{i \le j} z_{it} (z_{it} F_{ii} + 2 \sum_{h < i} F_{ih} z_{ht} - 2 E_{it})$.
    """

    fit: Fit
    points: Float[Tensor, "k d"]
    half: Float[Tensor, "n k"]
    weights: Float[Tensor, "n k"]
    rest: Float[Tensor, "n k"]  # K_X W - K_XS
    factor: Float[Tensor, "k k"]
    inner: Float[Tensor, "k k"]

    @classmethod
    def of(cls, fit: Fit, points: Float[Tensor, "k d"]) -> "Further":
        """Prepare additional points; O(n² k + k³)."""
        half, weights = fit.solved(points)
        cross = fit.nngp(fit.points, points)
        rest = fit.initial @ weights - cross
        left = fit.ntk(points) - half.T @ half
        left.diagonal().add_(fit.noise)
        factor = safe_cholesky((left + left.T) / 2)
        differ = fit.nngp(points) + weights.T @ rest - cross.T @ weights
        inner = torch.linalg.solve_triangular(factor, (differ + differ.T) / 2, upper=False)
        inner = torch.linalg.solve_triangular(factor, inner.T.contiguous(), upper=False)
        return cls(fit, points, half, weights, rest, factor, inner)

    def change(self, at: BlockVariances) -> Float[Tensor, " k"]:
        """Change in the summed variance of a block after the first, the first two, ... labels."""
        left = self.fit.ntk(self.points, at.test) - self.half.T @ at.half
        differ = self.fit.nngp(self.points, at.test) + self.rest.T @ at.weights
        differ -= self.weights.T @ at.cross
        z = torch.linalg.solve_triangular(self.factor, left, upper=False)
        moved = torch.linalg.solve_triangular(self.factor, differ, upper=False)
        earlier = self.inner.tril(-1) @ z
        each = z * (self.inner.diagonal()[:, None] * z + 2 * earlier - 2 * moved)
        return each.sum(1).cumsum(0)


def blocks(test: Float[Tensor, "m d"], n: int) -> Iterator[Float[Tensor, "b d"]]:
    """Test points in blocks, so that n x b matrices have a limited size."""
    yield from torch.split(test, max(1, CELLS // max(1, n)))


def check_room(n: int) -> None:
    """Raise if the matrices of a training set do not fit in memory, and say how many rows would."""
    needed, free = 8 * _SQUARES * n * n, available_memory()
    if needed > _SHARE * free:
        most = int((_SHARE * free / (8 * _SQUARES)) ** 0.5)
        raise MemoryPlanError(
            f"{n:,} training rows need {size(needed)}, but {size(free)} are free; "
            f"audit at most {most:,} of them, drawn at random or picked by `evgp pick`"
        )
