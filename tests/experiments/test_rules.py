"""The verdicts of contests test exactly the sentence next to them."""

import pytest

from experiments import (
    approximations,
    batch_regression,
    batch_size,
    batchbald,
    classification_convolutions,
    other_criteria,
    running_time,
)
from experiments.verdicts import outperforms

_CRITERIA = {"evgp": 0.5, "evgp-p90": 0.6, "evgp-mi": 0.55, "evgp-max": 0.9, "random": 0.8}
BETTER = {"evgp": 0.5, "evgp-p90": 0.6, "evgp-mi": 0.45, "evgp-max": 0.9, "random": 0.8}


def played(heights, names=("kin8nm",), seeds=3, **more):
    """Rows of batches: a flat curve for each strategy, with a little noise over seeds."""
    return [
        {"dataset": name, "strategy": way, "seed": seed, "batch": 20, "labels": labels,
         "budget": 40, "mse": height + 0.01 * seed, "output_variance_p90": height + 0.01 * seed,
         **more}
        for name in names
        for way, height in (heights[name] if name in heights else heights).items()
        for seed in range(seeds)
        for labels in (20, 40)
    ]  # fmt: skip


def verdicts(study, rows):
    return [claim.verdict for claim in study.claims(rows)]


def test_other_criteria() -> None:
    assert verdicts(other_criteria, played(BETTER))[:2] == ["holds", "holds"]
    swapped = BETTER | {"evgp": 0.9, "evgp-max": 0.5}  # 100V is best: nothing of it holds
    assert verdicts(other_criteria, played(swapped))[:2] == ["does not hold", "does not hold"]
    above = BETTER | {"evgp-max": 0.7}  # behind EV, but never behind random
    assert verdicts(other_criteria, played(above))[0] == "holds in part"
    both = {"kin8nm": BETTER, "boston": BETTER | {"evgp-mi": 0.55}}
    assert verdicts(other_criteria, played(both, ("kin8nm", "boston")))[2] == "holds"
    assert verdicts(other_criteria, played(BETTER))[2] == "holds in part"  # always ahead of EV


def turned(rows):
    """The same error, and a variance that says the reverse."""
    return [{**row, "output_variance_p90": 1 / row["mse"]} for row in rows]


def test_the_variance_counts_as_much_as_the_error() -> None:
    rows = turned(played(BETTER))
    assert verdicts(other_criteria, rows)[:2] == ["holds in part", "holds in part"]
    assert "output variance (90th percentile), in batches" in other_criteria.claims(rows)[0].ours
    heights = {"evgp": 0.5, "evgp-emp": 0.55, "evgp-sparse": 0.52, "evgp-linear": 0.6,
               "random": 0.8}  # fmt: skip
    for part in (played(heights), one_by_one(heights)):
        assert verdicts(approximations, part)[:3] == ["holds"] * 3
        assert verdicts(approximations, turned(part))[:3] == ["holds in part"] * 3


def test_criteria_are_correlated_if_all_four_are() -> None:
    def rows(largest):
        return [
            {"dataset": "boston", "strategy": "random", "seed": seed, "labels": n, "ev": -v,
             "mi": -v, "p90": -v, "max": largest * v, "output_variance_p90": v, "mse": v}
            for seed in (0, 1)
            for n, v in ((5, 0.9), (10, 0.5), (20, 0.2))
        ]  # fmt: skip

    assert verdicts(other_criteria, rows(-1))[4] == "holds"
    assert verdicts(other_criteria, rows(1))[4] == "does not hold"
    assert "100V -1.00" in other_criteria.claims(rows(1))[4].ours


def test_no_strategy_wins_alone() -> None:
    rows = played({"evgp": 0.5, "random": 0.8})
    assert outperforms(rows, ["mse"], ["random"]) == "holds"
    assert outperforms(rows, ["mse"], ["batchbald"]) == "not measured"
    assert outperforms(rows, ["mse"], ["random"], "badge") == "not measured"
    elsewhere = played({"random": 0.8}, ("boston",))  # where ours has not been run
    assert outperforms([*rows, *elsewhere], ["mse"], ["random"]) == "holds"


def test_thinning_is_by_the_worst_of_all_seeds() -> None:
    rows = [
        {"dataset": "kin8nm", "kind": "thin", "seed": seed, "points": points, "left": left}
        for seed, few in ((0, 1.01), (1, 1.2))
        for points, left in ((500, few), (4000, 1.0))
    ]
    assert verdicts(other_criteria, rows)[-1] == "does not hold"
    assert verdicts(other_criteria, rows[:2])[-1] == "holds"


