"""Statistics from parts are those of the whole, to the last digit whatever the parts."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evgp._linalg import in_pairs
from evgp.datasets.scaling import ColumnMoments
from tests.conftest import examples

BLOCK = 8


def blocks(x: np.ndarray, size: int = BLOCK) -> list[ColumnMoments]:
    return [ColumnMoments.of(x[at : at + size].T) for at in range(0, len(x), size)]


def same(one: ColumnMoments, other: ColumnMoments) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in "count exponent mean rest spread low high rising".split()
    )


@example(x=np.array([[-1.7976931348623157e308], [1e292]]), level=0)
@settings(deadline=None, max_examples=examples(150))
@given(
    x=arrays(
        np.float64,
        st.tuples(st.integers(1, 200), st.integers(1, 3)),
        elements=st.floats(allow_nan=False, allow_infinity=False),
    ),
    level=st.integers(0, 4),
)
def test_ranges_of_two_to_the_j_blocks_merge_to_the_same_bits(x: np.ndarray, level: int) -> None:
    parts = blocks(x)
    run = 2**level
    shards = [parts[at : at + run] for at in range(0, len(parts), run)]
    whole = in_pairs(parts, ColumnMoments.merge)
    merged = in_pairs(
        [in_pairs(shard, ColumnMoments.merge) for shard in shards], ColumnMoments.merge
    )
    assert same(whole, merged)
    np.testing.assert_array_equal(whole.low, x.min(axis=0))
    np.testing.assert_array_equal(whole.high, x.max(axis=0))
    np.testing.assert_array_equal(whole.rising, (x[1:] > x[:-1]).all(axis=0))
    # As a direct computation in the same unit, whatever the size of the numbers.
    y = x / np.ldexp(1.0, whole.exponent)
    np.testing.assert_allclose(whole.mean, y.mean(axis=0), rtol=0, atol=1e-14)
    np.testing.assert_allclose(
        np.sqrt(whole.spread / len(x)), y.std(axis=0), rtol=1e-12, atol=1e-14
    )


@settings(deadline=None, max_examples=20)
@given(
    seed=st.integers(0, 1000),
    mean=st.sampled_from([0.0, 1.0, 1e9, -1e12, 1e200]),
    spread=st.sampled_from([1e-3, 1.0, 1e6]),
)
def test_a_small_spread_far_from_zero_keeps_its_digits(
    seed: int, mean: float, spread: float
) -> None:
    x = mean + (max(abs(mean), 1) * 1e-9) * spread * np.random.default_rng(seed).normal(
        size=(20_000, 2)
    )
    got = in_pairs(blocks(x, 512), ColumnMoments.merge)
    unit = np.ldexp(1.0, got.exponent)
    y = x / unit
    middle = y.mean(axis=0)
    middle += (y - middle).mean(axis=0)
    # The second pass in extended precision: the rest of the mean counts too.
    apart = (y - middle).astype(np.longdouble)
    apart -= apart.mean(axis=0)
    expected = np.sqrt((apart**2).mean(axis=0)).astype(float)
    np.testing.assert_allclose(np.sqrt(got.spread / len(x)), expected, rtol=1e-12)
    np.testing.assert_allclose(got.mean, middle, rtol=1e-15, atol=1e-16)


def test_blocks_of_zeros_and_of_the_smallest_floats_merge() -> None:
    x = np.zeros((32, 1))
    x[20] = 5e-324
    got = in_pairs(blocks(x), ColumnMoments.merge)
    assert np.ldexp(1.0, got.exponent)[0] * got.mean[0] == 0.0  # below the smallest float
    np.testing.assert_allclose(got.mean, 1 / 32)
    np.testing.assert_allclose(np.sqrt(got.spread / 32), np.sqrt(31) / 32)


def test_no_rows_change_nothing() -> None:
    x = ColumnMoments.of(np.array([[1.0, 4.0]]))
    none = ColumnMoments.of(np.empty((1, 0)))
    assert same(none.merge(x), x)
    assert same(x.merge(none), x)
    assert none.merge(none).count == 0


def test_numbers_that_are_missing_are_left_out() -> None:
    x = np.random.default_rng(0).normal([0.0, 1e9, -5.0], size=(50, 3))
    x[np.random.default_rng(1).random(x.shape) < 0.4] = np.nan
    x[:, 2] = np.nan
    got = in_pairs(blocks(x), ColumnMoments.merge)
    assert got.count.tolist() == np.isfinite(x).sum(axis=0).tolist()
    mean, std = np.nanmean(x[:, :2], axis=0), np.nanstd(x[:, :2], axis=0)
    np.testing.assert_allclose((np.ldexp(1.0, got.exponent) * got.mean)[:2], mean, rtol=1e-12)
    # Missing values become the mean, which adds rows and no spread.
    share = np.sqrt(got.count[:2] / 50)
    np.testing.assert_allclose(
        (np.ldexp(1.0, got.exponent) * np.sqrt(got.spread / 50))[:2], std * share, rtol=1e-6
    )
    assert got.low[2] > got.high[2] and got.mean[2] == got.spread[2] == 0


def test_the_layout_in_memory_changes_no_bit() -> None:
    x = np.random.default_rng(0).normal(size=(1000, 5))
    first = ColumnMoments.of(np.ascontiguousarray(x.T))
    assert same(first, ColumnMoments.of(x.T)) and same(
        first, ColumnMoments.of(np.asfortranarray(x).T)
    )
