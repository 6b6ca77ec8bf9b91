"""Labels saved, ranks and tests over pools, against known values and brute force."""

from dataclasses import replace
from itertools import product
from math import exp, isnan, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evgp.comparison.judge import judge, log_ratio, pool_scores, rivals, savings
from evgp.comparison.rows import Row
from evgp.comparison.statistics import holm, paired
from evgp.errors import DatasetError
from tests.messages import refused

LABELS = (10, 20, 40, 80)


def row(pool: str, strategy: str, seed: int, labels: int, **values: object) -> Row:
    """A row of a cold start."""
    kind = "classification" if "accuracy" in values else "regression"
    return Row(pool, kind, strategy, seed, 0, labels, 0, 1, 0.0, 0.0, 0.0, **values)


def planted(
    needs: dict[str, float], pools: int = 8, seeds: int = 6, noise: float = 0.01
) -> list[Row]:
    """Curves that rise by the logarithm of labels; each strategy needs a share of random's."""
    random = np.random.default_rng(1)
    return [
        row(f"pool{pool}", name, seed, labels, learner="1nn",
            accuracy=0.1 * log(labels / share) + noise * random.normal())
        for pool, (name, share), seed, labels
        in product(range(pools), needs.items(), range(seeds), LABELS)
    ]  # fmt: skip


def brute(labels, ours, base) -> float:
    """The mean gap by walking along both curves, each made to never fall, in many small steps."""
    x = np.log(labels)
    a, b = np.maximum.accumulate(ours), np.maximum.accumulate(base)
    fine = np.linspace(x[0], x[-1], 20_001)
    curves = [np.interp(fine, x, curve) for curve in (a, b)]
    low, high = max(a[0], b[0]), min(a[-1], b[-1])
    levels = low + (high - low) * (np.arange(25) + 0.5) / 25
    first = [[fine[np.argmax(curve >= level - 1e-12)] for level in levels] for curve in curves]
    return float(np.mean(np.subtract(*first)))


rising = st.lists(st.floats(0, 3), min_size=4, max_size=4).map(np.cumsum)


@given(rising, rising)
def test_the_ratio_of_labels_is_that_of_walking_along_the_curves(ours, base) -> None:
    if min(ours[-1], base[-1]) - max(ours[0], base[0]) < 0.05:
        return
    # A flat piece is reached where it begins, within one step of the walk.
    if min(np.diff(ours).min(), np.diff(base).min()) < 0.01:
        return
    got = float(log_ratio(LABELS, ours[None], base[None])[0])
    assert got == pytest.approx(brute(LABELS, ours, base), abs=2e-3)


@given(rising, rising)
def test_swapping_two_strategies_turns_the_ratio_over(ours, base) -> None:
    there = log_ratio(LABELS, ours[None], base[None])
    back = log_ratio(LABELS, base[None], ours[None])
    assert there == pytest.approx(-back, abs=1e-12)


def test_curves_that_do_not_meet_give_no_more_than_was_tried() -> None:
    low, high = np.array([[0.0, 1, 2, 3]]), np.array([[4.0, 5, 6, 7]])
    assert exp(log_ratio(LABELS, high, low)[0]) == pytest.approx(1 / 8)
    assert exp(log_ratio(LABELS, low, high)[0]) == pytest.approx(8)
    flat = np.ones((1, 4))
    assert log_ratio(LABELS, flat, flat)[0] == 0


def test_planted_savings_are_found() -> None:
    result = judge(planted({"random": 1.0, "evgp": 0.6, "worse": 1.5}))
    evgp, worse = result.savings["evgp"], result.savings["worse"]
    assert evgp.ratio == pytest.approx(0.6, rel=0.08) and evgp.low < 0.6 < evgp.high
    assert worse.ratio == pytest.approx(1.5, rel=0.08) and worse.low < 1.5 < worse.high
    assert evgp.verdict == "fewer" and worse.verdict == "more"
    assert result.strategies == ("evgp", "random", "worse")
    assert result.ranks == {"evgp": 1.0, "random": 2.0, "worse": 3.0}
    duel = result.duel("evgp", "random")
    assert (duel.wins, duel.ties, duel.losses) == (8, 0, 0)
    assert result.duel("random", "evgp").losses == 8
    losses, places = result.losses("worse")
    assert places == 8 * len(LABELS) and all(loss.difference < 0 for loss in losses)
    assert result.losses("evgp")[0] == ()


def test_no_difference_is_no_clear_difference() -> None:
    result = judge(planted({"random": 1.0, "evgp": 1.0, "kmeans": 1.0}, noise=0.05))
    assert result.savings["evgp"].verdict == "unclear"
    assert result.savings["evgp"].sentence().startswith("no clear difference")
    assert set(result.cliques[0]) == {"random", "evgp", "kmeans"}


def test_few_pools_are_not_tested() -> None:
    result = judge(planted({"random": 1.0, "evgp": 0.5}, pools=4)).savings["evgp"]
    assert isnan(result.p) and result.verdict == "unclear"
    assert result.sentence().startswith("4 pools are too few for a test")


def test_p_values_are_those_of_scipy_with_holms_correction() -> None:
    result = judge(planted({"random": 1.0, "a": 0.8, "b": 0.95, "c": 1.0}, noise=0.03))
    plain = [
        stats.wilcoxon([log(ratio) for ratio in result.savings[name].pools.values()]).pvalue
        for name in ("a", "b", "c")
    ]
    assert [result.savings[name].p for name in ("a", "b", "c")] == pytest.approx(plain)
    assert [result.savings[n].holm for n in ("a", "b", "c")] == pytest.approx(holm(plain))


