"""The page of the suites is that of the committed rows, and the README says the same."""

import re
from pathlib import Path

import numpy as np
import pytest

from evgp.comparison.run import finished_rows, open_store
from evgp.comparison.statistics import averaged
from experiments import suites_page
from experiments.forecast import GOAL, correlations
from experiments.worth import RESULTS

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_page_is_that_of_the_committed_rows() -> None:
    assert suites_page.PAGE.read_text(encoding="utf-8") == suites_page.page()


def test_the_readme_says_what_the_page_says() -> None:
    said = suites_page.PAGE.read_text(encoding="utf-8")
    lines = re.findall(r"^\| `(.+?)` \| [\d.]+ \| (\d+ %) \((\d+ to \d+)\) \|.*$", said, re.M)
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    row = re.search(r"\| labels needed \|(.*?)\|", readme)
    assert row is not None
    everywhere = dict(reversed([(name, (share, span)) for name, share, span in lines]))
    for name in ("evgp", "evgp-cells"):
        share, span = everywhere[name]
        assert share in row[1] and span in row[1], name
    for name in ("kmeans", "bait", "typiclust", "lcmd"):
        assert everywhere[name][0] in row[1], name


def test_no_forecast_is_shown_below_the_goal() -> None:
    best = max(abs(value) for _, value, _ in correlations())
    said = suites_page.PAGE.read_text(encoding="utf-8")
    assert ("left out" in said) == (best < GOAL)


def test_the_readme_says_how_digits_fare() -> None:
    """The mean over learners and splits, as in the study of what picks are worth."""
    rows = averaged(finished_rows(open_store(RESULTS / "digits")))
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    for name, words in (("evgp", "EV-GP"), ("evgp-cells", "its cells"), ("typiclust", "TypiClust"),
                        ("random", "random")):  # fmt: skip
        means = [
            np.mean([row.accuracy for row in rows if (row.strategy, row.labels) == (name, count)])
            for count in (20, 40)
        ]
        assert f"{words} {means[0]:.2f} and {means[1]:.2f}" in readme, name
