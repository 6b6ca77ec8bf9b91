"""The page from Python equals that of the command, for every kind of pool."""

import json
import re
from pathlib import Path

import datasets as hugging_face
import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from typer.testing import CliRunner

import evgp
from evgp.cli.main import app
from evgp.datasets import Encoder, read_table
from evgp.errors import DatasetError, PoolError
from evgp.report import selection as report_selection
from tests.messages import refused

X = np.random.default_rng(0).normal(size=(40, 3))
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
HOSTILE = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def picks() -> evgp.Selection:
    return evgp.pick(X, 4)


def data_of(path: Path) -> dict[str, object]:
    pattern = r'<script type="application/json" id="data">(.*?)</script>'
    text = re.search(pattern, path.read_text(encoding="utf-8"), re.DOTALL)
    assert text is not None
    return json.loads(text[1])


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_it_is_the_page_of_the_command(suffix, tmp_path) -> None:
    pool = tmp_path / f"pool.{suffix}"
    table = FRAME.assign(kind=["x", "y"] * 20, name=[f"row-{row:02d}" for row in range(40)])
    table.to_csv(pool, index=False) if suffix == "csv" else table.to_parquet(pool)
    theirs, ours = tmp_path / "theirs.html", tmp_path / "ours.html"
    arguments = ["pick", pool, "-k", 5, "--id", "name", "--report", theirs, "-q"]
    ran = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert ran.exit_code == 0, ran.output
    read = read_table(pool, text=("name",))
    encoder = Encoder.fit(read, id="name")
    picks = evgp.pick(encoder.transform(read), 5, scale=None)
    picks.report(ours, pool, id="name")
    pages = [item.read_text(encoding="utf-8") for item in (theirs, ours)]
    # How to run it again, and what the command noted of the table, are the command's own.
    cut = r'<section aria-labelledby="again-title">.*?</section>|<aside class="warnings".*?</aside>'
    first, second = (re.sub(cut, "", page, flags=re.DOTALL).split() for page in pages)
    assert first == second
    assert data_of(ours)["ids"] == [f"row-{row:02d}" for row in picks]


