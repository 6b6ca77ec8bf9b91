"""The page of the suites is that of the committed rows, and the README says the same."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import RidgeCV
from sklearn.neighbors import KNeighborsRegressor

from evgp.comparison.run import finished_rows, open_store
from evgp.comparison.statistics import averaged
from evgp.comparison.suite import suite_pools
from experiments import suites_page
from experiments.forecast import GOAL, forecasts, leaving_out
from experiments.rule import trials
from experiments.worth import RESULTS, TUNING
from tests.comparison.test_judge import planted

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_page_is_that_of_the_committed_rows() -> None:
    assert suites_page.PAGE.read_text(encoding="utf-8") == suites_page.page()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["README.md", "docs/faq.md", "docs/compare.md"])
def test_other_pages_say_the_same(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    message = suites_page.said_elsewhere()[name]
    assert message in text and text == suites_page.marked(text, message)


def test_the_readme_says_what_the_page_says() -> None:
    text = suites_page.PAGE.read_text(encoding="utf-8")
    lines = re.findall(r"^\| `(.+?)` \| [\d.]+ \| (\d+ %) \((\d+ to \d+)\) \|.*$", text, re.M)
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    row = re.search(r"\| labels needed \|(.*?)\|", readme)
    assert row is not None
    everywhere = dict(reversed([(name, (share, span)) for name, share, span in lines]))
    for name in ("evgp", "evgp-cells"):
        share, span = everywhere[name]
        assert share in row[1] and span in row[1], name
    for name in ("kmeans", "bait", "typiclust", "lcmd"):
        assert everywhere[name][0] in row[1], name


def test_the_rule_for_cells_is_chosen_on_tuning_pools_and_tested_on_the_others() -> None:
    needs = {"random": 1.0, "evgp": 0.8, "evgp-cells": 0.6}
    rows = []
    for suite_pool in [pool for pool in suite_pools() if pool.suite == "tables"]:
        tuned = suite_pool.name in TUNING
        # On tuning pools cells need fewer labels for classes alone, on the others for numbers.
        fewer = tuned == bool(suite_pool.classes)
        own = needs | {"evgp-cells": 0.6 if fewer else 1.2}
        rows += [replace(item, dataset=suite_pool.name) for item in planted(own, pools=1, seeds=3)]
    best = trials(rows)[0]
    assert best.words.startswith("if labels are classes") and best.tuning.ratio < 0.95
    assert best.validation.ratio > 1 and "do not confirm" in suites_page.advice(best)
    assert set(best.tuning.pools) <= set(TUNING) and not set(best.validation.pools) & set(TUNING)


def test_a_forecast_that_can_be_learnt_is_found_and_pools_of_the_same_data_are_left_out() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(40, 3))
    source = np.arange(40) // 2
    guess, reach = leaving_out(RidgeCV(), x, x[:, 0], source)
    assert stats.spearmanr(guess, x[:, 0]).statistic > 0.95 and (reach > 0).all()
    # Pairs of pools that share what they save and nothing else: the nearest gives it away.
    x = np.repeat(random.normal(size=(20, 3)), 2, axis=0)
    y = np.repeat(random.normal(size=20), 2)
    model = KNeighborsRegressor(1)
    assert np.sqrt(np.mean((leaving_out(model, x, y, source)[0] - y) ** 2)) > 0.8
    assert np.mean(np.abs(leaving_out(model, x, y, np.arange(40))[0] - y)) < 1e-9


def test_no_forecast_is_shown_below_the_goal() -> None:
    best = max(forecast.rank for forecast in forecasts())
    text = suites_page.PAGE.read_text(encoding="utf-8")
    assert ("left out" in text) == (best < GOAL)


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
