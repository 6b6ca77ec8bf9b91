"""In a real browser, the policy admits the script of the page, and the script works."""

import csv
import re

import numpy as np
import pytest
from playwright.sync_api import sync_playwright

from evgp.datasets import pictures_of
from evgp.datasets.files import harmless
from evgp.pool import Selection
from evgp.report import render, summarise
from tests.conftest import QUIET, chromium


@pytest.mark.slow
def test_the_script_runs_under_the_policy(selection, x, opened):
    columns = {f"c{j}": list(range(60)) for j in range(20)}
    page, console = opened(render(summarise(selection, x=x, columns=columns)))
    assert re.search(r'data-key="gain"[^>]*><button type="button">gain</button>', page)
    assert '<div class="tools">' in page
    assert "CONSOLE" not in console


@pytest.mark.slow
def test_pictures_are_shown_under_the_policy(selection, x, opened):
    images = np.random.default_rng(0).random((60, 3, 12, 12))
    page, console = opened(render(summarise(selection, x=x, pictures=pictures_of(images))))
    assert '<circle class="spot"' in page.replace(' r="13"', "").replace(' r="6"', "")
    assert re.search(r'data-key="gain"[^>]*><button type="button">gain</button>', page)
    assert "CONSOLE" not in console


@pytest.mark.slow
def test_formulas_are_harmless_in_the_file_that_the_page_writes(x, tmp_path):
    texts = ["=1+2", "-3", "+x", "@a", "-1e-3", "a=b", '=A1,"q"']
    chosen = Selection(np.arange(7), np.linspace(7e-9, 1e-9, 7))
    summary = summarise(chosen, x=x, columns={"=head": [*texts, *["b"] * (len(x) - 7)]})
    path = tmp_path / "report.html"
    path.write_text(render(summary), encoding="utf-8")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium(), args=QUIET.split())
        page = browser.new_page()
        page.goto(path.as_uri())
        with page.expect_download() as saved:
            page.click("#save")
        saved.value.save_as(tmp_path / "saved.csv")
        browser.close()
    with (tmp_path / "saved.csv").open(newline="") as stream:
        head, *rows = csv.reader(stream)
    columns, count = harmless({"=head": texts})
    assert count == 5 and head[-1] == "'=head" == next(iter(columns))
    assert [row[-1] for row in rows] == columns["'=head"]
    assert [float(row[2]) for row in rows] == pytest.approx(chosen.gains.tolist())
