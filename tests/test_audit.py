"""The audit of a labelled set against direct solves, and what it refuses."""

import numpy as np
import pytest
import torch

from evgp import EVGP, NNGP, NTK, Pool, audit, mlp, ntkgp, trained
from evgp._errors import EvgpError

X = np.random.default_rng(0).normal(size=(60, 3))
TRAIN, TEST, POOL = X[:20], X[20:35], X[35:]


def test_deviations_are_those_of_the_closed_forms() -> None:
    made = audit(TRAIN, TEST, standardise=False, noise=1e-4)
    ntk, nngp = NTK(mlp()), NNGP(mlp())
    zeros = np.zeros(20)
    ours = trained(ntk, nngp, TRAIN, zeros, TEST, noise=1e-4).variance.sqrt()
    process = ntkgp(ntk, TRAIN, zeros, TEST, noise=1e-4).variance.sqrt()
    np.testing.assert_allclose(made.deviation, ours, rtol=1e-9)
    np.testing.assert_allclose(made.ceiling, process, rtol=1e-7)
    assert (made.deviation <= made.ceiling + 1e-9).all()
    assert made.prior == pytest.approx((nngp.diag(TEST).mean(), ntk.diag(TEST).mean()))
    assert made.at_risk(3).tolist() == np.argsort(-made.deviation)[:3].tolist()


def test_influence_is_what_leaving_a_row_out_does() -> None:
    made = audit(TRAIN, TEST, standardise=False, noise=1e-3)
    ntk = NTK(mlp())
    whole = float((made.ceiling**2).mean())
    for row in range(20):
        rest = np.delete(TRAIN, row, 0)
        without = ntkgp(ntk, rest, np.zeros(19), TEST, noise=1e-3).variance.mean()
        assert made.influence[row] == pytest.approx(float(without) - whole, rel=1e-6)
    assert made.matter(2).tolist() == np.argsort(-made.influence)[:2].tolist()


def test_a_copy_is_redundant() -> None:
    made = audit(np.concatenate([TRAIN, TRAIN[:1]]), TEST)
    assert {0, 20} <= set(made.redundant().tolist())


def test_a_pool_gives_what_would_help_and_random_sets() -> None:
    made = audit(TRAIN, TEST, pool=POOL, k=4, standardise=False)
    pool = Pool(torch.from_numpy(POOL), torch.from_numpy(TEST), x_labelled=torch.from_numpy(TRAIN))
    wanted = EVGP(NTK(mlp()))(pool, 4, generator=torch.Generator())
    assert made.further.indices.tolist() == wanted.indices.tolist()
    assert made.random.shape == (20,) and (made.random > 0).all()
    assert audit(TRAIN, TEST, pool=POOL[:5], k=9).further.indices.shape == (5,)
    assert audit(TRAIN, TEST, pool=POOL[:5]).random.shape == (0,)


def test_scaling_is_that_of_the_training_set() -> None:
    shifted = audit(5 * TRAIN + 2, 5 * TEST + 2)
    np.testing.assert_allclose(shifted.deviation, audit(TRAIN, TEST).deviation, rtol=1e-6)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"x_test": TEST[:, :2]}, "x_test with 3 columns"),
        ({"pool": POOL[:, :2]}, "pool with 3 columns"),
        ({"x_train": TRAIN * np.nan}, "finite numbers in x_train"),
        ({"x_train": TRAIN[:0]}, "x_train of shape"),
    ],
)
def test_what_cannot_be_audited_is_refused(change, match) -> None:
    with pytest.raises(EvgpError, match=match):
        audit(**{"x_train": TRAIN, "x_test": TEST, **change})
