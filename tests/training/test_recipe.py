"""Recipes: training with settings that are written down once."""

import pickle
from dataclasses import replace
from inspect import signature

import pytest
import torch
from torch import nn

from evgp import EvgpError, mlp, train
from evgp.training import Recipe, TrainingError, paper_recipe
from tests.messages import refused

SEED = torch.Generator().manual_seed(0)
X = torch.randn(10, 3, generator=SEED)
Y = torch.randn(10, 2, generator=SEED)
LABELS = torch.arange(10) % 2
NETWORK = mlp(1, 8, outputs=2)
SOURCES = {
    "description": NETWORK,
    "module": nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)),
    "function": lambda: nn.Linear(3, 2),
}


def same(one: nn.Module, other: nn.Module) -> bool:
    left, right = one.state_dict(), other.state_dict()
    return left.keys() == right.keys() and all(
        torch.equal(left[name], right[name]) for name in left
    )


@pytest.mark.parametrize(
    "settings, n, passes, steps",
    [
        ({}, 10, 7, 7),
        ({"optimiser": "gd"}, 10, 7, 7),
        ({"optimiser": "adam"}, 10, 7, 7),
        ({"optimiser": "sgd"}, 10, 7, 7),
        ({"optimiser": "sgd", "batch": 10}, 10, 7, 7),
        ({"optimiser": "sgd", "batch": 99}, 10, 7, 7),
        ({"optimiser": "sgd", "batch": 5}, 10, 7, 14),
        ({"optimiser": "sgd", "batch": 4}, 10, 7, 21),
        ({"optimiser": "adam", "batch": 3}, 10, 2, 8),
        ({"optimiser": "sgd"}, 40, 3, 6),
        ({"optimiser": "sgd", "batch": 4, "steps": 1000}, 10, 7, 21),
        ({}, 1, 7, 7),
        ({}, 10, 0, 0),
    ],
)
def test_epochs_are_passes_over_the_points(settings, n, passes, steps) -> None:
    x, y = X.repeat(4, 1)[:n], Y.repeat(4, 1)[:n]
    ensemble = Recipe(NETWORK, {"lr": 0.01, **settings}, epochs=passes)(x, y, members=2)
    assert ensemble.steps.tolist() == [steps, steps]


def test_a_batch_passed_to_the_call_counts_for_the_epochs() -> None:
    recipe = Recipe(NETWORK, {"optimiser": "sgd", "batch": 5}, epochs=3)
    assert recipe(X, Y, batch=2).steps.tolist() == [15]
    assert recipe(X, Y, optimiser="gd", batch=None).steps.tolist() == [3]


def test_steps_passed_to_the_call_replace_epochs() -> None:
    recipe = Recipe(NETWORK, {"optimiser": "sgd", "batch": 5}, epochs=3)
    assert recipe(X, Y, steps=4).steps.tolist() == [4]


def test_a_recipe_trains_as_train_does_with_the_same_settings() -> None:
    settings = {"optimiser": "sgd", "lr": 0.05, "batch": 4, "momentum": 0.9, "clip": 1.0}
    ensemble = Recipe(NETWORK, {**settings, "steps": 12})(X, Y, members=3, seed=5)
    other = train(NETWORK, X, Y, members=3, seed=5, steps=12, **settings)
    assert torch.equal(ensemble.predict(X), other.predict(X))


def test_settings_at_the_call_win_and_stay_with_the_call() -> None:
    settings = {"lr": 0.1, "steps": 5}
    recipe = Recipe(NETWORK, settings)
    ensemble = recipe(X, Y, lr=0.2)
    assert torch.equal(
        ensemble.predict(X), train(NETWORK, X, Y, members=1, lr=0.2, steps=5).predict(X)
    )
    assert settings == {"lr": 0.1, "steps": 5} and recipe.settings == settings
    plain = train(NETWORK, X, Y, members=1, lr=0.1, steps=5)
    assert torch.equal(recipe(X, Y).predict(X), plain.predict(X))


def test_one_member_with_seed_zero_by_default() -> None:
    recipe = Recipe(NETWORK, {"steps": 2})
    assert recipe(X, Y).members == 1
    assert torch.equal(recipe(X, Y).predict(X), recipe(X, Y, seed=0).predict(X))
    assert not torch.equal(recipe(X, Y).predict(X), recipe(X, Y, seed=1).predict(X))


