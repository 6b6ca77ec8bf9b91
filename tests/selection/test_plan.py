"""What a run will take."""

import subprocess
import sys
from importlib import import_module
from inspect import signature

import numpy as np
import pytest

import evgp
from evgp._errors import PoolError

room = import_module("evgp.selection.plan")


def test_a_plan_says_memory_time_and_choice() -> None:
    made = evgp.plan((1000, 8), 20)
    assert made.fits and made.greedy == "Exchange(passes=20)" and made.storage == "float64"
    assert 1000 * 1000 * 8 < made.memory < 1e9 and made.seconds > 0
    assert "1,000 rows x 8 features" in str(made) and "fits" in str(made)


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
    told = evgp.plan((35_000, 10), 10, storage="float64")
    assert not told.fits and "float32 storage would take" in told.advice.lower()
    assert evgp.plan((300_000, 10), 10, thin=2000).fits


def test_the_choice_of_greedy_depends_on_sizes_alone() -> None:
    assert evgp.plan((10_000, 3), 400).greedy.startswith("Exchange")
    assert evgp.plan((10_000, 3), 2000).greedy == "Exact()"
    assert evgp.plan((1000, 3), 10, criterion="p90").greedy == "Exact()"
    assert evgp.plan((5000, 3), 10, criterion="mi").test_points == 1000


def test_sizes_below_one_are_refused() -> None:
    with pytest.raises(PoolError, match="rows as an integer from 1, got 0"):
        evgp.plan((0, 3), 1)
    with pytest.raises(
        PoolError, match="k as an integer from 1 to 10, the rows that may be picked; got 0"
    ):
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
    with pytest.warns(DeprecationWarning, match=r"is now plan\(\(1000, 8\), 20\)"):
        made = evgp.plan(1000, 8, 20, m=50, labelled=3)
    assert (made.rows, made.k, made.test_points, made.request.sizes.labelled) == (1000, 20, 50, 3)


def test_a_plan_runs_as_it_says() -> None:
    x = np.random.default_rng(0).normal(size=(60, 3))
    asked = {"candidates": np.arange(40), "labelled": [1, 2], "greedy": "exact"}
    made = evgp.plan(x, 4, **asked)
    assert made.run().indices.tolist() == evgp.pick(x, 4, **asked).indices.tolist()
    assert made.run().settings["greedy"] == made.greedy == "Exact()"


def test_what_ran_is_what_is_recorded() -> None:
    """The search is decided once, by the candidates that there are."""
    x = np.random.default_rng(0).normal(size=(50_000, 3))
    made = evgp.plan(x, 400, x_test=x[:1000], candidates=np.arange(1000))
    assert made.greedy == "Exchange(passes=20)"
    assert evgp.plan(x, 400, x_test=x[:1000]).greedy == "Exact()"


def test_a_plan_of_a_shape_cannot_run() -> None:
    with pytest.raises(PoolError, match="got their shape alone"):
        evgp.plan((100, 3), 2).run()


def test_every_door_has_the_same_arguments() -> None:
    assert str(signature(evgp.pick)).split(" -> ")[0] == str(signature(evgp.plan)).split(" -> ")[0]
    assert "storage: str = 'auto'" in str(signature(evgp.pick))
