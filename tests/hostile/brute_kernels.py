"""Kernels of infinitely wide networks in plain NumPy, straight from the formulas."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import erf

Array = np.ndarray


@dataclass(frozen=True)
class Net:
    """A fully connected network in NTK parametrisation; `slope` is that of leaky_relu."""

    depth: int = 2
    activation: str = "relu"
    w_std: float = 1.0
    b_std: float = 0.1
    slope: float = 0.1


def kernels(net: Net, x1: Array, x2: Array) -> tuple[Array, Array]:
    """NNGP and NTK between the rows of two arrays, by the recursion over layers."""
    a, b = x1.reshape(len(x1), -1), x2.reshape(len(x2), -1)
    same = (a[:, None] == b[None]).all(2)  # a point with its copy has correlation 1, not nearly 1
    w2, b2 = net.w_std**2, net.b_std**2
    v1, v2 = (np.square(item).mean(1) * w2 + b2 for item in (a, b))
    cov = np.where(same, v1[:, None], a @ b.T / a.shape[1] * w2 + b2)
    tangent = cov
    for _ in range(net.depth):
        cov, slopes = dual(net, cov, v1[:, None], v2[None])
        v1, v2 = (dual(net, v, v, v)[0] * w2 + b2 for v in (v1, v2))
        cov = np.where(same, v1[:, None], cov * w2 + b2)
        tangent = cov + w2 * slopes * tangent
    return cov, tangent


def dual(net: Net, k: Array, v1: Array, v2: Array) -> tuple[Array, Array]:
    """E f(u) f(u') and E f'(u) f'(u') of a Gaussian pair with these variances and covariance."""
    if net.activation == "identity":
        return k, np.ones_like(k)
    size = np.sqrt(v1 * v2)
    rest = np.maximum((size - k) * (size + k), 0)  # v v' - k^2
    if net.activation == "erf":
        inner = (1 + 2 * v1) * (1 + 2 * v2)
        slopes = 4 / np.pi / np.sqrt(1 + 2 * v1 + 2 * v2 + 4 * rest)
        return 2 / np.pi * np.arcsin(2 * k / np.sqrt(inner)), slopes
    if net.activation == "sin":
        # sin u sin u' = (cos(u - u') - cos(u + u')) / 2, and E cos z = exp(-var(z) / 2)
        less, more = np.exp(-(v1 + v2 - 2 * k) / 2), np.exp(-(v1 + v2 + 2 * k) / 2)
        return (less - more) / 2, (less + more) / 2
    if net.activation == "gelu":
        p = (1 + v1) * (1 + v2)
        d = 1 + v1 + v2 + rest
        both = 0.25 + np.arcsin(k / np.sqrt(p)) / (2 * np.pi)
        value = k * both + (v1 * v2 * d + k * k) / (2 * np.pi * p * np.sqrt(d))
        slopes = k / (2 * np.pi * np.sqrt(d)) * (1 / (1 + v1) + 1 / (1 + v2) + 1 / d)
        return value, both + slopes
    # f(z) = a z + (1 - a) relu(z), and E u relu(u') = k / 2
    a = 0.0 if net.activation == "relu" else net.slope
    angle = np.arctan2(np.sqrt(rest), k)
    angle = np.where(size > 0, angle, np.pi / 2)
    relu = (size * np.sin(angle) + (np.pi - angle) * k) / (2 * np.pi)
    step = (np.pi - angle) / (2 * np.pi)
    return a * k + (1 - a) ** 2 * relu, a + (1 - a) ** 2 * step


def series(net: Net, k: Array, v1: Array, v2: Array, terms: int = 400) -> tuple[Array, Array]:
    """The same expectations by Hermite series, which knows nothing but the activation itself.

    E f(u) f(u') = sum_j a_j(v) a_j(v') rho^j with a_j(v) = E f(sqrt(v) z) h_j(z), by the
    trapezoidal rule. For smooth activations; vectors of variances, a matrix of covariances.
    """
    z = np.linspace(-13, 13, 4001)
    root = np.exp(-z * z / 4) / (2 * np.pi) ** 0.25 * np.sqrt(z[1] - z[0])
    basis = [root, z * root]
    for j in range(2, terms):
        basis.append((z * basis[-1] - np.sqrt(j - 1) * basis[-2]) / np.sqrt(j))
    hermite = np.array(basis)
    rho = k / np.sqrt(v1[:, None] * v2)
    out = []
    for f in smooth(net):
        first, two = (f(np.sqrt(v)[:, None] * z) * root @ hermite.T for v in (v1, v2))
        total = np.zeros_like(k)
        for j in reversed(range(terms)):
            total = total * rho + first[:, j, None] * two[:, j]
        out.append(total)
    return out[0], out[1]


def smooth(net: Net) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
    """An activation without a kink, and its derivative."""

    def bell(z: Array) -> Array:
        return np.exp(-z * z / 2) / np.sqrt(2 * np.pi)

    def below(z: Array) -> Array:
        return (1 + erf(z / np.sqrt(2))) / 2

    return {
        "erf": (erf, lambda z: 2 / np.sqrt(np.pi) * np.exp(-z * z)),
        "sin": (np.sin, np.cos),
        "gelu": (lambda z: z * below(z), lambda z: below(z) + z * bell(z)),
        "identity": (lambda z: z, np.ones_like),
    }[net.activation]
