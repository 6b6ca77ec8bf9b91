"""Learners against scikit-learn and direct solves, with few labels, and in comparisons."""

import json
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from evgp import NTK, comparison, mlp
from evgp.comparison import DatasetSource, Protocol, compare, read_rows, summarise
from evgp.comparison.learners import (
    NAMES,
    PENALTIES,
    RIDGES,
    USUAL_PENALTY,
    _penalty,
    fit,
    learner_named,
    ridge,
)
from evgp.comparison.page import render
from evgp.comparison.rows import LEARNERS, row_of, write_rows
from evgp.comparison.run import open_store, play
from evgp.comparison.statistics import averaged
from evgp.errors import DataWarning, EvgpError, PoolError, UnknownName
from evgp.strategies import Setting
from evgp.training import Recipe
from tests.comparison.conftest import QUICK
from tests.messages import refused, warned

SIMPLE = [name for name in NAMES if name != "network"]


def points(n: int, d: int = 3, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(n, d)))


def predicted(name: str, x, y, at, classes: int = 0, *, seed: int = 0) -> torch.Tensor:
    setting = Setting(x, mlp(), Recipe(mlp()), classes)
    return fit(learner_named(name, setting), x, y, classes, seed)(at)


def classes_of(x: torch.Tensor) -> torch.Tensor:
    """Classes 0, 2 and 3 of five, by the first column and a little noise."""
    noisy = x[:, 0] + 0.3 * x[:, 1] ** 2
    return torch.tensor([0, 2, 3])[torch.bucketize(noisy, torch.tensor([-0.3, 0.6]).double())]


def test_every_learner_has_words() -> None:
    assert set(LEARNERS) == set(NAMES)


def test_nearest_neighbours_are_those_of_scikit_learn() -> None:
    x, at = points(40), points(200, seed=1)
    y, labels = x.sum(1), classes_of(x)
    numbers = KNeighborsRegressor(1).fit(x, y).predict(at)
    assert torch.equal(predicted("1nn", x, y, at), torch.from_numpy(numbers))
    words = KNeighborsClassifier(1).fit(x, labels).predict(at)
    assert predicted("1nn", x, labels, at, 5).tolist() == words.tolist()


@pytest.mark.parametrize("outputs", [1, 4])
def test_leaving_one_out_in_closed_form_is_leaving_one_out(outputs) -> None:
    x = points(12)
    gram, y = NTK(mlp())(x), points(12, outputs, seed=2)
    solved = ridge(gram, y)

    def direct(rows: np.ndarray, strength: float) -> tuple[np.ndarray, np.ndarray]:
        """Weights and constant from the bordered system of linear equations."""
        n = len(rows)
        system = np.ones((n + 1, n + 1))
        system[:n, :n] = gram.numpy()[np.ix_(rows, rows)] + strength * np.eye(n)
        system[n, n] = 0
        both = np.linalg.solve(system, np.vstack([y.numpy()[rows], np.zeros((1, outputs))]))
        return both[:n], both[n]

    def left_out(strength: float) -> float:
        errors = []
        for i in range(12):
            rest = np.delete(np.arange(12), i)
            weights, constant = direct(rest, strength)
            errors.append(y.numpy()[i] - gram.numpy()[i, rest] @ weights - constant)
        return float(np.square(errors).sum(1).mean())

    centre = np.eye(12) - 1 / 12
    scale = np.trace(centre @ gram.numpy() @ centre) / 12
    errors = [left_out(share * scale) for share in RIDGES]
    assert solved.ridge == pytest.approx(RIDGES[int(np.argmin(errors))] * scale)
    assert solved.left_out == pytest.approx(min(errors), rel=1e-6)
    weights, constant = direct(np.arange(12), solved.ridge)
    np.testing.assert_allclose(solved.weights.numpy(), weights, atol=1e-8)
    np.testing.assert_allclose(solved.constant.numpy(), constant, atol=1e-8)


