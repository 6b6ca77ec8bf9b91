"""Greedies against brute force, each other and their laws."""

from itertools import combinations

import numpy as np
import pytest
import torch

import evgp
from evgp import NTK, ExpectedVariance, MutualInformation, Percentile, Pool, mlp, search
from evgp.errors import PoolError
from evgp.posterior import Start
from evgp.search import Budget, Exact, Exchange, Greedy, Lazy, Sharded, Stochastic, TwoRounds
from evgp.testing import Truth
from tests.laws import greedy as law
from tests.messages import refused
from tests.release.api import PUBLIC

KERNEL = NTK(mlp())
GREEDIES = [Exact(), Lazy(), Stochastic(8), Exchange()]
CRITERIA = [ExpectedVariance(), Percentile(90), MutualInformation()]
ANY = torch.Generator()


def pool(n: int = 25, m: int | None = None, seed: int = 0) -> Pool:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 3, generator=generator, dtype=torch.float64)
    test = None if m is None else torch.randn(m, 3, generator=generator, dtype=torch.float64)
    return Pool(x, x_test=test)


def starts(one: Pool, noise: float = 1e-3, storage: torch.dtype = torch.float64) -> Start:
    return Start(KERNEL, one, noise, storage)


@pytest.mark.parametrize("criterion", CRITERIA, ids=repr)
@pytest.mark.parametrize("greedy", GREEDIES, ids=repr)
def test_a_greedy_obeys_its_laws(greedy, criterion) -> None:
    assert isinstance(greedy, Greedy)
    law.obeys(greedy, criterion, starts(pool()), 6)
    law.obeys(greedy, criterion, starts(pool(m=9)), 6)
    law.obeys(greedy, criterion, starts(pool(n=5)), 5)


def test_every_public_greedy_is_under_the_law() -> None:
    public = {getattr(search, name) for name in PUBLIC["evgp.search"]}
    # The searches over shards need features; test_sharded.py has their laws.
    assert public == {type(greedy) for greedy in GREEDIES} | {Sharded, TwoRounds}


@pytest.mark.parametrize("m", [None, 9])
def test_exact_is_greedy_by_direct_solves(m) -> None:
    first = pool(m=m)
    selection = Exact()(
        starts(first), ExpectedVariance(), first.unlabelled(), Budget(7), generator=ANY
    )
    assert selection.indices.tolist() == law.brute(first, law.truth_of(KERNEL, first, 1e-3), 7)


def test_a_stochastic_greedy_that_sees_all_is_exact() -> None:
    first = pool(60)
    exact, all_seen = (
        greedy(starts(first), ExpectedVariance(), first.unlabelled(), Budget(10), generator=ANY)
        for greedy in (Exact(), Stochastic(60))
    )
    assert np.array_equal(exact.indices, all_seen.indices)
    seeds = [torch.Generator().manual_seed(seed) for seed in range(4)]
    drawn = [
        Stochastic(5)(
            starts(first), ExpectedVariance(), first.unlabelled(), Budget(10), generator=g
        )
        for g in seeds
    ]
    assert len({tuple(result.indices) for result in drawn}) > 1


def test_lazy_is_exact_where_gains_only_shrink() -> None:
    """Far apart points with a local kernel: a pick says nothing about the others."""
    x = torch.eye(12, dtype=torch.float64) * torch.arange(1, 13)[:, None]
    first = Pool(x)
    selections = [
        greedy(
            Start(NTK(mlp(0, b_std=0.0)), first, 1e-6),
            ExpectedVariance(),
            first.unlabelled(),
            Budget(12),
            generator=ANY,
        )
        for greedy in (Exact(), Lazy())
    ]
    assert np.array_equal(selections[0].indices, selections[1].indices)
    assert selections[0].indices.tolist() == list(range(11, -1, -1))


class _Counted(ExpectedVariance):
    """Counts the gains that are asked for."""

    asked = 0

    def gains(self, posterior, rows):
        _Counted.asked += len(rows)
        return super().gains(posterior, rows)


def test_lazy_brings_few_gains_up_to_date() -> None:
    first = pool(400)
    _Counted.asked = 0
    selection = Lazy()(starts(first), _Counted(), first.unlabelled(), Budget(12), generator=ANY)
    assert _Counted.asked < 12 * 400 / 2
    exact = Exact()(
        starts(first), ExpectedVariance(), first.unlabelled(), Budget(12), generator=ANY
    )
    lefts = [
        Truth(KERNEL, first, 1e-3).mean_variance(two.indices.tolist()) for two in (selection, exact)
    ]
    assert lefts[0] <= 1.05 * lefts[1]