def test_approximations() -> None:
    heights = {"evgp": 0.5, "evgp-emp": 0.55, "evgp-sparse": 0.52, "evgp-linear": 0.6,
               "random": 0.8}  # fmt: skip
    result = verdicts(approximations, played(heights, pick_seconds=1.0))
    assert result[:3] == ["holds", "holds", "holds"]
    useless = heights | {"evgp-emp": 0.85, "evgp-linear": 0.52}
    result = verdicts(approximations, played(useless, pick_seconds=1.0))
    assert result[:3] == ["holds in part", "holds", "does not hold"]  # it loses, and is of no use
    lossless = heights | {"evgp-emp": 0.45}
    assert verdicts(approximations, played(lossless, pick_seconds=1.0))[0] == "holds in part"
    both = heights | {"evgp-emp": 0.5, "random": 0.5}
    assert verdicts(approximations, played(both, pick_seconds=1.0))[0] == "does not hold"


def one_by_one(heights, names=("boston",), seeds=2):
    return [
        {"dataset": name, "strategy": way, "seed": seed, "labels": labels,
         "mse": height + 0.01 * seed, "output_variance_p90": height + 0.01 * seed, "ev": -0.1}
        for name in names
        for seed in range(seeds)
        for way, height in heights.items()
        for labels in (5, 10)
    ]  # fmt: skip


def test_picks_one_by_one_count_too() -> None:
    heights = {"evgp": 0.5, "evgp-emp": 0.55, "evgp-sparse": 0.52, "evgp-linear": 0.6,
               "random": 0.8}  # fmt: skip
    batch = played(heights, pick_seconds=1.0)
    better = one_by_one(heights | {"evgp-linear": 0.4})
    assert verdicts(approximations, [*batch, *one_by_one(heights)])[2] == "holds"
    assert verdicts(approximations, [*batch, *better])[2] == "holds in part"
    alone = one_by_one(heights, seeds=1)  # which shows nothing for sure
    assert verdicts(approximations, [*batch, *alone])[2] == "holds in part"
    rows = [*played(BETTER, pick_seconds=1.0), *one_by_one(_CRITERIA | {"evgp-mi": 0.7})]
    assert verdicts(other_criteria, rows)[2] == "holds"  # ahead of EV in batches alone
    assert verdicts(other_criteria, rows)[:2] == ["holds", "holds"]
    swapped = one_by_one(_CRITERIA | {"evgp-max": 0.4})
    rows = [*played(BETTER, pick_seconds=1.0), *swapped]
    assert verdicts(other_criteria, rows)[:2] == ["holds in part", "holds in part"]


def test_mutual_information_takes_longer() -> None:
    slow = [row | {"pick_seconds": 3.0 if row["strategy"] == "evgp-mi" else 2.0}
            for row in played(BETTER)]  # fmt: skip
    assert verdicts(other_criteria, slow)[3] == "holds"
    assert verdicts(other_criteria, played(BETTER, pick_seconds=2.0))[3] == "does not hold"
    noisy = [row | {"pick_seconds": (9.0, 1.0, 1.9)[row["seed"]]} if row["strategy"] == "evgp-mi"
             else row for row in played(BETTER, pick_seconds=1.5)]  # fmt: skip
    assert verdicts(other_criteria, noisy)[3] == "holds in part"  # longer by the mean alone
    assert "shared the cores" in other_criteria.claims(noisy)[3].ours


def test_a_gain_in_time_is_clear_of_its_error() -> None:
    for seconds, expected in (((1, 1, 1), "does not hold"), ((1, 2, 9), "holds")):
        rows = [row | {"pick_seconds": seconds[row["seed"]] if row["strategy"] == "evgp-sparse"
                else 3.0} for row in played({"evgp": 0.5, "evgp-sparse": 0.5})]  # fmt: skip
        assert verdicts(approximations, rows)[3] == expected


