"""`evgp.pick`: what it accepts, what it returns, and what it guarantees."""

import gc
import pickle
from importlib import import_module

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import evgp
from evgp import NTK, ExpectedVariance, Pool, mlp, search
from evgp.errors import DatasetError, DataWarning, MemoryPlanError, PoolError
from evgp.testing import Truth
from tests.messages import refused, warned

plan_room = import_module("evgp.selection.plan")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))


def pick(*args, **options) -> evgp.Selection:
    """Picks of standardised columns, unless another scale is asked for."""
    return evgp.pick(*args, **{"scale": "columns", **options})


def plan(*args, **options) -> evgp.Plan:
    return evgp.plan(*args, **{"scale": "columns", **options})


def left(x: np.ndarray, picks, *, test=None, labelled=(), weights=None) -> float:
    """Mean variance by one direct solve, for standardised inputs."""
    pool = Pool(
        torch.from_numpy(x),
        None if test is None else torch.from_numpy(test),
        weights=weights,
        labelled=torch.tensor(list(labelled), dtype=torch.int64),
    )
    kernel = NTK(mlp())
    noise = 1e-6 * float(pool.test_weights() @ kernel.diag(pool.test_points()))
    return Truth(kernel, pool, noise).mean_variance([int(i) for i in picks])


def standard(x: np.ndarray, by: np.ndarray | None = None) -> np.ndarray:
    by = x if by is None else by
    scale = np.where(by.std(0) > 0, by.std(0), 1)
    return np.where(by.std(0) > 0, (x - by.mean(0)) / scale, 0.0)


def test_three_lines_give_picks_with_their_story() -> None:
    selection = pick(X, k=8)
    assert selection.indices.shape == selection.gains.shape == selection.variance_left.shape == (8,)
    assert len(set(selection.indices.tolist())) == 8
    assert selection.prior_variance == selection.start_variance == pytest.approx(0.7775, abs=1e-4)
    assert np.allclose(
        selection.start_variance - np.cumsum(selection.gains), selection.variance_left
    )
    assert np.all(np.diff(selection.variance_left) < 0)
    for j in (1, 5, 8):
        assert selection.variance_left[j - 1] == pytest.approx(
            left(standard(X), selection.indices[:j])
        )
    assert selection.test_before.mean() == pytest.approx(selection.start_variance)
    assert selection.test_after.mean() == pytest.approx(selection.variance_left[-1])
    assert selection.certificate is not None and np.all(selection.certificate.share <= 1)
    assert (
        selection.settings["network"]
        == "Network(depth=2, width=512, activation=relu, w_std=1, b_std=0.1)"
    )
    assert "8 picks" in repr(selection) and "of the best possible" in repr(selection)


def test_random_state_is_another_word_for_the_seed() -> None:
    options = {"greedy": evgp.search.Stochastic(5)}  # picks that depend on the seed
    by_seed = pick(X, 6, seed=3, **options)
    assert list(by_seed) != list(pick(X, 6, **options))
    for words in ({"random_state": 3}, {"seed": 3, "random_state": 3}):
        selection = pick(X, 6, **words, **options)
        assert selection == by_seed and selection.settings == by_seed.settings
        assert selection.settings["seed"] == 3 and "random_state" not in selection.settings
        assert plan(X, 6, **words, **options).run() == by_seed
    assert pick(X, 2).settings["seed"] == pick(X, 2, random_state=0).settings["seed"] == 0
    with refused(PoolError):
        evgp.plan((60, 3), 2, seed=0, random_state=3)


def test_a_network_is_drawn_by_the_random_state() -> None:
    def asked(**words: int) -> evgp.EmpiricalNTK:
        request = evgp.selection.Request.of(X, 2, network=torch.nn.Linear(3, 1), **words)
        return request.kernel

    assert asked(random_state=5).seed == asked(seed=5).seed == 5


def test_numpy_torch_float16_and_integers_come_in() -> None:
    counts = RNG.integers(0, 16, size=(50, 4))
    base = pick(counts.astype(float), 6).indices
    kinds = ("f2", "u1", "u2", "u8", "i1", ">i4", ">f4")
    others = [counts, torch.from_numpy(counts), counts.tolist(), *map(counts.astype, kinds)]
    for other in others:
        assert np.array_equal(pick(other, 6).indices, base)


