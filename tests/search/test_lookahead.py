"""Guesses of the next picks: the same picks as without them, in fewer reads."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evgp import NTK, ExpectedVariance, Percentile, Pool, mlp
from evgp.posterior import DensePosterior, FeaturePosterior, Start, dense, features
from evgp.posterior.feature_rows import Stored, moment
from evgp.posterior.feature_sums import FeatureSums
from evgp.posterior.posterior import Preparing
from evgp.search import Budget, Exact
from evgp.search.greedy import Lookahead

KERNEL = NTK(mlp())
WEIGHTED = st.booleans()


@pytest.fixture(autouse=True)
def small_pools_are_worth_it(monkeypatch) -> None:
    monkeypatch.setattr(dense, "_SMALL", 0)
    monkeypatch.setattr(features, "_SMALL", 0)


def pool(seed: int, n: int = 60, m: int | None = None, labelled: int = 0, copies: int = 0) -> Pool:
    rng = np.random.default_rng(seed)
    x = torch.from_numpy(rng.normal(size=(n, 4)))
    x[:copies] = x[-copies:] if copies else x[:0]
    test = None if m is None else torch.from_numpy(rng.normal(size=(m, 4)))
    weights = torch.from_numpy(rng.uniform(0.1, 2, size=n if m is None else m))
    known = torch.arange(n - labelled, n) if labelled else None
    options = {} if known is None else {"labelled": known}
    return Pool(x, x_test=test, weights=weights, **options)


def by_kernel(one: Pool, storage: torch.dtype) -> DensePosterior:
    return Start(KERNEL, one, 1e-4, storage)(one.unlabelled())


def by_features(seed: int, dtype: torch.dtype, n: int = 90, p: int = 24) -> FeaturePosterior:
    rng = np.random.default_rng(seed)
    phi = torch.from_numpy(rng.normal(size=(n, p)) / np.arange(1, p + 1)).to(dtype)
    total = moment(Stored(phi), torch.full((n,), 1 / n, dtype=torch.float64))
    noise = torch.full((n,), 1e-3, dtype=torch.float64)
    return FeaturePosterior(Stored(phi), FeatureSums.of(total), noise=noise)


def picks(posterior, budget: Budget, criterion=None) -> tuple[list[int], list[float]]:
    free = torch.ones(len(posterior.variance()), dtype=torch.bool)
    return Exact().fill_(posterior, criterion or ExpectedVariance(), free, budget)


def without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lookahead, "prepare_", lambda *_: None)


def same(opens, budget: Budget) -> None:
    ahead, gains = picks(opens(), budget)
    with pytest.MonkeyPatch.context() as patch:
        without(patch)
        plain, expected = picks(opens(), budget)
    assert ahead == plain
    assert gains == pytest.approx(expected, rel=1e-9)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 1000),
    m=st.sampled_from([None, 7, 45]),
    labelled=st.sampled_from([0, 3]),
    copies=st.sampled_from([0, 9]),
    storage=st.sampled_from([torch.float32, torch.float64]),
    k=st.integers(2, 30),
)
def test_dense_picks_are_the_same(*, seed, m, labelled, copies, storage, k) -> None:
    first = pool(seed, m=m, labelled=labelled, copies=copies)
    same(lambda: by_kernel(first, storage), Budget(k))


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 1000),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    k=st.integers(2, 40),
)
def test_picks_by_features_are_the_same(seed, dtype, k) -> None:
    same(lambda: by_features(seed, dtype), Budget(k))


@pytest.mark.parametrize("by_rate", [False, True])
def test_picks_with_costs_are_the_same(by_rate) -> None:
    costs = torch.from_numpy(np.random.default_rng(0).uniform(0.5, 3, size=60))
    budget = Budget(60, costs, 25.0, by_rate)
    same(lambda: by_kernel(pool(3), torch.float64), budget)
    rates = Budget(90, torch.cat([costs, costs[:30]]), 25.0, by_rate)
    same(lambda: by_features(3, torch.float64), rates)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000), many=st.integers(1, 12))
def test_wrong_guesses_change_nothing(seed, many) -> None:
    """Half of the guesses are right for some picks, then wrong."""
    rng = np.random.default_rng(seed)
    guess = Lookahead._guess

    def wrong(self, posterior, budget, allowed, *, spent, size) -> list[int]:
        right = guess(self, posterior, budget, allowed, spent=spent, size=size)
        right = right[: int(rng.integers(0, 4))]
        others = [row for row in rng.permutation(len(allowed)).tolist() if row not in right]
        return [*right, *[row for row in others if allowed[row]][:many]]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Lookahead, "_guess", wrong)
        dense_picks = picks(by_kernel(pool(seed, m=20), torch.float32), Budget(12))[0]
        feature_picks = picks(by_features(seed, torch.float32), Budget(20))[0]
        without(patch)
        assert dense_picks == picks(by_kernel(pool(seed, m=20), torch.float32), Budget(12))[0]
        assert feature_picks == picks(by_features(seed, torch.float32), Budget(20))[0]


def test_the_matrix_is_read_once_for_several_picks(monkeypatch) -> None:
    reads = []
    products = DensePosterior._products
    monkeypatch.setattr(
        DensePosterior, "_products", lambda self, w: reads.append(len(w)) or products(self, w)
    )
    picks(by_kernel(pool(0, n=400), torch.float64), Budget(60))
    assert len(reads) < 20
    reads.clear()
    without(monkeypatch)
    picks(by_kernel(pool(0, n=400), torch.float64), Budget(60))
    assert reads == [1] * 59


def test_features_are_read_once_for_several_picks(monkeypatch) -> None:
    reads = []
    blocks = Stored.blocks
    monkeypatch.setattr(Stored, "blocks", lambda self, *a: reads.append(1) or blocks(self, *a))
    posterior = by_features(1, torch.float64, n=500, p=64)
    reads.clear()
    picks(posterior, Budget(60))
    assert len(reads) < 20


@pytest.mark.parametrize("m", [None, 30])
def test_pairs_are_those_of_direct_solves(m) -> None:
    first = pool(5, m=m, labelled=4)
    posterior = by_kernel(first, torch.float64)
    assert isinstance(posterior, Preparing)
    for rows, picked in (([1, 4, 9], 20), ([1, 2, 9, 30], 8), ([2, 30, 41], 40), ([0, 2, 50], 1)):
        posterior.observe_(picked)
        at = torch.tensor(rows)
        own, sums = posterior.pairs(at)
        cross = posterior.covariance(at)
        assert torch.allclose(sums, (cross * posterior.weights()) @ cross.T, rtol=1e-9, atol=1e-12)
        assert torch.allclose(own.diagonal(), posterior.variance()[at], rtol=1e-9, atol=1e-12)
        if m is None:
            assert torch.allclose(own, cross[:, at], rtol=1e-9, atol=1e-12)


def test_pairs_of_features_are_those_of_direct_solves() -> None:
    posterior = by_features(2, torch.float64)
    for row in (4, 50):
        posterior.observe_(row)
    at = torch.tensor([0, 7, 60])
    own, sums = posterior.pairs(at)
    cross = posterior.covariance(at)
    assert torch.allclose(sums, cross @ cross.T) and torch.allclose(
        own.diagonal(), posterior.variance()[at]
    )


@pytest.mark.parametrize("opens", [lambda: by_kernel(pool(6), torch.float64),
                                   lambda: by_features(6, torch.float64)])  # fmt: skip
def test_an_expected_pick_does_what_an_unexpected_one_does(opens) -> None:
    expected, plain = opens(), opens()
    expected.expect_([5, 9, 2, 30])
    for row in (5, 9, 17, 2):  # the third is another one
        expected.observe_(row)
        plain.observe_(row)
        assert torch.allclose(expected.fall(), plain.fall(), rtol=1e-9, atol=1e-12)
        assert torch.allclose(expected.variance(), plain.variance(), rtol=1e-9, atol=1e-12)
        assert expected.mean_variance() == pytest.approx(plain.mean_variance(), rel=1e-9)
    expected.expect_([40, 41])
    expected.forget_(9)
    expected.observe_(40)
    plain.forget_(9)
    plain.observe_(40)
    assert torch.allclose(expected.fall(), plain.fall(), rtol=1e-8, atol=1e-11)


def test_criteria_that_need_every_test_point_are_not_guessed(monkeypatch) -> None:
    monkeypatch.setattr(Lookahead, "_guess", lambda *_: pytest.fail("a guess"))
    picks(by_kernel(pool(0), torch.float64), Budget(5), Percentile(90))


def test_small_matrices_are_read_for_each_pick(monkeypatch) -> None:
    monkeypatch.undo()
    assert by_kernel(pool(0), torch.float64).worth() == 1
    assert by_features(0, torch.float64).worth() == 1
