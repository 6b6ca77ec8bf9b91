"""Figures in the prose are those of the committed rows."""

import re
from pathlib import Path

import numpy as np

from evgp.studies.model_claims import paired
from evgp.studies.model_figures import ranks
from evgp.studies.rows import read, where
from evgp.studies.running_time import PAPER, table
from tests.conftest import data_folder, missing

ROOT = Path(__file__).parents[2]


def test_what_the_page_on_networks_says() -> None:
    rows = read(ROOT / "studies" / "model-selection" / "rows.csv")
    said = (ROOT / "docs" / "choose.md").read_text(encoding="utf-8")
    played, tried = where(rows, kind="round"), where(rows, kind="ladder")
    for name, words in (
        ("naval", "less test error on naval"),
        ("sinusoidal", "less on sinusoidal"),
    ):
        gap, _ = paired(played, name, "evgp-ms", "fixed")
        assert f"{gap:.0f} % {words}" in " ".join(said.split())
    rank = np.mean(ranks(where(tried, dataset="kin8nm", labels=200), "score"))
    assert f"(Spearman {rank:.2f} on kin8nm at 200 labels)" in said
    for name in ("kin8nm", "protein"):
        assert abs(paired(played, name, "evgp-ms", "fixed")[0]) < 5
    assert paired(played, "protein", "evgp-ms", "naswot")[0] > 5
    assert paired(played, "naval", "evgp-ms", "naswot")[0] < -5


def test_seconds_stand_beside_the_papers() -> None:
    rows = [
        {"dataset": "mnist", "strategy": "evgp", "pool": 10_000, "labels": n, "seconds": s}
        for n, s in ((100, 4.25), (100, 5.25), (400, 1234.4))
    ]
    lines = table(rows).splitlines()
    assert "| EV-GP, here | 10,000 | 4.8 |  |  | 1,234 |" in lines
    assert "| EV-GP, paper | 10,000 | 1,120 | 2,089 | 3,159 | 4,283 |" in lines
    assert "| BADGE, paper | 10,000 | 12 | 23 | 35 | 47 |" in lines


def test_the_papers_seconds_are_the_papers() -> None:
    """As they stand in its tables, where that text is at hand."""
    folder = data_folder()
    paper = None if folder is None else folder.parent / "paper" / "ev-gp.tex"
    if paper is None or not paper.exists():
        missing("the paper's text")
    said = paper.read_text(encoding="utf-8")
    for found in PAPER.values():
        for seconds in found.values():
            for value in seconds.values():
                assert re.search(rf"\b{value}\b", said), value
