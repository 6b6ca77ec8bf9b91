r"""The empirical NTK as a few random features, for pools too large for its matrix.

The gradient of a layer is a sum of outer products $\sum_t g_t a_t^\top$. Two seeded sketches:

- "kronecker" never forms it: $\phi_i = p^{-1/2} \sum_t (r_i \cdot a_t)(q_i \cdot g_t)$ with random
  signs $r_i$, $q_i$;
- "count" forms some of it at a time and adds every entry, with a random sign, to one of p bins
  (CountSketch), which varies less.

Both have $\mathrm{E}\, \phi(x) \cdot \phi(x') = \hat\Theta(x, x')$, and errors that fall as
$p^{-1/2}$.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from evgp._errors import NetworkError
from evgp.kernels.empirical import EmpiricalNTK
from evgp.kernels.projection import Projection

KINDS = ("count", "kronecker")


@dataclass(frozen=True)
class Sketch:
    """p random features of an empirical NTK; the same for any chunking of the points.

    Beside the network's own passes "count" takes O(n parameters), "kronecker" O(n p (inputs +
    outputs)) of each layer at each position. Memory: n p, and that of the kernel's blocks.

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
            raise NetworkError(f"expected a sketch among {', '.join(KINDS)}; got {self.kind!r}")

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
                made = factor.sketch(projections[key])
                parts[start] = parts[start] + made if start in parts else made
        whole = torch.cat([parts[start] for start in sorted(parts)])
        return (whole / self.kernel.draws**0.5).cpu()

    def residual(
        self, x: Shaped[Tensor, " n *d"], phi: Float[Tensor, "n p"]
    ) -> Float[Tensor, " n"]:
        """A sketch stands for the whole kernel."""
        return torch.zeros(len(x), dtype=torch.float64)
