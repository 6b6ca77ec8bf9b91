"""The first page shows what the command really prints."""

import re
from pathlib import Path

import pytest

from evgp.datasets.demo import write_digits

PAGE = Path(__file__).parents[2] / "docs" / "start.md"


def test_the_first_page_shows_real_picks(run, tmp_path: Path) -> None:
    page = PAGE.read_text()
    shown = re.findall(r"^ +(\d+) +(digit-\d{4}) +([\d.]+) +([\d.]+)$", page, re.MULTILINE)
    assert len(shown) == 5
    write_digits(tmp_path / "digits.csv")
    ran = run("pick", tmp_path / "digits.csv", "-k", 5, "--id", "image")
    picked = [line.split("\t") for line in ran.out.splitlines()[1:]]
    assert [row[:2] for row in picked] == [list(row[:2]) for row in shown]
    for (*_, gain, left), (*_, said_gain, said_left) in zip(picked, shown, strict=True):
        assert float(said_gain) == pytest.approx(float(gain), rel=1e-3)
        assert float(said_left) == pytest.approx(float(left), rel=1e-3)
    match = re.search(r"^(5 of 1,797 rows picked: .*) Written: ", page, re.MULTILINE)
    notes = re.findall(r"^note: .*$", page, re.MULTILINE)
    assert match is not None
    assert ran.err.splitlines() == [*notes, match[1]]
