"""What the certificate claims, against every subset and the worst of bases."""

import sys
from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes, load_digits
from torch import Tensor

import evgp
from evgp import bounds, posterior
from tests.conftest import examples
from tests.theory.test_claims import LINEAR, POOLS, RELU, standard, table


class Direct:
    """The weighted mean variance left by any rows, by one solve each."""

    def __init__(self, kernel, pool: evgp.Pool, noise: float) -> None:
        known, test = pool.known(), pool.test_points()
        every = torch.cat([pool.x, known, test])
        prior, n = kernel(every).numpy(), len(pool.x) + len(known)
        self.gram = prior[:n, :n] + noise * np.eye(n)
        self.cross, self.diagonal = prior[:n, n:], prior.diagonal()[n:]
        self.known, self.weights = list(range(len(pool.x), n)), pool.test_weights().numpy()

    def __call__(self, *rows: int) -> float:
        return float(self.each([rows])[0])

    def each(self, sets) -> np.ndarray:
        """Of many sets of one size at once."""
        at = np.array([[*self.known, *rows] for rows in sets], dtype=int)
        cross, gram = self.cross[at], self.gram[at[:, :, None], at[:, None, :]]
        falls = (cross * np.linalg.solve(gram, cross)).sum(1)
        return (self.diagonal - falls) @ self.weights


@pytest.mark.parametrize("noise", [1e-6, 0.3])
@pytest.mark.parametrize("kernel", [RELU, LINEAR], ids=["relu", "linear"])
@pytest.mark.parametrize("name", POOLS)
def test_the_certificate_holds_against_every_subset(name, kernel, noise) -> None:
    pool = POOLS[name]
    selection = evgp.EVGP(kernel, greedy=evgp.search.Exchange(), noise=noise)(
        pool, 4, generator=torch.Generator()
    )
    direct = Direct(kernel, pool, noise * selection.prior_variance)
    free = pool.unlabelled().tolist()
    best = {j: direct.each(combinations(free, j)).min() for j in range(len(free) + 1)}
    start, certificate = selection.start_variance, selection.certificate
    assert start == pytest.approx(best[0])
    for j in range(1, 5):
        left = selection.variance_left[j - 1]
        assert left == pytest.approx(direct(*selection.indices[:j]), abs=1e-9)
        assert certificate.lowest[j - 1] <= best[j] + 1e-12
        assert certificate.share[j - 1] <= (start - left) / (start - best[j]) + 1e-9
    for share, (low, high) in certificate.needed.items():
        goal = (1 - share) * selection.prior_variance
        assert all(best[j] > goal * (1 - 1e-9) for j in best if j < low)
        if high is not None:
            assert ([start, *selection.variance_left])[high] <= goal


@pytest.mark.parametrize("noise", [1e-6, 0.3])
@pytest.mark.parametrize("kernel", [RELU, LINEAR], ids=["relu", "linear"])
@pytest.mark.parametrize("labelled", [[], [1, 6]], ids=["cold", "labelled"])
def test_it_holds_and_is_tighter_by_the_rows_of_a_small_pool(
    labelled, kernel, noise, monkeypatch
) -> None:
    draw = torch.Generator().manual_seed(3)
    x, x_test = (torch.randn(n, 3, generator=draw, dtype=torch.float64) for n in (9, 40))
    weights = torch.rand(40, generator=draw, dtype=torch.float64)
    known = torch.tensor(labelled, dtype=torch.int64)
    pool = evgp.Pool(x, labelled=known, x_test=x_test, weights=weights)

    def certified() -> evgp.Selection:
        return evgp.EVGP(kernel, noise=noise)(pool, 4, generator=torch.Generator())

    by_tests = certified()
    monkeypatch.setattr(sys.modules["evgp.posterior.dense"], "DENSE", 0)
    by_rows = certified()
    assert by_rows.indices.tolist() == by_tests.indices.tolist()
    direct = Direct(kernel, pool, noise * by_rows.prior_variance)
    free, start = pool.unlabelled().tolist(), by_rows.start_variance
    for j in range(1, 5):
        best = direct.each(combinations(free, j)).min()
        assert by_rows.certificate.lowest[j - 1] <= best + 1e-12
        share = (start - by_rows.variance_left[j - 1]) / (start - best)
        assert by_tests.certificate.share[j - 1] < by_rows.certificate.share[j - 1] + 1e-8
        assert by_rows.certificate.share[j - 1] <= share + 1e-9


