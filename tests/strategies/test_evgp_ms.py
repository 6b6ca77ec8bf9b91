"""EV-GP with model selection: the network is the one that the labels choose."""

import pytest
import torch

from evgp import EVGP, NTK, Pool, run
from evgp._errors import PoolError
from evgp.architectures import candidates, choose
from evgp.strategies import EVGPMS
from tests.laws import strategy as law

X = torch.randn(40, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
Y = X[:, 0].abs() + 0.3 * X[:, 1]
NETS = candidates(depths=(1, 2))
MS = EVGPMS(NETS, folds=10, batch=6, least=6)


def labelled(count: int) -> Pool:
    return Pool(X, labelled=torch.arange(count), y=Y[:count])


def test_it_obeys_the_laws() -> None:
    law.obeys(MS, labelled(12), 5)


def test_picks_are_those_of_the_network_that_the_labels_choose() -> None:
    pool = labelled(12)
    chosen = choose(NETS, X[:12], Y[:12], folds=10)
    made = MS(pool, 4, generator=torch.Generator())
    assert made.settings["network"] == chosen.chosen.name
    assert made.settings["scores"] == {one.name: one.score for one in chosen.ranked}
    plain = EVGP(NTK(chosen.network))(pool, 4, generator=torch.Generator())
    assert made.indices.tolist() == plain.indices.tolist()


def test_without_enough_labels_the_first_network_picks() -> None:
    for pool in (Pool(X), labelled(5)):
        assert MS.choice(pool) is None
        made = MS(pool, 4, generator=torch.Generator())
        assert made.settings["network"] == "relu-2"
        plain = EVGP(NTK(NETS["relu-2"]))(pool, 4, generator=torch.Generator())
        assert made.indices.tolist() == plain.indices.tolist()


def test_one_error_goes_through_the_rounds() -> None:
    careful = EVGPMS(NETS, folds=10, batch=6, least=6, one_error=True)
    current = "relu-2"
    for end in (6, 12, 15):
        made = choose(NETS, X[:end], Y[:end], folds=10, current=current, one_error=True)
        current = made.chosen.name
    assert careful.choice(labelled(15)).chosen.name == current


def test_it_runs_in_the_loop() -> None:
    names = [
        made.selection.settings["network"]
        for made in run(Pool(X), MS, lambda rows: Y[rows], rounds=3, k=6)
    ]
    assert names[0] == "relu-2" and set(names) <= set(NETS)


def test_a_first_network_that_is_not_there_is_refused() -> None:
    with pytest.raises(PoolError, match=r"first network among relu-1, .*got 'relu-7'"):
        EVGPMS(NETS, first="relu-7")


def test_labels_are_needed_where_rows_are_labelled() -> None:
    with pytest.raises(PoolError, match="labels of the 8 labelled points for EVGPMS"):
        MS(Pool(X, labelled=torch.arange(8)), 2, generator=torch.Generator())
