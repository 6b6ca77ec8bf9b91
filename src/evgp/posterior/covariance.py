"""The covariance of the test points after the labels at the start, as an operator."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class TestCovariance:
    r"""$A = W^{1/2} (\Theta_T - B^\top B) W^{1/2}$ with weights $W$ that sum to one.

    Its trace is the mean variance over the test points; `matrix` ($\Theta_T$) may be float32.
    """

    matrix: Float[Tensor, "m m"]
    base: Float[Tensor, "l m"]
    weights: Float[Tensor, " m"]
    variance: Float[Tensor, " m"]

    def __len__(self) -> int:
        return len(self.weights)

    def trace(self) -> float:
        """The mean variance."""
        return float(self.weights @ self.variance)

    def apply(self, v: Float[Tensor, "m q"]) -> Float[Tensor, "m q"]:
        """A v: one product with the matrix, in its own type."""
        root = self.weights.sqrt()[:, None]
        scaled = root * v
        product = (self.matrix @ scaled.to(self.matrix.dtype)).double()
        return root * (product - self.base.T @ (self.base @ scaled))

    def size(self) -> float:
        """The Frobenius norm before the labels at the start: what rounding scales with."""
        total = 0.0
        for start in range(0, len(self), 512):
            block = self.matrix[start : start + 512].double().square()
            total += float(self.weights[start : start + 512] @ (block @ self.weights))
        return total**0.5

    def squares(self) -> float:
        """The sum of all squared entries, in blocks of 512 rows."""
        total = 0.0
        for start in range(0, len(self), 512):
            rows = slice(start, start + 512)
            block = self.matrix[rows].double().addmm(self.base[:, rows].T, self.base, alpha=-1)
            total += float(self.weights[rows] @ (block.square() @ self.weights))
        return total

    def dense(self) -> Float[Tensor, "m m"]:
        """A itself, in float64."""
        root = self.weights.sqrt()
        inner = self.matrix.double().addmm(self.base.T, self.base, alpha=-1)
        return inner * root[:, None] * root
