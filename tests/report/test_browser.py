"""In a real browser the policy lets the page's own script run, and it does its work."""

import re

import numpy as np
import pytest

from evgp.datasets import pictures_of
from evgp.report import render, summarise


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
