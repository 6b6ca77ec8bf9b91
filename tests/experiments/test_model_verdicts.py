"""Verdicts on the choice of networks follow from their rules."""

import pytest

from experiments import (
    model_selection,
)
from tests.experiments.test_verdicts import NO, PART, YES, verdict_of


def played(ways, ladder, dataset="kin8nm"):
    """Rounds by way and seed, and for every architecture its score and its error."""
    rows = [
        {"kind": "round", "dataset": dataset, "strategy": way, "seed": seed, "labels": n,
         "network": "relu-2", "mse": value}
        for way, values in ways.items()
        for seed, value in enumerate(values)
        for n in (20, 200)
    ]  # fmt: skip
    return rows + [
        {"kind": "ladder", "dataset": dataset, "seed": seed, "labels": n, "network": name,
         "score": score, "mse": error * (1 + 0.01 * seed), "naswot": 1.0 + error, "evidence": error,
         "train_loss": error}
        for seed in (0, 1)
        for n in (20, 200)
        for name, (score, error) in ladder.items()
    ]  # fmt: skip


BEST = {"erf-1": (1, 1.0), "gelu-1": (2, 2.0), "relu-2": (3, 3.0), "relu-3": (4, 4.0),
        "relu-4": (5, 5.0)}  # fmt: skip
ROUNDS = {"evgp-ms": (1.0, 1.0), "fixed": (1.0, 1.02), "naswot": (2.0, 2.1),
          "evgp-ms-1se": (0.8, 0.81)}  # fmt: skip


@pytest.mark.parametrize(
    ("score", "accurate", "often", "acceptable"),
    [
        ((1, 2, 3, 4, 5), YES, NO, YES),  # the best is chosen
        ((1.1, 1, 3, 4, 5), YES, YES, YES),  # not the best, better than the median
        ((2, 1, 3, 4, 5), YES, PART, YES),  # the same, but its score is as informative as its error
        ((1.2, 1.15, 1.1, 1.05, 1), NO, YES, NO),  # the worst: that does not help the claim
    ],
)
def test_scores_and_choices(score, accurate, often, acceptable) -> None:
    ladder = {
        name: (item, error) for item, (name, (_, error)) in zip(score, BEST.items(), strict=True)
    }
    claims = model_selection.claims(played(ROUNDS, ladder))
    assert verdict_of(claims, "The score is") == accurate
    assert verdict_of(claims, "Several networks") == often
    assert verdict_of(claims, "The network that is selected") == acceptable
    assert verdict_of(claims, "In most datasets") == acceptable


def test_fixed_networks_that_do_well_and_others() -> None:
    bad = {**BEST, "relu-2": (3, 9.0)}  # the fixed network is worse than the median

    def verdict(ladder, **ways):
        return verdict_of(
            model_selection.claims(played({**ROUNDS, **ways}, ladder)), "Where the fixed"
        )

    assert verdict(BEST) == YES  # on par
    assert verdict(BEST, fixed=(0.5, 0.51)) == NO
    assert verdict(bad, fixed=(2.0, 2.1)) == YES
    assert verdict(bad) == YES  # ahead by more than a standard error, if by little
    assert verdict(bad, fixed=(1.0, 1.0)) == NO  # a network that is not better
    two = played(ROUNDS, BEST) + played({**ROUNDS, "fixed": (0.5, 0.51)}, BEST, "naval")
    assert verdict_of(model_selection.claims(two), "Where the fixed") == PART


def test_rivals_of_model_selection() -> None:
    for naswot, expected in (((2.0, 2.1), YES), ((0.5, 2.5), PART), ((0.5, 0.6), NO)):
        claims = model_selection.claims(played({**ROUNDS, "naswot": naswot}, BEST))
        assert verdict_of(claims, "EV-GP+MS does better") == expected
    for kept, expected in (((0.8, 0.81), YES), ((0.5, 1.9), PART), ((1.2, 1.3), NO)):
        claims = model_selection.claims(played({**ROUNDS, "evgp-ms-1se": kept}, BEST))
        assert verdict_of(claims, "Ours") == expected
