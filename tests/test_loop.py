"""Pick, ask, reveal: rounds against single calls, and what is refused."""

from inspect import unwrap

import numpy as np
import pytest
import torch

from evgp import EVGP, NTK, EmpiricalNTK, Pool, Selection, mlp, run
from evgp.errors import PoolError
from evgp.kernels import Inducing, Sketch, is_random, redrawn
from evgp.search import Exchange
from evgp.strategies import CoreSet, Hybrid, KMeansPlusPlus, MaxVariance, Random
from tests.messages import refused

X = torch.randn(40, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
Y = X.sum(1)
KERNEL = NTK(mlp())


def oracle(rows: torch.Tensor) -> torch.Tensor:
    return Y[rows]


class Seen:
    """Remembers the pools it was asked about, and takes the lowest rows."""

    def __init__(self) -> None:
        self.pools: list[Pool] = []

    def __call__(self, pool, k, *, generator):
        self.pools.append(pool)
        rows = pool.unlabelled()[:k].numpy()
        return Selection(rows, np.zeros(k))


def picking(rows: list[int]):
    return lambda pool, k, *, generator: Selection(np.array(rows), np.zeros(len(rows)))


AHEAD = [
    EVGP(KERNEL), MaxVariance(KERNEL), CoreSet(), Random(), KMeansPlusPlus(),
    Hybrid(EVGP(KERNEL), KMeansPlusPlus(), after=5), Hybrid(KMeansPlusPlus(), EVGP(KERNEL), 2),
]  # fmt: skip


@pytest.mark.parametrize("strategy", AHEAD, ids=lambda value: type(value).__name__)
def test_ahead_is_what_single_rounds_would_pick(strategy) -> None:
    assert strategy.ahead
    results = [
        row for item in run(Pool(X), strategy, oracle, 3, 4) for row in item.selection.indices
    ]
    assert len(set(results)) == 12
    if isinstance(strategy, Random):
        return  # other draws, of the same law
    rest, pool = results[4:], Pool(X)
    pool = pool.reveal(torch.tensor(results[:4]), Y[results[:4]])
    assert strategy(pool, 8, generator=torch.Generator()).indices.tolist() == rest


def test_whole_numbers_among_the_first_labels_cut_nothing_off_later_ones() -> None:
    answers = iter(([1, 2], [0.5, 3]))
    *_, last = run(Pool(X), Random(), lambda rows: next(answers), 2, 2)
    assert last.pool.y.tolist() == [1.0, 2.0, 0.5, 3.0]
    small = Pool(X, labelled=torch.tensor([0]), y=torch.tensor([7], dtype=torch.uint8))
    assert small.reveal(torch.tensor([1]), torch.tensor([300])).y.tolist() == [7, 300]


def test_rounds_see_the_labels_of_those_before() -> None:
    seen = Seen()
    result = list(run(Pool(X), seen, oracle, 3, 5))
    assert [len(pool.labelled) for pool in seen.pools] == [0, 5, 10]
    assert torch.equal(seen.pools[2].y, Y[:10])
    assert torch.equal(result[-1].pool.y, Y[result[-1].pool.labelled])
    assert [item.number for item in result] == [0, 1, 2]


def test_a_pool_with_labels_continues_and_outside_labels_stay_last() -> None:
    start = Pool(X, labelled=torch.tensor([7]), x_labelled=X[:2] + 1, y=torch.tensor([1.0, 2, 3]))
    last = [*run(start, Seen(), oracle, 2, 2)][-1].pool
    assert last.labelled.tolist() == [7, 0, 1, 2, 3]
    torch.testing.assert_close(
        last.y, torch.cat([torch.tensor([1.0]), Y[:4].float(), torch.tensor([2.0, 3.0])])
    )


def test_an_empirical_kernel_is_fresh_in_each_round() -> None:
    kernel = EmpiricalNTK(mlp(1, 8))
    seeds: list[int] = []

    class Spy(EmpiricalNTK):
        def diag(self, x):
            seeds.append(self.seed)
            return super().diag(x)

    list(run(Pool(X.float()), MaxVariance(Spy(mlp(1, 8))), oracle, 3, 2))
    assert len(set(seeds)) == 3
    assert is_random(Sketch(kernel)) and is_random(Inducing(kernel, X)) and not is_random(KERNEL)
    inducing = Inducing(kernel, X[:5].float())
    inducing.factor()
    again = redrawn(inducing, 5)
    assert again.kernel.seed == 5 and not torch.equal(again.factor(), inducing.factor())
    assert redrawn(KERNEL, 3) is KERNEL
    assert not EVGP(kernel).ahead and not EVGP(KERNEL, greedy=Exchange()).ahead


def test_same_seed_same_rounds() -> None:
    first, two, other = (
        [
            tuple(result.selection.indices)
            for result in run(Pool(X), Random(), oracle, 3, 3, seed=seed)
        ]
        for seed in (1, 1, 2)
    )
    assert first == two != other


def test_a_hybrid_changes_after_a_number_of_labels() -> None:
    warm = Hybrid(EVGP(KERNEL), Seen(), after=6)
    list(run(Pool(X), warm, oracle, 4, 3))
    assert [len(pool.labelled) for pool in warm.then.pools] == [6, 9]


def test_a_hybrid_may_change_within_a_batch() -> None:
    first, then = CoreSet(), MaxVariance(KERNEL)
    for other in (then, Seen()):
        warm = Hybrid(first, other, after=4)
        pool = Pool(X, labelled=torch.tensor([1]), y=Y[1:2])
        result = warm(pool, 7, generator=torch.Generator().manual_seed(0)).indices
        assert len(set(result.tolist()) | {1}) == 8
        assert result[:3].tolist() == first(pool, 3, generator=torch.Generator()).indices.tolist()
    assert len(other.pools[0].y) == 1
    known = pool.reveal(torch.tensor(result[:3]), Y[result[:3]])
    warm = Hybrid(first, then, after=4)(pool, 7, generator=torch.Generator())
    assert warm.indices[3:].tolist() == then(known, 4, generator=torch.Generator()).indices.tolist()


@pytest.mark.parametrize(
    "change",
    [
        {"rounds": 9, "k": 5},
        {"rounds": 0},
        {"k": 0},
        {"oracle": lambda rows: Y[rows][:-1]},
        {"oracle": lambda rows: Y[rows] * torch.nan},
        {"oracle": lambda rows: ["cat"] * len(rows)},
        {"oracle": lambda rows: [None] * len(rows)},
        {"pool": Pool(X, labelled=torch.tensor([3]))},
        {"pool": Pool(X, labelled=torch.tensor([3]), y=Y[3:4, None])},
        {"strategy": "random"},
        {"strategy": Random},
        {"strategy": picking([0, 1])},
        {"strategy": picking([0, 0, 1, 2])},
        {"strategy": picking([0, 1, 2, 99])},
        {"oracle": {0: 1.0}},
        {"pool": X},
        {"seed": -1},
    ],
)
def test_what_cannot_run_is_refused(change) -> None:
    small_pool = {
        "pool": Pool(X),
        "strategy": Random(),
        "oracle": oracle,
        "rounds": 2,
        "k": 4,
        **change,
    }
    with refused(PoolError):
        list(unwrap(run)(**small_pool))


@pytest.mark.parametrize(
    "given",
    [
        {"labelled": [1]},
        {"labelled": torch.tensor([1]), "y": np.zeros(1)},
        {"labelled": torch.tensor([1.0])},
        {"labelled": torch.arange(40) < 3},
        {"x_labelled": X[:, :2]},
        {"x_test": X[:, :2]},
    ],
)
def test_pools_are_checked(given) -> None:
    pool = object.__new__(Pool)  # annotations are checked too in tests, and would come first
    for name, value in {"x": X, **Pool(X).__dict__, **given}.items():
        object.__setattr__(pool, name, value)
    with refused(PoolError):
        unwrap(Pool.__post_init__)(pool)


def test_pool_labels_are_checked() -> None:
    with refused(PoolError):
        Pool(X, labelled=torch.tensor([1, 2]), y=torch.zeros(3))
    with refused(PoolError):
        Pool(X, labelled=torch.tensor([1]), y=torch.zeros(1)).reveal(
            torch.tensor([1]), torch.zeros(1)
        )


def test_a_hybrid_within_a_batch_takes_no_copies_of_what_waits_for_labels() -> None:
    """Also where the second strategy has a fresh random kernel in each round."""
    x = X[:5].float().repeat(2, 1)
    for then in (EVGP(EmpiricalNTK(mlp(1, 16))), EVGP(KERNEL, greedy=Exchange())):
        warm = Hybrid(Seen(), then, after=3)
        points = x if isinstance(then.kernel, EmpiricalNTK) else x.double()
        result = warm(Pool(points), 5, generator=torch.Generator().manual_seed(0)).indices
        assert sorted(row % 5 for row in result.tolist()) == [0, 1, 2, 3, 4]
