"""A column of lists in files gives the same numbers and picks as in memory."""

import pickle
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import evgp
from evgp._linalg import BLOCK, in_pairs
from evgp.datasets import Fitted, Streamed, Survey, open_pool
from evgp.errors import DatasetError, DataWarning
from tests.messages import refused, warned

NONE = np.empty(0, dtype=np.int64)
KINDS = {
    "list": pa.list_(pa.float32()),
    "large": pa.large_list(pa.float64()),
    "fixed": pa.list_(pa.float32(), 33),
    "half": pa.list_(pa.float16(), 33),
    "bytes": pa.list_(pa.int8()),
}


def embedded(rows: int, kind: str = "list", seed: int = 0) -> pa.Table:
    """A table with embeddings next to a number, a category and free text."""
    random = np.random.default_rng(seed)
    x = (30 * random.normal(size=(rows, 33))).round().clip(-120, 120)
    return pa.table(
        {
            "name": [f"row {row}" for row in range(rows)],
            "size": random.normal(size=rows),
            "embedding": pa.array(x.astype(int if kind == "bytes" else float).tolist(), KINDS[kind])
            if kind != "half"
            else pa.array(list(x.astype(np.float16)), KINDS[kind]),
            "kind": random.choice(["red", "green"], rows).tolist(),
            "body": [f"this is text number {row}" for row in range(rows)],
        }
    )


def saved(folder: Path, table: pa.Table, files: int = 1, suffix: str = ".parquet") -> Path:
    folder.mkdir(exist_ok=True)
    edges = np.linspace(0, len(table), files + 1).astype(int)
    for number, (low, high) in enumerate(pairwise(edges)):
        path, part = folder / f"part-{number:03}{suffix}", table.slice(low, high - low)
        if suffix == ".parquet":
            pq.write_table(part, path, row_group_size=700)
        else:
            pyarrow.feather.write_feather(part, path, chunksize=700)
    return folder


def fit(pool: Streamed, rows: np.ndarray = NONE) -> Fitted:
    return pool.fitted(pool.survey(0, len(pool), rows))


def matrix(fitted: Fitted, size: int = BLOCK) -> np.ndarray:
    return np.concatenate([x for _, x in fitted.blocks(0, len(fitted), size)])


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
@pytest.mark.parametrize("kind", KINDS)
def test_lists_in_files_encode_as_lists_in_memory(tmp_path: Path, kind: str, suffix: str) -> None:
    table = embedded(5_000, kind)
    pool = open_pool(saved(tmp_path / "pool", table, 3, suffix), id="name")
    data = evgp.read_pool(table, id="name")
    rows = np.array([0, 17, 4096, 4999])
    fitted = fit(pool, rows)
    assert fitted.names == data.features
    assert len(data.features) == 1 + 33 + 2
    x = data.in_memory.numpy()
    np.testing.assert_array_equal(matrix(fitted), x)
    np.testing.assert_array_equal(matrix(fitted, 100), x)
    np.testing.assert_array_equal(fitted.sample, x[rows])
    np.testing.assert_array_equal(fitted.take(rows[::-1]), x[rows[::-1]])
    assert any("left out 1 column ('body') of text" in note for note in fitted.notes)
    assert pool.widest == 1 + 33 + 2 * 50


