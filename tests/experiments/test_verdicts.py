"""Every verdict follows from its rule: rows made by hand that hold, hold in part, or do not."""

import numpy as np
import pytest
import torch

from evgp import mlp
from evgp.comparison.statistics import mean_and_error
from evgp.kernels import NTK
from experiments import (
    batch_regression,
    classification_mlp,
    exchange_and_certificate,
    fit_and_bias,
    initial_points,
    initialisation_illustration,
    map_of_picks,
    sequential_selection,
    variance_correlation,
    width,
)
from experiments import sets as sets_of
from experiments.verdicts import clear, graded, lead, least_clear, little, rule, sometimes

NAN = float("nan")
YES, PART, NO, NONE = "holds", "holds in part", "does not hold", "not measured"


def verdict_of(claims, words):
    """The verdict on the one claim that begins so."""
    (actual,) = [claim for claim in claims if claim.paper.startswith(words)]
    return actual.verdict


def test_a_mean_has_the_error_of_its_seeds() -> None:
    assert mean_and_error([2.0, 4.0, 6.0]) == pytest.approx((4.0, 2 / 3**0.5))
    assert np.isnan(mean_and_error([2.0])[1]) and np.isnan(mean_and_error([])[0])
    assert clear((1.0, 0.9)) and not clear((1.0, 1.0)) and not clear((5.0, NAN))


def test_graded() -> None:
    assert graded([[(2.0, 1.0), (3.0, 1.0)], [(2.0, 1.0)]]) == YES
    assert graded([[(2.0, 1.0), (3.0, 1.0)], [(-2.0, 1.0)]]) == PART
    assert graded([[(0.5, 1.0)]]) == PART  # ahead, not clear
    assert graded([[(2.0, NAN)]]) == PART  # the most that one seed can show
    assert graded([[(2.0, 0.1), (-0.1, 1.0)]]) == NO  # no dataset does all that is asked
    assert graded([]) == graded([[]]) == graded([[(NAN, NAN)]]) == NONE


def test_little_is_less_than_a_quarter_of_what_it_is_compared_with() -> None:
    for error in (1.0, 1e-9):  # more seeds do not make it larger
        assert little([((0.4, error), (2.0, error))]) == YES
        assert little([((0.9, error), (2.0, error))]) == PART
        assert little([((-1.1, error), (2.0, error))]) == NO
        assert little([((0.1, error), (0.0, error))]) == NO
        assert little([((0.0, error), (0.0, error))]) == YES
    assert little([((0.1, 0.1), (-2.0, 0.1)), ((1.5, 0.1), (2.0, 0.1))]) == PART
    assert little([((0.1, NAN), (2.0, NAN))]) == PART  # the most that one seed can show
    assert little([]) == little([((NAN, NAN), (1.0, NAN))]) == NONE


def test_some_experiments() -> None:
    assert sometimes([(-5.0, 1.0), (2.0, 1.0)]) == YES
    assert sometimes([(-5.0, 1.0), (0.5, 1.0)]) == PART
    assert sometimes([(-5.0, 1.0)]) == NO and sometimes([]) == NONE


def test_the_rule_is_stated_with_what_one_seed_can_show() -> None:
    assert "at most" in rule("so", [{"seed": 0}])
    assert "more than one standard error" in rule("so", [{"seed": 0}, {"seed": 1}])


def contest(found, metric="mse", dataset="boston"):
    """Rows of strategies from curves, one for each seed."""
    return [
        {"dataset": dataset, "strategy": way, "seed": seed, "labels": 10 * (i + 1), "budget": 20,
         metric: value, "train_loss": 0.1}
        for way, curves in found.items()
        for seed, curve in enumerate(curves)
        for i, value in enumerate(curve)
    ]  # fmt: skip


def test_one_extreme_seed_does_not_decide() -> None:
    """Two of three seeds are halved, one is a hundredfold: a mean of ratios would say -3267 %."""
    rows = contest({"evgp": [(1, 1), (1, 1), (1, 1)], "random": [(2, 2), (2, 2), (0.01, 0.01)]})
    mean, error = lead(rows, "mse", "evgp", "random")
    logs = np.log([2, 2, 0.01])
    assert (mean, error) == pytest.approx((logs.mean(), logs.std(ddof=1) / 3**0.5))
    assert least_clear(rows, "mse", ["random"]).startswith("Boston -66 % ±")


