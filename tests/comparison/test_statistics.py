"""The statistics of a comparison are those that scipy and numpy give by hand."""

import json
from dataclasses import replace
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evgp.comparison.statistics import holm, paired, summarise
from evgp.errors import DatasetError
from tests.comparison.rows import curves, row, study
from tests.messages import refused

# Seeds that differ much, strategies that differ little: pairs see what means do not.
RANDOM = [[9.0, 6.0, 4.0], [5.0, 3.0, 2.0], [7.0, 5.0, 3.0], [6.0, 4.2, 2.4]]
EVGP = [[8.0, 5.1, 3.5], [4.1, 2.0, 1.6], [6.2, 4.0, 2.1], [5.5, 3.1, 2.0]]
BADGE = [[9.1, 6.0, 4.2], [4.9, 3.1, 2.0], [7.2, 5.0, 3.2], [6.0, 4.1, 2.4]]


def areas(runs: list[list[float]]) -> np.ndarray:
    return np.array([np.trapezoid(run, [10, 20, 30]) / 20 for run in runs])


@pytest.fixture
def three_strategies():
    (contest,) = summarise(curves({"random": RANDOM, "evgp": EVGP, "badge": BADGE})).contests
    return contest


def test_areas_and_their_spread(three_strategies):
    score = three_strategies.entrant("evgp").score("mse")
    assert [seed for seed, _ in score.areas] == [0, 1, 2, 3]
    np.testing.assert_allclose([height for _, height in score.areas], areas(EVGP))
    assert score.mean == pytest.approx(areas(EVGP).mean())
    assert score.deviation == pytest.approx(areas(EVGP).std(ddof=1))
    assert score.final == pytest.approx(np.mean([run[-1] for run in EVGP]))


def test_paired_tests_against_random(three_strategies):
    tests = {name: three_strategies.entrant(name).score("mse").paired for name in ("evgp", "badge")}
    ps = {"evgp": stats.ttest_rel(areas(EVGP), areas(RANDOM)).pvalue}
    ps["badge"] = stats.ttest_rel(areas(BADGE), areas(RANDOM)).pvalue
    for name, runs in (("evgp", EVGP), ("badge", BADGE)):
        gaps = areas(runs) - areas(RANDOM)
        test = tests[name]
        assert test.p == pytest.approx(ps[name])
        assert test.difference == pytest.approx(gaps.mean())
        low, high = stats.t.interval(0.95, 3, loc=gaps.mean(), scale=stats.sem(gaps))
        assert (test.low, test.high) == (pytest.approx(low), pytest.approx(high))
        assert (test.wins, test.seeds) == (int((gaps < 0).sum()), 4)
    assert ps["evgp"] < ps["badge"]
    assert tests["evgp"].holm == pytest.approx(min(1, 2 * ps["evgp"]))
    assert tests["badge"].holm == pytest.approx(max(2 * ps["evgp"], ps["badge"]))
    assert tests["evgp"].verdict == "better"
    assert tests["badge"].verdict == "unclear"


def test_the_band_is_a_t_interval_from_five_seeds_on():
    five = [*EVGP, EVGP[0]]
    (summary,) = summarise(curves({"evgp": five})).contests
    curve = summary.entrant("evgp").score("mse").curve
    point = [run[1] for run in five]
    low, high = stats.t.interval(0.95, 4, loc=np.mean(point), scale=stats.sem(point))
    assert (curve.low[1], curve.mean[1], curve.high[1]) == pytest.approx(
        (low, np.mean(point), high)
    )
    assert curve.band == "interval"


def test_the_band_is_the_range_of_few_seeds_and_nothing_for_one():
    for count in (2, 3, 4):
        (few,) = summarise(curves({"evgp": EVGP[:count]})).contests
        curve = few.entrant("evgp").score("mse").curve
        first = [run[0] for run in EVGP[:count]]
        assert (curve.band, curve.low[0], curve.high[0]) == ("range", min(first), max(first))
    (item,) = summarise(curves({"evgp": EVGP[:1]})).contests
    assert item.entrant("evgp").score("mse").curve.band == "none"


def test_holm_on_a_worked_example():
    # 4 x 0.005, 3 x 0.01, 2 x 0.03, and 0.04 raised to what came before it.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.4, 0.9]) == pytest.approx([0.8, 0.9])
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_never_lowers_and_keeps_the_order(ps):
    adjusted = holm(ps)
    assert all(p <= a <= 1 for p, a in zip(ps, adjusted, strict=True))
    order = sorted(range(len(ps)), key=ps.__getitem__)
    assert sorted(adjusted) == [adjusted[i] for i in order]