def test_duels_are_paired_tests_over_seeds() -> None:
    rows = planted({"random": 1.0, "evgp": 0.9}, pools=1, noise=0.02)
    pool = pool_scores(rows)[0]
    test = paired(*(part.mean(1).tolist() for part in pool.pair("evgp", "random")), lower=False)
    duel = judge(rows).duel("evgp", "random")
    assert duel.wins == int(test.p < 0.05 and test.better)


def test_more_seeds_of_one_pool_do_not_narrow_what_pools_disagree_on() -> None:
    random = np.random.default_rng(0)
    shares = {f"pool{i}": float(np.exp(random.normal(0, 0.5))) for i in range(8)}
    rows = [
        row(pool, name, seed, labels, accuracy=0.1 * log(labels / (share if name == "a" else 1)))
        for (pool, share), name, seed, labels in product(
            shares.items(), ("random", "a"), range(30), LABELS
        )
    ]
    saved = savings(pool_scores(rows), ["a"])["a"]
    few = savings(pool_scores([r for r in rows if r.seed < 5]), ["a"])["a"]
    assert saved.high / saved.low == pytest.approx(few.high / few.low, rel=0.05)
    assert saved.high / saved.low > 1.3


def test_the_interval_is_that_of_drawing_pools_and_then_seeds_one_by_one() -> None:
    pools = pool_scores(planted({"random": 1.0, "a": 0.7}, pools=5, seeds=4, noise=0.05))
    random, drawn = np.random.default_rng(3), []
    for _ in range(2_000):
        gaps = []
        for at in random.integers(len(pools), size=len(pools)):
            ours, base = pools[at].pair("a", "random")
            rows = random.integers(len(ours), size=len(ours))
            means = ours[rows].mean(0)[None], base[rows].mean(0)[None]
            gaps.append(float(log_ratio(LABELS, *means)[0]))
        drawn.append(np.mean(gaps))
    saved = savings(pools, ["a"])["a"]
    spread = np.subtract(*np.quantile(drawn, (0.975, 0.025)))
    assert log(saved.high / saved.low) == pytest.approx(spread, rel=0.07)
    assert log(saved.low) == pytest.approx(np.quantile(drawn, 0.025), abs=0.05 * spread)


def test_rivals_are_tested_directly_with_holms_correction_for_all_of_them() -> None:
    rows = planted({"random": 1.0, "evgp": 0.8, "a": 0.75, "b": 0.81, "c": 1.2}, noise=0.03)
    pools = pool_scores(rows)
    actual = rivals(pools, "evgp", ["a", "b", "c", "random", "evgp"])
    assert list(actual) == ["a", "b", "c", "random"]
    gaps = {
        name: [
            float(log_ratio(LABELS, *(part.mean(0)[None] for part in pool.pair("evgp", name)))[0])
            for pool in pools
        ]
        for name in actual
    }
    plain = [stats.wilcoxon(gaps[name]).pvalue for name in actual]
    assert [actual[name].holm for name in actual] == pytest.approx(holm(plain))
    assert [log(actual[name].ratio) for name in actual] == pytest.approx(
        [np.mean(gaps[name]) for name in actual]
    )
    assert (actual["c"].verdict, actual["c"].strategy, actual["c"].base) == ("fewer", "evgp", "c")


def test_strategies_that_half_of_the_pools_lack_do_not_take_ranks_from_the_others() -> None:
    rows = planted({"random": 1.0, "evgp": 0.6, "margin": 0.5, "kmeans": 0.8})
    rows = [
        item for item in rows if item.strategy != "margin" or item.dataset in ("pool0", "pool1")
    ]
    result = judge(rows)
    assert result.ranks == {"evgp": 1.0, "kmeans": 2.0, "random": 3.0}
    assert result.strategies[-1] == "margin" and result.duel("margin", "evgp").ties == 0
    assert not any("margin" in group for group in result.cliques)
    without = judge([item for item in rows if item.dataset != "pool7" or item.strategy != "kmeans"])
    assert without.ranks == result.ranks  # over the other seven pools


def test_ranks_compare_strategies_on_the_same_seeds() -> None:
    rows = planted({"random": 1.0, "evgp": 0.8, "kmeans": 0.9}, noise=0.0)
    # Seeds 3 to 5 are easy, and k-means has not finished them.
    rows = [replace(item, accuracy=item.accuracy + (item.seed > 2)) for item in rows]
    rows = [item for item in rows if item.strategy != "kmeans" or item.seed <= 2]
    assert judge(rows).ranks == {"evgp": 1.0, "kmeans": 2.0, "random": 3.0}
    few = judge([item for item in rows if item.strategy != "kmeans" or item.seed == 0])
    assert few.ranks == {"evgp": 1.0, "random": 2.0}


def test_the_mean_over_learners_is_plain_in_points_and_geometric_in_errors() -> None:
    rows = [row("p", "random", 0, n, mse=value, learner=learner)
            for n in LABELS for learner, value in (("1nn", 1.0), ("linear", 4.0))]  # fmt: skip
    (pool,) = pool_scores(rows)
    assert pool.scores["random"] == pytest.approx(-50 * log(2.0))
    assert pool_scores(rows, "1nn")[0].scores["random"] == pytest.approx(0.0)


def test_runs_that_a_learner_lacks_do_not_count() -> None:
    rows = planted({"random": 1.0, "evgp": 0.6})
    more = [row("pool0", "evgp", 99, n, accuracy=1.0, learner="trees") for n in LABELS]
    assert "pool0" not in [pool.name for pool in pool_scores([*rows, *more])]
    both = [replace(item, learner="trees") for item in rows if item.dataset == "pool0"]
    (pool, *_) = pool_scores([*rows, *more, *both])
    assert pool.name == "pool0" and 99 not in pool.seeds


def test_no_rows() -> None:
    with refused(DatasetError):
        judge([])
