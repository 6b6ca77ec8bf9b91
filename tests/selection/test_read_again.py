"""Pools that were read or opened before: options count, and what ran is what is recorded."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import evgp
from evgp.cli.main import app
from evgp.errors import DataWarning, PoolError
from tests.messages import refused, warned


@pytest.fixture
def frame():
    numbers = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "a": numbers.normal(size=40),
            "b": numbers.gamma(1.0, size=40),
            "price": 100 * numbers.normal(size=40),
        }
    )


@pytest.mark.parametrize(
    "options", [{}, {"drop": "price"}, {"scale": "columns"}, {"scale": None}, evgp.paper()]
)
def test_options_count_for_a_pool_that_was_read_before(frame, options) -> None:
    fresh, again = evgp.pick(frame, 4, **options), evgp.pick(evgp.read_pool(frame), 4, **options)
    assert again.indices.tolist() == fresh.indices.tolist()
    assert np.array_equal(again.variance_left, fresh.variance_left)
    assert again.settings["scale"] == fresh.settings["scale"]


def test_options_of_the_first_reading_stay(frame) -> None:
    read = evgp.read_pool(frame, drop=["price"], scale="columns")
    picked = evgp.pick(read, 4)
    fresh = evgp.pick(frame, 4, drop="price", scale="columns")
    assert picked.indices.tolist() == fresh.indices.tolist()
    assert picked.settings["drop"] == ["price"] and picked.settings["scale"] == "columns"


def test_images_are_scaled_as_the_network_needs_them() -> None:
    x = np.random.default_rng(0).normal(size=(30, 1, 8, 8))
    fresh = evgp.pick(x, 4, network="cnn")
    assert evgp.pick(evgp.read_pool(x), 4, network="cnn").indices.tolist() == fresh.indices.tolist()


@pytest.mark.parametrize("options", [{"scale": "columns"}, {"drop": "price"}, {"impute": True}])
def test_options_of_an_opened_pool_belong_to_its_opening(frame, options, tmp_path) -> None:
    frame.to_parquet(tmp_path / "pool.parquet")
    with refused(PoolError):
        evgp.pick(evgp.open_pool(tmp_path / "pool.parquet"), 4, **options)
    opened = evgp.open_pool(tmp_path / "pool.parquet", **options)
    assert evgp.pick(opened, 4).indices.tolist() == evgp.pick(frame, 4, **options).indices.tolist()


@pytest.mark.parametrize("features", [None, "nystrom-20"])
def test_the_scaling_of_files_is_recorded_as_it_was(frame, features, tmp_path) -> None:
    for at in range(2):
        frame[20 * at : 20 * at + 20].assign(same=1.0).to_parquet(tmp_path / f"{at}.parquet")
    with warned(DataWarning):
        picked = evgp.pick(tmp_path, 4, features=features)
    assert picked.settings["scale"] == "smooth" and picked.settings["features"] == 3


def test_notes_on_the_pool_are_recorded(frame) -> None:
    frame.loc[3, "a"] = np.nan
    with warned(DataWarning):
        picked = evgp.pick(frame, 4, impute=True)
    assert any("filled 1 cell" in text for text in picked.warnings)
    assert picked.settings["impute"] is True


def test_a_report_shows_what_was_used(frame, tmp_path) -> None:
    picked = evgp.pick(frame, 4, drop="price")
    for at, pool in enumerate((frame, evgp.read_pool(frame, drop="price"))):
        picked.report(tmp_path / f"{at}.html", pool)
        assert "40 rows, 2 inputs" in (tmp_path / f"{at}.html").read_text()
        assert list(picked.to_frame(pool).columns[-3:]) == ["a", "b", "price"]


def test_a_folder_of_images_is_shown(tmp_path) -> None:
    CliRunner().invoke(app, ["demo", "images", str(tmp_path / "images")])
    picked = evgp.pick(tmp_path / "images", 4)
    picked.report(tmp_path / "page.html", tmp_path / "images")
    assert "<img" in (tmp_path / "page.html").read_text()
    assert list(picked.to_frame(tmp_path / "images")["id"]) == list(picked.ids)


def test_test_points_may_be_a_pool_that_was_read(frame) -> None:
    plain = evgp.pick(frame[:30], 4, x_test=frame[30:])
    read = evgp.pick(frame[:30], 4, x_test=evgp.read_pool(frame[30:]))
    assert np.array_equal(plain.variance_left, read.variance_left)


@pytest.mark.parametrize("kind", [">f8", "Sparse[float64]", np.longdouble])
def test_numbers_of_unusual_types_are_numbers(frame, kind) -> None:
    odd = frame.assign(a=frame["a"].astype(kind))
    assert evgp.read_pool(odd).features == ("a", "b", "price")
