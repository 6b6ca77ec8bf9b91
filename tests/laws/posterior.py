"""What any posterior must pass, against a direct solve."""

import torch
from torch import Tensor

from evgp.testing import Truth


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
