"""The tables to try things on are there."""

from pathlib import Path

import pytest

from evgp.datasets import ids, read_table
from evgp.datasets.bundled import main


def test_the_digits_are_written(tmp_path: Path) -> None:
    assert main(["digits", str(tmp_path / "new" / "digits.csv")]) == 0
    table = read_table(tmp_path / "new" / "digits.csv", text=["image"])
    assert len(table) == 1797
    assert len(table.names) == 65
    assert ids(table, "image")[:2] == ["digit-0000", "digit-0001"]
    assert not any("target" in name for name in table.names)


def test_a_wrong_call_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["letters"]) == 1
    assert "evgp: expected: python -m evgp.datasets.bundled digits" in capsys.readouterr().err
