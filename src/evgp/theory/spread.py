r"""Theorem 1: how far the spread of trained networks may be from a multiple of the NTKGP's.

$$ \left| \sigma^2_{NN}(x) - \alpha \sigma^2_{NTKGP}(x) \right| \le \beta = \gamma +
   \frac{n^2 \gamma B^2}{\lambda_{min}^2} + \frac{2 n \gamma B}{\lambda_{min}}, \qquad
   \gamma = B \max(\alpha - a_-, a_+ - \alpha) $$

The paper prints n in the middle term; $\lambda_{max}(K - \alpha \Theta) \le n \gamma$ makes it n².
"""

from dataclasses import dataclass
from math import inf

import torch

from evgp._errors import PoolError
from evgp._linalg import as_tensor
from evgp._typing import Array
from evgp.kernels import NNGP, NTK
from evgp.nets import Network
from evgp.posterior import ntkgp, trained
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
    which is the best choice. O(n³ + n² m).

    >>> from evgp import mlp
    >>> x = torch.eye(4, dtype=torch.float64)
    >>> made = spread_bound(mlp(), x[:2], x[2:])
    >>> made.worst < made.beta
    True
    """
    points, test = as_tensor(x).double(), as_tensor(x_test).double()
    every = torch.cat([points, test])
    ratio = measured_ratio(network, every) if ratio is None else ratio
    alpha = (ratio.low + ratio.high) / 2 if alpha is None else alpha
    ntk, nngp = NTK(network), NNGP(network)
    n, theta = len(points), ntk(every)
    largest = float(theta.abs().max())
    least = float(torch.linalg.eigvalsh(theta[:n, :n])[0])
    if least <= 0:
        raise PoolError("expected labelled points that differ, got a singular kernel matrix")
    gamma = largest * max(alpha - ratio.low, ratio.high - alpha)
    per = n * largest / least
    beta = gamma * (1 + per**2 + 2 * per) if gamma < inf else inf
    zeros = torch.zeros(n, dtype=torch.float64)
    ours = trained(ntk, nngp, points, zeros, test, noise=0).variance
    process = ntkgp(ntk, points, zeros, test, noise=0).variance
    worst = float((ours - alpha * process).abs().max())
    return Spread(ratio, alpha, gamma, beta, worst, float(nngp.diag(test).mean()))


def gain_ratio(network: Network, x: Array, *, ratio: Ratio | None = None) -> tuple[float, float]:
    r"""Bounds on the fall of variance of trained networks over that of the NTKGP, at any point.

    $$ \frac{2 a_- \lambda_{min}}{B} - \frac{a_+ B}{\lambda_{min}} \le
       \frac{\alpha_{EV,NN}}{\alpha_{EV,NTKGP}} \le \frac{2 a_+ B}{\lambda_{min}} $$

    with B the largest sum of a row of $|\Theta_X|$. The upper one is proved; the lower one uses an
    inequality that holds for equal vectors only, so it is unproved, though no case against it is
    known.
    """
    points = as_tensor(x).double()
    ratio = measured_ratio(network, points) if ratio is None else ratio
    theta = NTK(network)(points)
    largest = float(theta.abs().sum(1).max())
    least = float(torch.linalg.eigvalsh(theta)[0])
    high = 2 * ratio.high * largest / least
    return 2 * ratio.low * least / largest - ratio.high * largest / least, high
