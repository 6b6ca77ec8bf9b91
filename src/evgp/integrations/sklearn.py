"""EV-GP as a scikit-learn estimator: `fit` picks rows, `transform` keeps them."""

from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Int
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags, _safe_indexing, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from evgp._checks import check_numbers, flag, noise_of, seed_of, shown
from evgp._defaults import NOISE
from evgp._reading import check_memory
from evgp._typing import ArrayLike
from evgp.datasets.scaling import scale_of
from evgp.errors import BadArgument, MissingValues, NotNumbers, PoolError
from evgp.nets import mlp
from evgp.selection import pick
from evgp.selection.features import features_of


class EVGPSelector(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Select the k rows of X to label first; for the end of a pipeline.

    After `fit`: `indices_` (best first), `gains_`, `variance_left_` (after each pick), and
    `selection_`, the result of `evgp.pick`. Frames are read as there, with words and dates; sparse
    input is made dense, if that fits in memory.

    Parameters
    ----------
    k : int
    network, kernel, criterion, greedy, noise, scale, features
        As for `evgp.pick`; `network=None` is `evgp.mlp()`.
    random_state : int or RandomState
    standardise : bool, optional
        The former name of `scale`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> EVGPSelector(k=3).fit(load_iris().data).indices_
    array([  7, 102, 101])
    """

    def __init__(
        self,
        k: Any = 10,
        *,
        network: Any = None,
        kernel: Any = None,
        criterion: Any = "ev",
        greedy: Any = "auto",
        noise: Any = NOISE,
        scale: Any = "auto",
        features: Any = None,
        random_state: Any = 0,
        standardise: Any = None,
    ) -> None:
        # By scikit-learn's convention, arguments are stored as they are and checked when used.
        self.k = k
        self.network = network
        self.kernel = kernel
        self.criterion = criterion
        self.greedy = greedy
        self.noise = noise
        self.scale = scale
        self.features = features
        self.random_state = random_state
        self.standardise = standardise

    def fit(self, X: Any, y: object = None, *, labelled: ArrayLike | None = None) -> "EVGPSelector":
        """Pick k rows of X; `labelled` are rows that have a label already, y is ignored."""
        if isinstance(X, Tensor):
            X = X.detach().cpu().double().numpy()
        if _is_frame(X):  # which `pick` reads
            x = self._validated(X, skip_check_array=True)
        else:
            check_numbers(X, "X")
            x = self._validated(X, dtype=np.float64, ensure_min_samples=2)
        if issparse(x):
            check_memory(8 * x.shape[0] * x.shape[1], "a dense copy of X")
            x = x.toarray()
        if isinstance(self.k, int | np.integer) and self.k > len(x):
            raise PoolError(f"expected k of at most n_samples={len(x)}; got k={self.k}")
        try:
            selection = pick(
                x,
                self.k,
                labelled=labelled,
                network=mlp() if self.network is None else self.network,
                kernel=self.kernel,
                criterion=self.criterion,
                greedy=self.greedy,
                noise=noise_of(self.noise),
                scale=scale_of(self.scale, self.standardise),
                features=features_of(self.features),
                seed=_seed(self.random_state),
            )
        except MissingValues as error:
            advice = "fill them in, such as with a SimpleImputer in a step before"
            raise replace(error, advice=advice) from None
        self.selection_ = selection
        self.indices_, self.gains_ = selection.indices, selection.gains
        self.variance_left_, self.n_samples_in_ = selection.variance_left, len(x)
        return self

    def get_support(self, indices: bool = False) -> Bool[np.ndarray, " n"] | Int[np.ndarray, " k"]:
        """Which rows were picked: a mask, or their numbers in the order of the rows."""
        check_is_fitted(self)
        flag(indices, "indices")
        mask = np.isin(np.arange(self.n_samples_in_), self.indices_)
        return np.flatnonzero(mask) if indices else mask

    def transform(self, X: Any) -> Any:
        """The picked rows of the fitted X, best first, in a container of the same kind."""
        check_is_fitted(self)
        if _is_frame(X):
            x = self._validated(X, reset=False, skip_check_array=True)
        else:
            x = self._validated(X, reset=False, dtype=None)
        if (rows := x.shape[0]) != self.n_samples_in_:
            fitted = f"the {self.n_samples_in_} rows that were fitted"
            raise PoolError(f"expected {fitted}, got {rows}; fit again to pick from others")
        if issparse(X):  # not every sparse format can be indexed by rows
            return x[self.indices_].asformat(X.format)
        return _safe_indexing(X if hasattr(X, "shape") else x, self.indices_)

    def _validated(self, X: Any, **how: Any) -> Any:
        """X, validated by scikit-learn, whose errors become one sentence of ours."""
        try:
            how = how if "skip_check_array" in how else {"accept_sparse": "csr", **how}
            return validate_data(self, X, **how)
        except (TypeError, ValueError) as error:
            if "eature names" in str(error):  # scikit-learn's own checks expect these
                raise
            reason = " ".join(str(error).split())[:500]
            if isinstance(error, TypeError):
                raise NotNumbers("X", reason) from error
            raise PoolError(f"expected rows of numbers as X; {reason}") from error

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _is_frame(X: Any) -> bool:
    """Whether X is a pandas or polars frame, whose rows are there."""
    return hasattr(X, "shape") and hasattr(X, "columns")


def _seed(random_state: Any) -> int:
    """The seed of a `random_state`, as scikit-learn defines it."""
    if isinstance(random_state, int | np.integer):
        return seed_of(random_state)
    try:
        return int(check_random_state(random_state).randint(2**31))
    except (ValueError, TypeError) as error:
        kinds = "as an integer, None or a RandomState"
        raise BadArgument.of(PoolError)("random_state", kinds, shown(random_state)) from error
