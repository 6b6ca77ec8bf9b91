"""What any posterior must pass, against a direct solve."""

from dataclasses import dataclass

import torch
from torch import Tensor

from evgp.kernels import Kernel
from evgp.pool import Pool


@dataclass(frozen=True)
class Truth:
    """Posterior covariances by one solve of the whole system, nothing incremental."""

    kernel: Kernel
    pool: Pool
    noise: float

    def covariance(self, a: Tensor, b: Tensor, picks: list[int]) -> Tensor:
        """Between two sets of points, given the labelled points and the picks."""
        known = torch.cat([self.pool.known(), self.pool.x[picks]])
        prior = self.kernel(a, b)
        if len(known) == 0:
            return prior
        gram = self.kernel(known) + self.noise * torch.eye(len(known), dtype=torch.float64)
        return prior - self.kernel(a, known) @ torch.linalg.solve(gram, self.kernel(known, b))

    def test_variance(self, picks: list[int]) -> Tensor:
        """Of each test point."""
        test = self.pool.test_points()
        return self.covariance(test, test, picks).diagonal()

    def mean_variance(self, picks: list[int]) -> float:
        """Weighted mean over the test points."""
        return float(self.pool.test_weights() @ self.test_variance(picks))


def agrees(posterior, truth: Truth, candidates: Tensor, picks: list[int], tol: float) -> None:
    """Everything that may be asked equals the direct solve."""
    x, test = truth.pool.x[candidates], truth.pool.test_points()
    cross = truth.covariance(x, test, picks)
    rows = torch.arange(len(candidates))
    fall = cross.square() @ truth.pool.test_weights()
    variance = truth.covariance(x, x, picks).diagonal()
    close = {"rtol": 1e-6, "atol": tol}
    assert torch.allclose(posterior.variance(), variance.clamp(min=0), **close)
    assert torch.allclose(posterior.test_variance(), truth.test_variance(picks), **close)
    assert torch.allclose(posterior.fall(), fall, **close)
    assert torch.all((posterior.fall() - fall).abs() <= posterior.slack() + 1e-10 * fall.max())
    assert torch.allclose(posterior.covariance(rows), cross, **close)
    assert torch.allclose(posterior.fall(rows), fall, **close)
    assert torch.allclose(posterior.fall(), fall, **close)
