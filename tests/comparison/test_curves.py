"""Pictures of learning curves: whole, the same each time, and with nothing on top of the curves."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from evgp.comparison.curves import looks, plot_curves, save_plots
from evgp.comparison.statistics import summarise
from evgp.errors import DatasetError
from evgp.report.render import asset
from tests.comparison.rows import STRATEGIES, curves, study
from tests.messages import refused


@pytest.fixture(scope="module")
def comparison():
    return summarise(study())


def test_central_metrics_are_side_by_side(comparison):
    figure = plot_curves(comparison, "yacht")
    assert [axes.get_ylabel() for axes in figure.axes] == [
        "test MSE",
        "output variance, 90th percentile",
    ]
    assert [len(axes.lines) for axes in figure.axes] == [6, 6]


def test_labels_are_counted_in_whole_numbers():
    few = summarise(curves({"random": [[2.0, 1.5, 1.0]], "evgp": [[1.5, 1.2, 0.9]]}))
    for axes in plot_curves(few, "yacht").axes:
        assert all(tick == int(tick) for tick in axes.get_xticks())
    pair = [replace(row, labels=row.labels // 10) for row in curves({"random": [[2.0, 1.0]]})]
    for axes in plot_curves(summarise(pair), "yacht").axes:  # one and two labels
        assert all(tick == int(tick) for tick in axes.get_xticks())


def test_values_that_span_much_get_a_logarithmic_axis(comparison):
    scales = [axes.get_yscale() for axes in plot_curves(comparison, "yacht").axes]
    assert scales == ["linear", "log"]


def test_metrics_may_be_chosen_and_must_exist(comparison):
    (axes,) = plot_curves(comparison, "digits", ["nll"]).axes
    assert axes.get_ylabel() == "negative log-likelihood"
    with refused(DatasetError):
        plot_curves(comparison, "digits", ["mse"])
    with refused(DatasetError):
        plot_curves(comparison, "moon")


def test_the_legend_never_covers_a_curve(comparison):
    figure = plot_curves(comparison, "yacht")
    figure.draw_without_rendering()
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert all(not box.overlaps(axes.get_window_extent()) for axes in figure.axes)


def test_random_is_grey_and_evgp_is_strongest():
    drawn = looks(STRATEGIES)
    red, green, blue = (int(drawn["random"].colour[i : i + 2], 16) for i in (1, 3, 5))
    assert max(red, green, blue) - min(red, green, blue) < 32
    ours = {name for name in drawn if name.startswith("evgp")}
    assert min(drawn[name].width for name in ours) > max(
        drawn[name].width for name in drawn.keys() - ours
    )
    assert len({(look.colour, look.dashes) for look in drawn.values()}) == len(STRATEGIES)


@pytest.mark.parametrize("kind", ["evgp-", "other-"])
def test_five_of_a_kind_look_different(kind):
    drawn = looks([f"{kind}{i}" for i in range(5)]).values()
    assert len({look.colour for look in drawn}) == len({look.name for look in drawn}) == 5
    style = asset("comparison", "page.css")
    assert all(style.count(f".{look.name} {{ --line: #") == 2 for look in drawn)  # day and night


def test_the_same_rows_give_the_same_bytes(comparison, tmp_path: Path):
    first, again = (save_plots(comparison, tmp_path / name) for name in ("a", "b"))
    assert [path.name for path in first] == ["yacht.png", "yacht.svg", "digits.png", "digits.svg"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]
    assert "<dc:date>" not in first[1].read_text()


def test_names_of_datasets_cannot_leave_the_folder(tmp_path: Path):
    names = ["../../up", "a/b", "a b", "", "$x_$ \u4e2d"]
    rows = study([(name, "regression") for name in names], ("random", "_$evgp^"), 2, 2)
    summary = save_plots(summarise(rows), tmp_path / "plots")
    assert len(set(summary)) == 2 * len(names)
    assert all(path.parent == tmp_path / "plots" and path.stat().st_size for path in summary)
    assert all(re.fullmatch(r"[\w.+-]+", path.name) for path in summary)


def test_one_round_and_one_seed_can_be_drawn(tmp_path: Path):
    assert save_plots(summarise(curves({"evgp": [[1.0]], "random": [[2.0]]})), tmp_path)
