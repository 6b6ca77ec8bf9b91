r"""Kernels as inner products of a few features, plus the variance that the features miss.

$$ k(x, x') \approx \phi(x)^\top \phi(x') + \delta_{x x'}\, \rho(x) $$

`Sketch` is the empirical NTK as a few random features, for pools too large for its matrix. The
gradient of a layer is a sum of outer products $\sum_t g_t a_t^\top$. Two seeded sketches:

- "kronecker" never forms it: $\phi_i = p^{-1/2} \sum_t (r_i \cdot a_t)(q_i \cdot g_t)$ with random
  signs $r_i$, $q_i$;
- "count" forms some of it at a time and adds every entry, with a random sign, to one of p bins
  (CountSketch), which varies less.

Both have $\mathrm{E}\, \phi(x) \cdot \phi(x') = \hat\Theta(x, x')$, and errors that fall as
$p^{-1/2}$.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from evgp._checks import can
from evgp._linalg import JITTER, safe_cholesky
from evgp.errors import NetworkError, PoolError, UnknownName
from evgp.kernels.empirical import EmpiricalNTK
from evgp.kernels.kernel import Kernel
from evgp.kernels.layerwise import Projection


@dataclass(frozen=True)
class Raw:
    """The inputs as features: embeddings from another network, for example.

    >>> Raw().phi(torch.eye(2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    threadsafe: ClassVar[bool] = True
    identity: ClassVar[bool] = True

    def phi(self, x: Shaped[Tensor, " n *d"]) -> Float[Tensor, "n p"]:
        """The inputs, flat."""
        flat = x.flatten(1)
        return flat if flat.is_floating_point() else flat.double()

    def residual(
        self, x: Shaped[Tensor, " n *d"], phi: Float[Tensor, "n p"]
    ) -> Float[Tensor, " n"]:
        """Zero: nothing is missed."""
        return torch.zeros(len(x), dtype=torch.float64)


@dataclass(frozen=True, eq=False)
class Inducing:
    r"""Any kernel through inducing points U: Nystrom features and a residual.

    $$ \phi(x) = L^{-1} k(U, x), \quad L L^\top = k(U, U), \qquad
       \rho(x) = k(x, x) - |\phi(x)|^2 \ge 0 $$

    With `rest` the residual counts as noise of each point and stays in the variance of the test
    points: the fully independent conditional (FIC). O(n u (d + u)) time, O(n u) memory.

    >>> from evgp import NTK, mlp
    >>> x = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    >>> features = Inducing(NTK(mlp()), x)
    >>> phi = features.phi(x)
    >>> bool((features.residual(x, phi) < 1e-6).all()), phi.shape
    (True, torch.Size([5, 5]))
    """

    kernel: Kernel
    points: Shaped[Tensor, " u *d"]
    rest: bool = True
    _cache: dict[str, Tensor] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.points) == 0:
            raise PoolError("expected at least one inducing point, got none")

    def phi(self, x: Shaped[Tensor, " n *d"]) -> Float[Tensor, "n u"]:
        """Nystrom features in float64."""
        cross = self.kernel(self.points.double(), x.double()).double()
        return torch.linalg.solve_triangular(self.factor(), cross, upper=False).T.contiguous()

    def residual(
        self, x: Shaped[Tensor, " n *d"], phi: Float[Tensor, "n p"]
    ) -> Float[Tensor, " n"]:
        """The variance of each point that the features miss."""
        if not self.rest:
            return torch.zeros(len(x), dtype=torch.float64)
        own = self.kernel.diag(x.double()).double()
        return (own - phi.double().square().sum(1)).clamp(min=0)

    @property
    def threadsafe(self) -> bool:
        """Whether the kernel is thread-safe; computes the factor before threads need it."""
        self.factor()
        return can(self.kernel, "threadsafe")

    def factor(self) -> Float[Tensor, "u u"]:
        """L: the Cholesky factor of the inducing points' covariance."""
        if "factor" not in self._cache:
            inside = self.kernel(self.points.double()).double()
            self._cache["factor"] = safe_cholesky(inside, JITTER * inside.diagonal())
        return self._cache["factor"]


KINDS = ("count", "kronecker")


@dataclass(frozen=True)
class Sketch:
    """p random features of an empirical NTK; the same for any chunking of the points.

    On top of the network's own passes, "count" takes O(n parameters) and "kronecker"
    O(n p (inputs + outputs)) for each layer and position. Memory: n p, and the kernel's blocks.

    >>> from evgp import mlp
    >>> sketch = Sketch(EmpiricalNTK(mlp(depth=1, width=32)), p=64)
    >>> sketch.phi(torch.eye(3)).shape
    torch.Size([3, 64])
    """

    kernel: EmpiricalNTK
    p: int = 512
    seed: int = 0
    kind: str = "count"

    def __post_init__(self) -> None:
        if self.p < 1:
            raise NetworkError(f"expected p >= 1 features, got {self.p}")
        if self.kind not in KINDS:
            raise UnknownName.of(NetworkError)("a sketch", self.kind, tuple(KINDS))

    def phi(self, x: Shaped[Tensor, " n *d"]) -> Float[Tensor, "n p"]:
        """The features, in the type of the network."""
        parts: dict[int, Tensor] = {}
        projections: dict[tuple[int, int], Projection] = {}
        for number, start, factors in self.kernel.passes(x):
            for layer, factor in enumerate(factors):
                key = (number, layer)
                if key not in projections:
                    seeds = (self.seed, number, layer)
                    projections[key] = Projection(self.p, self.kind == "count", seeds)
                part = factor.sketch(projections[key])
                parts[start] = parts[start] + part if start in parts else part
        whole = torch.cat([parts[start] for start in sorted(parts)])
        return (whole / self.kernel.draws**0.5).cpu()

    def residual(
        self, x: Shaped[Tensor, " n *d"], phi: Float[Tensor, "n p"]
    ) -> Float[Tensor, " n"]:
        """Zero: a sketch stands for the whole kernel."""
        return torch.zeros(len(x), dtype=torch.float64)
