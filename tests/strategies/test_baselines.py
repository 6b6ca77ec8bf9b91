"""Baselines that need no labels, against their laws and plain computations."""

from inspect import unwrap

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import kmeans_plusplus

from evgp import EVGP, NTK, EvgpError, Pool, mlp
from evgp.errors import PoolError
from evgp.strategies import (
    BAIT,
    LCMD,
    CoreSet,
    KMeans,
    KMeansPlusPlus,
    MaxHerding,
    MaxVariance,
    ProbCover,
    Random,
    Thinned,
    TypiClust,
)
from evgp.strategies.strategy import unlabelled
from evgp.testing import check_strategy
from tests.messages import refused

KERNEL = NTK(mlp())
EVERY = [
    EVGP(KERNEL),
    Random(),
    KMeansPlusPlus(),
    CoreSet(),
    MaxVariance(KERNEL),
    BAIT(),
    KMeans(),
    LCMD(),
    MaxHerding(),
    ProbCover(),
    TypiClust(),
]


def points(n: int, d: int = 3, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


POOLS = {
    "plain": Pool(points(20)),
    "labelled inside and outside": Pool(
        points(20), points(8, seed=1), labelled=torch.tensor([3, 17]), x_labelled=points(4, seed=2)
    ),
    "copies": Pool(points(6).repeat(3, 1)),
}


@pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS)
@pytest.mark.parametrize("strategy", EVERY, ids=lambda value: type(value).__name__)
def test_a_strategy_obeys_its_laws(strategy, pool) -> None:
    check_strategy(strategy, pool, 5)


def test_random_depends_on_the_generator_alone() -> None:
    pool = POOLS["plain"]
    selections = [
        Random()(pool, 6, generator=torch.Generator().manual_seed(seed)) for seed in range(9)
    ]
    assert len({tuple(selection.indices) for selection in selections}) == 9
    counts = np.bincount(
        np.concatenate(
            [Random()(pool, 5, generator=torch.Generator().manual_seed(s)).indices
             for s in range(2000)]
        ),
        minlength=20,
    )  # fmt: skip
    assert abs(counts - 500).max() < 5 * np.sqrt(500 * 0.75)


def test_kmeans_plusplus_is_scikit_learns_in_rounds_of_one_list() -> None:
    x = points(50)
    _, order = kmeans_plusplus(x.numpy(), 50, random_state=3)
    strategy, labelled = KMeansPlusPlus(most=50, seed=3), torch.empty(0, dtype=torch.int64)
    calls: list[int] = []
    for _ in range(4):
        selection = strategy(Pool(x, labelled=labelled), 5, generator=torch.Generator())
        calls += selection.indices.tolist()
        labelled = torch.tensor(calls)
    assert calls == list(dict.fromkeys(order.tolist()))[:20]


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 999), n=st.integers(3, 30), known=st.integers(0, 2), k=st.integers(1, 3))
def test_core_set_takes_the_farthest(seed, n, known, k) -> None:
    x = points(n + known, 2, seed)
    pool = Pool(x, labelled=torch.arange(known))
    selection = CoreSet()(pool, k, generator=torch.Generator().manual_seed(seed))
    centres = list(range(known))
    for row, gain in zip(selection.indices.tolist(), selection.gains.tolist(), strict=True):
        if centres:
            distance = torch.cdist(x, x[centres]).amin(1)
            distance[centres] = -1
            assert gain == pytest.approx(float(distance.max()), rel=1e-9)
            assert float(distance[row]) == pytest.approx(gain, rel=1e-9)
        centres.append(row)


@pytest.mark.parametrize("name", list(POOLS))
def test_max_variance_is_the_largest_by_a_direct_solve(name) -> None:
    pool = POOLS[name]
    selection = MaxVariance(KERNEL, noise=1e-3)(pool, 6, generator=torch.Generator())
    known = pool.known()
    noise = 1e-3 * float(KERNEL.diag(pool.x).mean())
    left = set(pool.unlabelled().tolist())
    for row, gain in zip(selection.indices.tolist(), selection.gains.tolist(), strict=True):
        variance = KERNEL.diag(pool.x)
        if len(known):
            inside = KERNEL(known) + noise * torch.eye(len(known), dtype=torch.float64)
            cross = KERNEL(known, pool.x)
            variance = variance - (cross * torch.linalg.solve(inside, cross)).sum(0)
        best = max(float(variance[item]) for item in left)
        assert gain == pytest.approx(best, rel=1e-6, abs=1e-9)
        assert float(variance[row]) == pytest.approx(best, rel=1e-6, abs=1e-9)
        known = torch.cat([known, pool.x[row : row + 1]])
        left.remove(row)


@pytest.mark.parametrize("k", [0, 21, True])
@pytest.mark.parametrize("strategy", EVERY, ids=lambda value: type(value).__name__)
def test_k_is_a_number_of_rows_that_the_pool_has(strategy, k) -> None:
    with refused(EvgpError):
        strategy(POOLS["plain"], k, generator=torch.Generator())


@pytest.mark.parametrize("k", [2.0, "3", None])
def test_k_is_a_whole_number(k) -> None:
    with refused(EvgpError):
        unwrap(unlabelled)(POOLS["plain"], k)


@pytest.mark.parametrize(
    "strategy",
    [CoreSet(), KMeansPlusPlus(), BAIT(), KMeans(), LCMD(), MaxHerding(), ProbCover(), TypiClust()],
)
def test_distances_need_finite_rows(strategy) -> None:
    holes = points(6)
    holes[2, 1] = torch.nan
    for x in (holes, points(6)[:, 0]):
        with refused(PoolError):
            strategy(Pool(x), 2, generator=torch.Generator())
    wide = type(strategy)(embed=lambda x: x[:, None])
    with refused(PoolError):
        unwrap(type(wide).__call__)(wide, Pool(points(6)), 2, generator=torch.Generator())


def test_a_network_may_embed() -> None:
    torch.manual_seed(0)
    embed = torch.nn.Linear(3, 2).double()
    for kind in (CoreSet, KMeansPlusPlus, BAIT, KMeans, LCMD, MaxHerding, ProbCover, TypiClust):
        result = kind(embed=embed)(POOLS["plain"], 4, generator=torch.Generator())
        plain = Pool(embed(POOLS["plain"].x).detach())
        other = kind()(plain, 4, generator=torch.Generator())
        assert result.indices.tolist() == other.indices.tolist()


def test_fewer_test_points_than_one_are_refused() -> None:
    with refused(PoolError):
        Thinned(Random(), 0)


def test_embeddings_take_the_place_of_inputs() -> None:
    x = torch.cat([points(10), 100 * points(10, 1, 3)], dim=1)

    def first(inputs: torch.Tensor) -> torch.Tensor:
        return inputs[:, :3]

    same = Pool(first(x), labelled=torch.tensor([0]))
    pool = Pool(x, labelled=torch.tensor([0]))
    for kind in (CoreSet, KMeansPlusPlus, BAIT, KMeans, LCMD, MaxHerding, ProbCover, TypiClust):
        item, other = (
            result(subset, 5, generator=torch.Generator()).indices.tolist()
            for result, subset in ((kind(embed=first), pool), (kind(), same))
        )
        assert item == other
