"""Scores of architectures compared with plain loops and other libraries, and the choice."""

import math
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
import torch

from evgp import NNGP, NTK, mlp, read_pool
from evgp.architectures import candidates, choose, losses
from evgp.architectures.cross_validation import split
from evgp.errors import DataWarning, EvgpError, MemoryPlanError
from evgp.posterior import trained
from tests.messages import refused, warned

X = torch.randn(20, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
Y = torch.sin(X.sum(1, keepdim=True))


@pytest.mark.parametrize("network", [mlp(), mlp(1, activation="erf"), mlp(3, activation="gelu")])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("memory", [None, 1])
def test_folds_are_networks_trained_on_some_and_tested_on_others(network, outputs, memory) -> None:
    y = torch.cat([Y * (j + 1) for j in range(outputs)], 1)
    orders = split(20, 4, seed=1)
    result = losses(network, X, y, orders, 6, noise=1e-3, memory=memory)
    scale = float(NTK(network).diag(X).mean())
    for fold, order in enumerate(orders):
        kept, out = order[:-6], order[-6:]
        # `trained` takes its noise relative to the test points it is given.
        noise = 1e-3 * scale / float(NTK(network).diag(X[out]).mean())
        first = trained(NTK(network), NNGP(network), X[kept], y[kept], X[out], noise=noise)
        fit = float((y[out] - first.mean).square().sum(1).mean())
        assert float(result.fit[fold]) == pytest.approx(fit, rel=1e-7)
        spread = outputs * float(first.variance.mean())
        assert float(result.spread[fold]) == pytest.approx(spread, rel=1e-6)


def test_the_best_has_the_least_expected_loss_and_folds_are_shared() -> None:
    result = choose(candidates(depths=(1, 2)), X, Y[:, 0], folds=30, seed=3, scale=None)
    orders = split(20, 30, 3)
    for entry in result.ranked:
        total = losses(entry.network, X, Y, orders, 6).total
        assert entry.score == pytest.approx(float(total.mean()))
        assert entry.score == pytest.approx(entry.fit + entry.spread)
        assert entry.error == pytest.approx(float(total.std()) * math.sqrt(1 / 30 + 6 / 14))
        gap = total - losses(result.ranked[0].network, X, Y, orders, 6).total
        assert entry.lead == pytest.approx(float(gap.mean()), abs=1e-12)
        doubt = float(gap.std()) * math.sqrt(1 / 30 + 6 / 14)
        assert entry.doubt == pytest.approx(doubt, abs=1e-12)
    assert result.chosen is result.ranked[0] or result.chosen == result.ranked[0]
    assert [entry.score for entry in result.ranked] == sorted(
        entry.score for entry in result.ranked
    )
    assert result.network == result.chosen.network
    nets = list(candidates(depths=(1, 2)).values())
    again = choose(nets, X.numpy(), Y.numpy(), folds=30, seed=3, scale=None)
    assert again.network == result.network


def test_one_error_keeps_what_is_not_clearly_worse() -> None:
    nets = candidates(depths=(1, 2, 3))
    plain = choose(nets, X, Y, folds=20)
    for entry in plain.ranked:
        kept = choose(nets, X, Y, folds=20, current=entry.name, one_error=True)
        expected = entry if entry.lead <= entry.doubt else plain.ranked[0]
        assert kept.chosen == expected
        assert choose(nets, X, Y, folds=20, current=entry.name).chosen == plain.ranked[0]
    assert len({entry.lead <= entry.doubt for entry in plain.ranked}) == 2  # both cases are seen


def test_a_scale_is_that_of_pools_and_labels_follow_for_arrays_and_frames() -> None:
    nets, labels = {"a": mlp(1)}, 40 + 7 * Y
    for scale in ("columns", "common", "auto"):
        x = read_pool(X.numpy(), scale=scale).in_memory
        expected = choose(nets, x, (Y - Y.mean()) / Y.std(correction=0), folds=5, scale=None)
        frame = pd.DataFrame(X.numpy(), columns=[f"c{i}" for i in range(X.shape[1])])
        for points in (X, frame):
            result = choose(nets, points, labels, folds=5, scale=scale)
            assert result.chosen.score == pytest.approx(expected.chosen.score, rel=1e-9)
    with warned(DeprecationWarning):
        old = choose(nets, X, Y, folds=5, standardise=False)
    assert old.ranked == choose(nets, X, Y, folds=5, scale=None).ranked


def test_classes_are_one_hot_around_their_mean() -> None:
    labels = (X[:, 0] > 0).long() * 5
    result = choose({"a": mlp()}, X, labels, folds=5, scale=None)
    hot = torch.stack([labels == 0, labels == 5], 1).double()
    expected = choose({"a": mlp()}, X, hot - hot.mean(0), folds=5, scale=None)
    assert result.ranked[0].score == pytest.approx(expected.ranked[0].score)


def test_the_papers_candidates() -> None:
    assert len(candidates()) == 16
    sines = candidates(activations=("relu", "gelu", "leaky_relu", "erf", "sin"))
    assert len(sines) == 20 and sines["sin-4"] == mlp(4, activation="sin")
    assert candidates(outputs=3)["relu-2"] == mlp(outputs=3)


@pytest.mark.parametrize(
    "change",
    [
        {"networks": {}},
        {"networks": {"net": torch.nn.Linear(3, 1)}},
        {"y": Y[:-1]},
        {"y": Y * torch.nan},
        {"x": X[:3], "y": Y[:3]},
        {"kappa": 0.95},
        {"folds": 1},
        {"kappa": math.nan},
        {"kappa": 5.0},
        {"noise": math.nan},
        {"noise": -1.0},
        {"seed": -1},
        {"current": "relu-9", "one_error": True},
    ],
)
def test_invalid_choices_are_refused(change) -> None:
    arguments = {"networks": {"relu-2": mlp()}, "x": X, "y": Y, **change}
    with refused((EvgpError, TypeError)):
        choose(**arguments)


def test_units_of_points_and_labels_change_nothing() -> None:
    shift, scale = torch.tensor([5.0, -2.0, 0.0]).double(), torch.tensor([1e3, 1e-3, 2.0]).double()
    x = torch.randn(24, 3, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    y = x[:, 0].abs() + x[:, 1]
    nets = candidates(depths=(1, 2), activations=("relu", "erf"))
    ours = choose(nets, x, y, folds=10)
    theirs = choose(nets, x * scale + shift, 300 * y - 8, folds=10)
    assert [entry.name for entry in ours.ranked] == [entry.name for entry in theirs.ranked]
    for item, other in zip(ours.ranked, theirs.ranked, strict=True):
        assert item.score == pytest.approx(other.score)
    plain = choose(nets, x, 300 * y, folds=10, scale=None)
    assert plain.ranked[0].score > 100 * ours.ranked[0].score


def test_equal_labels_are_refused() -> None:
    x = torch.randn(9, 2, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    with refused(EvgpError):
        choose(candidates(depths=(1,)), x, torch.ones(9))


def test_the_standard_error_matches_new_data() -> None:
    """The standard deviation over data sets, which folds of one set understate several times."""
    nets = {"relu": mlp(2), "erf": mlp(1, activation="erf")}
    leads, doubts, naive = [], [], []
    for seed in range(40):
        x = torch.randn(24, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        y = torch.sin(2 * x[:, 0]) + x[:, 1] ** 2
        totals = [losses(net, x, y[:, None], split(24, 60, seed), 7).total for net in nets.values()]
        leads.append(float((totals[0] - totals[1]).mean()))
        naive.append(float((totals[0] - totals[1]).std()) / 60**0.5)
        result = choose(nets, x, y, folds=60, seed=seed, scale=None)
        doubts.append(result.ranked[1].doubt)
    real = float(np.std(leads, ddof=1))
    assert 0.5 < real / np.mean(doubts) < 2
    assert real / np.mean(naive) > 3


def test_strings_are_classes_and_many_integers_give_a_warning() -> None:
    words = np.where(X[:, 0] > 0, "up", "down")
    codes = (X[:, 0] > 0).long()
    assert choose({"a": mlp()}, X, words, folds=5).ranked[0].score == pytest.approx(
        choose({"a": mlp()}, X, codes, folds=5).ranked[0].score
    )
    with warned(DataWarning):
        many = torch.randn(30, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        choose({"a": mlp()}, many, torch.arange(30), folds=5)


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_extreme_units_change_nothing(scale: float) -> None:
    nets = candidates(depths=(1, 2), activations=("relu", "erf"))
    plain = choose(nets, X, Y, folds=10)
    for x, y in ((X * scale, Y), (X, Y * scale), (X * scale, Y * scale)):
        result = choose(nets, x, y, folds=10)
        assert [entry.score for entry in result.ranked] == pytest.approx(
            [entry.score for entry in plain.ranked], rel=1e-6
        )


def test_more_labels_than_fit_are_refused_before_anything_runs(monkeypatch) -> None:
    module = import_module("evgp.architectures.choose")  # the function has the same name
    monkeypatch.setattr(module, "available_memory", lambda: 10_000)
    with refused(MemoryPlanError):
        choose({"a": mlp()}, X, Y)


def test_threads_change_no_digit_and_are_left_as_they_were() -> None:
    x = torch.randn(120, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    before, result = torch.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            actual = choose(candidates(depths=(1, 2)), x, x.sum(1).sin(), folds=10)
            result.append([(entry.name, entry.score, entry.doubt) for entry in actual.ranked])
            assert torch.get_num_threads() == count
    finally:
        torch.set_num_threads(before)
    assert result[0] == result[1] == result[2]


def test_many_labels_are_scored_one_network_after_another(monkeypatch) -> None:
    """As few matrices as can be, and the same answer but for rounding."""
    side = choose(candidates(depths=(1, 2)), X, Y[:, 0], folds=10)
    room = import_module("evgp.architectures.choose")
    monkeypatch.setattr(room, "_SMALL", 10)
    monkeypatch.setattr(room, "each_alone", None)
    after = choose(candidates(depths=(1, 2)), X, Y[:, 0], folds=10)
    assert [entry.name for entry in side.ranked] == [entry.name for entry in after.ranked]
    for item, two in zip(side.ranked, after.ranked, strict=True):
        assert item.score == pytest.approx(two.score, rel=1e-9)
