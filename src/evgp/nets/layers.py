r"""Layers, each as a torch module and as a map of covariances.

A layer of infinite width maps the covariance $K(x, x')$ of its inputs to that of its outputs, and
multiplies the tangent kernel by the covariance of its derivatives $\dot K(x, x')$
(Jacot et al. 2018; Lee et al. 2019). Dual activations: Cho & Saul 2009 (ReLU), Williams 1997
(erf), Tsuchida et al. 2021 (GELU). The formulas keep their digits where points coincide.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import pi
from typing import ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from evgp._checks import keep, number
from evgp.errors import NetworkError

# Correlations this close to -1 count as -1: the points are opposite, and the difference is
# rounding, which would cost the angle half its digits.
_OPPOSITE = 2e-15


@dataclass
class Moments:
    r"""Covariances between two batches at some depth, float64, changed in place.

    `nngp` is $K$, `ntk` is $\Theta$; `var1` and `var2` are the variances of the two batches.
    `apart` is $1 - \rho$ with all its digits, kept only where some points nearly coincide.
    """

    nngp: Float[Tensor, "n m"]
    ntk: Float[Tensor, "n m"]
    var1: Float[Tensor, " n"]
    var2: Float[Tensor, " m"]
    apart: Float[Tensor, "n m"] | None = None


@runtime_checkable
class Layer(Protocol):
    """One step of a network, finite and infinite."""

    def module(self, fan_in: int, *, generator: Generator) -> tuple[nn.Module, int]:
        """The finite layer and its number of outputs."""
        ...

    def propagate_(self, moments: Moments) -> None:
        """Replace the covariances of the inputs by those of the outputs."""
        ...

    def diagonal(
        self, variance: Float[Tensor, " n"], ntk: Float[Tensor, " n"]
    ) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
        """Variance and tangent kernel of a point with itself after the layer, exactly."""
        ...


class NTKLinear(nn.Module):
    r"""$y = \sigma_w W x / \sqrt{d} + \sigma_b b$ with standard normal $W$, $b$."""

    def __init__(
        self, fan_in: int, fan_out: int, w_std: float, b_std: float, *, generator: Generator
    ) -> None:
        super().__init__()
        self.w_std, self.b_std = w_std, b_std
        self.weight = nn.Parameter(torch.randn(fan_out, fan_in, generator=generator))
        self.bias = nn.Parameter(torch.randn(fan_out, generator=generator))

    def reset_parameters(self) -> None:
        """Draw new weights and biases from the global generator, as torch's layers do."""
        nn.init.normal_(self.weight)
        nn.init.normal_(self.bias)

    def forward(self, x: Float[Tensor, " *n d"]) -> Float[Tensor, " *n o"]:
        scale = self.w_std / self.weight.shape[1] ** 0.5
        return nn.functional.linear(x, self.weight * scale, self.bias * self.b_std)

    def extra_repr(self) -> str:
        fan_out, fan_in = self.weight.shape
        return f"{fan_in}, {fan_out}, w_std={self.w_std}, b_std={self.b_std}"