@pytest.mark.parametrize("d", [3, 30])
def test_linear_regression_is_the_ridge_of_scikit_learn(d) -> None:
    x, at = points(20, d) + 5, points(50, d, seed=1) + 5
    y = x[:, 0] - x[:, 1] + 0.1 * points(20, 1, seed=3)[:, 0]
    centred = x - x.mean(0)
    solved = ridge(centred @ centred.T, y[:, None])
    expected = Ridge(solved.ridge).fit(x, y).predict(at)
    np.testing.assert_allclose(predicted("linear", x, y, at).numpy(), expected, atol=1e-7)
    rest = np.arange(20)
    errors = [
        y[i] - Ridge(solved.ridge).fit(x[rest != i], y[rest != i]).predict(x[i : i + 1])[0]
        for i in rest
    ]
    assert solved.left_out == pytest.approx(float(np.mean(np.square(errors))))


@pytest.mark.parametrize("d", [3, 40])
def test_classes_are_by_logistic_regression(d) -> None:
    """Also in more dimensions than labels, where the fit is within their span."""
    x, at = points(30, d) + 2, points(200, d, seed=1) + 2
    y = classes_of(x - 2)
    size = (x - x.mean(0)).square().sum(1).mean().sqrt()
    inputs, points_at = ((part - x.mean(0)) / size for part in (x, at))
    agree = [
        (LogisticRegression(C=c, max_iter=1000).fit(inputs, y).predict(points_at))
        == predicted("linear", x, y, at, 5).numpy()
        for c in PENALTIES
    ]
    assert max(item.mean() for item in agree) > 0.99
    actual = _penalty(inputs.numpy(), y.numpy(), 0)
    assert agree[PENALTIES.index(actual)].mean() > 0.99


def test_the_penalty_is_strong_for_noise_and_weak_for_clear_classes() -> None:
    x, random = points(60).numpy(), np.random.default_rng(4)
    clear = (x[:, 0] > 0).astype(int)
    assert _penalty(x, clear, 0) == max(PENALTIES)
    assert _penalty(x, random.permutation(clear), 0) == min(PENALTIES)
    assert _penalty(x[:3], np.array([0, 1, 2]), 0) == USUAL_PENALTY  # no label can be left out


def test_the_ntk_is_exact_and_classes_are_one_hot() -> None:
    x, at = points(25), points(60, seed=1)
    kernel, labels = NTK(mlp()), classes_of(x)
    solved = ridge(kernel(x), torch.eye(5).double()[labels])
    system = kernel(x) + solved.ridge * torch.eye(25)
    ones = torch.ones(25, 1).double()
    y = torch.eye(5).double()[labels]
    constant = ones.T @ torch.linalg.solve(system, y) / (ones.T @ torch.linalg.solve(system, ones))
    outputs = kernel(at, x) @ torch.linalg.solve(system, y - constant) + constant
    assert torch.allclose(outputs.sum(1), torch.ones(60).double())  # so that a known class wins
    assert predicted("ntk", x, labels, at, 5).tolist() == outputs.argmax(1).tolist()
    smooth = x[:, :1].abs()
    solved = ridge(kernel(x), smooth)
    system = kernel(x) + solved.ridge * torch.eye(25)
    constant = ones.T @ torch.linalg.solve(system, smooth)
    constant /= ones.T @ torch.linalg.solve(system, ones)
    outputs = kernel(at, x) @ torch.linalg.solve(system, smooth - constant) + constant
    actual = predicted("ntk", x, smooth[:, 0], at)
    assert torch.allclose(actual, outputs[:, 0])
    assert (actual - at[:, 0].abs()).square().mean() < 0.5 * at[:, 0].abs().var()


def test_trees_are_those_of_scikit_learn() -> None:
    x, at = points(30), points(50, seed=1)
    y, labels = x.sum(1), classes_of(x)
    forest = ExtraTreesRegressor(100, random_state=7).fit(x, y)
    assert predicted("trees", x, y, at, seed=7).tolist() == forest.predict(at.numpy()).tolist()
    forest = ExtraTreesClassifier(100, random_state=7).fit(x, labels)
    actual = predicted("trees", x, labels, at, 5, seed=7)
    assert actual.tolist() == forest.predict(at.numpy()).tolist()


