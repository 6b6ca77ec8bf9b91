"""Files of labelled rows are understood, with a note on how."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evgp.datasets import Encoder, Labelled, Table, ids, read_labelled, write_rows
from evgp.errors import DatasetError
from tests.messages import refused

POOL = Table(
    pa.table({"key": ["01", "02", "x3", "x4"], "a": [1.0, 2.0, 3.0, 5.0], "b": [0, 1, 1, 0]}),
    "pool.csv",
)
ENCODER = Encoder.fit(POOL, id="key")
NAMES = ids(POOL, "key")


def read(folder: Path, content: str, name: str = "known.csv", id: str | None = "key") -> Labelled:
    (folder / name).write_text(content)
    return read_labelled(folder / name, ENCODER, NAMES if id else range(4), id=id)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("known.txt", "x3\n01\n"),
        ("known.txt", "key\nx3\n\n01\nx3\n"),
        ("known", "x3\r\n01\r\n"),
        ("known.csv", "key\nx3\n01\n"),
        ("known.csv", '"x3"\n"01"\n'),
        ("known.csv", "key,label\nx3,7\n01,8\n"),
        ("known.csv", "rank,id,gain,variance_left\n1,x3,0.5,0.4\n2,01,0.1,0.3\n"),
        ("known.tsv", "label\tkey\n7\tx3\n8\t01\n"),
        ("known.csv", "key,a,b,label\nx3,3,1,7\n01,1,0,8\n"),
    ],
)
@pytest.mark.filterwarnings("ignore::evgp.errors.DataWarning")
def test_ids_are_found(tmp_path: Path, name: str, content: str) -> None:
    actual = read(tmp_path, content, name)
    assert actual.rows.tolist() == [2, 0]
    assert actual.x is None
    assert "read as 2 " in actual.note


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("known.txt", "2\n0\n"),
        ("known.csv", "index\n2\n0\n"),
        ("known.csv", "2\n0\n"),
        ("known.csv", "rank,index,gain,variance_left\n1,2,0.5,0.4\n2,0,0.1,0.3\n"),
    ],
)
def test_row_numbers_are_found(tmp_path: Path, name: str, content: str) -> None:
    actual = read(tmp_path, content, name, id=None)
    assert actual.rows.tolist() == [2, 0]
    assert "row numbers (counted from 0)" in actual.note


def test_a_parquet_of_ids_is_understood(tmp_path: Path) -> None:
    pq.write_table(pa.table({"key": ["x4"]}), tmp_path / "known.parquet")
    assert read_labelled(tmp_path / "known.parquet", ENCODER, NAMES, id="key").rows.tolist() == [3]


def test_a_table_of_rows_is_encoded_as_the_pool(tmp_path: Path) -> None:
    actual = read(tmp_path, "b,a\n1,2\n0,9\n", id=None)
    assert len(actual.rows) == 0
    assert "2 labelled rows from outside the pool" in actual.note
    assert actual.x is not None
    np.testing.assert_array_equal(actual.x[0], ENCODER.transform(POOL)[1])


def test_a_table_may_hold_rows_of_the_pool_and_others(tmp_path: Path) -> None:
    actual = read(tmp_path, "key,a,b\nnew,9,0\n02,2,1\n")
    assert actual.rows.tolist() == [1]
    assert actual.x is not None and len(actual.x) == 1
    assert "1 labelled row of the pool and 1 labelled row from outside" in actual.note


def test_rows_equal_to_rows_of_the_pool_are_those_rows(tmp_path: Path) -> None:
    pool = Table(pa.table({"a": [1.0, 0.0, 1.0, 5.0, 1.0], "b": [0, 1, 0, 1, 0]}), "pool.csv")
    encoder = Encoder.fit(pool)
    x = encoder.transform(pool)

    def labels_in(*lines: str) -> Labelled:
        (tmp_path / "known.csv").write_text("\n".join(["b,a", *lines]) + "\n")
        return read_labelled(tmp_path / "known.csv", encoder, range(5), pool=x)

    two = labels_in("0,1", "1,-0.0", "0,1")
    assert two.rows.tolist() == [0, 1, 2] and two.x is None
    assert two.note.endswith("read as 3 labelled rows of the pool")
    mixed = labels_in("0,1", "7,7", "0,1", "0,1", "0,1", "0,5")
    assert mixed.rows.tolist() == [0, 2, 4]
    assert mixed.x is not None
    (tmp_path / "known.csv").write_text("b,a\n7,7\n0,1\n0,5\n")
    np.testing.assert_array_equal(
        mixed.x, read_labelled(tmp_path / "known.csv", encoder, range(5)).x
    )
    assert "3 labelled rows of the pool and 3 labelled rows from outside" in mixed.note


def test_an_id_with_a_quote_before_it_is_found(tmp_path: Path) -> None:
    names = ["=1+2", "'x", "x", "-a"]
    (tmp_path / "known.csv").write_text("id,gain\n'=1+2,1\n'x,2\n'-a,3\n")
    assert read_labelled(tmp_path / "known.csv", ENCODER, names, id="key").rows.tolist() == [
        0,
        1,
        3,
    ]
    (tmp_path / "known.txt").write_text("'=1+2\n-a\n")
    assert read_labelled(tmp_path / "known.txt", ENCODER, names, id="key").rows.tolist() == [0, 3]


def test_a_pool_of_one_column_is_not_taken_for_ids(tmp_path: Path) -> None:
    pool = Table(pa.table({"a": [1.0, 2.0, 3.0]}), "pool.csv")
    (tmp_path / "known.csv").write_text("a\n1\n2\n")
    encoder = read_labelled(tmp_path / "known.csv", Encoder.fit(pool), range(3))
    assert len(encoder.rows) == 0 and encoder.x is not None


@pytest.mark.parametrize(
    ("content", "id"),
    [
        (
            "x3\nzz\nqq\n",
            "key",
        ),
        (
            "2\n4\n",
            None,
        ),
        ("-1\n", None),
        (
            "c,d\n1,2\n",
            "key",
        ),
        ("", "key"),
    ],
)
def test_what_is_not_understood_is_refused_clearly(
    tmp_path: Path, content: str, id: str | None
) -> None:
    with refused(DatasetError):
        read(tmp_path, content, id=id)


def test_a_missing_file_is_refused_clearly(tmp_path: Path) -> None:
    with refused(DatasetError):
        read_labelled(tmp_path / "nowhere.csv", ENCODER, NAMES, id="key")
    (tmp_path / "known.txt").write_bytes(b"caf\xe9\n")
    with refused(DatasetError):
        read_labelled(tmp_path / "known.txt", ENCODER, NAMES, id="key")


def test_ids_are_different_and_present() -> None:
    def named(*cells: object) -> Table:
        return Table(pa.table({"key": pa.array(cells)}), "pool.csv")

    assert ids(named("7", "-8"), "key") == [7, -8]
    assert ids(named("7", "08"), "key") == ["7", "08"]
    assert ids(named(7, 8), "key") == [7, 8]
    fine = Table(pa.table({"key": pa.array([1, 2], pa.timestamp("ns"))}), "pool.csv")
    assert ids(fine, "key")[0] == "1970-01-01 00:00:00.000000001"
    with refused(DatasetError):
        ids(named("a", "b", "a", "b", "c"), "key")
    with refused(DatasetError):
        ids(named("a", None), "key")
    with refused(DatasetError):
        ids(named([1], [2]), "key")


@pytest.mark.parametrize("first", ["60", "-1", "1.5", "r99"])
def test_a_mistyped_first_line_is_no_heading(tmp_path, first) -> None:
    named = first == "r99"
    names = [f"r{row}" for row in range(5)] if named else range(5)
    path = tmp_path / "labelled.txt"
    path.write_text(f"{first}\n{'r1' if named else 2}\n")
    with refused(DatasetError):
        read_labelled(path, None, names, id="name" if named else None)
    path.write_text(f"{'name' if named else 'row'}\n{'r1' if named else 2}\n")
    actual = read_labelled(path, None, names, id="name" if named else None)
    assert actual.rows.tolist() == [1 if named else 2]


def test_ids_beyond_64_bits_stay_text_that_every_file_can_hold(tmp_path: Path) -> None:
    long = ["89490200001234567890", "9" * 5000]
    for words, result in ((long, long), (["7", str(2**63 - 1)], [7, 2**63 - 1])):
        actual = ids(Table(pa.table({"key": words}), "pool.csv"), "key")
        assert actual == result
        write_rows(tmp_path / "picks.parquet", {"key": actual})
        assert pq.read_table(tmp_path / "picks.parquet")["key"].to_pylist() == result
