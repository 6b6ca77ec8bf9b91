"""What stands at the front door: every input checked once, with a sentence that helps."""

from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from sklearn.cluster import kmeans_plusplus
from sklearn.metrics import pairwise_distances_argmin
from torch import Tensor

from evgp._capabilities import can
from evgp._errors import NotNumbers, PoolError
from evgp._typing import ArrayLike
from evgp.criteria import Criterion
from evgp.datasets import Samples, is_samples, stack
from evgp.pool import Pool


def inputs(
    x: ArrayLike | Samples, name: str, like: Tensor | None = None, *, indices: bool = False
) -> Shaped[Tensor, " n *d"]:
    """Points as float64, finite, one a row; with `indices` whole numbers stay what they are."""
    tensor = _tensor(x, name)
    if tensor.dtype.is_complex:
        raise PoolError(f"expected real numbers in {name}, got {tensor.dtype}")
    if tensor.ndim < 2:
        raise PoolError(
            f"expected {name} of shape (rows, features), got {tuple(tensor.shape)}; "
            "reshape one column to (-1, 1), or one row to (1, -1)"
        )
    if len(tensor) == 0 or tensor[0].numel() == 0:
        raise PoolError(
            f"expected at least one row and one feature in {name}, got {tuple(tensor.shape)}"
        )
    if like is not None and tensor.shape[1:] != like.shape[1:]:
        raise PoolError(
            f"expected {name} with features of shape {tuple(like.shape[1:])}, as in x; "
            f"got {tuple(tensor.shape[1:])}"
        )
    if indices and not tensor.is_floating_point():
        return tensor
    tensor = tensor.to(torch.float64)
    bad = ~torch.isfinite(tensor.reshape(len(tensor), -1))
    if bool(bad.any()):
        rows = bad.any(1).nonzero().squeeze(1)
        first = ", ".join(str(row) for row in rows[:3].tolist())
        column = int(bad.any(0).nonzero()[0])
        raise PoolError(
            f"expected finite numbers in {name}, got {int(bad.sum())} NaN or inf in {len(rows)} "
            f"rows (first rows {first}; first column {column}); drop or impute them"
        )
    return tensor


def check_numbers(x: Any, name: str) -> None:
    """Refuse frames of pandas and polars with other columns than numbers, and arrays of dates.

    >>> check_numbers(np.array(["2026-01-01"], dtype="M8[D]"), "x")
    Traceback (most recent call last):
    evgp._errors.NotNumbers: expected numbers in x, got datetime64[D]; encode dates and words first
    """
    if type(x).__name__ == "LazyFrame":
        raise PoolError(f"expected rows in {name}, got a LazyFrame; call its collect() first")
    if np.ma.is_masked(x):
        cells = int(np.ma.getmaskarray(x).sum())
        raise PoolError(f"expected every cell of {name}, got {cells} masked; fill or drop them")
    frame = getattr(x, "ndim", 2) == 2
    columns = zip(x.columns, x.dtypes, strict=True) if frame and hasattr(x, "dtypes") else ()
    found = [f"{dtype} in column {name!r}" for name, dtype in columns if not _is_number(dtype)]
    if getattr(dtype := getattr(x, "dtype", None), "kind", None) in ("M", "m"):
        found.append(str(dtype))
    if found:
        told = ", ".join(found)
        raise NotNumbers(f"expected numbers in {name}, got {told}; encode dates and words first")


def _is_number(dtype: object) -> bool:
    if hasattr(dtype, "is_numeric"):  # of polars
        return bool(dtype.is_numeric()) or str(dtype) == "Boolean"
    return getattr(dtype, "kind", "f") in "biufc"


def _tensor(x: ArrayLike | Samples, name: str) -> Tensor:
    if is_samples(x):
        return stack(x, name)
    if isinstance(x, Tensor):
        return x.detach().cpu()
    check_numbers(x, name)
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise PoolError(f"expected {name} as rows of equal length; got {error}") from error
    if array.ndim == 0:
        raise PoolError(f"expected {name} as an array of numbers, got {type(x).__name__}")
    if array.dtype.kind not in "biufc":
        raise NotNumbers(
            f"expected numbers in {name}, got dtype {array.dtype}; encode categories first"
        )
    # Of the unsigned types torch knows the shortest alone, and no other order of bytes.
    wide = {"f": np.float64, "u": np.int64}.get(array.dtype.kind)
    kept = array.dtype.newbyteorder("=")
    return torch.from_numpy(np.array(array, kept if wide is None or kept == np.uint8 else wide))


