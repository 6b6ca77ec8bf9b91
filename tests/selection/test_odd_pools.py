"""Odd pools with the default scaling: a sensible pick, or a clear sentence."""

import numpy as np
import pandas as pd
import pytest

import evgp
from evgp import read_pool
from evgp.errors import DataWarning, EvgpError
from tests.messages import refused, warned


def _normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def _grouped(small: int, large: int, factor: float) -> np.ndarray:
    """Columns of two groups; those of the second are larger by a factor."""
    return np.hstack([_normal(60, small), factor * _normal(60, large, seed=1)])


POOLS = {
    "one column": _normal(60, 1),
    "one column that varies": np.hstack([np.full((60, 9), 3.0), _normal(60, 1)]),
    "a column of 1e300": np.hstack([_normal(60, 3), 1e300 * _normal(60, 1)]),
    "a column of 1e-300": np.hstack([_normal(60, 3), 1e-300 * _normal(60, 1)]),
    "few and many columns": _grouped(2, 100, 1.0),
    "few large and many small columns": _grouped(100, 2, 1e6),
    "few small and many large columns": _grouped(2, 100, 1e6),
    "two groups of equal size": _grouped(20, 20, 1e9),
}


@pytest.mark.parametrize("criterion", ["ev", "cells"])
@pytest.mark.parametrize("pool", POOLS.values(), ids=list(POOLS))
def test_picks_differ_and_lower_the_variance(pool, criterion) -> None:
    picked = evgp.pick(pool, 8, criterion=criterion)
    left = picked.variance_left
    assert len(set(picked.indices.tolist())) == 8
    assert np.isfinite(left).all() and left[-1] < 0.8 * picked.prior_variance


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_a_group_of_larger_columns_does_not_decide_alone(factor) -> None:
    """Outliers in the smaller group count as well as those in the larger one."""
    x = 0.01 * _normal(80, 8)
    x[:10, :4] += 5 * _normal(10, 4, seed=2)  # outliers in the first group
    x[10:20, 4:] += 5 * _normal(10, 4, seed=3)  # outliers in the second
    x[:, 4:] *= factor
    picked = set(evgp.pick(x, 10).indices.tolist())
    assert len(picked & set(range(10))) >= 3 and len(picked & set(range(10, 20))) >= 3


def test_the_scale_of_all_columns_together_changes_no_pick() -> None:
    x = _normal(60, 5)
    plain, large = evgp.pick(x, 8), evgp.pick(2.0**40 * x, 8)
    assert plain.indices.tolist() == large.indices.tolist()


@pytest.mark.parametrize("frame", [np.asarray, pd.DataFrame])
@pytest.mark.parametrize("rows", [60, 600])
def test_a_row_that_makes_all_others_look_equal_is_named(rows, frame) -> None:
    x = frame(np.vstack([_normal(rows - 1, 4), np.full((1, 4), 1e12)]))
    with pytest.warns(DataWarning) as caught:
        evgp.pick(x, 8)
    assert any(f"row {rows - 1}: 1e+12" in str(warning.message) for warning in caught)


def test_a_rare_flag_is_no_outlier() -> None:
    assert read_pool(np.hstack([_normal(60, 3), np.eye(60)[:, :1]])).notes == ()


def test_a_pool_of_constant_columns_is_refused() -> None:
    with refused(EvgpError):
        evgp.pick(np.ones((20, 3)), 5)


def test_more_picks_than_half_the_rank_are_warned_of() -> None:
    with warned(DataWarning):
        evgp.pick(_normal(400, 5), 60, features="nystrom-100")


def test_more_cells_than_distinct_rows_are_filled_by_the_expected_variance() -> None:
    x = np.repeat(_normal(6, 3), 10, axis=0)
    with warned(DataWarning):
        picked = evgp.pick(x, 12, criterion="cells")
    assert len(set(picked.indices.tolist())) == 12
    assert {row // 10 for row in picked.indices.tolist()} == set(range(6))
