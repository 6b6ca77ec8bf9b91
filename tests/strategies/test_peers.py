"""BADGE and BatchBALD against packages that others maintain."""

import numpy as np
import pytest
import torch
from skactiveml.base import SkactivemlClassifier
from skactiveml.pool import Badge, batch_bald

from evgp import Pool, mlp
from evgp.strategies import BatchBALD, CoreSet, MaxVariance
from evgp.strategies._trained import Penultimate, penultimate
from evgp.strategies.badge import factor, squared_distances
from evgp.training import Recipe

RECIPE = Recipe(mlp(2, 16, outputs=4))
# Of batchbald_redux 2.0.5, which needs a file system over SSH and torchvision, so is not installed:
# get_batchbald_batch(logs().swapaxes(0, 1), 5, 4**5, dtype=torch.float64), indices and scores.
REDUX = {
    10: 0.924625145592,
    23: 1.452767609678,
    17: 1.684473715909,
    7: 1.743430309328,
    25: 1.770115653998,
}


def logs(e: int = 6, n: int = 30, o: int = 4) -> torch.Tensor:
    i = torch.arange(n * e * o, dtype=torch.float64).view(n, e, o)
    return torch.log_softmax(4 * torch.sin(1.7 * i * i), dim=2).swapaxes(0, 1)


class Seen(SkactivemlClassifier):
    """A classifier of scikit-activeml that says what our network says."""

    def __init__(self, seen: Penultimate) -> None:
        super().__init__(classes=range(4))
        self.seen = seen

    def fit(self, X, y, sample_weight=None):
        return self

    def predict_proba(self, X, return_embeddings=False):
        return torch.softmax(self.seen.outputs(), dim=1).numpy(), self.seen.h.numpy()


def test_badge_draws_as_scikit_activeml_does() -> None:
    x = torch.randn(60, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    seen = penultimate(RECIPE.untrained((3,)), x)
    theirs = Badge(clf_embedding_flag_name="return_embeddings", random_state=0)
    rows, chances = theirs.query(
        x.numpy(), np.full(60, np.nan), Seen(seen), fit_clf=False, batch_size=10,
        return_utilities=True,
    )  # fmt: skip
    a = factor(seen, 4)
    length = a.square().sum(1) * seen.h.square().sum(1)
    nearest = length  # the origin stays a centre of theirs; not of ours, nor of the authors
    assert rows[0] == int(length.argmax())
    for number, row in enumerate(rows):
        ours = (nearest / nearest.sum()).numpy()
        left = ~np.isnan(chances[number])
        assert ours[left] == pytest.approx(chances[number][left], rel=1e-6, abs=1e-12)
        nearest = torch.minimum(nearest, squared_distances(a, seen.h, length, int(row)))


def test_batchbald_is_that_of_scikit_activeml() -> None:
    theirs = batch_bald(logs().exp().numpy(), 5, n_MC_samples=4**4, eps=1e-15)
    rows, gains = BatchBALD(RECIPE, 4).batch(logs(), 5, generator=torch.Generator())
    assert rows == np.nanargmax(theirs, axis=1).tolist()
    assert np.cumsum(gains) == pytest.approx(np.nanmax(theirs, axis=1), rel=1e-9)


def test_batchbald_is_that_of_its_authors() -> None:
    rows, gains = BatchBALD(RECIPE, 4).batch(logs(), 5, generator=torch.Generator())
    assert rows == list(REDUX)
    assert np.cumsum(gains) == pytest.approx(list(REDUX.values()), abs=1e-11)


# bmdal-reg 3.0.2, which needs an environment of its own: select(10) of MaxDistSelectionMethod and
# of MaxDetSelectionMethod(noise_sigma=0.1), both with sel_with_train=True, on IdentityFeatureMap(6)
# of the rows below; the first five are the train set.
BMDAL = torch.randn(40, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
MAX_DIST = [3, 22, 13, 31, 29, 21, 5, 6, 18, 4]
MAX_DET = [3, 22, 13, 4, 31, 7, 29, 5, 21, 34]


class Linear:
    """The kernel of the inputs themselves."""

    def __call__(self, x1, x2=None):
        return x1 @ (x1 if x2 is None else x2).T

    def diag(self, x):
        return x.square().sum(1)


def test_core_set_is_the_largest_distance_of_bmdal() -> None:
    pool = Pool(BMDAL, labelled=torch.arange(5))
    selection = CoreSet()(pool, 10, generator=torch.Generator())
    assert (selection.indices - 5).tolist() == MAX_DIST


def test_max_variance_is_the_largest_determinant_of_bmdal() -> None:
    pool = Pool(BMDAL, labelled=torch.arange(5))
    noise = 0.1**2 / float(Linear().diag(BMDAL).mean())
    selection = MaxVariance(Linear(), noise)(pool, 10, generator=torch.Generator())
    assert (selection.indices - 5).tolist() == MAX_DET
