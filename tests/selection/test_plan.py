"""What a run will take."""

import subprocess
import sys
from importlib import import_module
from inspect import signature

import numpy as np
import pytest

import evgp
from evgp.errors import DataWarning, PoolError
from tests.messages import refused, warned

room = import_module("evgp.selection.plan")


def test_a_plan_says_memory_time_and_choice() -> None:
    plan = evgp.plan((1000, 8), 20)
    assert plan.fits and plan.greedy == "Exact()" and plan.storage == "float64"
    assert 1000 * 1000 * 8 < plan.memory < 1e9 and plan.seconds > 0
    assert "1,000 rows x 8 features" in str(plan) and "fits" in str(plan)


def test_storage_falls_back_to_float32_and_then_to_advice(monkeypatch) -> None:
    monkeypatch.setattr(room, "available_memory", lambda: int(8e9))
    assert evgp.plan((25_000, 10), 10).storage == "float64"
    assert evgp.plan((35_000, 10), 10).storage == "float32"
    large = evgp.plan((300_000, 10), 10)
    assert (
        large.fits
        and large.method == "features"
        and large.kind == "nystrom-512"
        and "nystrom-512" in str(large)
    )
    huge = evgp.plan((300_000, 10), 10, criterion="p90")  # which needs the matrix
    assert not huge.fits and huge.method == "dense" and "thin=" in str(huge)
    assert evgp.plan((1000, 10), 10).method == "dense"
    assert evgp.plan((1000, 10), 10, features="sketch-64").kind == "sketch-64"
    plan = evgp.plan((35_000, 10), 10, storage="float64")
    assert not plan.fits and "float32 storage would take" in plan.advice.lower()
    assert evgp.plan((300_000, 10), 10, thin=2000).fits


def test_lists_are_nested_unless_they_are_final() -> None:
    for k in (400, 2000):
        assert evgp.plan((10_000, 3), k).greedy == "Exact()"
        assert evgp.plan((10_000, 3), k, final=True).greedy == "Exchange(passes=20)"
    assert evgp.plan((1000, 3), 10, criterion="p90").greedy == "Exact()"
    assert evgp.plan((1000, 3), 10, criterion="cells").greedy.startswith("OnePerCell")
    assert evgp.plan((5000, 3), 10, criterion="mi").test_points == 1000


def test_sizes_below_one_are_refused() -> None:
    with refused(PoolError):
        evgp.plan((0, 3), 1)
    with refused(PoolError):
        evgp.plan((10, 3), 0)


