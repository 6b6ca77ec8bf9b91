r"""The paper's two theorems: the spread of trained networks, and their error.

Theorem 1: how far the spread of trained networks may be from a multiple of the NTKGP's.

$$ \left| \sigma^2_{NN}(x) - \alpha \sigma^2_{NTKGP}(x) \right| \le \beta = \gamma +
   \frac{n^2 \gamma B^2}{\lambda_{min}^2} + \frac{2 n \gamma B}{\lambda_{min}}, \qquad
   \gamma = B \max(\alpha - a_-, a_+ - \alpha) $$

The paper prints n in the middle term; $\lambda_{max}(K - \alpha \Theta) \le n \gamma$ makes it n².
All that the proof asks of $\gamma$ is $|K - \alpha \Theta| \le \gamma$ for every pair of points;
where $a_-$ and $a_+$ are infinite, as with one hidden layer and points that are opposite each
other, it is the largest $|K - \alpha \Theta|$ among the points.

Theorem 2: the error of a trained network, in units of the NTKGP's standard deviation.

$$ |f^*(x) - f(x; \theta_\infty)| \le \zeta\, \sigma_{NTKGP}(x), \qquad
   \zeta = B + \frac{R}{\sqrt s} \sqrt{2 \log \tfrac{2}{\delta}} + \sqrt{2 \log \tfrac1\delta} $$

with probability $1 - 2\delta$ at any input x, for a function of RKHS norm B in the NTK, noise that
is R-sub-Gaussian, and networks trained with the ridge s, which $\sigma$ carries too (Vakili et al.
2021; Hemachandra et al. 2023). The paper has $\lambda$ for $\sqrt s$, which for its mean loss is
$s = n \lambda$, and $\log 1/\delta$ in the second term, whose two sides need $2/\delta$. Without a
ridge it says something only if labels have no noise.
"""

from dataclasses import dataclass
from math import inf, isfinite, log, sqrt

import torch

from evgp._checks import instance, number
from evgp._linalg import JITTER, as_tensor, safe_cholesky
from evgp._typing import Array
from evgp.errors import PoolError
from evgp.kernels import NNGP, NTK, Kernel, Wide, checked
from evgp.nets import Network
from evgp.posterior import ntkgp, trained
from evgp.theory._inputs import least_eigenvalue, network_of, points
from evgp.theory.ratio import Ratio, measured_ratio


@dataclass(frozen=True)
class Spread:
    """The constants of theorem 1, its bound, and the difference that it bounds, for some points.

    `worst` is the largest difference that occurs at the test points, and `prior` the mean
    prior variance of trained networks there: a larger `beta` says nothing.
    """

    ratio: Ratio
    alpha: float
    gamma: float
    beta: float
    worst: float
    prior: float

    @property
    def vacuous(self) -> bool:
        """Whether the bound is larger than the prior variance."""
        return not self.beta < self.prior


def spread_bound(
    network: Network,
    x: Array,
    x_test: Array,
    *,
    ratio: Ratio | None = None,
    alpha: float | None = None,
) -> Spread:
    """Theorem 1 for labelled points x and test points, with the true difference.

    `ratio` is by default that of all the points (else that of `ratio_bound`), `alpha` its middle,
    which is the best choice; if the ratio is infinite, the slope of K over Theta through zero
    by least squares. O(n³ + n² m).

    >>> from evgp import mlp
    >>> x = torch.eye(4, dtype=torch.float64)
    >>> spread = spread_bound(mlp(), x[:2], x[2:])
    >>> spread.worst < spread.beta
    True
    """
    known, network = points(x, "x"), network_of(network)
    test = points(x_test, "x_test", known.shape[1])
    _check_ratio(ratio)
    every = torch.cat([known, test])
    ratio = measured_ratio(network, every) if ratio is None else ratio
    ntk, nngp = NTK(network), NNGP(network)
    n, theta, k = len(known), ntk(every), nngp(every)
    finite = isfinite(ratio.low) and isfinite(ratio.high)
    if alpha is None:
        slope = float((k * theta).sum() / theta.square().sum())
        alpha = (ratio.low + ratio.high) / 2 if finite else slope
    alpha = number(alpha, "alpha", -inf, inf)
    largest = float(theta.abs().max())
    least = least_eigenvalue(theta[:n, :n])
    if finite:
        gamma = largest * max(alpha - ratio.low, ratio.high - alpha)
    else:
        gamma = float((k - alpha * theta).abs().max())
    per = n * largest / least
    beta = gamma * (1 + per**2 + 2 * per)
    zeros = torch.zeros(n, dtype=torch.float64)
    ours = trained(ntk, nngp, known, zeros, test, noise=0).variance
    process = ntkgp(ntk, known, zeros, test, noise=0).variance
    worst = float((ours - alpha * process).abs().max())
    return Spread(ratio, alpha, gamma, beta, worst, float(nngp.diag(test).mean()))


