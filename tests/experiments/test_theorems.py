"""The constants and theorems of the paper against real kernels, over many inputs and depths."""

import math

import numpy as np
import pytest
import torch

from evgp import NTK, mlp
from evgp.errors import EvgpError
from evgp.kernels import NNGP
from evgp.posterior import ntkgp, trained
from experiments.theorems import (
    error_factor,
    gain_ratio,
    measured_ratio,
    printed_ratio,
    ratio_bound,
    rkhs_norm,
    spread_bound,
)
from tests.messages import refused

DEPTHS = (1, 2, 3, 4, 6)


def points(n: int, d: int, seed: int, spread: float = 1.0) -> torch.Tensor:
    """Points with mean squares between 1 / spread² and spread², some of them opposite."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, d, generator=generator, dtype=torch.float64)
    x[1::2] = -x[::2] + 0.3 * x[1::2]
    x /= x.square().mean(1, keepdim=True).sqrt()
    return x * torch.logspace(-1, 1, n, base=spread, dtype=torch.float64)[:, None]


@pytest.mark.parametrize("depth", [1, 2, 3, pytest.param(4, marks=pytest.mark.slow), 6])
@pytest.mark.parametrize(("w_std", "b_std"), [(1.0, 0.0), (1.0, 0.1), (1.5, 0.5), (2**0.5, 1.0)])
@pytest.mark.parametrize("spread", [1.0, 3.0])
def test_no_pair_of_inputs_leaves_the_interval(depth, w_std, b_std, spread) -> None:
    network = mlp(depth, w_std=w_std, b_std=b_std)
    bound = ratio_bound(network, (1 / spread**2, spread**2))
    for d in (1, 2, 8):
        ratio = measured_ratio(network, points(60, d, depth, spread))
        if math.isfinite(ratio.high):
            assert bound.low <= ratio.low * (1 + 1e-9) and ratio.high <= bound.high * (1 + 1e-9)
        else:
            assert (bound.low, bound.high) == (-math.inf, math.inf)


def test_one_hidden_layer_has_no_finite_constants() -> None:
    """Between opposed points K is above 0 and Theta below: the ratio passes through infinity."""
    angle = torch.linspace(0, math.pi, 2000, dtype=torch.float64)
    x = math.sqrt(2) * torch.stack([angle.cos(), angle.sin()], 1)
    result = NNGP(mlp(1))(x)[0] / NTK(mlp(1))(x)[0]
    assert float(result[-1]) == pytest.approx(-0.497, abs=1e-3) and float(result.max()) > 100
    for b_std in (0.0, 0.1):
        ratio = ratio_bound(mlp(1, b_std=b_std))
        assert (ratio.low, ratio.high) == (-math.inf, math.inf)
    # A bias as large as the weights outweighs what opposed points have in common.
    assert ratio_bound(mlp(1, b_std=1.0)).high < 1.01


def test_sizes_do_not_matter_without_bias() -> None:
    network = mlp(2, b_std=0.0)
    assert ratio_bound(network, (0.1, 10.0)) == ratio_bound(network)


@pytest.mark.parametrize("depth", (2, 3, 4))
def test_the_interval_is_close(depth) -> None:
    """Points of one size at every angle come near both of its ends."""
    network = mlp(depth)
    angle = torch.linspace(0, math.pi, 400, dtype=torch.float64)
    x = math.sqrt(2) * torch.stack([angle.cos(), angle.sin()], 1)
    actual, bound = measured_ratio(network, x), ratio_bound(network)
    assert actual.low == pytest.approx(bound.low, rel=0.01)
    assert actual.high == pytest.approx(bound.high, rel=0.01)


def test_the_printed_lower_bound_with_bias_fails_at_two_layers() -> None:
    """Ratios of Theta to K go down to about 0.8, where the paper says at least 1.058."""
    network = mlp(2, w_std=2**0.5, b_std=0.1)  # the paper scales ReLU by the root of two
    angle = torch.linspace(0, math.pi, 200, dtype=torch.float64)
    x = math.sqrt(2) * torch.stack([angle.cos(), angle.sin()], 1)
    least = 1 / measured_ratio(network, x).high
    assert least < 1 < printed_ratio(2, bias=True)[0]
    for depth in (2, 3, 4):
        ratio = measured_ratio(mlp(depth, w_std=2**0.5, b_std=0.1), x)
        assert 1 / ratio.low <= printed_ratio(depth, bias=True)[1]
        bare = measured_ratio(mlp(depth, w_std=2**0.5, b_std=0.0), x)
        low, high = printed_ratio(depth, bias=False)
        assert low <= 1 / bare.high and 1 / bare.low <= high


@pytest.mark.parametrize("depth", (2, 3))
@pytest.mark.parametrize("b_std", (0.0, 0.1, 1.0))
def test_theorem_1_holds_with_n_squared(depth, b_std) -> None:
    network = mlp(depth, b_std=b_std)
    for seed in range(5):
        x = points(12, 4, seed)
        spread = spread_bound(network, x[:6], x[6:])
        assert spread.worst <= spread.beta
        process = ntkgp(NTK(network), x[:6], torch.zeros(6), x[6:], noise=0).variance
        ours = trained(NTK(network), NNGP(network), x[:6], torch.zeros(6), x[6:], noise=0).variance
        assert spread.worst == pytest.approx(float((ours - spread.alpha * process).abs().max()))
        assert spread.ratio.low <= spread.alpha <= spread.ratio.high
        theta = NTK(network)(x)
        largest, least = float(theta.max()), float(torch.linalg.eigvalsh(theta[:6, :6])[0])
        gamma = largest * max(spread.alpha - spread.ratio.low, spread.ratio.high - spread.alpha)
        assert spread.gamma == pytest.approx(gamma)
        n_squared = gamma + 6**2 * gamma * largest**2 / least**2 + 2 * 6 * gamma * largest / least
        assert spread.beta == pytest.approx(n_squared)
        assert spread.vacuous == (spread.beta >= spread.prior)
        other = spread_bound(network, x[:6], x[6:], alpha=spread.ratio.low)
        assert other.gamma >= spread.gamma and other.worst <= other.beta
    assert spread_bound(network, x[:6], x[6:]).vacuous  # as it mostly is: said in the docs


def test_theorem_1_needs_no_finite_ratio() -> None:
    """Opposed points and one hidden layer: what bounds K - alpha Theta is its largest entry."""
    network = mlp(1)
    for seed in range(5):
        x = points(12, 4, seed)
        x[7] = -x[0]
        for alpha in (None, 0.5):
            spread = spread_bound(network, x[:6], x[6:], alpha=alpha)
            assert (spread.ratio.low, spread.ratio.high) == (-math.inf, math.inf)
            assert alpha is None or spread.alpha == alpha
            k, theta = NNGP(network)(x), NTK(network)(x)
            assert spread.gamma == pytest.approx(float((k - spread.alpha * theta).abs().max()))
            assert 0 < spread.worst <= spread.beta < math.inf


def test_the_ratio_of_gains_is_measured_between_labelled_and_test_points_too() -> None:
    network = mlp(2, b_std=0.1)
    x = points(8, 3, 0)
    both = gain_ratio(network, x[:5], ratio=measured_ratio(network, x))
    assert gain_ratio(network, x[:5], x[5:]) == both
    assert gain_ratio(network, x[:5], ratio=measured_ratio(network, x[:5])) != both
    assert gain_ratio(mlp(1), x[:5], -x[:5]) == (-math.inf, math.inf)


def test_the_ratio_of_gains_is_within_its_bounds() -> None:
    for seed in range(20):
        network = mlp(2, b_std=0.1)
        x = points(8, 3, seed)
        low, high = gain_ratio(network, x[:5], x[5:])
        ntk, nngp = NTK(network), NNGP(network)
        zeros = torch.zeros(5)
        ours = nngp.diag(x[5:]) - trained(ntk, nngp, x[:5], zeros, x[5:], noise=0).variance
        process = ntk.diag(x[5:]) - ntkgp(ntk, x[:5], zeros, x[5:], noise=0).variance
        result = ours / process
        assert low <= float(result.min()) and float(result.max()) <= high


def test_the_norm_is_that_of_a_function_of_the_space() -> None:
    """f = sum a_i Theta(x_i, .) has the norm sqrt(a' Theta a), and fits through its own points."""
    kernel = NTK(mlp())
    x = points(10, 3, 0)
    a = torch.randn(10, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    norm = float((a @ kernel(x) @ a).sqrt())
    assert rkhs_norm(kernel, x, kernel(x) @ a) == pytest.approx(norm, rel=1e-3)
    fewer = rkhs_norm(kernel, x[:4], (kernel(x) @ a)[:4])
    assert fewer <= norm * (1 + 1e-9)  # the least norm through some of the points
    assert rkhs_norm(kernel, x, kernel(x) @ a, noise=1.0) < norm


def test_theorem_2_holds_in_monte_carlo() -> None:
    """A function of known norm, Gaussian noise, networks of infinite width from their own law."""
    network, ridge, noise, delta = mlp(), 0.05, 0.2, 0.1
    ntk, nngp = NTK(network), NNGP(network)
    x = points(30, 3, 2)
    random = torch.Generator().manual_seed(3)
    a = torch.randn(30, generator=random, dtype=torch.float64)
    truth = ntk(x) @ a
    norm = float((a @ truth).sqrt())
    factor = error_factor(norm, noise=noise, ridge=ridge, delta=delta)
    known, test = torch.arange(10), torch.arange(10, 30)
    gram = ntk(x[known]) + ridge * torch.eye(10, dtype=torch.float64)
    weights = torch.linalg.solve(gram, ntk(x[known], x[test])).T
    deviation = (ntk.diag(x[test]) - (weights * ntk(x[test], x[known])).sum(1)).sqrt()
    root = torch.linalg.cholesky(nngp(x) + 1e-10 * torch.eye(30, dtype=torch.float64))
    broken, draws = 0.0, 400
    for _ in range(draws):
        y = truth[known] + noise * torch.randn(10, generator=random, dtype=torch.float64)
        start = root @ torch.randn(30, generator=random, dtype=torch.float64)
        result = start[test] + weights @ (y - start[known])
        broken += float(((result - truth[test]).abs() > factor * deviation).double().mean())
    assert broken / draws <= 2 * delta


def test_the_factor_says_nothing_without_a_ridge_unless_labels_are_exact() -> None:
    assert error_factor(1.0, noise=0.1) == math.inf
    assert error_factor(1.0) == pytest.approx(1 + math.sqrt(2 * math.log(20)))


X = points(4, 3, 0)


@pytest.mark.parametrize(
    "call",
    [
        lambda: ratio_bound(mlp(activation="erf")),
        lambda: ratio_bound(mlp(), (2.0, 1.0)),
        lambda: printed_ratio(1, bias=True),
        lambda: error_factor(1.0, delta=1.0),
        lambda: error_factor(-1.0),
        lambda: error_factor(math.nan),
        lambda: error_factor(1.0, noise=math.nan),
        lambda: error_factor(1.0, ridge=math.inf),
        lambda: error_factor(1.0, delta=math.nan),
        lambda: spread_bound(mlp(), torch.ones(3, 2), torch.ones(1, 2)),
        lambda: spread_bound(mlp(), X[:0], X),
        lambda: spread_bound(mlp(), X, X[:0]),
        lambda: spread_bound(mlp(), X, X[:, :2]),
        lambda: spread_bound(mlp(), X * math.nan, X),
        lambda: spread_bound(mlp(), X[:2], X, alpha=math.nan),
        lambda: measured_ratio(mlp(), X[:0]),
        lambda: gain_ratio(mlp(), X),
        lambda: gain_ratio(mlp(), X, X[:, :2]),
        lambda: gain_ratio(mlp(), np.ones((3, 2)), np.eye(2)),
        lambda: rkhs_norm(NTK(mlp()), X, X[:, 0] * math.nan),
        lambda: rkhs_norm(NTK(mlp()), X * math.nan, X[:, 0]),
        lambda: rkhs_norm(NTK(mlp()), X, X[:3, 0]),
        lambda: rkhs_norm(NTK(mlp()), X, X[:, 0], noise=math.nan),
    ],
)
def test_what_has_no_bound_is_refused(call) -> None:
    with refused(EvgpError):
        call()