@dataclass(frozen=True)
class Dense:
    r"""Fully connected, NTK parametrisation.

    $$ K' = \sigma_w^2 K + \sigma_b^2, \qquad \Theta' = K' + \sigma_w^2 \Theta $$
    """

    width: int
    w_std: float
    b_std: float

    def module(self, fan_in: int, *, generator: Generator) -> tuple[nn.Module, int]:
        linear = NTKLinear(fan_in, self.width, self.w_std, self.b_std, generator=generator)
        return linear, self.width

    def propagate_(self, moments: Moments) -> None:
        w2, b2 = self.w_std**2, self.b_std**2
        if moments.apart is not None:
            moments.apart = self._apart(moments.apart, moments.var1, moments.var2)
        if w2 != 1:
            moments.nngp.mul_(w2)
        if b2 != 0:
            moments.nngp.add_(b2)
        # Addition last: Theta' = K' + w2 * Theta in one pass when w2 is 1.
        moments.ntk = torch.add(moments.nngp, moments.ntk, alpha=w2)
        moments.var1 = moments.var1 * w2 + b2
        moments.var2 = moments.var2 * w2 + b2

    def _apart(
        self, apart: Float[Tensor, "n m"], var1: Float[Tensor, " n"], var2: Float[Tensor, " m"]
    ) -> Float[Tensor, "n m"]:
        r"""$1 - \rho$ after the layer, as a sum of two terms that are not negative.

        With $V = \sigma_w^2 v + \sigma_b^2$ and $c = \sigma_w^2 \sqrt{v v'}$ it is $c (1 - \rho) +
        \sqrt{V V'} - c - \sigma_b^2$ over $\sqrt{V V'}$, and the last three are $\sigma_w^2
        \sigma_b^2 (\sqrt v - \sqrt{v'})^2$ over $\sqrt{V V'} + c + \sigma_b^2$.
        """
        w2, b2 = self.w_std**2, self.b_std**2
        s1, s2 = var1.sqrt()[:, None], var2.sqrt()
        scale = (var1 * w2 + b2).sqrt()[:, None] * (var2 * w2 + b2).sqrt()
        inner = w2 * s1 * s2
        radial = (s1 - s2).square_().mul_(w2 * b2).div_(scale + inner + b2)
        return torch.where(scale > 0, (inner * apart + radial) / scale, 1.0)

    def diagonal(
        self, variance: Float[Tensor, " n"], ntk: Float[Tensor, " n"]
    ) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
        after = variance * self.w_std**2 + self.b_std**2
        return after, after + self.w_std**2 * ntk


class Activation(ABC):
    """Base of all activations: the module, and the chain rule for the tangent kernel.

    `most` is the largest variance of the inputs at which the duals keep their digits in float64.
    """

    most: ClassVar[float] = 1e290

    @abstractmethod
    def forward(self, z: Tensor) -> Tensor:
        """The activation itself."""

    @abstractmethod
    def dual_(
        self, cov: Float[Tensor, "n m"], var1: Float[Tensor, " n"], var2: Float[Tensor, " m"]
    ) -> Float[Tensor, "n m"]:
        r"""Overwrite cov with $E[\phi(u)\phi(v)]$; return $E[\phi'(u)\phi'(v)]$."""

    @abstractmethod
    def dual_diagonal(
        self, var: Float[Tensor, " n"]
    ) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
        r"""$E[\phi(u)^2]$ and $E[\phi'(u)^2]$ without cancellation."""

    def module(self, fan_in: int, *, generator: Generator) -> tuple[nn.Module, int]:
        return _Elementwise(self), fan_in

    def propagate_(self, moments: Moments) -> None:
        slope = self.dual_(moments.nngp, moments.var1, moments.var2)
        moments.ntk = moments.ntk.mul_(slope)
        moments.apart = None
        moments.var1 = self.dual_diagonal(moments.var1)[0]
        moments.var2 = self.dual_diagonal(moments.var2)[0]

    def diagonal(
        self, variance: Float[Tensor, " n"], ntk: Float[Tensor, " n"]
    ) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
        after, slope = self.dual_diagonal(variance)
        return after, ntk * slope


class _Elementwise(nn.Module):
    """A torch module around an activation."""

    def __init__(self, activation: Activation) -> None:
        super().__init__()
        self.activation = activation

    def forward(self, z: Tensor) -> Tensor:
        return self.activation.forward(z)

    def extra_repr(self) -> str:
        return str(self.activation)


