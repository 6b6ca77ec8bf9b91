"""Pools that stay in their files encode as those in memory, whatever the ranges."""

import datetime as dt
import pickle
import warnings
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evgp._linalg import BLOCK, in_pairs
from evgp.datasets import Encoder, Fitted, Streamed, Survey, Table, open_pool
from evgp.errors import DatasetError, DataWarning
from tests.messages import refused, warned

NONE = np.empty(0, dtype=np.int64)


def mixed(n: int, seed: int = 0) -> pa.Table:
    """A table with a column of every kind."""
    random = np.random.default_rng(seed)
    start = dt.datetime(2020, 1, 1)
    words = random.choice(["red", "green", "blue"], n).tolist()
    return pa.table(
        {
            "size": random.normal(size=n),
            "far": 1e9 + random.normal(size=n),
            "huge": 1e300 * random.uniform(size=n),
            "half": random.normal(size=n).astype(np.float16),
            "count": random.integers(0, 9, n).astype(np.int16),
            "price": pa.array([Decimal(int(v)) / 100 for v in random.integers(0, 999, n)]),
            "kind": words,
            "code": pa.array(words).dictionary_encode(),
            "good": random.uniform(size=n) < 0.4,
            "when": [start + dt.timedelta(seconds=int(s)) for s in random.integers(0, 10**7, n)],
            "day": pa.array(random.integers(0, 999, n).astype(np.int32)).cast(pa.date32()),
            "same": np.full(n, 7.0),
            "name": [f"row {row}" for row in range(n)],
            "cost": random.uniform(1, 2, size=n),
        }
    )


def saved(folder: Path, table: pa.Table, files: int = 1, group: int = 700) -> Path:
    """A folder with the rows of a table in Parquet files."""
    folder.mkdir(exist_ok=True)
    edges = np.linspace(0, len(table), files + 1).astype(int)
    for number, (low, high) in enumerate(pairwise(edges)):
        part = table.slice(low, high - low)
        pq.write_table(part, folder / f"part-{number:03}.parquet", row_group_size=group)
    return folder


def fit(pool: Streamed, rows: np.ndarray = NONE) -> Fitted:
    return pool.fitted(pool.survey(0, len(pool), rows))


def matrix(fitted: Fitted, size: int = BLOCK) -> np.ndarray:
    return np.concatenate([x for _, x in fitted.blocks(0, len(fitted), size)])


