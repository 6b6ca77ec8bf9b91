"""Laws that every kernel, criterion and strategy keeps, for those who write their own.

Each check raises an `AssertionError` that says which law is broken, and returns nothing otherwise.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from evgp._errors import PoolError
from evgp.criteria import Criterion
from evgp.kernels import NTK, Kernel
from evgp.nets import mlp
from evgp.pool import Pool
from evgp.posterior import Start
from evgp.strategies.strategy import Strategy


@dataclass(frozen=True)
class Truth:
    """Posterior covariances by one solve of the whole system, to compare with: O((l + k)^3).

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
        """Between two sets of points, given the labelled points and the picks."""
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
        """Weighted mean over the test points."""
        return float(self.pool.test_weights() @ self.test_variance(picks))


def check_kernel(kernel: Kernel, x: Float[Tensor, "n d"] | None = None) -> None:
    """Check that a kernel is a covariance, and answers in the type that it is asked in.

    It is symmetric to the bit and positive semidefinite, its diagonal is that of the matrix, parts
    of the matrix equal the whole, float32 agrees with float64, and NumPy gives NumPy.

    Parameters
    ----------
    kernel : Kernel
        What to check.
    x : tensor, optional
        At least eight points in float64; by default 40 random ones of three columns.

    Examples
    --------
    >>> import evgp
    >>> check_kernel(evgp.NTK(evgp.mlp()))
    """
    x = _points(40) if x is None else x
    matrix = kernel(x)
    _law(torch.equal(matrix, matrix.T), "kernel(x) is symmetric to the bit")
    _law(torch.equal(matrix.diagonal(), kernel.diag(x)), "diag(x) is the diagonal of kernel(x)")
    least, scale = float(torch.linalg.eigvalsh(matrix)[0]), float(matrix.trace())
    _law(least > -1e-12 * scale, f"kernel(x) is positive semidefinite (eigenvalue {least:.3g})")
    parts = torch.cat([kernel(x[:7], x), kernel(x[7:], x)])
    # arccos loses half the digits near coinciding points, so equality is up to 1e-8 there.
    same = torch.allclose(parts, matrix, rtol=1e-7, atol=1e-9)
    _law(same, "parts of the matrix equal the whole")
    turned = torch.allclose(kernel(x[:5], x[5:]), kernel(x[5:], x[:5]).T, rtol=1e-12)
    _law(turned, "kernel(a, b) is kernel(b, a) transposed")
    single, diagonal = kernel(x.float()), kernel.diag(x.float())
    kinds = single.dtype == diagonal.dtype == torch.float32
    _law(kinds, "float32 points give a float32 matrix and diagonal")
    near = torch.allclose(single.double(), matrix, rtol=1e-5, atol=1e-6)
    _law(near, "float32 agrees with float64 to 1e-5")
    array: Any = x.numpy()
    _law(isinstance(kernel(array), np.ndarray), "NumPy arrays give a NumPy array")
    _law(tuple(kernel(x[:0], x).shape) == (0, len(x)), "no points give a matrix without rows")


def check_criterion(
    criterion: Criterion,
    value: Callable[[Truth, list[int]], float],
    truth: Truth | None = None,
    picks: Sequence[int] = (),
) -> None:
    """Check that gains are differences of a value, and ceilings never below them.

    Parameters
    ----------
    criterion : Criterion
        What to check.
    value : callable
        The value of a set of picks, computed from a `Truth` by a direct solve: larger is better.
    truth : Truth, optional
        Kernel, pool and noise; by default those of 14 random points and a small network.
    picks : sequence of int
        Unlabelled rows, by their place among these, that are labelled before gains are compared.

    Examples
    --------
    >>> import evgp
    >>> check_criterion(evgp.ExpectedVariance(), lambda truth, picks: -truth.mean_variance(picks))
    """
    truth = Truth(NTK(mlp(activation="gelu")), Pool(_points(14)), 1e-3) if truth is None else truth
    candidates = truth.pool.unlabelled()
    posterior = Start(truth.kernel, truth.pool, truth.noise)(candidates)
    for row in picks:
        posterior.observe_(row)
    before = candidates[list(picks)].tolist()
    rows = torch.tensor([row for row in range(len(candidates)) if row not in picks])
    gains = criterion.gains(posterior, rows)
    start = value(truth, before)
    for row, gain in zip(rows.tolist(), gains.tolist(), strict=True):
        expected = value(truth, [*before, int(candidates[row])]) - start
        close = abs(gain - expected) < 1e-7 * max(1, abs(expected))
        _law(close, f"gains are differences of the value (row {row}: {gain:g}, not {expected:g})")
    turned = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))
    same = torch.allclose(criterion.gains(posterior, rows[turned]), gains[turned])
    _law(same, "gains do not depend on the order of the rows")
    above = bool((criterion.ceilings(posterior)[rows] >= gains - 1e-12).all())
    _law(above, "no gain is above its ceiling")


def check_strategy(strategy: Strategy, pool: Pool | None = None, k: int = 5) -> None:
    """Check that a strategy picks k distinct unlabelled rows, the same for the same seed.

    It leaves the pool as it was, can pick every row, and refuses other numbers with a `PoolError`.

    Parameters
    ----------
    strategy : Strategy
        What to check.
    pool : Pool, optional
        By default 40 random points of three columns, two of them labelled.
    k : int
        How many rows to pick.

    Examples
    --------
    >>> from evgp.strategies import Random
    >>> check_strategy(Random())
    """
    if pool is None:
        pool = Pool(_points(40), labelled=torch.tensor([3, 17]))
    _law(isinstance(strategy, Strategy), "a strategy is called with a pool, k and a generator")
    before, free = copy.deepcopy(pool), pool.unlabelled().tolist()
    made = [strategy(pool, k, generator=torch.Generator().manual_seed(7)) for _ in range(2)]
    rows = made[0].indices.tolist()
    _law(rows == made[1].indices.tolist(), "the same seed gives the same picks")
    _law(made[0].indices.dtype == np.int64, "picks are whole numbers (int64)")
    _law(made[0].gains.shape == (k,), "there is a gain for each pick")
    _law(len(rows) == len(set(rows)) == k, f"there are k = {k} distinct picks")
    _law(set(rows) <= set(free), "picks have no label yet")
    for name in ("x", "x_test", "labelled", "x_labelled"):
        one, other = getattr(before, name), getattr(pool, name)
        _law(one is other is None or torch.equal(one, other), f"the pool's {name} is unchanged")
    whole = strategy(pool, len(free), generator=torch.Generator().manual_seed(7))
    _law(sorted(whole.indices.tolist()) == free, "every row without a label can be picked")
    for wrong in (0, len(free) + 1):
        try:
            strategy(pool, wrong, generator=torch.Generator())
        except PoolError as error:
            said = f"k as an integer from 1 to {len(free)}, "
            _law(said in str(error), f"the error for k = {wrong} says {said!r}")
        else:
            _law(False, f"k = {wrong} of {len(free)} rows is refused with a PoolError")


def _points(n: int) -> Float[Tensor, "n d"]:
    return torch.randn(n, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def _law(holds: bool, law: str) -> None:
    if not holds:
        raise AssertionError(f"expected that {law}")
