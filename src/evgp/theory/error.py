r"""Theorem 2: the error of a trained network, in units of the NTKGP's deviation.

$$ |f^*(x) - f(x; \theta_\infty)| \le \zeta\, \sigma_{NTKGP}(x), \qquad
   \zeta = B + \frac{R}{\sqrt s} \sqrt{2 \log \tfrac{2}{\delta}} + \sqrt{2 \log \tfrac1\delta} $$

with probability $1 - 2\delta$ at any input x, for a function of RKHS norm B in the NTK, noise that
is R-sub-Gaussian, and networks trained with the ridge s, which $\sigma$ carries too (Vakili et al.
2021; Hemachandra et al. 2023). The paper has $\lambda$ for $\sqrt s$, which for its mean loss is
$s = n \lambda$, and $\log 1/\delta$ in the second term, whose two sides need $2/\delta$. Without a
ridge it says something only if labels have no noise.
"""

from math import inf, log, sqrt

import torch

from evgp._checks import number
from evgp._errors import PoolError
from evgp._linalg import JITTER, as_tensor, safe_cholesky
from evgp._typing import Array
from evgp.kernels import Kernel, Wide, checked
from evgp.theory._given import points


def error_factor(
    norm: float, *, noise: float = 0.0, ridge: float = 0.0, delta: float = 0.05
) -> float:
    r"""$\zeta$: what to multiply $\sigma_{NTKGP}$ by; `noise` is R, `ridge` the absolute s.

    >>> round(error_factor(1.0, noise=0.1, ridge=0.01, delta=0.05), 3)
    6.164
    """
    delta = number(delta, "delta", 0, 1, above=True, below=True)
    norm, noise, ridge = number(norm, "norm"), number(noise, "noise"), number(ridge, "ridge")
    if noise == 0:
        second = 0.0
    else:
        second = inf if ridge == 0 else noise / sqrt(ridge) * sqrt(2 * log(2 / delta))
    return norm + second + sqrt(2 * log(1 / delta))


def rkhs_norm(kernel: Kernel, x: Array, y: Array, *, noise: float = 0.0) -> float:
    r"""An estimate of B from labels: the norm of what fits them, $\sqrt{a^\top \Theta a}$.

    $a = (\Theta + s I)^{-1} y$ with `noise` s absolute; without noise that is the interpolant's
    $\sqrt{y^\top \Theta^{-1} y}$, the least norm of any function through the labels, and so below
    the true B. O(n³).

    >>> from evgp import NTK, mlp
    >>> x = torch.eye(3, dtype=torch.float64)
    >>> rkhs_norm(NTK(mlp()), x, torch.zeros(3))
    0.0
    """
    given, targets = points(x, "x"), as_tensor(y, "y").double()
    if targets.ndim not in (1, 2) or len(targets) != len(given) or targets.numel() == 0:
        raise PoolError(
            f"expected y of {len(given)} labels, one a row of x; got shape {tuple(targets.shape)}"
        )
    if not bool(torch.isfinite(targets).all()):
        raise PoolError("expected finite labels in y, got NaN or inf; leave those rows out")
    noise = number(noise, "noise")
    targets, theta = targets.reshape(len(given), -1), Wide(checked(kernel))(given)
    least = JITTER * float(theta.diagonal().mean())
    weights = torch.cholesky_solve(targets, safe_cholesky(theta, max(noise, least)))
    return float((weights * (theta @ weights)).sum().clamp(min=0).sqrt())