@pytest.mark.slow
@pytest.mark.parametrize("storage", ["float64", "float32"])
def test_the_plan_is_not_below_what_a_run_takes(storage) -> None:
    """Peak resident memory of a fresh process, with all that it imports."""
    code = f"""
import numpy as np, evgp
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if "VmHWM" in line)
x = np.random.default_rng(0).normal(size=(6000, 20))
evgp.pick(x, 60, storage={storage!r})
print(peak() * 1024)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    used, planned = int(done.stdout), evgp.plan((6000, 20), 60, storage=storage).memory
    assert used <= 1.3 * planned and planned <= 2.5 * used  # allocators differ from run to run


def test_the_sizes_first_still_plan_with_a_note() -> None:
    with warned(DeprecationWarning):
        plan = evgp.plan(1000, 8, 20, m=50, labelled=3)
    assert (plan.rows, plan.k, plan.test_points, plan.request.sizes.labelled) == (1000, 20, 50, 3)


def test_a_plan_runs_as_it_says() -> None:
    x = np.random.default_rng(0).normal(size=(60, 3))
    asked = {"candidates": np.arange(40), "labelled": [1, 2], "greedy": "exact"}
    plan = evgp.plan(x, 4, **asked)
    assert plan.run().indices.tolist() == evgp.pick(x, 4, **asked).indices.tolist()
    assert plan.run().settings["greedy"] == plan.greedy == "Exact()"


def test_what_ran_is_what_is_recorded() -> None:
    """The search is decided once."""
    x = np.random.default_rng(0).normal(size=(5_000, 3))
    for options in ({}, {"final": True}, {"greedy": "lazy"}, {"method": "sharded"}):
        plan = evgp.plan(x, 6, x_test=x[:100], candidates=np.arange(100), **options)
        assert plan.run().settings["greedy"] == plan.greedy


def test_a_shorter_list_begins_a_longer_one_in_memory_and_in_shards() -> None:
    x = np.random.default_rng(0).normal(size=(300, 3))
    for options in ({}, {"method": "features"}, {"method": "sharded", "features": "nystrom-200"}):
        whole = evgp.pick(x, 12, **options).indices
        for k in (1, 5, 11):
            assert evgp.pick(x, k, **options).indices.tolist() == whole[:k].tolist()
    inside, outside = (
        evgp.pick(x, 12, features="nystrom-200", method=method)
        for method in ("features", "sharded")
    )
    assert inside.indices.tolist() == outside.indices.tolist()


def test_a_final_list_says_what_exchanging_gained() -> None:
    x = np.random.default_rng(0).normal(size=(200, 3))
    plain, final = evgp.pick(x, 10), evgp.pick(x, 10, final=True)
    gained = 1 - final.variance_left[-1] / plain.variance_left[-1]
    assert 0 < gained == pytest.approx(final.settings["final_gain"], rel=1e-6)
    assert "final_gain" not in plain.settings


@pytest.mark.parametrize(
    "options", [{"greedy": "lazy"}, {"method": "sharded"}, {"criterion": "p90"}], ids=str
)
def test_what_cannot_be_exchanged_is_reported(options) -> None:
    with refused(PoolError):
        evgp.plan(np.random.default_rng(0).normal(size=(50, 3)), 4, final=True, **options)


def test_the_rank_of_features_follows_k(monkeypatch) -> None:
    monkeypatch.setattr(room, "available_memory", lambda: int(8e9))
    assert evgp.plan((300_000, 10), 200).kind == "nystrom-512"
    assert evgp.plan((300_000, 10), 900).kind == "nystrom-2048"
    # Where memory is short, half as many, but no fewer than there are picks.
    least = evgp.plan((300_000, 10), 900, memory="1.9GB", method="features")
    assert least.kind == "nystrom-1024"
    tiny = evgp.plan((300_000, 10), 900, memory="1.2GB")
    assert tiny.method == "sharded" and tiny.backend.width >= 900


def test_many_picks_of_few_features_are_warned_of() -> None:
    x = np.random.default_rng(0).normal(size=(300, 3))
    with warned(DataWarning):
        evgp.pick(x, 20, features="nystrom-32")


def test_a_plan_of_a_shape_cannot_run() -> None:
    with refused(PoolError):
        evgp.plan((100, 3), 2).run()


def test_every_door_has_the_same_arguments() -> None:
    assert str(signature(evgp.pick)).split(" -> ")[0] == str(signature(evgp.plan)).split(" -> ")[0]
    assert "storage: str = 'auto'" in str(signature(evgp.pick))


def test_features_replace_an_exact_kernel_that_fits_but_takes_minutes(monkeypatch) -> None:
    monkeypatch.setattr(room, "available_memory", lambda: int(64e9))
    plan = evgp.plan((50_000, 384), 500)
    assert (plan.method, plan.kind) == ("features", "nystrom-1024")
    assert plan.times > 8 and "method='dense'" in plan.why and plan.facts()["why"] == plan.why
    assert "times as long as nystrom-1024 features" in str(plan)
    assert "times as long" in plan._repr_html_()
    # Its speed is that of a fixed machine, so that picks do not depend on this one.
    backends = import_module("evgp.selection.backends")
    monkeypatch.setattr(backends, "speed", lambda: (1e15, 1e15))
    assert evgp.plan((50_000, 384), 500).times == plan.times


@pytest.mark.parametrize(
    "options",
    [
        {"method": "dense"},
        {"criterion": "p90"},
        {"thin": 30_000},
        {"k": 5_000},  # more than features of the largest rank know of
        {"labelled": range(5_000)},
        {"memory": "12.5GB", "storage": "float32", "k": 2_000, "x_test": (1_000, 384)},
    ],
    ids=lambda options: next(iter(options)),
)
def test_the_exact_kernel_stays_where_features_cannot_replace_it(monkeypatch, options) -> None:
    monkeypatch.setattr(room, "available_memory", lambda: int(64e9))
    plan = evgp.plan((50_000, 384), **({"k": 500} | options))
    assert plan.method == "dense" and not plan.times and not plan.why


def test_small_pools_have_the_exact_kernel(monkeypatch) -> None:
    monkeypatch.setattr(room, "available_memory", lambda: int(64e9))
    for rows, columns, k in ((10_000, 50, 100), (10_000, 384, 500), (20_000, 384, 100)):
        assert evgp.plan((rows, columns), k).method == "dense"


def test_picks_of_features_that_were_chosen_for_speed_say_so(monkeypatch) -> None:
    x = np.random.default_rng(0).normal(size=(1_500, 40))
    monkeypatch.setattr(room, "_LONG", 0.0)
    monkeypatch.setattr(room, "_TIMES", 0.0)
    with warned(DataWarning, hide=r"about \d+ times"):
        picks = evgp.pick(x, 5)
    assert picks.settings["kernel_features"] == "nystrom-512"
    np.testing.assert_array_equal(picks.indices, evgp.pick(x, 5, features="nystrom-512").indices)


def test_only_candidates_count_for_the_matrix() -> None:
    x = np.random.default_rng(0).normal(size=(3_000, 4))
    every, few = (evgp.plan(x, 10, x_test=x[:500], candidates=rows) for rows in (None, range(100)))
    assert every.memory - few.memory >= 2_900 * 500 * 8
    tight = (every.memory + few.memory) // 2
    assert evgp.plan(x, 10, x_test=x[:500], candidates=range(100), memory=tight).method == "dense"
    # Where the pool itself is the test set, test points have a matrix of their own.
    own = evgp.plan(x, 10)
    most = evgp.plan(x, 10, candidates=range(2_900))
    assert most.memory > own.memory
