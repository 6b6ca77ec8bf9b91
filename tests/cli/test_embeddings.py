"""The command picks from a column of lists as the library does, and says what it did."""

import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evgp
from tests.messages import printed


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(60, 33))


@pytest.fixture
def pool(tmp_path: Path, x: np.ndarray) -> Path:
    path = tmp_path / "pool.parquet"
    table = pa.table(
        {
            "key": [f"doc {row}" for row in range(60)],
            "body": [f"the text of row {row}" for row in range(60)],
            "title": pa.array(list(x[:, :5])),
            "embedding": pa.array(list(x.astype(np.float32))),
        }
    )
    pq.write_table(table, path)
    return path


def test_a_column_is_chosen_by_its_name(run, pool: Path, x: np.ndarray, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    ran = run(
        "pick", pool, "-k", 4, "--id", "key", "--column", "embedding", "--json", "--report", report
    )
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    expected = evgp.pick(x.astype(np.float32), 4)
    assert [pick["index"] for pick in document["picks"]] == expected.indices.tolist()
    assert document["settings"]["column"] == "embedding"
    assert "<svg" in report.read_text()


def test_several_columns_of_lists_are_refused_with_the_option(run, pool: Path) -> None:
    ran = run("pick", pool, "-k", 4, "--id", "key")
    assert ran.code == 1
    printed(ran.err)


def test_text_next_to_the_only_column_of_lists_is_left_out(run, pool: Path) -> None:
    ran = run("pick", pool, "-k", 4, "--id", "key", "--drop", "title")
    assert ran.code == 0
    printed(ran.err.replace("0.777", "0.778"))  # 0.7775, rounded either way
    alone = run("pick", pool, "-k", 4, "--id", "key", "--column", "embedding")
    assert ran.out == alone.out


def test_a_folder_is_picked_from_by_the_same_option(run, pool: Path, tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    table = pq.read_table(pool)
    for number in range(3):
        pq.write_table(table.slice(20 * number, 20), folder / f"{number}.parquet")
    how = ("-k", 4, "--id", "key", "--column", "embedding", "--features", "nystrom-32")
    parts = run("pick", folder, *how, "--method", "sharded")
    whole = run("pick", pool, *how, "--method", "sharded")
    assert parts.code == 0, parts.err
    assert parts.out == whole.out


def test_the_plan_of_many_embeddings_says_why_it_takes_features(
    run, tmp_path: Path, monkeypatch
) -> None:
    room = import_module("evgp.selection.plan")
    monkeypatch.setattr(room, "_SMALL", 0)
    monkeypatch.setattr(room, "_LONG", 0.0)
    monkeypatch.setattr(room, "_TIMES", 0.0)
    x = np.random.default_rng(0).normal(size=(600, 4))
    pq.write_table(pa.table({"e": pa.array(list(x))}), tmp_path / "pool.parquet")
    ran = run("plan", tmp_path / "pool.parquet", "-k", 4)
    assert ran.code == 0
    assert "The exact kernel (--method 'dense') would take about" in ran.err
