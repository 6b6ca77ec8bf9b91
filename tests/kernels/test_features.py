"""Sketches of the empirical NTK: unbiased, seeded, and the same for any chunking."""

import pytest
import torch
from torch import nn

from evgp import EmpiricalNTK, cnn, mlp
from evgp.errors import NetworkError
from evgp.kernels import Sketch
from tests.kernels.test_empirical import CASES, Sequence, module_and_points
from tests.messages import refused

COVERED = [name for name in CASES if not name.startswith("weight norm")] + ["weight norm of inputs"]


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("kind", ["count", "kronecker"])
@pytest.mark.parametrize("name", COVERED)
def test_the_mean_over_seeds_is_the_kernel(name, kind) -> None:
    module, x = module_and_points(name)
    kernel = EmpiricalNTK(module, output=1)
    exact = kernel(x[:4])
    results = []
    for seed in range(60):
        phi = Sketch(kernel, 128, seed, kind).phi(x[:4])
        results.append(phi @ phi.T)
    stacked = torch.stack(results)
    # The mean is within four standard errors of the truth, entry by entry.
    error = (stacked.mean(0) - exact).abs()
    allowed = 4 * stacked.std(0) / len(results) ** 0.5
    assert bool((error <= allowed + 1e-12).all())
    scale = exact.abs().max()
    assert float((stacked - exact).square().mean().sqrt() / scale) < 0.6


@pytest.mark.parametrize("kind", ["count", "kronecker"])
def test_chunks_and_repeats_give_the_same_features(kind) -> None:
    x = torch.randn(9, 1, 8, 8, dtype=torch.float64)
    network = cnn(3).build((1, 8, 8), generator=torch.Generator()).double()
    whole = Sketch(EmpiricalNTK(network, "trace"), 32, 7, kind)
    tight = Sketch(EmpiricalNTK(network, "trace", memory=2_000_000), 32, 7, kind)
    phi = whole.phi(x)
    assert torch.allclose(tight.phi(x), phi, rtol=1e-12, atol=1e-12)
    assert torch.allclose(torch.cat([whole.phi(x[:2]), whole.phi(x[2:])]), phi, atol=1e-12)
    assert not torch.allclose(Sketch(EmpiricalNTK(network, "trace"), 32, 8, kind).phi(x), phi)
    assert float(whole.residual(x, whole.phi(x)).sum()) == 0


def test_tokens_and_draws() -> None:
    torch.manual_seed(0)
    x = torch.randint(0, 7, (4, 5))
    module = Sequence().double()
    kernel = EmpiricalNTK(module, output=0)
    result = torch.stack([(p := Sketch(kernel, 256, seed).phi(x)) @ p.T for seed in range(40)])
    error = (result.mean(0) - kernel(x)).abs()
    assert bool((error <= 4 * result.std(0) / 40**0.5 + 1e-12).all())
    two = EmpiricalNTK(mlp(1, 8), draws=2)
    points = torch.randn(4, 3)
    result = torch.stack([(p := Sketch(two, 256, seed).phi(points)) @ p.T for seed in range(40)])
    error = (result.mean(0) - two(points)).abs()
    assert bool((error <= 4 * result.std(0) / 40**0.5 + 1e-6).all())


def test_more_features_err_less() -> None:
    x = torch.randn(12, 20, dtype=torch.float64)
    kernel = EmpiricalNTK(mlp(2, 32).build((20,), generator=torch.Generator()).double())
    exact = kernel(x)
    errors = []
    for p in (64, 1024):
        phis = [Sketch(kernel, p, seed).phi(x) for seed in range(10)]
        errors.append(float(torch.stack([(f @ f.T - exact).norm() for f in phis]).mean()))
    assert errors[1] < 0.4 * errors[0]  # a quarter, but for chance


def test_what_cannot_be_sketched_is_an_error() -> None:
    kernel = EmpiricalNTK(mlp())
    with refused(NetworkError):
        Sketch(kernel, 0)
    with refused(NetworkError):
        Sketch(kernel, 8, kind="fast")
    module = torch.nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
    with torch.no_grad():
        module.parametrizations.weight.original0.mul_(3)
    with refused(NetworkError):
        Sketch(EmpiricalNTK(module), 8).phi(torch.randn(3, 3))