def test_differences_that_do_not_vary():
    same = paired([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], lower=True)
    assert (same.p, same.difference, same.wins, same.better) == (1.0, 0.0, 0, False)
    shifted = paired([1.1, 2.1, 3.1], [1.0, 2.0, 3.0], lower=True)
    assert (shifted.p, shifted.low, shifted.wins) == (None, None, 0)
    (contest,) = summarise(
        curves({"random": RANDOM, "evgp": [[v + 1 for v in run] for run in RANDOM]})
    ).contests
    score = contest.entrant("evgp").score("mse")
    assert score.paired.holm is None
    assert "same on each seed" in score.reason
    assert "cannot be tested" in contest.verdict


def test_higher_is_better_where_it_is():
    up = {"random": [[0.5, 0.6], [0.5, 0.7]], "evgp": [[0.6, 0.7], [0.7, 0.8]]}
    rows = [replace(r, kind="classification") for r in curves(up, "accuracy")]
    (contest,) = summarise(rows).contests
    assert [entrant.strategy for entrant in contest.entrants] == ["evgp", "random"]
    assert contest.entrant("evgp").score("accuracy").paired.wins == 2
    assert contest.leads[0].best == "evgp"
    assert "highest test accuracy" in contest.verdict


def test_labels_saved_are_interpolated():
    arguments = {
        "random": [[5.0, 4.0, 2.0]],
        "fast": [[5.0, 1.0, 1.0]],
        "first": [[2.0, 1.0, 1.0]],
        "slow": [[5.0, 4.0, 3.0]],
    }
    (contest,) = summarise(curves(arguments)).contests
    saved = {entrant.strategy: entrant.score("mse").saved for entrant in contest.entrants}
    assert saved["fast"].at == pytest.approx(10 + 10 * 3 / 4)
    assert saved["fast"].fewer == pytest.approx(30 - 17.5)
    assert (saved["first"].at, saved["first"].first) == (10, True)
    assert (saved["slow"].at, saved["slow"].fewer) == (None, None)
    assert saved["random"].own == 30


def test_random_that_wavers_does_not_flatter_others():
    wavering = {"random": [[5.0, 2.0, 2.0]], "evgp": [[5.0, 2.5, 1.0]]}
    (contest,) = summarise(curves(wavering)).contests
    saved = contest.entrant("evgp").score("mse").saved
    assert saved.own == 20
    assert saved.fewer < 0


def test_who_leads_and_whether_it_is_noise(three_strategies):
    (lead,) = three_strategies.leads
    assert (lead.best, lead.second) == (
        "evgp",
        "random" if areas(RANDOM).mean() < areas(BADGE).mean() else "badge",
    )
    assert lead.clear
    (close,) = summarise(curves({"badge": BADGE, "random": RANDOM})).contests
    assert not close.leads[0].clear
    assert "within noise of" in close.verdict


def test_a_lost_contest_is_reported_as_lost():
    (contest,) = summarise(curves({"random": EVGP, "evgp": RANDOM, "badge": BADGE})).contests
    assert contest.verdict.startswith(
        "On yacht, over the whole run, random has the lowest test MSE"
    )
    assert "while evgp comes 2nd of 3 (worse than random)" in contest.verdict


def test_a_lead_that_adjustment_takes_away_is_reported_as_one():
    near = [[v + gap for v in run] for run, gap in zip(RANDOM, (0.1, 0.5, 0.3, 0.35), strict=True)]
    others = {f"other{i}": BADGE for i in range(8)}
    (contest,) = summarise(curves({"random": RANDOM, "evgp": near, **others})).contests
    test = contest.entrant("evgp").score("mse").paired
    assert test.p < 0.05 < test.holm
    assert "worse than random by the plain p, not by the adjusted one" in contest.verdict


def test_ranks_are_means_over_datasets():
    comparison = summarise(study())
    assert comparison.strategies[0] == "evgp"
    assert comparison.strategies[-1] == "mlmoc"
    assert [standing.rank for standing in comparison.standings] == [1, 2, 3, 4, 5, 6]
    first = comparison.standings[0]
    assert (first.datasets, first.better, first.worse, first.tested) == (2, 4, 0, 4)