def _numbers(values: ArrayLike, name: str) -> Tensor:
    """As float64."""
    try:
        return torch.as_tensor(values, dtype=torch.float64).detach().cpu()
    except (TypeError, ValueError, RuntimeError) as error:
        raise PoolError(f"expected numbers as {name}, got what is none: {error}") from error


def rows_of(values: ArrayLike | None, name: str, n: int) -> Int[Tensor, " l"]:
    """Row numbers of the pool, each once, in order."""
    if values is None:
        return torch.empty(0, dtype=torch.int64)
    try:
        array = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    except ValueError as error:
        raise PoolError(f"expected {name} as a list of row numbers, got {error}") from error
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
    weights = _numbers(values, "test_weights")
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
    right = budget is None or (isinstance(budget, int | float) and 0 < budget < inf)
    if not right:
        raise PoolError(f"expected a budget above 0, got {budget!r}")
    if costs is None:
        if budget is not None:
            raise PoolError("expected costs with a budget, got none; give one price a row, or k")
        return None, inf
    if budget is None:
        raise PoolError("expected a budget with costs, got none; say how much may be spent")
    prices = _numbers(costs, "costs")
    if tuple(prices.shape) != (n,):
        raise PoolError(f"expected {n} costs, one a row; got shape {tuple(prices.shape)}")
    wrong = ~((prices > 0) & torch.isfinite(prices))
    if bool(wrong.any()):
        row = int(wrong.nonzero()[0])
        raise PoolError(
            f"expected positive finite costs, got {int(wrong.sum())} that are not "
            f"(first: {float(prices[row]):g} in row {row})"
        )
    return prices, float(budget)


@dataclass(frozen=True)
class Scale:
    """Each feature with mean 0 and deviation 1 over the points; constant ones become 0."""

    unit: Float[Tensor, " *d"]  # the largest size: dividing first keeps squares within range
    mean: Float[Tensor, " *d"]
    factor: Float[Tensor, " *d"]

    def __call__(self, x: Float[Tensor, " n *d"]) -> Float[Tensor, " n *d"]:
        """Points on this scale."""
        return (x / self.unit - self.mean) * self.factor


def scale_of(points: Float[Tensor, " n *d"]) -> Scale:
    """The scale of a pool, in two passes: by column, or by channel where points are images."""
    axes = [axis for axis in range(points.ndim) if axis != 1]
    unit = points.abs().amax(axes, keepdim=True)[0]
    unit = torch.where(unit > 0, unit, 1.0)
    inside = points / unit
    mean = inside.mean(axes, keepdim=True)[0]
    mean = mean + (inside - mean).mean(axes, keepdim=True)[0]  # what the first pass rounded off
    deviation = (inside - mean).square().mean(axes, keepdim=True)[0].sqrt()
    # A column that is constant up to rounding is constant.
    flat = deviation <= 8 * torch.finfo(torch.float64).eps
    return Scale(unit, mean, torch.where(flat, 0.0, 1 / torch.where(flat, 1.0, deviation)))


def thinned(pool: Pool, points: int, seed: int) -> Pool:
    """The pool with this many test points, spread out by k-means++, each for those around it.

    k-means++ takes remote points sooner than others, so each point that is kept has the weight of
    all those that are nearest to it. Time n m d for m of n test points in d dimensions.
    """
    x = pool.test_points()
    if points >= len(x):
        return pool
    weights = pool.test_weights()
    flat = x.reshape(len(x), -1).numpy()
    _, found = kmeans_plusplus(flat, points, random_state=seed, sample_weight=weights.numpy())
    kept = np.unique(found)
    nearest = torch.from_numpy(pairwise_distances_argmin(flat, flat[kept]))
    part = weights.new_zeros(len(kept)).index_add_(0, nearest, weights)
    rows = torch.from_numpy(kept)
    if pool.x_test is None:
        return replace(pool, test=rows if pool.test is None else pool.test[rows], weights=part)
    return replace(pool, x_test=x[rows], weights=part)
