"""In a real browser the policy lets the page's own script run, and it does its work."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from evgp.datasets import pictures_of
from evgp.report import render, summarise

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update --enable-logging=stderr"
)


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
def test_the_script_runs_under_the_policy(selection, x, tmp_path: Path):
    page = tmp_path / "report.html"
    columns = {f"c{j}": list(range(60)) for j in range(20)}
    page.write_text(render(summarise(selection, x=x, columns=columns)), encoding="utf-8")
    ran = subprocess.run(
        [CHROMIUM, *QUIET.split(), f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom",
         page.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert re.search(r'data-key="gain"[^>]*><button type="button">gain</button>', ran.stdout)
    assert '<div class="tools">' in ran.stdout
    assert "CONSOLE" not in ran.stderr


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
def test_pictures_are_shown_under_the_policy(selection, x, tmp_path: Path):
    page = tmp_path / "report.html"
    images = np.random.default_rng(0).random((60, 3, 12, 12))
    page.write_text(render(summarise(selection, x=x, pictures=pictures_of(images))), "utf-8")
    ran = subprocess.run(
        [CHROMIUM, *QUIET.split(), f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom",
         page.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert '<circle class="spot"' in ran.stdout.replace(' r="13"', "").replace(' r="6"', "")
    assert re.search(r'data-key="gain"[^>]*><button type="button">gain</button>', ran.stdout)
    assert "CONSOLE" not in ran.stderr
