"""The picks as a frame, with the columns of whatever they were picked from."""

import pickle
import sys
from pathlib import Path

import datasets as hugging_face
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import evgp
from evgp import Selection
from evgp.datasets import Table
from evgp.errors import DatasetError, PoolError
from tests.messages import refused
from tests.pool.conftest import build, parts

OURS = ["rank", "row", "gain", "variance_left"]
X = np.arange(8.0).reshape(4, 2)
PICKS = Selection(np.array([2, 0]), np.array([0.5, 0.2]))
NAMES = ["ann", "bob", "cay", "dan"]
FRAME = pd.DataFrame({"name": NAMES, "age": [31, 58, 44, 70]})


@given(parts())
def test_a_line_for_each_pick(given_parts) -> None:
    selection = build(given_parts)
    frame = selection.to_frame()
    assert list(frame) == OURS + ["cost"] * (selection.costs is not None)
    assert frame["rank"].tolist() == list(range(1, len(selection) + 1))
    assert frame["row"].dtype == np.int64 and frame["row"].tolist() == list(selection)
    np.testing.assert_array_equal(frame["gain"], selection.gains)
    left = selection.variance_left
    np.testing.assert_array_equal(
        frame["variance_left"], left if len(left) else np.full(len(selection), np.nan)
    )
    if selection.costs is not None:
        np.testing.assert_array_equal(frame["cost"], selection.costs)


INDEXES = st.sampled_from(
    [
        pd.RangeIndex(50),
        pd.RangeIndex(50, 100),
        pd.Index([f"id-{row % 7}" for row in range(50)], name="rank"),
        pd.date_range("2026-01-01", periods=50),
        pd.MultiIndex.from_product([["a", "b"], range(25)]),
    ]
)


@settings(deadline=None)
@given(parts(), INDEXES)
def test_a_frame_keeps_its_index_types_and_cells(given_parts, index) -> None:
    selection = build({**given_parts, "settings": {}})
    pool = pd.DataFrame(
        {
            "number": np.arange(50),
            "word": pd.Categorical(["x", "y"] * 25),
            "time": pd.date_range("2026-01-01", periods=50),
            "thing": [{"row": row} for row in range(50)],
            "hole": pd.array([None, 1] * 25, dtype="Int64"),
        },
        index=index,
    )
    before = pool.copy(deep=True)
    frame = selection.to_frame(pool)
    assert frame.index.equals(pool.index[selection.indices])
    assert frame[list(pool)].equals(pool.iloc[selection.indices])
    assert frame["row"].tolist() == list(selection)
    pd.testing.assert_frame_equal(pool, before)


