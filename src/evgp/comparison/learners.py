r"""Learners: models that are fitted to the labels of each selection, in place of or next to
networks. A learner sees only the labelled points. It chooses its parameters (a ridge, a penalty) by
cross-validation on them, never on the test set. One label, one class, and classes that have no
label yet are all allowed: a class without a label is never predicted.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from evgp._checks import word
from evgp.comparison.rows import NETWORK
from evgp.errors import PoolError, UnknownName
from evgp.strategies import Setting

Predict: TypeAlias = Callable[[Float[Tensor, " m *d"]], Shaped[Tensor, " m"]]
"""Predicts a number, or a class, for each point."""

RIDGES = np.logspace(-8, 2, 21)  # times the mean variance of the kernel over the labelled points
USUAL_RIDGE = 1e-3  # if cross-validation is impossible
PENALTIES = (1.0, 1e1, 1e2, 1e3, 1e4)  # C of logistic regression on points of mean square 1
USUAL_PENALTY = 1e2
FOLDS = 5
TREES = 100


@runtime_checkable
class Learner(Protocol):
    """Fits labels; the seed determines all randomness."""

    def fit(
        self, x: Float[Tensor, " l *d"], y: Shaped[Tensor, " l"], classes: int, seed: int
    ) -> Predict:
        """Fit labels: numbers if `classes` is 0, else integers below it."""
        ...


def fit(
    learner: Learner, x: Float[Tensor, " l *d"], y: Shaped[Tensor, " l"], classes: int, seed: int
) -> Predict:
    """Fit labels; if all are equal, so are the predictions of every learner.

    >>> predict = fit(NearestNeighbour(), torch.zeros(1, 2).double(), torch.tensor([3]), 5, 0)
    >>> predict(torch.ones(2, 2).double())
    tensor([3, 3])
    """
    if bool((y == y[0]).all()):
        return lambda points: y[:1].expand(len(points))
    return learner.fit(x, y, classes, seed)


@dataclass(frozen=True)
class NearestNeighbour:
    """The label of the nearest labelled point, in the scale of the pool; ties go to the first."""

    def fit(
        self, x: Float[Tensor, " l *d"], y: Shaped[Tensor, " l"], classes: int, seed: int
    ) -> Predict:
        """Keep the labels."""
        known = _flat(x)
        return lambda points: y[torch.cdist(_flat(points), known).argmin(1)]


@dataclass(frozen=True)
class LinearModel:
    """Ridge regression for numbers, logistic regression with an L2 penalty for classes.

    The ridge is chosen by leave-one-out, the penalty by the log-likelihood in five folds.
    """

    def fit(
        self, x: Float[Tensor, " l *d"], y: Shaped[Tensor, " l"], classes: int, seed: int
    ) -> Predict:
        """Centre the points on the labelled ones, and fit."""
        centre = _flat(x).mean(0)
        if classes:
            return _logistic(_flat(x), y, centre, seed)

        def kernel(a: Tensor, b: Tensor | None = None) -> Tensor:
            return (_flat(a) - centre) @ (_flat(a if b is None else b) - centre).T

        return KernelRidge(kernel).fit(x, y, classes, seed)


@dataclass(frozen=True)
class KernelRidge:
    r"""Ridge regression on a kernel, with a constant; classes are one-hot, the largest wins.

    With $A = K + \lambda I$ and $C = A^{-1} - A^{-1} 1 1^\top A^{-1} / 1^\top A^{-1} 1$ the weights
    are $C y$, and the error at i of a fit without i is exactly $(C y)_i / C_{ii}$. The ridge
    minimises the mean square of these errors.
    """

    kernel: Callable[..., Tensor]

    def fit(
        self, x: Float[Tensor, " l *d"], y: Shaped[Tensor, " l"], classes: int, seed: int
    ) -> Predict:
        """Solve for all ridges by one decomposition, and keep the best."""
        targets = torch.nn.functional.one_hot(y, classes) if classes else y[:, None]
        solved = ridge(self.kernel(x).double(), targets.double())

        def predict(points: Float[Tensor, " m *d"]) -> Shaped[Tensor, " m"]:
            outputs = self.kernel(points, x).double() @ solved.weights + solved.constant
            if not classes:
                return outputs[:, 0]
            known = torch.unique(y)
            return known[outputs[:, known].argmax(1)]

        return predict


@dataclass(frozen=True)
class Solved:
    """The weights and constants of each output, the ridge, and its mean squared error."""

    weights: Float[Tensor, "l o"]
    constant: Float[Tensor, " o"]
    ridge: float
    left_out: float


def ridge(gram: Float[Tensor, "l l"], y: Float[Tensor, "l o"]) -> Solved:
    """Kernel ridge regression whose ridge is chosen by leave-one-out, in closed form.

    Ties between ridges, as between all on two labels, go to the one nearest the default.
    """
    centred = gram - gram.mean(0) - gram.mean(1, keepdim=True) + gram.mean()
    scale = float(centred.diagonal().mean())
    if scale <= 1e-14 * float(gram.diagonal().mean()):  # one point, or copies of it
        return Solved(torch.zeros_like(y), y.mean(0), np.inf, float(y.var(0, correction=0).sum()))
    values, vectors = torch.linalg.eigh(gram)
    ones, turned = vectors.sum(0), vectors.T @ y
    solutions = []
    for share in sorted(RIDGES, key=lambda share: abs(np.log(share / USUAL_RIDGE))):
        inverse = 1 / (values.clamp(min=0) + share * scale)
        total = inverse @ ones.square()
        constant = (inverse * ones) @ turned / total
        weights = vectors @ (inverse[:, None] * (turned - ones[:, None] * constant))
        whole = vectors.square() @ inverse
        diagonal = whole - (vectors @ (inverse * ones)).square() / total
        if bool((diagonal > 1e-12 * whole).all()):
            error = float((weights / diagonal[:, None]).square().sum(1).mean())
            solutions.append(Solved(weights, constant, share * scale, error))
    least = min(solution.left_out for solution in solutions)
    return next(solution for solution in solutions if solution.left_out <= least * (1 + 1e-6))


def _logistic(
    x: Float[Tensor, "l d"], y: Int[Tensor, " l"], centre: Float[Tensor, " d"], seed: int
) -> Predict:
    """Logistic regression on points of mean square 1, within the span of the labelled ones."""
    moved = (x - centre).numpy()
    size = float(np.sqrt(np.square(moved).sum(1).mean())) or 1.0
    # The solution is in the span of the labelled points, which are fewer than pixels.
    turn = np.linalg.svd(moved, full_matrices=False)[2].T if len(x) < x.shape[1] else None

    def inputs(points: Float[Tensor, " m *d"]) -> Float[np.ndarray, "m p"]:
        scaled = (_flat(points) - centre).numpy() / size
        return scaled if turn is None else scaled @ turn

    own, labels = inputs(x), y.numpy()
    model = _logistic_fit(own, labels, _penalty(own, labels, seed))
    return lambda points: torch.from_numpy(model.predict(inputs(points)))


def _penalty(x: Float[np.ndarray, "l p"], y: Int[np.ndarray, " l"], seed: int) -> float:
    """The C with the best log-likelihood of labels left out, in folds with an even mix of classes.

    Labels of a class that the training folds lack cannot be predicted, and do not count.
    """
    order = np.random.default_rng(seed).permutation(len(y))
    fold = np.empty(len(y), dtype=np.int64)
    fold[order[np.argsort(y[order], kind="stable")]] = np.arange(len(y)) % FOLDS
    scores = dict.fromkeys(sorted(PENALTIES, key=lambda c: abs(np.log(c / USUAL_PENALTY))), 0.0)
    for left_out in range(FOLDS):
        rest = fold != left_out
        known = np.unique(y[rest])
        held = ~rest & np.isin(y, known)
        if len(known) < 2 or not held.any():
            continue
        for c in scores:
            chances = _logistic_fit(x[rest], y[rest], c).predict_proba(x[held])
            right = chances[np.arange(held.sum()), np.searchsorted(known, y[held])]
            scores[c] += float(np.log(np.maximum(right, 1e-12)).sum())
    return max(scores, key=lambda c: scores[c])


def _logistic_fit(x: Float[np.ndarray, "l p"], y: Int[np.ndarray, " l"], c: float) -> Any:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        # If classes are separable, further steps gain little.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LogisticRegression(C=c, max_iter=1000).fit(x, y)


@dataclass(frozen=True)
class ExtraTrees:
    """A hundred extremely randomised trees, by scikit-learn."""

    def fit(
        self, x: Float[Tensor, " l *d"], y: Shaped[Tensor, " l"], classes: int, seed: int
    ) -> Predict:
        """Grow the trees."""
        from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

        kind = ExtraTreesClassifier if classes else ExtraTreesRegressor
        model = kind(TREES, random_state=seed % 2**32).fit(_flat(x).numpy(), y.numpy())
        return lambda points: torch.from_numpy(model.predict(_flat(points).numpy()))


@dataclass(frozen=True)
class Boosting:
    """Gradient boosting on histograms, by scikit-learn, with smaller leaves.

    A leaf has at least a tenth of the labels, or twenty from 200 labels on: with scikit-learn's
    twenty, trees on fewer than forty labels would have no branch.
    """

    def fit(
        self, x: Float[Tensor, " l *d"], y: Shaped[Tensor, " l"], classes: int, seed: int
    ) -> Predict:
        """Add a hundred trees, or a hundred for each class."""
        from sklearn.ensemble import HistGradientBoostingClassifier as Classifier
        from sklearn.ensemble import HistGradientBoostingRegressor as Regressor

        kind = Classifier if classes else Regressor
        leaf = min(20, max(1, len(y) // 10))
        model = kind(min_samples_leaf=leaf, early_stopping=False, random_state=seed % 2**32)
        _alone(model.fit, _flat(x).numpy(), y.numpy())
        return lambda points: torch.from_numpy(_alone(model.predict, _flat(points).numpy()))


def _alone(work: Callable[..., Any], *arrays: Shaped[np.ndarray, " ..."]) -> Any:
    """Use one thread: with so little data, more threads only slow each other down."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, "openmp"):
        return work(*arrays)


def _flat(x: Float[Tensor, " n *d"]) -> Float[Tensor, "n p"]:
    return x.flatten(1).double()


_MADE: dict[str, Callable[[Setting], Learner]] = {
    "1nn": lambda setting: NearestNeighbour(),
    "linear": lambda setting: LinearModel(),
    "ntk": lambda setting: KernelRidge(setting.prior()),
    "trees": lambda setting: ExtraTrees(),
    "boosting": lambda setting: Boosting(),
}
NAMES = (NETWORK, *_MADE)


def learner_named(name: str, setting: Setting) -> Learner:
    """The learner of this name; "ntk" uses the kernel of the network of the setting."""
    return _MADE[check_learner(name)](setting)


def check_learner(name: str) -> str:
    """Refuse a name that no learner has.

    >>> check_learner("1nn")
    '1nn'
    """
    if word(name, "a learner") not in NAMES:
        raise UnknownName.of(PoolError)("learners", name, NAMES)
    return name
