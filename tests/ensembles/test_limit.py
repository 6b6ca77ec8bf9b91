"""Wide members, trained until nothing changes, are what theory says of infinite ones."""

import torch

from evgp import NNGP, NTK, metrics, mlp, ntkgp, train, trained

SEED = torch.Generator().manual_seed(3)
X = torch.randn(6, 3, generator=SEED, dtype=torch.float64)
X_TEST = 1.5 * torch.randn(60, 3, generator=SEED, dtype=torch.float64)
Y = torch.sin(2 * X[:, 0]) + X[:, 1]


def test_wide_members_have_the_mean_and_variance_of_the_limit() -> None:
    network = mlp(depth=1, width=512)
    ensemble = train(network, X, Y, members=100, lr=1.0, steps=3000, stop=1e-6)
    assert float(ensemble.losses.max()) < 1e-5
    outputs = ensemble.predict(X_TEST)
    ntk, nngp = NTK(network), NNGP(network)
    limit = trained(ntk, nngp, X, Y, X_TEST)
    process = ntkgp(ntk, X, Y, X_TEST)
    variance = metrics.variances(outputs)
    # Over 100 members a mean is known to a tenth of a standard deviation, a variance to a seventh.
    away = (outputs.double().mean(0) - limit.mean)[:, 0].abs() / limit.variance.sqrt()
    assert float(away.mean()) < 0.3
    assert metrics.pearson(variance, limit.variance) > 0.9
    assert metrics.spearman(variance, limit.variance) > 0.9
    assert abs(float((variance / limit.variance).mean()) - 1) < 0.2
    assert metrics.pearson(variance, process.variance) > 0.9
    assert bool((limit.variance <= process.variance + 1e-9).all())
