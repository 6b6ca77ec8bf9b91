"""What cannot be a pool is refused with its file, its column and what to do."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from evgp.datasets import Streamed, Survey, open_pool
from evgp.errors import DatasetError
from tests.messages import refused

NONE = np.empty(0, dtype=np.int64)
GOOD = pa.table({"a": np.arange(100.0), "kind": ["x", "y"] * 50})


def write(table: pa.Table, path: Path, **options: object) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(table, path, **options)
    elif path.suffix == ".npy":
        np.save(path, np.column_stack([table["a"].to_numpy()] * 2))
    else:
        pyarrow.feather.write_feather(table, path, **options)
    return path


def survey(pool: Streamed) -> Survey:
    return pool.survey(0, len(pool), NONE)


def read(path: Path, **options: object) -> None:
    pool = open_pool(path, **options)
    for _ in pool.fitted(survey(pool)).blocks(0, len(pool)):
        pass


@pytest.mark.parametrize(
    "name",
    [
        "pool.csv",
        "pool.npz",
        "pool",
        "gone.parquet",
        "gone.npy",
        "empty.parquet",
        "text.parquet",
        "text.arrow",
        "text.npy",
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path: Path, name: str) -> None:
    if not name.startswith("gone"):
        (tmp_path / name).write_text("" if name.startswith("empty") else "a,b\n1,2\n" * 20)
    with refused(DatasetError) as caught:
        open_pool(tmp_path / name)
    assert name in str(caught.value)


def test_a_folder_must_hold_one_kind_of_files(tmp_path: Path) -> None:
    with refused(DatasetError):
        open_pool(tmp_path)
    write(GOOD, tmp_path / "b.parquet")
    (tmp_path / "year=2020").mkdir()
    write(GOOD.slice(0, 10), tmp_path / "year=2020" / "a.parquet")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".b.parquet.crc").touch()
    (tmp_path / "_old").mkdir()
    write(GOOD, tmp_path / "_old" / "c.parquet")
    pool = open_pool(tmp_path)
    assert [Path(file).name for file in pool.files] == ["b.parquet", "a.parquet"]
    assert len(pool) == 110
    note = "folder names such as 'year=2020' are not read as columns"
    assert pool.fitted(survey(pool)).notes[0] == note
    (tmp_path / "notes.txt").touch()
    with refused(DatasetError):
        open_pool(tmp_path)
    (tmp_path / "notes.txt").unlink()
    (tmp_path / "linked").symlink_to(tmp_path / "_old")
    with refused(DatasetError):
        open_pool(tmp_path)
    (tmp_path / "linked").unlink()
    write(GOOD, tmp_path / "c.npy")
    with refused(DatasetError):
        open_pool(tmp_path)


def test_a_list_must_name_each_file_once(tmp_path: Path) -> None:
    a, b = (write(GOOD, tmp_path / name) for name in ("a.parquet", "b.parquet"))
    assert open_pool([b, a]).files == (str(b), str(a))
    assert open_pool([b, a]).name == f"{b} and 1 more"
    with refused(DatasetError):
        open_pool([])
    with refused(DatasetError):
        open_pool([a, b, a])
    with refused(DatasetError):
        open_pool([a, write(GOOD, tmp_path / "c.npy")])


@pytest.mark.parametrize(
    "other",
    [
        GOOD.drop_columns(["kind"]),
        GOOD.append_column("b", GOOD["a"]),
        GOOD.set_column(0, "a", GOOD["a"].cast("float")),
    ],
)
def test_files_must_agree_in_columns_and_types(tmp_path: Path, other: pa.Table) -> None:
    write(GOOD, tmp_path / "0.parquet")
    write(other, tmp_path / "1.parquet")
    with refused(DatasetError):
        open_pool(tmp_path)


def test_columns_in_another_order_and_nullability_agree(tmp_path: Path) -> None:
    write(GOOD, tmp_path / "0.parquet")
    kinds = pa.schema([pa.field("kind", "string", nullable=False), pa.field("a", "double")])
    write(GOOD.select(["kind", "a"]).cast(kinds), tmp_path / "1.parquet")
    pool = open_pool(tmp_path)
    x = np.concatenate([x for _, x in pool.fitted(survey(pool)).blocks(0, 200, 64)])
    np.testing.assert_array_equal(x[:100], x[100:])


def test_arrays_must_agree_in_shape_and_type(tmp_path: Path) -> None:
    np.save(tmp_path / "0.npy", np.eye(3))
    np.save(tmp_path / "1.npy", np.eye(4))
    with refused(DatasetError):
        open_pool(tmp_path)
    np.save(tmp_path / "1.npy", np.eye(3, dtype=np.float32))
    with refused(DatasetError):
        open_pool(tmp_path)
    np.save(tmp_path / "0.npy", np.eye(3, dtype=complex))
    with refused(DatasetError):
        open_pool(tmp_path / "0.npy")
    np.save(tmp_path / "0.npy", np.array([[{}]]))
    with refused(DatasetError):
        open_pool(tmp_path / "0.npy")
    np.save(tmp_path / "0.npy", np.arange(3))
    with refused(DatasetError):
        open_pool(tmp_path / "0.npy")


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".npy"])
def test_empty_files_count_only_with_others(tmp_path: Path, suffix: str) -> None:
    write(GOOD.slice(0, 0), tmp_path / f"0{suffix}")
    with refused(DatasetError):
        open_pool(tmp_path)
    write(GOOD.slice(0, 1), tmp_path / f"1{suffix}")
    with refused(DatasetError):
        read(tmp_path)
    write(GOOD, tmp_path / f"2{suffix}")
    read(tmp_path)


def test_columns_that_are_not_there_or_not_usable_are_named(tmp_path: Path) -> None:
    path = write(GOOD.append_column("list", pa.array([["u"]] * 100)), tmp_path / "a.parquet")
    with refused(DatasetError):
        open_pool(path)
    for options in ({"id": "b"}, {"drop": ["b"]}, {"costs": "b"}):
        with refused(DatasetError):
            open_pool(path, **options)
    with refused(DatasetError):
        open_pool(path, drop=["list", "a"], id="kind")
    with refused(DatasetError):
        open_pool(path, drop=["list"], costs="kind")
    assert open_pool(path, drop=["list"]).shape == (2,)
    np.save(tmp_path / "x.npy", np.eye(3))
    with refused(DatasetError):
        open_pool(tmp_path / "x.npy", drop=["x3"])
    twice = pa.Table.from_arrays([GOOD["a"], GOOD["a"]], names=["a", "a"])
    with refused(DatasetError):
        open_pool(write(twice, tmp_path / "b.parquet"))


def test_pools_whose_rows_are_alike_are_refused(tmp_path: Path) -> None:
    path = write(pa.table({"a": [1.0] * 9, "b": ["x"] * 9}), tmp_path / "a.parquet")
    with refused(DatasetError):
        read(path)
    np.save(tmp_path / "x.npy", np.ones((4, 2)))
    with refused(DatasetError):
        read(tmp_path / "x.npy")


def test_missing_values_in_all_ranges_are_counted_with_their_global_rows(tmp_path: Path) -> None:
    a = np.arange(10_000.0)
    a[[5_000, 6_000, 7_000, 9_000]] = np.nan
    a[9_999] = -np.inf
    kind = pa.array(["x", "y"] * 4_999 + ["x", None])
    for number, low in enumerate((0, 5_500)):
        part = pa.table({"a": a, "kind": kind}).slice(low, 5_500 if number == 0 else None)
        write(part, tmp_path / f"{number}.parquet")
    with pytest.raises(DatasetError) as caught:
        read(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}: expected a value in each cell, got 4 missing or NaN in column 'a' (rows "
        "5000, 6000, 7000, ...); 1 infinite in column 'a' (row 9999); 1 missing in column 'kind' "
        "(row 9999, counting from 0); fill them in, or use impute=True"
    )
    x = np.zeros((20, 2, 3))
    x[[7, 8], 1, 0] = np.nan
    np.save(tmp_path / "x.npy", x)
    with refused(DatasetError):
        read(tmp_path / "x.npy")


def test_counting_stops_at_too_many_words(tmp_path: Path) -> None:
    words = [f"w{row % 900}" for row in range(20_000)]
    path = write(pa.table({"a": np.arange(20_000.0), "b": words}), tmp_path / "a.parquet")
    with refused(DatasetError):
        read(path)
    with refused(DatasetError):
        open_pool(path).survey(8_192, 20_000, NONE)
    read(path, max_categories=900)
    # Few in each range, too many in both.
    words = [f"w{row // 300}" for row in range(20_000)]
    pool = open_pool(write(pa.table({"b": words}), tmp_path / "a.parquet"))
    first, other = pool.survey(0, 8_192, NONE), pool.survey(8_192, 20_000, NONE)
    with refused(DatasetError):
        first.merge(other)
    pool = open_pool(
        write(pa.table({"b": [f"w{row}" for row in range(999)]}), tmp_path / "a.parquet")
    )
    with refused(DatasetError):
        survey(pool)
    few = open_pool(write(pa.table({"b": ["v", "w", "x"]}), tmp_path / "a.parquet"))
    with refused(DatasetError):
        few.fitted(survey(few))


def test_what_looks_like_an_id_or_a_label_is_noted(tmp_path: Path) -> None:
    table = pa.table(
        {
            "row": np.arange(5_000),
            "user_id": np.random.default_rng(0).integers(0, 9, 5_000),
            "target": np.random.default_rng(0).normal(size=5_000),
            "survived": np.arange(5_000) % 2,
            "wild": np.r_[np.random.default_rng(0).normal(size=4_999), 1e9],
            "when": pa.array(np.arange(5_000) % 77).cast(pa.timestamp("s")),
            "odd": ["1", "2", "3", "n/a"] * 1_250,
        }
    )
    pool = open_pool(write(table, tmp_path / "a.parquet"))
    assert pool.fitted(survey(pool)).notes == (
        "column 'row' left out: a different value in each row, like an id (id='row' names the "
        "picks by it)",
        "column 'when' holds times, taken as seconds",
        "most values in column 'odd' are numbers, but 'n/a' is not (taken as 4 categories)",
        "column 'user_id': named like an id (id= or drop= leaves it out)",
        "column 'target': named like the label, which should not influence the picks (drop= "
        "leaves it out)",
        "column 'survived': perhaps the label, which should not influence the picks (drop= "
        "leaves it out)",
        "possible outliers: column 'wild': 1e+09; check that they are real",
    )
