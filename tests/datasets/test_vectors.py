"""A column of lists is the same as its numbers in an array, whatever kind of list it is."""

import warnings
from collections.abc import Callable
from pathlib import Path

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import evgp
from evgp.datasets import Encoder, Table
from evgp.errors import BadArgument, DatasetError, DataWarning, NotNumeric, UnusableColumn
from tests.messages import refused, warned


def lists(x: np.ndarray, kind: pa.DataType | None = None) -> pa.Array:
    return pa.array(list(x), kind)


def matrix_of(rows: int, columns: int, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    return random.normal(size=(rows, columns)) * random.uniform(0.5, 2, size=columns)


KINDS: dict[str, Callable[[int], pa.DataType]] = {
    "list": lambda d: pa.list_(pa.float64()),
    "large": lambda d: pa.large_list(pa.float64()),
    "fixed": lambda d: pa.list_(pa.float64(), d),
}


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=15)
@given(rows=st.integers(4, 40), columns=st.sampled_from([1, 3, 31, 32, 40]), seed=st.integers(0, 9))
def test_a_column_of_lists_is_the_same_as_an_array(
    kind: str, rows: int, columns: int, seed: int
) -> None:
    x = matrix_of(rows, columns, seed)
    data = evgp.read_pool(pa.table({"embedding": lists(x, KINDS[kind](columns))}))
    plain = evgp.read_pool(x)
    np.testing.assert_array_equal(data.in_memory.numpy(), plain.in_memory.numpy())
    assert data.scale == plain.scale
    assert data.features == tuple(f"embedding[{at}]" for at in range(columns))
    np.testing.assert_array_equal(evgp.pick(data, 3).indices, evgp.pick(x, 3).indices)


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 99), chunks=st.integers(1, 5))
def test_the_order_of_rows_and_chunks_change_nothing(seed: int, chunks: int) -> None:
    random = np.random.default_rng(seed)
    x, size = matrix_of(30, 33, seed), random.normal(size=30)
    table = pa.table({"size": size, "embedding": lists(x, pa.list_(pa.float32()))})
    order = random.permutation(30)
    shuffled = pa.concat_tables(table.take(part) for part in np.array_split(order, chunks))
    first, second = (evgp.read_pool(part).in_memory.numpy() for part in (table, shuffled))
    np.testing.assert_allclose(first[order], second, atol=1e-12)


@pytest.mark.parametrize("scale", ["auto", "columns", "smooth", "common", "unit", None])
def test_lists_are_scaled_like_an_array_also_next_to_other_columns(scale: str | None) -> None:
    x = matrix_of(50, 40)
    table = pa.table({"a": np.arange(50.0), "embedding": lists(x), "kind": ["u", "v"] * 25})
    data = evgp.read_pool(table, scale=scale)
    z, alone = data.in_memory.numpy(), evgp.read_pool(x, scale=scale).in_memory.numpy()
    assert data.features[:2] == ("a", "embedding[0]")
    assert data.features[-2:] == ("kind=u", "kind=v")
    weight = 1.0 if scale is None else (43 / 2 / 40) ** 0.5
    np.testing.assert_allclose(z[:, 1:41], weight * alone, rtol=1e-12)
    if scale in ("auto", "columns", "common"):
        # Half of a row's square belongs to the lists, and all of it is the number of features.
        squares = np.square(z).sum(axis=0)
        assert squares[1:41].sum() == pytest.approx(50 * 43 / 2)
        assert squares.sum() == pytest.approx(50 * 43)


def test_a_column_can_be_used_alone() -> None:
    x, y = matrix_of(20, 4, 1), matrix_of(20, 3, 2)
    table = pa.table({"name": [f"n{row}" for row in range(20)], "a": lists(x), "b": lists(y)})
    for name, array in (("a", x), ("b", y)):
        data = evgp.read_pool(table, id="name", column=name)
        np.testing.assert_array_equal(data.in_memory, evgp.read_pool(array).in_memory)
        assert evgp.pick(table, 2, id="name", column=name).ids == tuple(
            f"n{row}" for row in evgp.pick(array, 2)
        )
    np.testing.assert_array_equal(
        evgp.read_pool(table, id="name", drop=["b"]).in_memory, evgp.read_pool(x).in_memory
    )


