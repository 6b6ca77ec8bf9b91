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
2021; Hemachandra et al. 2023). The paper has $\lambda$ for $\sqrt s$, which for its mean loss is $s
= n \lambda$, and $\log 1/\delta$ in the second term, whose two sides need $2/\delta$. Without a
ridge it is meaningful only if labels have no noise.

Theorem 1 rests on bounds of the ratio of a ReLU network's kernels, $a_- \le K/\Theta \le a_+$. Ours
come from interval arithmetic on the recursion itself, so they hold for any depth, weights and
biases; those of the paper are here too, for comparison. With
$K^{(1)} = \sigma_w^2 \langle x, x' \rangle / d + \sigma_b^2$,

$$ \frac{\Theta}{K} = 1 + \sum_{l=1}^{L} \frac{K^{(l)}}{K^{(L+1)}} \prod_{j=l}^{L} \sigma_w^2
   \dot K^{(j)} $$

in which all but the first term are positive; the first is negative for opposite points,
which the printed lower bound with bias overlooks. With one hidden layer that term outweighs
the others there, unless biases are as large as weights: $\Theta$ changes its sign, and no finite
constants exist.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import acos, inf, isfinite, log, nan, pi, sqrt

import torch
from jaxtyping import Float
from torch import Tensor

from evgp import _checks
from evgp._checks import flag, instance, integer, number
from evgp._linalg import JITTER, as_tensor, safe_cholesky
from evgp._typing import Array
from evgp.errors import BadArgument, NetworkError, PoolError
from evgp.kernels import NNGP, NTK, Kernel, Wide, checked
from evgp.nets import Dense, LeakyRelu, Network
from evgp.posterior import ntkgp, trained

# Eigenvalues are accurate to about this share of the largest, times the number of points.
_ROUNDING = 2.3e-16


def _points(x: Array, name: str, columns: int | None = None) -> Float[Tensor, "n d"]:
    """Check for finite rows of numbers with this many columns."""
    rows = _checks.points(x, name)
    if rows.ndim != 2:
        raise BadArgument.of(PoolError)(name, "of shape (rows, columns)", str(tuple(rows.shape)))
    if columns is not None and rows.shape[1] != columns:
        raise BadArgument.of(PoolError)(
            name, f"with {columns} columns, like x", str(rows.shape[1]), "give both the same"
        )
    return rows


def _network_of(network: object) -> Network:
    """A network with exact kernels, checked."""
    return instance(network, "a network", Network, "evgp.mlp()", error=NetworkError)


def _least_eigenvalue(theta: Float[Tensor, "n n"]) -> float:
    """The smallest eigenvalue, checked to be above 0 by more than rounding."""
    values = torch.linalg.eigvalsh(theta)
    if float(values[0]) <= len(values) * _ROUNDING * float(values[-1]):
        raise PoolError(
            "expected labelled points that differ, got a singular kernel matrix; drop copies"
        )
    return float(values[0])


_ANGLES, _SIZES = 4000, 24  # cells of the correlation, and of each of both variances
Interval = tuple[Float[Tensor, " c"], Float[Tensor, " c"]]


@dataclass(frozen=True)
class Ratio:
    """Bounds on K / Theta; both are infinite where Theta may change its sign."""

    low: float
    high: float


def measured_ratio(network: Network, x: Array) -> Ratio:
    """The smallest and largest K / Theta over all pairs of points: O(n² (d + depth)).

    >>> from evgp import mlp
    >>> ratio = measured_ratio(mlp(b_std=0.0), torch.eye(3, dtype=torch.float64))
    >>> round(ratio.low, 3), round(ratio.high, 3)
    (0.333, 0.72)
    """
    inputs, network = _points(x, "x"), _network_of(network)
    k, theta = NNGP(network)(inputs), NTK(network)(inputs)
    if bool((theta <= 0).any()):
        return Ratio(-inf, inf)
    ratios = k / theta
    return Ratio(float(ratios.min()), float(ratios.max()))


