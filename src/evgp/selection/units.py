"""Kernels in units near one, so that no square over- or underflows.

The noise is a fraction of the prior variance, so multiplying a kernel by a number changes no pick;
a power of two changes no digit either. Only what is far from one is multiplied.
"""

from dataclasses import dataclass, replace
from math import frexp, inf, isfinite, ldexp

import numpy as np
from jaxtyping import Float, Shaped
from torch import Tensor

from evgp._capabilities import can
from evgp._errors import PoolError
from evgp.criteria import Criterion
from evgp.kernels import Features, Kernel
from evgp.pool import Selection

# Variances from 2^-40 to 2^40 stay as they are: then cubes of standard deviations fit in float32.
_NEAR_ONE = 40
# Beyond these, variances or what is left of them leave the range of float64.
_LEAST, _MOST = 1e-280, 1e280


@dataclass(frozen=True)
class ScaledKernel:
    """A kernel times a power of two.

    >>> import torch
    >>> from evgp.kernels import Tabulated
    >>> ScaledKernel(Tabulated(torch.eye(2)), 4.0).diag(torch.tensor([[0.0], [1.0]]))
    tensor([4., 4.])
    """

    kernel: Kernel
    by: float

    def __call__(
        self, x1: Float[Tensor, " n *d"], x2: Float[Tensor, " m *d"] | None = None
    ) -> Float[Tensor, "n m"]:
        """The n x m matrix; with one argument the symmetric n x n one."""
        return self.kernel(x1, x2) * self.by

    def diag(self, x: Float[Tensor, " n *d"]) -> Float[Tensor, " n"]:
        """Each point with itself."""
        return self.kernel.diag(x) * self.by


@dataclass(frozen=True, eq=False)
class ScaledFeatures:
    """Features times a power of two."""

    features: Features
    by: float

    @property
    def threadsafe(self) -> bool:
        """Whether several threads may ask for them at once."""
        return can(self.features, "threadsafe")

    def phi(self, x: Shaped[Tensor, " n *d"]) -> Float[Tensor, "n p"]:
        """The features of each point, in float64."""
        return self.features.phi(x).double() * self.by

    def residual(
        self, x: Shaped[Tensor, " n *d"], phi: Float[Tensor, "n p"]
    ) -> Float[Tensor, " n"]:
        """What they miss of each point's variance."""
        return self.features.residual(x, phi / self.by) * self.by**2


def unit_of(variance: float) -> float:
    """The power of four that brings a variance near one, where it is far from it.

    >>> unit_of(0.7), unit_of(2.0**101) == 2.0**102, unit_of(1e-200) < 1e-198
    (1.0, True, True)
    """
    check_variance(variance)
    exponent = frexp(variance)[1]
    return 1.0 if abs(exponent) <= _NEAR_ONE else ldexp(1.0, 2 * (exponent // 2))


def check_variance(variance: float) -> None:
    """Refuse points about which nothing is unknown, or whose variance float64 cannot hold."""
    if variance == 0:
        raise PoolError(
            "expected test points with some variance, got a mean prior variance of 0, so no pick "
            "can lower it (are all features zero, or smaller than 1e-150?)"
        )
    if not (isfinite(variance) and _LEAST <= variance <= _MOST):
        raise PoolError(
            f"expected a mean prior variance from {_LEAST:g} to {_MOST:g} over the test points, "
            f"got {variance:g}; scale the inputs, or the kernel"
        )


def scaled_features(features: Features, x: Shaped[Tensor, " r *d"]) -> tuple[Features, float]:
    """Features in units near one, by those of some points, and the unit of a variance."""
    phi = features.phi(x).double()
    largest = max(float(phi.abs().max()), float(features.residual(x, phi).max()) ** 0.5)
    if not isfinite(largest):
        raise PoolError("expected finite features, got NaN or inf; scale the inputs")
    exponent = frexp(largest)[1] if largest > 0 else 0
    if 2 * abs(exponent) <= _NEAR_ONE:
        return features, 1.0
    check_variance(ldexp(1.0, 2 * exponent) if exponent < 500 else inf)
    return ScaledFeatures(features, ldexp(1.0, -exponent)), ldexp(1.0, 2 * exponent)


def in_units(picks: Selection, criterion: Criterion, unit: float) -> Selection:
    """A selection whose kernel was divided by the unit, as if it had not been."""
    if unit == 1:
        return picks
    certificate = picks.certificate
    if certificate is not None:
        certificate = replace(certificate, lowest=certificate.lowest * unit)
    return replace(
        picks,
        gains=gains_in_units(picks.gains, criterion, unit),
        prior_variance=picks.prior_variance * unit,
        start_variance=picks.start_variance * unit,
        variance_left=picks.variance_left * unit,
        test_before=picks.test_before * unit,
        test_after=picks.test_after * unit,
        certificate=certificate,
    )


def gains_in_units(
    gains: Float[np.ndarray, " *k"], criterion: Criterion, unit: float
) -> Float[np.ndarray, " *k"]:
    """Gains as they would be with the kernel as it was."""
    return gains * unit ** check_degree(criterion, unit)


def check_degree(criterion: Criterion, unit: float) -> int:
    """With which power of the kernel gains grow; refuse a criterion that does not say so."""
    degree = getattr(criterion, "degree", None)
    if degree is None and unit != 1:
        raise PoolError(
            f"expected inputs of moderate size for the criterion {criterion!r}, got a mean prior "
            f"variance near {unit:.0e}; scale the inputs, or give the criterion a degree"
        )
    return 0 if degree is None else int(degree)
