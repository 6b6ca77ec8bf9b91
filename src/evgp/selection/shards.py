"""From a pool that is read in ranges to shards of features on the disk, and the sums of them all.

Every step is a pure function of what it is given, so it may run anywhere and more than once; files
get their names when they are whole. What is there is verified once in a run, and not made again
unless it is damaged. Sums say what they were made from, so those of a shard that has changed since
do not fit any more.
"""

import warnings
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

from evgp._checks import can
from evgp._errors import DamagedFile, DamageWarning
from evgp._executor import Executor, counted
from evgp._linalg import BLOCK, in_pairs
from evgp._machine import each_alone, own_version
from evgp.datasets import array_file, fingerprint, step_of, verify
from evgp.kernels import Features
from evgp.posterior.opening import check_finite
from evgp.posterior.rows import Mapped, mapped
from evgp.search import Progress

# Rows of a shard: a power of two blocks, so that sums do not depend on it.
SHARD = 32 * BLOCK
# Sums added in one piece of work: a power of two, for the same reason.
_TOGETHER = 8
# Damaged files that are named one by one.
_NAMED = 3


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
class ShardRecipe:
    """How a range of a pool becomes a shard in a folder; without `keep` only its sums are made."""

    points: Readable
    features: Features
    folder: str
    size: int = SHARD
    keep: bool = True
    key: str = ""  # of the pool and the features, which all files carry

    def range(self, shard: int) -> tuple[int, int]:
        """Rows of a shard, from and to."""
        return shard * self.size, min(len(self.points), (shard + 1) * self.size)

    def __len__(self) -> int:
        return (len(self.points) + self.size - 1) // self.size

    def file(self, kind: str, shard: int) -> str:
        """The file of a shard."""
        return str(Path(self.folder, f"{kind}-{self.size // BLOCK}-{shard:06}.npy"))

    def origin(self, file: str, *made_from: str) -> str:
        """What a file is, and the fingerprints of those that it was made from."""
        return "\n".join((self.key, Path(file).name, *made_from))

    def rows(self, shard: int) -> Mapped:
        """Its features, once they are made."""
        start, stop = self.range(shard)
        return Mapped(self.file("features", shard), 0, stop - start)

    def verify(self, shard: int) -> str | None:
        """The fingerprint of a shard's sums once all its files are as written; None if unfinished.

        Reads all of them: O(n p).
        """
        sums = self.file("sums", shard)
        if not Path(sums).exists():
            return None
        files = [self.file(kind, shard) for kind in ("features", "rest") if self.keep]
        try:
            parts = [verify(file, self.origin(file)) for file in files]
        except FileNotFoundError as error:
            raise DamagedFile(str(error.filename), "it is missing") from error
        return verify(sums, self.origin(sums, *parts))


@dataclass(frozen=True)
class Summed:
    """A file of sums, its fingerprint, and why it was made again, if it was."""

    file: str
    fingerprint: str
    note: str = ""


def make(recipe: ShardRecipe, shard: int) -> Summed:
    r"""Make a shard, unless it is there: features in float32, what they miss, and their sums.

    The file of sums, $\sum \phi \phi^\top$ and below it $\sum \rho$, is the last, and is returned.
    O(n p (d + p)) time; memory of a few blocks.
    """
    note, done = "", recipe.file("sums", shard)
    try:
        if (found := recipe.verify(shard)) is not None:
            return Summed(done, found)
    except DamagedFile as error:
        note = rebuilt(error)
    start, stop = recipe.range(shard)
    blocks = _featurised(recipe, start, stop)
    made_from = []
    if not recipe.keep:
        total = in_pairs((sums for *_, sums in blocks), Tensor.add_)
    else:
        first = next(blocks)
        files = [recipe.file(kind, shard) for kind in ("features", "rest")]
        shape = (stop - start, first[1].shape[1])
        with (
            array_file(files[0], shape, "float32", recipe.origin(files[0])) as kept,
            array_file(files[1], shape[:1], "float64", recipe.origin(files[1])) as rests,
        ):

            def parts() -> Iterator[Tensor]:
                for at, phi, rest, part in chain([first], blocks):
                    kept[at - start : at - start + len(phi)] = phi.numpy()
                    rests[at - start : at - start + len(phi)] = rest.numpy()
                    yield part

            total = in_pairs(parts(), Tensor.add_)
        made_from = [fingerprint(file) for file in files]
    return Summed(done, _write(done, total, recipe.origin(done, *made_from)), note)


