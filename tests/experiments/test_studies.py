"""Every study runs at smoke scale, is drawn from its rows alone, and resumes where it stopped."""

import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from evgp import mlp
from evgp.comparison.cells import Store
from evgp.comparison.rows import read_records, write_records
from evgp.datasets import names
from evgp.errors import DatasetError
from evgp.kernels import NTK
from experiments import NAMES, SCALES, claims_of, contests, reproduce, study_named
from experiments.page import pages
from experiments.runner import data_of
from experiments.sets import Ground
from experiments.study import verdict
from tests.conftest import data_folder, missing
from tests.messages import refused

# Studies are drawn by one function, from the rows in a file; of every kind of figure, one.
DRAWN_TWICE = {"batch-regression", "map-of-picks", "exchange-and-certificate"}
VERDICTS = ("holds", "holds in part", "does not hold", "not measured")


@pytest.fixture(scope="module")
def smoke_run(tmp_path_factory):
    """A function that runs a study at smoke scale, once."""
    out = tmp_path_factory.mktemp("studies")
    done = {}

    def run(name):
        if name not in done:
            study = study_named(name)
            for item in {data_of(cell) for cell in study.cells(study.scales["smoke"])} & {*names()}:
                folder = data_folder()
                if folder is None or not (folder / names()[item].file).exists():
                    missing(names()[item].file)
            done[name] = reproduce(name, scale="smoke", out=out, jobs=1)
        return done[name]

    return run


@pytest.mark.parametrize("name", NAMES)
def test_a_study_runs_and_has_claims(name, smoke_run) -> None:
    actual = smoke_run(name)
    rows = read_records(actual.folder / "rows.csv")
    assert rows
    record = json.loads((actual.folder / "study.json").read_text())
    assert record["study"] == name and record["finished"] == record["cells"] == actual.cells
    for claim in claims_of(actual.study, actual.folder):
        assert claim.verdict in VERDICTS
        assert claim.paper and claim.ours
    figures = {path.stem for path in actual.folder.glob("*.png")}
    assert figures and figures == {path.stem for path in actual.folder.glob("*.svg")}


