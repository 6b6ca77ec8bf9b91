"""BADGE against its laws, autograd, explicit gradients and replayed draws."""

import numpy as np
import pytest
import torch
from torch import nn

from evgp import Pool, cnn, mlp, resnet18
from evgp.errors import NetworkError, PoolError
from evgp.strategies import BADGE
from evgp.strategies._trained import accurate, outputs, penultimate
from evgp.strategies.badge import factor, seeds, squared_distances
from evgp.testing import check_strategy
from evgp.training import Recipe
from tests.messages import refused

SETTINGS = {"lr": 0.3, "steps": 20}


def points(n: int, d: int = 3, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def pools(y: torch.Tensor) -> dict[str, Pool]:
    inside, outside = torch.tensor([3, 17]), points(4, seed=2)
    return {
        "plain": Pool(points(20)),
        "labelled": Pool(points(20), labelled=inside, x_labelled=outside, y=y),
        "copies": Pool(points(6).repeat(3, 1), labelled=inside, y=y[:2]),
    }


CLASSES, NUMBERS = torch.tensor([0, 2, 1, 1, 0, 2]), points(6, 2, seed=5)


@pytest.mark.parametrize("name", ["plain", "labelled", "copies"])
@pytest.mark.parametrize("classes", [3, 0])
def test_badge_obeys_the_laws_of_strategies(name, classes) -> None:
    recipe = Recipe(mlp(2, 16, outputs=3 if classes else 2), SETTINGS)
    check_strategy(BADGE(recipe, classes), pools(CLASSES if classes else NUMBERS)[name], 5)


class Tail(nn.Module):
    """Its own parameters next to the head, and a head called by keyword."""

    def __init__(self) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.ones(3))
        self.head = nn.Linear(3, 4, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(input=torch.tanh(x + self.shift))


class Loose(nn.Module):
    """A layer whose weights are used, but which is never called."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(3, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.head.weight.T


NETWORKS = {
    "ntk": (mlp(2, 12, outputs=4), (3,)),
    "ntk with bias": (mlp(1, 12, b_std=0.5, outputs=4), (3,)),
    "standard": (mlp(2, 12, outputs=4).standard("xavier"), (3,)),
    "cnn": (cnn(4), (1, 28, 28)),
    "resnet18": (resnet18(4), (3, 8, 8)),
    "linear": (nn.Linear(3, 4), (3,)),
    "own parameters": (Tail, (3,)),
    "weight norm": (
        lambda: nn.Sequential(
            nn.Linear(3, 5), nn.Tanh(), nn.utils.parametrizations.weight_norm(nn.Linear(5, 4))
        ),
        (3,),
    ),
}


@pytest.mark.parametrize("name", list(NETWORKS))
def test_gradients_are_those_of_the_cross_entropy_at_the_guess(name) -> None:
    network, shape = NETWORKS[name]
    module = Recipe(network).untrained(shape)
    x = torch.randn(5, *shape, generator=torch.Generator().manual_seed(1))
    seen = penultimate(module, x)
    out = module(x)
    assert torch.allclose(seen.outputs().float(), out, atol=1e-4)
    assert torch.allclose(outputs(module, x).float(), out, atol=1e-4)
    embedding = (factor(seen, 4)[:, :, None] * seen.h[:, None]).float()
    last = [part for part in module.modules() if hasattr(part, "weight")][-1]
    if name == "weight norm":  # the gradient is that of the weight itself, not of its two parts
        last = module[2]
        nn.utils.parametrize.remove_parametrizations(last, "weight")
    for i in range(len(x)):
        logits = module(x[i : i + 1])
        loss = nn.functional.cross_entropy(logits, logits.argmax(1))
        own = [last.weight] + ([last.bias] if seen.biased else [])
        grads = torch.autograd.grad(loss, own)
        whole = torch.cat([grads[0], *(grad[:, None] for grad in grads[1:])], dim=1)
        assert torch.allclose(embedding[i], whole, atol=1e-5, rtol=1e-3)


def test_gradients_of_a_sure_network_keep_their_digits() -> None:
    layer = nn.Linear(1, 2, bias=False).double()
    layer.weight.data = torch.tensor([[50.0], [0.0]]).double()
    result = factor(penultimate(layer, torch.ones(1, 1).double()), 2)
    exact = float(torch.sigmoid(torch.tensor(-50.0, dtype=torch.float64)))
    assert result[0].tolist() == pytest.approx([-exact, exact], rel=1e-12)


@pytest.mark.parametrize("classes", [4, 0])
def test_distances_from_two_factors_are_those_of_the_outer_products(classes) -> None:
    seen = penultimate(Recipe(mlp(1, 12, outputs=4)).untrained((3,)), points(30))
    a = factor(seen, classes)
    slopes = a[:, :, None] if classes else torch.eye(4).double().expand(30, 4, 4)
    if classes:
        explicit = (slopes * seen.h[:, None]).flatten(1)
    else:  # the gradients of all outputs, one after another
        explicit = (slopes[..., None] * seen.h[:, None, None]).flatten(1)
    length = a.square().sum(1) * seen.h.square().sum(1)
    assert torch.allclose(length, explicit.square().sum(1), rtol=1e-12)
    for row in (0, 7, 29):
        result = squared_distances(a, seen.h, length, row)
        output = (explicit - explicit[row]).square().sum(1)
        assert torch.allclose(result, output, rtol=1e-9, atol=1e-12)
        assert float(result[row]) == 0


def test_picks_replay_the_draws_of_k_means_plusplus() -> None:
    a, h = points(40, 3, seed=1), points(40, 5, seed=2)
    explicit = (a[:, :, None] * h[:, None]).flatten(1)
    rows, gains = seeds(a, h, 12, generator=torch.Generator().manual_seed(3))
    again, picked = torch.Generator().manual_seed(3), [int(explicit.norm(dim=1).argmax())]
    assert gains[0] == pytest.approx(float(explicit.square().sum(1).max()))
    for gain in gains[1:]:
        left = torch.cdist(explicit, explicit[picked]).amin(1).square()
        left[picked] = 0
        at = torch.rand((), generator=again, dtype=torch.float64) * left.sum()
        picked.append(int((left.cumsum(0) <= at).sum()))
        assert gain == pytest.approx(float(left[picked[-1]]), rel=1e-6)
    assert rows == picked


def test_second_picks_come_in_proportion_to_squared_distance() -> None:
    h = torch.tensor([[4.0], [0.0], [2.0], [3.0], [4.0]]).double()
    generator, draws = torch.Generator().manual_seed(0), 1000
    results = [seeds(torch.ones(5, 1).double(), h, 2, generator=generator)[0] for _ in range(draws)]
    assert {first for first, _ in results} == {0}
    counts = np.bincount([second for _, second in results], minlength=5)
    result = np.array([0, 16, 4, 1, 0]) / 21
    assert (abs(counts - draws * result) <= 5 * np.sqrt(draws * result * (1 - result))).all()


def test_what_is_all_alike_is_drawn_at_random_without_repeats() -> None:
    firsts = set()
    for seed in range(40):
        generator = torch.Generator().manual_seed(seed)
        rows, gains = seeds(torch.zeros(5, 2).double(), points(5), 5, generator=generator)
        assert sorted(rows) == list(range(5)) and gains == [0.0] * 5
        firsts.add(rows[0])
    assert firsts == set(range(5))


def test_copies_are_picked_only_when_nothing_else_is_left() -> None:
    pool = Pool(points(6).repeat(4, 1))
    selection = BADGE(Recipe(mlp(2, 16, outputs=3)), 3)(pool, 24, generator=torch.Generator())
    assert set((selection.indices[:6] % 6).tolist()) == set(range(6))
    assert (selection.gains[:6] > 0).all() and (selection.gains[6:] == 0).all()


def test_training_stops_once_points_are_classified_correctly() -> None:
    x, seen = points(8), []
    pool = Pool(x, labelled=torch.arange(6), y=(x[:6, 0] > 0).long())

    class Watched(Recipe):
        def __call__(self, *args, **settings):
            result = super().__call__(*args, **settings)
            seen.append((int(result.steps[0]), result.predict(x[:6])))
            return result

    lasting = {"lr": 0.5, "steps": 5000}
    BADGE(Watched(mlp(1, 32, outputs=2), lasting), 2)(pool, 1, generator=torch.Generator())
    steps, out = seen[0]
    assert steps < 5000 and bool(accurate(0.99, out, pool.y))
    own = Watched(mlp(1, 32, outputs=2), {**lasting, "stop": 1e9})
    BADGE(own, 2)(pool, 1, generator=torch.Generator())
    assert seen[1][0] == 0


def test_images_go_through_a_convolutional_network() -> None:
    x = torch.rand(12, 1, 28, 28, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    pool = Pool(x, labelled=torch.arange(3), y=torch.tensor([0, 1, 2]))
    badge = BADGE(Recipe(cnn(3), {"steps": 2}), 3)
    assert len(badge(pool, 3, generator=torch.Generator())) == 3


@pytest.mark.parametrize(
    "network",
    [
        lambda: nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4)),
        lambda: nn.Sequential(nn.Linear(3, 4), nn.Softmax(1)),
        lambda: nn.Sequential(nn.Linear(3, 4), nn.Dropout()),
        lambda: nn.Linear(2, 4),
        Loose,
    ],
)
def test_networks_without_a_linear_end_are_refused(network) -> None:
    with refused(NetworkError):
        BADGE(Recipe(network), 4)(Pool(points(5)), 1, generator=torch.Generator())


@pytest.mark.parametrize(
    ("classes", "y"),
    [
        (3, None),
        (3, torch.tensor([0.0, 1.0])),
        (3, torch.tensor([0, 3])),
        (3, torch.tensor([-1, 1])),
        (3, torch.tensor([[0], [1]])),
        (0, torch.tensor([0, 1])),
    ],
)
def test_labels_that_do_not_fit_are_refused(classes, y) -> None:
    pool = Pool(points(5), labelled=torch.tensor([0, 1]), y=y)
    with refused(PoolError):
        BADGE(Recipe(mlp(outputs=3)), classes)(pool, 1, generator=torch.Generator())


def test_settings_that_do_not_fit_are_refused() -> None:
    with refused(NetworkError):
        BADGE(Recipe(mlp()), 4)(Pool(points(5)), 1, generator=torch.Generator())
    for wrong in ({"classes": 1}, {"classes": -1}, {"accuracy": 0.0}):
        with refused(PoolError):
            BADGE(Recipe(mlp()), **wrong)
