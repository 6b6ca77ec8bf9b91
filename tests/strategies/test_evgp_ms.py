"""EV-GP with model selection: the network is the one that the labels choose."""

import pytest
import torch

from evgp import EVGP, NTK, Pool, run
from evgp.architectures import candidates, choose
from evgp.errors import PoolError
from evgp.strategies import EVGPMS
from evgp.testing import check_strategy
from tests.messages import refused

X = torch.randn(40, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
Y = X[:, 0].abs() + 0.3 * X[:, 1]
NETS = candidates(depths=(1, 2))
MS = EVGPMS(NETS, folds=10, least=6)


def scaled(y: torch.Tensor) -> torch.Tensor:
    return (y - y.mean()) / y.std(correction=0)


def labelled(count: int) -> Pool:
    return Pool(X, labelled=torch.arange(count), y=Y[:count])


def test_it_obeys_the_laws() -> None:
    check_strategy(MS, labelled(12), 5)


def test_picks_are_those_of_the_network_that_the_labels_choose() -> None:
    pool = labelled(12)
    chosen = choose(NETS, X[:12], scaled(Y[:12]), folds=10, scale=None)
    result = MS(pool, 4, generator=torch.Generator())
    assert result.settings["network"] == chosen.chosen.name
    scores = {entry.name: entry.score for entry in chosen.ranked}
    assert result.settings["scores"] == pytest.approx(scores)
    plain = EVGP(NTK(chosen.network))(pool, 4, generator=torch.Generator())
    assert result.indices.tolist() == plain.indices.tolist()


def test_without_enough_labels_the_first_network_picks() -> None:
    for pool in (Pool(X), labelled(5)):
        assert MS.choice(pool, 4) is None
        result = MS(pool, 4, generator=torch.Generator())
        assert result.settings["network"] == "relu-2"
        plain = EVGP(NTK(NETS["relu-2"]))(pool, 4, generator=torch.Generator())
        assert result.indices.tolist() == plain.indices.tolist()


def test_one_error_goes_through_the_rounds() -> None:
    careful = EVGPMS(NETS, folds=10, least=6, one_error=True)
    current = "relu-2"
    for end in (9, 15):
        choice = choose(
            NETS, X[:end], scaled(Y[:end]), folds=10, current=current, one_error=True,
            scale=None,
        )  # fmt: skip
        current = choice.chosen.name
    assert careful.choice(labelled(15), 6).chosen.name == current


def test_it_runs_in_the_loop() -> None:
    names = [
        result.selection.settings["network"]
        for result in run(Pool(X), MS, lambda rows: Y[rows], rounds=3, k=6)
    ]
    assert names[0] == "relu-2" and set(names) <= set(NETS)


def test_a_first_network_that_is_not_there_is_refused() -> None:
    with refused(PoolError):
        EVGPMS(NETS, first="relu-7")


def test_labels_are_needed_where_rows_are_labelled() -> None:
    with refused(PoolError):
        MS(Pool(X, labelled=torch.arange(8)), 2, generator=torch.Generator())


def test_the_unit_of_the_labels_changes_nothing() -> None:
    pool, other = labelled(12), Pool(X, labelled=torch.arange(12), y=1000 * Y[:12] + 7)
    ours, theirs = MS.choice(pool, 6), MS.choice(other, 6)
    assert [entry.name for entry in ours.ranked] == [entry.name for entry in theirs.ranked]
    assert ours.chosen.score == pytest.approx(theirs.chosen.score)


@pytest.mark.parametrize("one_error", [False, True])
def test_history_is_what_was_chosen_round_by_round(one_error: bool) -> None:
    careful = EVGPMS(NETS, folds=10, least=6, one_error=one_error)
    pool, chosen = Pool(X), []
    for result in run(pool, careful, lambda rows: Y[rows], rounds=3, k=6):
        chosen.append(careful.choice(result.pool, 6).chosen.name)
        pool = result.pool
    assert [step.chosen.name for step in careful.history(pool, 6)] == chosen
    again = run(Pool(X), careful, lambda rows: Y[rows], rounds=4, k=6)
    used = [result.selection.settings["network"] for result in again]
    assert used == ["relu-2", *chosen]
    assert MS.history(Pool(X), 6) == ()


@pytest.mark.parametrize(
    "y", [torch.stack([Y, -Y + X[:, 1] ** 2], 1), (Y > 0.8).long() + (Y > 1.4).long()]
)
def test_several_outputs_and_classes(y: torch.Tensor) -> None:
    rounds = list(run(Pool(X), MS, lambda rows: y[rows], rounds=3, k=6))
    picks = rounds[-1].pool.labelled.tolist()
    assert len(set(picks)) == 18
    known = rounds[-2].pool.labelled
    goals = y[known]
    goals = scaled_columns(goals) if goals.is_floating_point() else goals
    expected = choose(NETS, X[known], goals, folds=10, scale=None).chosen
    assert rounds[-1].selection.settings["network"] == expected.name


def scaled_columns(y: torch.Tensor) -> torch.Tensor:
    return (y - y.mean(0)) / y.std(0, correction=0)


def test_rounds_are_of_labels() -> None:
    with refused(PoolError):
        MS.history(labelled(12), 0)