@pytest.mark.parametrize("scale", ["auto", "columns", None])
@pytest.mark.parametrize("files", [1, 3])
def test_a_streamed_table_encodes_as_one_in_memory(
    tmp_path: Path, files: int, scale: str | None
) -> None:
    table = mixed(9_000)
    folder = saved(tmp_path / "pool", table, files)
    pool = open_pool(folder, id="name", costs="cost", scale=scale)
    known = Encoder.fit(Table(table, str(folder)), id="name", drop=["cost"], scale=scale)
    rows = np.array([0, 17, 4096, 8999])
    fitted = fit(pool, rows)
    assert fitted.names == known.names
    assert fitted.shape == (len(known.names),)
    assert len(pool) == len(fitted) == 9_000
    x = known.transform(Table(table, str(folder)))
    # A value of 1e9 is known to 1e-7 only.
    places = np.array([name == "far" for name in known.names])
    got = matrix(fitted)
    np.testing.assert_allclose(got[:, ~places], x[:, ~places], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(got[:, places], x[:, places], rtol=1e-12, atol=3e-7)
    np.testing.assert_array_equal(fitted.sample, got[rows])
    np.testing.assert_array_equal(fitted.take(rows[::-1]), got[rows[::-1]])
    np.testing.assert_array_equal(fitted.take(np.array([5, 5, 2])), got[[5, 5, 2]])
    kept = [note for note in known.notes if "outliers" not in note and "cop" not in note]
    assert [note for note in fitted.notes if "outliers" not in note] == kept


@pytest.mark.parametrize("name", ["pool.arrow", "pool.feather", "pool.ipc"])
@pytest.mark.parametrize("compression", ["lz4", "uncompressed"])
def test_arrow_files_are_read_as_parquet_is(tmp_path: Path, name: str, compression: str) -> None:
    table = mixed(3_000)
    pyarrow.feather.write_feather(table, tmp_path / name, compression=compression, chunksize=500)
    pq.write_table(table, tmp_path / "pool.parquet")
    first, other = (
        fit(open_pool(tmp_path / file, drop=["name"]), np.array([3, 2_999]))
        for file in (name, "pool.parquet")
    )
    np.testing.assert_array_equal(matrix(first), matrix(other))
    np.testing.assert_array_equal(first.sample, other.sample)
    np.testing.assert_array_equal(
        first.take(np.array([2_500, 1])), other.take(np.array([2_500, 1]))
    )


def test_dictionaries_of_numbers_and_with_an_empty_word_are_words(tmp_path: Path) -> None:
    rank = pa.array([3, 1, 2, 1, 3, 3] * 5).dictionary_encode()
    table = pa.table({"rank": rank})
    pyarrow.feather.write_feather(table, tmp_path / "pool.arrow", chunksize=7)
    fitted = fit(open_pool(tmp_path / "pool.arrow"))
    known = Encoder.fit(Table(table, "pool"))
    assert fitted.names == known.names == ("rank=1", "rank=2", "rank=3")
    np.testing.assert_array_equal(matrix(fitted), known.transform(Table(table, "pool")))
    codes = pa.array([0, 1, 2, 0, 1, 2], pa.int8())
    holed = pa.table({"kind": pa.DictionaryArray.from_arrays(codes, pa.array(["a", None, "b"]))})
    pyarrow.feather.write_feather(holed, tmp_path / "pool.arrow")
    with refused(DatasetError):
        fit(open_pool(tmp_path / "pool.arrow"))
    with refused(DatasetError):
        Encoder.fit(Table(holed, "pool"))


@pytest.mark.parametrize("axes", [(), (5,), (2, 3)])
@pytest.mark.parametrize("dtype", ["f2", "f4", ">f8", "u1", "?", "i8", "longdouble"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_any_axes_and_type_are_scaled(
    tmp_path: Path, axes: tuple[int, ...], dtype: str, order: str
) -> None:
    random = np.random.default_rng(0)
    x = random.uniform(size=(500, 4, *axes)) * 2
    x = (x if np.dtype(dtype).kind == "f" else np.floor(x)).astype(dtype)
    files = []
    for number, (low, high) in enumerate([(0, 200), (200, 200), (200, 500)]):
        files.append(tmp_path / f"{number}.npy")
        np.save(files[-1], np.asarray(x[low:high], order=order))
    pool = open_pool(files, scale="columns")
    assert pool.shape == (4, *axes)
    fitted = fit(pool, np.array([3, 499]))
    y = x.astype(float)
    over = tuple(axis for axis in range(y.ndim) if axis != 1)
    y = (y - y.mean(over, keepdims=True)) / y.std(over, keepdims=True)
    got = matrix(fitted, 64)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, y, atol=1e-12)
    np.testing.assert_array_equal(fitted.sample, got[[3, 499]])
    np.testing.assert_array_equal(
        fitted.take(np.array([499, 200, 201, 7])), got[[499, 200, 201, 7]]
    )
    assert fitted.names == (() if axes else ("x0", "x1", "x2", "x3"))


def test_arrays_encode_as_the_same_table_in_memory(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(6_000, 5))
    x[:, 2] = 4.0
    np.save(tmp_path / "x.npy", x)
    table = Table(pa.table({f"x{j}": x[:, j] for j in range(5)}), "x.npy")
    known = Encoder.fit(table, drop=["x1"])
    fitted = fit(open_pool(tmp_path / "x.npy", drop=["x1"]))
    assert fitted.names == known.names == ("x0", "x3", "x4")
    assert fitted.notes == known.notes == ("dropped 1 constant column ('x2')",)
    np.testing.assert_allclose(matrix(fitted), known.transform(table), rtol=1e-12, atol=1e-12)


def test_whole_numbers_stay_whole_unless_scaled(tmp_path: Path) -> None:
    tokens = np.random.default_rng(0).integers(0, 50_000, size=(300, 16)).astype(np.uint16)
    np.save(tmp_path / "x.npy", tokens)
    fitted = fit(open_pool(tmp_path / "x.npy", scale=None), np.array([1]))
    got = matrix(fitted)
    assert got.dtype == fitted.sample.dtype == np.int64
    np.testing.assert_array_equal(got, tokens)
    assert matrix(fit(open_pool(tmp_path / "x.npy"))).dtype == np.float64


def test_constant_channels_become_zero_and_keep_their_place(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(30, 3, 4, 4))
    x[:, 1] = 0.3
    np.save(tmp_path / "x.npy", x)
    fitted = fit(open_pool(tmp_path / "x.npy"))
    assert fitted.shape == (3, 4, 4)
    assert not matrix(fitted)[:, 1].any()
    assert fitted.notes == ("'channel 1': the same number everywhere, taken as 0",)
    raw = fit(open_pool(tmp_path / "x.npy", scale=None))
    np.testing.assert_array_equal(matrix(raw), x)


@settings(
    deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_any_ranges_and_blocks_give_the_same_rows(tmp_path: Path, data: st.DataObject) -> None:
    n = data.draw(st.integers(20, 80))
    table = mixed(n, seed=n).drop_columns(["name"])
    counts = data.draw(st.lists(st.integers(0, n), max_size=4).map(sorted))
    folder = tmp_path / f"{hash((n, *counts))}"
    folder.mkdir(exist_ok=True)
    kind = data.draw(st.sampled_from(["parquet", "arrow"]))
    for number, (low, high) in enumerate(zip([0, *counts], [*counts, n], strict=True)):
        part, path = table.slice(low, high - low), folder / f"{number}.{kind}"
        if kind == "parquet":
            pq.write_table(part, path, row_group_size=data.draw(st.integers(1, 40)))
        else:
            pyarrow.feather.write_feather(part, path, chunksize=data.draw(st.integers(1, 40)))
    pool = open_pool(folder, drop=["cost"])
    rows = np.array(sorted(data.draw(st.lists(st.integers(0, n - 1), max_size=6))), dtype=np.int64)
    cut = data.draw(st.integers(0, n))
    fitted = pool.fitted(pool.survey(0, cut, rows).merge(pool.survey(cut, n, rows)))
    known = Encoder.fit(Table(table, "pool"), drop=["cost"])
    x = known.transform(Table(table, "pool"))
    places = np.array([name == "far" for name in known.names])
    start = data.draw(st.integers(0, n))
    stop = data.draw(st.integers(start, n))
    size = data.draw(st.integers(1, 60))
    at = start
    for first, block in fitted.blocks(start, stop, size):
        assert first == at
        assert len(block) <= size
        at += len(block)
        assert at == stop or at % size == 0
        np.testing.assert_allclose(
            block[:, ~places], x[first:at][:, ~places], rtol=1e-12, atol=1e-12
        )
    assert at == stop
    np.testing.assert_array_equal(fitted.sample, fitted.take(rows))
    for path in folder.iterdir():
        path.unlink()


def bits(survey: Survey) -> tuple[bytes, ...]:
    names = "exponent mean rest spread low high rising".split()
    moments = [np.ascontiguousarray(getattr(survey.moments, name)).tobytes() for name in names]
    return (*moments, str(sorted(survey.words.items())).encode())


@pytest.mark.parametrize("kind", ["parquet", "npy", "images"])
def test_surveys_of_two_to_the_j_blocks_agree_to_the_last_digit(tmp_path: Path, kind: str) -> None:
    n = 11 * BLOCK + 123
    random = np.random.default_rng(0)
    x = random.normal(size=(n, 3)) * [1, 1e-3, 1e6] + [0, 1e9, 0]
    if kind == "parquet":
        table = pa.table({f"x{j}": x[:, j] for j in range(3)})
        table = table.append_column("kind", pa.array(random.choice(["a", "b"], n)))
        pool = open_pool(saved(tmp_path / "pool", table, files=3, group=5_000))
    elif kind == "npy":
        np.save(tmp_path / "x.npy", x)
        pool = open_pool(tmp_path / "x.npy")
    else:  # wide rows, surveyed in parts of a block
        np.save(
            tmp_path / "x.npy", x[:, :, None].repeat(2, axis=2).repeat(300, axis=2)[: BLOCK + 7]
        )
        pool = open_pool(tmp_path / "x.npy")
        n = len(pool)
    rows = np.sort(random.choice(n, 50, replace=False))
    whole = pool.survey(0, n, rows)
    for blocks in (1, 2, 4, 8, 16):
        edges = [*range(0, n, blocks * BLOCK), n]
        parts = [pool.survey(a, b, rows) for a, b in pairwise(edges)]
        merged = in_pairs(parts, Survey.merge)
        assert bits(merged) == bits(whole)
        first, other = pool.fitted(merged), pool.fitted(whole)
        np.testing.assert_array_equal(first.sample, other.sample)
    if kind != "images":
        scale = np.ldexp(1.0, whole.moments.exponent)
        np.testing.assert_allclose(
            scale * whole.moments.mean, x.mean(axis=0), rtol=1e-12, atol=1e-9
        )
        y = x - x[0]
        np.testing.assert_allclose(
            scale * np.sqrt(whole.moments.spread / len(y)), y.std(axis=0), rtol=1e-12
        )


def test_everything_travels_to_other_processes(tmp_path: Path) -> None:
    table = mixed(500)
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(500, 3)))
    for where in (saved(tmp_path / "pool", table), tmp_path / "x.npy"):
        drop = ["name"] if where.is_dir() else []
        pool = pickle.loads(pickle.dumps(open_pool(where, drop=drop)))
        survey = pickle.loads(pickle.dumps(pool.survey(0, 500, np.array([4, 9]))))
        fitted = pickle.loads(pickle.dumps(pool.fitted(survey)))
        assert isinstance(pool, Streamed)
        np.testing.assert_array_equal(matrix(fitted)[[4, 9]], fitted.sample)
        assert len(pickle.dumps(pool)) < 5_000


def test_another_pool_takes_the_scaling_of_the_first(tmp_path: Path) -> None:
    table = mixed(600)
    folder = saved(tmp_path / "pool", table)
    fitted = fit(open_pool(folder, drop=["name"]))
    known = Encoder.fit(Table(table, "pool"), drop=["name"])
    other = mixed(80, seed=1).drop_columns(["name", "same"])
    pq.write_table(other, tmp_path / "test.parquet")
    test = fitted.like(open_pool(tmp_path / "test.parquet"))
    assert test.sample.shape == (0, *fitted.shape)
    places = np.array([name == "far" for name in known.names])
    x = known.transform(Table(other, "test"))
    np.testing.assert_allclose(matrix(test)[:, ~places], x[:, ~places], rtol=1e-12, atol=1e-12)
    pq.write_table(other.drop_columns(["kind"]), tmp_path / "test.parquet")
    with refused(DatasetError):
        fitted.like(open_pool(tmp_path / "test.parquet"))
    pq.write_table(
        other.drop_columns(["size"]).append_column("size", pa.array(["big", "small"] * 40)),
        tmp_path / "test.parquet",
    )
    with refused(DatasetError):
        fitted.like(open_pool(tmp_path / "test.parquet"))
    pq.write_table(other.append_column("more", other.column("size")), tmp_path / "test.parquet")
    with warned(DataWarning):
        fitted.like(open_pool(tmp_path / "test.parquet"))
    fitted.like(open_pool(tmp_path / "test.parquet", drop=["more", "kind"]))
    np.save(tmp_path / "x.npy", np.eye(3))
    with refused(DatasetError):
        fitted.like(open_pool(tmp_path / "x.npy"))
    arrays = fit(open_pool(tmp_path / "x.npy"))
    np.save(tmp_path / "y.npy", np.eye(4))
    for file in ("y.npy", "test.parquet"):
        with refused(DatasetError):
            arrays.like(open_pool(tmp_path / file))


def test_unknown_words_and_missing_values_elsewhere_are_reported_with_their_rows(
    tmp_path: Path,
) -> None:
    pool = pa.table({"kind": ["a", "b"] * 50, "size": np.arange(100.0)})
    pq.write_table(pool, tmp_path / "pool.parquet")
    fitted = fit(open_pool(tmp_path / "pool.parquet"))
    pq.write_table(
        pa.table({"kind": ["a", "c"] * 50, "size": np.arange(100.0)}), tmp_path / "test.parquet"
    )
    test = fitted.like(open_pool(tmp_path / "test.parquet"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        x = np.concatenate([block for _, block in test.blocks(0, 100, 10)])
    assert [str(warning.message) for warning in caught] == [
        f"{tmp_path}/test.parquet: column 'kind': values that the pool does not have; they "
        "count as none of its categories"
    ]
    np.testing.assert_array_equal(x[1, :2], [0, 0])
    holed = np.arange(100.0)
    holed[[33, 71]] = np.nan
    pq.write_table(pa.table({"kind": ["a"] * 100, "size": holed}), tmp_path / "test.parquet")
    test = fitted.like(open_pool(tmp_path / "test.parquet"))
    with refused(DatasetError):
        list(test.blocks(0, 100, 50))
    with refused(DatasetError):
        test.take(np.array([5, 71]))
