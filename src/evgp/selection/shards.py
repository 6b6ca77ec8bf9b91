"""Turn a pool that is read in ranges into shards of features on disk, and sum over all shards.

Every step is a pure function of its arguments, so it can run on any machine and more than once;
files get their final names when they are complete. Existing files are verified once per run, and
recomputed only if they are damaged. Sums record the fingerprints of the shards that they were made
from, so they become invalid when a shard changes.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain
from math import prod
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from evgp._checks import can
from evgp._executor import Executor, counted
from evgp._linalg import BLOCK, in_pairs
from evgp._machine import each_alone, own_version
from evgp.datasets import array_file, fingerprint, step_of, verify
from evgp.errors import DamagedFile, DamageWarning
from evgp.kernels import Features
from evgp.posterior.feature_rows import Mapped, mapped
from evgp.posterior.features import check_finite
from evgp.search import Progress

# Rows of a shard: a power of two blocks, so that sums do not depend on the size of a shard.
SHARD = 32 * BLOCK
# Number of sums added by one task: a power of two, for the same reason.
_TOGETHER = 8
# Maximum number of damaged files that are named one by one.
_NAMED = 3


@runtime_checkable
class Readable(Protocol):
    """Points that are read a range at a time, as numbers."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one point."""
        ...

    def __len__(self) -> int: ...

    def blocks(
        self, start: int, stop: int, size: int = BLOCK
    ) -> Iterator[tuple[int, Shaped[np.ndarray, " b *d"]]]:
        """Yield the rows of a range in blocks, each with the number of its first row."""
        ...

    def take(self, rows: Int[np.ndarray, " r"]) -> Shaped[np.ndarray, " r *d"]:
        """Return a few rows, in the given order."""
        ...


@dataclass(frozen=True, eq=False)
class ShardRecipe:
    """How a range of a pool becomes a shard in a folder; without `keep`, only sums are stored."""

    points: Readable
    features: Features
    folder: str
    size: int = SHARD
    keep: bool = True
    key: str = ""  # identifies the pool and the features; stored in all files

    def range(self, shard: int) -> tuple[int, int]:
        """Return the first row of a shard, and the row after its last."""
        return shard * self.size, min(len(self.points), (shard + 1) * self.size)

    def __len__(self) -> int:
        return (len(self.points) + self.size - 1) // self.size

    def file(self, kind: str, shard: int) -> str:
        """Return the path of one of a shard's files."""
        return str(Path(self.folder, f"{kind}-{self.size // BLOCK}-{shard:06}.npy"))

    def origin(self, file: str, *made_from: str) -> str:
        """Describe a file, with the fingerprints of the files that it was made from."""
        return "\n".join((self.key, Path(file).name, *made_from))

    def rows(self, shard: int) -> Mapped:
        """Return the features of a shard, once they have been computed."""
        start, stop = self.range(shard)
        return Mapped(self.file("features", shard), 0, stop - start)

    def verify(self, shard: int) -> str | None:
        """Return the fingerprint of a shard's sums if all its files are intact; None if unfinished.

        Reads all files: O(n p).
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
    """A file of sums, its fingerprint, and why it had to be rebuilt, if it was."""

    file: str
    fingerprint: str
    note: str = ""


def make(recipe: ShardRecipe, shard: int) -> Summed:
    r"""Compute a shard unless it exists: features in float32, their residuals, and their sums.

    The file of sums, $\sum \phi \phi^\top$ and below it $\sum \rho$, is written last and returned.
    O(n p (d + p)) time, and the memory of a few blocks.
    """
    note, done = "", recipe.file("sums", shard)
    try:
        if (verified := recipe.verify(shard)) is not None:
            return Summed(done, verified)
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
    """Add the sums of neighbouring shards, in pairs, unless the result exists."""
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
    """Return the message about a file that was damaged and rebuilt."""
    return f"{error.path} was damaged ({error.why}) and was rebuilt"


def total(
    recipe: ShardRecipe, executor: Executor, progress: Progress, stage: str
) -> tuple[Float[Tensor, "p p"], float]:
    """Compute all shards, and add their sums as a tree, the same one wherever the tasks run."""
    calls = [(recipe, shard) for shard in range(len(recipe))]
    names = [f"{Path(recipe.folder).name}-features-{shard}" for shard in range(len(recipe))]
    files = executor.run(make, calls, names, counted(progress, stage, len(recipe)))
    notes = [part.note for part in files]
    level = 0
    while len(files) > 1:
        level += 1
        groups = [files[i : i + _TOGETHER] for i in range(0, len(files), _TOGETHER)]
        into = [recipe.file(f"sums-of-{level}", i) for i in range(len(groups))]
        sums = [(recipe, group, file) for group, file in zip(groups, into, strict=True)]
        files = executor.run(add, sums, into)
        notes += [part.note for part in files]
    _warn([note for note in notes if note])
    whole = torch.from_numpy(np.array(mapped(files[0].file)))
    return whole[:-1], float(whole[-1, 0])


def _warn(notes: Sequence[str]) -> None:
    """Warn about the first few damaged files, and how many more there were."""
    for note in notes[:_NAMED]:
        warnings.warn(note, DamageWarning, stacklevel=3)
    if len(notes) > _NAMED:
        more = f"{len(notes) - _NAMED:,} more files of the cache were damaged and were rebuilt"
        warnings.warn(more, DamageWarning, stacklevel=3)


def evenly_spaced_of(points: Readable) -> Shaped[Tensor, " r *d"]:
    """Return up to 64 evenly spaced points."""
    rows = np.unique(np.linspace(0, len(points) - 1, 64).astype(np.int64))
    return torch.from_numpy(points.take(rows))


def probe(features: Features, points: Readable) -> str:
    """Return a hash of the features of a few points, to distinguish features from each other."""
    x = evenly_spaced_of(points)
    phi = features.phi(x)
    rest = features.residual(x, phi)
    state = blake2b(repr((type(features), phi.shape, own_version())).encode(), digest_size=16)
    for values in (phi, rest):
        # Rounded, as the last digits depend on the number of threads.
        scale = max(float(values.double().abs().max()), 1e-300)
        state.update((np.round(values.double().numpy() / scale, 7) + 0.0).tobytes())
    return state.hexdigest()


Block = tuple[int, Float[Tensor, "b p"], Float[Tensor, " b"], Float[Tensor, "p1 p"]]


def _featurised(recipe: ShardRecipe, start: int, stop: int) -> Iterator[Block]:
    """Compute the features of every block, their residuals, and their sums."""

    def featurise(numbered: tuple[int, Shaped[np.ndarray, " b *d"]]) -> Block:
        x = torch.from_numpy(np.ascontiguousarray(numbered[1]))
        phi = recipe.features.phi(x)
        rest = recipe.features.residual(x, phi).double()
        kept = phi.float() if recipe.keep else phi  # sum the values that are stored
        check_finite(kept, numbered[0])
        return numbered[0], kept, rest, _moment(kept, rest)

    blocks = recipe.points.blocks(start, stop, step_of(2 * prod(recipe.points.shape)))
    if not can(recipe.features, "threadsafe"):  # the hooks of a torch module allow one thread
        return map(featurise, blocks)
    return each_alone(featurise, blocks)


def _moment(phi: Float[Tensor, "b p"], rest: Float[Tensor, " b"]) -> Float[Tensor, "p1 p"]:
    wide = phi.double()
    below = wide.new_zeros(1, wide.shape[1])
    below[0, 0] = rest.sum()
    return torch.cat([wide.T @ wide, below])
