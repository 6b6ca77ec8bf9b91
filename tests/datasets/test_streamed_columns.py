"""Ids, costs, digests and addresses of pools in files."""

import hashlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from evgp.datasets import Encoder, Table, open_pool
from evgp.errors import DatasetError
from tests.datasets.test_streamed import fit, matrix, mixed, saved
from tests.messages import refused


def test_ids_costs_and_digests(tmp_path: Path) -> None:
    table = mixed(1_000)
    folder = saved(tmp_path / "pool", table, files=4)
    pool = open_pool(folder, id="name", costs="cost")
    assert pool.cells("name", np.array([999, 0, 500, 0])) == [
        "row 999",
        "row 0",
        "row 500",
        "row 0",
    ]
    assert pool.cells("count", np.array([1])) == [table["count"][1].as_py()]
    assert isinstance(pool.cells("when", np.array([1]))[0], str)
    np.testing.assert_array_equal(pool.numbers("cost", 10, 700), table["cost"].to_numpy()[10:700])
    assert pool.numbers("cost", 10, 10).shape == (0,)
    assert (
        pool.digest(pool.files[2]) == hashlib.blake2b(Path(pool.files[2]).read_bytes()).hexdigest()
    )
    with refused(DatasetError):
        pool.numbers("price2", 0, 3)
    with refused(DatasetError):
        pool.numbers("kind", 0, 0)
    np.save(tmp_path / "x.npy", np.arange(12.0).reshape(4, 3))
    array = open_pool(tmp_path / "x.npy", id="x0", costs="x2")
    assert array.cells("x0", np.array([3, 1])) == [9.0, 3.0]
    np.testing.assert_array_equal(array.numbers("x2", 1, 3), [5.0, 8.0])
    assert fit(array).names == ("x1",)


def test_missing_costs_are_refused_with_their_global_row(tmp_path: Path) -> None:
    cost = np.ones(200)
    cost[150] = np.nan
    table = pa.table({"a": np.arange(200.0), "cost": cost})
    pool = open_pool(saved(tmp_path / "pool", table, files=3), costs="cost")
    with refused(DatasetError):
        pool.numbers("cost", 90, 200)
    assert len(pool.numbers("cost", 0, 150)) == 150


def test_an_address_is_opened_by_fsspec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = mixed(600).drop_columns(["name"])
    folder = saved(tmp_path / "pool", table, files=2)
    (folder / "_SUCCESS").touch()
    first = fit(open_pool(folder.as_uri()), np.array([1, 500]))
    np.testing.assert_array_equal(matrix(first), matrix(fit(open_pool(folder))))
    assert all(file.startswith("file://") for file in first.pool.files)
    assert len(first.pool.digest(first.pool.files[0])) == 128
    single = open_pool((folder / "part-000.parquet").as_uri())
    assert len(single) == 300
    with refused(DatasetError):
        open_pool((folder / "gone.parquet").as_uri())
    with refused(DatasetError):
        open_pool("nowhere://pool.parquet")
    with refused(DatasetError):
        open_pool("file:///x.npy")
    monkeypatch.setitem(__import__("sys").modules, "fsspec", None)
    with refused(DatasetError):
        open_pool("s3://bucket/pool.parquet")


def test_missing_cells_are_filled_as_in_memory(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    a = random.normal(5, 2, size=9_000)
    a[random.random(9_000) < 0.2] = np.nan
    kind = pa.array([None if i % 7 == 0 else "xy"[i % 2] for i in range(9_000)])
    table = pa.table({"a": a, "kind": kind})
    pq.write_table(table, tmp_path / "pool.parquet")
    pool = open_pool(tmp_path / "pool.parquet", impute=True)
    fitted = pool.fitted(pool.survey(0, 9_000, np.empty(0, dtype=np.int64)))
    encoder = Encoder.fit(Table(table, "pool"), impute=True)
    x = np.concatenate([block for _, block in fitted.blocks(0, 9_000)])
    assert np.array_equal(x, encoder.matrix(Table(table, "pool"))[0]), "to the bit"
    assert (x[np.isnan(a), 0] == 0).all() and fitted.notes[0].startswith("filled 3,0")