@pytest.mark.parametrize("seed", range(6))
def test_exchange_is_never_worse_and_no_swap_helps(seed) -> None:
    first = pool(30, seed=seed)
    truth = law.truth_of(KERNEL, first, 1e-3)
    exact, swapped = (
        greedy(starts(first), ExpectedVariance(), first.unlabelled(), Budget(4), generator=ANY)
        for greedy in (Exact(), Exchange())
    )
    left = truth.mean_variance(swapped.indices.tolist())
    assert left <= truth.mean_variance(exact.indices.tolist()) + 1e-12
    for place in range(4):
        rest = [int(i) for j, i in enumerate(swapped.indices) if j != place]
        for other in set(range(30)) - set(swapped.indices.tolist()):
            assert truth.mean_variance([*rest, other]) >= left - 1e-6


def test_exchange_finds_the_best_pair_often() -> None:
    result = 0
    for seed in range(8):
        first = pool(14, seed=seed)
        truth = law.truth_of(KERNEL, first, 1e-3)
        selection = Exchange()(
            starts(first), ExpectedVariance(), first.unlabelled(), Budget(2), generator=ANY
        )
        best = min(truth.mean_variance(list(pair)) for pair in combinations(range(14), 2))
        result += truth.mean_variance(selection.indices.tolist()) <= best + 1e-9
    assert result >= 6


def test_exchange_ranks_greedily_within_the_set() -> None:
    first = pool(40)
    selection = Exchange()(
        starts(first), ExpectedVariance(), first.unlabelled(), Budget(6), generator=ANY
    )
    within = Pool(first.x, labelled=torch.empty(0, dtype=torch.int64))
    truth = Truth(KERNEL, within, 1e-3)
    picks = selection.indices.tolist()
    for j in range(6):
        lefts = {i: truth.mean_variance([*picks[:j], i]) for i in picks[j:]}
        assert lefts[picks[j]] <= min(lefts.values()) + 1e-9


def test_ties_go_to_the_lowest_index() -> None:
    x = torch.randn(9, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    doubled = Pool(torch.cat([x, x, x]))
    for storage in (torch.float64, torch.float32):
        selection = Exact()(
            starts(doubled, storage=storage),
            ExpectedVariance(),
            torch.arange(27),
            Budget(9),
            generator=ANY,
        )
        assert max(selection.indices) < 9


def test_float32_storage_gives_the_float64_picks_among_duplicates() -> None:
    """800 rows and their copies: rounding must not make a twin look good."""
    x = torch.randn(800, 8, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    doubled = Pool(torch.cat([x, x]))
    selections = [
        Exact()(
            starts(doubled, 1e-6, storage),
            ExpectedVariance(),
            torch.arange(1600),
            Budget(120),
            generator=ANY,
        )
        for storage in (torch.float64, torch.float32)
    ]
    assert np.array_equal(selections[0].indices, selections[1].indices)
    assert len(set(selections[0].indices % 800)) == 120


def test_scaling_kernel_and_noise_together_changes_no_pick() -> None:
    x = pool(50).x
    results = []
    for scale in (1e-6, 1.0, 1e6):
        first = Pool(x)
        start = Start(_Scaled(scale), first, 1e-6 * scale)
        results.append(
            Exchange()(start, ExpectedVariance(), torch.arange(50), Budget(8), generator=ANY)
        )
    assert np.array_equal(results[0].indices, results[1].indices)
    assert np.array_equal(results[1].indices, results[2].indices)


class _Scaled:
    """Our kernel times a number."""

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def __call__(self, x1: torch.Tensor, x2: torch.Tensor | None = None) -> torch.Tensor:
        return KERNEL(x1, x2) * self.scale

    def diag(self, x: torch.Tensor) -> torch.Tensor:
        return KERNEL.diag(x) * self.scale


@pytest.mark.parametrize("greedy", GREEDIES, ids=repr)
@pytest.mark.parametrize("by_rate", [False, True])
def test_money_is_never_overspent_and_never_left_for_an_item(greedy, by_rate) -> None:
    first = pool(30)
    costs = torch.rand(30, generator=torch.Generator().manual_seed(7), dtype=torch.float64) + 0.5
    selection = greedy(
        starts(first),
        ExpectedVariance(),
        torch.arange(30),
        Budget(30, costs, 6.0, by_rate),
        generator=torch.Generator().manual_seed(0),
    )
    spent = float(costs[selection.indices].sum())
    left = [float(costs[i]) for i in range(30) if i not in selection.indices]
    assert spent <= 6.0 + 1e-9
    assert min(left) > 6.0 - spent
    assert selection.costs is not None and selection.costs.sum() == pytest.approx(spent)


def test_a_sample_of_no_candidates_is_refused() -> None:
    with refused(PoolError):
        Stochastic(0)


@pytest.mark.parametrize("seed", [30, 31])
def test_storage_does_not_decide_which_copy_the_lazy_greedy_looks_at(seed) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(14, 2))[rng.permutation(np.repeat(np.arange(14), 5))]
    both = [
        evgp.pick(x, 8, greedy="lazy", noise=1e-2, storage=storage).indices.tolist()
        for storage in ("float64", "float32")
    ]
    assert both[0] == both[1]