def ratio_bound(network: Network, sizes: tuple[float, float] = (1.0, 1.0)) -> Ratio:
    """Bounds for all pairs of inputs with mean squares within `sizes`, by interval arithmetic.

    Without bias, sizes do not matter. Cells of angle and size are enclosed one by one; a bound
    holds however coarse they are, and is close if they are fine. With one hidden layer and
    small biases Theta changes its sign for points that are opposite each other: both ends are
    infinite.

    >>> from evgp import mlp
    >>> ratio = ratio_bound(mlp(b_std=0.0))
    >>> round(ratio.low, 3), round(ratio.high, 3)
    (0.333, 1.266)
    """
    _relu(_network_of(network))
    pair = sizes if isinstance(sizes, Sequence) and len(sizes) == 2 else (nan, nan)
    low, high = (
        number(size, "sizes, two mean squares,", 0, 1e100, above=True, error=NetworkError)
        for size in pair
    )
    if low > high:
        raise NetworkError(f"expected the smaller mean square first, got {low} and {high}")
    edges = torch.linspace(-1, 1, _ANGLES + 1, dtype=torch.float64)
    low, high = (low, high) if _biased(network) else (1.0, 1.0)
    cells = 1 if high == low else _SIZES
    grid = torch.logspace(0, 1, cells + 1, base=high / low, dtype=torch.float64) * low
    least, most = inf, -inf
    for i in range(cells):
        for j in range(i, cells):  # the kernels are symmetric
            first = (float(grid[i]), float(grid[i + 1]))
            second = (float(grid[j]), float(grid[j + 1]))
            below, above = _enclosed(network, edges, first, second)
            least, most = min(least, below), max(most, above)
    if least < 0:
        return Ratio(-inf, inf)  # K / Theta passes through both where Theta vanishes
    if least == 0:
        return Ratio(1 / most, inf)
    return Ratio(1 / most, 1 / least)


def _enclosed(
    network: Network,
    edges: Float[Tensor, " e"],
    first: tuple[float, float],
    second: tuple[float, float],
) -> tuple[float, float]:
    """Theta / K over all cells of the correlation, for variances within two intervals."""
    inner, outer = sqrt(first[0] * second[0]), sqrt(first[1] * second[1])
    lower, upper = edges[:-1], edges[1:]
    # A covariance r sqrt(v v') is smallest at the largest variances if r is negative.
    cov: Interval = (
        torch.where(lower < 0, lower * outer, lower * inner),
        torch.where(upper < 0, upper * inner, upper * outer),
    )
    theta: Interval = (torch.zeros_like(lower), torch.zeros_like(lower))
    a, b = first, second
    for layer in network.layers:
        if isinstance(layer, Dense):
            w2, b2 = layer.w_std**2, layer.b_std**2
            cov = (cov[0] * w2 + b2, cov[1] * w2 + b2)
            theta = (cov[0] + w2 * theta[0], cov[1] + w2 * theta[1])
            a, b = ((v[0] * w2 + b2, v[1] * w2 + b2) for v in (a, b))
        else:
            cov, dot = _relu_step(cov, a, b)
            theta = _product(theta, dot)
            a, b = ((v[0] / 2, v[1] / 2) for v in (a, b))
    below = torch.where(theta[0] < 0, theta[0] / cov[0], theta[0] / cov[1])
    above = torch.where(theta[1] < 0, theta[1] / cov[1], theta[1] / cov[0])
    return float(below.min()), float(above.max())


def _relu_step(
    cov: Interval, a: tuple[float, float], b: tuple[float, float]
) -> tuple[Interval, Interval]:
    r"""$E[\phi\phi]$ grows with c and both variances, $E[\phi'\phi']$ with the correlation."""
    inner, outer = sqrt(a[0] * b[0]), sqrt(a[1] * b[1])
    least = torch.where(cov[0] < 0, cov[0] / inner, cov[0] / outer).clamp(-1, 1)
    most = torch.where(cov[1] < 0, cov[1] / outer, cov[1] / inner).clamp(-1, 1)
    dot = tuple((pi - torch.acos(r)) / (2 * pi) for r in (least, most))
    ends = []
    for c, size in ((cov[0], inner), (cov[1], outer)):
        r = (c / size).clamp(-1, 1)
        ends.append(size / (2 * pi) * ((1 - r * r).sqrt() + r * (pi - torch.acos(r))))
    return (ends[0].clamp(min=0), ends[1]), (dot[0], dot[1])


