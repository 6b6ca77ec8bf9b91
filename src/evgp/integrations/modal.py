"""EV-GP as a `query_strategy` for modAL."""

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
    """Rows of the pool to label, given the rows that the learner was taught.

    `ActiveLearner(estimator, query_strategy=query_strategy)`, or with options of `evgp.pick`, such
    as `functools.partial(query_strategy, x_test=x)`: without `x_test` the variance is averaged over
    the pool, which shrinks. Predictions of the estimator are not used. Versions of modAL that
    accept metrics get the gains too.

    Parameters
    ----------
    learner : modAL learner or committee
    X_pool : array or frame
    n_instances : int
        Number of rows.
    options
        Arguments of `evgp.pick`.

    Returns
    -------
    array of int

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> class Learner:  # what modAL's learners have
    ...     X_training = load_iris().data[:50]
    >>> query_strategy(Learner(), load_iris().data[50:], n_instances=2)
    array([52, 39])
    """
    known, pool = _taught(learner), _dense(X_pool)
    if known is not None:
        options.setdefault("x_labelled", known)
    selection = pick(pool, n_instances, **options)
    query = getattr(type(learner), "query", None)
    metrics = query is not None and "return_metrics" in signature(query).parameters
    return (selection.indices, selection.gains) if metrics else selection.indices


def _taught(learner: Any) -> Any:
    """The rows that a learner was taught; for a committee, those of its learners."""
    parts = [learner, *getattr(learner, "learner_list", ())]
    taught = [getattr(part, "X_training", None) for part in parts]
    arrays = [x for x in (_dense(x) for x in taught if x is not None) if len(x)]
    if len(arrays) < 2:
        return arrays[0] if arrays else None
    if hasattr(arrays[0], "iloc"):
        import pandas as pd  # a frame is there, so pandas is

        return pd.concat(arrays).drop_duplicates()
    return np.unique(np.concatenate(arrays), axis=0)


def _dense(x: Any) -> Any:
    """Return an array; a frame stays one, which `pick` reads."""
    if hasattr(x, "iloc"):
        return x
    if issparse(x):
        check_memory(8 * x.shape[0] * x.shape[1], "a dense copy of X")
        return x.toarray()
    return numbers(x, "X").numpy()
