"""The page of a comparison is self-contained and well formed, and escapes names."""

import base64
import hashlib
import re
from dataclasses import replace
from itertools import pairwise

import pytest

from evgp.comparison.curves import apart
from evgp.comparison.page import render
from evgp.comparison.rows import Row
from evgp.comparison.statistics import summarise
from tests.comparison.rows import curves, study
from tests.report.test_render import HOSTILE, Page


def page_of(rows: list[Row], **settings: object) -> str:
    return render(summarise(rows), settings)


@pytest.fixture(scope="module")
def page() -> str:
    return page_of(study(), command="evgp compare yacht digits", version="9.9", members=20)


def test_the_page_is_well_formed(page):
    walked = Page(page)
    assert {"main", "figure", "table", "svg", "details"} <= {tag for tag, _ in walked.tags}
    drawn = [attributes for _, attributes in walked.tags if attributes.get("role") == "img"]
    assert len(drawn) == 9
    assert all(attributes["aria-label"] for attributes in drawn)
    assert all(
        attributes.get("aria-labelledby") in {None, *walked.ids} for _, attributes in walked.tags
    )


def test_no_request_is_sent(page):
    assert "://" not in page
    assert "url(" not in page
    for tag, attributes in Page(page).tags:
        assert tag not in {"link", "img", "iframe", "object", "script", "base", "form"}
        assert not {"src", "href", "style", "action"} & attributes.keys()
        assert not [key for key in attributes if key.startswith("on")]


def test_the_policy_admits_the_style_and_no_more(page):
    style = re.search(r"<style>(.*?)</style>", page, re.S)[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = next(
        attributes["content"]
        for tag, attributes in Page(page).tags
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}'; ")
    assert "script-src" not in policy


def test_names_do_not_become_markup(page):
    rows = study([(HOSTILE, "regression")], ("random", f"evgp{HOSTILE}", HOSTILE), 2, 3)
    hostile = page_of(rows, command=HOSTILE, **{HOSTILE: HOSTILE})
    assert "<img" not in hostile
    assert "<script" not in hostile
    walked = Page(hostile)
    assert {tag for tag, _ in walked.tags} <= {tag for tag, _ in Page(page).tags}
    assert not [key for _, attributes in walked.tags for key in attributes if key.startswith("on")]
    reported = next(text for text in walked.inside("code"))
    assert reported == HOSTILE


def test_it_says_who_wins_and_what_was_run(page):
    prose = Page(page).prose
    assert "6 strategies on 2 datasets" in prose
    assert "evgp has the best mean rank, 1 of 6" in prose
    assert "clearly better in 4 of 4 comparisons" in prose
    assert "with 3 seeds that is a hint, not a proof" in prose
    assert "% fewer" in prose
    assert "A test of 3 seeds proves little" in prose
    assert "evgp compare yacht digits" in prose
    assert "Bands are the range over seeds" in prose
    assert "evgp 9.9" in prose


def test_the_best_is_marked_by_more_than_colour(page):
    assert "★" in page
    assert '<span class="unseen">best: </span>' in page


def test_no_labels_are_saved_until_a_test_says_so():
    noisy = {"random": [[3.0, 1.0], [4.0, 2.0]], "evgp": [[1.0, 0.5], [3.9, 1.5]]}
    prose = Page(page_of(curves(noisy))).prose
    assert "no clear difference" in prose and "no test confirms it" in prose
    assert "% fewer" not in prose
    sure = [[3.0 + 0.01 * i, 1.0] for i in range(6)]
    rows = curves({"random": sure, "evgp": [[a - 1 - 0.01 * a, 0.5] for a, _ in sure]})
    prose = Page(page_of(rows)).prose
    assert "% fewer" in prose and "no clear difference" not in prose


def test_no_strategy_is_best_at_reaching_what_random_had_at_once():
    page = page_of(curves({"random": [[1.0, 2.0], [1.1, 2.2]], "evgp": [[0.5, 0.4], [0.6, 0.3]]}))
    cells = re.findall(r"<td>([^\n]*?)10, the first batch</td>", page)
    assert len(cells) == 2
    assert not any("★" in cell.rpartition("<td>")[2] for cell in cells)


def test_a_loss_is_on_the_page():
    lost = curves({"random": [[3.0, 1.0], [4.0, 1.1]], "evgp": [[5.0, 3.0], [6.5, 4.0]]})
    prose = Page(page_of(lost)).prose
    assert "random has the lowest test MSE" in prose
    assert "20 labels by evgp do not reach what 20 by random do" in prose


@pytest.mark.parametrize(
    "rows",
    [
        curves({"random": [[1.0]], "evgp": [[0.5]]}),
        curves({"random": [[2.0, 1.0]], "evgp": [[1.0, 0.5]]}),
        curves({"evgp": [[2.0, 1.0], [2.0, 1.5]]}),
        curves({"random": [[2.0, 1.0], [2.0, 1.5]]}),
        curves({"badge": [[2.0, 1.0], [2.0, 1.5]], "evgp": [[2.0, 1.0], [2.0, 1.5]]}),
        curves({"random": [[1.0, 1.0], [1.0, 1.0]], "evgp": [[1.0, 1.0], [1.0, 1.0]]}),
        curves({"random": [[0.0, 0.0], [0.0, 0.0]], "evgp": [[0.0, 0.0], [0.0, 0.0]]}),
        curves({"random": [[2.0, 1.0]], "evgp": [[2.0, 1.0]]}, "bias"),
        curves({"random": [[2.0, 1.0]]}, "accuracy"),
        curves({"random": [[1e-9, 1e-12], [2e-9, 1e-12]], "evgp": [[1e9, 1e8], [1e9, 2e8]]}),
    ],
    ids=["one round", "one seed", "alone", "only random", "no random", "equal", "zero",
         "no central metric", "no metric", "far apart"],
)  # fmt: skip
def test_whatever_was_run_has_a_page(rows):
    page = page_of(rows)
    Page(page)
    assert not re.findall(r"\b(nan|inf|None)\b", page)


def test_many_strategies_and_datasets_have_a_page():
    names = (*(f"s{i}" for i in range(20)), "evgp", "evgp-p90", "evgp-a", "evgp-b", "random")
    rows = study([(f"d{i}", "regression") for i in range(5)], names, 2, 3)
    walked = Page(page_of(rows))
    assert "25 strategies on 5 datasets" in walked.prose
    assert not any(attributes.get("class") == "names" for _, attributes in walked.tags)
    assert any(attributes.get("class") == "legend strategies many" for _, attributes in walked.tags)


def test_differing_members_are_listed():
    rows = curves({"random": [[2.0, 1.0], [3.0, 1.0]], "evgp": [[2.0, 1.0], [2.5, 1.0]]})
    rows = [replace(r, members=9) if r.strategy == "evgp" and r.seed else r for r in rows]
    prose = Page(page_of(rows)).prose
    assert "5, 9" in prose
    assert "0 (5) , 1 (9)" in prose or "0 (5), 1 (9)" in prose


def test_names_at_line_ends_never_touch():
    places = apart([50.0, 50.1, 50.2, 99.0, 99.5, 100.0])
    gaps = [b - a for a, b in pairwise(places)]
    assert min(gaps) >= 6.5 - 1e-9
    assert 0 <= places[0] <= places[-1] <= 100


@pytest.mark.slow
def test_a_browser_finds_nothing_to_refuse(page, opened) -> None:
    _, console = opened(page)
    assert "CONSOLE" not in console
