"""Shards change nothing: the picks of one place, for any number of them."""

import pickle
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evgp import EVGP, NTK, Pool, mlp
from evgp.criteria import ExpectedVariance, Linearised
from evgp.errors import DatasetError, PoolError
from evgp.kernels import Inducing, Raw
from evgp.posterior import FeatureStart, Start
from evgp.posterior.feature_rows import Mapped, Stored
from evgp.posterior.feature_sums import FeatureSums
from evgp.search import Budget, Exact, Lazy, Sharded, TwoRounds, shard
from evgp.search.sharded import Coordinator, Shard, ShardStart, split
from evgp.selection.features import inducing_points
from tests.messages import refused

ANY = torch.Generator()


def points(n: int, d: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def features(x: torch.Tensor, u: int = 20) -> Inducing:
    return Inducing(NTK(mlp()), inducing_points(x, u))


def picks(greedy, pool: Pool, k: int | None, criterion=ExpectedVariance(), **more):
    result = EVGP(features(pool.x), criterion, greedy, 1e-3, torch.float32)
    return result(pool, k, generator=ANY, **more)


@pytest.mark.parametrize("criterion", [ExpectedVariance(), Linearised()], ids=repr)
@pytest.mark.parametrize("shards", [1, 2, 3, 7, 90])
def test_shards_pick_as_one_place_does(shards, criterion) -> None:
    x = points(90, 4)
    pool = Pool(torch.cat([x, x[:30]]), points(40, 4, 1), labelled=torch.tensor([5, 70]))
    exact, sharded = (picks(item, pool, 25, criterion) for item in (Exact(), Sharded(shards)))
    assert exact.indices.tolist() == sharded.indices.tolist()
    np.testing.assert_allclose(exact.gains, sharded.gains, rtol=1e-9)
    np.testing.assert_allclose(exact.variance_left, sharded.variance_left, rtol=1e-12)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 99), shards=st.integers(1, 6), budget=st.floats(2, 12))
@example(seed=67, shards=3, budget=2.0)  # both ways to spend it find the same rows
def test_costs_and_candidates_go_to_the_shards(seed, shards, budget) -> None:
    pool, random = Pool(points(30, 3, seed)), np.random.default_rng(seed)
    costs = torch.from_numpy(random.uniform(0.5, 3, 30))
    subset = torch.from_numpy(np.sort(random.choice(30, 20, replace=False)))
    exact, sharded = (
        picks(item, pool, None, costs=costs, budget=budget, candidates=subset)
        for item in (Exact(), Sharded(shards))
    )
    assert exact.indices.tolist() == sharded.indices.tolist()
    assert set(sharded.indices.tolist()) <= set(subset.tolist())
    assert float(costs[sharded.indices].sum()) <= budget * (1 + 1e-9)


@dataclass(frozen=True)
class Coarse(ExpectedVariance):
    """The expected variance, as if gains were known to this share of the variance only."""

    share: float = 0.0
    monotone: bool = True

    def rounding(self, posterior) -> float:
        return self.share * posterior.scale()


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 99),
    shards=st.integers(1, 7),
    share=st.floats(-4, 0),
    u=st.integers(1, 8),
    priced=st.booleans(),
)
def test_rows_that_all_tie_need_not_be_computed(seed, shards, share, u, priced) -> None:
    """Rounding from a ten thousandth of the variance to all of it: the picks of computing all."""
    pool, random = Pool(points(30, 3, seed)), np.random.default_rng(seed)
    costs = torch.from_numpy(random.uniform(0.5, 3, 30))
    more = {"costs": costs, "budget": 15.0} if priced else {"k": 12}
    every, known = (Coarse(share=10**share, monotone=known) for known in (False, True))
    results = [
        EVGP(features(pool.x, u), criterion, greedy, 1e-3, torch.float32)(
            pool, generator=ANY, **more
        ).indices.tolist()
        for greedy, criterion in [(Exact(), every), (Exact(), known), (Sharded(shards), known)]
    ]
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("greedy", [Exact(), Lazy(), Sharded(3)])
def test_picks_beyond_the_rank_compute_few_rows(greedy, monkeypatch) -> None:
    pool, counted, gains = Pool(points(400, 4)), [], ExpectedVariance.gains

    def seen(self, posterior, rows):
        counted.append(len(rows))
        return gains(self, posterior, rows)

    monkeypatch.setattr(ExpectedVariance, "gains", seen)
    results = []
    for monotone in (False, True):
        counted.clear()
        criterion = Coarse(share=1e-12, monotone=monotone)
        strategy = EVGP(features(pool.x, 10), criterion, greedy, 1e-9, torch.float32)
        results.append((strategy(pool, 40, generator=ANY).indices.tolist(), sum(counted)))
    (every, many), (few, count) = results
    assert few == every
    assert count < 5 * 400 < 20 * 400 < many


@dataclass
class Forgetful:
    """A place that pickles all it is sent, and loses what it knows every few calls."""

    every: int
    seen: int = 0
    sizes: list[int] = field(default_factory=list)

    def run(self, work, calls, names, each=lambda: None):
        results = []
        for call in calls:
            self.seen += 1
            if self.seen % self.every == 0:
                shard._RUNS.clear()
            sent = pickle.dumps(call)
            self.sizes.append(len(sent))
            results.append(pickle.loads(pickle.dumps(work(*pickle.loads(sent)))))
            each()
        return results


@pytest.mark.parametrize("every", [2, 5, 1000])
def test_a_process_that_lost_its_sums_is_sent_all_picks(every) -> None:
    pool = Pool(points(60, 4))
    place = Forgetful(every)
    exact, sharded = (picks(item, pool, 15) for item in (Exact(), Sharded(3, place)))
    assert exact.indices.tolist() == sharded.indices.tolist()
    # Two vectors of p numbers a pick go out, and little else.
    if every == 1000:
        assert max(place.sizes[3:]) < 20 * 16 + 2500


