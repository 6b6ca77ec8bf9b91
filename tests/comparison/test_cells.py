"""Cells: how long a run will take, by the finished cells that are most similar; and names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evgp.comparison import play_cell
from evgp.comparison.cells import Cell, function_named, seconds_left
from evgp.comparison.run import WORK


def cell(dataset="x", strategy="evgp", seed=0) -> Cell:
    return Cell("a:b", {"dataset": dataset, "strategy": strategy, "seed": seed})


def test_nothing_is_known_before_the_first_cell() -> None:
    assert seconds_left([], [], [cell()], 2) is None
    assert seconds_left([], [], [], 2) == 0.0


def test_a_cell_costs_what_its_like_did() -> None:
    now = [(cell(), 10.0), (cell("x", "badge"), 100.0), (cell("y"), 1000.0)]
    for left, want in (
        (cell(seed=1), 10.0),
        (cell("x", "badge", 1), 100.0),
        (cell("y", "badge"), 1000.0),
        (cell("x", "mlmoc"), 55.0),
        (cell("z"), 370.0),
        (Cell("c:d", {}), 370.0),
    ):
        assert seconds_left(now, [], [left], 1) == want


def test_this_run_goes_before_others() -> None:
    assert seconds_left([(cell(), 10.0)], [(cell(seed=1), 90.0)], [cell(seed=2)], 1) == 10.0
    assert seconds_left([(cell("y"), 10.0)], [(cell(seed=1), 90.0)], [cell(seed=2)], 1) == 90.0


def test_processes_share_the_work_but_not_a_cell() -> None:
    now = [(cell(), 10.0), (cell("y"), 60.0)]
    assert seconds_left(now, [], [cell(seed=s) for s in range(1, 9)], 2) == 40.0
    assert seconds_left(now, [], [cell(seed=1), cell("y", seed=1)], 2) == 60.0
    assert seconds_left(now, [], [cell(seed=1)], 8) == 10.0


@given(st.lists(st.floats(0.1, 1e4), min_size=1, max_size=8), st.integers(1, 20), st.integers(1, 9))
def test_alike_cells_take_their_mean_over_the_processes(took, left, processes) -> None:
    now = [(cell(seed=seed), seconds) for seed, seconds in enumerate(took)]
    mean = sum(took) / len(took)
    actual = seconds_left(now, [], [cell(seed=100 + seed) for seed in range(left)], processes)
    assert actual == pytest.approx(mean * left / min(left, processes))


def test_the_recorded_name_of_a_comparison_is_frozen() -> None:
    assert WORK == "evgp.arena:play_cell"
    assert function_named(WORK) is play_cell
