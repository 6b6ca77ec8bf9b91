r"""The expected loss of trained networks on held-out labels, in closed form.

$$ \hat\alpha_M = \frac{1}{|T|} \sum_{t \in T} \left[ (y_t - \mu_{NN}(t))^2 + \sigma^2_{NN}(t)
   \right], \qquad \mu_{NN} = G y_S, \quad G = \Theta_{TS} (\Theta_S + s I)^{-1} $$

with $\sigma^2_{NN} = K_T + G K_S G^\top - 2 G K_{ST}$ on the diagonal (Lee et al. 2019). The paper
has half the sum over T in place of the mean, which ranks networks in the same way.

No system of the size of S is solved for a fold. With $B = (\Theta + s I)^{-1}$ of all labels,
computed once, $B_T^{-1} B_{TS} = -G$, so that with $W = B_T^{-1}$, of the size of T,

$$ y_T - \mu_{NN} = W (B y)_T, \qquad \sigma^2_{NN} = \mathrm{diag}\, W (B K B)_T W. $$
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from evgp._linalg import JITTER, safe_cholesky
from evgp._machine import available_memory
from evgp.kernels import NNGP, NTK, Kernel
from evgp.nets import Network


@dataclass(frozen=True)
class Losses:
    """The error of the mean prediction, and the spread around it, of one network on each fold.

    Both are means over the held-out points, summed over outputs.
    """

    fit: Float[Tensor, " f"]
    spread: Float[Tensor, " f"]

    @property
    def total(self) -> Float[Tensor, " f"]:
        """The expected squared error of one trained network."""
        return self.fit + self.spread


def split(n: int, folds: int, seed: int) -> Int[Tensor, "f n"]:
    """A random order of all points for each fold; the last ones are held out.

    >>> split(5, folds=2, seed=0).shape
    torch.Size([2, 5])
    """
    random = np.random.default_rng(seed)
    return torch.from_numpy(np.stack([random.permutation(n) for _ in range(folds)]))


def losses(
    network: Network | Kernel,
    x: Float[Tensor, " n *d"],
    y: Float[Tensor, "n o"],
    orders: Int[Tensor, "f n"],
    left_out: int,
    *,
    noise: float = 1e-4,
    memory: int | None = None,
) -> Losses:
    """Fit and spread on every fold: one inverse for all, then batched Cholesky of held-out blocks.

    For a kernel without a network, only the fit is right. `noise` is a fraction of the mean prior
    variance. O(n² (d + depth) + n³ + f t³) time for f folds of t points; memory for five n x n
    matrices and about `memory` bytes (by default an eighth of what is free), which limits how many
    folds are processed at a time.

    >>> from evgp import mlp
    >>> x = torch.eye(6, dtype=torch.float64)
    >>> losses(mlp(), x, x[:, :1], split(6, 3, 0), left_out=2).total.shape
    torch.Size([3])
    """
    kernels = (NTK(network), NNGP(network)) if isinstance(network, Network) else (network, network)
    ntk, nngp = (kernel(x) for kernel in kernels)
    scale = float(ntk.diagonal().mean())
    factor = safe_cholesky(ntk, max(noise, JITTER) * scale)
    inverse = torch.cholesky_inverse(factor)
    middle = inverse @ nngp @ inverse
    solved = torch.cholesky_solve(y, factor)
    room = available_memory() // 8 if memory is None else memory
    step = max(1, room // max(1, 8 * 6 * left_out**2))
    parts = [
        _fold(inverse, middle, solved, rows) for rows in torch.split(orders[:, -left_out:], step)
    ]
    return Losses(*(torch.cat(part) for part in zip(*parts, strict=True)))


def _fold(
    inverse: Float[Tensor, "n n"],
    middle: Float[Tensor, "n n"],
    solved: Float[Tensor, "n o"],
    out: Int[Tensor, "f t"],
) -> tuple[Float[Tensor, " f"], Float[Tensor, " f"]]:
    weights = torch.cholesky_inverse(torch.linalg.cholesky(_block(inverse, out)))
    fit = (weights @ solved[out]).square().sum(-1).mean(-1)
    variance = (weights @ _block(middle, out)).mul_(weights).sum(-1).clamp(min=0)
    return fit, variance.mean(-1) * solved.shape[1]


def _block(matrix: Float[Tensor, "n n"], rows: Int[Tensor, "f t"]) -> Float[Tensor, "f t t"]:
    return matrix[rows[:, :, None], rows[:, None, :]]
