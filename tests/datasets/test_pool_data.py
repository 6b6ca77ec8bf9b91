"""One way from any pool to numbers: frames, files and arrays agree to the bit."""

import json
import os
import socket
import time
import warnings

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import evgp
from evgp.cli.main import app
from evgp.datasets import ReadOptions, Streamed, read_pool, read_with
from evgp.errors import DatasetError, DataWarning, PoolError
from tests.messages import refused, warned


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        yield


def frame(n: int = 50, seed: int = 0) -> pd.DataFrame:
    """Numbers, booleans, words, categories, dates, missing values and a constant column."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "key": [f"row-{i:03d}" for i in range(n)],
            "a": rng.normal(size=n) * 10.0 ** rng.integers(-8, 8),
            "flag": rng.random(n) > 0.5,
            "same": 7.0,
            "word": rng.choice(["x", "y", "z"], n),
            "kind": pd.Categorical(rng.choice(["p", "q"], n)),
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 10**8, n), "s"),
            "hole": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "count": rng.integers(0, 9, n),
            "price": rng.integers(1, 4, n),
        }
    )


def commanded(path, *options: str) -> dict:
    result = CliRunner().invoke(app, ["pick", str(path), "--json", *options])
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def same(selection: evgp.Selection, document: dict) -> bool:
    picks = document["picks"]
    return (
        [pick["index"] for pick in picks] == list(selection)
        and [pick["gain"] for pick in picks] == selection.gains.tolist()
        and [pick["variance_left"] for pick in picks] == selection.variance_left.tolist()
        and document["prior_variance"] == selection.prior_variance
    )


@pytest.mark.parametrize("seed", range(3))
def test_a_frame_and_its_files_give_the_same_picks_to_the_bit(tmp_path, seed) -> None:
    df = frame(seed=seed)
    df.to_csv(tmp_path / "pool.csv", index=False)
    df.to_parquet(tmp_path / "pool.parquet")
    options = {"id": "key", "drop": "price", "impute": True}
    picks = evgp.pick(df, 6, **options)
    flags = ("-k", "6", "--id", "key", "--drop", "price", "--impute")
    assert same(picks, commanded(tmp_path / "pool.csv", *flags))
    assert same(picks, commanded(tmp_path / "pool.parquet", *flags))
    others = (
        pl.from_pandas(df),
        pa.Table.from_pandas(df),
        str(tmp_path / "pool.csv"),
        tmp_path / "pool.parquet",
        read_pool(df, id="key", drop=["price"], impute=True),
    )
    for other in others:
        again = options if not isinstance(other, evgp.PoolData) else {}
        selection = evgp.pick(other, 6, **again)
        assert list(selection) == list(picks)
        assert selection.variance_left.tolist() == picks.variance_left.tolist()
        assert selection.ids == picks.ids == tuple(df["key"].iloc[picks.indices])


def test_an_array_and_its_file_give_the_same_picks_to_the_bit(tmp_path) -> None:
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=(40, 2)), np.ones(40), 1e9 + rng.normal(size=40)])
    np.save(tmp_path / "x.npy", x)
    picks = evgp.pick(x, 5)
    assert same(picks, commanded(tmp_path / "x.npy", "-k", "5"))
    assert same(evgp.pick(pd.DataFrame(x), 5), commanded(tmp_path / "x.npy", "-k", "5"))
    assert evgp.pick(torch.from_numpy(x), 5) == picks
    # A constant column has no effect, wherever it comes from.
    assert evgp.pick(x[:, [0, 1, 3]], 5).variance_left.tolist() == picks.variance_left.tolist()


def test_test_points_labelled_rows_and_costs_come_with_frames(tmp_path) -> None:
    df, test = frame(), frame(20, seed=5)
    df.to_csv(tmp_path / "pool.csv", index=False)
    test.to_csv(tmp_path / "test.csv", index=False)
    (tmp_path / "known.csv").write_text("key\nrow-003\nrow-010\n")
    options = {"id": "key", "impute": True, "budget": 9, "costs": "price"}
    picks = evgp.pick(df, x_test=test, labelled=[3, 10], **options)
    flags = ("--id", "key", "--impute", "--budget", "9", "--costs", "price")
    flags += ("--test", str(tmp_path / "test.csv"), "--labelled", str(tmp_path / "known.csv"))
    assert same(picks, commanded(tmp_path / "pool.csv", *flags))
    by_path = evgp.pick(df, x_test=test, labelled=tmp_path / "known.csv", **options)
    assert list(by_path) == list(picks)
    assert picks.costs.sum() <= 9 and not {3, 10} & {*picks}


def test_a_frame_of_floats_and_booleans_works() -> None:
    df = pd.DataFrame({"a": [0.0, 1.0, 2.0, 5.0], "b": [True, False, True, True]})
    assert len(evgp.pick(df, 2)) == 2
    assert read_pool(df).features == ("a", "b=false", "b=true")


def test_what_is_wrong_with_a_frame_is_reported_in_the_terms_of_python(tmp_path) -> None:
    df = frame()
    with refused(DatasetError):
        evgp.pick(df, 3, id="key")
    with refused(DatasetError):
        named = df.rename(columns={"key": "term"}).replace("row-", "row ", regex=True)
        evgp.pick(named, 3, impute=True)
    with refused(DatasetError):
        evgp.pick(df, 3, drop=["nothing"])
    df.to_csv(tmp_path / "pool.csv", index=False)
    result = CliRunner().invoke(app, ["pick", str(tmp_path / "pool.csv"), "-k", "3", "--id", "key"])
    assert "use --impute" in result.stderr and "impute=" not in result.stderr


def test_columns_are_for_tables_only() -> None:
    x = torch.utils.data.TensorDataset(torch.eye(4))
    with refused(DatasetError):
        evgp.pick(x, 2, drop=["a"])
    module = torch.nn.Linear(4, 1)
    with refused(DatasetError):
        evgp.pick(np.eye(4), 2, network=module, id="x0")


def test_a_network_of_one_width_keeps_constant_columns() -> None:
    x = np.column_stack([np.random.default_rng(0).normal(size=(12, 2)), np.ones(12)])
    data = read_with(x, ReadOptions(fixed=True))
    assert data.shape == (3,) and not data.in_memory[:, 2].any()
    assert read_with(x, ReadOptions()).shape == (2,)
    assert len(evgp.pick(x, 3, network=torch.nn.Linear(3, 1))) == 3


def test_a_pool_in_files_stays_there(tmp_path) -> None:
    pq.write_table(pa.table({"a": np.arange(50.0), "b": np.arange(50) % 7}), tmp_path / "p.parquet")
    assert isinstance(read_with(tmp_path / "p.parquet", ReadOptions(), in_files=True).x, Streamed)
    assert isinstance(read_with(tmp_path / "p.parquet", ReadOptions(), memory=10).x, Streamed)
    assert isinstance(read_with(tmp_path / "p.parquet", ReadOptions()).x, torch.Tensor)
    whole = evgp.pick(tmp_path / "p.parquet", 4, method="dense")
    assert list(evgp.pick(evgp.open_pool(tmp_path / "p.parquet"), 4)) == list(whole)
    with refused(PoolError):
        read_with(tmp_path / "p.parquet", ReadOptions(), in_files=True).in_memory  # noqa: B018


def test_times_are_the_same_in_every_unit() -> None:
    when = pd.date_range("2024-02-29T12:34:56.789", periods=30, freq="37min")
    result = [
        evgp.pick(pd.DataFrame({"t": when.as_unit(unit), "a": np.arange(30.0) % 7}), 4)
        for unit in ("ms", "us", "ns")
    ]
    assert result[0].variance_left.tolist() == result[1].variance_left.tolist()
    assert result[1].variance_left.tolist() == result[2].variance_left.tolist()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(3, 40), st.integers(1, 5), st.booleans())
def test_scaling_does_not_depend_on_the_way_in(seed, n, d, constant) -> None:
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=(n, d)) + rng.normal(size=d)) * 10.0 ** rng.integers(-100, 100, d)
    x = np.column_stack([x, np.full(n, rng.normal())]) if constant else x
    arrow = pa.table({str(j): column for j, column in enumerate(x.T)})
    ways = (x, pd.DataFrame(x).rename(columns=str), arrow)
    try:
        for scale in ("auto", "common", "unit"):
            first, *rest = (read_pool(way, scale=scale).in_memory for way in ways)
            assert all(torch.equal(first, other) for other in rest)
        first, *rest = (read_pool(way, scale="columns").in_memory for way in ways)
    except DatasetError:
        return  # all columns constant up to rounding
    assert all(torch.equal(first, other) for other in rest)
    assert torch.allclose(first.mean(0), torch.zeros(first.shape[1]).double(), atol=1e-9)
    assert torch.allclose(first.std(0, unbiased=False), torch.ones(first.shape[1]).double())


def test_odd_cells_of_frames_are_numbers_or_words() -> None:
    n = 12
    numbers = {"a": np.arange(n) % 5.0}
    large = pd.DataFrame({**numbers, "o": [10**30 + i * 10**28 for i in range(n)]})
    assert read_pool(large).features == ("a", "o")
    words = pd.DataFrame({**numbers, "o": pd.Series(["\ud800", "b"] * 6, dtype=object)})
    assert len(read_pool(words).features) == 3
    beyond = pd.DataFrame({**numbers, "o": [10**400 + i % 2 for i in range(n)]})
    assert len(read_pool(beyond).features) == 3


def test_addresses_of_this_machine_are_paths(tmp_path) -> None:
    os.mkfifo(tmp_path / "fifo.parquet")
    with refused(DatasetError):
        evgp.pick(f"file://{tmp_path}/fifo.parquet", 1)
    with refused(DatasetError):
        evgp.pick(f"file://{tmp_path}", 1)


@pytest.mark.parametrize(
    "where",
    [
        "file://",
        "zip://a.npy::file:///nowhere/p.npy",
        "ftp://127.0.0.1:1/x.parquet",
        "http://a/b.csv",
    ],
)
def test_addresses_that_cannot_be_opened_are_named(where) -> None:
    with refused(DatasetError):
        evgp.pick(where, 1)


def test_a_server_that_never_answers_is_given_up(monkeypatch) -> None:
    monkeypatch.setattr("evgp.datasets.web.WAIT", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = f"http://127.0.0.1:{silent.getsockname()[1]}/pool.parquet"
        start = time.monotonic()
        with refused(DatasetError):
            evgp.pick(where, 1)
    assert time.monotonic() - start < 20


def test_picks_that_change_nothing_are_reported() -> None:
    x = np.random.default_rng(0).normal(size=(30, 3))
    with warned(DataWarning):
        evgp.pick(x, 5, x_test=x * 1e12)


def test_columns_may_be_called_pool_attributes(tmp_path) -> None:
    names = ("in_files", "in_memory", "cells", "data", "source", "x", "columns", "shape")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.normal(size=20) for name in names})
    frame.to_csv(tmp_path / "pool.csv", index=False)
    here, there = evgp.pick(frame, 4), evgp.pick(tmp_path / "pool.csv", 4)
    assert here.indices.tolist() == there.indices.tolist()
    assert list(here.to_frame(frame).columns)[-len(names) :] == list(names)


def test_a_hugging_face_dataset_of_plain_columns_is_a_table() -> None:
    numbers = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": numbers.normal(size=40), "b": numbers.gamma(1.0, size=40), "kind": ["u", "v"] * 20}
    )
    same = datasets.Dataset.from_pandas(frame)
    for options in ({}, {"drop": "b"}, {"scale": "columns"}):
        picked, expected = evgp.pick(same, 4, **options), evgp.pick(frame, 4, **options)
        assert picked.indices.tolist() == expected.indices.tolist()
