"""Folders of text tables, which are read as one table."""

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evgp
from evgp.errors import DatasetError
from tests.messages import refused

RANDOM = np.random.default_rng(0)
HEAD = "name,a,b,kind"
LINES = [
    f"r{j},{a:.6f},{1000 * b:.4f},{'xyz'[j % 3]}"
    for j, (a, b) in enumerate(RANDOM.normal(size=(40, 2)))
]


@pytest.fixture
def folder(tmp_path):
    """The pool in three files, which were not made in order."""
    where = tmp_path / "pool"
    (where / "later").mkdir(parents=True)
    (where / "later" / "c.csv").write_text("\n".join([HEAD, *LINES[30:]]))
    (where / "b.csv").write_bytes("\r\n".join([HEAD, *LINES[12:30], ""]).encode("utf-8-sig"))
    (where / "a.csv.gz").write_bytes(gzip.compress("\n".join([HEAD, *LINES[:12]]).encode()))
    (where / ".hidden").write_text("anything")
    return where


@pytest.fixture
def whole(tmp_path):
    path = tmp_path / "whole.csv"
    path.write_text("\n".join([HEAD, *LINES]) + "\n")
    return path


def test_a_folder_of_csv_files_is_one_table(folder, whole) -> None:
    first, many = evgp.pick(whole, 6, id="name"), evgp.pick(folder, 6, id="name")
    assert first == many and first.ids == many.ids
    assert np.array_equal(first.variance_left, many.variance_left)
    assert first.to_frame().equals(many.to_frame())
    assert evgp.pick(whole, 6, id="name", x_test=folder).indices.tolist() == list(first)


@pytest.mark.filterwarnings("ignore::evgp.errors.DataWarning")
def test_a_column_has_one_type_in_all_files(tmp_path) -> None:
    folder, whole = tmp_path / "pool", tmp_path / "whole.csv"
    folder.mkdir()
    parts = [f"{j},{j * j % 7}" for j in range(20)], [f"{j},w{j % 2}" for j in range(20)]
    for at, rows in enumerate(parts):  # numbers in the first file, words in the second
        (folder / f"{at}.csv").write_text("\n".join(["a,b", *rows]))
    whole.write_text("\n".join(["a,b", *parts[0], *parts[1]]))
    assert evgp.pick(folder, 4) == evgp.pick(whole, 4)


def test_a_folder_of_json_lines_and_of_parquet_files(tmp_path) -> None:
    table = pa.table({"a": RANDOM.normal(size=30), "b": list("xyz") * 10})
    for name in ("json", "parquet"):
        (tmp_path / name).mkdir()
    for at, part in enumerate((table.slice(0, 11), table.slice(11))):
        lines = "\n".join(json.dumps(row) for row in part.to_pylist())
        (tmp_path / "json" / f"{at}.jsonl").write_text(lines)
        pq.write_table(part, tmp_path / "parquet" / f"{at}.parquet")
    picks = evgp.pick(table, 5)
    assert evgp.pick(tmp_path / "json", 5) == picks == evgp.pick(tmp_path / "parquet", 5)


def test_the_file_with_other_columns_is_named(folder) -> None:
    (folder / "b.csv").write_text("name,a,c,kind\nr,1,2,x\n")
    with refused(DatasetError):
        evgp.pick(folder, 6)


def test_other_files_in_the_folder_are_named(folder) -> None:
    (folder / "notes.md").write_text("notes")
    with refused(DatasetError):
        evgp.pick(folder, 6)


def test_files_of_two_kinds_are_refused(folder) -> None:
    (folder / "d.jsonl").write_text("{}")
    with refused(DatasetError):
        evgp.pick(folder, 6)


def test_text_is_not_read_in_parts(folder) -> None:
    with refused(DatasetError):
        evgp.pick(folder, 6, method="sharded")


def test_each_file_has_its_encoding(folder) -> None:
    rows = [line.replace("x", "é") for line in LINES]
    (folder / "later" / "c.csv").write_bytes("\n".join([HEAD, *rows[30:]]).encode("latin-1"))
    (folder / "b.csv").write_bytes("\n".join([HEAD, *rows[12:30]]).encode("utf-16"))
    (folder / "a.csv.gz").unlink()
    data = evgp.read_pool(folder, id="name")
    assert [note.split(";")[0].split(": ")[1] for note in data.notes] == [
        "recognised text in cp1252",
        "recognised text in utf-16",
    ]
    assert "kind=é" in data.features
