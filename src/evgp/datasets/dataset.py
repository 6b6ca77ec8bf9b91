"""A pool to choose from and a test set, with their labels, scaled by the pool."""

import warnings
from dataclasses import dataclass, replace
from math import frexp, ldexp
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped, UInt8
from torch import Tensor

from evgp._checks import integer, seed_of
from evgp.datasets.columns import Number, is_constant
from evgp.datasets.options import ReadOptions
from evgp.datasets.read import read_with
from evgp.errors import DatasetError, DataWarning

Kind: TypeAlias = Literal["regression", "classification"]


@dataclass(frozen=True, eq=False)
class RawParts:
    """The pool and the test set as they were read: arrays, or tables with their options."""

    pool: Any
    test: Any
    options: ReadOptions = ReadOptions()

    def scaled(
        self, scale: str | None, count: int
    ) -> tuple[Shaped[Tensor, " n *d"], Shaped[Tensor, " m *d"]]:
        """Return the first rows of the pool, and the test part, with the scaling of the former."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # reported when the data were loaded
            options = replace(self.options, scale=scale)
            data = read_with(self.pool[:count], options)
            return data.in_memory, data.tensor_like(self.test)


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A pool and a test set, scaled by the pool, and where they come from.

    Targets of a regression are one float64 column with mean 0 and standard deviation 1 over the
    pool; in the unit of the data they are `y * y_std + y_mean`. Those of a classification are 0, 1,
    ..., and `class_names` says what for. `rows` and `rows_test` are the rows they have at their
    source: both count through one table, except where the data came as a train part and a test
    part. `raw` are the parts as they were read, for a scaling other than `scale`.

    >>> import torch
    >>> x = torch.zeros(2, 3, dtype=torch.float64)
    >>> Dataset("two", "classification", x, torch.tensor([0, 1]), x[:1], torch.tensor([1]), 2)
    Dataset('two', classification of 2 classes, pool 2 x 3, test 1)
    """

    name: str
    kind: Kind
    x: Float[Tensor, " n *d"]
    y: Float[Tensor, "n 1"] | Int[Tensor, " n"]
    x_test: Float[Tensor, " m *d"]
    y_test: Float[Tensor, "m 1"] | Int[Tensor, " m"]
    classes: int = 0
    about: str = ""
    citation: str = ""
    licence: str = ""
    class_names: tuple[str, ...] = ()
    rows: Int[Tensor, " n"] | None = None
    rows_test: Int[Tensor, " m"] | None = None
    y_mean: float = 0.0
    y_std: float = 1.0
    raw: RawParts | None = None
    scale: str | None = "columns"

    def scaled(self, scale: str | None) -> tuple[Shaped[Tensor, " n *d"], Shaped[Tensor, " m *d"]]:
        """Return the pool and the test set, scaled as `evgp.pick` scales such a pool."""
        if self.raw is None or scale == self.scale:
            return self.x, self.x_test
        return self.raw.scaled(scale, len(self.x))

    def __repr__(self) -> str:
        kind = f"{self.kind} of {self.classes} classes" if self.classes else self.kind
        shape = " x ".join(f"{size:,}" for size in self.x.shape)
        return f"Dataset({self.name!r}, {kind}, pool {shape}, test {len(self.x_test):,})"


# Number of images that are summed at once, as integers.
_IMAGES = 1000


def generator(seed: int) -> np.random.RandomState:
    """Return the random generator of a split; NumPy guarantees that its numbers never change.

    >>> generator(0).permutation(4)
    array([2, 3, 1, 0])
    """
    return np.random.RandomState(seed_of(seed, error=DatasetError))


def taken(
    rows: Int[np.ndarray, " n"], count: int | None, what: str, least: int
) -> Int[np.ndarray, " r"]:
    """Return the first `count` rows, or all of them.

    >>> taken(np.arange(5), 3, "pool", 2)
    array([0, 1, 2])
    """
    if count is None:
        return rows
    return rows[: integer(count, what, least, len(rows), why="its points", error=DatasetError)]


