"""Points in opposite directions, where the angle has half the digits of the correlation."""

import numpy as np
import pytest

from evgp import NNGP, NTK, mlp


@pytest.mark.parametrize("kind", [NTK, NNGP])
def test_networks_without_bias_know_nothing_of_the_opposite_direction(kind) -> None:
    kernel = kind(mlp(1, b_std=0.0))
    for seed in range(50):
        x = np.random.default_rng(seed).normal(size=(1, 3))
        pair = np.concatenate([x, -x / 3, x + 1e-9])  # the third brings near copies
        assert abs(kernel(pair[:2])[0, 1]) < 1e-16
        assert abs(kernel(pair)[0, 1]) < 1e-16
