"""MLMOC against its laws, and against Gaussian processes that are refitted for each point."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from evgp import EvgpError, Pool, mlp
from evgp.strategies import MLMOC, _trained, mlmoc
from evgp.testing import check_strategy
from evgp.training import Recipe
from tests.messages import refused

NOISE = 1e-2


def points(n: int, d: int = 3, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def recipe(outputs: int) -> Recipe:
    settings = {"lr": 0.1, "steps": 10, "dtype": torch.float64}
    return Recipe(mlp(1, 16, outputs=outputs), settings)


CLASSES = MLMOC(recipe(3), classes=3, noise=NOISE)
NUMBERS = MLMOC(recipe(2), noise=NOISE)
BOTH = {"classes": CLASSES, "numbers": NUMBERS}


def pools(classes: int, outputs: int = 2) -> dict[str, Pool]:
    def y(count: int) -> torch.Tensor:
        return torch.arange(count) % classes if classes else points(count, outputs, seed=9)

    return {
        "plain": Pool(points(12)),
        "labelled inside": Pool(points(12), labelled=torch.tensor([3, 11, 4]), y=y(3)),
        "labelled inside and outside": Pool(
            points(12), labelled=torch.tensor([3, 11]), x_labelled=points(4, seed=2), y=y(6)
        ),
        "copies": Pool(points(4).repeat(3, 1)),
        "copies of what is labelled": Pool(
            points(4).repeat(3, 1), labelled=torch.tensor([1, 2]), y=y(2)
        ),
    }


EVERY = [(kind, name) for kind in BOTH for name in pools(3)]


def seeded(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class Oracle:
    """Plain Gaussian process regression around the same network, with direct solves."""

    def __init__(self, strategy: MLMOC, pool: Pool) -> None:
        self.classes, y = strategy.classes, strategy._targets(pool)
        opened = strategy._open(pool, y, seeded())
        every = torch.cat([pool.x, pool.known()])
        self.looked, self.count = opened.looked.tolist(), len(pool)
        self.f = opened.kernel.network(every).detach()
        self.matrix = opened.kernel(every)
        self.noise = NOISE * float(self.matrix.diagonal()[self.looked].mean())
        self.known = list(range(len(pool), len(every)))
        self.y = self.f[:0] if y is None else y

    def weights(self, known: list[int]) -> torch.Tensor:
        """What each label counts in the mean of each point of the pool."""
        inside = self.matrix[known][:, known] + self.noise * torch.eye(len(known)).double()
        return torch.linalg.solve(inside, self.matrix[known, : self.count]).T

    def mean(self) -> torch.Tensor:
        return self.f[: self.count] + self.weights(self.known) @ (self.y - self.f[self.known])

    def predictive(self, row: int) -> float:
        """The variance of a label of a row."""
        taken = self.weights(self.known)[row] @ self.matrix[self.known, row]
        return float(self.matrix[row, row] - taken) + self.noise

    def likely(self, row: int) -> torch.Tensor:
        mean = self.mean()[row]
        if not self.classes:
            return mean
        label = torch.full_like(mean, -1.0)
        label[mean.argmax()] = 1.0
        return label

    def change(self, row: int, labels: torch.Tensor) -> float:
        """Mean over labels and points of how far the outputs move if the row had each label."""
        weights = self.weights([*self.known, row])
        old = self.f[: self.count] + weights[:, :-1] @ (self.y - self.f[self.known])
        new = old[:, None] + weights[:, -1:, None] * (labels - self.f[row])
        norms = (new - self.mean()[:, None]).norm(dim=2).mean(1)
        return float(sum(norms[x] for x in self.looked if x != row)) / len(self.looked)

    def score(self, row: int) -> float:
        if self.classes:
            return self.change(row, self.likely(row)[None])
        # One step as long as steps in two outputs are on average, in any direction.
        step = (self.predictive(row) * np.pi / 2) ** 0.5
        return self.change(row, (self.likely(row) + torch.tensor([step, 0.0]).double())[None])

    def add_(self, row: int) -> None:
        self.y = torch.cat([self.y, self.likely(row)[None]])
        self.known.append(row)


@pytest.mark.parametrize("sequential", [False, True], ids=["at once", "sequential"])
@pytest.mark.parametrize("name", ["plain", "labelled inside and outside", "copies"])
@pytest.mark.parametrize("kind", BOTH)
def test_it_obeys_the_laws(kind, name, sequential) -> None:
    strategy = replace(BOTH[kind], sequential=sequential)
    check_strategy(strategy, pools(strategy.classes)[name], 5)


@pytest.mark.parametrize("most", [1000, 7], ids=["all", "thinned"])
@pytest.mark.parametrize("kind, name", EVERY)
def test_scores_are_changes_of_a_refitted_process(kind, name, most) -> None:
    strategy = replace(BOTH[kind], most=most)
    pool = pools(strategy.classes)[name]
    oracle, free = Oracle(strategy, pool), pool.unlabelled()
    assert len(oracle.looked) == min(most, len(pool))
    selection = strategy(pool, len(free), generator=seeded())
    expected = [oracle.score(row) for row in selection.indices.tolist()]
    np.testing.assert_allclose(selection.gains, expected, rtol=1e-7, atol=1e-12)
    assert selection.gains[0] > 0 and (np.diff(selection.gains) <= 0).all()


@pytest.mark.parametrize("kind, name", EVERY)
def test_the_sequential_form_is_a_fit_for_every_pick(kind, name) -> None:
    strategy = replace(BOTH[kind], sequential=True)
    pool = pools(strategy.classes)[name]
    oracle, left = Oracle(strategy, pool), set(pool.unlabelled().tolist())
    selection = strategy(pool, 8, generator=seeded())
    for row, gain in zip(selection.indices.tolist(), selection.gains.tolist(), strict=True):
        scores = {item: oracle.score(item) for item in left}
        assert gain == pytest.approx(max(scores.values()), rel=1e-6)
        assert scores[row] == pytest.approx(gain, rel=1e-6)
        oracle.add_(row)
        left.remove(row)


@pytest.mark.parametrize("outputs", [1, 2, 3])
def test_numbers_bring_the_change_expected_of_their_distribution(outputs) -> None:
    strategy = MLMOC(recipe(outputs), noise=NOISE)
    pool = pools(0, outputs)["labelled inside"]
    oracle = Oracle(strategy, pool)
    selection = strategy(pool, 3, generator=seeded())
    draws = torch.randn(20_000, outputs, generator=seeded(5), dtype=torch.float64)
    for row, gain in zip(selection.indices.tolist(), selection.gains.tolist(), strict=True):
        labels = oracle.likely(row) + draws * oracle.predictive(row) ** 0.5
        assert oracle.change(row, labels) == pytest.approx(gain, rel=0.02)


@pytest.mark.parametrize("kind", BOTH)
def test_only_the_sequential_form_leaves_copies(kind) -> None:
    pool = pools(BOTH[kind].classes)["copies"]
    result = BOTH[kind](pool, 3, generator=seeded())
    assert len(set(result.indices % 4)) == 1
    result = replace(BOTH[kind], sequential=True)(pool, 3, generator=seeded())
    assert len(set(result.indices % 4)) == 3


@pytest.mark.parametrize("sequential", [False, True], ids=["at once", "sequential"])
@pytest.mark.parametrize("kind", BOTH)
def test_tiles_change_nothing(kind, sequential, monkeypatch) -> None:
    strategy = replace(BOTH[kind], sequential=sequential)
    pool = pools(strategy.classes)["labelled inside and outside"]
    whole = strategy(pool, 9, generator=seeded())
    monkeypatch.setattr(mlmoc, "TILE", 3 * 8 * len(pool))
    monkeypatch.setattr(_trained, "_ROOM", 1)
    monkeypatch.setattr(mlmoc, "_FEW", 1)
    selection = strategy(pool, 9, generator=seeded())
    assert selection.indices.tolist() == whole.indices.tolist()
    np.testing.assert_allclose(selection.gains, whole.gains, rtol=1e-9)


def test_no_tile_holds_all_pairs(monkeypatch) -> None:
    shapes, inner = [], mlmoc.LookAhead._tile

    def watched(self, rows):
        shapes.append(len(rows))
        return inner(self, rows)

    monkeypatch.setattr(mlmoc.LookAhead, "_tile", watched)
    monkeypatch.setattr(mlmoc, "TILE", 3 * 8 * 12)
    CLASSES(pools(3)["plain"], 2, generator=seeded())
    assert sum(shapes) == 12 and max(shapes) == 3


@pytest.mark.parametrize("kind", BOTH)
def test_ceilings_are_never_passed(kind) -> None:
    strategy, x = BOTH[kind], points(30)
    ahead = strategy._open(Pool(x), None, seeded())
    rows = torch.arange(30)
    assert bool((ahead.spread(rows) <= ahead.ceiling(rows) * (1 + 1e-9)).all())
    for row in (4, 9, 22):
        ahead.observe_(row, strategy._likely(ahead)[row])
        most = ahead.ceiling(rows)
        assert bool(torch.isfinite(most).all())
        assert bool((ahead.spread(rows) <= most * (1 + 1e-9)).all())


def test_the_network_learns_signs_by_squared_error() -> None:
    pool = pools(3)["labelled inside"]
    ahead = CLASSES._open(pool, CLASSES._targets(pool), seeded())
    seed = int(torch.randint(2**31, (2,), generator=seeded())[0])
    signs = 2 * torch.eye(3).double()[pool.y] - 1
    alike = recipe(3)(pool.known(), signs, seed=seed, clip=10.0)
    torch.testing.assert_close(
        ahead.kernel.network(pool.x), alike.module(0)(pool.x), rtol=1e-9, atol=1e-9
    )


def test_another_generator_is_another_network() -> None:
    pool = pools(3)["labelled inside"]
    gains = {float(CLASSES(pool, 1, generator=seeded(seed)).gains[0]) for seed in range(4)}
    assert len(gains) == 4


@pytest.mark.parametrize("sequential", [False, True], ids=["at once", "sequential"])
def test_the_first_picks_may_be_random(sequential) -> None:
    strategy = replace(CLASSES, first=5, sequential=sequential)
    every = [strategy(Pool(points(20)), 3, generator=seeded(seed)) for seed in range(9)]
    assert len({tuple(item.indices) for item in every}) == 9
    assert not any(item.gains.any() for item in every)
    labelled = pools(3)["labelled inside"]
    selection = strategy(labelled, 6, generator=seeded())
    assert not selection.gains[:2].any() and (selection.gains[2:] > 0).all()
    check_strategy(strategy, labelled, 6)
    enough = replace(strategy, first=3)
    assert (enough(labelled, 6, generator=seeded()).gains > 0).all()


def test_random_picks_are_known_to_the_sequential_form() -> None:
    copies = Pool(points(2).repeat(2, 1))
    result = replace(CLASSES, first=1, sequential=True)(copies, 2, generator=seeded())
    assert len(set(result.indices % 2)) == 2


@pytest.mark.parametrize(
    ("strategy", "pool"),
    [
        (CLASSES, Pool(points(4), labelled=torch.tensor([1]))),
        (CLASSES, Pool(points(4), labelled=torch.tensor([1]), y=torch.tensor([3]))),
        (CLASSES, Pool(points(4), labelled=torch.tensor([1]), y=torch.tensor([0.5]))),
        (NUMBERS, Pool(points(4), labelled=torch.tensor([1]), y=torch.tensor([1]))),
        (MLMOC(recipe(2), classes=3), Pool(points(4))),
        (CLASSES, Pool(torch.zeros(4, 0))),
    ],
)
def test_what_cannot_be_learnt_is_refused(strategy, pool) -> None:
    with refused(EvgpError):
        strategy(pool, 1, generator=seeded())


@pytest.mark.parametrize(
    "settings",
    [
        {"classes": 1},
        {"classes": -1},
        {"noise": 0.0},
        {"first": -1},
        {"most": 0},
    ],
)
def test_settings_are_checked(settings) -> None:
    with refused(EvgpError):
        MLMOC(recipe(2), **settings)