def test_boosting_learns_from_few_labels() -> None:
    """With scikit-learn's leaves of twenty it would predict one number for all."""
    x, at = points(30), points(200, seed=1)
    y = torch.sign(x[:, 0])
    assert (predicted("boosting", x, y, at) * torch.sign(at[:, 0]) > 0).double().mean() > 0.85
    labels = (x[:, 0] > 0).long()
    assert (predicted("boosting", x, labels, at, 2) == (at[:, 0] > 0)).double().mean() > 0.85


@pytest.mark.parametrize("name", SIMPLE)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_few_labels_are_enough(name, n) -> None:
    x, at = points(n, 4), points(30, 4, seed=1)
    y = x[:, 0]
    actual = predicted(name, x, y, at)
    assert actual.shape == (30,) and bool(torch.isfinite(actual).all())
    assert actual.min() >= y.min() - 5 and actual.max() <= y.max() + 5
    for labels in (torch.arange(n) % 4, torch.zeros(n).long(), torch.full((n,), 7)):
        codes = predicted(name, x, labels, at, 8)
        assert set(codes.tolist()) <= set(labels.tolist())
    assert predicted(name, x, torch.full((n,), 2.5).double(), at).tolist() == [2.5] * 30


@pytest.mark.parametrize("name", SIMPLE)
def test_copies_of_one_point_with_other_labels_are_no_error(name) -> None:
    x, at = torch.ones(4, 2).double(), points(5, 2, seed=1)
    actual = predicted(name, x, torch.tensor([0.0, 1.0, 2.0, 3.0]).double(), at)
    assert bool((actual >= 0).all() and (actual <= 3).all())
    assert set(predicted(name, x, torch.tensor([0, 1, 1, 1]), at, 2).tolist()) <= {0, 1}


@pytest.mark.parametrize("name", SIMPLE)
def test_the_seed_decides(name) -> None:
    x, at = points(20), points(50, seed=1)
    y = x.sum(1)
    first, again = (predicted(name, x, y, at, seed=3) for _ in range(2))
    assert torch.equal(first, again)
    assert torch.equal(first, predicted(name, x, y, at, seed=4)) == (name != "trees")


# In a comparison


EASY = replace(QUICK, learners=("1nn", "linear", "ntk"))


def untimed(rows) -> list[str]:
    return sorted(repr(replace(row, pick_seconds=0.0, train_seconds=0.0)) for row in rows)


@pytest.mark.parametrize("kind", ["numbers", "kinds"])
def test_all_learners_have_the_same_picks(kind, request) -> None:
    source: DatasetSource = request.getfixturevalue(kind)
    every = play(source, "evgp", 1, replace(QUICK, learners=NAMES))
    alone = play(source, "evgp", 1, QUICK)
    assert every.picks.tolist() == alone.picks.tolist()
    networks = [row for row in every.rows if row.learner == "network"]
    assert untimed(networks) == untimed(alone.rows)
    assert [row.learner for row in every.rows] == 2 * list(NAMES)
    data = source.load(1)
    pool, test = data.scaled("auto")
    x, y = pool[every.picks], data.y[every.picks]
    y = y if data.classes else y[:, 0]
    right = predicted("1nn", x, y, test, data.classes)
    row = next(row for row in every.rows if row.learner == "1nn" and row.labels == 6)
    if kind == "numbers":
        assert row.mse == pytest.approx(float((right - data.y_test[:, 0]).square().mean()))
    else:
        assert row.accuracy == float((right == data.y_test).double().mean())
    assert row.members == 1 and np.isnan(row.train_loss) and np.isnan(row.output_variance)


def test_a_comparison_grows_by_learners(numbers, tmp_path, monkeypatch) -> None:
    ran: list[object] = []
    play_cell = comparison.play_cell

    def counted(**settings) -> object:
        ran.append((settings.get("learners"), settings.get("members")))
        return play_cell(**settings)

    monkeypatch.setattr(comparison, "play_cell", counted)
    arguments = {"out": tmp_path, "seeds": [0], "jobs": 1}
    compare(numbers, "random", protocol=QUICK, **arguments)
    compare(numbers, "random", protocol=replace(QUICK, learners=("1nn", "network")), **arguments)
    compare(numbers, "random", protocol=replace(QUICK, learners=("1nn",), members=5), **arguments)
    three = replace(QUICK, learners=("linear", "1nn", "network"), members=3)
    grown = compare(numbers, "random", protocol=three, **arguments)
    assert ran == [(None, 2), (["1nn"], None), (["network", "linear"], 3)]
    assert sorted({(row.learner, row.members) for row in grown}) == [
        ("1nn", 1), ("linear", 1), ("network", 2), ("network", 3),
    ]  # fmt: skip
    assert untimed(compare(numbers, "random", protocol=three, **arguments)) == untimed(grown)
    assert len(ran) == 3
    afresh = compare(numbers, "random", protocol=three, out=tmp_path / "new", seeds=[0], jobs=1)
    assert set(untimed(afresh)) < set(untimed(grown))


