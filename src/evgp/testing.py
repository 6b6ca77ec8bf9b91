"""Checks for your own kernels, criteria and strategies: the laws that all of them obey.

Each check raises an `AssertionError` that says which law is broken, also if your object raises an
exception of another class, and returns nothing otherwise. Tolerances are relative to the scale of
the values that are compared.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from evgp._checks import can
from evgp._typing import ArrayLike
from evgp.criteria import Criterion
from evgp.errors import PoolError
from evgp.kernels import NTK, Kernel, Raw
from evgp.nets import mlp
from evgp.pool import Pool, Selection
from evgp.posterior import FeatureStart, Posterior, Start
from evgp.search import GREEDIES
from evgp.strategies.strategy import Strategy, learns

_LEAST = 8
T = TypeVar("T")


@dataclass(frozen=True)
class Truth:
    """Posterior covariances by a direct solve of the whole system, for comparison: O((l + k)^3).

    Parameters
    ----------
    kernel : Kernel
    pool : Pool
    noise : float
        Variance of the noise of a label.
    """

    kernel: Kernel
    pool: Pool
    noise: float

    def covariance(
        self, a: Float[Tensor, " n *d"], b: Float[Tensor, " m *d"], picks: Sequence[int]
    ) -> Float[Tensor, "n m"]:
        """Covariance between two sets of points, given the labelled points and the picks."""
        known = torch.cat([self.pool.known(), self.pool.x[list(picks)]])
        prior = self.kernel(a, b)
        if len(known) == 0:
            return prior
        gram = self.kernel(known) + self.noise * torch.eye(len(known), dtype=torch.float64)
        return prior - self.kernel(a, known) @ torch.linalg.solve(gram, self.kernel(known, b))

    def test_variance(self, picks: Sequence[int]) -> Float[Tensor, " m"]:
        """Posterior variance of each test point."""
        test = self.pool.test_points()
        return self.covariance(test, test, picks).diagonal()

    def mean_variance(self, picks: Sequence[int]) -> float:
        """Weighted mean variance of the test points."""
        return float(self.pool.test_weights() @ self.test_variance(picks))


def check_kernel(kernel: Kernel | Any, x: ArrayLike | None = None) -> None:
    """Check that a kernel is a covariance, and that its results have the type of the inputs.

    It is symmetric and positive semidefinite, its diagonal is that of the matrix, parts of the
    matrix equal the whole, float32 agrees with float64, NumPy arrays give NumPy arrays
    with the same numbers, and the points stay as they were.

    Parameters
    ----------
    kernel : Kernel
        What to check.
    x : array or tensor, optional
        At least eight points; by default 40 random ones of three columns.

    Examples
    --------
    >>> import evgp
    >>> check_kernel(evgp.NTK(evgp.mlp()))
    """
    _law(callable(kernel), "a kernel can be called with points")
    _law(callable(getattr(kernel, "diag", None)), "a kernel has a method diag(x)")
    points = _points(40) if x is None else _called("x is an array of numbers", _double, x)
    n = len(points)
    _law(n >= _LEAST, f"x has at least {_LEAST} points, not {n}")
    matrix = _matrix("kernel(x)", kernel, points)
    diagonal = _called("diag(x) is defined", kernel.diag, points)
    _law(isinstance(diagonal, Tensor) and diagonal.shape == (n,), f"diag(x) has {n} variances")
    unit = float(matrix.trace()) / n
    _law(_close(matrix, matrix.T, 1e-12, unit), "kernel(x) is symmetric")
    _law(_close(diagonal, matrix.diagonal(), 1e-12, unit), "diag(x) is the diagonal of kernel(x)")
    least = float(torch.linalg.eigvalsh(matrix)[0])
    _law(least >= -1e-12 * n * unit, f"kernel(x) is positive semidefinite (eigenvalue {least:.3g})")
    parts = [_matrix("kernel(a, b)", kernel, part, points) for part in (points[:1], points[1:])]
    # arccos loses half the digits near coinciding points, so equality is up to 1e-7 there.
    _law(_close(torch.cat(parts), matrix, 1e-7, unit, 1e-9), "parts of the matrix equal the whole")
    turned = _matrix("kernel(b, a)", kernel, points[5:], points[:5]).T
    there = _matrix("kernel(a, b)", kernel, points[:5], points[5:])
    _law(_close(there, turned, 1e-12, unit), "kernel(a, b) is kernel(b, a) transposed")
    block = _matrix("kernel(a, b)", kernel, points[:4], points[4:8])
    same = _close(block, matrix[:4, 4:8], 1e-7, unit, 1e-9)
    _law(same, "kernel(a, b) is a block of the matrix, also for as many points in a as in b")
    _matrix("kernel of no points and x", kernel, points[:0], points)
    _check_types(kernel, points, matrix, unit)


def _check_types(kernel: Any, x: Tensor, matrix: Tensor, unit: float) -> None:
    """Check float32 and NumPy points."""
    single = _matrix("kernel of float32 points", kernel, x.float())
    diagonal = _called("diag of float32 points is defined", kernel.diag, x.float())
    kinds = single.dtype == diagonal.dtype == torch.float32
    _law(kinds, "float32 points give a float32 matrix and diagonal")
    near = _close(single.double(), matrix, 1e-5, unit)
    _law(near, "float32 agrees with float64 to 1e-5")
    array = _called("a kernel takes NumPy arrays", kernel, x.numpy())
    variances = _called("diag takes NumPy arrays", kernel.diag, x.numpy())
    arrays = isinstance(array, np.ndarray) and isinstance(variances, np.ndarray)
    _law(arrays, "NumPy arrays give a NumPy array")
    same = array.shape == tuple(matrix.shape) and variances.shape == (len(x),)
    same = same and _close(torch.as_tensor(array).double(), matrix, 1e-12, unit)
    same = same and _close(torch.as_tensor(variances).double(), matrix.diagonal(), 1e-12, unit)
    _law(same, "NumPy arrays give the same numbers as tensors")


def check_criterion(
    criterion: Criterion | Any,
    value: Callable[[Truth, list[int]], float],
    truth: Truth | None = None,
    picks: Sequence[int] | None = None,
) -> None:
    """Check that gains are differences of a value, and ceilings never below them.

    The same object is asked before and after the picks. The attributes that a criterion declares
    are checked too, as far as a few points can show: `certifiable`, `by_features`, `exchangeable`,
    `monotone`, `ignores_weights`, `degree` and `own_search`.

    Parameters
    ----------
    criterion : Criterion
        What to check.
    value : callable
        The value of a set of picks, computed from a `Truth` by a direct solve: larger is better.
    truth : Truth, optional
        Kernel, pool and noise. By default a small network and two pools of 14 random candidates:
        one whose test points are its own, one with other test points and labelled points. Neither
        has weights.
    picks : sequence of int, optional
        Positions among the unlabelled rows to label before gains are compared; three by default.

    Examples
    --------
    >>> import evgp
    >>> check_criterion(evgp.ExpectedVariance(), lambda truth, picks: -truth.mean_variance(picks))
    """
    _law(isinstance(criterion, Criterion), "a criterion has the methods gains and ceilings")
    for each in _truths() if truth is None else (truth,):
        count = len(each.pool.unlabelled())
        rows = [row for row in (0, 7, 3) if row < count - 1] if picks is None else list(picks)
        inside = all(0 <= row < count for row in rows) and len({*rows}) == len(rows)
        _law(inside, f"picks are distinct positions from 0 to {count - 1}")
        for labelled in ([], rows) if rows else ([],):
            _check_gains(criterion, value, each, labelled)
        _check_declared(criterion, each, rows)


def _truths() -> tuple[Truth, Truth]:
    """Two pools of 14 candidates: test points of its own; other test points, and labels."""
    kernel, points = NTK(mlp(activation="gelu")), _points(23)
    own = Pool(_points(14))
    other = Pool(points[:16], x_test=points[16:], labelled=torch.tensor([2, 5]))
    return Truth(kernel, own, 1e-3), Truth(kernel, other, 1e-3)


def _check_gains(
    criterion: Criterion, value: Callable[[Truth, list[int]], float], truth: Truth, picks: list[int]
) -> None:
    """Check gains and ceilings after these picks."""
    posterior, rows = _after(truth, picks)
    gains = _gains(criterion, posterior, rows)
    candidates = truth.pool.unlabelled()
    before = candidates[picks].tolist()
    start = value(truth, before)
    ends = [value(truth, [*before, int(candidates[row])]) for row in rows.tolist()]
    # The value may be a difference of large numbers, which limits its own digits.
    unit = max(abs(start), *map(abs, ends))
    for row, gain, end in zip(rows.tolist(), gains.tolist(), ends, strict=True):
        close = abs(gain - (end - start)) <= 1e-7 * unit
        when = f"row {row} after {len(picks)} picks: {gain:g}, not {end - start:g}"
        _law(close, f"gains are differences of the value ({when})")
    turned = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))
    most = float(gains.abs().max())
    same = _close(_gains(criterion, posterior, rows[turned]), gains[turned], 1e-7, most)
    _law(same, "gains do not depend on the order of the rows")
    ceilings = _called("ceilings are defined", criterion.ceilings, posterior)
    shaped = isinstance(ceilings, Tensor) and ceilings.shape == (len(candidates),)
    _law(shaped, f"there is a ceiling for each of {len(candidates)} candidates")
    _law(bool((ceilings[rows] >= gains - 1e-10 * most).all()), "no gain is above its ceiling")


def _check_declared(criterion: Any, truth: Truth, picks: list[int]) -> None:
    """Check what the attributes of a criterion say about its gains."""
    posterior, rows = _after(truth, picks)
    gains = _gains(criterion, posterior, rows)
    most = float(gains.abs().max())
    if can(criterion, "certifiable"):
        candidates = truth.pool.unlabelled()
        before = candidates[picks].tolist()
        start = truth.mean_variance(before)
        falls = [start - truth.mean_variance([*before, int(candidates[row])]) for row in rows]
        same = _close(torch.tensor(falls, dtype=torch.float64), gains, 0, 1e-7 * start, 1)
        _law(same, "gains of a certifiable criterion are reductions of the mean variance")
    if can(criterion, "monotone"):
        _law(bool((gains >= 0).all()), "gains of a monotone criterion are never negative")
    if can(criterion, "by_features"):
        _check_by_features(criterion)
    if can(criterion, "exchangeable"):
        posterior.observe_(int(rows[0]))
        posterior.forget_(int(rows[0]))
        for row in picks:
            posterior.forget_(row)
            posterior.observe_(row)
        back = _close(_gains(criterion, posterior, rows), gains, 1e-6, most)
        _law(back, "gains of an exchangeable criterion depend only on which rows have labels")
    if can(criterion, "ignores_weights"):
        weights = torch.rand(
            len(truth.pool.test_weights()), generator=torch.Generator().manual_seed(1)
        )
        other = replace(truth, pool=replace(truth.pool, weights=weights.double()))
        same = _close(_gains(criterion, _after(other, picks)[0], rows), gains, 1e-7, most)
        _law(same, "gains do not depend on the weights of the test points")
    degree = getattr(criterion, "degree", None)
    if degree is not None:
        larger = Truth(_Scaled(truth.kernel, 4.0), truth.pool, 4.0 * truth.noise)
        grown = _gains(criterion, _after(larger, picks)[0], rows)
        law = f"four times the kernel gives 4^{degree} times the gains, as degree = {degree} says"
        _law(_close(grown, gains * 4.0**degree, 1e-6, most * 4.0**degree), law)
    own = getattr(criterion, "own_search", None)
    _law(own is None or own in GREEDIES, f"own_search is among {', '.join(GREEDIES)}")


def _check_by_features(criterion: Criterion) -> None:
    """Check that gains are the same from test points and from their mean products of features."""
    pool = Pool(_points(14))
    start = FeatureStart.of(Raw(), pool, 1e-2, torch.float64)
    truth = Truth(_Linear(), pool, start.noise)
    exact, rows = _after(truth, [0, 7])
    features = start(pool.unlabelled())
    for row in (0, 7):
        features.observe_(row)
    gains = _gains(criterion, exact, rows)
    same = _close(_gains(criterion, features, rows), gains, 1e-6, float(gains.abs().max()))
    _law(same, "gains with by_features are the same from features as from the kernel")


@dataclass(frozen=True)
class _Linear:
    """The inner product of the points."""

    def __call__(self, x1: Tensor, x2: Tensor | None = None) -> Tensor:
        return x1 @ (x1 if x2 is None else x2).T

    def diag(self, x: Tensor) -> Tensor:
        return self(x).diagonal()


@dataclass(frozen=True)
class _Scaled:
    """A multiple of a kernel."""

    kernel: Kernel
    factor: float

    def __call__(self, x1: Tensor, x2: Tensor | None = None) -> Tensor:
        return self.factor * (self.kernel(x1) if x2 is None else self.kernel(x1, x2))

    def diag(self, x: Tensor) -> Tensor:
        return self.factor * self.kernel.diag(x)


def check_strategy(strategy: Strategy | Any, pool: Pool | None = None, k: int = 5) -> None:
    """Check that a strategy picks k distinct unlabelled rows, the same for the same seed.

    It leaves the pool unchanged, can pick every row, and raises `PoolError` for other k. With
    `learns = False` labels change no pick.

    Parameters
    ----------
    strategy : Strategy
        What to check.
    pool : Pool, optional
        By default 40 random points of three columns, two of them labelled.
    k : int
        Number of rows to pick.

    Examples
    --------
    >>> from evgp.strategies import Random
    >>> check_strategy(Random())
    """
    if pool is None:
        pool = Pool(_points(40), labelled=torch.tensor([3, 17]))
    _law(isinstance(pool, Pool), f"pool is an evgp.Pool, not {type(pool).__name__}")
    _law(isinstance(strategy, Strategy), "a strategy is called with a pool, k and a generator")
    before, free = copy.deepcopy(pool), pool.unlabelled().tolist()
    runs = [_picked(strategy, pool, k) for _ in range(2)]
    rows = runs[0].indices.tolist()
    _law(rows == runs[1].indices.tolist(), "the same seed gives the same picks")
    _law(runs[0].indices.dtype == np.int64, "picks are integers (int64)")
    _law(runs[0].gains.shape == (k,), "there is a gain for each pick")
    _law(len(rows) == len(set(rows)) == k, f"there are k = {k} distinct picks")
    _law(set(rows) <= set(free), "picks have no label yet")
    for name in ("x", "x_test", "labelled", "x_labelled"):
        old, new = getattr(before, name), getattr(pool, name)
        _law(old is new is None or torch.equal(old, new), f"the pool's {name} is unchanged")
    if not learns(strategy):
        count = len(pool.known())
        for y in (torch.zeros(count), torch.arange(1.0, count + 1)):
            same = _picked(strategy, replace(pool, y=y), k).indices.tolist() == rows
            _law(same, "a strategy with learns = False gives the same picks for other labels")
    whole = _picked(strategy, pool, len(free))
    _law(sorted(whole.indices.tolist()) == free, "every row without a label can be picked")
    for wrong in (0, len(free) + 1):
        outcome = "it raised nothing"
        try:
            strategy(pool, wrong, generator=torch.Generator())
        except PoolError:
            continue
        except Exception as error:
            outcome = f"it raised {type(error).__name__}"
        _law(False, f"k = {wrong} of {len(free)} rows raises a PoolError, but {outcome}")


def _picked(strategy: Any, pool: Pool, k: int) -> Selection:
    generator = torch.Generator().manual_seed(7)
    law = f"a strategy picks k = {k} rows"
    selection: object = _called(law, lambda: strategy(pool, k, generator=generator))
    _law(
        isinstance(selection, Selection),
        f"a strategy returns a Selection, not {type(selection).__name__}",
    )
    assert isinstance(selection, Selection)
    return selection


def _after(truth: Truth, picks: Sequence[int]) -> tuple[Posterior, Tensor]:
    """A posterior after these picks, and the other rows."""
    candidates = truth.pool.unlabelled()
    posterior = Start(truth.kernel, truth.pool, truth.noise)(candidates)
    for row in picks:
        posterior.observe_(row)
    rest = [row for row in range(len(candidates)) if row not in picks]
    return posterior, torch.tensor(rest)


def _gains(criterion: Criterion, posterior: Posterior, rows: Tensor) -> Tensor:
    before = posterior.variance().clone()
    gains = _called("gains are defined", criterion.gains, posterior, rows)
    unchanged = _close(posterior.variance(), before, 1e-9, float(before.max()))
    _law(unchanged, "gains leave the posterior unchanged")
    right = isinstance(gains, Tensor) and gains.shape == rows.shape and gains.dtype == torch.float64
    _law(right, f"gains are a float64 tensor of {len(rows)} numbers")
    return gains


def _matrix(what: str, kernel: Any, a: Tensor, b: Tensor | None = None) -> Tensor:
    """The matrix of a kernel, if it is one."""
    points = (a,) if b is None else (a, b)
    copies = [part.clone() for part in points]
    matrix = _called(f"{what} is defined", kernel, *copies)
    unchanged = all(map(torch.equal, copies, points))
    _law(unchanged, "a kernel leaves its inputs unchanged")
    shape = (len(a), len(points[-1]))
    right = isinstance(matrix, Tensor) and tuple(matrix.shape) == shape
    _law(right, f"{what} is a tensor of {shape[0]} x {shape[1]} numbers")
    assert isinstance(matrix, Tensor)
    _law(bool(matrix.isfinite().all()), f"all numbers of {what} are finite")
    return matrix


def _called(law: str, function: Callable[..., T], *arguments: Any) -> T:
    """Call a function; an exception breaks the law."""
    try:
        return function(*arguments)
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise AssertionError(
            f"expected that {law}, but it raised {type(error).__name__}: {reason}"
        ) from error


def _close(a: Tensor, b: Tensor, share: float, unit: float, least: float | None = None) -> bool:
    """Whether values are equal up to a share of each plus `least` (by default the share) units."""
    low = share if least is None else least
    return a.shape == b.shape and torch.allclose(a, b, rtol=share, atol=low * abs(unit))


def _double(x: Any) -> Tensor:
    return torch.as_tensor(x).to(torch.float64)


def _points(n: int) -> Float[Tensor, "n d"]:
    return torch.randn(n, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def _law(holds: bool, law: str) -> None:
    if not holds:
        raise AssertionError(f"expected that {law}")
