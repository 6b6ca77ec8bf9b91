"""Features in `evgp.pick`: requested, or because the matrix would not fit."""

from importlib import import_module

import numpy as np
import pytest
import torch

import evgp
from evgp.errors import DataWarning, PoolError
from evgp.kernels import Inducing, Raw, Sketch
from evgp.selection.features import INDUCING, inducing_points
from tests.messages import refused, warned

X = np.random.default_rng(0).normal(size=(120, 4))


def test_as_many_features_as_points_are_the_kernel() -> None:
    dense = evgp.pick(X, 10)
    sparse = evgp.pick(X, 10, features="nystrom-120")
    assert sparse.indices.tolist() == dense.indices.tolist()
    np.testing.assert_allclose(sparse.variance_left, dense.variance_left, rtol=1e-3)
    assert (
        sparse.settings["kernel_features"] == "nystrom-120" and dense.settings["method"] == "dense"
    )


def test_few_features_still_choose_well() -> None:
    few = evgp.pick(X, 10, features="nystrom-40").indices
    kernel = evgp.NTK(evgp.mlp())
    scaled = torch.from_numpy((X - X.mean(0)) / X.std(0))
    left = [
        float(evgp.posterior.ntkgp(kernel, scaled[rows], torch.zeros(10), scaled).variance.mean())
        for rows in (few.tolist(), evgp.pick(X, 10).indices.tolist(), list(range(10)))
    ]
    assert left[1] <= left[0] + 1e-9 < left[2]


def test_raw_features_are_taken_as_they_are() -> None:
    picked = evgp.pick(100 * X, 4, features="raw")
    again = evgp.pick(X, 4, features=Raw(), scale=None)
    assert picked.indices.tolist() == again.indices.tolist()
    assert picked.prior_variance == pytest.approx(1e4 * again.prior_variance)
    assert picked.prior_variance == pytest.approx(1e4 * float((X**2).sum(1).mean()))


def test_a_sketch_of_a_module() -> None:
    network = evgp.cnn(3)
    images = torch.randn(30, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    picked = evgp.pick(images, 5, network=network, features="sketch-64", seed=3)
    kernel = evgp.EmpiricalNTK(network, seed=3)
    again = evgp.pick(images, 5, features=Sketch(kernel, 64, 3))
    assert picked.indices.tolist() == again.indices.tolist()


def test_features_replace_a_matrix_that_would_not_fit(monkeypatch) -> None:
    room = import_module("evgp.selection.plan")
    x = np.random.default_rng(1).normal(size=(3000, 3))
    monkeypatch.setattr(room, "available_memory", lambda: 990_000_000)
    monkeypatch.setattr("evgp.selection.features.P", 64)
    with warned(DataWarning):
        picked = evgp.pick(x, 5)
    assert picked.settings["kernel_features"] == "nystrom-64"
    assert "nystrom-64" in " ".join(picked.warnings)


@pytest.mark.parametrize("how", INDUCING)
def test_inducing_points_are_spread_and_seeded(how) -> None:
    x = torch.from_numpy(X)
    kernel = evgp.NTK(evgp.mlp())
    result = inducing_points(x, 20, how, seed=1, kernel=kernel)
    assert result.shape == (20, 4)
    assert torch.equal(result, inducing_points(x, 20, how, seed=1, kernel=kernel))
    features = Inducing(kernel, result)
    rest = features.residual(x, features.phi(x)).mean()
    none = kernel.diag(x).mean()
    assert float(rest) < 0.5 * float(none)


def test_entropy_is_the_greedy_of_variance() -> None:
    x = torch.from_numpy(X)
    kernel = evgp.NTK(evgp.mlp())
    result = inducing_points(x, 5, "entropy", kernel=kernel)
    rows: list[int] = []
    for _ in range(5):
        inside = kernel(x[rows]) if rows else torch.empty(0, 0, dtype=torch.float64)
        cross = kernel(x, x[rows]) if rows else torch.empty(120, 0, dtype=torch.float64)
        left = kernel.diag(x) - (cross * torch.linalg.solve(inside, cross.T).T).sum(1)
        left[rows] = 0
        rows.append(int(left.argmax()))
    assert torch.equal(result, x[sorted(rows)])


@pytest.mark.parametrize(
    "options",
    [
        {"features": "fourier"},
        {"features": "nystrom-0"},
        {"features": "sketch"},
        {"features": "nystrom", "criterion": "mi"},
    ],
)
def test_what_cannot_be_is_reported(options) -> None:
    with refused(PoolError):
        evgp.pick(X, 3, **options)
    with refused(PoolError):
        inducing_points(torch.from_numpy(X), 121)
    with refused(PoolError):
        inducing_points(torch.from_numpy(X), 2, "best")