def test_cells_of_networks_keep_their_names_and_rows(numbers) -> None:
    """The name of a cell as it was before there were learners."""
    cell = comparison.run.cell_of(DatasetSource("kin8nm"), "evgp", 0, Protocol(scale="columns"))
    assert open_store(Path("x")).path(cell).name == "arena-kin8nm-evgp-0-e0b23ada2baf.json"
    outcome = comparison.play_cell(**comparison.run.cell_of(numbers, "random", 0, QUICK).settings)
    assert not any("learner" in row for row in outcome.rows)
    assert {row_of(row).learner for row in outcome.rows} == {"network"}
    assert set(outcome.extra) == {"picks"}


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_rows_of_before_are_those_of_networks(suffix, numbers, tmp_path) -> None:
    rows = play(numbers, "random", 0, EASY).rows
    path = tmp_path / f"rows{suffix}"
    write_rows(path, rows)
    assert repr(read_rows(path)) == repr(rows)
    if suffix == ".csv":
        lines = [line.rsplit(",", 1)[0] for line in path.read_text().splitlines()]
        path.write_text("\n".join(lines))
    else:
        import pyarrow.parquet as pq

        pq.write_table(pq.read_table(path).drop_columns(["learner"]), path)
    assert {row.learner for row in read_rows(path)} == {"network"}


# Cold starts


def test_a_nested_list_is_picked_once_and_others_again(numbers) -> None:
    cold = replace(EASY, budget=100, batch=20, budgets=(9, 3, 6))
    assert (cold.budgets, cold.budget, cold.rounds) == ((3, 6, 9), 9, 3)
    for name in ("evgp", "evgp-exchange", "badge"):
        played = play(numbers, name, 0, cold)
        assert [row.labels for row in played.rows] == 3 * [3] + 3 * [6] + 3 * [9]
        assert {row.batch for row in played.rows} == {0}
        for budget in (3, 6, 9):
            once = play(numbers, name, 0, cold.cold(budget))
            own = played.picks[:budget] if name == "evgp" else played.anew[budget]
            assert own.tolist() == once.picks.tolist()
            expected = [replace(row, round=0, batch=budget) for row in played.rows]
            assert set(untimed(once.rows)) <= set(untimed(expected))
        assert set(played.anew) == (set() if name == "evgp" else {3, 6, 9})


def test_labels_at_the_start_are_part_of_every_budget(numbers) -> None:
    cold = replace(EASY, budget=100, batch=20, budgets=(6, 9), start=3)
    result = [play(numbers, name, 0, cold) for name in ("random", "evgp-exchange")]
    assert len({tuple(item.picks[:3].tolist()) for item in result}) == 1
    assert [row.labels for row in result[0].rows] == [6] * 3 + [9] * 3