def test_standardising_is_what_a_person_would_do() -> None:
    wild = X * [1e6, 1e-6, 1.0] + [5.0, -3.0, 0.0]
    assert np.array_equal(pick(wild, 6).indices, pick(X, 6).indices)
    by_hand = pick(standard(X), 6, scale=None)
    assert np.array_equal(by_hand.indices, pick(X, 6).indices)
    constant = np.column_stack([X, np.full(60, 1e9 + 0.1)])
    assert bool(np.isfinite(pick(constant, 6).gains).all())


@pytest.mark.parametrize("scale", [1e300, 1e200, 1e-170, 1e-300])
def test_huge_and_tiny_columns_are_scaled_like_any_other(scale) -> None:
    base = pick(X, 5).indices
    assert np.array_equal(pick(X * scale, 5).indices, base)
    assert np.array_equal(pick(X * [1.0, scale, 1.0], 5).indices, base)


def test_an_offset_hides_nothing_that_the_numbers_hold() -> None:
    far = np.round(X, 3) + 2.0**33
    assert np.array_equal(pick(far, 5).indices, pick(far - 2.0**33, 5).indices)


def test_all_rows_can_be_ranked() -> None:
    selection = pick(X, 60)
    assert sorted(selection.indices.tolist()) == list(range(60))
    assert np.allclose(
        selection.start_variance - np.cumsum(selection.gains), selection.variance_left, atol=1e-9
    )
    for j in (1, 10, 40):
        assert selection.variance_left[j - 1] == pytest.approx(
            left(standard(X), selection.indices[:j])
        )


def test_copies_that_differ_in_the_last_digits_are_ties() -> None:
    near = np.vstack([X, X + 1e-12 * np.random.default_rng(2).normal(size=X.shape)])
    wide, single = (
        pick(near, 25, greedy="exact", storage=storage) for storage in ("float64", "float32")
    )
    assert np.array_equal(wide.indices, single.indices) and wide.indices.max() < 60


@pytest.mark.parametrize("apart", [0.0, 1e-10, 1e-9, 1e-8, 1e-6])
@pytest.mark.parametrize(("k", "greedy", "noise"), [(6, "exact", 1e-6), (14, "exchange", 1e-2)])
def test_storage_does_not_decide_between_near_copies(k, greedy, noise, apart) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        near = np.repeat(rng.normal(size=(9, 4)), 6, axis=0)
        near = near + apart * rng.normal(size=near.shape)
        wide, single = (
            pick(near, k, greedy=greedy, noise=noise, storage=storage)
            for storage in ("float64", "float32")
        )
        assert np.array_equal(wide.indices, single.indices)


def test_test_points_and_weights() -> None:
    test = RNG.normal(size=(10, 3)) + 1
    selection = pick(X, 5, x_test=test)
    actual = left(standard(X), selection.indices, test=standard(test, X))
    assert selection.variance_left[-1] == pytest.approx(actual)
    # A weight of two is the point twice.
    weights = RNG.integers(1, 4, size=10)
    weighted = pick(X, 5, x_test=test, test_weights=weights)
    repeated = pick(X, 5, x_test=np.repeat(test, weights, axis=0))
    assert np.array_equal(weighted.indices, repeated.indices)
    assert weighted.variance_left == pytest.approx(repeated.variance_left)
    assert weighted.certificate.share == pytest.approx(repeated.certificate.share, rel=1e-6)
    # A weight of zero is no point at all.
    picks = pick(X, 5, x_test=test, test_weights=[1] * 6 + [0] * 4)
    assert np.array_equal(picks.indices, pick(X, 5, x_test=test[:6]).indices)


def test_labelled_points_are_known_and_never_picked() -> None:
    selection = pick(X, 5, labelled=[0, 7, 7])
    assert not {0, 7} & set(selection.indices.tolist())
    assert selection.start_variance == pytest.approx(left(standard(X), [], labelled=[0, 7]))
    assert selection.variance_left[-1] == pytest.approx(
        left(standard(X), selection.indices, labelled=[0, 7])
    )
    mask = np.zeros(60, dtype=bool)
    mask[[0, 7]] = True
    assert np.array_equal(pick(X, 5, labelled=mask).indices, selection.indices)
    outside = pick(X, 5, x_labelled=X[[0, 7]], candidates=np.setdiff1d(np.arange(60), [0, 7]))
    assert np.array_equal(outside.indices, selection.indices)


def test_candidates_restrict_what_may_be_picked() -> None:
    allowed = [3, 14, 15, 9, 26, 5]
    selection = pick(X, 4, candidates=allowed)
    assert set(selection.indices.tolist()) <= set(allowed)


