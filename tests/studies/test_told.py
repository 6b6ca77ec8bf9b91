"""Figures in the prose are those of the committed rows."""

from pathlib import Path

import numpy as np

from evgp.studies.model_figures import ranks
from evgp.studies.model_selection import paired
from evgp.studies.rows import read, where

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
