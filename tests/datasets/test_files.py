"""Outputs are whole or not there."""

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from evgp.datasets.files import atomic, check_writable, write_rows, write_text
from evgp.errors import DatasetError, DataWarning
from tests.messages import refused, warned

COLUMNS = {"rank": [1, 2], "id": ["a,b", 'say "ü"'], "gain": [0.1 + 0.2, 1e-300]}


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_failure_leaves_nothing(tmp_path: Path, failure: type[BaseException]) -> None:
    with pytest.raises(failure), atomic(tmp_path / "out.csv") as part:
        part.write_text("half")
        raise failure
    assert names(tmp_path) == []


def test_a_failure_keeps_the_old_file(tmp_path: Path) -> None:
    old = tmp_path / "out.csv"
    old.write_text("old")
    with pytest.raises(ValueError), atomic(old) as part:
        part.write_text("half")
        raise ValueError
    assert old.read_text() == "old"
    assert names(tmp_path) == ["out.csv"]


def test_nothing_is_seen_before_it_is_whole(tmp_path: Path) -> None:
    with atomic(tmp_path / "out.csv") as part:
        part.write_text("whole")
        assert not (tmp_path / "out.csv").exists()
    assert (tmp_path / "out.csv").read_text() == "whole"


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    real.write_text("old")
    link.symlink_to(real)
    write_text(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"


def test_text_like_a_formula_gets_a_quote_in_separated_files(tmp_path: Path) -> None:
    cells = ["=A1", "+x", "-x", "@x", "\tx", "\rx", "-3", "+4.5e-6", -3, -0.5, "x=1", ""]
    safe = [f"'{cell}" for cell in cells[:6]] + [str(cell) for cell in cells[6:]]
    for name, mark in (("out.csv", ","), ("out.tsv", "\t")):
        with warned(DataWarning):
            write_rows(tmp_path / name, {"id": cells, "rank": list(range(12))})
        with (tmp_path / name).open(newline="") as stream:
            assert [row["id"] for row in csv.DictReader(stream, delimiter=mark)] == safe
    write_rows(tmp_path / "out.jsonl", {"id": cells})
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == cells


def test_rows_come_back_as_csv(tmp_path: Path) -> None:
    write_rows(tmp_path / "out.csv", COLUMNS)
    with (tmp_path / "out.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["id"] for row in rows] == COLUMNS["id"]
    assert [float(row["gain"]) for row in rows] == COLUMNS["gain"]


def test_rows_come_back_as_tsv(tmp_path: Path) -> None:
    write_rows(tmp_path / "out.tsv", COLUMNS)
    assert (tmp_path / "out.tsv").read_text().startswith("rank\tid\tgain\n1\ta,b\t0.3000")


def test_rows_come_back_as_json_lines(tmp_path: Path) -> None:
    write_rows(tmp_path / "out.jsonl", COLUMNS | {"left": [float("nan"), 1.0]})
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["gain"] for row in rows] == COLUMNS["gain"]
    assert [row["left"] for row in rows] == [None, 1.0]


def test_rows_come_back_as_parquet(tmp_path: Path) -> None:
    write_rows(tmp_path / "out.parquet", COLUMNS)
    assert pq.ParquetFile(tmp_path / "out.parquet").read().to_pydict() == COLUMNS


def test_what_cannot_be_written_is_refused_first(tmp_path: Path) -> None:
    for path in (
        tmp_path,
        tmp_path / "out.docx",
        tmp_path / "nowhere" / "out.csv",
        Path("/dev/null"),
    ):
        with refused(DatasetError):
            check_writable(path)
    with refused(DatasetError):
        check_writable(tmp_path / "out.csv", (".html",))
    check_writable(tmp_path / "out.CSV")


def test_a_folder_that_may_not_be_written_to_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)
    with refused(DatasetError):
        check_writable(tmp_path / "out.csv")
