r"""The sparse NTKGP of the paper: labels inform the test points through inducing points U.

With $Q = \Theta_{\cdot U} \Theta_U^{-1} \Theta_{U \cdot}$ and $\Gamma_x = \Theta_x - Q_x + s$ (the
fully independent conditional, FIC), each labelled point adds

$$ F_x = \Theta_U^{-1} \Theta_{Ux} \Gamma_x^{-1} \Theta_{xU} \Theta_U^{-1}, \qquad
   G_x = \Theta_U^{-1} \Theta_{Ux} \Gamma_x^{-1} y_x $$

to $\Sigma_U^{-1} = \Theta_U^{-1} + \sum_x F_x$ and $\Sigma_U^{-1} \mu_U = \sum_x G_x$; and

$$ \mu = \Theta_{TU} \Theta_U^{-1} \mu_U, \qquad
   \Sigma = \Theta_T - Q_T + \Theta_{TU} \Theta_U^{-1} \Sigma_U \Theta_U^{-1} \Theta_{UT}. $$

Inside, everything is in the coordinates of `Inducing`, where $\Theta_U$ is the identity.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from evgp._checks import finite, flag, integer, noise_of, number, points
from evgp._defaults import NOISE
from evgp._linalg import JITTER, as_tensor
from evgp._typing import Array
from evgp.errors import PoolError
from evgp.kernels import Inducing, Kernel, checked
from evgp.posterior.regression import Prediction


@dataclass(frozen=True, eq=False)
class SparseNTKGP:
    """The posterior of the inducing points, given the labels so far.

    `cov` and `shift` are $\\Sigma_U$ and $\\mu_U$ in the coordinates of the features. `add` costs
    O(u²) and u kernel values per point, however many labels there are already.

    >>> from evgp import NTK, mlp
    >>> x = torch.eye(3, dtype=torch.float64)
    >>> none = SparseNTKGP.start(NTK(mlp()), x, noise=1e-3)
    >>> one = none.add(x[:1], torch.ones(1))
    >>> bool((one.predict(x).variance <= none.predict(x).variance).all())
    True
    """

    features: Inducing
    noise: float
    cov: Float[Tensor, "u u"]
    shift: Float[Tensor, "u o"]

    @classmethod
    def start(
        cls, kernel: Kernel, inducing: Array, *, noise: float, outputs: int = 1
    ) -> "SparseNTKGP":
        """The state before any label; `noise` is the absolute variance of a label."""
        noise, outputs = number(noise, "noise"), integer(outputs, "outputs", 1, 10_000_000)
        features = Inducing(checked(kernel), points(inducing, "inducing"))
        u = len(features.points)
        nothing = torch.zeros(u, outputs, dtype=torch.float64)
        return cls(features, noise, torch.eye(u, dtype=torch.float64), nothing)

    def add(self, x: Array, y: Array) -> "SparseNTKGP":
        """The state with these labels too, by one rank-one update each."""
        labelled, targets = self._points(x, "x"), finite(as_tensor(y, "y").double(), "y")
        targets = targets[:, None] if targets.ndim == 1 else targets
        if tuple(targets.shape) != (len(labelled), self.shift.shape[1]):
            raise PoolError(
                f"expected as many labels as points, {len(labelled)}, each with "
                f"{self.shift.shape[1]} outputs; got y of shape {tuple(targets.shape)}"
            )
        cov, shift = self.cov.clone(), self.shift.clone()
        for phi, own, target in zip(*self._seen(labelled), targets, strict=True):
            inner = cov @ phi
            scale = float(phi @ inner) + float(own)
            shift += torch.outer(inner, target - phi @ shift) / scale
            cov.addr_(inner, inner, alpha=-1 / scale)
        return SparseNTKGP(self.features, self.noise, cov, shift)

    def linear_change(self, x: Array) -> Float[Tensor, "r u u"]:
        r"""First-order change by each further label: $-\Sigma_U F_x \Sigma_U$.

        The influence-function form of the paper. In natural parameters, where the change of
        $\Sigma_U^{-1}$ is $F_x$ exactly, the first-order change of $\Sigma_U$ is the same.
        """
        phi, own = self._seen(self._points(x, "x"))
        inner = phi @ self.cov
        return -inner[:, :, None] * inner[:, None] / own[:, None, None]

    def predict(self, x_test: Array, *, full: bool = False) -> Prediction:
        """Mean and variance at test points; O(m u²)."""
        test = self._points(x_test, "x_test")
        flag(full, "full")
        phi = self.features.phi(test)
        rest = self.features.residual(test, phi)
        spread = phi @ self.cov
        variance = (spread * phi).sum(1) + rest
        covariance = spread @ phi.T + rest.diag() if full else None
        return Prediction(phi @ self.shift, variance.clamp(min=0), covariance)

    def sigma(self) -> Float[Tensor, "u u"]:
        r"""$\Sigma_U$, the covariance of the inducing outputs."""
        factor = self.features.factor()
        return factor @ self.cov @ factor.T

    def mu(self) -> Float[Tensor, "u o"]:
        r"""$\mu_U$, their mean."""
        return self.features.factor() @ self.shift

    def _points(self, x: Array, name: str) -> Tensor:
        return points(x, name, columns=tuple(self.features.points.shape[1:]))

    def _seen(self, x: Tensor) -> tuple[Float[Tensor, "r u"], Float[Tensor, " r"]]:
        """Features of points, and their noise: the residual plus that of the label."""
        phi = self.features.phi(x)
        own = self.features.residual(x, phi) + self.noise
        floor = JITTER * float(self.features.kernel.diag(self.features.points).mean())
        return phi, own.clamp(min=floor)


def sntkgp(
    kernel: Kernel,
    x: Array,
    y: Array,
    x_test: Array,
    inducing: Array,
    *,
    noise: float = NOISE,
    full: bool = False,
) -> Prediction:
    """Sparse Gaussian process regression through inducing points, in closed form.

    `noise` is a fraction of the mean prior variance over the test points, as for `ntkgp`.
    O((l + m) u²) time.

    >>> from evgp import NTK, mlp
    >>> x = torch.eye(2, dtype=torch.float64)
    >>> prediction = sntkgp(NTK(mlp()), x, torch.tensor([1.0, 2.0]), x, inducing=x)
    >>> prediction.mean.squeeze().round(decimals=3).tolist()
    [1.0, 2.0]
    """
    test, targets = points(x_test, "x_test"), as_tensor(y, "y")
    outputs = 1 if targets.ndim < 2 else targets.shape[1]
    scale = float(checked(kernel).diag(test).double().mean())
    empty = SparseNTKGP.start(kernel, inducing, noise=noise_of(noise) * scale, outputs=outputs)
    return empty.add(x, y).predict(test, full=full)