@settings(
    deadline=None, max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(shards=st.sampled_from([1, 2, 4]), seed=st.integers(0, 3))
def test_surveys_of_shards_agree_to_the_last_digit(tmp_path: Path, shards: int, seed: int) -> None:
    table = embedded(5 * BLOCK // 2, seed=seed)
    pool = open_pool(saved(tmp_path / f"pool-{seed}", table, 2), id="name")
    step = shards * BLOCK
    parts = [
        pickle.loads(pickle.dumps(pool)).survey(start, min(len(pool), start + step), NONE)
        for start in range(0, len(pool), step)
    ]
    merged = pool.fitted(in_pairs(parts, Survey.merge))
    assert repr(merged.code) == repr(fit(pool).code)


def test_picks_from_files_are_those_from_memory(tmp_path: Path) -> None:
    table = embedded(600).drop_columns(["body"])
    folder = saved(tmp_path / "pool", table, 3)
    options = {"id": "name", "features": "nystrom-64", "method": "sharded"}
    with warned(DataWarning):
        here = evgp.pick(table, 8, **options)
    with warned(DataWarning):
        there = evgp.pick(folder, 8, **options)
    np.testing.assert_array_equal(here.indices, there.indices)
    assert here.ids == there.ids
    alone = evgp.pick(folder, 8, column="embedding", **options)
    again = evgp.pick(table, 8, column="embedding", **options)
    np.testing.assert_array_equal(alone.indices, again.indices)
    assert alone.settings["scale"] == "unit"


def test_test_points_and_labelled_rows_may_have_other_lists(tmp_path: Path) -> None:
    table = embedded(400).drop_columns(["body"])
    folder = saved(tmp_path / "pool", table, 2)
    more = embedded(30, seed=3).drop_columns(["body"])
    more = more.append_column("other", pa.array([[1.0, 2.0]] * 30))
    pq.write_table(more, tmp_path / "test.parquet")
    how = {"id": "name", "method": "sharded", "features": "nystrom-32"}
    selection = evgp.pick(folder, 4, x_test=tmp_path / "test.parquet", column="embedding", **how)
    x, test = (np.array(part["embedding"].to_pylist()) for part in (table, more))
    again = evgp.pick(x, 4, x_test=test, features="nystrom-32", method="sharded")
    np.testing.assert_array_equal(selection.indices, again.indices)
    labelled = evgp.datasets.read_with(
        folder, evgp.datasets.ReadOptions(column="embedding"), in_files=True
    ).labelled(tmp_path / "test.parquet")
    assert labelled.x is not None
    assert len(labelled.x) == 30


def test_only_blocks_of_lists_are_in_memory(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(120_000, 64)).astype(np.float32)
    path = tmp_path / "pool.parquet"
    table = pa.table({"embedding": pa.FixedSizeListArray.from_arrays(x.ravel(), 64)})
    pq.write_table(table, path, row_group_size=4_000, use_dictionary=False)
    del table
    pool = open_pool(path)
    before, most = pa.total_allocated_bytes(), 0
    for _, part in fit(pool).blocks(0, len(pool)):
        most = max(most, pa.total_allocated_bytes() - before)
        assert len(part) <= BLOCK
    assert most < x.nbytes / 4


WRONG = {
    "ragged": [[1.0, 2.0]] * 80 + [[1.0]],
    "empty": [[1.0, 2.0], [2.0, 1.0]] * 40 + [[]],
    "all empty": [[], None, []],
    "none": [[1.0, 2.0], [2.0, 1.0]] * 40 + [None],
    "nan": [[1.0, 2.0], [2.0, 1.0]] * 40 + [[1.0, float("nan")]],
    "nested": [[[1.0]], [[2.0]]],
}


@pytest.mark.parametrize("name", WRONG)
def test_lists_that_cannot_be_used_are_refused_with_their_row(tmp_path: Path, name: str) -> None:
    pq.write_table(pa.table({"embedding": WRONG[name]}), tmp_path / "pool.parquet")
    with refused(DatasetError):
        fit(open_pool(tmp_path / "pool.parquet"))
    with refused(DatasetError):
        evgp.read_pool(tmp_path / "pool.parquet")


def test_files_with_lists_of_two_lengths_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "pool"
    folder.mkdir()
    for number, length in enumerate((2, 3)):
        cells = pa.array(np.random.default_rng(number).normal(size=(9, length)).tolist())
        pq.write_table(pa.table({"e": cells}), folder / f"{number}.parquet")
    with refused(DatasetError):
        fit(open_pool(folder))


def test_the_choice_of_a_column_in_files_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "pool.parquet"
    rows = np.random.default_rng(0).normal(size=(9, 2)).tolist()
    pq.write_table(pa.table({"a": rows, "b": rows, "c": list(range(9))}), path)
    with refused(DatasetError):
        open_pool(path)
    with refused(DatasetError):
        open_pool(path, column="d")
    with refused(DatasetError):
        open_pool(path, column="a", drop=["a"])
    with refused(DatasetError):
        evgp.read_pool(open_pool(path, column="a"), column="b")
    assert open_pool(path, column="b").layout.used == ("b",)  # type: ignore[attr-defined]
    assert open_pool(path, drop=["b"]).layout.used == ("a", "c")  # type: ignore[attr-defined]
    np.save(tmp_path / "x.npy", np.eye(3))
    with refused(DatasetError):
        open_pool(tmp_path / "x.npy", column="x0")


def test_the_first_list_may_come_late(tmp_path: Path) -> None:
    rows = [None] * 200 + np.random.default_rng(0).normal(size=(9, 3)).tolist()
    path = tmp_path / "pool.parquet"
    pq.write_table(pa.table({"e": rows}), path, row_group_size=50)
    pool = open_pool(path, impute=True)
    assert pool.widest == 3
    assert np.isfinite(matrix(fit(pool))).all()


def test_picks_are_shown_with_whatever_columns_a_file_has(tmp_path: Path) -> None:
    table = embedded(60).append_column("other", pa.array([[1.0, 2.0]] * 60))
    path = tmp_path / "pool.parquet"
    pq.write_table(table, path)
    picks = evgp.pick(path, 3, column="embedding", id="name")
    frame = picks.to_frame(path)
    assert frame["body"].tolist() == [f"this is text number {row}" for row in picks]


def test_a_report_draws_its_map_from_lists_and_does_not_print_them(tmp_path: Path) -> None:
    table = embedded(60)
    path, page = tmp_path / "pool.parquet", tmp_path / "page.html"
    pq.write_table(table, path)
    picks = evgp.pick(path, 3, column="embedding", id="name")
    for pool in (path, table, table.select(["embedding"])):
        picks.report(page, pool)
        text = page.read_text()
        assert "<svg" in text
        assert str(table["embedding"][int(picks[0])].as_py()[0:2])[1:-1] not in text
