"""Wide members, trained to convergence, agree with the theory of infinite ones."""

import pytest
import torch

from evgp import NNGP, NTK, metrics, mlp, train
from evgp.posterior import ntkgp, trained

SEED = torch.Generator().manual_seed(3)
X = torch.randn(6, 3, generator=SEED, dtype=torch.float64)
X_TEST = 1.5 * torch.randn(60, 3, generator=SEED, dtype=torch.float64)
Y = torch.sin(2 * X[:, 0]) + X[:, 1]


# What is left of the mean's distance at width 2048 is chance: 0.08 for 100 members.
WIDTHS = [pytest.param(512, 50, 0.3), pytest.param(2048, 100, 0.15, marks=pytest.mark.slow)]


@pytest.mark.parametrize(("width", "members", "near"), WIDTHS)
def test_wide_members_have_the_mean_and_variance_of_the_limit(width, members, near) -> None:
    network = mlp(depth=1, width=width)
    ensemble = train(network, X, Y, members=members, lr=1.0, steps=4000, stop=3e-5)
    assert float(ensemble.losses.max()) <= 3e-5
    outputs = ensemble.predict(X_TEST)
    ntk, nngp = NTK(network), NNGP(network)
    limit = trained(ntk, nngp, X, Y, X_TEST)
    process = ntkgp(ntk, X, Y, X_TEST)
    variance = metrics.variances(outputs)
    away = (outputs.double().mean(0) - limit.mean)[:, 0].abs() / limit.variance.sqrt()
    assert float(away.mean()) < near
    assert metrics.pearson(variance, limit.variance) > 0.9
    assert metrics.spearman(variance, limit.variance) > 0.9
    assert abs(float((variance / limit.variance).mean()) - 1) < 0.2
    assert metrics.pearson(variance, process.variance) > 0.9
    assert bool((limit.variance <= process.variance + 1e-9).all())