def _product(theta: Interval, dot: Interval) -> Interval:
    """An interval that may be negative, times one that is not."""
    return (
        torch.where(theta[0] < 0, theta[0] * dot[1], theta[0] * dot[0]),
        torch.where(theta[1] < 0, theta[1] * dot[0], theta[1] * dot[1]),
    )


def printed_ratio(depth: int, *, bias: bool) -> tuple[float, float]:
    r"""The paper's bounds on $\Theta / K$ as printed, for ReLU scaled by $\sqrt2$ and L >= 2.

    They are for the paper's recursion, with one activation more than the network has. With bias the
    lower bound is wrong for the true kernels with two hidden layers (`docs/theory.md`).

    >>> [round(bound, 3) for bound in printed_ratio(2, bias=True)]
    [1.058, 5.976]
    """
    depth = integer(depth, "depth", 2, 10_000, why="the hidden layers", error=NetworkError)
    flag(bias, "bias", error=NetworkError)
    top = depth + 1
    if bias:
        r = {1: -1.0}
        for layer in range(2, top + 1):
            r[layer] = _rho(r[layer - 1]) * (layer - 2) / (layer - 1)
        low = 1.0
        for layer in range(1, depth + 1):
            term = _rho(r[layer]) * (layer - 1) / top
            for above in range(layer + 1, top + 1):
                term *= _slope(r[above])
            low += term
        return low, 1 + depth / _rho(r[top])
    ends = []
    for start, other in ((-1.0, 1.0), (1.0, -1.0)):
        total, scale = 0.0, _iterated(other, top)
        for layer in range(1, top + 1):
            term = _iterated(start, layer)
            for above in range(layer + 1, top + 1):
                term *= _slope(_iterated(start, above))
            total += term / scale
        ends.append(total)
    return ends[0], ends[1]


def _rho(r: float) -> float:
    return (sqrt(max(0.0, 1 - r * r)) + r * (pi - acos(max(-1.0, min(1.0, r))))) / pi


def _slope(r: float) -> float:
    return (pi - acos(max(-1.0, min(1.0, r)))) / pi


def _iterated(r: float, times: int) -> float:
    for _ in range(times):
        r = _rho(r)
    return r


def _relu(network: Network) -> None:
    for layer in network.layers:
        plain = isinstance(layer, LeakyRelu) and layer.slope == 0
        if not (plain or isinstance(layer, Dense)):
            raise NetworkError(f"expected a ReLU network for this bound, got {layer}")


def _biased(network: Network) -> bool:
    return any(isinstance(layer, Dense) and layer.b_std != 0 for layer in network.layers)


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
    known, network = _points(x, "x"), _network_of(network)
    test = _points(x_test, "x_test", known.shape[1])
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
    least = _least_eigenvalue(theta[:n, :n])
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
    known, network = _points(x, "x"), _network_of(network)
    _check_ratio(ratio)
    if x_test is not None:
        test = _points(x_test, "x_test", known.shape[1])
    if ratio is None:
        if x_test is None:
            raise PoolError(
                "expected test points or a ratio, got neither: a- and a+ must hold between x and "
                "the test points too; pass x_test, or ratio=ratio_bound(network, sizes)"
            )
        ratio = measured_ratio(network, torch.cat([known, test]))
    theta = NTK(network)(known)
    largest, least = float(theta.abs().sum(1).max()), _least_eigenvalue(theta)
    most = max(abs(ratio.low), abs(ratio.high))
    high = 2 * most * largest / least
    first = 2 * ratio.low * least / largest if ratio.low >= 0 else -high
    return first - high / 2, high


def _check_ratio(ratio: object) -> None:
    if ratio is not None:
        instance(ratio, "ratio", Ratio, "ratio_bound(network)")


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
    labelled, targets = _points(x, "x"), as_tensor(y, "y").double()
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
