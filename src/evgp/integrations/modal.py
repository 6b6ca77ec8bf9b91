"""EV-GP as a `query_strategy` of modAL."""

from inspect import signature
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import issparse

from evgp._checks import numbers
from evgp._reading import check_memory
from evgp.selection import pick

Picks = Int[np.ndarray, " k"]


def query_strategy(
    learner: Any, X_pool: Any, n_instances: int = 1, **options: Any
) -> Picks | tuple[Picks, Float[np.ndarray, " k"]]:
    """Which rows of the pool to label, given what the learner was taught.

    `ActiveLearner(estimator, query_strategy=query_strategy)`, or with options of `evgp.pick`, such
    as `functools.partial(query_strategy, x_test=x)`: without `x_test` the mean variance is that of
    the pool, which grows smaller. What the estimator predicts plays no part. Versions of modAL
    that take metrics are given the gains too.

    >>> from sklearn.datasets import load_iris
    >>> class Learner:  # what modAL's learners have
    ...     X_training = load_iris().data[:50]
    >>> query_strategy(Learner(), load_iris().data[50:], n_instances=2)
    array([59, 72])
    """
    known, pool = _taught(learner), _dense(X_pool)
    if known is not None:
        options.setdefault("x_labelled", known)
    made = pick(pool, n_instances, **options)
    asked = getattr(type(learner), "query", None)
    metrics = asked is not None and "return_metrics" in signature(asked).parameters
    return (made.indices, made.gains) if metrics else made.indices


def _taught(learner: Any) -> Any:
    """The rows a learner was taught; a committee knows only those of its learners."""
    parts = [learner, *getattr(learner, "learner_list", ())]
    given = [getattr(one, "X_training", None) for one in parts]
    found = [one for one in (_dense(one) for one in given if one is not None) if len(one)]
    if len(found) < 2:
        return found[0] if found else None
    return np.unique(np.concatenate(found), axis=0)


def _dense(x: Any) -> Any:
    if issparse(x):
        check_memory(8 * x.shape[0] * x.shape[1], "a dense copy of X")
        return x.toarray()
    return numbers(x, "X").numpy()