def test_the_choice_of_a_column_is_checked() -> None:
    table = pa.table(
        {"a": lists(matrix_of(9, 2)), "b": lists(matrix_of(9, 2)), "c": matrix_of(9, 1)[:, 0]}
    )
    with refused(DatasetError):
        evgp.read_pool(table)
    with refused(DatasetError):
        evgp.read_pool(table, column="embedding")
    with refused(DatasetError):
        evgp.read_pool(table, column="a", drop=["a"])
    with refused(DatasetError):
        evgp.read_pool(matrix_of(9, 2), column="x7")
    assert evgp.read_pool(table, column="c").features == ("c",)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "uint8", "int64"])
def test_every_type_of_number_may_be_in_a_list(dtype: str) -> None:
    x = (8 * matrix_of(20, 5)).round().clip(0, 100).astype(dtype)
    for kind in (None, pa.list_(pa.from_numpy_dtype(x.dtype), 5)):
        data = evgp.read_pool(pa.table({"embedding": lists(x, kind)}))
        np.testing.assert_array_equal(data.in_memory, evgp.read_pool(x.astype(float)).in_memory)


def test_frames_of_arrays_are_the_same_as_an_array() -> None:
    x = matrix_of(20, 6).astype(np.float32)
    expected = evgp.read_pool(x.astype(float)).in_memory
    frames = {
        "arrays": pd.DataFrame({"e": list(x)}),
        "lists": pd.DataFrame({"e": x.tolist()}),
        "tuples": pd.DataFrame({"e": [tuple(row) for row in x.tolist()]}),
        "arrow": pd.DataFrame({"e": pd.arrays.ArrowExtensionArray(lists(x))}),
        "polars list": pl.DataFrame({"e": x.tolist()}, schema={"e": pl.List(pl.Float32)}),
        "polars array": pl.DataFrame({"e": x}, schema={"e": pl.Array(pl.Float32, 6)}),
        "tensors": pa.table({"e": pa.FixedShapeTensorArray.from_numpy_ndarray(x)}),
    }  # fmt: skip
    for name, frame in frames.items():
        np.testing.assert_array_equal(evgp.read_pool(frame).in_memory, expected, err_msg=name)


def test_torch_tensors_in_a_frame_are_lists() -> None:
    x = matrix_of(12, 3)
    frame = pd.DataFrame({"e": [torch.from_numpy(row) for row in x]})
    np.testing.assert_array_equal(evgp.read_pool(frame).in_memory, evgp.read_pool(x).in_memory)


def test_hugging_face_datasets_name_their_column() -> None:
    x, y = matrix_of(12, 3, 1), matrix_of(12, 4, 2)
    source = datasets.Dataset.from_dict({"first": x.tolist(), "second": y.tolist()})
    for name, array in (("first", x), ("second", y)):
        data = evgp.read_pool(source, column=name)
        np.testing.assert_allclose(data.in_memory, evgp.read_pool(array).in_memory, atol=1e-6)


WRONG = {
    "ragged": [[1.0, 2.0], [1.0], [3.0, 4.0], [1.0, 2.0, 3.0]],
    "two lengths": [[1.0, 2.0], [3.0, 4.0], [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]],
    "empty": [[], [1.0, 2.0], [2.0, 1.0], [3.0, 3.0]],
    "all empty": [[], [], None, []],
    "none": [[1.0, 2.0], None, [2.0, 1.0], [3.0, 3.0]],
    "nan": [[1.0, 2.0], [1.0, float("nan")], [2.0, None], [float("inf"), 3.0]],
    "words": [["a"], ["b"], ["a"], ["b"]],
    "nested": [[[1.0]], [[2.0]], [[1.0]], [[2.0]]],
    "alike": [[1.0, 2.0], [1.0, 2.0], [1.0, 2.0], [1.0, 2.0]],
}


@pytest.mark.parametrize("name", WRONG)
def test_lists_that_cannot_be_used_are_refused_with_row_and_column(name: str) -> None:
    with refused(DatasetError):
        evgp.read_pool(pa.table({"embedding": WRONG[name]}))


