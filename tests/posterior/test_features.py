"""The posterior in feature space: the dense one of the same kernel, without the test points."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evgp import EVGP, NTK, Pool, mlp
from evgp._linalg import BLOCK
from evgp.kernels import Inducing, Raw
from evgp.posterior import FeaturePosterior, FeatureStart, feature_sums
from evgp.posterior.feature_rows import Some, Stored, moment
from evgp.posterior.feature_sums import FeatureSums
from evgp.search import Exact, Exchange, Lazy, Stochastic
from evgp.testing import Truth
from tests.messages import refused


@dataclass(frozen=True)
class Linear:
    """The kernel of raw features."""

    def __call__(self, x1, x2=None):
        return x1 @ (x1 if x2 is None else x2).T

    def diag(self, x):
        return x.square().sum(1)


@dataclass(frozen=True)
class FIC:
    """A kernel's Nystrom part between points, and its own diagonal: fully independent rests."""

    features: Inducing
    kernel: object

    def __call__(self, x1, x2=None):
        other = x1 if x2 is None else x2
        result = self.features.phi(x1) @ self.features.phi(other).T
        same = (x1[:, None] == other[None]).all(-1)
        return torch.where(same, self.kernel.diag(x1)[:, None], result)

    def diag(self, x):
        return self.kernel.diag(x)