def test_equal_strategies_share_their_rank():
    (contest,) = summarise(curves({"a": EVGP, "b": EVGP, "c": RANDOM})).contests
    assert [entrant.rank for entrant in contest.entrants] == [1.5, 1.5, 3]


def test_one_seed_says_why_there_is_no_test():
    (contest,) = summarise(curves({"random": RANDOM[:1], "evgp": EVGP[:1]})).contests
    score = contest.entrant("evgp").score("mse")
    assert score.paired is None
    assert score.deviation is None
    assert "a test needs two" in score.reason
    assert any("One seed" in note for note in contest.notes)
    assert "cannot be tested" in contest.verdict


def test_one_round_is_ranked_by_its_score():
    rows = curves({"random": [[1.0], [2.0]], "evgp": [[0.5], [1.0]]})
    comparison = summarise(rows)
    contest = comparison.contests[0]
    score = contest.entrant("evgp").score("mse")
    assert (score.mean, score.rank, score.final) == (0.75, 1.0, 0.75)
    assert score.paired is not None
    assert f"at {contest.labels[0]} labels" in contest.verdict


def test_one_strategy_and_no_random():
    (alone,) = summarise(curves({"evgp": EVGP})).contests
    assert "nothing to compare" in alone.verdict
    assert "no random" in alone.entrant("evgp").score("mse").reason
    (pair,) = summarise(curves({"evgp": EVGP, "badge": BADGE})).contests
    assert "better than random" not in pair.verdict
    assert pair.leads[0].clear


def test_the_most_members_are_kept():
    few = curves({"random": RANDOM, "evgp": EVGP})
    more = [
        replace(r, members=50, mse=r.mse + 1) for r in few if (r.strategy, r.seed) == ("evgp", 1)
    ]
    for rows in (few + more, more + few):
        (contest,) = summarise(rows).contests
        first = contest.entrant("evgp")
        assert first.members == (5, 50, 5, 5)
        assert dict(first.score("mse").areas)[1] == pytest.approx(areas(EVGP)[1] + 1)
        assert any("Between 5 and 50 members" in note for note in contest.notes)


def test_a_seed_that_is_lacking_or_half_done_is_left_out():
    rows = [
        r for r in curves({"random": RANDOM, "evgp": EVGP, "badge": BADGE})
        if (r.strategy, r.seed) != ("evgp", 2) and (r.strategy, r.seed, r.round) != ("badge", 3, 2)
    ]  # fmt: skip
    (contest,) = summarise(rows).contests
    assert contest.entrant("evgp").seeds == (0, 1, 3)
    expected = stats.ttest_rel(areas(EVGP)[[0, 1, 3]], areas(RANDOM)[[0, 1, 3]]).pvalue
    assert contest.entrant("evgp").score("mse").paired.p == pytest.approx(expected)
    assert contest.entrant("badge").seeds == (0, 1, 2)
    assert any("evgp lacks seed 2" in note for note in contest.notes)
    assert any("Seed 3 of badge is left out" in note for note in contest.notes)
    assert any("A test of 3 seeds proves little" in note for note in contest.notes)


@pytest.mark.parametrize("bad", [nan, inf])
def test_a_run_that_diverged_is_left_out_and_reported(bad):
    rows = curves({"random": RANDOM, "evgp": EVGP})
    rows = [
        replace(r, mse=bad) if (r.strategy, r.seed, r.round) == ("evgp", 0, 1) else r for r in rows
    ]
    (contest,) = summarise(rows).contests
    assert len(contest.entrant("evgp").score("mse").areas) == 3
    assert any("Test MSE of evgp is without seed 0" in note for note in contest.notes)


def test_a_longer_run_does_not_move_the_axis():
    rows = curves({"random": RANDOM, "evgp": EVGP})
    (contest,) = summarise([*rows, row("evgp", 0, 3, mse=0.1)]).contests
    assert contest.labels == (10, 20, 30)
    assert any("10 to 30 labels" in note for note in contest.notes)


def test_rows_that_do_not_belong_together_are_refused():
    rows = curves({"random": RANDOM})
    with refused(DatasetError):
        summarise([*rows, replace(rows[0], batch=20)])
    with refused(DatasetError):
        summarise([])


def test_a_comparison_is_plain_data():
    plain = summarise(study(seeds=2, rounds=2)).as_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
