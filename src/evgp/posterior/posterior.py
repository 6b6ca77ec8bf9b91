"""The protocol of posteriors, for criteria and searches."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

# Candidates that guesses of the next picks are made from, and picks guessed at once, at most.
FINALISTS, AHEAD = 512, 32
# Test points whose covariance has all its eigenvalues computed; of more, they are bounded.
DENSE = 3072


@runtime_checkable
class Posterior(Protocol):
    """Variances and covariances of c candidates and m test points, given the labels so far."""

    def variance(self) -> Float[Tensor, " c"]:
        """Posterior variance of each candidate."""
        ...

    def noise(self) -> Float[Tensor, " c"]:
        """Variance of a label, for each candidate."""
        ...

    def weights(self) -> Float[Tensor, " m"]:
        """How much each test point matters; sums to one."""
        ...

    def test_variance(self) -> Float[Tensor, " m"]:
        """Posterior variance of each test point."""
        ...

    def mean_variance(self) -> float:
        """Weighted mean variance of the test points."""
        ...

    def scale(self) -> float:
        """Weighted mean variance of the test points before any label."""
        ...

    def fall(self, rows: Int[Tensor, " r"] | None = None) -> Float[Tensor, " r"]:
        """Weighted sum of cov² over the test points: exact for `rows`, running sums for all."""
        ...

    def slack(self) -> Float[Tensor, " c"]:
        """Bound on the rounding error of the running sums of `fall()`."""
        ...

    def covariance(self, rows: Int[Tensor, " r"]) -> Float[Tensor, "r m"]:
        """Covariance between candidates and test points, in float64."""
        ...

    def informed_variance(self) -> Float[Tensor, " c"]:
        """Variance of each candidate given the (other) test outputs, for mutual information."""
        ...

    def observe_(self, row: int) -> None:
        """Label a candidate."""
        ...

    def forget_(self, row: int) -> None:
        """Take a label back."""
        ...


@runtime_checkable
class Preparing(Protocol):
    """A posterior that can prepare for picks before they are made."""

    def worth(self) -> int:
        """How many picks to prepare for at once; fewer than two if it does not pay."""
        ...

    def pairs(self, rows: Int[Tensor, " r"]) -> tuple[Float[Tensor, "r r"], Float[Tensor, "r r"]]:
        """K and G of these candidates, as `Lookahead` needs them; G may be an estimate."""
        ...

    def expect_(self, rows: list[int]) -> None:
        """Prepare for these picks, in this order, with one read of the large matrix."""
        ...


@dataclass(frozen=True)
class TestCovariance:
    r"""The covariance of the test points after the labels at the start, as an operator.

    $A = W^{1/2} (\Theta_T - B^\top B) W^{1/2}$ with weights $W$ that sum to one.
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
        """The Frobenius norm before the labels at the start; rounding is proportional to it."""
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
