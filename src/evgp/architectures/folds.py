r"""What a trained network would lose on labels that it did not see: in closed form, many at once.

$$ \hat\alpha_M = \frac{1}{|T|} \sum_{t \in T} \left[ (y_t - \mu_{NN}(t))^2 + \sigma^2_{NN}(t)
   \right], \qquad \mu_{NN} = G y_S, \quad G = \Theta_{TS} (\Theta_S + s I)^{-1} $$

with $\sigma^2_{NN} = K_T + G K_S G^\top - 2 G K_{ST}$ on the diagonal (Lee et al. 2019). The paper
has half the sum over T in place of the mean, which ranks networks in the same way.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from evgp._linalg import JITTER
from evgp._machine import available_memory
from evgp.kernels import NNGP, NTK
from evgp.nets import Network


@dataclass(frozen=True)
class Losses:
    """Of one network on each fold: the error of the mean prediction, and the spread around it.

    Both are means over the points left out, summed over outputs.
    """

    fit: Float[Tensor, " f"]
    spread: Float[Tensor, " f"]

    @property
    def total(self) -> Float[Tensor, " f"]:
        """The expected squared error of one trained network."""
        return self.fit + self.spread


def split(n: int, folds: int, kappa: float, seed: int) -> Int[Tensor, "f n"]:
    """For each fold an order of all points, of which the first are kept and the last left out.

    >>> split(5, folds=2, kappa=0.4, seed=0).shape
    torch.Size([2, 5])
    """
    random = np.random.default_rng(seed)
    return torch.from_numpy(np.stack([random.permutation(n) for _ in range(folds)]))


def losses(
    network: Network,
    x: Float[Tensor, " n *d"],
    y: Float[Tensor, "n o"],
    orders: Int[Tensor, "f n"],
    left_out: int,
    *,
    noise: float = 1e-4,
    memory: int | None = None,
) -> Losses:
    """Fit and spread on every fold: kernels once, then one batched Cholesky for many folds.

    `noise` is a fraction of the mean prior variance. O(n² (d + depth) + f n³) time; memory is two
    n x n matrices and about `memory` bytes (an eighth of what is free), in which folds are worked
    on some at a time.

    >>> from evgp import mlp
    >>> x = torch.eye(6, dtype=torch.float64)
    >>> losses(mlp(), x, x[:, :1], split(6, 3, 0.3, 0), left_out=2).total.shape
    torch.Size([3])
    """
    ntk, nngp = NTK(network)(x), NNGP(network)(x)
    scale = float(ntk.diagonal().mean())
    ntk.diagonal().add_(max(noise, JITTER) * scale)
    room = available_memory() // 8 if memory is None else memory
    step = max(1, room // max(1, 8 * 6 * len(x) ** 2))
    parts = [_fold(ntk, nngp, y, some, left_out) for some in torch.split(orders, step)]
    return Losses(*(torch.cat(part) for part in zip(*parts, strict=True)))


def _fold(
    ntk: Float[Tensor, "n n"],
    nngp: Float[Tensor, "n n"],
    y: Float[Tensor, "n o"],
    orders: Int[Tensor, "f n"],
    left_out: int,
) -> tuple[Float[Tensor, " f"], Float[Tensor, " f"]]:
    kept, out = orders[:, :-left_out], orders[:, -left_out:]
    factor = torch.linalg.cholesky(_block(ntk, kept, kept))
    weights = torch.cholesky_solve(_block(ntk, kept, out), factor)  # G transposed: f x s x t
    fit = (y[out] - weights.mT @ y[kept]).square().sum(-1).mean(-1)
    spread = _block(nngp, kept, kept) @ weights
    variance = nngp.diagonal()[out] + (weights * (spread - 2 * _block(nngp, kept, out))).sum(1)
    return fit, variance.clamp(min=0).mean(-1) * y.shape[1]


def _block(
    matrix: Float[Tensor, "n n"], rows: Int[Tensor, "f s"], columns: Int[Tensor, "f t"]
) -> Float[Tensor, "f s t"]:
    return matrix[rows[:, :, None], columns[:, None, :]]