def test_badge_may_win() -> None:
    for height, expected in ((0.85, "holds"), (0.75, "does not hold")):
        rows = [
            {"dataset": "mnist", "strategy": way, "seed": seed, "batch": batch, "labels": 400,
             "budget": 400, "accuracy": (height if way == "badge" and batch == 50 else 0.8)
             + 0.01 * seed, "output_entropy": 0.1}
            for way in ("evgp-emp", "badge")
            for seed in range(3)
            for batch in (50, 400)
        ]  # fmt: skip
        assert verdicts(batch_size, rows)[3] == expected


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"evgp-emp": 0.0, "badge": -0.1, "random:100+mlmoc": -0.2},
         ["holds", "holds in part", "holds"]),  # the paper has a second dataset
        ({"evgp-emp": -0.02, "badge": -0.1, "random:100+mlmoc": -0.2},
         ["holds", "holds in part", "holds"]),  # clear of its error, and little all the same
        ({"evgp-emp": -0.04, "badge": -0.1, "random:100+mlmoc": -0.2},
         ["holds in part", "holds in part", "holds"]),  # less than half, not than a quarter
        ({"evgp-emp": -0.1, "badge": 0.0, "random:100+mlmoc": -0.05},
         ["does not hold", "does not hold", "does not hold"]),
        ({"evgp-emp": 0.1, "badge": 0.0, "random:100+mlmoc": 0.0},
         ["holds", "does not hold", "does not hold"]),  # a change for the better does no harm
    ],
)  # fmt: skip
def test_batch_sizes(change, wanted) -> None:
    rows = [
        {"dataset": "mnist", "strategy": way, "seed": seed, "batch": batch, "labels": 400,
         "budget": 400, "accuracy": 0.8 + 0.01 * seed + (down + noise if batch == 400 else 0),
         "output_entropy": 0.1 - (down - noise if batch == 400 else 0)}
        for way, down in change.items()
        for seed, noise in enumerate((-0.002, 0.001, 0.001))
        for batch in (50, 400)
    ]  # fmt: skip
    assert verdicts(batch_size, rows)[:3] == wanted


def test_one_seed_has_no_error() -> None:
    rows = [
        {"dataset": "mnist", "strategy": way, "seed": 0, "batch": batch, "labels": 4, "budget": 4,
         "accuracy": 0.5, "output_entropy": 0.5}
        for way in batch_size.WAYS
        for batch in (2, 4)
    ]  # fmt: skip
    assert not any("nan" in claim.ours for claim in batch_size.claims(rows))
    assert verdicts(batch_size, rows)[0] == "holds in part"


def took(way, n, seconds, seed=0):
    return {"dataset": "mnist", "strategy": way, "labels": n, "seconds": seconds, "pool": 500,
            "seed": seed}  # fmt: skip


def test_seconds_are_compared_at_as_many_picks() -> None:
    rows = [took("evgp", 100, 10.0), took("evgp", 400, 20.0), took("badge", 400, 30.0)]
    slow = [*rows, took("batchbald", 100, 9.0), took("random:100+mlmoc", 400, 5.0)]
    assert verdicts(running_time, slow) == ["holds in part", "holds in part", "does not hold"]
    assert "a pool of 500 in place of 10,000" in running_time.claims(slow)[0].ours
    assert "10 and 9 (n = 100)" in running_time.claims(slow)[0].ours
    assert verdicts(running_time, rows)[0] == "not measured"


def test_badge_is_a_baseline_too_and_one_seed_shows_no_more_than_a_part() -> None:
    once = [took("evgp", 400, 20.0), took("badge", 400, 3.0), took("random:100+mlmoc", 400, 30.0)]
    assert verdicts(running_time, once) == ["holds in part"] * 3
    twice = [*once, *({**row, "seed": 1} for row in once)]
    assert verdicts(running_time, twice) == ["holds", "holds in part", "holds"]
    faster = [*twice, took("random:100+mlmoc", 400, 0.0), took("random:100+mlmoc", 400, 0.0)]
    faster = [row | {"seconds": 1.0} if "mlmoc" in row["strategy"] else row for row in faster]
    assert verdicts(running_time, faster)[2] == "holds in part"  # not faster than all
    alone = [row for row in twice if row["strategy"] != "random:100+mlmoc"]
    assert verdicts(running_time, alone) == ["not measured", "does not hold", "holds"]


def classified(heights, network, losses, seeds=2, dataset="svhn"):
    """Rows of classes: accuracy and entropy of each strategy."""
    return [
        {"dataset": dataset, "strategy": way, "seed": seed, "labels": n, "budget": 200,
         "network": network, "accuracy": accuracy + 0.001 * seed, "output_entropy": entropy,
         "train_loss": loss}
        for way, (accuracy, entropy) in heights.items()
        for seed in range(seeds)
        for n, loss in zip((100, 200), losses, strict=True)
    ]  # fmt: skip


