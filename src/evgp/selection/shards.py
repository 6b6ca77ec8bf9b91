"""From a pool that is read in ranges to shards of features on the disk, and the sums of them all.

Every step is a pure function of what it is given, so it may run anywhere and more than once; files
get their names when they are whole, and what is there is not made again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain
from math import prod
from pathlib import Path
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from evgp._capabilities import can
from evgp._executor import Executor, counted
from evgp._linalg import BLOCK, in_pairs
from evgp._machine import each_alone, own_version
from evgp.datasets import array_file, step_of
from evgp.greedy import Progress
from evgp.kernels import Features
from evgp.posterior.rows import Mapped, mapped

# Rows of a shard: a power of two blocks, so that sums do not depend on it.
SHARD = 32 * BLOCK
# Sums added in one piece of work: a power of two, for the same reason.
_TOGETHER = 8


@runtime_checkable
class Readable(Protocol):
    """Points that are read a range at a time, as numbers."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one point."""
        ...

    def __len__(self) -> int: ...

    def blocks(
        self, start: int, stop: int, size: int = BLOCK
    ) -> Iterator[tuple[int, Shaped[np.ndarray, " b *d"]]]:
        """Rows of a range in order, each block with the number of its first row."""
        ...

    def take(self, rows: Int[np.ndarray, " r"]) -> Shaped[np.ndarray, " r *d"]:
        """A few rows in the order given."""
        ...