@pytest.mark.parametrize("name", ["the pool itself", "everything"])
def test_with_costs_it_holds_against_every_subset_for_the_same_money(name) -> None:
    pool = POOLS[name]
    costs = torch.tensor([1.0, 3, 2, 5, 1.5, 4, 2.5, 1, 2], dtype=torch.float64)
    selection = evgp.EVGP(RELU)(pool, costs=costs, budget=6.0, generator=torch.Generator())
    direct = Direct(RELU, pool, 1e-6 * selection.prior_variance)
    free = pool.unlabelled().tolist()
    sets = [rows for j in range(len(free) + 1) for rows in combinations(free, j)]
    left = {rows: direct(*rows) for rows in sets}
    for j in range(1, len(selection) + 1):
        money = selection.costs[:j].sum()
        best = min(left[rows] for rows in sets if float(costs[list(rows)].sum()) <= money + 1e-9)
        reached = selection.start_variance - selection.variance_left[j - 1]
        assert selection.certificate.lowest[j - 1] <= best + 1e-12
        assert (
            selection.certificate.share[j - 1] <= reached / (selection.start_variance - best) + 1e-9
        )


def test_neither_gain_nor_gain_per_cost_is_safe_alone() -> None:
    """Orthogonal rows, so that gains add up: each order can be fooled; we take the better."""
    many = torch.eye(11, dtype=torch.float64)
    many[0] *= 1.2
    prices = torch.tensor([10.0] + [1.0] * 10, dtype=torch.float64)
    kw = {"kernel": LINEAR, "scale": None, "greedy": "exact"}
    assert len(evgp.pick(many, budget=10, costs=prices, **kw)) == 10  # not the expensive best one
    few = table((3, 0), (0, 0.2))
    bought = evgp.pick(few, budget=10, costs=np.array([10.0, 0.01]), **kw)
    assert bought.indices.tolist() == [0]  # not the bargain that leaves too little money


# -- how near the best -----------------------------------------------------------------------------


def test_small_pools_come_close_to_the_best_subset() -> None:
    x, rng = standard(load_diabetes().data), np.random.default_rng(0)
    exact, exchange, shares = [], [], []
    for _ in range(20):
        pool = evgp.Pool(x[rng.permutation(len(x))[:14]])
        for greedy, reached in ((evgp.search.Exact(), exact), (evgp.search.Exchange(), exchange)):
            selection = evgp.EVGP(RELU, greedy=greedy)(pool, 4, generator=torch.Generator())
            direct = Direct(RELU, pool, 1e-6 * selection.prior_variance)
            best = selection.prior_variance - direct.each(combinations(range(14), 4)).min()
            reached.append((selection.prior_variance - selection.variance_left[-1]) / best)
        shares.append(selection.certificate.share[-1])
    assert min(exact) > 0.95 and sum(item > 1 - 1e-9 for item in exact) == 12
    assert min(exchange) > 0.97 and sum(item > 1 - 1e-9 for item in exchange) == 18
    assert 0.86 < min(shares) < 0.88 and 0.94 < max(shares) < 0.96


def test_picks_of_digits_beat_random_rows() -> None:
    x, rng = load_digits().data[:300], np.random.default_rng(0)
    selection = evgp.pick(x, 20, scale="columns", final=True)
    differs = x.std(0) > 0  # constant pixels are dropped
    direct = Direct(RELU, evgp.Pool(standard(x[:, differs])), 1e-6 * selection.prior_variance)
    assert selection.variance_left[-1] == pytest.approx(direct(*selection.indices))
    random = direct.each(rng.permutation(300)[:20] for _ in range(200))
    assert 0.44 < random.mean() < 0.45 and 0.405 < random.min() < 0.415
    assert selection.variance_left[-1] < 0.3395
    assert selection.certificate.share[-1] > 0.835


def covariance(
    values: np.ndarray, seed: int, storage: torch.dtype = torch.float64
) -> tuple[posterior.TestCovariance, Tensor]:
    """A matrix with these eigenvalues in random directions, and the sums of the largest."""
    m = len(values)
    generator = torch.Generator().manual_seed(seed)
    basis = torch.linalg.qr(torch.randn(m, m, generator=generator, dtype=torch.float64)).Q
    matrix = (basis * torch.from_numpy(values)) @ basis.T
    weights = torch.full((m,), 1 / m, dtype=torch.float64)
    none = torch.empty(0, m, dtype=torch.float64)
    result = posterior.TestCovariance(matrix.to(storage), none, weights, matrix.diagonal().clone())
    return result, torch.from_numpy(np.sort(values)[::-1].copy()).cumsum(0) / m