@dataclass(frozen=True)
class LeakyRelu(Activation):
    r"""$\max(z, 0) + a \min(z, 0)$; ReLU is $a = 0$.

    With $\theta = \arccos \rho$ and $c = (1 - a)^2 / 2\pi$:
    $\dot K = c\,(\pi - \theta) + a$ and $K = \sqrt{v v'}\,(c \sin\theta + \rho \dot K)$.

    Parameters
    ----------
    slope : float
        $a$, the slope below zero.
    """

    slope: float = 0.1

    def __post_init__(self) -> None:
        keep(self, slope=number(self.slope, "slope", -1e6, 1e6, error=NetworkError))

    def forward(self, z: Tensor) -> Tensor:
        return nn.functional.leaky_relu(z, self.slope)

    def propagate_(self, moments: Moments) -> None:
        """Covariances after the layer, in place; near copies by their distance `apart`."""
        if moments.apart is None:
            super().propagate_(moments)
            return
        c, half = (1 - self.slope) ** 2 / (2 * pi), (1 + self.slope**2) / 2
        apart = moments.apart.clamp_(0, 2)
        apart.masked_fill_(apart > 2 - _OPPOSITE, 2.0)
        theta = (apart / 2).sqrt_().asin_().mul_(2)
        bulge = _bulge(theta, apart)
        # The same duals, written with c pi + a = (1 + a²) / 2.
        moments.ntk = moments.ntk.mul_(theta.mul_(-c).add_(half))
        s1, s2 = moments.var1.sqrt()[:, None], moments.var2.sqrt()
        moments.nngp = (1 - apart).mul_(half).add_(bulge, alpha=c).mul_(s1).mul_(s2)
        moments.apart = apart.sub_(bulge, alpha=c / half)
        moments.var1, moments.var2 = moments.var1 * half, moments.var2 * half

    def dual_(
        self, cov: Float[Tensor, "n m"], var1: Float[Tensor, " n"], var2: Float[Tensor, " m"]
    ) -> Float[Tensor, "n m"]:
        c = (1 - self.slope) ** 2 / (2 * pi)
        s1, s2 = var1.sqrt()[:, None], var2.sqrt()
        rho = cov.mul_(_inverse(s1)).mul_(_inverse(s2)).clamp_(max=1)
        rho = torch.threshold_(rho, _OPPOSITE - 1, -1.0)
        sine = torch.addcmul(cov.new_ones(()), rho, rho, value=-1).sqrt_()
        dot = torch.acos(rho).mul_(-c).add_(c * pi + self.slope)
        rho.mul_(dot).add_(sine, alpha=c).mul_(s1).mul_(s2)
        return dot

    def dual_diagonal(
        self, var: Float[Tensor, " n"]
    ) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
        half = (1 + self.slope**2) / 2
        return var * half, torch.full_like(var, half)

    def __str__(self) -> str:
        return "relu" if self.slope == 0 else f"leaky_relu({self.slope:g})"


@dataclass(frozen=True)
class Erf(Activation):
    r"""$\mathrm{erf}(z)$: $K = \frac{2}{\pi} \arcsin \frac{2 k}{\sqrt{(1 + 2v)(1 + 2v')}}$."""

    most: ClassVar[float] = 1e15

    def forward(self, z: Tensor) -> Tensor:
        return torch.erf(z)

    def dual_(
        self, cov: Float[Tensor, "n m"], var1: Float[Tensor, " n"], var2: Float[Tensor, " m"]
    ) -> Float[Tensor, "n m"]:
        dot = _determinant(2 * cov, 2 * var1, 2 * var2).rsqrt_().mul_(4 / pi)
        cov.mul_(2).mul_((1 + 2 * var1).rsqrt()[:, None]).mul_((1 + 2 * var2).rsqrt())
        cov.clamp_(-1, 1).asin_().mul_(2 / pi)
        return dot

    def dual_diagonal(
        self, var: Float[Tensor, " n"]
    ) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
        # asin(2v / (1 + 2v)) as atan2 keeps its digits for large v.
        root = (1 + 4 * var).sqrt()
        return torch.atan2(2 * var, root) * (2 / pi), (4 / pi) / root

    def __str__(self) -> str:
        return "erf"


@dataclass(frozen=True)
class Sin(Activation):
    r"""$\sin z$: $K = e^{-(v + v')/2} \sinh k$, $\dot K = e^{-(v + v')/2} \cosh k$."""

    most: ClassVar[float] = 1e15

    def forward(self, z: Tensor) -> Tensor:
        return torch.sin(z)

    def dual_(
        self, cov: Float[Tensor, "n m"], var1: Float[Tensor, " n"], var2: Float[Tensor, " m"]
    ) -> Float[Tensor, "n m"]:
        # e^{|k| - (v + v')/2} never overflows, because |k| is at most the mean of v and v'.
        size = cov.abs()
        grown = torch.exp(size - (var1[:, None] + var2) / 2)
        falls = torch.expm1(-2 * size)
        cov.sign_().mul_(grown).mul_(falls).mul_(-0.5)
        return grown.mul_(falls.add_(2)).mul_(0.5)

    def dual_diagonal(
        self, var: Float[Tensor, " n"]
    ) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
        falls = torch.expm1(-2 * var)
        return -falls / 2, (falls + 2) / 2

    def __str__(self) -> str:
        return "sin"


