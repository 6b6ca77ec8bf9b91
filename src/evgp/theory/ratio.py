r"""How far the two kernels of a ReLU network are from proportional: $a_- \le K/\Theta \le a_+$.

Theorem 1 of the paper rests on these constants. Ours come from interval arithmetic on the
recursion itself, so they hold for any depth, weights and biases; those of the paper are here too,
for comparison. With $K^{(1)} = \sigma_w^2 \langle x, x' \rangle / d + \sigma_b^2$,

$$ \frac{\Theta}{K} = 1 + \sum_{l=1}^{L} \frac{K^{(l)}}{K^{(L+1)}} \prod_{j=l}^{L} \sigma_w^2
   \dot K^{(j)} $$

in which all but the first term are positive; the first is negative for opposite points,
which the printed lower bound with bias overlooks. With one hidden layer that term outweighs
the others there, unless biases are as large as weights: $\Theta$ changes its sign, and no finite
constants exist.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import acos, inf, nan, pi, sqrt

import torch
from jaxtyping import Float
from torch import Tensor

from evgp._checks import flag, integer, number
from evgp._typing import Array
from evgp.errors import NetworkError
from evgp.kernels import NNGP, NTK
from evgp.nets import Dense, LeakyRelu, Network
from evgp.theory._inputs import network_of, points

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
    inputs, network = points(x, "x"), network_of(network)
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
    _relu(network_of(network))
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
