"""EV-GP as a scikit-learn estimator: `fit` picks rows, `transform` keeps them."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Int
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags, _safe_indexing, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from evgp._checks import check_numbers, flag, noise_of, seed_of, shown
from evgp._errors import NotNumbers, PoolError
from evgp._reading import check_memory
from evgp._typing import ArrayLike
from evgp.nets import mlp
from evgp.selection import pick
from evgp.selection.checks import features_of


class EVGPSelector(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The k rows of X to label, before any label exists; for the end of a pipeline.

    After `fit`: `indices_` (best first), `gains_`, `variance_left_` (after each pick), and
    `selection_` with all that `evgp.pick` says. Arguments are those of `evgp.pick`; `network=None`
    is its `mlp()`. Sparse input is made dense, if that fits in memory.

    >>> from sklearn.datasets import load_iris
    >>> EVGPSelector(k=3).fit(load_iris().data).indices_
    array([  0, 102,  80])
    """

    def __init__(
        self,
        k: Any = 10,
        *,
        network: Any = None,
        kernel: Any = None,
        criterion: Any = "ev",
        greedy: Any = "auto",
        noise: Any = 1e-6,
        standardise: Any = True,
        features: Any = None,
        random_state: Any = 0,
    ) -> None:
        # Anything is stored, as scikit-learn has it; it is checked when it is used.
        self.k = k
        self.network = network
        self.kernel = kernel
        self.criterion = criterion
        self.greedy = greedy
        self.noise = noise
        self.standardise = standardise
        self.features = features
        self.random_state = random_state

    def fit(self, X: Any, y: object = None, *, labelled: ArrayLike | None = None) -> "EVGPSelector":
        """Pick k rows of X; `labelled` are rows that have a label already, y plays no part."""
        if isinstance(X, Tensor):
            X = X.detach().cpu().double().numpy()
        check_numbers(X, "X")
        x = self._validated(X, dtype=np.float64, ensure_min_samples=2)
        if issparse(x):
            check_memory(8 * x.shape[0] * x.shape[1], "a dense copy of X")
            x = x.toarray()
        if isinstance(self.k, int | np.integer) and self.k > len(x):
            raise PoolError(f"expected k of at most n_samples={len(x)}; got k={self.k}")
        self.selection_ = made = pick(
            x,
            self.k,
            labelled=labelled,
            network=mlp() if self.network is None else self.network,
            kernel=self.kernel,
            criterion=self.criterion,
            greedy=self.greedy,
            noise=noise_of(self.noise),
            standardise=flag(self.standardise, "standardise"),
            features=features_of(self.features),
            seed=_seed(self.random_state),
        )
        self.indices_, self.gains_ = made.indices, made.gains
        self.variance_left_ = made.variance_left
        self.n_samples_in_ = len(x)
        return self

    def get_support(self, indices: bool = False) -> Bool[np.ndarray, " n"] | Int[np.ndarray, " k"]:
        """Which rows were picked: a mask, or their numbers in the order of the rows."""
        check_is_fitted(self)
        flag(indices, "indices")
        mask = np.isin(np.arange(self.n_samples_in_), self.indices_)
        return np.flatnonzero(mask) if indices else mask

    def transform(self, X: Any) -> Any:
        """The picked rows of the X that was fitted, best first, in a container of its kind."""
        check_is_fitted(self)
        x = self._validated(X, reset=False, dtype=None)
        rows = x.shape[0]
        if rows != self.n_samples_in_:
            raise PoolError(
                f"expected the {self.n_samples_in_} rows that were fitted, which picks are rows "
                f"of; got {rows}; to pick from others, fit them"
            )
        if issparse(X):  # of which not every kind has rows to take
            return x[self.indices_].asformat(X.format)
        return _safe_indexing(X if hasattr(X, "shape") else x, self.indices_)

    def _validated(self, X: Any, **how: Any) -> Any:
        """X as scikit-learn takes it; what it says against it becomes one sentence of ours."""
        try:
            return validate_data(self, X, accept_sparse="csr", **how)
        except (TypeError, ValueError) as error:
            if "eature names" in str(error):  # which are scikit-learn's to tell
                raise
            said = " ".join(str(error).split())[:500]
            if isinstance(error, TypeError):
                raise NotNumbers(f"expected numbers in X, got {said}; encode them first") from error
            raise PoolError(f"expected rows of numbers as X; scikit-learn says: {said}") from error

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _seed(random_state: Any) -> int:
    """The seed of what scikit-learn takes as a random state."""
    if isinstance(random_state, int | np.integer):
        return seed_of(random_state)
    try:
        return int(check_random_state(random_state).randint(2**31))
    except (ValueError, TypeError) as error:
        raise PoolError(
            f"expected random_state as an integer, None or a RandomState, got {shown(random_state)}"
        ) from error
