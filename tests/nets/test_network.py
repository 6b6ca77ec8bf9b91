"""Networks as descriptions and as modules."""

import pytest
import torch

from evgp import mlp
from evgp.errors import NetworkError
from evgp.nets import ACTIVATIONS, Activation, Dense, Layer, LeakyRelu
from tests.messages import refused


@pytest.mark.parametrize("name", list(ACTIVATIONS))
def test_a_network_builds_and_shows_depth_and_activation(name) -> None:
    network = mlp(3, 16, name, outputs=2)
    module = network.build((2, 3), generator=torch.Generator().manual_seed(0))
    assert module(torch.zeros(5, 2, 3)).shape == (5, 2)
    assert f"depth=3, width=16, activation={ACTIVATIONS[name]}" in repr(network)


def test_the_same_generator_gives_the_same_module() -> None:
    first, two = (
        mlp(1, 4).build((3,), generator=torch.Generator().manual_seed(7)) for _ in range(2)
    )
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), two.parameters(), strict=True))


def test_ntk_parametrisation_scales_in_the_forward_pass() -> None:
    module = mlp(1, 1000, "identity", w_std=2.0, b_std=0.0).build(
        (50,), generator=torch.Generator().manual_seed(0)
    )
    weights = next(iter(module.parameters()))
    assert weights.std().item() == pytest.approx(1.0, rel=0.02)
    x = torch.ones(1, 50)
    assert module[:2](x).var().item() == pytest.approx(4.0, rel=0.2)


def test_leaky_slopes_other_than_the_default() -> None:
    assert "leaky_relu(0.3)" in repr(mlp(activation=LeakyRelu(0.3)))
    assert LeakyRelu(0.3).forward(torch.tensor(-1.0)).item() == pytest.approx(-0.3)


def test_every_activation_and_dense_is_a_layer() -> None:
    assert all(
        isinstance(activation, Layer) for activation in [*ACTIVATIONS.values(), Dense(3, 1.0, 0.0)]
    )
    assert all(isinstance(activation, Activation) for activation in ACTIVATIONS.values())


@pytest.mark.parametrize(
    "kwargs",
    [
        {"activation": "tanh"},
        {"depth": -1},
        {"width": 0},
        {"w_std": 0.0},
        {"b_std": float("nan")},
        {"w_std": 1e200},
    ],
)
def test_a_wrong_description_says_what_is_expected(kwargs) -> None:
    with refused(NetworkError):
        mlp(**kwargs)
