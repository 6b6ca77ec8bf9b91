"""The tables to try things on are there."""

from pathlib import Path

import pytest

from evgp.datasets import ids, load_csv, read_table
from evgp.datasets.bundled import main


def test_the_digits_are_written(tmp_path: Path) -> None:
    assert main(["digits", str(tmp_path / "new" / "digits.csv")]) == 0
    table = read_table(tmp_path / "new" / "digits.csv", text=["image"])
    assert len(table) == 1797
    assert len(table.names) == 65
    assert ids(table, "image")[:2] == ["digit-0000", "digit-0001"]
    assert not any("target" in name for name in table.names)


def test_the_diabetes_table_holds_what_is_to_be_predicted(tmp_path: Path) -> None:
    assert main(["diabetes", str(tmp_path / "diabetes.csv")]) == 0
    data = load_csv(tmp_path / "diabetes.csv", "progression", drop=["id"])
    assert len(data.x) + len(data.x_test) == 442
    assert data.x.shape[1] == 10


def test_a_wrong_call_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["letters"]) == 1
    assert "evgp: expected: python -m evgp.datasets.bundled digits" in capsys.readouterr().err
