"""What stands at the front door: every input checked once, with a sentence that helps."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import inf

import numpy as np
import torch
from jaxtyping import Float, Int
from sklearn.cluster import kmeans_plusplus
from sklearn.metrics import pairwise_distances_argmin
from torch import Tensor, nn

from evgp._checks import can, integer, number, numbers, one_of, shown
from evgp._errors import PoolError
from evgp._linalg import unit_for
from evgp._typing import ArrayLike
from evgp.criteria import Criterion, ExpectedVariance, MutualInformation, Percentile
from evgp.kernels import Features
from evgp.pool import Pool
from evgp.search import Exact, Exchange, Greedy, Lazy, Sharded, Stochastic, TwoRounds

CRITERIA: dict[str, Callable[[], Criterion]] = {
    "ev": ExpectedVariance,
    "median": partial(Percentile, 50),
    "p90": partial(Percentile, 90),
    "max": partial(Percentile, 100),
    "mi": MutualInformation,
}
GREEDIES: dict[str, Callable[[], Greedy]] = {
    "exact": Exact,
    "lazy": Lazy,
    "stochastic": Stochastic,
    "exchange": Exchange,
    "two-rounds": TwoRounds,
}
# Exchange is the default up to this many (candidates x picks²): minutes, never hours. It is a
# number of operations and not of seconds, so that the picks do not depend on the machine.
_EXCHANGE = 4e9
METHODS = ("auto", "dense", "features", "sharded")
STORAGES = ("float64", "float32", "auto")


def criterion_named(criterion: str | Criterion) -> Criterion:
    """The criterion of this name; objects pass.

    >>> criterion_named("p90")
    Percentile(r=90)
    """
    if isinstance(criterion, Criterion) and not isinstance(criterion, type):
        return criterion
    return CRITERIA[one_of(criterion, "a criterion", tuple(CRITERIA))]()


def choose_greedy(
    greedy: str | Greedy, c: int, k: int, criterion: Criterion, *, sharded: bool = False
) -> Greedy:
    """The greedy of this name; "auto" is exchange for the expected variance while affordable.

    A sharded run is exact, or in two rounds.

    >>> choose_greedy("auto", 10_000, 400, ExpectedVariance())
    Exchange(passes=20)
    >>> choose_greedy("auto", 100_000, 1000, ExpectedVariance())
    Exact()
    """
    if sharded:
        return _choose_sharded(greedy)
    if isinstance(greedy, Greedy) and not isinstance(greedy, str):
        return greedy
    if greedy == "auto":
        affordable = can(criterion, "exchangeable") and c * k * k <= _EXCHANGE
        return Exchange() if affordable else Exact()
    return greedy_named(greedy)


def greedy_of(greedy: object) -> Greedy | str:
    """The search that is given or named; "auto" is left to the plan.

    >>> greedy_of("lazy")
    Lazy()
    """
    if isinstance(greedy, Greedy) and not isinstance(greedy, str | type | nn.Module):
        return greedy
    return "auto" if isinstance(greedy, str) and greedy == "auto" else greedy_named(greedy)


def greedy_named(greedy: object) -> Greedy:
    """The search of this name, where there is nothing to decide by.

    >>> greedy_named("lazy")
    Lazy()
    """
    return GREEDIES[one_of(greedy, "a greedy", ("auto", *GREEDIES))]()


def _choose_sharded(greedy: str | Greedy) -> Greedy:
    over = greedy if isinstance(greedy, str) else getattr(greedy, "over_shards", "")
    if over in ("auto", "exact"):
        return Sharded()
    if over == "two-rounds":
        return TwoRounds()
    raise PoolError(
        f"expected the greedy auto, exact or two-rounds for a sharded run, got {shown(greedy)}"
    )


def thinned_to(thin: int | None, criterion: Criterion) -> int | None:
    """How many test points to keep; None for all.

    >>> thinned_to(None, MutualInformation())
    1000
    """
    if thin is None:
        return getattr(criterion, "test_points", None)
    return integer(thin, "thin", 1)


def features_of(features: object) -> str | Features | None:
    """The features, or their name, which is looked up where they are made.

    >>> features_of("nystrom-512")
    'nystrom-512'
    """
    if features is None or isinstance(features, str):
        return features
    if isinstance(features, Features) and not isinstance(features, type):
        return features
    raise PoolError(
        "expected features as a name, such as raw or nystrom-512, or an object with phi and "
        f"residual; got {shown(features)}"
    )


# Gains are divided by costs, and costs are added up.
_MONEY = 1e100


def _list_of(values: ArrayLike, name: str) -> Float[Tensor, " n"]:
    """Numbers as float64, in one row."""
    made = numbers(values, name)
    if made.ndim != 1:
        raise PoolError(f"expected {name} as a list of numbers, got shape {tuple(made.shape)}")
    return made.double()


def rows_of(values: ArrayLike | None, name: str, n: int) -> Int[Tensor, " l"]:
    """Row numbers of the pool, each once, in order."""
    if values is None:
        return torch.empty(0, dtype=torch.int64)
    array = _array(values, name)
    if array.ndim == 1 and array.dtype == bool:
        if len(array) != n:
            raise PoolError(f"expected a mask {name} of {n} rows, got {len(array)}")
        array = np.flatnonzero(array)
    if array.size == 0:
        return torch.empty(0, dtype=torch.int64)
    if array.shape == (n,) and n > 2 and set(np.unique(array).tolist()) <= {0, 1}:
        raise PoolError(
            f"expected {name} as row numbers or a mask of booleans, got {n} zeros and ones; a mask "
            "is had by .astype(bool)"
        )
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise PoolError(
            f"expected {name} as a list of row numbers, got shape {array.shape} of {array.dtype}"
        )
    wrong = array[(array < 0) | (array >= n)]
    if len(wrong):
        raise PoolError(
            f"expected {name} from 0 to {n - 1}, got {len(wrong)} outside (first: {wrong[0]})"
        )
    return torch.from_numpy(np.unique(array.astype(np.int64)))


def _array(values: ArrayLike, name: str) -> np.ndarray:
    """Row numbers or a mask as they are; a set or an iterator has no order, and is refused."""
    if isinstance(values, Tensor):
        return values.detach().cpu().numpy()
    try:
        array = np.asarray(values)
    except Exception as error:  # somebody else's object may raise anything
        raise PoolError(f"expected {name} as a list of row numbers, got {error}") from error
    if array.ndim == 0:
        raise PoolError(f"expected {name} as a list of row numbers, got {shown(values)}")
    return array


def free_rows(candidates: ArrayLike | None, known: Int[Tensor, " l"], n: int) -> Int[Tensor, " c"]:
    """The rows that may be picked: the candidates, less what is labelled."""
    allowed = torch.zeros(n, dtype=torch.bool)
    allowed[rows_of(candidates, "candidates", n) if candidates is not None else slice(None)] = True
    allowed[known] = False
    free = allowed.nonzero().squeeze(1)
    if len(free) == 0:
        raise PoolError(
            f"expected at least one row to pick, got none: {len(known)} of {n} rows are labelled"
            + ("" if candidates is None else f" and only {len(candidates)} are candidates")
        )
    return free


def test_weights(
    values: ArrayLike | None, criterion: Criterion, m: int
) -> Float[Tensor, " m"] | None:
    """Weights that sum to one."""
    if values is None:
        return None
    if can(criterion, "ignores_weights"):
        raise PoolError(
            "expected no test_weights with mutual information, which has no place for them; "
            "use criterion='ev', or repeat test points"
        )
    weights = _list_of(values, "test_weights")
    if tuple(weights.shape) != (m,):
        raise PoolError(
            f"expected {m} test_weights, one a test point; got shape {tuple(weights.shape)}"
        )
    if not bool((weights >= 0).all() & torch.isfinite(weights).all()) or float(weights.max()) <= 0:
        raise PoolError("expected finite test_weights >= 0 with at least one above 0")
    weights = weights / weights.max()  # first, so that the sum cannot overflow
    return weights / weights.sum()


def money(
    costs: ArrayLike | None, budget: float | None, n: int
) -> tuple[Float[Tensor, " n"] | None, float]:
    """Prices and the budget, or neither."""
    if budget is not None:
        budget = number(budget, "a budget", 0, _MONEY, above=True)
    if costs is None:
        if budget is not None:
            raise PoolError("expected costs with a budget, got none; give one price a row, or k")
        return None, inf
    if budget is None:
        raise PoolError("expected a budget with costs, got none; say how much may be spent")
    prices = _list_of(costs, "costs")
    if tuple(prices.shape) != (n,):
        raise PoolError(f"expected {n} costs, one a row; got shape {tuple(prices.shape)}")
    wrong = ~((prices > 0) & torch.isfinite(prices))
    if bool(wrong.any()):
        row = int(wrong.nonzero()[0])
        raise PoolError(
            f"expected positive finite costs, got {int(wrong.sum())} that are not "
            f"(first: {float(prices[row]):g} in row {row})"
        )
    wrong = (prices < 1 / _MONEY) | (prices > _MONEY)
    if bool(wrong.any()):
        row = int(wrong.nonzero()[0])
        raise PoolError(
            f"expected costs from {1 / _MONEY:g} to {_MONEY:g}, got {float(prices[row]):g} in row "
            f"{row}; count in another unit"
        )
    return prices, budget


def thinned(pool: Pool, points: int, seed: int) -> Pool:
    """The pool with this many test points, spread out by k-means++, each for those around it.

    k-means++ takes remote points sooner than others, so each point that is kept has the weight of
    all those that are nearest to it. Time n m d for m of n test points in d dimensions.
    """
    x = pool.test_points()
    if points >= len(x):
        return pool
    weights = pool.test_weights()
    flat = (x.double() / unit_for(x)).reshape(len(x), -1).numpy()
    _, found = kmeans_plusplus(flat, points, random_state=seed, sample_weight=weights.numpy())
    kept = np.unique(found)
    nearest = torch.from_numpy(pairwise_distances_argmin(flat, flat[kept]))
    part = weights.new_zeros(len(kept)).index_add_(0, nearest, weights)
    rows = torch.from_numpy(kept)
    if pool.x_test is None:
        return replace(pool, test=rows if pool.test is None else pool.test[rows], weights=part)
    return replace(pool, x_test=x[rows], weights=part)