def add(recipe: ShardRecipe, parts: Sequence[Summed], into: str) -> Summed:
    """Add sums of neighbours, in pairs, unless they are there."""
    note, origin = "", recipe.origin(into, *(part.fingerprint for part in parts))
    try:
        return Summed(into, verify(into, origin))
    except FileNotFoundError:
        pass
    except DamagedFile as error:
        note = rebuilt(error)
    sums = (torch.from_numpy(np.array(mapped(part.file))) for part in parts)
    return Summed(into, _write(into, in_pairs(sums, Tensor.add_), origin), note)


def _write(file: str, sums: Float[Tensor, "p1 p"], origin: str) -> str:
    with array_file(file, tuple(sums.shape), "float64", origin) as out:
        out[:] = sums.numpy()
    return fingerprint(file)


def rebuilt(error: DamagedFile) -> str:
    """What to say of a file that was damaged and made again."""
    return f"{error.path} was damaged ({error.why}) and was rebuilt"


def total(
    recipe: ShardRecipe, executor: Executor, progress: Progress, stage: str
) -> tuple[Float[Tensor, "p p"], float]:
    """Make all shards; the sums of them all, added as a tree wherever the work runs."""
    calls = [(recipe, shard) for shard in range(len(recipe))]
    names = [f"{Path(recipe.folder).name}-features-{shard}" for shard in range(len(recipe))]
    files = executor.run(make, calls, names, counted(progress, stage, len(recipe)))
    notes = [one.note for one in files]
    level = 0
    while len(files) > 1:
        level += 1
        groups = [files[i : i + _TOGETHER] for i in range(0, len(files), _TOGETHER)]
        into = [recipe.file(f"sums-of-{level}", i) for i in range(len(groups))]
        sums = [(recipe, group, file) for group, file in zip(groups, into, strict=True)]
        files = executor.run(add, sums, into)
        notes += [one.note for one in files]
    _warn([note for note in notes if note])
    whole = torch.from_numpy(np.array(mapped(files[0].file)))
    return whole[:-1], float(whole[-1, 0])


def _warn(notes: Sequence[str]) -> None:
    """The first few files that were damaged, and how many more there were."""
    for note in notes[:_NAMED]:
        warnings.warn(note, DamageWarning, stacklevel=3)
    if len(notes) > _NAMED:
        more = f"{len(notes) - _NAMED:,} more files of the cache were damaged and were rebuilt"
        warnings.warn(more, DamageWarning, stacklevel=3)


def some_of(points: Readable) -> Shaped[Tensor, " r *d"]:
    """Up to 64 points, evenly over them all."""
    rows = np.unique(np.linspace(0, len(points) - 1, 64).astype(np.int64))
    return torch.from_numpy(points.take(rows))


def probe(features: Features, points: Readable) -> str:
    """A hash of the features of some points, to tell features of one pool from others."""
    x = some_of(points)
    phi = features.phi(x)
    rest = features.residual(x, phi)
    made = blake2b(repr((type(features), phi.shape, own_version())).encode(), digest_size=16)
    for values in (phi, rest):
        # Rounded, as the last digits depend on the number of threads.
        scale = max(float(values.double().abs().max()), 1e-300)
        made.update((np.round(values.double().numpy() / scale, 7) + 0.0).tobytes())
    return made.hexdigest()


Made = tuple[int, Float[Tensor, "b p"], Float[Tensor, " b"], Float[Tensor, "p1 p"]]


def _featurised(recipe: ShardRecipe, start: int, stop: int) -> Iterator[Made]:
    """Features of every block, what they miss, and their sums."""

    def made(numbered: tuple[int, Shaped[np.ndarray, " b *d"]]) -> Made:
        x = torch.from_numpy(np.ascontiguousarray(numbered[1]))
        phi = recipe.features.phi(x)
        rest = recipe.features.residual(x, phi).double()
        kept = phi.float() if recipe.keep else phi  # what is stored is what is summed
        check_finite(kept, numbered[0])
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
