"""The pool to choose from, checked once, when it is made."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from evgp._checks import shown
from evgp.errors import BadArgument, PoolError

_NONE = torch.empty(0, dtype=torch.int64)


@dataclass(frozen=True, eq=False)
class Pool:
    """Points to choose from, test points, and labelled points, as tensors.

    For strategies and `evgp.run`; `evgp.pick` makes its own.

    Parameters
    ----------
    x : tensor, shape (n, ...)
        The points of the pool.
    x_test : tensor, shape (m, ...), optional
        Test points: where predictions should be good. By default the pool itself.
    test : tensor of int, shape (m,), optional
        Rows of the pool that are the test points, in place of `x_test`.
    weights : tensor, shape (m,), optional
        How much each test point matters; they sum to one.
    labelled : tensor of int
        Rows of the pool that are labelled already.
    x_labelled : tensor, shape (a, ...), optional
        Labelled points outside the pool.
    y : tensor, optional
        Labels of the rows `labelled`, then of `x_labelled`, for strategies that learn from them.

    Examples
    --------
    >>> pool = Pool(torch.zeros(5, 2), labelled=torch.tensor([3]))
    >>> pool.unlabelled().tolist()
    [0, 1, 2, 4]
    """

    x: Shaped[Tensor, " n *d"]
    x_test: Shaped[Tensor, " m *d"] | None = None
    test: Int[Tensor, " m"] | None = None
    weights: Float[Tensor, " m"] | None = None
    labelled: Int[Tensor, " l"] = _NONE
    x_labelled: Shaped[Tensor, " a *d"] | None = None
    y: Shaped[Tensor, " t ..."] | None = None

    def __post_init__(self) -> None:
        if self.x_test is not None and self.test is not None:
            raise PoolError("expected x_test or test (rows of the pool), got both; pass one")
        for name in ("x", "x_test", "test", "weights", "labelled", "x_labelled", "y"):
            value = getattr(self, name)
            optional = name not in ("x", "labelled")
            if not isinstance(value, Tensor) and not (optional and value is None):
                raise BadArgument.of(PoolError)(
                    name,
                    "as a torch tensor",
                    type(value).__name__,
                    f"pass torch.as_tensor({name})",
                )
            if value is not None and (value.ndim == 0 or value.is_complex()):
                kind = str(value.dtype).removeprefix("torch.")
                raise BadArgument.of(PoolError)(
                    name,
                    "as real numbers, one row or number per point",
                    f"{kind} of shape {tuple(value.shape)}",
                )
        for name in ("x_test", "x_labelled"):
            points = getattr(self, name)
            if points is not None and points.shape[1:] != self.x.shape[1:]:
                raise PoolError(
                    f"expected points of shape {tuple(self.x.shape[1:])} in {name}, like x; got "
                    f"{tuple(points.shape[1:])}"
                )
        for name in ("test", "labelled"):
            rows = getattr(self, name)
            if rows is None or len(rows) == 0:
                continue
            if rows.ndim != 1 or rows.dtype not in (torch.int64, torch.int32):
                kind = str(rows.dtype).removeprefix("torch.")
                raise BadArgument.of(PoolError)(
                    name,
                    "as row numbers",
                    f"{kind} of shape {tuple(rows.shape)}",
                    "pass integers as .long(), and a mask as mask.nonzero()[:, 0]",
                )
            low, high = int(rows.min()), int(rows.max())
            if low < 0 or high >= len(self):
                raise BadArgument.of(PoolError)(name, f"in 0..{len(self) - 1}", f"{low}..{high}")
        points = len(self.test_points())
        if self.weights is not None and tuple(self.weights.shape) != (points,):
            raise PoolError(
                f"expected one weight for each of {points} test points, got shape "
                f"{tuple(self.weights.shape)}"
            )
        known = len(self.labelled) + (0 if self.x_labelled is None else len(self.x_labelled))
        if self.y is not None and len(self.y) != known:
            raise PoolError(
                f"expected as many labels in y as labelled points, {known}; got {len(self.y)}"
            )

    def __len__(self) -> int:
        return self.x.shape[0]

    def test_points(self) -> Shaped[Tensor, " m *d"]:
        """The test points: where predictions should be good."""
        if self.x_test is not None:
            return self.x_test
        return self.x if self.test is None else self.x[self.test]

    def test_rows(self) -> Int[Tensor, " m"] | None:
        """The pool rows that are the test points, or None if these are separate points."""
        if self.x_test is not None:
            return None
        return torch.arange(len(self)) if self.test is None else self.test

    def test_weights(self) -> Float[Tensor, " m"]:
        """How much each test point matters; sums to one."""
        if self.weights is not None:
            return self.weights
        m = self.test_points().shape[0]
        return torch.full((m,), 1 / m, dtype=torch.float64)

    def known(self) -> Shaped[Tensor, " l *d"]:
        """Every labelled input, from the pool and from outside."""
        inside = self.x[self.labelled]
        return inside if self.x_labelled is None else torch.cat([inside, self.x_labelled])

    def reveal(self, rows: Int[Tensor, " k"], y: Shaped[Tensor, " k ..."]) -> "Pool":
        """The pool with these rows labelled too.

        >>> pool = Pool(torch.zeros(5, 2)).reveal(torch.tensor([3, 1]), torch.tensor([0.5, 2.0]))
        >>> pool.labelled.tolist(), pool.y.tolist()
        ([3, 1], [0.5, 2.0])
        """
        for name, value in (("rows", rows), ("y", y)):
            if not isinstance(value, Tensor) or value.ndim == 0:
                raise BadArgument.of(PoolError)(name, "as a torch tensor", shown(value))
        if rows.ndim != 1 or rows.dtype not in (torch.int64, torch.int32):
            raise BadArgument.of(PoolError)(
                "rows", "as row numbers", f"{rows.dtype} of {shown(rows)}"
            )
        count, every = len(self.labelled), torch.cat([self.labelled, rows])
        if len(set(every.tolist())) < len(every):
            raise BadArgument.of(PoolError)(
                "rows", "without a label to reveal", "some that have one"
            )
        if self.y is None:
            if len(self.known()):
                raise PoolError("expected the labels y of the labelled points, got none")
            return replace(self, labelled=every, y=y)
        inside, outside = self.y[:count], self.y[count:]
        if y.shape[1:] != inside.shape[1:]:
            raise PoolError(
                f"expected labels of shape {tuple(inside.shape[1:])}, like those before; got "
                f"{tuple(y.shape[1:])}"
            )
        if y.is_floating_point() and inside.is_floating_point():
            y = y.to(inside)  # otherwise integers become floats, never the reverse
        return replace(self, labelled=every, y=torch.cat([inside, y, outside]))

    def unlabelled(self) -> Int[Tensor, " c"]:
        """The pool rows that may still be picked."""
        free = torch.ones(len(self), dtype=torch.bool)
        free[self.labelled] = False
        return free.nonzero().squeeze(1)
