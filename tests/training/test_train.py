"""Members trained together are those trained alone; networks of all kinds; bad input."""

import copy
import pickle
from inspect import unwrap
from itertools import islice

import numpy as np
import pytest
import torch
from torch import nn

import evgp
from evgp import EvgpError, cnn, mlp, train
from evgp.training import run
from evgp.training.gradients import Batched, ByVmap, OneByOne
from evgp.training.members import initialised
from evgp.training.run import batches
from tests.messages import refused, warned

SEED = torch.Generator().manual_seed(0)
X = torch.randn(12, 3, generator=SEED, dtype=torch.float64)
Y = torch.randn(12, 2, generator=SEED, dtype=torch.float64)
LABELS = torch.arange(12) % 3


class Residual(nn.Module):
    """Not a plain chain, so it goes by vmap."""

    def __init__(self, outputs: int = 2) -> None:
        super().__init__()
        self.inner, self.last = nn.Linear(3, 3), nn.Linear(3, outputs, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(x + torch.tanh(self.inner(x)))


class Branch(nn.Module):
    """Looks at values, which vmap cannot follow."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.linear(x)
        return out if out.sum() > 0 else 2 * out


def sequential() -> nn.Module:
    inner = nn.Sequential(nn.Linear(4, 4, bias=False), nn.ReLU(inplace=True), nn.Identity())
    return nn.Sequential(nn.Linear(3, 4), nn.GELU(), inner, nn.Linear(4, 2), nn.Tanh())


NETWORKS = {
    "ntk": (mlp(2, 8, outputs=2), Batched),
    "erf": (mlp(1, 8, "erf", w_std=1.5, b_std=0.0, outputs=2), Batched),
    "standard": (mlp(2, 8, outputs=2).standard(), Batched),
    "linear": (nn.Linear(3, 2), Batched),
    "sequential": (sequential, Batched),
    "residual": (Residual(), ByVmap),
    "branch": (Branch, OneByOne),
}


def alone(network, x, y, member, *, steps, make, loss, batch=None, clip=None, seed=0):
    """One member, by a plain loop of torch."""
    module = initialised(network, tuple(x.shape[1:]), seed, member).double()
    optimiser = make(module.parameters())
    for rows in islice(batches(len(x), batch, seed), steps):
        subset = slice(None) if rows is None else rows
        optimiser.zero_grad()
        loss(module(x[subset]), y[subset]).backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(module.parameters(), clip)
        optimiser.step()
    return module


def sgd(lr, **options):
    return lambda params: torch.optim.SGD(params, lr=lr, **options)


def adam(lr, **options):
    return lambda params: torch.optim.Adam(params, lr=lr, **options)


SETTINGS = {
    "gd": ({"lr": 0.1}, {"make": sgd(0.1)}),
    "decay": ({"lr": 0.1, "weight_decay": 0.05}, {"make": sgd(0.1, weight_decay=0.05)}),
    "clip": ({"lr": 0.1, "clip": 0.3}, {"make": sgd(0.1), "clip": 0.3}),
    "sgd": (
        {"optimiser": "sgd", "lr": 0.1, "batch": 5, "clip": 1.0, "weight_decay": 5e-4},
        {"make": sgd(0.1, weight_decay=5e-4), "batch": 5, "clip": 1.0},
    ),
    "momentum": (
        {"optimiser": "sgd", "lr": 0.02, "batch": 4, "momentum": 0.9},
        {"make": sgd(0.02, momentum=0.9), "batch": 4},
    ),
    "adam": (
        {"optimiser": "adam", "lr": 0.01, "weight_decay": 0.01},
        {"make": adam(0.01, weight_decay=0.01)},
    ),
    "adam in batches": ({"optimiser": "adam", "batch": 5}, {"make": adam(0.01), "batch": 5}),
}


def same(ensemble, network, x, y, **options) -> None:
    for member in range(ensemble.members):
        expected = alone(network, x, y, member, **options)
        with torch.no_grad():
            torch.testing.assert_close(
                ensemble.predict(x)[member], expected(x), rtol=1e-9, atol=1e-12
            )
            torch.testing.assert_close(
                ensemble.losses[member], options["loss"](expected(x), y), rtol=1e-9, atol=1e-15
            )
        for ours, theirs in zip(
            ensemble.module(member).parameters(), expected.parameters(), strict=True
        ):
            torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("name", ["ntk", "residual"])
def test_members_are_those_trained_alone(name, settings) -> None:
    network, (ours, theirs) = NETWORKS[name][0], SETTINGS[settings]
    ensemble = train(network, X, Y, members=3, steps=30, dtype=torch.float64, **ours)
    same(ensemble, network, X, Y, steps=30, loss=nn.functional.mse_loss, **theirs)


@pytest.mark.parametrize("settings", ["gd", "sgd", "adam"])
def test_classifiers_are_those_trained_alone(settings) -> None:
    network, (ours, theirs) = mlp(1, 8, outputs=3).standard(), SETTINGS[settings]
    ensemble = train(network, X, LABELS, members=3, steps=30, dtype=torch.float64, **ours)
    same(ensemble, network, X, LABELS, steps=30, loss=nn.functional.cross_entropy, **theirs)


@pytest.mark.parametrize("name", NETWORKS)
def test_every_kind_of_network_takes_its_evaluator(name) -> None:
    network, evaluator = NETWORKS[name]
    ensemble = train(network, X, Y, members=3, steps=20, lr=0.05, dtype=torch.float64)
    assert type(ensemble.evaluator) is evaluator
    with warned(DeprecationWarning):
        assert ensemble.road is ensemble.evaluator
    make = sgd(0.05)
    same(ensemble, network, X, Y, steps=20, loss=nn.functional.mse_loss, make=make)


def test_images_go_through_convolutions_and_dense_layers() -> None:
    x = torch.randn(6, 1, 8, 8, generator=torch.Generator().manual_seed(1)).double()
    for network in (cnn(3), mlp(1, 4, outputs=3)):
        ensemble = train(network, x, LABELS[:6], members=2, steps=2, dtype=torch.float64)
        loss = nn.functional.cross_entropy
        same(ensemble, network, x, LABELS[:6], steps=2, loss=loss, make=sgd(0.01))


def test_what_a_function_freezes_differs_between_members_and_is_kept() -> None:
    def make() -> nn.Module:
        result = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))
        result[0].requires_grad_(False)
        return result

    ensemble = train(make, X, Y, members=3, steps=20, dtype=torch.float64)
    same(ensemble, make, X, Y, steps=20, loss=nn.functional.mse_loss, make=sgd(0.01))
    assert not torch.equal(ensemble.module(0)[0].weight, ensemble.module(1)[0].weight)


def test_what_is_frozen_in_a_module_stays() -> None:
    module = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))
    module[0].requires_grad_(False)
    ensemble = train(module, X, Y, members=2, steps=5)
    assert torch.equal(ensemble.module(1)[0].weight, module[0].weight)
    assert not torch.equal(ensemble.module(0)[2].weight, ensemble.module(1)[2].weight)


def test_text_is_looked_up() -> None:
    network = nn.Sequential(nn.Embedding(5, 4), nn.Flatten(), nn.Linear(8, 2))
    x = torch.randint(0, 5, (9, 2), generator=torch.Generator().manual_seed(0))
    ensemble = train(network, x, torch.arange(9) % 2, members=2, steps=3)
    assert ensemble.predict(x).shape == (2, 9, 2)


def test_the_global_seed_is_left_alone_and_members_do_not_depend_on_their_number() -> None:
    network = nn.Linear(3, 2)
    state = torch.random.get_rng_state()
    three = train(network, X, Y, members=3, steps=3)
    two = train(network, X, Y, members=2, steps=3)
    other = train(network, X, Y, members=3, steps=3, seed=1)
    assert torch.equal(state, torch.random.get_rng_state())
    torch.testing.assert_close(three.predict(X)[:2], two.predict(X))
    apart = (three.predict(X)[:, None] - other.predict(X)).abs().amax((2, 3))
    assert float(apart.min()) > 1e-3


def test_little_memory_gives_the_same_in_groups() -> None:
    network = mlp(1, 16, outputs=2)
    calls: list[tuple[int, int]] = []
    whole = train(network, X, Y, members=5, steps=10, dtype=torch.float64)
    parts = train(
        network, X, Y, members=5, steps=10, dtype=torch.float64, memory=20_000,
        progress=lambda stage, done, total: calls.append((done, total)),
    )  # fmt: skip
    torch.testing.assert_close(whole.predict(X), parts.predict(X), rtol=1e-12, atol=0)
    torch.testing.assert_close(parts.predict(X, memory=1), parts.predict(X), rtol=1e-9, atol=0)
    assert calls == sorted(calls) and calls[-1] == (50, 50) and len(set(calls)) > 10


@pytest.fixture
def threads(monkeypatch):
    """Three threads, each with a group of its own."""
    before = torch.get_num_threads()
    monkeypatch.setattr(run, "_HEAVY", 0)
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", NETWORKS)
def test_threads_change_nothing(name, threads) -> None:
    network = NETWORKS[name][0]
    ensemble = train(network, X, Y, members=7, steps=20, lr=0.05, dtype=torch.float64)
    make = sgd(0.05)
    same(ensemble, network, X, Y, steps=20, loss=nn.functional.mse_loss, make=make)
    assert torch.get_num_threads() == 3


def test_what_fails_in_one_thread_stops_them_all(threads) -> None:
    calls: list[int] = []

    def progress(stage: str, done: int, total: int) -> None:
        calls.append(done)
        if done > 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(NETWORKS["ntk"][0], X, Y, members=6, steps=100_000, progress=progress)
    assert calls[-1] < 1000
    with refused(EvgpError, hide=r"member \d"):
        train(NETWORKS["ntk"][0], X, Y, members=6, steps=100_000, lr=1e5)


@pytest.mark.parametrize("options", [{}, {"optimiser": "adam"}, {"optimiser": "sgd", "batch": 4}])
def test_a_member_that_is_done_stays_as_it_was(options) -> None:
    base = {"members": 9, "lr": 0.05, "dtype": torch.float64, **options}
    network = mlp(1, 8, outputs=2)
    free = train(network, X, Y, steps=60, **base)
    level = float(free.losses.median())
    stopped = train(network, X, Y, steps=60, stop=level, **base)
    early = stopped.steps < 60
    assert 0 < int(early.sum()) < 9
    assert bool((stopped.losses[early] <= level).all())
    torch.testing.assert_close(stopped.predict(X)[~early], free.predict(X)[~early])
    for member in early.nonzero()[:, 0].tolist():
        short = train(network, X, Y, steps=int(stopped.steps[member]), **base)
        torch.testing.assert_close(
            stopped.predict(X)[member], short.predict(X)[member], rtol=1e-9, atol=1e-12
        )


def test_stop_may_look_at_outputs() -> None:
    def right(outputs, labels):
        return (outputs.argmax(-1) == labels).double().mean(-1) >= 0.9

    ensemble = train(mlp(1, 32, outputs=3), X, LABELS, members=4, lr=2.0, stop=right)
    assert bool(right(ensemble.predict(X), LABELS).all())
    assert int(ensemble.steps.max()) < 1000


def test_no_step_leaves_the_initialisation_and_a_constant_can_be_learnt() -> None:
    network = mlp(1, 8)
    ensemble = train(network, X, np.ones(12), members=2, steps=0, dtype=torch.float64)
    torch.testing.assert_close(
        ensemble.predict(X)[1], initialised(network, (3,), 0, 1).double()(X).detach()
    )
    taught = train(network, X, np.ones(12), members=2, steps=500, lr=0.5)
    assert float(taught.losses.max()) < 0.05 < float(ensemble.losses.max())
    assert "Ensemble(members=2" in repr(taught) and len(taught) == 2


@pytest.mark.parametrize("name", ["ntk", "residual"])
def test_an_ensemble_can_be_copied_and_pickled(name) -> None:
    ensemble = train(NETWORKS[name][0], X, Y, members=2, steps=3)
    for other in (copy.deepcopy(ensemble), pickle.loads(pickle.dumps(ensemble))):
        assert torch.equal(other.predict(X), ensemble.predict(X))
        first = next(iter(other.stack.views.values()))
        assert first.untyped_storage().data_ptr() == other.stack.flat.untyped_storage().data_ptr()


def test_numpy_goes_in_and_a_module_comes_out() -> None:
    ensemble = train(mlp(1, 8, outputs=3), X.numpy(), LABELS.numpy(), members=2, steps=5)
    x = X.float()
    torch.testing.assert_close(ensemble.module(1)(x), ensemble.predict(X.numpy())[1])


def nan(value: torch.Tensor) -> torch.Tensor:
    value = value.clone()
    value[1] = float("nan")
    return value


class Stubborn(nn.Module):
    """Has its own parameter and no way to draw it again."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight


def doubled(x: torch.Tensor) -> nn.Module:
    raise KeyError("x")


class Noisy(nn.Module):
    """Dropout that no layer shows."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.dropout(self.linear(x), 0.5, self.training)


NET, TWICE = mlp(1, 4, outputs=2), nn.Linear(3, 3)
BAD = {
    "finite numbers in x": (NET, nan(X), Y, {}),
    "finite numbers in y": (NET, X, nan(Y), {}),
    "one target for each of 12 points": (NET, X, Y[:5], {}),
    "x of shape": (NET, X[:, 0], Y, {}),
    "with 1 outputs": (NET, X, Y[:, 0], {}),
    "labels from 0 to outputs - 1, got 0 to 2": (NET, X, LABELS, {}),
    "labels from 0 to outputs - 1, got -1": (NET, X, LABELS - 1, {}),
    "set outputs=3": (mlp(), X, LABELS, {}),
    "labels as 12 whole numbers": (NET, X, Y, {"loss": "cross_entropy"}),
    "loss among": (NET, X, Y, {"loss": "hinge"}),
    "optimiser among": (NET, X, Y, {"optimiser": "lion"}),
    "members as an integer from 1 to 1000000, got 0": (NET, X, Y, {"members": 0}),
    "steps as an integer from 0 to 1000000000000, got 1.5": (NET, X, Y, {"steps": 1.5}),
    "batch as an integer from 1, got 0": (NET, X, Y, {"optimiser": "sgd", "batch": 0}),
    "no batch with optimiser='gd'": (NET, X, Y, {"batch": 4}),
    "no momentum with": (NET, X, Y, {"optimiser": "adam", "momentum": 0.9}),
    "lr > 0": (NET, X, Y, {"lr": -1.0}),
    "clip > 0": (NET, X, Y, {"clip": 0.0}),
    "weight_decay >= 0": (NET, X, Y, {"weight_decay": -1.0}),
    "memory for at least one member": (NET, X, Y, {"memory": 10}),
    "a loss that falls, got inf, NaN or a thousand times the first one for member 0 at step": (
        NET,
        X,
        Y,
        {"lr": 1e5},
    ),
    "booleans from stop": (NET, X, Y, {"stop": lambda outputs, y: True}),
    "expected Stubborn to have reset_parameters": (Stubborn(), X, Y, {}),
    "no batch norm": (nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)), X, Y, {}),
    "no active dropout": (nn.Sequential(nn.Linear(3, 2), nn.Dropout()), X, Y, {}),
    "the same output each time": (Noisy(), X, Y, {}),
    "under one name, got 0 as 1": (nn.Sequential(TWICE, TWICE, nn.Linear(3, 2)), X, Y, {}),
    "real numbers in x": (NET, X.to(torch.complex64), Y, {}),
    "seed as an integer from 0 to 4294967295, got -1": (NET, X, Y, {"seed": -1}),
    "trainable parameters": (nn.Flatten(), X, Y, {}),
    "layers have their sizes": (nn.LazyLinear(2), X, Y, {}),
    "takes samples of shape": (nn.Linear(4, 2), X, Y, {}),
    "flatten its output": (nn.Sequential(nn.Linear(3, 2), nn.Unflatten(1, (2, 1))), X, Y, {}),
    "a torch module, a description": ("mlp", X, Y, {}),
    "without arguments that makes": (doubled, X, Y, {}),
    "got int from it": (lambda: 3, X, Y, {}),
}


@pytest.mark.parametrize("said", BAD)
def test_bad_input_is_a_one_line_error(said) -> None:
    network, x, y, options = BAD[said]
    with refused(EvgpError):
        unwrap(train)(network, x, y, **{"members": 2, "steps": 200, **options})


def test_arrays_that_torch_cannot_share_or_save_come_in() -> None:
    expected = train(NET, X, Y, members=2, steps=3).predict(X)
    read_only = X.numpy().copy()
    read_only.flags.writeable = False
    with torch.inference_mode():
        result = X * 1
    for x in (read_only, X.numpy().astype(">f8"), result):
        assert torch.equal(train(NET, x, Y, members=2, steps=3).predict(x), expected)


def test_points_of_another_shape_and_members_that_are_not_there_are_refused() -> None:
    ensemble = evgp.train(NET, X, Y, members=2, steps=1)
    with refused(EvgpError):
        ensemble.predict(X[:, :2])
    with refused(EvgpError):
        ensemble.module(2)