def test_progress_is_reported() -> None:
    calls: list[tuple[str, int, int]] = []
    Recipe(NETWORK, epochs=3)(X, Y, progress=lambda *one: calls.append(one))
    assert calls and calls[-1][1:] == (3, 3)


@pytest.mark.parametrize("network", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_untrained_is_what_training_starts_from(network, dtype) -> None:
    recipe = Recipe(network, {"dtype": dtype, "steps": 3})
    started = recipe(X, Y, members=3, seed=4, steps=0)
    for member in range(3):
        fresh = recipe.untrained((3,), seed=4, member=member)
        assert next(fresh.parameters()).dtype == dtype
        assert same(fresh, started.module(member))
    assert not same(recipe.untrained((3,), seed=4), recipe.untrained((3,), seed=5))
    assert not same(recipe.untrained((3,), seed=4), recipe(X, Y, seed=4).module(0))


def test_untrained_is_float32_unless_the_recipe_says_otherwise() -> None:
    assert next(Recipe(NETWORK).untrained((3,)).parameters()).dtype == torch.float32


def test_the_recipes_of_the_paper() -> None:
    numbers = paper_recipe(NETWORK)
    assert numbers(X, Y).steps.tolist() == [1000]
    alike = train(NETWORK, X, Y, members=1, optimiser="gd", lr=0.01, steps=1000)
    assert torch.equal(numbers(X, Y).predict(X), alike.predict(X))
    x, labels = X.repeat(4, 1), LABELS.repeat(4)
    ensemble = paper_recipe(NETWORK, classes=2)(x, labels)
    assert ensemble.steps.tolist() == [200]
    settings = {"optimiser": "sgd", "lr": 0.1, "batch": 32, "weight_decay": 5e-4, "clip": 5.0}
    alike = train(NETWORK, x, labels, members=1, steps=200, **settings)
    assert torch.equal(ensemble.predict(x), alike.predict(x))


def test_a_resnet_is_trained_with_momentum_as_the_authors_did() -> None:
    output = paper_recipe(NETWORK, classes=2, resnet=True)
    result = {"lr": 0.1, "momentum": 0.9, "weight_decay": 1e-4, "batch": 256, "optimiser": "sgd"}
    assert result.items() <= dict(output.settings).items()
    assert output(X, LABELS).steps.tolist() == [100]  # one step a pass


@pytest.mark.parametrize("classes", [0, 2])
def test_the_recipes_of_the_paper_name_settings_of_train(classes) -> None:
    recipe = paper_recipe(NETWORK, classes=classes)
    assert set(recipe.settings) <= set(signature(train).parameters)


def test_what_train_refuses_is_refused() -> None:
    with refused(EvgpError):
        Recipe(NETWORK, {"lr": -1.0})(X, Y)
    with refused(EvgpError):
        Recipe(mlp(1, 8), {"steps": 1})(X, Y)
    with refused(EvgpError):
        Recipe(NETWORK, {"lr": 0.1, "seed": 1, "members": 3})
    with refused(EvgpError):
        Recipe(NETWORK, {"colour": "red"})


def test_a_recipe_takes_smaller_steps_where_training_diverges() -> None:
    x = torch.tensor([[0.1], [0.2], [40.0]])
    y = torch.tensor([1.0, -1.0, 0.5])
    plain = Recipe(mlp(1, 16).standard("xavier"), {"lr": 0.1, "steps": 200})
    with refused(TrainingError) as caught:
        plain(x, y, members=3)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value) and again.lr == 0.1
    result = replace(plain, gentler=6)(x, y, members=3)
    assert result.lr in [0.1 / 4**times for times in range(1, 7)]
    same = train(plain.network, x, y, members=3, lr=result.lr, steps=200)
    assert torch.equal(result.predict(x), same.predict(x))
    with refused(TrainingError):
        replace(plain, gentler=1, settings={"lr": 1e4, "steps": 200})(x, y, members=3)


def test_a_network_that_was_thrown_far_is_not_taken_for_trained() -> None:
    """One huge step kills every ReLU; the loss is finite and constant from then on."""
    x, y = torch.tensor([[1.0], [30.0]]), torch.tensor([1.0, -1.0])
    net = mlp(2, 16, b_std=0.0).standard("xavier")
    with refused(TrainingError):
        train(net, x, y, members=5, lr=0.5, steps=50)