def test_missing_lists_and_numbers_are_filled_with_means() -> None:
    table = pa.table({"e": [[1.0, 2.0], None, [3.0, None], [5.0, 6.0]]})
    data = evgp.read_pool(table, impute=True, scale="columns")
    z = data.in_memory.numpy()
    np.testing.assert_array_equal(z[1], 0)
    assert z[2].tolist() == [0, 0]
    assert any(note.startswith("filled 2 cells") for note in data.notes)


def test_free_text_next_to_lists_is_left_out_with_a_note() -> None:
    x = matrix_of(80, 4)
    texts = pa.table({
        "e": lists(x),
        "body": [f"a text of its own, {row}" for row in range(80)],
        "long": ["x" * 2_000, "y"] * 40,
        "many": [f"word {row // 2 % 39}" for row in range(79)] + ["another"],
        "kind": ["u", "v"] * 40,
    })  # fmt: skip
    data = evgp.read_pool(texts, max_categories=20)
    assert data.features[4:] == ("kind=u", "kind=v")
    assert "left out 3 columns ('body', 'long', 'many') of text, next to 'e'" in data.notes


def test_missing_text_that_is_left_out_is_harmless() -> None:
    table = pa.table(
        {"e": lists(matrix_of(60, 4)), "body": [f"text {row}" for row in range(59)] + [None]}
    )
    assert evgp.read_pool(table, max_categories=20).features == tuple(f"e[{at}]" for at in range(4))


def test_constant_numbers_of_lists_are_dropped() -> None:
    x = matrix_of(20, 4)
    x[:, 2] = 7.0
    data = evgp.read_pool(pa.table({"e": lists(x)}))
    assert data.features == ("e[0]", "e[1]", "e[3]")
    assert "dropped 1 constant column ('e[2]')" in data.notes
    np.testing.assert_array_equal(data.in_memory, evgp.read_pool(x).in_memory)
    np.testing.assert_array_equal(data.tensor_like(pa.table({"e": lists(x)})), data.in_memory)


def test_outliers_in_lists_are_named() -> None:
    x = matrix_of(2_000, 3)
    x[77, 1] = 1e6
    notes = evgp.read_pool(pa.table({"e": lists(x)})).notes
    assert any("column 'e[1]' row 77: 1e+06" in note for note in notes)


def test_test_points_must_have_lists_of_the_same_length() -> None:
    data = evgp.read_pool(pa.table({"e": lists(1e-9 * matrix_of(20, 4))}))
    for wrong in (
        pa.table({"e": lists(matrix_of(3, 5))}),
        pa.table({"e": lists(matrix_of(3, 5), pa.list_(pa.float64(), 5))}),
        pa.table({"e": [1.0, 2.0]}),
        pa.table({"e": [[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, float("nan")]]}),
        pa.table({"e": [[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 1e308, 3.0]]}),
    ):
        with refused(DatasetError):
            data.like(wrong)
    plain = Encoder.fit(Table(pa.table({"e": [1.0, 2.0, 4.0]}), "pool.csv"))
    with refused(DatasetError):
        plain.transform(Table(pa.table({"e": [[1.0], [2.0]]}), "test.csv"))


def test_a_name_like_that_of_a_number_in_a_list_is_refused() -> None:
    with refused(DatasetError):
        evgp.read_pool(pa.table({"e": lists(matrix_of(9, 2)), "e[1]": matrix_of(9, 1)[:, 0]}))


def test_slices_of_lists_are_read_as_they_are() -> None:
    x = matrix_of(30, 4)
    for kind in (make(4) for make in KINDS.values()):
        cells = lists(np.vstack([x[:5] + 9, x]), kind).slice(5)
        np.testing.assert_array_equal(
            evgp.read_pool(pa.table({"e": cells})).in_memory, evgp.read_pool(x).in_memory
        )


def test_labelled_rows_are_found_by_their_lists(tmp_path) -> None:  # type: ignore[no-untyped-def]
    import pyarrow.parquet as pq

    table = pa.table({"e": lists(matrix_of(30, 4)), "size": matrix_of(30, 1)[:, 0]})
    pq.write_table(table.take([4, 7]), tmp_path / "labelled.parquet")
    labelled = evgp.read_pool(table).labelled(tmp_path / "labelled.parquet")
    assert labelled.rows.tolist() == [4, 7]