@pytest.mark.parametrize(
    ("pool", "columns"),
    [
        (FRAME, {"name": ["cay", "ann"], "age": [44, 31]}),
        (FRAME["name"], {"name": ["cay", "ann"]}),
        (pl.from_pandas(FRAME), {"name": ["cay", "ann"], "age": [44, 31]}),
        (pa.Table.from_pandas(FRAME), {"name": ["cay", "ann"], "age": [44, 31]}),
        (Table(pa.table({"age": [1, 2, 3, 4]}), "four.csv"), {"age": [3, 1]}),
        (hugging_face.Dataset.from_pandas(FRAME), {"name": ["cay", "ann"], "age": [44, 31]}),
        (X, {"x0": [4.0, 0.0], "x1": [5.0, 1.0]}),
        (X.tolist(), {"x0": [4.0, 0.0], "x1": [5.0, 1.0]}),
        (torch.from_numpy(X), {"x0": [4.0, 0.0], "x1": [5.0, 1.0]}),
        (torch.utils.data.TensorDataset(torch.from_numpy(X)), {"x0": [4.0, 0], "x1": [5.0, 1]}),
        (NAMES, {"value": ["cay", "ann"]}),
        (np.array([[1, "a"], [2, "b"], [3, None], [4, "d"]], dtype=object),
         {"x0": [3, 1], "x1": [None, "a"]}),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_whatever_has_rows_can_be_shown(pool, columns) -> None:
    frame = PICKS.to_frame(pool)
    assert list(frame) == [*OURS, *columns]
    for name, cells in columns.items():
        assert [None if pd.isna(cell) else cell for cell in frame[name]] == cells


@pytest.mark.parametrize("suffix", ["csv", "parquet", "feather", "npy", "npz"])
def test_files_can_be_shown(suffix, tmp_path) -> None:
    path = tmp_path / f"pool.{suffix}"
    table = pd.DataFrame(X, columns=["x0", "x1"])
    {
        "csv": lambda: table.to_csv(path, index=False),
        "parquet": lambda: table.to_parquet(path),
        "feather": lambda: table.to_feather(path),
        "npy": lambda: np.save(path, X),
        "npz": lambda: np.savez(path, x=X),
    }[suffix]()
    expected = PICKS.to_frame(table).reset_index(drop=True)
    for pool in (path, str(path)):
        pd.testing.assert_frame_equal(PICKS.to_frame(pool), expected)
    if suffix == "parquet":
        for pool in (tmp_path, evgp.open_pool(path)):
            pd.testing.assert_frame_equal(PICKS.to_frame(pool), expected)


def test_columns_with_our_names_are_kept_next_to_ours(tmp_path) -> None:
    priced = Selection(np.array([1]), np.array([0.5]), costs=np.array([2.0]))
    frame = priced.to_frame(pd.DataFrame({"cost": [1, 2], "rank": ["a", "b"], "other": [3, 4]}))
    assert list(frame) == [*OURS, "cost", "cost_pool", "rank_pool", "other"]
    assert frame[["cost", "cost_pool", "rank_pool"]].to_numpy().tolist() == [[2.0, 2, "b"]]
    frame.to_parquet(tmp_path / "picks.parquet")  # which takes each name once
    deep = pd.DataFrame(np.eye(2), columns=pd.MultiIndex.from_product([["a"], [1, 2]]))
    assert priced.to_frame(deep).shape == (1, 7)


def test_what_the_frame_says_leads_back_to_the_pool() -> None:
    people = FRAME.set_index("name")
    frame = PICKS.to_frame(people)
    people.loc[frame.index, "label"] = [1.0, 0.0]
    assert people["label"].dropna().to_dict() == {"cay": 1.0, "ann": 0.0}


@pytest.mark.parametrize(
    ("pool", "error"),
    [
        (FRAME[:2], PoolError),
        (5, DatasetError),
        ({"a": [1, 2]}, DatasetError),
        ([[1], [2, 3]], DatasetError),
        (pl.LazyFrame({"a": [1, 2, 3]}), DatasetError),
        ("absent.csv", DatasetError),
        ("absent.parquet", DatasetError),
    ],
    ids=str,
)
def test_what_cannot_be_shown_is_refused(pool, error) -> None:
    with refused(error):
        PICKS.to_frame(pool)


def test_another_pool_is_refused_by_the_number_of_its_rows() -> None:
    picks = evgp.pick(X, 1)
    for pool in (X[:3], np.concatenate([X, X])):
        with refused(PoolError):
            picks.to_frame(pool)


def test_without_pandas_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with refused(ImportError):
        PICKS.to_frame()


def test_only_the_picked_rows_of_files_are_read(tmp_path: Path, monkeypatch) -> None:
    np.save(tmp_path / "pool.npy", X)
    asked: list[np.ndarray] = []
    pool = evgp.open_pool(tmp_path / "pool.npy")
    whole = type(pool).raw_at
    monkeypatch.setattr(
        type(pool),
        "raw_at",
        lambda self, rows, names: asked.append(rows) or whole(self, rows, names),
    )
    PICKS.to_frame(pool)
    assert [rows.tolist() for rows in asked] == [[2, 0]]


def test_a_pool_in_another_order_is_noticed(tmp_path) -> None:
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"a": random.normal(size=30), "b": list("xyz") * 10})
    picks, mixed = evgp.pick(frame, 4), frame.sample(frac=1, random_state=1)
    copy = pickle.loads(pickle.dumps(picks))  # which has no pool
    for selection in (picks, picks[:2], copy):
        for other in (mixed, mixed.reset_index(drop=True), pa.table(mixed)):
            with refused(PoolError):
                selection.to_frame(other)
            with refused(PoolError):
                selection.report(tmp_path / "report.html", other)
        selection.to_frame(frame)
    array = frame[["a"]].to_numpy()
    with refused(PoolError):
        evgp.pick(array, 3).to_frame(array[::-1].copy())
    # Other numbers, or other columns, may be those of the same rows.
    assert picks.to_frame(frame.assign(a=2 * frame["a"] + 1))["b"].tolist() == [
        frame["b"][row] for row in picks
    ]
    assert len(picks.to_frame(frame[["b"]])) == 4


def test_ids_show_another_order_after_a_selection_was_loaded(tmp_path) -> None:
    frame = pd.DataFrame({"a": np.arange(20) ** 1.5, "name": [f"r{j}" for j in range(20)]})
    path = tmp_path / "picks.json"
    evgp.pick(frame, 3, id="name").save(path)
    picks = evgp.Selection.load(path)
    assert picks.to_frame(frame)["name"].tolist() == list(picks.ids)
    with refused(PoolError):
        picks.to_frame(frame[::-1])


@pytest.mark.parametrize("in_files", [False, True])
def test_categories_that_are_integers_stay_categories_in_parquet(tmp_path, in_files) -> None:
    random = np.random.default_rng(0)
    codes = pd.Categorical(random.integers(0, 4, 40))
    frame = pd.DataFrame({"a": random.normal(size=40), "code": codes})
    where = tmp_path / "pool" / "one.parquet"
    where.parent.mkdir()
    frame.to_parquet(where)
    picks = evgp.pick(where.parent if in_files else where, 6)
    assert picks == evgp.pick(frame, 6) and picks.settings["features"] == 5
