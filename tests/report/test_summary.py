"""A summary agrees with its selection, and fits on a page."""

import dataclasses
import json

import numpy as np
import pytest

from evgp import EvgpError
from evgp.pool import Selection
from evgp.report import summarise
from evgp.report.summary import DRAWN, SHOWN, project
from tests.messages import refused


def test_numbers_agree_with_the_selection(selection, x):
    summary = summarise(selection, x=x)
    assert [pick.row for pick in summary.picks] == selection.indices.tolist()
    assert [pick.rank for pick in summary.picks] == list(range(1, 9))
    assert [pick.gain for pick in summary.picks] == selection.gains.tolist()
    assert [pick.left for pick in summary.picks] == selection.variance_left.tolist()
    assert summary.left == (selection.start_variance, *selection.variance_left.tolist())
    assert summary.removed == 1 - selection.variance_left[-1] / selection.start_variance
    assert summary.floor == tuple(selection.certificate.lowest.tolist())
    assert summary.reached == selection.certificate.share[-1]
    assert [(n.share, n.fewest, n.enough) for n in summary.needs] == [(0.5, 3, 5), (0.8, 7, None)]
    assert sum(summary.histogram.before) == sum(summary.histogram.after) == len(x)
    assert (summary.rows, summary.inputs, summary.test_points) == (60, 4, 60)


def test_without_ids_a_row_goes_by_its_number(selection, x):
    summary = summarise(selection, x=x)
    assert [pick.id for pick in summary.picks] == [str(row) for row in selection.indices]


def test_ids_and_cells_are_those_of_the_picks(selection, x):
    ids = [f"r{row}" for row in range(60)]
    columns = {"text": [f"row {row}" for row in range(60)], "gap": [None] * 60, "one": x[:, 0] > 0}
    summary = summarise(selection, x=x, ids=ids, columns=columns)
    for pick in summary.picks:
        assert pick.id == f"r{pick.row}"
        assert pick.cells == (f"row {pick.row}", "", str(bool(x[pick.row, 0] > 0)))


def test_values_are_shown_as_they_were_written(selection, x):
    columns = {"price": np.full(60, 0.1), "count": np.full(60, 7), "third": np.full(60, 1 / 3)}
    assert summarise(selection, x=x, columns=columns).picks[0].cells == ("0.1", "7", "0.33333333")


def test_the_map_is_the_same_each_time_and_knows_its_sign(selection, x):
    first, again = (summarise(selection, x=x, seed=4) for _ in range(2))
    assert first == again
    turned, _ = project(-x, np.arange(60), seed=4)
    straight, explained = project(x, np.arange(60), seed=4)
    np.testing.assert_allclose(turned, -straight, atol=1e-9)
    assert 1 >= explained[0] >= explained[1] > 0


def test_the_map_holds_the_leading_singular_values(x):
    at, explained = project(x, np.arange(60), seed=0)
    values = np.linalg.svd(x - x.mean(axis=0), compute_uv=False)
    np.testing.assert_allclose(explained, values[:2] ** 2 / (values**2).sum())
    np.testing.assert_allclose(np.linalg.norm(at, axis=0), values[:2])


def test_a_large_pool_is_sampled_but_no_pick_is_lost():
    x = np.random.default_rng(0).normal(size=(6_000, 3))
    indices = np.arange(5_999, 5_899, -1)
    summary = summarise(Selection(indices, np.ones(100)), x=x)
    assert summary.scatter.sampled
    assert len(summary.scatter.points) <= DRAWN
    assert [pick.row for pick in summary.picks] == indices.tolist()
    at, _ = project(x, indices, seed=0)
    np.testing.assert_allclose([pick.at for pick in summary.picks], at)


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (2, 1), (3, 2)])
def test_tiny_pools_have_a_report(shape, choose):
    x = np.arange(np.prod(shape), dtype=float).reshape(shape)
    summary = summarise(choose(x, 1), x=x)
    assert len(summary.scatter.points) == shape[0] - 1
    assert not summary.scatter.sampled
    assert np.isfinite(summary.picks[0].at).all()


