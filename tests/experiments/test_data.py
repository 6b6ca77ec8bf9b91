"""Made-up data are what their formulas say, scaled, and the same for a seed."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evgp.datasets import Dataset
from evgp.errors import DatasetError, NetworkError
from evgp.nets import cnn, mlp
from experiments.data import _ball, random_model, sinusoidal
from tests.messages import refused

SMALL = mlp(width=16)
MAKERS = [lambda n, d, **options: random_model(n, d, SMALL, **options), sinusoidal]


@pytest.mark.parametrize("make", MAKERS, ids=["random_model", "sinusoidal"])
@given(n=st.integers(4, 60), d=st.integers(1, 6), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_pool_and_test_are_scaled_by_the_pool(make, n: int, d: int, seed: int) -> None:
    data = make(n, d, seed=seed)
    assert data.kind == "regression"
    assert data.x.shape == data.x_test.shape == (n, d)
    assert data.x.dtype == data.y.dtype == torch.float64
    assert data.y.shape == data.y_test.shape == (n, 1)
    assert data.x.mean(0).abs().max() < 1e-9
    torch.testing.assert_close(data.x.std(0, correction=0), torch.ones(d, dtype=torch.float64))
    assert abs(float(data.y.mean())) < 1e-9
    assert float(data.y.std(correction=0)) == pytest.approx(1)


@pytest.mark.parametrize("make", MAKERS, ids=["random_model", "sinusoidal"])
def test_a_seed_repeats_itself_and_the_pool_does_not_depend_on_the_test(make) -> None:
    first, two, other = make(30, 3, seed=1), make(30, 3, seed=1, test=5), make(30, 3, seed=2)
    assert torch.equal(first.x, two.x)
    torch.testing.assert_close(first.y, two.y, rtol=1e-12, atol=1e-12)
    assert len(two.x_test) == 5
    assert not torch.allclose(first.x, other.x)
    assert not torch.isin(first.x_test, first.x).any()


def test_the_network_that_made_the_targets_is_adequate() -> None:
    data = random_model(50, 3, SMALL, seed=4)
    module = SMALL.build((3,), generator=torch.Generator().manual_seed(4)).double()
    with torch.no_grad():
        for x, y in [(data.x, data.y), (data.x_test, data.y_test)]:
            torch.testing.assert_close(module(x), y * data.y_std + data.y_mean)
    assert "width=16" in data.about
    assert "Hemachandra" in data.citation


def test_a_sinusoidal_target_is_a_sine_of_one_direction() -> None:
    data = sinusoidal(400, 2, seed=3)
    y = data.y[:, 0] * data.y_std + data.y_mean
    assert y.abs().max() <= 1 + 1e-12
    generator = torch.Generator().manual_seed(3)
    omega = torch.randn(2, generator=generator, dtype=torch.float64) * 2 / math.sqrt(2)
    b = 2 * math.pi * torch.rand(1, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(y, torch.sin(data.x @ omega + b))


def test_the_frequency_makes_the_wave_steeper() -> None:
    def rough(data: Dataset) -> float:
        order = data.x[:, 0].argsort()
        return float(data.y[order, 0].diff().abs().sum())

    assert rough(sinusoidal(500, 1, frequency=20)) > 3 * rough(sinusoidal(500, 1, frequency=2))


@pytest.mark.parametrize("make", MAKERS, ids=["random_model", "sinusoidal"])
def test_noise_has_the_requested_variance(make) -> None:
    plain, noisy = make(4000, 2), make(4000, 2, noise=0.25)
    assert torch.equal(plain.x, noisy.x)
    for item, two in [(plain.y, noisy.y), (plain.y_test, noisy.y_test)]:
        assert float((two - item).var()) == pytest.approx(0.25, rel=0.1)
    assert not torch.equal(noisy.y - plain.y, noisy.y_test - plain.y_test)
    assert noisy.about.endswith("with noise of variance 0.25")


@pytest.mark.parametrize("d", [1, 2, 5])
def test_points_are_uniform_in_the_ball(d: int) -> None:
    radius = np.linalg.norm(_ball(20_000, d, np.random.RandomState(0)), axis=1)
    assert radius.max() <= 1
    # The share inside half the radius is that of the volumes.
    for r in (0.5, 0.8):
        assert (radius < r).mean() == pytest.approx(r**d, abs=0.02)


@pytest.mark.parametrize(
    "options",
    [
        {"n": 1},
        {"d": 0},
        {"test": 0},
        {"noise": -1.0},
        {"noise": math.nan},
        {"seed": -1},
        {"n": 10**13},
    ],
)
@pytest.mark.parametrize("make", MAKERS, ids=["random_model", "sinusoidal"])
def test_what_cannot_be_made_is_refused(make, options: dict[str, float]) -> None:
    with refused(DatasetError):
        make(**({"n": 10, "d": 2} | options))


@pytest.mark.parametrize("frequency", [0.0, -1.0, math.inf, math.nan])
def test_a_frequency_that_is_invalid_is_refused(frequency: float) -> None:
    with refused(DatasetError):
        sinusoidal(10, 2, frequency=frequency)


def test_networks_that_give_no_target_are_refused() -> None:
    with refused(DatasetError):
        random_model(10, 2, mlp(width=4, outputs=3))
    with refused(NetworkError):
        random_model(10, 2, cnn())


def test_a_finite_network_makes_targets_too() -> None:
    assert random_model(10, 2, SMALL.standard()).y.shape == (10, 1)