@dataclass(frozen=True, eq=False)
class Held:
    """Points in memory."""

    x: Shaped[Tensor, " n *d"]
    in_memory: ClassVar[bool] = True

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one point."""
        return tuple(self.x.shape[1:])

    def __len__(self) -> int:
        return len(self.x)

    def blocks(
        self, start: int, stop: int, size: int = BLOCK
    ) -> Iterator[tuple[int, Shaped[np.ndarray, " b *d"]]]:
        """Rows of a range in order, each block with the number of its first row."""
        for first in range(start, stop, size):
            yield first, self.x[first : min(stop, first + size)].numpy()

    def take(self, rows: Int[np.ndarray, " r"]) -> Shaped[np.ndarray, " r *d"]:
        """A few rows in the order given."""
        return self.x[torch.from_numpy(rows)].numpy()

    def content(self, executor: Executor) -> str:
        """A hash of all points."""
        made = blake2b(repr((self.x.shape, self.x.dtype)).encode(), digest_size=16)
        for _, block in self.blocks(0, len(self)):
            made.update(np.ascontiguousarray(block).data)
        return made.hexdigest()


@dataclass(frozen=True, eq=False)
class Recipe:
    """How a range of a pool becomes a shard in a folder; without `keep` only its sums are made."""

    points: Readable
    features: Features
    folder: str
    size: int = SHARD
    keep: bool = True

    def range(self, shard: int) -> tuple[int, int]:
        """Rows of a shard, from and to."""
        return shard * self.size, min(len(self.points), (shard + 1) * self.size)

    def __len__(self) -> int:
        return (len(self.points) + self.size - 1) // self.size

    def file(self, kind: str, shard: int) -> str:
        """Of a shard."""
        return str(Path(self.folder, f"{kind}-{self.size // BLOCK}-{shard:06}.npy"))

    def rows(self, shard: int) -> Mapped:
        """Its features, once they are made."""
        start, stop = self.range(shard)
        return Mapped(self.file("features", shard), 0, stop - start)


def make(recipe: Recipe, shard: int) -> str:
    r"""Make a shard, unless it is there: features in float32, what they miss, and their sums.

    The file of sums, $\sum \phi \phi^\top$ and below it $\sum \rho$, is the last, and is returned.
    O(n p (d + p)) time; memory of a few blocks.
    """
    done = Path(recipe.file("sums", shard))
    if done.exists():
        return str(done)
    start, stop = recipe.range(shard)
    blocks = _featurised(recipe, start, stop)
    if not recipe.keep:
        total = in_pairs((sums for *_, sums in blocks), Tensor.add_)
    else:
        first = next(blocks)
        width = first[1].shape[1]
        with (
            array_file(recipe.file("features", shard), (stop - start, width), "float32") as kept,
            array_file(recipe.file("rest", shard), (stop - start,), "float64") as rests,
        ):

            def parts() -> Iterator[Tensor]:
                for at, phi, rest, part in chain([first], blocks):
                    kept[at - start : at - start + len(phi)] = phi.numpy()
                    rests[at - start : at - start + len(phi)] = rest.numpy()
                    yield part

            total = in_pairs(parts(), Tensor.add_)
    with array_file(done, tuple(total.shape), "float64") as out:
        out[:] = total.numpy()
    return str(done)


def add(files: Sequence[str], into: str) -> str:
    """Add sums of neighbours, in pairs."""
    if not Path(into).exists():
        parts = (torch.from_numpy(np.array(mapped(file))) for file in files)
        total = in_pairs(parts, Tensor.add_)
        with array_file(into, tuple(total.shape), "float64") as out:
            out[:] = total.numpy()
    return into


def total(
    recipe: Recipe, executor: Executor, progress: Progress, stage: str
) -> tuple[Float[Tensor, "p p"], float]:
    """Make all shards; the sums of them all, added as a tree wherever the work runs."""
    calls = [(recipe, shard) for shard in range(len(recipe))]
    names = [f"{Path(recipe.folder).name}-features-{shard}" for shard in range(len(recipe))]
    files = executor.run(make, calls, names, counted(progress, stage, len(recipe)))
    level = 0
    while len(files) > 1:
        level += 1
        groups = [files[i : i + _TOGETHER] for i in range(0, len(files), _TOGETHER)]
        into = [recipe.file(f"sums-of-{level}", i) for i in range(len(groups))]
        files = executor.run(add, list(zip(groups, into, strict=True)), into)
    whole = torch.from_numpy(np.array(mapped(files[0])))
    return whole[:-1], float(whole[-1, 0])


def probe(features: Features, points: Readable) -> str:
    """A hash of the features of some points, to tell features of one pool from others."""
    rows = np.unique(np.linspace(0, len(points) - 1, 64).astype(np.int64))
    x = torch.from_numpy(points.take(rows))
    phi = features.phi(x)
    rest = features.residual(x, phi)
    made = blake2b(repr((type(features), phi.shape, own_version())).encode(), digest_size=16)
    for values in (phi, rest):
        # Rounded, as the last digits depend on the number of threads.
        scale = max(float(values.double().abs().max()), 1e-300)
        made.update((np.round(values.double().numpy() / scale, 7) + 0.0).tobytes())
    return made.hexdigest()


Made = tuple[int, Float[Tensor, "b p"], Float[Tensor, " b"], Float[Tensor, "p1 p"]]


def _featurised(recipe: Recipe, start: int, stop: int) -> Iterator[Made]:
    """Features of every block, what they miss, and their sums."""

    def made(numbered: tuple[int, Shaped[np.ndarray, " b *d"]]) -> Made:
        x = torch.from_numpy(np.ascontiguousarray(numbered[1]))
        phi = recipe.features.phi(x)
        rest = recipe.features.residual(x, phi).double()
        kept = phi.float() if recipe.keep else phi  # what is stored is what is summed
        return numbered[0], kept, rest, _moment(kept, rest)

    blocks = recipe.points.blocks(start, stop, step_of(2 * prod(recipe.points.shape)))
    if not can(recipe.features, "threadsafe"):  # the hooks of a torch module allow one thread
        return map(made, blocks)
    return each_alone(made, blocks)


def _moment(phi: Float[Tensor, "b p"], rest: Float[Tensor, " b"]) -> Float[Tensor, "p1 p"]:
    wide = phi.double()
    below = wide.new_zeros(1, wide.shape[1])
    below[0, 0] = rest.sum()
    return torch.cat([wide.T @ wide, below])
