r"""Theorem 1: how far the spread of trained networks may be from a multiple of the NTKGP's.

$$ \left| \sigma^2_{NN}(x) - \alpha \sigma^2_{NTKGP}(x) \right| \le \beta = \gamma +
   \frac{n^2 \gamma B^2}{\lambda_{min}^2} + \frac{2 n \gamma B}{\lambda_{min}}, \qquad
   \gamma = B \max(\alpha - a_-, a_+ - \alpha) $$

The paper prints n in the middle term; $\lambda_{max}(K - \alpha \Theta) \le n \gamma$ makes it n².
All that the proof asks of $\gamma$ is $|K - \alpha \Theta| \le \gamma$ for every pair of points;
where $a_-$ and $a_+$ are infinite, as with one hidden layer and points that lie opposite each
other, it is the largest $|K - \alpha \Theta|$ among the points.
"""

from dataclasses import dataclass
from math import inf, isfinite

import torch

from evgp._checks import instance, number
from evgp._errors import PoolError
from evgp._typing import Array
from evgp.kernels import NNGP, NTK
from evgp.nets import Network
from evgp.posterior import ntkgp, trained
from evgp.theory._given import least_eigenvalue, network_of, points
from evgp.theory.ratio import Ratio, measured_ratio


@dataclass(frozen=True)
class Spread:
    """The constants of the theorem, its bound, and what it bounds, on given points.

    `worst` is the largest difference that really occurs at the test points, and `prior` the mean
    prior variance of trained networks there: a `beta` above it says nothing.
    """

    ratio: Ratio
    alpha: float
    gamma: float
    beta: float
    worst: float
    prior: float

    @property
    def vacuous(self) -> bool:
        """Is the bound larger than what there is to bound?"""
        return not self.beta < self.prior


def spread_bound(
    network: Network,
    x: Array,
    x_test: Array,
    *,
    ratio: Ratio | None = None,
    alpha: float | None = None,
) -> Spread:
    """The theorem on labelled points x and test points, with what it bounds beside it.

    `ratio` is that of all the points unless given (such as `ratio_bound`), `alpha` its middle,
    which is the best choice; where the ratio is infinite, the slope of K over Theta through zero
    by least squares. O(n³ + n² m).

    >>> from evgp import mlp
    >>> x = torch.eye(4, dtype=torch.float64)
    >>> made = spread_bound(mlp(), x[:2], x[2:])
    >>> made.worst < made.beta
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
    r"""Bounds on the fall of variance of trained networks over that of the NTKGP, at test points.

    $$ \frac{2 a_- \lambda_{min}}{B} - \frac{a_+ B}{\lambda_{min}} \le
       \frac{\alpha_{EV,NN}}{\alpha_{EV,NTKGP}} \le \frac{2 a_+ B}{\lambda_{min}} $$

    with B the largest sum of a row of $|\Theta_X|$. The constants must hold between x and the test
    points too: they are measured on both together, or `ratio` is given, as by `ratio_bound` for all
    inputs of some sizes. The upper bound is proved; the lower one uses an inequality that holds for
    equal vectors only, so it is unproved, though no case against it is known.

    >>> from evgp import mlp
    >>> x = torch.eye(4, dtype=torch.float64)
    >>> [round(one, 2) for one in gain_ratio(mlp(), x[:2], x[2:])]
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
                "the test points too; give x_test, or ratio=ratio_bound(network, sizes)"
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