def gain_ratio(
    network: Network, x: Array, x_test: Array | None = None, *, ratio: Ratio | None = None
) -> tuple[float, float]:
    r"""Bounds on the ratio of the variance reductions of trained networks and of the NTKGP.

    $$ \frac{2 a_- \lambda_{min}}{B} - \frac{a_+ B}{\lambda_{min}} \le
       \frac{\alpha_{EV,NN}}{\alpha_{EV,NTKGP}} \le \frac{2 a_+ B}{\lambda_{min}} $$

    with B the largest sum of a row of $|\Theta_X|$. The constants must hold between x and the test
    points too: they are measured on both together, unless `ratio` is passed, for example that of
    `ratio_bound` for all inputs of some sizes. The upper bound is proved; the lower one uses an
    inequality that holds for equal vectors only, so it is unproved; no counterexample is known.

    >>> from evgp import mlp
    >>> x = torch.eye(4, dtype=torch.float64)
    >>> [round(bound, 2) for bound in gain_ratio(mlp(), x[:2], x[2:])]
    [-0.96, 2.72]
    """
    known, network = points(x, "x"), network_of(network)
    _check_ratio(ratio)
    if x_test is not None:
        test = points(x_test, "x_test", known.shape[1])
    if ratio is None:
        if x_test is None:
            raise PoolError(
                "expected test points or a ratio, got neither: a- and a+ must hold between x and "
                "the test points too; pass x_test, or ratio=ratio_bound(network, sizes)"
            )
        ratio = measured_ratio(network, torch.cat([known, test]))
    theta = NTK(network)(known)
    largest, least = float(theta.abs().sum(1).max()), least_eigenvalue(theta)
    most = max(abs(ratio.low), abs(ratio.high))
    high = 2 * most * largest / least
    first = 2 * ratio.low * least / largest if ratio.low >= 0 else -high
    return first - high / 2, high


def _check_ratio(ratio: object) -> None:
    if ratio is not None:
        instance(ratio, "ratio", Ratio, "evgp.theory.ratio_bound(network)")


def error_factor(
    norm: float, *, noise: float = 0.0, ridge: float = 0.0, delta: float = 0.05
) -> float:
    r"""$\zeta$, the factor of $\sigma_{NTKGP}$; `noise` is R, `ridge` the absolute s.

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
    labelled, targets = points(x, "x"), as_tensor(y, "y").double()
    if targets.ndim not in (1, 2) or len(targets) != len(labelled) or targets.numel() == 0:
        raise PoolError(
            f"expected {len(labelled)} labels in y, one per row of x; got {tuple(targets.shape)}"
        )
    if not bool(torch.isfinite(targets).all()):
        raise PoolError("expected finite labels in y, got NaN or inf; drop those rows")
    noise = number(noise, "noise")
    targets, theta = targets.reshape(len(labelled), -1), Wide(checked(kernel))(labelled)
    least = JITTER * float(theta.diagonal().mean())
    weights = torch.cholesky_solve(targets, safe_cholesky(theta, max(noise, least)))
    return float((weights * (theta @ weights)).sum().clamp(min=0).sqrt())