def test_networks_that_learnt_nothing_say_nothing() -> None:
    ahead, behind = {"evgp": (0.6, 0.2), "random": (0.5, 0.4)}, {"evgp": (0.1, 0.9),
                     "random": (0.2, 0.5)}  # fmt: skip
    trained = classified(ahead, "wrn-10-1", (2.2, 0.3))
    rows = [*trained, *classified(behind, "resnet18", (2.2, 2.25))]
    assert verdicts(classification_convolutions, rows) == ["holds", "holds"]
    assert "SVHN, ResNet18 (2.20 of 2.30)" in classification_convolutions.claims(rows)[0].ours
    rows = [*trained, *classified(behind, "resnet18", (2.2, 1.9))]
    assert verdicts(classification_convolutions, rows) == ["holds in part"] * 2


def test_batchbald_is_beaten_by_entropy_and_accuracy() -> None:
    both = classified({"evgp": (0.6, 0.2), "batchbald": (0.5, 0.4)}, "mlp", (0, 0))
    assert verdicts(batchbald, both) == ["holds"]
    assert "EV-GP is better than BatchBALD by both" in batchbald.claims(both)[0].ours
    first = classified({"evgp": (0.6, 0.5), "batchbald": (0.5, 0.4)}, "mlp", (0, 0))
    assert verdicts(batchbald, first) == ["does not hold"]


def larger(gains):
    """Accuracy of EV-GP-Emp, and of its rivals, which lose with larger batches by so much."""
    return [
        {"dataset": "mnist", "strategy": way, "seed": seed, "batch": batch, "labels": 400,
         "budget": 400, "accuracy": 0.8 + 0.001 * seed - lost + noise * (batch == 400),
         "output_entropy": 0.1}
        for batch, lost in gains.items()
        for seed, noise in enumerate((0.001, -0.001, 0.0))
        for way, lost in (("evgp-emp", 0.0), ("badge", lost), ("random:100+mlmoc", lost))
    ]  # fmt: skip


def test_large_batches() -> None:
    assert verdicts(batch_size, larger({50: 0.0, 400: 0.1}))[4] == "holds"
    assert verdicts(batch_size, larger({50: 0.1, 400: 0.05}))[4] == "does not hold"  # it shrinks
    assert verdicts(batch_size, larger({50: -0.1, 400: -0.05}))[4] == "does not hold"  # behind
    assert "400: +12.5 %" in batch_size.claims(larger({50: 0.0, 400: 0.1}))[4].ours


def lying(apart, linked):
    return [
        {"dataset": "boston", "seed": seed, "kind": "outliers", "strategy": way,
         "apart": apart[way] + seed, "linked": linked[way] + 0.01 * seed}
        for seed in (0, 1)
        for way in ("evgp", "kmeans++", "random")
    ]  # fmt: skip


def test_outliers() -> None:
    trained = played({"evgp": 0.5, "random": 0.8})
    far = {"evgp": 60, "kmeans++": 80, "random": 50}
    near = {"evgp": 0.5, "kmeans++": 0.3, "random": 0.6}
    actual = batch_regression.claims([*trained, *lying(far, near)])[-1]
    assert actual.verdict == "holds" and "Boston 80, 60, 50" in actual.ours.replace("81", "80")
    assert verdicts(batch_regression, [*trained, *lying(near, far)])[-1] == "does not hold"
    # Other rows do not belong to a contest.
    assert (
        verdicts(batch_regression, trained)[:3]
        == verdicts(batch_regression, [*trained, *lying(far, near)])[:3]
    )
    assert verdicts(batch_regression, trained)[-1] == "not measured"


@pytest.mark.parametrize(
    ("shares", "wanted"),
    [((1, 0), "holds"), ((1, 2), "holds in part"), ((0, 1), "does not hold")],
)
def test_unstable_sets(shares, wanted) -> None:
    rows = [
        {"dataset": "boston", "strategy": way, "seed": seed, "labels": 5, "mse": 0.5, "ev": -0.1,
         "output_variance_p90": 0.5, "lr": 0.0025 if seed < anew else 0.01}
        for way, anew in zip(("evgp-max", "evgp"), shares, strict=True)
        for seed in range(4)
    ]  # fmt: skip
    claim = next(claim for claim in other_criteria.claims(rows) if "unstable" in claim.paper)
    assert claim.verdict == wanted
    assert f"100V {25 * shares[0]} %" in claim.ours and f"EV {25 * shares[1]} %" in claim.ours