SPECTRA = {
    "geometric": lambda i, a: (0.5 + 0.5 * a) ** i + 1e-6,
    "power": lambda i, a: (i + 1.0) ** (-3 * a),
    "flat": lambda i, a: np.ones_like(i, dtype=float),
    "steps": lambda i, a: np.where(i < 1 + 50 * a, 1.0, 1e-3),
    "random": lambda i, a: np.random.default_rng(int(1e6 * a)).random(len(i)) ** 4 + 1e-6,
}


@settings(max_examples=examples(40), deadline=None)
@given(
    spectrum=st.sampled_from(sorted(SPECTRA)),
    a=st.floats(0, 0.99),
    seed=st.integers(0, 99),
    k=st.integers(1, 30),
    rounds=st.integers(1, 3),
    guess=st.booleans(),
)
def test_a_bad_basis_never_makes_the_bound_too_low(*, spectrum, a, seed, k, rounds, guess) -> None:
    outcome, sums = covariance(SPECTRA[spectrum](np.arange(130), a), seed)
    junk = torch.ones(k, 130, dtype=torch.float64) if guess else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounds, "DENSE", 1)
        patch.setattr(bounds, "_ROUNDS", rounds)
        bound = bounds.ceiling(outcome, k, guess=junk)
    assert len(bound.parts) > 1, "the block path"
    sizes = [0, 1, 2, k, k + 1, 2 * k, 94, 110, 129, 130, 200]
    result = np.array([bound(j) for j in sorted(sizes)])
    true = np.array([0.0, *sums.tolist()])[np.minimum(sorted(sizes), 130)]
    assert np.all(result >= true - 1e-9 * true[-1])
    assert result[0] == 0 and np.all(np.diff(result) >= -1e-12), "more points, no lower a ceiling"


@pytest.mark.parametrize("spectrum", ["geometric", "power", "steps"])
def test_the_bound_is_close_once_the_basis_is_good(spectrum, monkeypatch) -> None:
    result, sums = covariance(SPECTRA[spectrum](np.arange(300), 0.6), 0)
    monkeypatch.setattr(bounds, "DENSE", 1)
    assert bounds.ceiling(result, 20)(20) <= 1.02 * float(sums[19])


def test_the_ritz_values_alone_would_be_too_low(monkeypatch) -> None:
    result, sums = covariance(SPECTRA["power"](np.arange(130), 0.3), 0)
    monkeypatch.setattr(bounds, "DENSE", 1)
    monkeypatch.setattr(bounds, "_ROUNDS", 1)
    bound = bounds.ceiling(result, 20)
    assert max(float(part.ritz[20]) for part in bound.parts) < 0.9 * float(sums[19])


@pytest.mark.parametrize("storage", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_rounding_never_makes_the_bound_too_low(storage, monkeypatch) -> None:
    tail = {torch.float32: 3e-6, torch.float64: 1e-9}[storage]
    monkeypatch.setattr(bounds, "DENSE", 1)
    for seed in range(4):
        result, sums = covariance(np.where(np.arange(400) < 1, 1.0, tail), seed, storage)
        bound = bounds.ceiling(result, 20)
        assert all(bound(j) >= float(sums[j - 1]) * (1 - 1e-11) for j in (20, 100, 399, 400))


@pytest.mark.filterwarnings("ignore:after 1 of 5 picks")
@pytest.mark.parametrize("noise", [1e-3, 1e-6])
def test_float32_storage_never_promises_more(noise) -> None:
    """A linear network, with little variance left by the labels: Theta - B^T B cancels."""
    x = load_digits().data[:600]
    known = np.random.default_rng(0).permutation(600)[:500]
    network = evgp.mlp(activation="identity")
    wide, single = (
        evgp.pick(x, 5, labelled=known, network=network, noise=noise, storage=storage)
        for storage in ("float64", "float32")
    )
    assert wide.indices.tolist() == single.indices.tolist()
    assert np.all(single.certificate.share <= wide.certificate.share * (1 + 1e-9))
