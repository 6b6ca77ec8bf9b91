"""Names, focus and contrast by axe-core's rules, in both colour schemes and on a phone."""

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from typer.testing import CliRunner

from evgp.cli.main import app
from tests.labelling.web.test_browser import Labeller, served

PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 800}


def wrong(page) -> list[str]:
    """Every rule that a page breaks, with the first element that does."""
    axe = Axe().run(page).response["violations"]
    return [f"{item['id']}: {item['help']}; {item['nodes'][0]['html'][:200]}" for item in axe]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_labelling_pages(spam, scheme, browsers) -> None:
    spam.next(20)
    with served(spam, k=20) as address, browsers() as (browser,):
        asked = browser.new_context(color_scheme=scheme).new_page()
        asked.goto(address)
        assert wrong(asked) == []
        for size in (DESK, PHONE):
            ann = Labeller(
                browser, address, f"ann{size['width']}", color_scheme=scheme, viewport=size
            )
            assert wrong(ann.page) == []
            for key in "121":
                ann.says(key, key)
            ann.saved(3)
            ann.says("s", "skip")
            assert wrong(ann.page) == []
            ann.page.click("nav >> text=Overview")
            ann.page.wait_for_selector("svg.map path.c0", state="attached")
            assert wrong(ann.page) == []


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Every page that is written to a file."""
    folder = tmp_path_factory.mktemp("reports")
    x = np.random.default_rng(0).normal(size=(90, 3))
    for name, subset in (("train", x[:40]), ("test", x[40:])):
        lines = [f"r{i}," + ",".join(f"{v:.4f}" for v in (*row, row.sum()))
                 for i, row in enumerate(subset)]  # fmt: skip
        (folder / f"{name}.csv").write_text("\n".join(["id,a,b,c,y", *lines]) + "\n")
    runs = [
        "pick train.csv -k 8 --id id --drop y -o picks.csv --report pick.html",
        "audit train.csv test.csv --label y --id id --report audit.html",
        "campaign new of train.csv --id id --number --drop y",
        "campaign next of -k 6",
        "campaign report of -o campaign.html",
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for run in runs:
            done = CliRunner().invoke(app, run.split(), prog_name="evgp")
            assert done.exit_code == 0, done.output
    return folder


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_reports(reports, scheme, browsers) -> None:
    pages = sorted(reports.glob("*.html"))
    assert len(pages) == 3
    with browsers() as (browser,):
        for file in pages:
            for size in (DESK, PHONE):
                page = browser.new_context(color_scheme=scheme, viewport=size).new_page()
                page.goto(file.as_uri())
                assert wrong(page) == [], file.name