def test_sums_on_the_disk_are_those_in_memory(tmp_path) -> None:
    pool = Pool(points(60, 4))
    start = FeatureStart.of(features(pool.x), pool, 1e-3, torch.float32)
    results = []
    for scratch in (None, str(tmp_path / "scratch")):
        parts, opening = split(start, ExpectedVariance(), torch.arange(60), Budget(9), 2)
        results.append(Sharded().take(parts, replace(opening, scratch=scratch)).rows)
    assert results[0] == results[1]
    assert list((tmp_path / "scratch").iterdir()) == []  # nothing is left behind


@dataclass
class Written:
    picks: list[int] = field(default_factory=list)

    def rows(self) -> list[int]:
        return list(self.picks)

    def add(self, row: int) -> None:
        self.picks.append(row)


@pytest.mark.parametrize("stop", [1, 6, 11, 12])
def test_a_run_resumes_from_its_journal(stop) -> None:
    pool = Pool(points(50, 4))
    start = FeatureStart.of(features(pool.x), pool, 1e-3, torch.float32)

    def run(k: int, journal: Written):
        parts, opening = split(start, ExpectedVariance(), torch.arange(50), Budget(k), 3)
        return Sharded().take(parts, opening, journal=journal)

    whole, journal = run(12, Written()), Written()
    run(stop, journal)
    again = run(12, journal)
    assert again.rows == whole.rows == journal.rows()
    assert again.gains == whole.gains


def test_two_rounds_keep_the_better_of_finalists_and_best_shard() -> None:
    pool = Pool(points(120, 4))
    exact = picks(Exact(), pool, 10)
    single = picks(TwoRounds(1), pool, 10)
    assert single.indices.tolist() == exact.indices.tolist()
    for shards in (2, 5):
        selection = picks(TwoRounds(shards), pool, 10)
        assert len(set(selection.indices.tolist())) == 10
        assert selection.variance_left[-1] <= 1.05 * exact.variance_left[-1]
        step = -(-120 // shards)
        for low in range(0, 120, step):
            own = torch.arange(low, min(120, low + step))
            lone = picks(Exact(), pool, 10, candidates=own)
            assert selection.gains.sum() >= lone.gains.sum() * (1 - 1e-9)


def test_two_rounds_stay_within_the_money() -> None:
    pool = Pool(points(60, 4))
    costs = torch.linspace(0.5, 3, 60, dtype=torch.float64)
    selection = picks(TwoRounds(3), pool, None, costs=costs, budget=9.0)
    assert float(costs[selection.indices].sum()) <= 9.0 * (1 + 1e-9)


def test_two_rounds_continue_where_the_best_shard_runs_out_of_rows() -> None:
    """Three rows help a little each; the two of the second shard together nearly fully."""
    x = torch.zeros(5, 5, dtype=torch.float64)
    x[:4, 0] = 1
    x[:3, 1:4] = 4.9 * torch.eye(3)
    x[3:, 4] = 5
    pool = Pool(x, torch.eye(5, dtype=torch.float64)[:1])
    selection = EVGP(Raw(), greedy=TwoRounds(2))(pool, 3, generator=ANY)
    assert selection.indices.tolist() == [3, 4, 0]  # once [3, 4] alone, two of three
    assert selection.gains[1] > 0.9
    costs = torch.tensor([2.0, 2, 2, 1, 1], dtype=torch.float64)
    selection = EVGP(Raw(), greedy=TwoRounds(2))(pool, costs=costs, budget=5.0, generator=ANY)
    assert selection.costs.tolist() == [1, 1, 2]


@pytest.mark.parametrize("greedy", [Sharded(), TwoRounds()], ids=repr)
def test_kernels_have_no_shards(greedy) -> None:
    start = Start(NTK(mlp()), Pool(points(9, 2)), 1e-3, torch.float64)
    with refused(PoolError):
        greedy(start, ExpectedVariance(), torch.arange(9), Budget(2), generator=ANY)


def test_a_journal_of_another_pool_is_refused() -> None:
    part = Shard(0, Stored(torch.eye(3)), torch.zeros(3, dtype=torch.float64))
    state = FeatureSums.of(torch.eye(3, dtype=torch.float64))
    opening = ShardStart(state, 0.1, 0.0, ExpectedVariance(), Budget(2))
    with refused(PoolError):
        Sharded().take([part], opening, journal=Written([7]))
    assert Coordinator(opening, state).taken().phi.shape == (0, 3)


def test_mapped_rows_are_those_of_the_file(tmp_path) -> None:
    x = points(10, 3).float()
    np.save(tmp_path / "x.npy", x.numpy())
    rows = pickle.loads(pickle.dumps(Mapped(str(tmp_path / "x.npy"), 2, 9)))
    assert rows.shape == (7, 3)
    assert torch.equal(torch.cat([block for _, block in rows.blocks(4)]), x[2:9])
    assert torch.equal(rows.take(torch.tensor([6, 0])), x[[8, 2]].double())
    (tmp_path / "cut.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:-5])
    with refused(DatasetError):
        _ = Mapped(str(tmp_path / "cut.npy"), 0, 1).shape


def test_raw_features_are_sharded_too() -> None:
    pool = Pool(points(40, 6))
    exact, sharded = (
        EVGP(Raw(), ExpectedVariance(), item, 1e-3)(pool, 8, generator=ANY)
        for item in (Exact(), Sharded(4))
    )
    assert exact.indices.tolist() == sharded.indices.tolist()
