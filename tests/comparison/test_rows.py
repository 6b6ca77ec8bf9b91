"""Rows come back from a file as they went in."""

import warnings
from dataclasses import astuple
from math import isnan, nan
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evgp.comparison.rows import Row, read_rows, write_rows
from evgp.errors import DatasetError, DataWarning
from tests.comparison.rows import row, study
from tests.messages import refused

NAMES = st.text(max_size=20).filter(lambda text: not text.startswith("'"))
WHOLE = st.integers(-(2**63), 2**63 - 1)
NUMBERS = st.floats(allow_nan=True, allow_infinity=True)
ROWS = st.builds(
    Row, NAMES, st.sampled_from(["regression", "classification"]), NAMES, *[WHOLE] * 5,
    *[NUMBERS] * 12,
)  # fmt: skip


def same(first: Row, second: Row) -> bool:
    def cells(one: Row) -> list[object]:
        return ["NaN" if isinstance(c, float) and isnan(c) else c for c in astuple(one)]

    return cells(first) == cells(second)


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@given(rows=st.lists(ROWS, max_size=4))
def test_rows_come_back_as_they_went_in(tmp_path_factory, suffix: str, rows: list[Row]):
    path = tmp_path_factory.mktemp("rows") / f"rows{suffix}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # a name like a formula is quoted in CSV
        write_rows(path, rows)
    back = read_rows(path)
    assert len(back) == len(rows)
    assert all(map(same, back, rows))


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_nan_is_a_missing_value_in_the_file(tmp_path: Path, suffix: str):
    path = tmp_path / f"rows{suffix}"
    write_rows(path, [row("evgp", 0, 0, mse=0.5), row("evgp", 0, 1, mse=nan)])
    if suffix == ".parquet":
        import pyarrow.parquet as pq

        table = pq.read_table(path)
        assert table["mse"].to_pylist() == [0.5, None]
        assert str(table["accuracy"].type) == "double"
    else:
        assert "nan" not in path.read_text()


def test_a_metric_that_a_file_lacks_is_nan(tmp_path: Path):
    path = tmp_path / "rows.csv"
    path.write_text(
        "dataset,kind,strategy,seed,round,labels,batch,members,train_loss,pick_seconds,"
        "train_seconds,mse,else\nyacht,regression,evgp,0,0,10,10,5,,0.1,2,0.5,x\n"
    )
    (only,) = read_rows(path)
    assert only.mse == 0.5
    assert isnan(only.accuracy)
    assert isnan(only.train_loss)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "price,size\n1,2\n"),
        ("a.csv", ""),
        ("a.csv", b"\xff\xfe\x00"),
        ("a.parquet", "no parquet"),
        ("a.xlsx", "x"),
    ],
)
def test_a_file_that_is_no_such_table_is_refused_clearly(tmp_path: Path, name, text):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with refused(DatasetError):
        read_rows(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (",regression,", ",ranking,"),
        (",evgp,0,", ",evgp,first,"),
    ],
)
def test_a_bad_cell_is_named(tmp_path: Path, old: str, new: str):
    path = tmp_path / "rows.csv"
    write_rows(path, [row("evgp", 0, 0, mse=0.5)])
    path.write_text(path.read_text().replace(old, new))
    with refused(DatasetError):
        read_rows(path)


def test_a_file_of_another_kind_is_not_written(tmp_path: Path):
    with refused(DatasetError):
        write_rows(tmp_path / "rows.xlsx", study(seeds=1))
    assert not list(tmp_path.iterdir())