def test_other_columns_of_test_points_are_noted() -> None:
    data = evgp.read_pool(pa.table({"e": lists(matrix_of(20, 4))}))
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        data.like(pa.table({"e": lists(matrix_of(3, 4))}))
    with warned(DataWarning):
        data.like(pa.table({"e": lists(matrix_of(3, 4)), "more": [1, 2, 3]}))


def test_lists_of_huge_numbers_are_noted_as_plain_columns_are() -> None:
    x = matrix_of(40, 2)
    x[3, 0] = 1e300
    notes = evgp.read_pool(pa.table({"e": lists(x)}), scale="columns").notes
    same = evgp.read_pool(pa.table({"a": x[:, 0], "b": x[:, 1]}), scale="columns").notes
    assert [note.replace("'e[0]'", "'a'") for note in notes] == list(same)
    assert any("row 3: 1e+300" in note for note in notes)


def test_text_among_lists_names_the_row() -> None:
    cells = [np.ones(2), np.zeros(2), "[1, 2]", np.ones(2)]
    with refused(UnusableColumn) as caught:
        evgp.read_pool(pd.DataFrame({"e": pd.Series(cells, dtype=object)}))
    assert "text in row 2" in str(caught.value)


@pytest.mark.parametrize("brackets", ["[]", "()", "{}"])
@pytest.mark.parametrize("between", [", ", " ", ",", "; "])
def test_lists_written_as_text_are_lists(brackets: str, between: str, tmp_path: Path) -> None:
    x = matrix_of(20, 4).round(6)
    left, right = brackets
    cells = [f"{left}{between.join(map(str, row))}{right}" for row in x.tolist()]
    path = tmp_path / "pool.csv"
    pd.DataFrame({"embedding": cells}).to_csv(path, index=False)
    for pool in (path, pd.DataFrame({"embedding": cells})):
        data = evgp.read_pool(pool)
        np.testing.assert_array_equal(data.in_memory.numpy(), evgp.read_pool(x).in_memory.numpy())
    assert data.notes[0].endswith(f"read as lists of numbers, such as {cells[0][:40]!r}")
    same = evgp.read_pool(path).tensor_like(path)
    np.testing.assert_array_equal(same.numpy(), data.in_memory.numpy())
    assert evgp.read_pool(path).rows_of(np.array([3]))["embedding"].to_pylist() == [cells[3]]


def test_text_in_place_of_a_list_in_test_points_is_refused(tmp_path: Path) -> None:
    data = evgp.read_pool(pd.DataFrame({"e": ["[1, 2]", "[3, 4]", "[5, 7]"]}))
    with refused(NotNumeric) as caught:
        data.tensor_like(pd.DataFrame({"e": ["[1, 2]", "31/12/2024"]}))
    assert caught.value.row == 1


def test_an_array_of_lists_and_a_series_are_a_column_of_lists() -> None:
    x = matrix_of(20, 4)
    frame = pd.DataFrame({"e": list(x)})
    expected = evgp.read_pool(x).in_memory.numpy()
    for pool in (
        frame["e"].to_numpy(),
        frame["e"],
        pl.Series("e", x),
        pa.chunked_array([lists(x)]),
    ):
        np.testing.assert_array_equal(evgp.read_pool(pool).in_memory.numpy(), expected)


def test_lists_of_booleans_are_numbers() -> None:
    bits = matrix_of(20, 4) > 0
    data = evgp.read_pool(pd.DataFrame({"bits": list(bits)}))
    expected = evgp.read_pool(bits.astype(float)).in_memory.numpy()
    np.testing.assert_array_equal(data.in_memory.numpy(), expected)


@pytest.mark.parametrize(
    ("cell", "got"),
    [
        (np.zeros((2, 2)), "an array of 2 x 2 in row 2"),
        (np.array(["a", "b"]), "a list of words in row 2"),
        ([[1, 2], [3]], "lists of several lengths in row 2"),
    ],
)
def test_other_arrays_among_lists_name_the_row(cell: object, got: str) -> None:
    with refused(UnusableColumn) as caught:
        evgp.read_pool(pd.DataFrame({"e": [[1.0, 2.0], None, cell]}))
    assert caught.value.got == got


def test_rows_of_different_lengths_are_named() -> None:
    with refused(BadArgument):
        evgp.read_pool([[1, 2], [3, 4], [5]])
