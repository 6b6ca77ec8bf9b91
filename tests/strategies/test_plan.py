"""What a run will take."""

import subprocess
import sys
from importlib import import_module

import pytest

import evgp
from evgp._errors import PoolError

room = import_module("evgp.strategies.plan")


def test_a_plan_says_memory_time_and_choice() -> None:
    made = evgp.plan(1000, 8, 20)
    assert made.fits and made.greedy == "Exchange(passes=20)" and made.storage == "float64"
    assert 1000 * 1000 * 8 < made.memory < 1e9 and made.seconds > 0
    assert "1,000 rows x 8 features" in str(made) and "fits" in str(made)


def test_storage_falls_back_to_float32_and_then_to_advice(monkeypatch) -> None:
    monkeypatch.setattr(room, "available_memory", lambda: int(8e9))
    assert evgp.plan(25_000, 10, 10).storage == "float64"
    assert evgp.plan(35_000, 10, 10).storage == "float32"
    large = evgp.plan(300_000, 10, 10)
    assert (
        large.fits
        and large.method == "features"
        and large.kind == "nystrom-512"
        and "nystrom-512" in str(large)
    )
    huge = evgp.plan(300_000, 10, 10, criterion="p90")  # which needs the matrix
    assert not huge.fits and huge.method == "dense" and "thin=" in str(huge)
    assert evgp.plan(1000, 10, 10).method == "dense"
    assert evgp.plan(1000, 10, 10, features="sketch-64").kind == "sketch-64"
    told = evgp.plan(35_000, 10, 10, storage="float64")
    assert not told.fits and "float32 storage would take" in told.advice.lower()
    assert evgp.plan(300_000, 10, 10, thin=2000).fits


def test_the_choice_of_greedy_depends_on_sizes_alone() -> None:
    assert evgp.plan(10_000, 3, 400).greedy.startswith("Exchange")
    assert evgp.plan(10_000, 3, 2000).greedy == "Exact()"
    assert evgp.plan(1000, 3, 10, criterion="p90").greedy == "Exact()"
    assert evgp.plan(5000, 3, 10, criterion="mi").test_points == 1000


def test_sizes_below_one_are_refused() -> None:
    with pytest.raises(PoolError, match="k >= 1, got 0"):
        evgp.plan(10, 3, 0)


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
    used, planned = int(done.stdout), evgp.plan(6000, 20, 60, storage=storage).memory
    assert used <= 1.3 * planned and planned <= 2.5 * used  # allocators differ from run to run