@dataclass(frozen=True)
class Gelu(Activation):
    r"""$z\,\Phi(z)$, exact (not the tanh approximation).

    With $P = (1 + v)(1 + v')$, $D = P - k^2$ and $A = \frac14 + \frac{1}{2\pi} \arcsin
    \frac{k}{\sqrt P}$: $K = k A + \frac{v v' D + k^2}{2 \pi P \sqrt D}$ and $\dot K = A +
    \frac{k}{2 \pi \sqrt D} \left(\frac{1}{1 + v} + \frac{1}{1 + v'} + \frac{1}{D}\right)$.
    """

    most: ClassVar[float] = 1e70

    def forward(self, z: Tensor) -> Tensor:
        return nn.functional.gelu(z)

    def dual_(
        self, cov: Float[Tensor, "n m"], var1: Float[Tensor, " n"], var2: Float[Tensor, " m"]
    ) -> Float[Tensor, "n m"]:
        v1, v2 = var1[:, None], var2
        product = (1 + v1) * (1 + v2)
        determinant = _determinant(cov, var1, var2)
        root = determinant.sqrt()
        both = (cov / product.sqrt()).clamp_(-1, 1).asin_().mul_(1 / (2 * pi)).add_(0.25)
        dot = cov / (2 * pi * root) * (1 / (1 + v1) + 1 / (1 + v2) + 1 / determinant) + both
        rest = (v1 * v2 * determinant + cov.square()) / (2 * pi * product * root)
        cov.mul_(both).add_(rest)
        return dot

    def dual_diagonal(
        self, var: Float[Tensor, " n"]
    ) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
        determinant = 1 + 2 * var
        root = determinant.sqrt()
        both = 0.25 + torch.atan2(var, root) / (2 * pi)
        rest = var.square() * (determinant + 1) / (2 * pi * (1 + var).square() * root)
        dot = both + var / (2 * pi * root) * (2 / (1 + var) + 1 / determinant)
        return var * both + rest, dot

    def __str__(self) -> str:
        return "gelu"


@dataclass(frozen=True)
class Identity(Activation):
    """No activation: the network stays linear."""

    def forward(self, z: Tensor) -> Tensor:
        return z

    def dual_(
        self, cov: Float[Tensor, "n m"], var1: Float[Tensor, " n"], var2: Float[Tensor, " m"]
    ) -> Float[Tensor, "n m"]:
        return torch.ones_like(cov)

    def dual_diagonal(
        self, var: Float[Tensor, " n"]
    ) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
        return var, torch.ones_like(var)

    def __str__(self) -> str:
        return "identity"


def _bulge(theta: Float[Tensor, "n m"], apart: Float[Tensor, "n m"]) -> Float[Tensor, "n m"]:
    r"""$\sin\theta - \theta \cos\theta$, by its series where the difference would cancel."""
    square = theta.square()
    series = theta * square * (1 / 3 - square * (1 / 30 - square * (1 / 840 - square / 45360)))
    return torch.where(theta < 0.1, series, (apart * (2 - apart)).sqrt() - theta * (1 - apart))


def _inverse(scale: Tensor) -> Tensor:
    """1 / scale, and 0 where scale is 0: a point without variance correlates with nothing."""
    return torch.where(scale > 0, 1 / scale, 0.0)


def _determinant(
    cov: Float[Tensor, "n m"], var1: Float[Tensor, " n"], var2: Float[Tensor, " m"]
) -> Float[Tensor, "n m"]:
    r"""$(1 + v)(1 + v') - k^2$ as $1 + v + v' + v v' (1 - \rho)(1 + \rho)$."""
    rho = cov * _inverse(var1.sqrt())[:, None] * _inverse(var2.sqrt())
    rho.clamp_(-1, 1)
    spread = (1 - rho).mul_(1 + rho).mul_(var1[:, None]).mul_(var2)
    return spread.add_(1 + var1[:, None]).add_(var2)
