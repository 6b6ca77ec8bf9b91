"""The verdicts of contests test the very sentence beside them."""

import pytest

from evgp.studies import approximations, batch_size, other_criteria, running_time
from evgp.studies.contests import wins

BETTER = {"evgp": 0.5, "evgp-p90": 0.6, "evgp-mi": 0.45, "evgp-max": 0.9, "random": 0.8}


def played(heights, names=("kin8nm",), seeds=3, **more):
    """Rows of batches: a flat curve for each strategy, with a little noise over seeds."""
    return [
        {"dataset": name, "strategy": way, "seed": seed, "batch": 20, "labels": labels,
         "budget": 40, "mse": height + 0.01 * seed, **more}
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


def test_nobody_wins_alone() -> None:
    rows = played({"evgp": 0.5, "random": 0.8})
    assert wins(rows, "mse", "evgp", ["random"]) == "holds"
    assert wins(rows, "mse", "evgp", ["batchbald"]) == "not measured"


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
    made = verdicts(approximations, played(heights, pick_seconds=1.0))
    assert made[:3] == ["holds", "holds", "holds"]
    useless = heights | {"evgp-emp": 0.85, "evgp-linear": 0.52}
    made = verdicts(approximations, played(useless, pick_seconds=1.0))
    assert made[:3] == ["does not hold", "holds", "does not hold"]


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"evgp-emp": 0.0, "badge": -0.1, "random:100+mlmoc": -0.2}, ["holds"] * 3),
        ({"evgp-emp": -0.1, "badge": 0.0, "random:100+mlmoc": -0.05},
         ["holds in part", "does not hold", "does not hold"]),
    ],
)  # fmt: skip
def test_batch_sizes(change, wanted) -> None:
    rows = [
        {"dataset": "mnist", "strategy": way, "seed": seed, "batch": batch, "labels": 400,
         "budget": 400, "accuracy": 0.8 + 0.01 * seed + (down + noise if batch == 400 else 0),
         "output_entropy": 0.1 + (noise if batch == 400 else 0)}
        for way, down in change.items()
        for seed, noise in enumerate((-0.002, 0.001, 0.001))
        for batch in (50, 400)
    ]  # fmt: skip
    assert verdicts(batch_size, rows) == wanted


def test_seconds_are_compared_at_as_many_picks() -> None:
    def took(way, n, seconds):
        return {"dataset": "mnist", "strategy": way, "labels": n, "seconds": seconds,
                "pool": 10_000, "seed": 0}  # fmt: skip

    rows = [took("evgp", 100, 10.0), took("evgp", 400, 20.0), took("badge", 400, 30.0)]
    slow = [*rows, took("batchbald", 100, 9.0), took("random:100+mlmoc", 400, 5.0)]
    assert verdicts(running_time, slow) == ["holds in part", "does not hold"]
    assert "10 and 9 (n = 100)" in running_time.claims(slow)[0].ours
    assert verdicts(running_time, rows)[0] == "not measured"
