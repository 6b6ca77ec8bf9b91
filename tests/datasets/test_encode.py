"""Columns become numbers as in the pool, and what looks odd is reported."""

import datetime as dt
import warnings
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evgp.datasets import Encoder, Table
from evgp.errors import DatasetError, DataWarning
from tests.conftest import examples
from tests.messages import refused, warned


def table(source: str = "pool.csv", **columns: object) -> Table:
    return Table(pa.table(columns), source)


POOL = table(size=[1.0, 2.0, 4.0, 5.0], kind=["a", "b", "a", "a"])

numbers = arrays(
    np.float64,
    st.tuples(st.integers(2, 30), st.integers(1, 4)),
    elements=st.floats(allow_nan=False, allow_infinity=False, width=64),
)
words = st.lists(st.sampled_from(["red", "green", "blue", ""]), min_size=5, max_size=30)


@settings(deadline=None, max_examples=examples(60))
@given(x=numbers)
def test_numbers_get_mean_zero_and_unit_standard_deviation(x: np.ndarray) -> None:
    # Whatever their size: the smallest and the largest floats included.
    with np.errstate(over="ignore"):
        scaled = x / np.maximum(np.abs(x).max(axis=0), np.finfo(float).tiny)
    assume((np.ptp(scaled, axis=0) > 1e-6).any())
    encoder = Encoder.fit(
        table(**{f"x{j}": column for j, column in enumerate(x.T)}), scale="columns"
    )
    wide = [j for j, column in enumerate(encoder.columns) if column.std > 1e-6]
    z = encoder.transform(table(**{f"x{j}": column for j, column in enumerate(x.T)}))[:, wide]
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(z.std(axis=0), 1, atol=1e-9)


@settings(deadline=None, max_examples=examples(30))
@given(kinds=words, seed=st.integers(0, 100))
def test_shuffled_rows_give_shuffled_features(kinds: list[str], seed: int) -> None:
    assume(1 < len(set(kinds)))
    random = np.random.default_rng(seed)
    rows = random.permutation(len(kinds))
    pool = table(size=random.normal(size=len(kinds)), kind=kinds)
    shuffled = Table(pool.data.take(rows), "pool.csv")
    encoder = Encoder.fit(pool)
    np.testing.assert_array_equal(encoder.transform(pool)[rows], encoder.transform(shuffled))
    again = Encoder.fit(shuffled)
    assert again.names == encoder.names
    np.testing.assert_allclose(again.transform(shuffled), encoder.transform(shuffled), atol=1e-12)


@settings(deadline=None, max_examples=examples(30))
@given(kinds=words)
def test_one_hot_rows_sum_to_one(kinds: list[str]) -> None:
    assume(1 < len(set(kinds)))
    pool = table(kind=kinds)
    x = Encoder.fit(pool).transform(pool)
    assert set(np.unique(x)) == {0.0, 1.0}
    np.testing.assert_array_equal(x.sum(axis=1), 1.0)


def test_without_standardise_numbers_stay() -> None:
    pool = table(a=[1.0, 2.0], b=[7, 7])
    np.testing.assert_array_equal(Encoder.fit(pool, scale=None).transform(pool), [[1, 7], [2, 7]])


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([1, 2, 4], pa.int8()),
        pa.array([1, 2, 4], pa.uint64()),
        pa.array(np.array([1, 2, 4], np.float16)),
        pa.array([Decimal(1), Decimal(2), Decimal(4)]),
        pa.array([dt.date(1970, 1, 2), dt.date(1970, 1, 3), dt.date(1970, 1, 5)]),
        pa.array([1, 2, 4], pa.timestamp("ns", tz="Europe/Berlin")),
        pa.array([1, 2, 4], pa.duration("ms")),
        pa.array([1, 2, 4], pa.time32("s")),
    ],
    ids=lambda cells: str(cells.type),
)
def test_every_kind_of_number_is_scaled_alike(cells: pa.Array) -> None:
    pool = table(a=cells)
    expected = Encoder.fit(table(a=[1.0, 2.0, 4.0])).transform(table(a=[1.0, 2.0, 4.0]))
    np.testing.assert_allclose(Encoder.fit(pool).transform(pool), expected, atol=1e-7)


