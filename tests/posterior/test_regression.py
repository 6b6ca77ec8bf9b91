"""Closed-form predictions against scikit-learn's algebra and really trained networks."""

import pytest
import torch

from evgp import NNGP, NTK, EmpiricalNTK, mlp
from evgp.errors import PoolError
from evgp.posterior import ntkgp, trained
from experiments.theorems import rkhs_norm
from tests.messages import refused

NETWORK = mlp(2, 512, "erf", 1.5, 0.3)


def data() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(6, 2, generator=generator, dtype=torch.float64)
    test = torch.randn(9, 2, generator=generator, dtype=torch.float64)
    return x, torch.stack([x[:, 0].sin(), x[:, 1]], dim=1), test


def test_ntkgp_is_kernel_ridge_regression() -> None:
    x, y, test = data()
    kernel = NTK(NETWORK)
    noise = 1e-3 * float(kernel.diag(test).mean())
    inverse = torch.linalg.inv(kernel(x) + noise * torch.eye(6, dtype=torch.float64))
    prediction = ntkgp(kernel, x, y, test, noise=1e-3, full=True)
    assert torch.allclose(prediction.mean, kernel(test, x) @ inverse @ y)
    covariance = kernel(test) - kernel(test, x) @ inverse @ kernel(x, test)
    assert torch.allclose(prediction.covariance, covariance)
    assert torch.allclose(prediction.variance, covariance.diagonal())


def test_trained_is_the_formula_of_the_paper() -> None:
    x, y, test = data()
    ntk, nngp = NTK(NETWORK), NNGP(NETWORK)
    noise = 1e-3 * float(ntk.diag(test).mean())
    g = ntk(test, x) @ torch.linalg.inv(ntk(x) + noise * torch.eye(6, dtype=torch.float64))
    prediction = trained(ntk, nngp, x, y, test, noise=1e-3, full=True)
    covariance = nngp(test) + g @ nngp(x) @ g.T - g @ nngp(x, test) - nngp(test, x) @ g.T
    assert torch.allclose(prediction.mean, g @ y)
    assert torch.allclose(prediction.covariance, covariance, atol=1e-10)
    assert torch.allclose(prediction.variance, covariance.diagonal(), atol=1e-10)


def test_networks_really_trained_agree_loosely() -> None:
    """Forty nets of width 512, full-batch gradient descent to convergence."""
    x, y, test = (part.float() for part in data())
    network = mlp(1, 512, "erf", 1.5, 0.3)
    nets = [
        network.build((2,), generator=torch.Generator().manual_seed(seed)) for seed in range(40)
    ]
    params, _ = torch.func.stack_module_state(nets)
    every = {name: value.detach().requires_grad_() for name, value in params.items()}

    def outputs(points: torch.Tensor) -> torch.Tensor:
        def one(p: dict[str, torch.Tensor]) -> torch.Tensor:
            return torch.func.functional_call(nets[0], p, (points,)).squeeze(1)

        return torch.func.vmap(one)(every)

    optimiser = torch.optim.SGD(every.values(), lr=0.2)
    for _ in range(400):
        optimiser.zero_grad()
        (outputs(x) - y[:, 0]).square().sum().div(2).backward()
        optimiser.step()
    observed = outputs(test).detach().double()
    prediction = trained(NTK(network), NNGP(network), x, y[:, :1], test)
    spread = prediction.variance.clamp(min=1e-4)
    z = (observed.mean(0) - prediction.mean.squeeze(1)) / (spread / 40).sqrt()
    assert float(z.abs().max()) < 6
    ratio = observed.var(0).sum() / prediction.variance.sum()
    assert 0.6 < float(ratio) < 1.6
    assert float(torch.corrcoef(torch.stack([observed.var(0), prediction.variance]))[0, 1]) > 0.8


@pytest.mark.parametrize(
    "kernel",
    [NTK(NETWORK, torch.float32), EmpiricalNTK(mlp(1, 8))],
    ids=lambda value: value.__class__,
)
def test_kernels_in_float32_are_solved_in_float64(kernel) -> None:
    x, y, test = data()
    results = [ntkgp(kernel, x, y, test, full=True), trained(kernel, kernel, x, y, test, full=True)]
    for result in results:
        assert (
            result.mean.dtype == result.variance.dtype == result.covariance.dtype == torch.float64
        )
        assert torch.allclose(result.covariance.diagonal(), result.variance, rtol=1e-3, atol=1e-6)
    # With one kernel for both, networks vary as the process does.
    assert torch.allclose(results[0].variance, results[1].variance, rtol=1e-3, atol=1e-5)
    assert rkhs_norm(kernel, x, y[:, 0]) > 0


def test_labels_must_match_points() -> None:
    x, y, test = data()
    with refused(PoolError):
        ntkgp(NTK(NETWORK), x, y[:5], test)
    with refused(PoolError):
        ntkgp(NTK(NETWORK), x, y, test, noise=-1.0)