def points(n: int, d: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def pools() -> dict[str, Pool]:
    x, test = points(60, 7), points(25, 7, 1)
    weights = torch.rand(25, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    return {
        "pool is test": Pool(x),
        "test points with weights": Pool(x, test, weights=weights / weights.sum()),
        "some rows are test points": Pool(x, test=torch.arange(0, 60, 3)),
        "a row is a test point twice": Pool(x, test=torch.tensor([4, 9, 4, 30, 31, 4, 9])),
        "labelled inside and outside": Pool(
            x, test, labelled=torch.tensor([3, 8]), x_labelled=points(4, 7, 3)
        ),
    }


def agrees(posterior: FeaturePosterior, truth: Truth, candidates, picks, tol: float) -> None:
    x, test = truth.pool.x[candidates], truth.pool.test_points()
    fall = truth.covariance(x, test, picks).square() @ truth.pool.test_weights()
    variance = truth.covariance(x, x, picks).diagonal()
    close = {"rtol": 1e-7, "atol": tol}
    assert torch.allclose(posterior.fall(), fall, **close)
    assert torch.all((posterior.fall() - fall).abs() <= posterior.slack() + 1e-9 * fall.max())
    assert torch.all(posterior.variance() <= variance.clamp(min=0) + 1e-9 * variance.max())
    assert torch.allclose(posterior.variance(), variance.clamp(min=0), **close)
    assert posterior.mean_variance() == pytest.approx(truth.mean_variance(picks), rel=1e-7)
    directions = posterior.test_variance()
    assert float(posterior.weights() @ directions) == pytest.approx(posterior.mean_variance())
    rows = torch.arange(len(candidates))
    cov = posterior.covariance(rows)
    assert torch.allclose(cov.square().sum(1), fall, **close)
    assert torch.allclose(posterior.fall(rows), fall, rtol=1e-9, atol=1e-12)
    assert torch.allclose(posterior.variance(), variance, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("storage", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", list(pools()))
def test_it_is_the_dense_posterior_of_the_same_kernel(name, storage) -> None:
    pool = pools()[name]
    if storage == torch.float32:  # what is stored is the truth
        pool = Pool(
            *(None if item is None else item.float().double() for item in (pool.x, pool.x_test)),
            test=pool.test,
            weights=pool.weights,
            labelled=pool.labelled,
            x_labelled=pool.x_labelled,
        )
    start = FeatureStart.of(Raw(), pool, 1e-3, storage)
    truth = Truth(Linear(), pool, start.noise)
    candidates = pool.unlabelled()
    posterior = start(candidates)
    tol = 1e-10 if storage == torch.float64 else 1e-4
    picks: list[int] = []
    agrees(posterior, truth, candidates, picks, tol)
    for row in (5, 17, 2):
        posterior.observe_(row)
        picks.append(int(candidates[row]))
        agrees(posterior, truth, candidates, picks, tol)
    posterior.forget_(17)
    agrees(posterior, truth, candidates, [picks[0], picks[2]], tol)
    posterior.observe_(17)  # back again
    agrees(posterior, truth, candidates, picks, tol)
    posterior.forget_(5)
    posterior.observe_(30)  # another in its place
    agrees(posterior, truth, candidates, [*picks[1:], int(candidates[30])], tol)
    assert posterior.observed() == [17, 2, 30]


@pytest.mark.parametrize("greedy", [Exact(), Lazy(), Stochastic(), Exchange()])
@pytest.mark.parametrize("name", list(pools()))
def test_picks_are_those_of_the_dense_greedy(name, greedy) -> None:
    pool = pools()[name]
    selections = [
        EVGP(kernel, greedy=greedy, noise=1e-3)(
            pool, 12, generator=torch.Generator().manual_seed(0)
        )
        for kernel in (Linear(), Raw())
    ]
    dense, featured = selections
    assert featured.indices.tolist() == dense.indices.tolist()
    np.testing.assert_allclose(featured.gains, dense.gains, rtol=1e-6)
    np.testing.assert_allclose(featured.variance_left, dense.variance_left, rtol=1e-7)
    assert featured.prior_variance == pytest.approx(dense.prior_variance)
    assert featured.start_variance == pytest.approx(dense.start_variance)
    np.testing.assert_allclose(featured.certificate.share, dense.certificate.share, rtol=1e-5)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000), n=st.integers(8, 40), p=st.integers(1, 6), k=st.integers(1, 8))
def test_storage_and_copies_change_no_pick(seed, n, p, k) -> None:
    x = points(n, p, seed).float().double()
    pool = Pool(torch.cat([x, x]))  # every row twice
    exact, narrow = (
        EVGP(Raw(), greedy=Exact(), storage=storage)(pool, k, generator=torch.Generator())
        for storage in (torch.float64, torch.float32)
    )
    assert exact.indices.tolist() == narrow.indices.tolist()
    assert len(set(exact.indices.tolist())) == k


def test_rounding_stays_within_its_allowance_where_features_are_alike() -> None:
    """Where terms of a sum are alike, their rounding adds up."""
    values = torch.linspace(0.1, 1, 40)[:, None].double()
    pool, every = Pool(values.expand(40, 4096).contiguous()), torch.arange(40)
    posterior = FeatureStart.of(Raw(), pool, 1e-2, torch.float32)(every)
    posterior.observe_(17)
    below, near, slack = posterior.variance(), posterior.fall().clone(), posterior.slack().clone()
    fall = posterior.fall(every)
    assert bool((below <= posterior.variance() * (1 + 1e-9)).all())
    assert bool(((near - fall).abs() <= slack + 1e-9 * fall).all())


@pytest.mark.parametrize("threads", [1, 3])
def test_the_compiled_pass_is_the_plain_one(monkeypatch, threads) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    phi = points(700, 9).float()
    total = moment(Stored(phi), torch.full((700,), 1 / 700, dtype=torch.float64))
    noise = torch.full((700,), 1e-3, dtype=torch.float64)
    results = []
    for worth in (0, 1 << 60):
        monkeypatch.setattr(feature_sums, "_WORTH", worth)
        assert (feature_sums.fused(phi.numel(), phi.dtype) is None) == (worth > 0)
        posterior = FeaturePosterior(Stored(phi), FeatureSums.of(total), noise=noise)
        for row in (3, 400, 77):
            posterior.observe_(row)
        posterior.forget_(400)
        results.append([item.clone() for item in (posterior.fall(), posterior.variance())])
        results[-1].append(posterior.slack().clone())
    for compiled, plain in zip(*results, strict=True):
        assert torch.allclose(compiled, plain, rtol=1e-4, atol=1e-5 * float(plain.max()))


def test_inducing_at_every_point_is_the_kernel_itself() -> None:
    pool = Pool(points(40, 3), points(15, 3, 1), labelled=torch.tensor([1]))
    kernel = NTK(mlp())
    dense, sparse = (
        EVGP(item, greedy=Exact())(pool, 8, generator=torch.Generator())
        for item in (kernel, Inducing(kernel, torch.cat([pool.x, pool.test_points()])))
    )
    assert sparse.indices.tolist() == dense.indices.tolist()
    np.testing.assert_allclose(sparse.variance_left, dense.variance_left, rtol=1e-4)


def test_the_rest_of_inducing_points_is_noise_of_its_own() -> None:
    x = points(30, 3)
    kernel = NTK(mlp())
    features = Inducing(kernel, x[::5])
    pool = Pool(x, points(10, 3, 1))
    start = FeatureStart.of(features, pool, 1e-3, torch.float64)
    truth = Truth(FIC(features, kernel), pool, start.noise)
    picks = [4, 11, 12]
    posterior = start(torch.arange(30))
    for row in picks:
        posterior.observe_(row)
    assert posterior.mean_variance() == pytest.approx(truth.mean_variance(picks), rel=1e-6)
    assert bool((features.residual(x, features.phi(x)) >= 0).all())
    nystrom = Inducing(kernel, x[::5], rest=False)
    assert float(nystrom.residual(x, nystrom.phi(x)).sum()) == 0


def test_rows_come_in_fixed_blocks() -> None:
    matrix = torch.arange(3.0 * (BLOCK + 5)).reshape(-1, 3)
    whole = Stored(matrix)
    assert [start for start, _ in whole.blocks(BLOCK)] == [0, BLOCK]
    mapped = Stored(matrix.numpy())
    assert torch.equal(torch.cat([block for _, block in mapped.blocks()]), matrix)
    half = Stored(matrix[:10].half())
    assert next(half.blocks())[1].dtype == torch.float32
    rows = torch.tensor([0, 7, BLOCK - 1, BLOCK, BLOCK + 4])
    subset = Some(whole, rows)
    assert torch.equal(torch.cat([block for _, block in subset.blocks()]), matrix[rows])
    assert [start for start, _ in subset.blocks(BLOCK)] == [0, 3]
    assert torch.equal(subset.take(torch.tensor([3, 0])), matrix[rows[[3, 0]]].double())
    weights = torch.rand(len(matrix), dtype=torch.float64)
    direct = matrix.double().T @ (weights[:, None] * matrix.double())
    assert torch.allclose(moment(whole, weights), direct)


def test_other_criteria_are_refused() -> None:
    from evgp import MutualInformation

    with refused(ValueError):
        EVGP(Raw(), MutualInformation())(Pool(points(9, 2)), 2, generator=torch.Generator())