@pytest.mark.parametrize("criterion", ["ev", "p90"])
def test_rounds_do_not_matter(criterion) -> None:
    """Three rounds of four equal one of twelve."""
    whole = pick(X, 12, greedy="exact", criterion=criterion).indices
    done: list[int] = []
    for _ in range(3):
        done += pick(X, 4, greedy="exact", criterion=criterion, labelled=done).indices.tolist()
    assert done == whole.tolist()


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), budget=st.floats(2.0, 30.0))
def test_money_buys_the_better_of_two_greedies(seed, budget) -> None:
    costs = np.random.default_rng(seed).uniform(0.5, 4.0, size=60)
    selection = pick(X, costs=costs, budget=budget)
    assert selection.costs == pytest.approx(costs[selection.indices])
    assert selection.costs.sum() <= budget * (1 + 1e-9)
    assert np.all(
        costs[np.setdiff1d(np.arange(60), selection.indices)] > budget - selection.costs.sum()
    )
    plain = pick(X, costs=costs, budget=budget, greedy="exact")
    assert selection.variance_left[-1] <= plain.variance_left[-1] + 1e-12
    assert np.all(selection.certificate.share <= 1)


def test_equal_costs_are_no_costs() -> None:
    selection = pick(X, costs=np.full(60, 2.0), budget=10.0)
    free = pick(X, 5)
    assert np.array_equal(selection.indices, free.indices)
    assert selection.certificate.share == pytest.approx(free.certificate.share)
    assert len(pick(X, 3, costs=np.full(60, 2.0), budget=10.0)) == 3


def test_thinning_keeps_pool_rows_as_test_points() -> None:
    selection = pick(X, 5, thin=20)
    assert selection.settings["test_points"] == 20 and selection.test_before.shape == (20,)
    assert np.array_equal(selection.indices, pick(X, 5, thin=20).indices)
    assert np.array_equal(pick(X, 5, thin=99).indices, pick(X, 5).indices)
    assert pick(X, 3, x_test=X[:30] + 0.1, thin=10).test_before.shape == (10,)


@pytest.mark.parametrize("criterion", ["ev", "max"])
def test_a_test_point_that_is_kept_represents_those_around_it(criterion) -> None:
    times = np.arange(1, 13)
    crowd = np.repeat(X[:12] + 0.1, times, axis=0)
    every = pick(X, 6, x_test=crowd, criterion=criterion)
    few = pick(X, 6, x_test=crowd, criterion=criterion, thin=12)
    assert few.test_before.shape == (12,)
    assert np.array_equal(few.indices, every.indices)
    assert few.gains == pytest.approx(every.gains)
    weights = np.repeat(1 / times, times)  # each place as much as any other
    selection = pick(X, 6, x_test=crowd, test_weights=weights, criterion=criterion, thin=12)
    plain = pick(X, 6, x_test=X[:12] + 0.1, criterion=criterion)
    assert np.array_equal(selection.indices, plain.indices)
    assert selection.gains == pytest.approx(plain.gains)


def test_mutual_information_warns_when_gains_turn_negative() -> None:
    close = np.linspace(0, 1, 12)[:, None]
    with warned(DataWarning):
        selection = pick(close, 11, criterion="mi", noise=1e-2)
    assert len(selection) == 11 and any("negative gain" in text for text in selection.warnings)
    assert selection.certificate is None


@pytest.mark.parametrize(
    ("name", "meant"),
    [("exact", search.Exact()), ("lazy", search.Lazy()), ("stochastic", search.Stochastic(1000)),
     ("exchange", search.Exchange()), ("auto", search.Exact())],
)  # fmt: skip
def test_other_greedies_by_name_or_object(name, meant) -> None:
    result, expected = pick(X, 4, greedy=name), pick(X, 4, greedy=meant)
    assert result.settings["greedy"] == expected.settings["greedy"] == repr(meant)
    assert result.indices.tolist() == expected.indices.tolist()
    # Only swaps leave the greedy path here: the sample of the stochastic one is the whole pool.
    swapped = result.indices.tolist() != pick(X, 4, greedy=evgp.search.Exact()).indices.tolist()
    assert swapped == isinstance(meant, evgp.search.Exchange)


