"""BatchBALD against its laws, enumeration of all labels, and plain BALD."""

from itertools import product
from math import log

import numpy as np
import pytest
import torch
from torch import nn

from evgp import Pool, mlp
from evgp.errors import NetworkError, PoolError
from evgp.strategies import BatchBALD
from evgp.strategies.batchbald import Joint
from evgp.testing import check_strategy
from evgp.training import Recipe
from tests.messages import refused

NETWORK = mlp(2, 16, outputs=3)


def points(n: int, d: int = 3, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def logs(e: int, n: int, o: int, seed: int = 0, scale: float = 2.0) -> torch.Tensor:
    return torch.log_softmax(scale * points(e * n * o, 1, seed).view(e, n, o), dim=2)


def entropy(p: torch.Tensor) -> float:
    return float(torch.special.entr(p).sum())


def information(given: torch.Tensor, rows: list[int]) -> float:
    """I(labels of the rows; member) by enumeration, from the joint entropy."""
    p = given.exp()
    labels = product(range(p.shape[2]), repeat=len(rows))
    joint = torch.stack([p[:, rows, list(label)].prod(1).mean() for label in labels])
    return entropy(joint) - sum(entropy(p[:, row]) / len(p) for row in rows)


POOLS = {
    "plain": Pool(points(14)),
    "labelled": Pool(
        points(14),
        labelled=torch.tensor([3, 11]),
        x_labelled=points(2, seed=2),
        y=torch.tensor([0, 2, 1, 1]),
    ),
    "copies": Pool(points(5).repeat(3, 1), labelled=torch.tensor([3]), y=torch.tensor([1])),
}


@pytest.mark.parametrize("name", list(POOLS))
@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_batchbald_obeys_the_laws_of_strategies(name, dropout) -> None:
    recipe = Recipe(NETWORK, {"lr": 0.3, "steps": 20})
    strategy = BatchBALD(recipe, 3, members=6, dropout=dropout, exact=100, samples=200)
    check_strategy(strategy, POOLS[name], 4)


@pytest.mark.parametrize(("e", "o", "k"), [(5, 3, 4), (2, 2, 6), (8, 4, 3)])
def test_gains_add_up_to_the_information_of_all_labels(e, o, k) -> None:
    log_p = logs(e, 9, o, seed=e)
    rows, gains = BatchBALD(Recipe(NETWORK), o).batch(log_p, k, generator=torch.Generator())
    for count in range(1, k + 1):
        before, row = rows[: count - 1], rows[count - 1]
        result = information(log_p, [*before, row])
        assert sum(gains[:count]) == pytest.approx(result, rel=1e-10)
        others = set(range(9)) - set(before)
        assert result >= max(information(log_p, [*before, other]) for other in others) - 1e-10
    assert sum(gains) <= log(e) + 1e-12


def test_the_first_pick_is_that_of_bald() -> None:
    log_p = logs(6, 50, 4)
    bald = torch.special.entr(log_p.exp().mean(0)).sum(1)
    bald = bald - torch.special.entr(log_p.exp()).sum(2).mean(0)
    rows, gains = BatchBALD(Recipe(NETWORK), 4).batch(log_p, 1, generator=torch.Generator())
    assert rows == [int(bald.argmax())] and gains == [pytest.approx(float(bald.max()))]


def test_samples_of_configurations_tend_to_all_of_them() -> None:
    log_p, picked = logs(6, 12, 3, seed=4), [2, 7, 9, 4]
    exact = Joint.empty(6)
    for row in picked:
        exact = exact.extended(log_p[:, row])
    assert exact.weights.sum() == pytest.approx(1) and len(exact.weights) == 81
    result = exact.information(log_p)
    results = []
    for seed in range(40):
        generator, joint = torch.Generator().manual_seed(seed), Joint.empty(6)
        for number, row in enumerate(picked):
            if number < 2:
                joint = joint.extended(log_p[:, row])
            else:
                joint = joint.drawn(log_p[:, row], 300, generator=generator)
        results.append(joint.information(log_p))
    every = torch.stack(results)
    error = every.std(0) / 40**0.5
    assert bool(((every.mean(0) - result).abs() < 4.5 * error).all())
    assert float(every.std(0).max()) < 0.1


def test_samples_pick_what_all_configurations_pick() -> None:
    log_p = logs(4, 30, 3, seed=8, scale=4)
    exact = BatchBALD(Recipe(NETWORK), 3).batch(log_p, 5, generator=torch.Generator())
    sampled = BatchBALD(Recipe(NETWORK), 3, exact=3, samples=20_000)
    rows, gains = sampled.batch(log_p, 5, generator=torch.Generator().manual_seed(0))
    assert rows[:3] == exact[0][:3]
    assert sum(gains) == pytest.approx(sum(exact[1]), abs=0.02)


def test_what_is_known_already_is_not_picked_twice() -> None:
    """Two members differ most at rows 0 to 4, which are copies, and a third at row 5 alone."""
    p = torch.full((3, 6, 2), 0.5, dtype=torch.float64)
    p[0, :5], p[1, :5] = torch.tensor([0.999, 0.001]), torch.tensor([0.001, 0.999])
    p[2, :5] = torch.tensor([0.999, 0.001])
    p[0, 5], p[2, 5] = torch.tensor([0.9, 0.1]), torch.tensor([0.1, 0.9])
    log_p = p.log()
    alone = Joint.empty(3).information(log_p)
    assert set(alone.topk(5).indices.tolist()) == set(range(5))
    rows, gains = BatchBALD(Recipe(NETWORK), 2).batch(log_p, 2, generator=torch.Generator())
    assert rows == [0, 5] and gains[1] > 10 * float(Joint.empty(3).extended(log_p[:, 0])
                                                    .information(log_p)[1])  # fmt: skip


def test_equals_go_to_the_lowest_row() -> None:
    log_p = logs(5, 4, 3).repeat(1, 3000, 1)
    rows, _ = BatchBALD(Recipe(NETWORK), 3).batch(log_p, 2, generator=torch.Generator())
    assert max(rows) < 4


def test_sure_members_and_tiny_probabilities_stay_finite() -> None:
    log_p = logs(5, 20, 3, scale=400.0)
    assert float(log_p.min()) < -745  # too small for a float64 once it is no logarithm
    strategy = BatchBALD(Recipe(NETWORK), 3, exact=30, samples=100)
    _, gains = strategy.batch(log_p, 12, generator=torch.Generator())
    assert np.isfinite(gains).all() and sum(gains) <= log(5) + 0.1


def test_masks_of_dropout_are_shared_by_all_points() -> None:
    pool = Pool(points(4).repeat(2, 1))
    strategy = BatchBALD(Recipe(NETWORK), 3, members=7, dropout=0.5)
    result = strategy._logits(pool, pool.x, None, torch.Generator().manual_seed(0))
    assert result.shape == (7, 8, 3) and torch.allclose(result[:, :4], result[:, 4:], atol=1e-5)
    assert float((result[0] - result[1]).abs().max()) > 0.01
    many = BatchBALD(Recipe(NETWORK), 3, members=4000, dropout=0.5)
    seeded = torch.Generator().manual_seed(0)
    seed = int(torch.randint(2**31, (), generator=torch.Generator().manual_seed(0)))
    plain = Recipe(NETWORK).untrained((3,), seed=seed)(pool.x.float())
    drawn = many._logits(pool, pool.x, None, seeded)
    error = drawn.std(0) / 4000**0.5
    assert bool(((drawn.mean(0) - plain).abs() < 5 * error + 1e-6).all())


def test_ensembles_need_no_linear_end() -> None:
    network = lambda: nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3))  # noqa: E731
    selection = BatchBALD(Recipe(network), 3)(POOLS["plain"], 3, generator=torch.Generator())
    assert len(selection) == 3
    with refused(NetworkError):
        BatchBALD(Recipe(network), 3, dropout=0.5)(POOLS["plain"], 3, generator=torch.Generator())


@pytest.mark.parametrize(
    "wrong",
    [
        {"classes": 0},
        {"classes": 1},
        {"members": 1},
        {"dropout": 1.0},
        {"samples": 0},
    ],
)
def test_settings_that_do_not_fit_are_refused(wrong) -> None:
    with refused(PoolError):
        BatchBALD(Recipe(NETWORK), **{"classes": 3, **wrong})


def test_pools_that_do_not_fit_are_refused() -> None:
    x, two = points(6), torch.tensor([0, 1])
    for y in (None, torch.tensor([0.5, 1.0]), torch.tensor([0, 5])):
        pool = Pool(x, labelled=two, y=y)
        with refused(PoolError):
            BatchBALD(Recipe(NETWORK), 3)(pool, 1, generator=torch.Generator())
    for outputs in (1, 5):
        recipe = Recipe(mlp(outputs=outputs))
        with refused(NetworkError):
            BatchBALD(recipe, 3)(Pool(x), 1, generator=torch.Generator())
