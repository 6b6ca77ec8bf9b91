"""What criteria and greedies may ask of a posterior."""

from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor


@runtime_checkable
class Posterior(Protocol):
    """What is still unknown about candidates (c rows) and test points (m)."""

    def variance(self) -> Float[Tensor, " c"]:
        """Of each candidate."""
        ...

    def noise(self) -> Float[Tensor, " c"]:
        """Variance of a label, for each candidate."""
        ...

    def weights(self) -> Float[Tensor, " m"]:
        """How much each test point matters; sums to one."""
        ...

    def test_variance(self) -> Float[Tensor, " m"]:
        """Of each test point."""
        ...

    def mean_variance(self) -> float:
        """Weighted mean over the test points."""
        ...

    def scale(self) -> float:
        """Weighted mean variance of the test points before any label."""
        ...

    def fall(self, rows: Int[Tensor, " r"] | None = None) -> Float[Tensor, " r"]:
        """Weighted sum over test points of cov²: exact for given rows, running sums for all."""
        ...

    def slack(self) -> Float[Tensor, " c"]:
        """How far the running sums of `fall()` may be from the truth, by rounding."""
        ...

    def covariance(self, rows: Int[Tensor, " r"]) -> Float[Tensor, "r m"]:
        """Between candidates and test points, in float64."""
        ...

    def informed_variance(self) -> Float[Tensor, " c"]:
        """Of each candidate if the (other) test outputs were known: for mutual information."""
        ...

    def observe_(self, row: int) -> None:
        """Label a candidate."""
        ...

    def forget_(self, row: int) -> None:
        """Take a label back."""
        ...