def _scaling(values: Float[np.ndarray, " n"]) -> Number:
    """Return the scaling of a column, identical to the bit with that of the recorded studies."""
    scale = ldexp(1.0, frexp(float(np.abs(values).max()))[1] - 1)
    y = values / scale
    mean = float(y.mean())
    mean += float((y - mean).mean())
    return Number("", scale, mean, float(np.sqrt(np.mean((y - mean) ** 2))), 0.0)


def scaled_columns(
    x: Shaped[np.ndarray, "n d"], x_test: Shaped[np.ndarray, "m d"]
) -> tuple[Float[Tensor, "n d"], Float[Tensor, "m d"]]:
    """Scale columns to mean 0 and standard deviation 1 over the pool; constant ones become 0.

    >>> scaled_columns(np.array([[1.0, 5.0], [3.0, 5.0]]), np.array([[5.0, 6.0]]))[1]
    tensor([[3., 0.]], dtype=torch.float64)
    """
    parts = np.zeros(x.shape), np.zeros(x_test.shape)
    for j in range(x.shape[1]):
        pool = x[:, j].astype(np.float64)
        column = _scaling(pool)
        if is_constant(column, pool.min(), pool.max()):
            continue
        parts[0][:, j] = column.encode(pool)[:, 0]
        parts[1][:, j] = column.encode(x_test[:, j].astype(np.float64))[:, 0]
    return torch.from_numpy(parts[0]), torch.from_numpy(parts[1])


def scaled_images(
    x: UInt8[np.ndarray, "n c h w"], x_test: UInt8[np.ndarray, "m c h w"]
) -> tuple[Float[Tensor, "n c h w"], Float[Tensor, "m c h w"]]:
    """Scale channels to mean 0 and standard deviation 1 over the pool; sums are exact integers."""
    total = np.zeros(x.shape[1], np.int64)
    squares = np.zeros(x.shape[1], np.int64)
    for start in range(0, len(x), _IMAGES):
        block = x[start : start + _IMAGES].astype(np.int64)
        total += block.sum((0, 2, 3))
        squares += (block**2).sum((0, 2, 3))
    count = x.size // x.shape[1]
    mean = torch.tensor([int(s) / count for s in total], dtype=torch.float64)
    spread = [count * int(q) - int(s) ** 2 for s, q in zip(total, squares, strict=True)]
    std = torch.tensor(
        [max(square, 0) ** 0.5 / count or 1.0 for square in spread], dtype=torch.float64
    )
    return _shifted(x, mean, std), _shifted(x_test, mean, std)


def _shifted(
    x: UInt8[np.ndarray, "n c h w"], mean: Float[Tensor, " c"], std: Float[Tensor, " c"]
) -> Float[Tensor, "n c h w"]:
    scaled = torch.from_numpy(x).to(torch.float64)
    return scaled.sub_(mean[:, None, None]).div_(std[:, None, None])


def scaled_targets(
    y: Float[np.ndarray, " n"], y_test: Float[np.ndarray, " m"], source: str
) -> tuple[Float[Tensor, "n 1"], Float[Tensor, "m 1"], float, float]:
    """Scale targets to mean 0 and standard deviation 1 over the pool; return both values too.

    >>> scaled_targets(np.array([1.0, 3.0]), np.array([5.0]), "two")
    (tensor([[-1.],
            [ 1.]], dtype=torch.float64), tensor([[3.]], dtype=torch.float64), 2.0, 1.0)
    """
    column = _scaling(y)
    if is_constant(column, y.min(), y.max()):
        raise DatasetError(
            f"{source}: expected different targets in the pool, got {y[0]:g} in every row; use "
            "another seed or a larger pool"
        )
    targets = torch.from_numpy(column.encode(y)), torch.from_numpy(column.encode(y_test))
    return *targets, column.scale * column.mean, column.scale * column.std