def test_what_learns_from_labels_is_named_in_a_cold_start(numbers) -> None:
    cold, data = replace(EASY, budget=100, batch=20, budgets=(6, 9)), numbers.load(0)
    with warned(DataWarning):
        cold.check(data, ("evgp", "badge", "evgp+badge"), 0)
    for protocol, names in (
        (replace(cold, start=3, batch=6), ("badge",)),
        (cold, ("evgp", "random")),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            protocol.check(data, names, 0)


def test_a_strategy_that_learns_takes_the_scaling_of_its_name(numbers) -> None:
    data = numbers.load(0)
    assert EASY.inputs(data, "badge") is data.x
    assert torch.equal(EASY.inputs(data, "badge@unit"), data.scaled("unit")[0])


@pytest.mark.parametrize("first", ["evgp", "evgp@unit", "kmeans@none"])
def test_each_part_of_a_warm_start_sees_its_own_scaling(numbers, first) -> None:
    rounds, data = replace(EASY, budget=6, batch=3), numbers.load(0)
    assert rounds.inputs(data, f"{first}:3+badge") is data.x
    assert rounds.inputs(data, f"{first}+badge@common") is not data.x
    alone = play(numbers, first, 0, rounds).picks[:3].tolist()
    assert play(numbers, f"{first}:3+badge", 0, rounds).picks[:3].tolist() == alone
    with refused(PoolError):  # a second change within a batch, where rows cannot be matched
        play(numbers, f"random:1+{first}:2+badge", 0, rounds)


def test_an_unknown_scaling_of_a_strategy_is_named(numbers) -> None:
    with refused(UnknownName) as caught:
        EASY.inputs(numbers.load(0), "evgp@colums")
    assert caught.value.suggestion == "columns"


def test_picks_of_a_cold_start_are_kept(numbers, tmp_path) -> None:
    cold = replace(EASY, budget=100, batch=20, budgets=(3, 6))
    rows = compare(numbers, ["random", "evgp-exchange"], out=tmp_path, protocol=cold, seeds=1,
                   jobs=1)  # fmt: skip
    assert len(rows) == 2 * 2 * 3
    for cell, finished in open_store(tmp_path).every():
        anew = finished.extra.get("anew", {})
        assert set(anew) == ({"3", "6"} if cell.settings["strategy"] != "random" else set())
        assert len(finished.extra["picks"]) == 6
    again = compare(numbers, ["random", "evgp-exchange"], out=tmp_path, protocol=cold, seeds=1)
    assert [repr(row) for row in again] == [repr(row) for row in rows]
    with refused(EvgpError):
        compare(numbers, ["random"], out=tmp_path, protocol=EASY, seeds=1)


@pytest.mark.parametrize(
    "given",
    [
        {"learners": ()},
        {"learners": ("1nn", "lineer")},
        {"budgets": (10, 0)},
        {"budgets": (10, 20), "start": 10},
        {"budgets": (10, 20), "budget": 40},
        {"budgets": (10, 20), "batch": 5},
    ],
)
def test_bad_learners_and_budgets_are_refused(given) -> None:
    with refused(EvgpError):
        Protocol(**given)


# What is reported


def test_the_mean_over_learners_comes_first(kinds, numbers, tmp_path) -> None:
    rows = compare([kinds], ["random", "evgp", "coreset"], out=tmp_path, protocol=EASY, seeds=3,
                   jobs=1)  # fmt: skip
    summary = summarise(rows)
    assert [contest.learner for contest in summary.contests] == ["mean", "1nn", "linear", "ntk"]
    assert [name for name, _ in summary.by_learner] == ["1nn", "linear", "ntk"]
    (main,) = summary.main
    assert main.metrics == ("accuracy",) and len(summary.parts(main.dataset)) == 3
    for entrant in main.entrants:
        parts = [summary.contest(main.dataset, name).entrant(entrant.strategy) for name, _ in
                 summary.by_learner]  # fmt: skip
        heights = [part.score("accuracy").mean for part in parts]
        assert entrant.score("accuracy").mean == pytest.approx(np.mean(heights))
    page = render(summary, {})
    assert "test accuracy by learner" in page and "With NTK ridge alone" in page
    assert "3 strategies and 3 learners on prices" in page
    assert json.dumps(summary.as_dict())
    alone = summarise([row for row in rows if row.learner == "1nn"])
    assert alone.by_learner == () and alone.main[0].title == "prices, 1-NN"
    assert "by learner" not in render(alone, {})


def test_errors_are_averaged_geometrically_over_what_all_learners_have(numbers) -> None:
    rows = play(numbers, "random", 0, replace(QUICK, learners=("network", "1nn"))).rows
    means = averaged(rows)
    assert len(means) == 2
    for mean in means:
        own = [row for row in rows if row.labels == mean.labels]
        assert mean.mse == pytest.approx(np.sqrt(own[0].mse * own[1].mse))
        assert np.isnan(mean.output_variance_p90)
    assert [row.labels for row in averaged(rows[:-1])] == [3]