BATCHES = {"evgp": [(1, 1), (1.1, 1.1)], "random": [(2, 2), (2.3, 2.3)], "kmeans++": [(3, 3)] * 2}


def batches(changes):
    """Both metrics of three strategies."""
    rows = contest({**BATCHES, **changes})
    return [{**row, "output_variance_p90": row["mse"]} for row in rows]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, YES),
        ({"random": [(2, 2), (1.05, 1.05)]}, PART),  # ahead in the mean, not clear
        ({"random": [(0.5, 0.5)] * 2}, NO),
    ],
)
def test_batches_against_random_and_kmeans(changes, expected) -> None:
    assert (
        verdict_of(batch_regression.claims(batches(changes)), "EV-GP outperforms random")
        == expected
    )


def test_batches_against_two_asks_for_both_metrics() -> None:
    rows = [{**row, "output_variance_p90": 1 / row["mse"]} for row in batches({})]
    claims = batch_regression.claims(rows)
    assert verdict_of(claims, "EV-GP selects batches that lead to small") == YES
    assert verdict_of(claims, "EV-GP outperforms random") == NO


@pytest.mark.parametrize(
    ("curves", "expected"),
    [
        ([(0.8, 0.80), (0.81, 0.80)], YES),  # far ahead at first, little later
        ([(0.6, 0.80), (0.61, 0.80)], NO),  # ahead throughout, but not more at first
        ([(0.5, 0.80), (0.95, 0.80)], PART),
    ],
)
def test_especially_in_the_earlier_rounds(curves, expected) -> None:
    """With a rival of 0.5 at first and 0.6 later, and a weak one that does not matter."""
    actual = {"evgp": curves, "kmeans++": [(0.5, 0.6)] * 2, "random": [(0.1, 0.1)] * 2}
    rows = [{**row, "output_entropy": 1 / row["accuracy"]} for row in contest(actual, "accuracy")]
    assert verdict_of(classification_mlp.claims(rows), "Especially") == expected


@pytest.mark.parametrize(
    ("first", "without", "badge", "mlmoc", "warm"),
    [
        ({"random": (0.55, 0.57), "evgp": (0.6, 0.62)}, 0.25, YES, YES, YES),
        ({"random": (0.55, 0.57), "evgp": (0.6, 0.62)}, 0.4, PART, YES, YES),
        ({"random": (0.6, 0.62), "evgp": (0.57, 0.59)}, 0.25, YES, YES, NO),  # random is better
        ({"random": (0.6, 0.62), "evgp": (0.4, 0.42)}, 0.49, NO, YES, NO),
    ],
)
def test_first_batches(first, without, badge, mlmoc, warm) -> None:
    actual = {
        f"{start}+{way}": [(value, value) for value in values]
        for way in ("badge", "mlmoc")
        for start, values in first.items()
    }
    cold = {"badge": [(0.49, 0.49), (0.525, 0.525)], "mlmoc": [(without, without)] * 2}
    claims = initial_points.claims(contest({**actual, **cold}, "accuracy"))
    assert verdict_of(claims, "BADGE") == badge
    assert verdict_of(claims, "Ours") == warm
    assert verdict_of(claims, "MLMOC") == mlmoc


def sets(picks, random, seeds=2, dataset="boston", **more):
    """Sets of picks and random ones: variance, error and bias are one number for each size."""
    return [
        {"dataset": dataset, "strategy": way, "seed": seed, "labels": n, "ev": ev + 0.001 * draw,
         "output_variance_p90": value * tilt, "mse": value * tilt, "bias": value, "train_loss": 0.1,
         **more}
        for seed in range(seeds)
        for way, values, at, draws in (("evgp", picks, 0.3, 1), ("random", random, 0.0, 2))
        for draw in range(draws)
        for n, ev, value in zip((5, 10, 20), (-0.9 + at, -0.6 + at, -0.3 + at), values, strict=True)
        for tilt in [1 + 0.01 * seed + 0.001 * draw]
    ]  # fmt: skip


FALLS, RANDOM = (0.5, 0.3, 0.1), (0.8, 0.6, 0.4)