def test_without_a_certificate_the_picks_still_answer(choose, x):
    summary = summarise(dataclasses.replace(choose(x, 20), certificate=None), x=x)
    assert summary.floor is None
    assert summary.share is None
    assert summary.reached is None
    curve, enough = np.array(summary.left), {}
    for need in summary.needs:
        assert need.fewest is None
        done = np.flatnonzero(curve <= (1 - need.share) * summary.prior)
        enough[need.share] = int(done[0]) if len(done) else None
        assert need.enough == enough[need.share]
    assert enough[0.5] is not None and enough[0.95] is None, "both answers are seen"


def test_earlier_labels_are_distinguished_from_the_prior(x, choose):
    summary = summarise(choose(x, 4, labelled=(0, 1, 2)), x=x)
    assert summary.had_labels
    assert summary.start < summary.prior
    assert summary.left[0] == summary.start


def test_costs_add_up(selection, x):
    costs = np.linspace(1, 2, 8)
    summary = summarise(dataclasses.replace(selection, costs=costs), x=x)
    assert [pick.cost for pick in summary.picks] == costs.tolist()
    assert summary.cost == pytest.approx(12)


def test_a_selection_of_indices_and_gains_is_enough(x):
    summary = summarise(Selection(np.array([3]), np.array([0.5])), x=x)
    assert summary.left == ()
    assert summary.needs == ()
    assert summary.histogram is None
    assert summary.removed is None


def test_one_far_test_point_does_not_squeeze_the_rest(selection, x):
    before = np.concatenate([np.ones(999), [1_000.0]])
    far = dataclasses.replace(selection, test_before=before, test_after=before / 2)
    histogram = summarise(far, x=x).histogram
    assert histogram.edges[-1] < 2
    assert histogram.highest == 1_000
    assert sum(histogram.before) == 1_000


def test_a_dozen_columns_are_shown_and_they_differ(selection, x):
    columns = {f"c{j}": ["same"] * 60 if j < 20 else list(range(60)) for j in range(40)}
    summary = summarise(selection, x=x, columns=columns)
    assert summary.shown == tuple(range(20, 20 + SHOWN))
    assert len(summary.columns) == 40


def test_the_id_column_is_not_shown_twice(selection, x):
    ids = [f"r{row}" for row in range(60)]
    summary = summarise(selection, x=x, ids=ids, columns={"name": ids, "age": list(range(60))})
    assert summary.columns == ("age",)
    assert summary.picks[0].cells == (str(summary.picks[0].row),)


def test_columns_too_heavy_for_a_page_are_counted_not_carried(selection, x):
    columns = {f"c{j}": ["w" * 2_000] * 60 for j in range(800)}
    summary = summarise(selection, x=x, columns=columns)
    assert 0 < summary.left_out < 800
    assert len(summary.columns) == 800 - summary.left_out == len(summary.picks[0].cells)
    assert max(len(cell) for cell in summary.picks[0].cells) == 1_000


def test_warnings_are_gathered_once(selection, x):
    warned = dataclasses.replace(selection, warnings=("jitter", "duplicates"))
    assert summarise(warned, x=x, notes=("jitter", "labels?")).warnings == (
        "jitter", "duplicates", "labels?",
    )  # fmt: skip


def test_a_summary_is_json(selection, x):
    odd = dataclasses.replace(selection, gains=np.full(8, np.nan))
    plain = summarise(odd, x=x, ids=["\ud800"] * 60).as_dict()
    again = json.loads(json.dumps(plain, allow_nan=False))
    assert again == plain
    assert again["picks"][0]["gain"] is None
    assert again["picks"][0]["id"] == "?"


@pytest.mark.parametrize(
    "given",
    [
        {"ids": ["a"]},
        {"columns": {"age": [1, 2]}},
        {"x": np.zeros((2, 2))},
    ],
)
def test_arguments_that_do_not_match_the_pool_are_refused(selection, x, given):
    with refused(EvgpError):
        summarise(selection, **{"x": x, **given})
