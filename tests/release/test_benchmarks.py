"""Figures that pages quote are those of the records."""

import csv

from benchmarks.common import RESULTS, ROOT
from benchmarks.page import PAGE, SECTIONS, page
from benchmarks.said import command


def test_the_page_is_drawn_from_the_records() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(RESULTS), "run: python -m benchmarks.page"
    assert {path.stem for path in RESULTS.iterdir()} == set(SECTIONS) | {"quality"}


def test_releases_quote_the_record_of_the_command() -> None:
    rows = list(csv.DictReader((RESULTS / "command.csv").read_text().splitlines()))
    quoted = (ROOT / "docs" / "release.md").read_text(encoding="utf-8")
    assert command(rows) in " ".join(quoted.split())
