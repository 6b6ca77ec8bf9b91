"""The query strategy for modAL, in its own learners."""

import subprocess
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest
from modAL.models import ActiveLearner, Committee
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

import evgp
from evgp.integrations.modal import query_strategy
from tests.conftest import absent
from tests.messages import refused

X = np.random.default_rng(0).normal(size=(40, 3))
TRUTH = (X[:, 0] > 0).astype(int)
KNOWN = np.array([int(TRUTH.argmin()), int(TRUTH.argmax())])
POOL = np.setdiff1d(np.arange(40), KNOWN)


def learner(rows=KNOWN, strategy=query_strategy) -> ActiveLearner:
    return ActiveLearner(LogisticRegression(), strategy, X_training=X[rows], y_training=TRUTH[rows])


@pytest.mark.parametrize("k", [1, 2, 5])
def test_a_query_gives_picks_that_know_what_was_taught(k) -> None:
    rows, samples = learner().query(X[POOL], n_instances=k)
    selection = evgp.pick(X[POOL], k, x_labelled=X[KNOWN]).indices
    assert rows.tolist() == selection.tolist()
    assert np.array_equal(samples, X[POOL][rows])
    if k == 5:
        assert rows.tolist() != evgp.pick(X[POOL], k).indices.tolist(), "labels matter here"


def test_a_learner_that_was_taught_nothing() -> None:
    rows, _ = ActiveLearner(LogisticRegression(), query_strategy).query(X, n_instances=3)
    assert rows.tolist() == evgp.pick(X, 3).indices.tolist()


def test_options_of_pick() -> None:
    strategy = partial(query_strategy, x_test=X, greedy="exact", network=evgp.mlp(1))
    rows, _ = learner(strategy=strategy).query(X[POOL], n_instances=4)
    selection = evgp.pick(
        X[POOL], 4, x_test=X, greedy="exact", network=evgp.mlp(1), x_labelled=X[KNOWN]
    )
    assert rows.tolist() == selection.indices.tolist()
    again, _ = learner().query(X[POOL], n_instances=4, criterion="p90")
    selection = evgp.pick(X[POOL], 4, criterion="p90", x_labelled=X[KNOWN])
    assert again.tolist() == selection.indices.tolist()


def test_a_committee_sparse_pools_and_frames() -> None:
    more = np.concatenate([KNOWN, POOL[:3]])
    several = Committee([learner(), learner(more)], query_strategy)
    rows, _ = several.query(X[POOL], n_instances=3)
    selection = evgp.pick(X[POOL], 3, x_labelled=X[more]).indices
    assert rows.tolist() == selection.tolist(), "it knows what any of its learners was taught"
    assert rows.tolist() != evgp.pick(X[POOL], 3, x_labelled=X[KNOWN]).indices.tolist()
    alone = ActiveLearner(LogisticRegression(), query_strategy)
    for pool in (csr_matrix(X), pd.DataFrame(X)):
        rows, samples = alone.query(pool, n_instances=3)
        assert rows.tolist() == evgp.pick(X, 3).indices.tolist() and samples.shape == (3, 3)


def test_a_loop_of_learners() -> None:
    rows = KNOWN
    for _ in range(4):
        pool = np.setdiff1d(np.arange(40), rows)
        selection, _ = learner(rows).query(X[pool], n_instances=4)
        rows = np.concatenate([rows, pool[selection]])
    assert len(set(rows.tolist())) == 18 and learner(rows).score(X, TRUTH) > 0.8


def test_errors_say_what_is_wrong() -> None:
    with refused(ValueError):
        learner().query(X[POOL], n_instances=39)


@pytest.mark.slow
def test_the_version_that_takes_metrics(tmp_path) -> None:
    """It takes two picks for a pick and a metric, unless metrics come with them."""
    fetch = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", tmp_path]
    got = subprocess.run([*fetch, "modAL-python==0.4.2.1"], check=False, capture_output=True)
    if got.returncode:
        absent("modAL 0.4.2.1 cannot be had here")
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
import evgp, numpy as np, modAL
from modAL.models import ActiveLearner
from sklearn.linear_model import LogisticRegression
from evgp.integrations.modal import query_strategy
assert modAL.__file__.startswith({str(tmp_path)!r})
x = np.random.default_rng(0).normal(size=(20, 2))
learner = ActiveLearner(LogisticRegression(), query_strategy)
for k in (1, 2, 3):
    rows, samples, gains = learner.query(x, n_instances=k, return_metrics=True)
    made = evgp.pick(x, k)
    assert rows.tolist() == made.indices.tolist() and gains.tolist() == made.gains.tolist()
    assert samples.shape == (k, 2)
"""
    ran = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_selections_may_be_what_is_labelled_and_what_may_be_picked() -> None:
    first, among = evgp.pick(X, 4), evgp.pick(X, 20)
    strategy = partial(query_strategy, labelled=first, candidates=among)
    rows, _ = ActiveLearner(LogisticRegression(), strategy).query(X, n_instances=3)
    selection = evgp.pick(X, 3, labelled=first.indices, candidates=among.indices)
    assert rows.tolist() == list(selection)