@pytest.mark.parametrize(
    "pool",
    [
        X,
        torch.from_numpy(X),
        FRAME,
        pl.from_pandas(FRAME),
        torch.utils.data.TensorDataset(torch.from_numpy(X)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_pools_of_every_kind_have_one_map(pool, picks, tmp_path) -> None:
    path = tmp_path / "report.html"
    picks.report(path, pool)
    result = data_of(path)
    picks.report(path, X)
    assert result["at"] == data_of(path)["at"]
    assert result["ids"] == [str(row) for row in picks] and result["id"] == "row"
    assert len(result["cells"][0]) == 3


def test_a_hugging_face_dataset_shows_its_text_and_not_its_numbers(picks, tmp_path) -> None:
    texts = [f"text {row}" for row in range(40)]
    pool = hugging_face.Dataset.from_dict({"text": texts, "embedding": X.tolist()})
    picks.report(tmp_path / "report.html", pool)
    result = data_of(tmp_path / "report.html")
    assert result["columns"] == ["text"]
    assert result["cells"] == [[texts[row]] for row in picks]


def test_a_pool_in_files_is_read_in_part(picks, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(report_selection, "_MAP", 10)
    FRAME.assign(name=[f"r{row}" for row in range(40)]).to_parquet(tmp_path / "pool.parquet")
    for pool in (tmp_path / "pool.parquet", evgp.open_pool(tmp_path / "pool.parquet")):
        picks.report(tmp_path / "report.html", pool, id="name", x=X)
        assert data_of(tmp_path / "report.html")["ids"] == [f"r{row}" for row in picks]
        page = (tmp_path / "report.html").read_text(encoding="utf-8")
        assert "of 40 rows" in page
    assert len(report_selection._rows_to_read(picks, pool)) <= 14


def test_columns_beyond_those_picked_by_are_shown(picks, tmp_path) -> None:
    text = [f"{HOSTILE} {row}" for row in range(40)]
    wide = FRAME.assign(text=text, seen=pd.Timestamp("2026-01-01"), odd=[{"row": 1}] * 39 + ["x"])
    picks.report(tmp_path / "report.html", wide)
    result = data_of(tmp_path / "report.html")
    assert result["columns"] == ["a", "b", "c", "text", "seen", "odd"]
    assert [cells[3] for cells in result["cells"]] == [text[row] for row in picks]
    assert HOSTILE not in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_rows_are_called_by_an_index_that_says_more_than_their_number(picks, tmp_path) -> None:
    path, names = tmp_path / "report.html", [f"n{row}" for row in range(40)]
    for frame, expected in (
        (FRAME, None),
        (FRAME.set_axis(list(range(40))), None),
        (FRAME.set_axis(names), names),
        (FRAME.set_axis(range(7, 47)), [str(row) for row in range(7, 47)]),
    ):
        picks.report(path, frame)
        result = data_of(path)
        assert result["id"] == ("row" if expected is None else "id")
        assert result["ids"] == [str(row) if expected is None else expected[row] for row in picks]


def test_images_are_shown(picks, tmp_path) -> None:
    path = tmp_path / "report.html"
    pixels = np.random.default_rng(0).integers(0, 255, size=(40, 3, 4, 4), dtype=np.uint8)
    for images in (pixels, pixels[:, :1]):
        picks.report(path, images)
        assert path.read_text(encoding="utf-8").count('class="look"') == 1 + len(picks)
    np.save(tmp_path / "images.npy", pixels)
    picks.report(path, tmp_path / "images.npy")
    assert path.read_text(encoding="utf-8").count('class="look"') == 1 + len(picks)
    picks.report(path, pixels[:, 0])  # no axis of channels: a map, and no pictures
    assert 'class="look"' not in path.read_text(encoding="utf-8")


def test_x_draws_the_map(picks, tmp_path) -> None:
    path = tmp_path / "report.html"
    picks.report(path, [f"text {row}" for row in range(40)], x=X)
    own = data_of(path)
    picks.report(path, FRAME, x=X)
    assert own["at"] == data_of(path)["at"]
    assert own["cells"] == [[f"text {row}"] for row in picks]


@pytest.mark.parametrize(
    "pool", [np.ones((40, 2)), np.where(X > 1, np.nan, X)], ids=["flat", "holes"]
)
def test_odd_pools_have_a_page_too(pool, picks, tmp_path) -> None:
    picks.report(tmp_path / "report.html", pool)
    assert len(data_of(tmp_path / "report.html")["at"]) == 4


def test_prefixes_and_other_strategies_have_a_page(picks, tmp_path) -> None:
    plain = evgp.Selection(np.array([3, 1]), np.zeros(2))
    for result in (picks[:2], picks[2:], picks[:0], plain):
        result.report(tmp_path / "report.html", X)
        assert len(data_of(tmp_path / "report.html")["ids"]) == len(result)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"path": "report.txt"}, DatasetError),
        ({"pool": X[:5]}, PoolError),
        ({"x": X[:5]}, PoolError),
        ({"x": np.full((40, 2), np.nan)}, PoolError),
        ({"x": np.full((40, 2), "a")}, PoolError),
        ({"pool": [f"t{row}" for row in range(40)]}, PoolError),
        ({"id": "absent"}, DatasetError),
        ({"pool": np.ones((40, 1, 4, 4)), "id": "a"}, PoolError),
    ],
)
def test_what_makes_no_page_is_refused(given, error, picks, tmp_path) -> None:
    given = {"path": "report.html", "pool": FRAME, **given}
    with refused(error):
        picks.report(tmp_path / given.pop("path"), given.pop("pool"), **given)
    assert not any(tmp_path.iterdir())