@pytest.mark.parametrize(
    ("picks", "random", "progress", "ahead", "error"),
    [
        (FALLS, RANDOM, YES, YES, YES),
        ((0.5, 0.3, 0.35), RANDOM, NO, YES, NO),  # rises at the end
        ((0.9, 0.7, 0.5), RANDOM, YES, NO, NO),  # falls, as random sets do, and is worse
    ],
)
def test_picked_one_by_one(picks, random, progress, ahead, error) -> None:
    claims = sequential_selection.claims(sets(picks, random))
    assert verdict_of(claims, "Picking by the criterion progressively") == progress
    assert verdict_of(claims, "Picking by the criterion consistently") == ahead
    assert verdict_of(claims, "Picking by the criterion also") == error
    once = sequential_selection.claims(sets(picks, random, seeds=1))
    assert all(claim.verdict != YES for claim in once)


def test_the_criterion_and_the_variance_of_random_sets() -> None:
    for picks, random, expected in (
        ((0.9, 0.5, 0.3), RANDOM, YES),
        ((0.9, 0.7, 0.3), RANDOM[::-1], NO),
    ):
        claims = sequential_selection.claims(sets(picks, random))
        assert verdict_of(claims, "The criterion is highly") == expected
        assert verdict_of(claims, "Sets of picks") == expected


def test_suitable_networks_are_ordered_pair_by_pair() -> None:
    assert fit_and_bias.in_order([True, True]) == YES
    assert fit_and_bias.in_order([True, True, False]) == PART
    assert fit_and_bias.in_order([True, False]) == NO and fit_and_bias.in_order([]) == NONE


def test_a_lower_error_is_lower_than_that_of_random_sets() -> None:
    """Boston, where the criterion says little, is the half that is asked."""
    strong = sets(FALLS, RANDOM, dataset="random-model")
    for picks, expected in ((FALLS, YES), ((0.9, 0.8, 0.7), NO)):
        weak = sets(picks, (0.8, 0.3, 0.4))
        claims = fit_and_bias.claims([*strong, *weak])
        assert verdict_of(claims, "Even where") == expected


def test_the_papers_weak_datasets_count_even_if_they_are_not_weak_here() -> None:
    """Robot Kinematics is in order, and picks have a larger error than random sets there."""
    rows = [*sets(FALLS, (0.8, 0.3, 0.4)), *sets(FALLS, (0.8, 0.3, 0.4), dataset="protein")]
    assert verdict_of(fit_and_bias.claims(rows), "Even where") == YES
    claims = fit_and_bias.claims([*rows, *sets((0.9, 0.8, 0.7), RANDOM, dataset="kin8nm")])
    assert verdict_of(claims, "Even where") == PART


def subset(observed, predicted, trained, training, seed):
    return [
        {"dataset": "boston", "seed": seed, "size": size, "training": training, "point": i,
         "ntkgp": p, "sparse": p, "trained": t, "observed": o * (1 + 0.01 * seed + 0.001 * size),
         "train_loss": 0.1 * size}
        for size in (1, 2)
        for i, (o, p, t) in enumerate(zip(observed, predicted, trained, strict=True))
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("observed", "high", "region", "size"),
    [
        ([0.1, 0.21, 0.39, 0.82], YES, YES, YES),
        ([0.8, 0.4, 0.2, 0.1], NO, NO, YES),  # upside down: the ratio spans more than the observed
        ([8.0, 16.0, 33.0, 64.0], YES, YES, NO),  # in order, but as large as the NTKGP says
    ],
)
def test_predicted_and_observed_variance(observed, high, region, size) -> None:
    predicted, trained = [10.0, 20.0, 40.0, 80.0], [0.1, 0.2, 0.4, 0.8]
    rows = [
        row
        for training in ("descent", "adam")
        for seed in (0, 1)
        for row in subset(observed, predicted, trained, training, seed)
    ]
    claims = variance_correlation.claims(rows)
    assert verdict_of(claims, "The NTKGP") == verdict_of(claims, "The sparse") == high
    assert verdict_of(claims, "The variances are confined") == region
    assert verdict_of(claims, "Ours") == size


