"""NASWOT and the marginal likelihood, compared with plain loops and scikit-learn."""

import numpy as np
import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, PairwiseKernel, WhiteKernel

from evgp import NTK, mlp
from experiments.other_scores import evidence, naswot

X = torch.randn(20, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
Y = torch.sin(X.sum(1, keepdim=True))


def test_evidence_is_that_of_scikit_learn() -> None:
    kernel = NTK(mlp(1, activation="erf"))
    noise = 1e-2 * float(kernel.diag(X).mean())
    matrix = kernel(X) + noise * torch.eye(20, dtype=torch.float64)
    scale = float((Y.T @ torch.linalg.solve(matrix, Y)).squeeze() / 20)
    lookup = {tuple(row): i for i, row in enumerate(X.numpy().round(12).tolist())}

    def table(a, b, gamma):
        return float(kernel(X)[lookup[tuple(a.round(12))], lookup[tuple(b.round(12))]])

    pair = PairwiseKernel(metric=table)
    whole = ConstantKernel(scale, "fixed") * pair + WhiteKernel(scale * noise, "fixed")
    gp = GaussianProcessRegressor(whole, alpha=0.0, optimizer=None)
    gp.fit(X.numpy(), Y.numpy()[:, 0])
    actual = evidence(mlp(1, activation="erf"), X, Y, noise=1e-2)
    assert actual == pytest.approx(gp.log_marginal_likelihood_value_, rel=1e-8)


def test_naswot_counts_signs_that_agree() -> None:
    network = mlp(2, width=64, activation="erf")
    module = network.build((3,), generator=torch.Generator().manual_seed(4))
    with torch.no_grad():
        first = module[1](module[0](X.float()))
        second = module[3](module[2](first))
    codes = torch.cat([first > 0, second > 0], 1).numpy()
    kernel = np.array([[(a == b).sum() for b in codes] for a in codes], dtype=np.float64)
    assert naswot(network, X, seed=4) == pytest.approx(np.linalg.slogdet(kernel)[1])
    both = (naswot(network, X, seed=4) + naswot(network, X, seed=5)) / 2
    assert naswot(network, X, seed=4, draws=2) == pytest.approx(both)


def test_both_scores_take_arrays() -> None:
    assert naswot(mlp(width=32), X.numpy()) == naswot(mlp(width=32), X)
    assert evidence(mlp(), X.numpy(), Y[:, 0].numpy()) == pytest.approx(evidence(mlp(), X, Y))