@pytest.mark.parametrize(
    "name",
    [name if name in DRAWN_TWICE else pytest.param(name, marks=pytest.mark.slow) for name in NAMES],
)
def test_figures_come_from_the_rows_alone(name, smoke_run, tmp_path) -> None:
    actual = smoke_run(name)
    shutil.copytree(actual.folder, tmp_path / name, ignore=shutil.ignore_patterns("*.png", "*.svg"))
    reproduce(name, scale="smoke", out=tmp_path, draw_only=True)
    for path in actual.folder.glob("*.svg"):
        assert (tmp_path / name / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_every_scale_has_cells_that_can_be_named(name) -> None:
    study = study_named(name)
    assert study.name == name
    assert set(study.scales) == set(SCALES)
    for settings in study.scales.values():
        cells = study.cells(settings)
        keys = {json.dumps([cell.work, dict(cell.settings)], sort_keys=True) for cell in cells}
        assert cells and len(keys) == len(cells)


def test_a_study_resumes_where_it_stopped(tmp_path, monkeypatch) -> None:
    name = "exchange-and-certificate"
    cells = study_named(name).cells({"datasets": ["random-model"], "seeds": 3, "pool": 30,
                                     "sizes": [2]})  # fmt: skip
    store = Store(tmp_path)
    store.add(cells[1], [{"left": 1.0}], seconds=5.0)
    assert store.missing(cells) == [cells[0], cells[2]]
    assert store.rows(cells)[0]["seed"] == 1 and store.seconds(cells) == 5.0
    next((tmp_path / "cells").iterdir()).write_text("{half")  # a damaged file is no cell
    assert store.missing(cells) == list(cells)
    assert store.damage(cells)[0].why.endswith("line 1 column 2 (char 1))")


def test_finished_cells_are_not_run_again(smoke_run, monkeypatch) -> None:
    actual = smoke_run("map-of-picks")
    monkeypatch.setattr("experiments.map_of_picks.placed", lambda **_: pytest.fail("ran again"))
    reproduce("map-of-picks", scale="smoke", out=actual.folder.parent, jobs=1)


def test_processes_give_the_same_rows(smoke_run, tmp_path) -> None:
    alone = smoke_run("fit-and-bias")
    reproduce("fit-and-bias", scale="smoke", out=tmp_path, jobs=2)
    ours, theirs = (read_records(f / "rows.csv") for f in (alone.folder, tmp_path / "fit-and-bias"))
    for item, other in zip(ours, theirs, strict=True):
        names = [name for name, value in item.items() if isinstance(value, str)]
        assert [item.pop(name) for name in names] == [other.pop(name) for name in names]
        assert item == pytest.approx(other, rel=1e-4)


def test_seconds_are_measured_alone(tmp_path, monkeypatch) -> None:
    """Whatever jobs are asked for, cells that take the time share the cores with no other."""
    if data_folder() is None:
        missing("optdigits")
    pool = "evgp.comparison.cells.in_processes"
    monkeypatch.setattr(pool, lambda *_: pytest.fail("side by side"))
    assert reproduce("running-time", scale="smoke", out=tmp_path, jobs=2).cells > 1


def test_studies_share_cells(tmp_path) -> None:
    def keys(name):
        study = study_named(name)
        cells = study.cells(study.scales["laptop"])
        return {json.dumps([cell.work, dict(cell.settings)], sort_keys=True) for cell in cells}

    assert len(keys("sequential-selection") & keys("fit-and-bias")) == 30
    assert len(keys("batch-regression") & keys("other-criteria")) == 12


def test_unknown_names_are_reported(tmp_path) -> None:
    with refused(DatasetError):
        reproduce("figure-1", out=tmp_path)
    with refused(DatasetError):
        reproduce("width", out=tmp_path, draw_only=True)


def test_rows_come_back_as_they_were(tmp_path) -> None:
    rows = [{"name": "a,b", "n": 3, "x": 0.25}, {"name": "7up", "x": 1e-12}]
    write_records(tmp_path / "rows.csv", rows)
    assert read_records(tmp_path / "rows.csv") == rows


def test_verdicts() -> None:
    assert [verdict(item) for item in ([True], [True, False], [False], [])] == list(VERDICTS)


def test_what_criteria_say_of_a_set_is_a_direct_solve() -> None:
    ground = Ground("random-model", 0, pool=20, test=5, width=8, members=2, steps=1)
    rows = torch.tensor([3, 11, 17])
    matrix = NTK(mlp())(ground.data.x).numpy()
    noise = 1e-4 * matrix.diagonal().mean()
    inner = np.linalg.inv(matrix[np.ix_(rows, rows)] + noise * np.eye(3))
    after = matrix - matrix[:, rows] @ inner @ matrix[rows]
    rest = [i for i in range(20) if i not in rows]
    before, left = (
        np.linalg.slogdet(item[np.ix_(rest, rest)] + noise * np.eye(17))[1]
        for item in (matrix, after)
    )
    assert ground.values(rows) == pytest.approx(
        {
            "ev": -after.diagonal().mean(),
            "p90": -np.percentile(after.diagonal(), 90),
            "max": -after.diagonal().max(),
            "mi": (before - left) / 2,
        }
    )


def _contest(values):
    return [
        {"dataset": "boston", "strategy": way, "seed": seed, "labels": labels, "budget": 20,
         "mse": mse}
        for way, by_seed in values.items()
        for seed, curve in enumerate(by_seed)
        for labels, mse in zip((10, 20), curve, strict=True)
    ]  # fmt: skip


def test_standing_is_the_mean_height_best_first() -> None:
    rows = _contest({"random": [(4.0, 2.0), (6.0, 4.0)], "evgp": [(2.0, 1.0), (4.0, 2.0)]})
    actual = contests.standing(rows, "mse")
    assert list(actual) == ["evgp", "random"]
    assert actual["random"] == pytest.approx((4.0, 2**0.5))
    assert contests.averages(rows, "mse") == "Boston: EV-GP 2.25 ± 1.1, Random 4 ± 1.4"


def _as_laptop(found, folder, **told):
    """A copy of a smoke run that says it is the laptop's, as only such are on the page."""
    shutil.copytree(found.folder, folder / found.study.name)
    path = folder / found.study.name / "study.json"
    document = {**json.loads(path.read_text()), "scale": "laptop", **told}
    del document["digest"]
    path.write_text(json.dumps(document))


def whole(folder: Path, **how: str) -> str:
    return "\n".join(["", *pages(folder, **how).values()])


def test_the_page_shows_what_ran_and_what_did_not(smoke_run, tmp_path) -> None:
    actual = smoke_run("map-of-picks")
    _as_laptop(actual, tmp_path)
    message = whole(tmp_path, above="x")
    assert "![A map of picks](x/map-of-picks/map-of-picks.png)" in message
    for claim in claims_of(actual.study, actual.folder):
        assert claim.ours in message
    for name in NAMES:
        assert f"\n# {name}\n" in message
    assert message.count("So far run at smoke scale only.") == len(NAMES) - 1


def test_smoke_runs_are_not_on_the_page(smoke_run) -> None:
    actual = smoke_run("map-of-picks")
    message = whole(actual.folder.parent)
    assert message.count("So far run at smoke scale only.") == len(NAMES)
    assert "map-of-picks.png" not in message
    record = json.loads((actual.folder / "study.json").read_text())
    assert "only show that it runs" in record["departures"]


def test_a_part_is_called_a_part(smoke_run, tmp_path) -> None:
    _as_laptop(smoke_run("map-of-picks"), tmp_path, finished=1, cells=9)
    message = whole(tmp_path)
    assert "**1 of 9 cells are finished;**" in message and "laptop, 1 of 9 cells" in message


def test_every_panel_has_a_title() -> None:
    rows = _contest({"random": [(4.0, 2.0)], "evgp": [(2.0, 1.0)]})
    figure = contests.curves(contests.panels(rows), ["mse", "bias"])
    assert [axes.get_title() for axes in figure.axes] == ["Boston", ""]


@pytest.fixture(scope="module")
def committed() -> dict[str, str]:
    """The pages of the committed rows, by name."""
    return pages(Path(__file__).parents[2] / "experiments" / "results")


def test_the_committed_pages_are_those_of_the_committed_rows(committed) -> None:
    docs = Path(__file__).parents[2] / "docs"
    for name, text in committed.items():
        output = (docs / name).read_text(encoding="utf-8")
        assert output == text, f"{name}: run python -m experiments.page"
    assert {f"reproduction/{path.name}" for path in (docs / "reproduction").iterdir()} | {
        "reproduction.md"
    } == set(committed)


def test_the_first_table_has_every_claim_and_those_that_do_not_hold_first(committed) -> None:
    verdicts = re.findall(
        r"^\| \*\*(.+?)\*\* \| .+ \| \[.+\]\(.+\) \|$", committed["reproduction.md"], re.M
    )
    on_pages = [
        verdict
        for name in NAMES
        for verdict in re.findall(
            r"^\| .+ \| \*\*(.+?)\*\* \|$", committed[f"reproduction/{name}.md"], re.M
        )
    ]
    assert len(verdicts) == len(on_pages) > 50
    order = ["does not hold", "holds in part", "holds", "not measured"]
    assert verdicts == sorted(verdicts, key=order.index)
    assert sorted(verdicts) == sorted(on_pages)


@pytest.mark.slow
def test_a_killed_run_resumes(tmp_path) -> None:
    """Finished cells are there after SIGKILL, and are not run again."""
    call = [sys.executable, "-m", "experiments", "fit-and-bias", "--scale", "smoke",
            "--jobs", "1", "--out", str(tmp_path)]  # fmt: skip
    running = subprocess.Popen(call)
    cells = tmp_path / "cells"
    end = time.monotonic() + 300
    while running.poll() is None and time.monotonic() < end and not list(cells.glob("*.json")):
        time.sleep(0.02)
    alive = running.poll() is None
    running.kill()
    running.wait()
    before = {path.name: path.stat().st_mtime_ns for path in cells.glob("*.json")}
    assert alive and 0 < len(before) < 4
    result = reproduce("fit-and-bias", scale="smoke", out=tmp_path, jobs=1)
    assert result.cells == len(list(cells.glob("*.json"))) == 4
    for name, at in before.items():
        assert (cells / name).stat().st_mtime_ns == at