def widths(by_select, by_train):
    """Accuracy and entropy as sums of what either width does; a third seed is a little off."""
    return [
        {"seed": seed, "select": s, "train_width": t, "accuracy": a + b + 1e-5 * seed * (s + t),
         "output_entropy": 1 - a - b - 1e-5 * seed * (s + t)}
        for seed in (-1, 0, 1)
        for s, a in zip((1, 2, 4), by_select, strict=True)
        for t, b in zip((1, 2, 4), by_train, strict=True)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("selects", "trains", "picking", "training", "negligible"),
    [
        ((0.1, 0.1, 0.1), (0.1, 0.2, 0.3), NO, YES, YES),
        ((0.1, 0.2, 0.3), (0.1, 0.05, 0.3), YES, PART, NO),  # a doubling that does harm
        ((0.2, 0.1, 0.3), (0.3, 0.25, 0.2), PART, NO, NO),
        ((0.1, 0.15, 0.18), (0.1, 0.2, 0.3), YES, YES, PART),  # clear, but less than half
        ((0.1, 0.12, 0.14), (0.1, 0.2, 0.3), YES, YES, YES),  # clear, but less than a quarter
    ],
)
def test_widths(selects, trains, picking, training, negligible) -> None:
    claims = width.claims(widths(selects, trains))
    assert verdict_of(claims, "A wider network for the picks improves") == picking
    assert verdict_of(claims, "A wider network in training improves accuracy") == training
    assert verdict_of(claims, "A wider network in training improves robustness") == training
    assert verdict_of(claims, "A wider network for the picks has") == negligible


def test_a_map() -> None:
    def claims(picked, spread=1.0):
        return map_of_picks.claims(
            [
                {"deviation": 1 + spread * i, "neighbours": (i * 7) % 40}
                | ({"rank": i} if i in picked else {})
                for i in range(40)
            ]
        )

    both = [i for i in range(40) if i > 20 and (i * 7) % 40 > 20]
    assert verdict_of(claims(both), "Picks prefer") == YES
    assert verdict_of(claims(range(25, 40)), "Picks prefer") == PART
    assert verdict_of(claims([i for i in range(20) if (i * 7) % 40 < 20]), "Picks prefer") == NO
    assert verdict_of(claims(both), "The variance at") == YES
    assert verdict_of(claims(both, 1e-3), "The variance at") == NO


def test_an_illustration() -> None:
    def rows(picked, clustered):
        return [
            {"panel": panel, "member": member, "x": x, "output": scale * (-1) ** member * member}
            for panel, scale in (("before", 1), ("picked", picked), ("clustered", clustered))
            for member in range(6)
            for x in (0.0, 1.0)
        ]

    words = "Depending on"
    assert verdict_of(initialisation_illustration.claims(rows(0.1, 1.0)), words) == YES
    assert verdict_of(initialisation_illustration.claims(rows(1.0, 0.9)), words) == NO


def test_exchange_and_what_is_proved() -> None:
    def claims(exchange, certified):
        return exchange_and_certificate.claims(
            [
                {"dataset": "kin8nm", "seed": seed, "labels": 10, "way": way, "left": left,
                 "certified": certified}
                for seed in (0, 1)
                for way, left in (("greedy", 1.0 + 0.1 * seed), ("exchange", exchange[seed]))
            ]
        )  # fmt: skip

    gaps = ((0.9, 1.0), (0.8, 1.11), (1.2, 1.3))
    assert [verdict_of(claims(gap, 0.9), "Ours") for gap in gaps] == [YES, PART, NO]
    assert verdict_of(claims((0.9, 1.0), 0.9), "Greedy") == PART
    assert verdict_of(claims((0.9, 1.0), 0.5), "Greedy") == NONE


def test_large_pools_are_valued_on_thinned_test_points(monkeypatch) -> None:
    monkeypatch.setattr(sets_of, "_TEST", 12)
    monkeypatch.setattr(sets_of, "_JOINT", 6)
    ground = sets_of.Ground("random-model", 0, 20, 5, 8, 2, 1, noise=1e-6)
    rows, seen = torch.tensor([3, 11, 17]), ground.looked_at
    assert len(seen) <= 12 and len(ground.joint) <= 6
    points = torch.unique(torch.cat([rows, seen, ground.joint]))
    matrix = NTK(mlp())(ground.data.x).numpy()
    scale = matrix.diagonal()[points].mean()
    for noise, name, how in ((1e-6, "ev", np.mean), (1e-4, "max", np.max)):
        inner = np.linalg.inv(matrix[np.ix_(rows, rows)] + noise * scale * np.eye(3))
        left = matrix.diagonal() - np.einsum("ij,jk,ki->i", matrix[:, rows], inner, matrix[rows])
        assert ground.values(rows)[name] == pytest.approx(-how(left[seen]), rel=1e-4)