@pytest.mark.parametrize(
    "cells",
    [
        pa.array(["a", "b", "a"]),
        pa.array(["a", "b", "a"], pa.large_string()),
        pa.array(["a", "b", "a"], pa.string_view()),
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.array([7, 8, 7]).dictionary_encode(),
        pa.array([False, True, False]),
    ],
    ids=lambda cells: str(cells.type)[:20],
)
def test_every_kind_of_word_is_one_hot(cells: pa.Array) -> None:
    pool = table(a=cells)
    np.testing.assert_array_equal(Encoder.fit(pool).transform(pool), [[1, 0], [0, 1], [1, 0]])


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([[[1.0]], [[2.0]]]),
        pa.array([{"x": 1}, {"x": 2}]),
        pa.array([b"a", b"b"]),
        pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())),
    ],
    ids=lambda cells: str(cells.type)[:10],
)
def test_nested_and_binary_columns_are_refused_by_name(cells: pa.Array) -> None:
    with refused(DatasetError):
        Encoder.fit(table(odd=cells, a=[1, 2]))
    assert Encoder.fit(table(odd=cells, a=[1, 2]), drop=["odd"]).names == ("a",)


def test_missing_values_are_named_with_column_count_and_rows() -> None:
    pool = table(
        a=[1.0, None, float("nan"), 2.0, None],
        b=[1.0, float("inf"), 2.0, -float("inf"), 3.0],
        c=["x", None, "y", "x", "y"],
    )
    with pytest.raises(DatasetError) as caught:
        Encoder.fit(pool)
    assert str(caught.value) == (
        "pool.csv: expected a value in each cell, got 3 missing or NaN in column 'a' (rows 1, 2, 4)"
        "; 2 infinite in column 'b' (rows 1, 3); 1 missing in column 'c' (row 1, counting from 0)"
        "; fill them in, or use impute=True"
    )


def test_many_missing_values_are_reported_in_one_line() -> None:
    with refused(DatasetError):
        Encoder.fit(table(**{f"x{j}": [None, 1.0] for j in range(12)}))


def test_missing_values_are_filled_on_request() -> None:
    pool = table(a=[1.0, None, 3.0, float("inf"), 5.0], c=["x", None, "y", "x", "y"], d=[None] * 5)
    encoder = Encoder.fit(pool, impute=True)
    assert encoder.notes[0].startswith("filled 8 cells with the pool's mean or most frequent value")
    with warned(DataWarning):
        x = encoder.transform(table(a=[3.0, None], c=["x", None], d=[None, 1]))
    np.testing.assert_array_equal(x[0], x[1])


def test_constant_columns_are_dropped_and_reported() -> None:
    encoder = Encoder.fit(table(a=[1, 2], b=[3, 3], c=["x", "x"], d=[1.0, 1.0 + 2**-52]))
    assert encoder.names == ("a",)
    assert "dropped 3 constant columns ('b', 'c', 'd')" in encoder.notes


def test_nothing_left_is_an_error() -> None:
    with refused(DatasetError):
        Encoder.fit(table(a=[1, 1], b=[1, 2]), drop=["b"])


def test_one_row_is_an_error() -> None:
    with refused(DatasetError):
        Encoder.fit(table(a=[1]))


def test_unknown_names_are_an_error() -> None:
    with refused(DatasetError):
        Encoder.fit(POOL, id="key")
    with refused(DatasetError):
        Encoder.fit(POOL, drop=["key"])


def test_too_many_categories_are_refused() -> None:
    kinds = [f"k{j % 60}" for j in range(120)]
    with refused(DatasetError):
        Encoder.fit(table(kind=kinds))
    assert len(Encoder.fit(table(kind=kinds), max_categories=60).names) == 60


def test_a_column_of_names_is_no_category() -> None:
    with refused(DatasetError):
        Encoder.fit(table(name=["ann", "bob", "cy", "di"], a=[1, 2, 3, 4]))
    assert Encoder.fit(table(name=["ann", "bob"], a=[1, 2]), id="name").names == ("a",)


