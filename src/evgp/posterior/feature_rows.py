"""Feature rows of a pool: in memory, memory-mapped, or a subset of others."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from evgp._linalg import BLOCK, in_pairs
from evgp._machine import each_alone
from evgp.errors import DatasetError, WrongFormat

# Rows that are read at once.
READ = 16 * BLOCK


@runtime_checkable
class FeatureRows(Protocol):
    """n rows of p features that are read in order, or a few at a time."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        ...

    def blocks(self, size: int = READ) -> Iterator[tuple[int, Float[Tensor, "b p"]]]:
        """Blocks of up to `size` rows in order, each with the number of its first row.

        Blocks have the stored type, but float16 becomes float32.
        """
        ...

    def take(self, rows: Int[Tensor, " r"]) -> Float[Tensor, "r p"]:
        """These rows in float64."""
        ...


@dataclass(frozen=True, eq=False)
class Stored:
    """Rows in one matrix, a tensor or a memory-mapped array of float16, float32 or float64.

    >>> rows = Stored(torch.eye(3))
    >>> rows.shape, rows.take(torch.tensor([2])).tolist()
    ((3, 3), [[0.0, 0.0, 1.0]])
    """

    matrix: Float[Tensor, "n p"] | Float[np.ndarray, "n p"]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return int(self.matrix.shape[0]), int(self.matrix.shape[1])

    def blocks(self, size: int = READ) -> Iterator[tuple[int, Float[Tensor, "b p"]]]:
        """Blocks in order; float16 becomes float32."""
        for start in range(0, self.shape[0], size):
            block = torch.as_tensor(self.matrix[start : start + size])
            yield start, block.float() if block.dtype == torch.float16 else block

    def span(self, start: int, stop: int) -> "Stored":
        """The rows from start to stop."""
        return Stored(self.matrix[start:stop])

    def take(self, rows: Int[Tensor, " r"]) -> Float[Tensor, "r p"]:
        """These rows in float64."""
        at = rows if isinstance(self.matrix, Tensor) else rows.numpy()
        return torch.as_tensor(self.matrix[at]).double()


@dataclass(frozen=True)
class Mapped:
    """Some rows of a matrix in an npy file, memory-mapped: cheap to send to another process.

    The system may drop pages of the file at any time, so they do not count as used memory.
    """

    path: str
    start: int
    stop: int

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return self.stop - self.start, int(mapped(self.path).shape[1])

    def blocks(self, size: int = READ) -> Iterator[tuple[int, Float[Tensor, "b p"]]]:
        """Blocks in order; float16 becomes float32."""
        return self._stored().blocks(size)

    def take(self, rows: Int[Tensor, " r"]) -> Float[Tensor, "r p"]:
        """These rows in float64."""
        return self._stored().take(rows)

    def _stored(self) -> Stored:
        return Stored(mapped(self.path)[self.start : self.stop])


def mapped(path: str) -> np.ndarray:
    """An array in one of our files, memory-mapped; a replaced file is mapped again."""
    try:
        now = os.stat(path)
        return _mapped(path, (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns))
    except (OSError, ValueError) as error:
        raise WrongFormat.of(DatasetError)(
            str(path),
            "a whole array",
            str(error),
            "run again: files of the cache are verified at the start, and rebuilt where they "
            "are damaged",
        ) from error


@lru_cache(maxsize=1024)
def _mapped(path: str, identity: tuple[int, ...]) -> np.ndarray:
    # Copy on write, though nothing is written: torch warns about read-only arrays.
    return np.load(path, mmap_mode="c", allow_pickle=False)


def close_mapped() -> None:
    """Close all mapped files, so that deleted ones can be removed."""
    _mapped.cache_clear()


@dataclass(frozen=True, eq=False)
class Some:
    """Some rows of other rows, without copying all of them."""

    whole: FeatureRows
    rows: Int[Tensor, " c"]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return len(self.rows), self.whole.shape[1]

    def blocks(self, size: int = READ) -> Iterator[tuple[int, Float[Tensor, "b p"]]]:
        """Blocks of the chosen rows, which must be in ascending order."""
        start = 0
        for first, block in self.whole.blocks(size):
            stop = int(torch.searchsorted(self.rows, first + len(block)))
            if stop > start:
                yield start, block[self.rows[start:stop] - first]
            start = stop

    def take(self, rows: Int[Tensor, " r"]) -> Float[Tensor, "r p"]:
        """These rows in float64."""
        return self.whole.take(self.rows[rows])


def moment(rows: FeatureRows, weights: Float[Tensor, " n"]) -> Float[Tensor, "p p"]:
    r"""$M = \sum_t w_t \phi_t \phi_t^\top$ in float64, block by block, added in pairs.

    >>> moment(Stored(torch.eye(2)), torch.tensor([0.25, 0.75])).tolist()
    [[0.25, 0.0], [0.0, 0.75]]
    """

    def part(numbered: tuple[int, Tensor]) -> Tensor:
        start, wide = numbered[0], numbered[1].double()
        return wide.T @ (weights[start : start + len(wide), None].double() * wide)

    return in_pairs(each_alone(part, rows.blocks(BLOCK)), Tensor.add_)
