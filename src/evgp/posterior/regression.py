r"""Predictions in closed form: the NTKGP, and networks trained to convergence.

With $G = \Theta_{TX} (\Theta_X + s I)^{-1}$ both have the mean $G y$. The Gaussian process with
the NTK as covariance has $\Theta_T - G \Theta_{XT}$; networks of infinite width, trained by
gradient descent from random initialisations, have
$K_T + G K_X G^\top - G K_{XT} - K_{TX} G^\top$ (Lee et al. 2019), which is never larger.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from evgp._checks import finite, flag, noise_of
from evgp._checks import points as checked_points
from evgp._defaults import NOISE
from evgp._linalg import JITTER, as_tensor, safe_cholesky
from evgp._typing import Array
from evgp.errors import PoolError
from evgp.kernels import Kernel, Wide, checked


@dataclass(frozen=True, eq=False)
class Prediction:
    """A prediction at m test points.

    Attributes
    ----------
    mean : tensor, shape (m, o)
    variance : tensor, shape (m,)
    covariance : tensor, shape (m, m), optional
    """

    mean: Float[Tensor, "m o"]
    variance: Float[Tensor, " m"]
    covariance: Float[Tensor, "m m"] | None = None


def ntkgp(
    kernel: Kernel, x: Array, y: Array, x_test: Array, *, noise: float = NOISE, full: bool = False
) -> Prediction:
    r"""Gaussian process regression: $\mu = G y$, $\Sigma = \Theta_T - G \Theta_{XT}$.

    O(l³ + l² m) time; l x m memory, and m x m with `full`.

    Parameters
    ----------
    kernel : Kernel
    x : array, shape (l, ...)
        Labelled points.
    y : array, shape (l,) or (l, o)
        Their labels.
    x_test : array, shape (m, ...)
        Where to predict.
    noise : float
        Variance of a label, as a fraction of the mean prior variance over the test points.
    full : bool
        Whether to compute the whole covariance too.

    Returns
    -------
    Prediction

    Examples
    --------
    >>> from evgp import NTK, mlp
    >>> x = torch.eye(2, dtype=torch.float64)
    >>> ntkgp(NTK(mlp()), x, torch.tensor([1.0, 2.0]), x).mean.squeeze().round(decimals=3).tolist()
    [1.0, 2.0]
    """
    points, targets, test = _inputs(x, y, x_test)
    kernel = Wide(checked(kernel))
    flag(full, "full")
    factor, solved = _solve(kernel, points, test, noise)
    half = torch.linalg.solve_triangular(factor, targets, upper=False)
    variance = (kernel.diag(test) - solved.square().sum(0)).clamp(min=0)
    covariance = kernel(test) - solved.T @ solved if full else None
    return Prediction(solved.T @ half, variance, covariance)


def trained(
    ntk: Kernel,
    nngp: Kernel,
    x: Array,
    y: Array,
    x_test: Array,
    *,
    noise: float = NOISE,
    full: bool = False,
) -> Prediction:
    r"""Networks trained to convergence from random initialisations: $\mu_{NN}$, $\Sigma_{NN}$.

    Costs as much as `ntkgp`, with two kernels.

    Parameters
    ----------
    ntk, nngp : Kernel
        Kernels of the network.
    x : array, shape (l, ...)
        Labelled points.
    y : array, shape (l,) or (l, o)
        Their labels.
    x_test : array, shape (m, ...)
        Where to predict.
    noise : float
        Variance of a label, as a fraction of the mean prior variance over the test points.
    full : bool
        Whether to compute the whole covariance too.

    Returns
    -------
    Prediction

    Examples
    --------
    >>> from evgp import NNGP, NTK, mlp
    >>> x = torch.eye(2, dtype=torch.float64)
    >>> trained(NTK(mlp()), NNGP(mlp()), x, torch.zeros(2), x).variance.shape
    torch.Size([2])
    """
    points, targets, test = _inputs(x, y, x_test)
    ntk, nngp = Wide(checked(ntk)), Wide(checked(nngp))
    flag(full, "full")
    factor, solved = _solve(ntk, points, test, noise)
    weights = torch.linalg.solve_triangular(factor.T, solved, upper=True)  # G transposed
    prior, cross = nngp(points), nngp(points, test)
    spread = prior @ weights
    variance = nngp.diag(test) + (weights * (spread - 2 * cross)).sum(0)
    covariance = None
    if full:
        mixed = weights.T @ cross
        covariance = nngp(test) + weights.T @ spread - mixed - mixed.T
    return Prediction(weights.T @ targets, variance.clamp(min=0), covariance)


def _inputs(x: Array, y: Array, x_test: Array) -> tuple[Tensor, Tensor, Tensor]:
    points = checked_points(x, "x")
    test = checked_points(x_test, "x_test", columns=tuple(points.shape[1:]))
    targets = as_tensor(y, "y").double()
    if targets.ndim == 1:
        targets = targets[:, None]
    if targets.ndim != 2 or len(points) != len(targets):
        raise PoolError(
            f"expected as many labels as labelled points, {len(points)}; got y of shape "
            f"{tuple(targets.shape)}"
        )
    return points, finite(targets, "y"), test


def _solve(
    kernel: Kernel, points: Tensor, test: Tensor, noise: float
) -> tuple[Float[Tensor, "l l"], Float[Tensor, "l m"]]:
    """The Cholesky factor L of the labelled covariance, and L^-1 of that with the test points."""
    scale = float(kernel.diag(test).mean())
    factor = safe_cholesky(kernel(points), max(noise_of(noise), JITTER) * scale)
    return factor, torch.linalg.solve_triangular(factor, kernel(points, test), upper=False)