def test_numbers_that_are_not_quite_get_a_hint() -> None:
    with refused(DatasetError):
        Encoder.fit(table(age=["31", "?", "44", "58"]))
    with refused(DatasetError):
        Encoder.fit(table(age=["3,1", "4,4", "5,8"]))
    encoder = Encoder.fit(table(age=["31", "?", "44", "44"]))
    assert "but '?' is not (taken as 3 categories)" in encoder.notes[0]


@pytest.mark.parametrize(
    ("name", "cells", "said"),
    [
        ("seen", list(range(100, 112)), "'seen': a different integer in each row"),
        ("customer_id", [1, 1, 2, 2], "named like an id"),
        ("uuid", ["a", "b", "a", "b"], "named like an id"),
        ("Unnamed: 0", [1, 1, 2, 2], "named like an id"),
        ("Label", [0, 1, 0, 1], "named like the label"),
        ("y", [0.5, 1.5, 0.5, 1.5], "named like the label"),
        ("species_class", ["a", "b", "a", "b"], "named like the label"),
        ("big", [1e30, 1.0, 2.0, 3.0], "possible outliers: column 'big' row 0: 1e+30"),
        ("far", [50.0] + [0.0, 1.0] * 1000, "possible outliers: column 'far' row 0: 50"),
        ("when", [dt.date(2020, 1, day) for day in (1, 2, 3, 3)], "holds times, taken as seconds"),
    ],
)
def test_odd_columns_are_noted(name: str, cells: list[object], said: str) -> None:
    notes = Encoder.fit(table(**{name: cells})).notes
    assert any(said in note for note in notes), notes


@pytest.mark.parametrize("name", ["width", "yield", "classy", "paid", "identity", "keyboard"])
def test_plain_columns_are_not_noted(name: str) -> None:
    assert Encoder.fit(table(**{name: [0.5, 1.5, 2.5]})).notes == ()


def test_copies_are_counted() -> None:
    encoder = Encoder.fit(table(a=[1, 2, 1, 1], b=["x", "y", "x", "y"]))
    assert encoder.notes == ("1 of 4 rows is a copy of another",)
    x = np.random.default_rng(0).integers(0, 2, size=(500, 10)).astype(float)
    copied = 500 - len(np.unique(x, axis=0))
    assert 50 < copied < 450
    encoder = Encoder.fit(table(**{f"x{j}": x[:, j] for j in range(10)}))
    assert encoder.notes == (f"{copied} of 500 rows are copies of others",)


def test_another_table_is_matched_by_name_with_the_pools_scaling() -> None:
    encoder = Encoder.fit(POOL)
    x = encoder.transform(table("test.csv", kind=["b", "a"], size=[3, 5]))
    np.testing.assert_allclose(x, [[0, 0, 1], [2 / np.sqrt(2.5), 1, 0]])


def test_missing_columns_are_named() -> None:
    with refused(DatasetError):
        Encoder.fit(POOL).transform(table("test.csv", size=[1.0]))


def test_unknown_words_count_as_none_and_are_reported() -> None:
    with warned(DataWarning):
        x = Encoder.fit(POOL).transform(table("test.csv", size=[3.0, 3, 3], kind=["z", "a", "y"]))
    np.testing.assert_array_equal(x[:, 1:], [[0, 0], [1, 0], [0, 0]])


def test_extra_columns_are_ignored_and_reported() -> None:
    encoder = Encoder.fit(table(a=[1, 2], b=[3, 3], key=[1, 2]), id="key")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder.transform(table("test.csv", a=[1], b=[9], key=[1]))
    with warned(DataWarning):
        encoder.transform(table("test.csv", a=[1], more=[2]))


def test_another_kind_of_column_is_refused() -> None:
    encoder = Encoder.fit(POOL)
    with refused(DatasetError):
        encoder.transform(table("test.csv", size=["x"], kind=["a"]))
    with refused(DatasetError):
        encoder.transform(table("test.csv", size=[1], kind=[[1]]))
    with refused(DatasetError):
        encoder.transform(table("pool.csv", size=[None], kind=["a"]))


def test_a_column_without_a_name_is_a_plain_one() -> None:
    encoder = Encoder.fit(Table(pa.table({"": [1, 3, 3, 1], "a": [1, 2, 3, 4]}), "pool.parquet"))
    assert encoder.names == ("", "a")