@pytest.mark.parametrize(
    ("name", "after"),
    [("ev", np.mean), ("median", np.median), ("p90", lambda v: np.percentile(v, 90)),
     ("max", np.max)],
)  # fmt: skip
def test_other_criteria_by_name(name, after) -> None:
    """The first pick is the row that leaves least, each row tried by a direct solve."""
    kernel, pool = NTK(mlp()), Pool(torch.from_numpy(standard(X)))
    truth = Truth(kernel, pool, 1e-6 * float(kernel.diag(pool.test_points()).mean()))
    lefts = [float(after(truth.test_variance([row]).numpy())) for row in range(60)]
    selection = pick(X, 1, criterion=name, greedy="exact")
    assert selection.indices.tolist() == [int(np.argmin(lefts))]
    nothing = float(after(truth.test_variance([]).numpy()))
    assert selection.gains[0] == pytest.approx(nothing - min(lefts))


def test_criteria_and_kernels_as_objects() -> None:
    first = pick(X, 4, criterion=ExpectedVariance(), greedy=evgp.search.Exchange())
    assert np.array_equal(first.indices, pick(X, 4, final=True).indices)
    selection = pick(X, 4, criterion=evgp.MutualInformation())
    named = pick(X, 4, criterion="mi")
    assert named.settings["criterion"] == selection.settings["criterion"] == "MutualInformation()"
    assert named.gains.tolist() == selection.gains.tolist()
    other = pick(X, 4, kernel=NTK(mlp(3, activation="sin")))
    assert np.array_equal(other.indices, pick(X, 4, network=mlp(3, activation="sin")).indices)


def test_same_picks_for_any_storage_and_threads() -> None:
    x = np.concatenate([X, X[:20]])
    base = pick(x, 12)
    threads = torch.get_num_threads()
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            assert np.array_equal(pick(x, 12).indices, base.indices)
            assert np.array_equal(pick(x, 12, storage="float32").indices, base.indices)
    finally:
        torch.set_num_threads(threads)


def test_permuting_the_pool_permutes_the_picks() -> None:
    turned = np.random.default_rng(1).permutation(60)
    selection = pick(X[turned], 8)
    assert turned[selection.indices].tolist() == pick(X, 8).indices.tolist()


def test_progress_is_reported() -> None:
    calls: list[tuple[str, int, int]] = []
    pick(X, 4, final=True, progress=lambda *step: calls.append(step))
    assert ("picking", 4, 4) in calls and calls[-1] == ("certifying", 1, 1)
    assert any(stage == "exchanging" for stage, _, _ in calls)


def test_a_pool_of_one_row_and_of_equal_rows_is_refused_as_by_the_command() -> None:
    with refused(DatasetError):
        pick(np.ones((1, 2)), 1)
    with refused(DatasetError):
        pick(np.ones((5, 2)), 5)
    # Unscaled rows are taken as they are.
    with warned(DataWarning):
        selection = pick(np.ones((5, 2)), 5, scale=None)
    assert sorted(selection.indices.tolist()) == [0, 1, 2, 3, 4]
    assert selection.indices[0] == 0


def test_more_picks_than_distinct_points_is_reported() -> None:
    with warned(DataWarning):
        pick(np.tile(X[:6], (5, 1)), 12)
    huge = pick(X, 5, test_weights=np.full(60, 1e308))
    assert np.array_equal(huge.indices, pick(X, 5).indices)


