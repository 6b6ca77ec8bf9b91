"""Figures place values correctly."""

import re
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

from evgp.errors import PoolError
from evgp.pool import Selection
from evgp.report import figures, summarise
from evgp.report.axes import Axis
from tests.messages import refused


@pytest.mark.parametrize(
    ("axis", "ticks"),
    [
        (Axis(0, 1.02), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (Axis(0, 1, whole=True), ["0", "1"]),
        (Axis(0, 7, whole=True), ["0", "2", "4", "6"]),
        (Axis(0, 2_000), ["0", "500", "1,000", "1,500", "2,000"]),
        (Axis(0, 3e-9), ["0", "5e-10", "1e-9", "1.5e-9", "2e-9", "2.5e-9", "3e-9"]),
        (Axis(0, 0.026), ["0.000", "0.005", "0.010", "0.015", "0.020", "0.025"]),
    ],
)
def test_ticks_are_round_and_few(axis, ticks):
    assert [axis.label(value) for value in axis.ticks()] == ticks


def test_the_curve_starts_at_the_left_and_falls(selection, x):
    drawn = str(figures.curve(summarise(selection, x=x)))
    match = re.search(r'class="ours" d="M([^"]+)"', drawn)
    points = np.array([[float(v) for v in p.split(",")] for p in match[1].split("L")])
    assert len(points) == 9
    assert points[0, 0] == 0
    assert points[-1, 0] == 1000
    assert (np.diff(points[:, 1]) > 0).all()  # downwards on a screen
    assert 'class="band"' in drawn


def test_every_pick_is_on_the_map_and_the_first_on_top(selection, x):
    drawn = str(figures.scatter(summarise(selection, x=x)))
    assert re.findall(r">(\d+)</text>", drawn) == [str(rank) for rank in range(8, 0, -1)]
    assert drawn.count("h0") == 60 - 8


def test_both_directions_of_the_map_have_one_scale(selection, x):
    across, up = figures.scatter_axes(summarise(selection, x=x))
    assert (across.high - across.low) / (up.high - up.low) == pytest.approx(figures.RATIO)


def test_bars_are_as_high_as_their_counts(selection, x):
    summary = summarise(selection, x=x)
    bars = str(figures.histogram(summary)).split('class="after"')[1].split("</g>")[0]
    heights = [float(height) for height in re.findall(r'height="([\d.]+)%"', bars)]
    counts = [count for count in summary.histogram.after if count]
    np.testing.assert_allclose(
        np.array(heights) / heights[0], np.array(counts) / counts[0], rtol=0.01
    )


@pytest.mark.parametrize("certified", [True, False])
def test_the_curve_is_drawn_above_its_floor(selection, certified):
    chosen = selection if certified else replace(selection, certificate=None)
    axes = Figure().subplots()
    assert chosen.plot(axes) is axes
    lines = {line.get_label(): line.get_ydata() for line in axes.lines}
    assert list(lines)[-1] == "these picks" and len(lines) == 1 + certified
    start = chosen.start_variance
    np.testing.assert_array_equal(lines["these picks"], [start, *chosen.variance_left])
    if certified:
        floor = [start, *chosen.certificate.lowest]
        np.testing.assert_array_equal(lines["lower bound for any choice"], floor)
    assert axes.get_xlim() == (0, 8) and axes.get_xlabel() == "labels"


def test_the_curve_gets_a_new_figure_unless_axes_are_given(selection):
    plt.switch_backend("Agg")
    first, second = selection.plot(), selection[:1].plot()
    assert first.figure is not second.figure
    plt.close(first.figure)
    plt.close(second.figure)


def test_without_variances_there_is_no_curve():
    with refused(PoolError):
        Selection(np.array([1]), np.ones(1)).plot()