@pytest.mark.parametrize(
    "change",
    [
        {"k": 0},
        {"k": 61},
        {"k": 59, "labelled": [1, 2]},
        {"k": 5, "labelled": np.arange(60) % 2},
        {"k": 5, "candidates": [1] * 60},
        {"k": None},
        {"k": None, "budget": 3.0},
        {"costs": np.ones(60)},
        {"costs": np.ones(59), "budget": 3.0},
        {"costs": -np.ones(60), "budget": 3.0},
        {"costs": np.ones(60), "budget": 0.5},
        {"costs": np.ones(60), "budget": -1.0},
        {"labelled": [60]},
        {"labelled": [-1]},
        {"labelled": [0.5]},
        {"labelled": range(60)},
        {"candidates": []},
        {"x_test": np.ones((4, 2))},
        {"x_labelled": np.ones(3)},
        {"test_weights": np.ones(3)},
        {"test_weights": np.zeros(60)},
        {"costs": ["a"] * 60, "budget": 3.0},
        {"seed": -1},
        {"random_state": -1},
        {"seed": 0, "random_state": 4},
        {"test_weights": np.ones(60), "criterion": "mi"},
        {"noise": -1e-6},
        {"criterion": "entropy"},
        {"greedy": "eager"},
        {"storage": "float16"},
        {"thin": 0},
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_be_done_is_refused_clearly(change) -> None:
    with refused(PoolError):
        pick(X, **{"k": 5, **change})


@pytest.mark.parametrize(
    "x",
    [
        np.array([[1.0, np.nan], [np.inf, 2.0]]),
        np.array([["a", "b"]]),
        np.array([[1j, 2.0]]),
        np.ones(5),
        [[1.0, 2.0], [3.0]],
        np.ones((0, 3)),
        np.ones((3, 0)),
        np.full((4, 2), 1e200),
    ],
    ids=lambda value: str(value)[:30],
)
def test_inputs_that_are_no_pool(x) -> None:
    with refused(PoolError):
        pick(x, 1, scale=None)


def test_a_run_that_would_not_fit_is_refused_before_it_starts(monkeypatch) -> None:
    monkeypatch.setattr(plan_room, "available_memory", lambda: 1_110_000_000)
    x = np.zeros((2000, 2))
    x[:, 0] = np.arange(2000)
    with refused(MemoryPlanError):
        pick(x, 5, storage="float64")
    with pytest.raises(MemoryError):
        pick(x, 5, storage="float64")
    assert pick(x, 5).settings["storage"] == "float32"
    assert evgp.plan((2000, 2), 5, storage="float32").fits  # as advised
    monkeypatch.setattr(plan_room, "available_memory", lambda: 1_098_000_000)
    with refused(MemoryPlanError):
        pick(x, 5, method="dense")
    assert not evgp.plan((2000, 2), 5, storage="float32", method="dense").fits
    assert evgp.plan((2000, 2), 5, storage="float32", thin=1000, method="dense").fits
    monkeypatch.setattr(plan_room, "available_memory", lambda: 10_000_000)
    with refused(MemoryPlanError):
        pick(x, 5)


@pytest.mark.parametrize(
    ("name", "most", "plain"), [("kin8nm", 0.1748, 0.17781), ("optdigits", 0.2310, 0.23395)]
)
def test_the_figures_to_reach(name, most, plain, half) -> None:
    x = standard(half(name))  # the figures are of pools whose constant columns stay, as zeros
    selection = pick(x, 100, scale=None, final=True)
    exact = pick(x, 100, scale=None)
    assert selection.variance_left[-1] <= most
    assert exact.variance_left[-1] == pytest.approx(plain, abs=6e-6)
    assert selection.variance_left[-1] == pytest.approx(left(x, selection.indices), rel=1e-6)
    assert selection.certificate.share[-1] > 0.85


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("name", ["kin8nm", "optdigits"])
def test_exchange_saves_one_percent_on_any_half(name, seed, half) -> None:
    x = standard(half(name, seed))  # constant columns stay, as zeros
    result, exact = (pick(x, 100, greedy=greedy, scale=None) for greedy in ("exchange", "exact"))
    assert result.variance_left[-1] <= 0.99 * exact.variance_left[-1]


def test_a_selection_shows_the_columns_of_the_pool_it_was_picked_from(tmp_path) -> None:
    frame = pd.DataFrame({"age": np.arange(20.0) ** 1.5, "kind": list("abcd") * 5})
    picks = evgp.pick(frame, 4)
    assert picks.pool is frame
    assert picks.to_frame()["kind"].tolist() == frame["kind"].iloc[picks].tolist()
    assert picks[:2].to_frame()["age"].tolist() == frame["age"].iloc[picks[:2]].tolist()
    picks.report(tmp_path / "report.html")
    assert "kind" in (tmp_path / "report.html").read_text()
    frame.to_csv(tmp_path / "pool.csv", index=False)
    again = evgp.pick(tmp_path / "pool.csv", 4)
    assert again.to_frame()["kind"].tolist() == picks.to_frame()["kind"].tolist()
    assert list(evgp.pick(frame[["age"]].to_numpy(), 2).to_frame()) == [
        "rank", "row", "gain", "variance_left",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_a_selection_keeps_the_rows_of_its_picks_but_not_the_pool(kind, tmp_path) -> None:
    frame = kind({"age": np.arange(20.0) ** 1.5})
    picks = evgp.pick(frame, 3)
    shown = picks.to_frame(frame)
    copy = pickle.loads(pickle.dumps(picks))
    assert copy == picks and copy.to_frame().equals(shown)
    del frame
    gc.collect()
    assert picks.pool is None and picks.to_frame().equals(shown)
    assert picks[1:].to_frame()["age"].tolist() == shown["age"].tolist()[1:]
    picks.save(tmp_path / "picks.json")
    assert "age" not in evgp.Selection.load(tmp_path / "picks.json").to_frame()
    with refused(PoolError):
        picks.report("report.html")
