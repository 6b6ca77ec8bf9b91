"""EV-GP over shards of features: pools larger than memory, or than one machine."""

import warnings
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from math import inf
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from evgp._checks import can
from evgp._errors import DamagedFile, DamageWarning
from evgp._executor import Executor, Here
from evgp.criteria import Criterion
from evgp.datasets import Fitted, PickFile, array_file, cache_folder, check_room, in_use, verify
from evgp.kernels import Features
from evgp.pool import Selection
from evgp.posterior import FeatureStart
from evgp.posterior.rows import Mapped, Stored, let_go, mapped
from evgp.search import Budget, Opening, Part, Progress, Sharded, Taken, TwoRounds, best_of, silent
from evgp.selection.run import (
    check_by_features,
    check_degree,
    check_variance,
    in_units,
    measured,
    most_picks,
    scaled_features,
)
from evgp.selection.shards import (
    SHARD,
    Held,
    Readable,
    ShardRecipe,
    probe,
    rebuilt,
    some_of,
    total,
)

_EMPTY = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Large:
    """A pool in ranges, the features of its points, and where to work.

    `scratch` keeps the sums of rows in files as well. The work is kept in `cache`, or removed from
    the user's cache once the picks are made; a run that was stopped goes on from there.
    """

    points: Fitted | Held
    features: Features
    test: Fitted | Held | None = None
    labelled: Int[np.ndarray, " l"] = field(default_factory=lambda: _EMPTY)
    outside: Readable | None = None
    candidates: Int[np.ndarray, " c"] | None = None
    prices: Float[Tensor, " n"] | None = None
    executor: Executor = field(default_factory=Here)
    size: int = SHARD
    scratch: bool = False
    cache: Path | None = None

    def pick(
        self,
        k: int | None,
        *,
        budget: float = inf,
        noise: float,
        criterion: Criterion,
        two_rounds: bool = False,
        progress: Progress = silent,
    ) -> Selection:
        """k picks, or what the budget buys, as `EVGP` makes them in memory."""
        check_by_features(criterion, "shards")
        features, unit = scaled_features(self.features, some_of(self.points))
        check_degree(criterion, unit)
        key = blake2b(digest_size=16)
        key.update(self.points.content(self._maker()).encode())
        key.update(probe(features, self.points).encode())
        folder = (self.cache or cache_folder()) / f"features-{key.hexdigest()}"
        scaled = replace(self, features=features)
        with in_use(folder, remove=self.cache is None):
            try:
                run = _Run(scaled, key.hexdigest(), folder, noise, criterion, two_rounds, progress)
                return in_units(run.pick(k, budget), criterion, unit)
            finally:
                let_go()

    def _maker(self) -> Executor:
        """Where features are made: points in memory are not sent anywhere."""
        return Here() if can(self.points, "in_memory") else self.executor


@dataclass
class _Run:
    """One run in its folder."""

    large: Large
    key: str
    folder: Path
    noise: float
    criterion: Criterion
    two_rounds: bool
    progress: Progress

    def pick(self, k: int | None, budget: float) -> Selection:
        """From features to a selection."""
        large = self.large
        n = len(large.points)
        recipe = ShardRecipe(
            large.points, large.features, str(self.folder), large.size, key=self.key
        )
        direct = _whole_file(large)
        if direct is not None:
            recipe = replace(recipe, keep=False)
        else:
            check_room(self.folder, self._missing(recipe))
        moment, rest = total(recipe, large._maker(), self.progress, "features")
        moment, rest = moment / n, rest / n
        if large.test is not None:
            moment, rest = self._test_sums()
        known, own = self._known()
        start = FeatureStart(Stored(known), own, moment, rest, 0.0, known, own)
        check_variance(start.prior)
        start = replace(start, noise=self.noise * start.prior)
        parts = self._parts(recipe, direct)
        free = sum(len(part) if part.free is None else int(part.free.sum()) for part in parts)
        prices = self._prices(parts)
        aim = most_picks(k, free, prices, budget)
        scratch = str(self.folder / "scratch") if large.scratch else None
        makes: list[Taken] = []
        for by_rate in (False, True) if prices is not None else (False,):
            within = Budget(aim, None, budget, by_rate)
            opening = Opening(start.state(), start.noise, rest, self.criterion, within, scratch)
            makes.append(self._take(parts, self._filed(opening, parts)))
        # Gain per cost alone, or gain alone, can be arbitrarily bad; the better of both is not.
        made = best_of(makes)
        return self._measure(made, Budget(aim, prices, budget), start)

    def _missing(self, recipe: ShardRecipe) -> int:
        """Bytes that are still to be written."""
        width = large_width(self.large.features, self.large.points)
        scratch = 48 * len(self.large.points) if self.large.scratch else 0
        for shard in range(len(recipe)):
            if not Path(recipe.file("sums", shard)).exists():
                start, stop = recipe.range(shard)
                scratch += (stop - start) * (4 * width + 8) + 8 * (width + 1) * width
        return scratch

    def _test_sums(self) -> tuple[Float[Tensor, "p p"], float]:
        """The test points, which enter through their sums alone."""
        large, test = self.large, self.large.test
        assert test is not None
        maker = Here() if can(test, "in_memory") else large.executor
        content = test.content(maker)
        folder = self.folder / f"test-{content}"
        folder.mkdir(exist_ok=True)
        key = f"{self.key}/{folder.name}"
        recipe = ShardRecipe(test, large.features, str(folder), large.size, keep=False, key=key)
        moment, rest = total(recipe, maker, self.progress, "test points")
        return moment / len(test), rest / len(test)

    def _known(self) -> tuple[Float[Tensor, "l p"], Float[Tensor, " l"]]:
        """Features of what is labelled already, and what they miss."""
        large = self.large
        blocks = [large.points.take(large.labelled)] if len(large.labelled) else []
        if large.outside is not None:
            blocks += [block for _, block in large.outside.blocks(0, len(large.outside))]
        width = large_width(large.features, large.points)
        phis, rests = [torch.empty(0, width, dtype=torch.float64)], [torch.empty(0).double()]
        for block in blocks:
            x = torch.from_numpy(np.ascontiguousarray(block))
            phi = large.features.phi(x)
            phis.append(phi.double())
            rests.append(large.features.residual(x, phi).double())
        return torch.cat(phis), torch.cat(rests)

    def _parts(self, recipe: ShardRecipe, direct: str | None) -> list[Part]:
        large = self.large
        parts = []
        for shard in range(len(recipe)):
            start, stop = recipe.range(shard)
            rows = recipe.rows(shard) if direct is None else Mapped(direct, start, stop)
            zeros = torch.zeros(1, dtype=torch.float64).expand(stop - start)
            rest = zeros if direct is not None else recipe.file("rest", shard)
            prices = None if large.prices is None else large.prices[start:stop]
            parts.append(Part(start, rows, rest, self._free(start, stop), prices))
        return parts

    def _free(self, start: int, stop: int) -> Tensor | None:
        """Which rows of a range may be picked; None for all of them."""

        def inside(rows: Int[np.ndarray, " r"]) -> Tensor:
            return torch.from_numpy(rows[(rows >= start) & (rows < stop)] - start)

        labelled, some = inside(self.large.labelled), self.large.candidates
        if some is None and not len(labelled):
            return None
        free = torch.full((stop - start,), some is None)
        if some is not None:
            free[inside(some)] = True
        free[labelled] = False
        return free

    def _prices(self, parts: list[Part]) -> Float[Tensor, " c"] | None:
        """Of all rows that may be picked."""
        kept = [
            part.prices if part.free is None else part.prices[part.free]
            for part in parts
            if part.prices is not None
        ]
        return torch.cat(kept) if kept else None

    def _filed(self, opening: Opening, parts: list[Part]) -> Opening:
        """The same, with its state in a file, named by all that the picks depend on."""
        key = blake2b(digest_size=16)
        told = (opening.noise, opening.rest, opening.criterion, opening.budget.money)
        key.update(repr((*told, opening.budget.by_rate, self.large.size)).encode())
        for matrix in (opening.state.p, opening.state.m):
            key.update(matrix.numpy().data)
        for part in parts:
            for kept in (part.free, part.prices):
                key.update(b"all" if kept is None else np.ascontiguousarray(kept.numpy()).data)
        path = self.folder / f"start-{key.hexdigest()}.npy"
        if not _kept(path):
            with array_file(path, (2, *opening.state.p.shape), "float64", path.name) as out:
                out[0], out[1] = opening.state.p.numpy(), opening.state.m.numpy()
        return replace(opening, file=str(path))

    def _take(self, parts: list[Part], opening: Opening) -> Taken:
        large = self.large
        if self.two_rounds:
            return TwoRounds(executor=large.executor).take(parts, opening, progress=self.progress)
        journal = PickFile(Path(str(opening.file)).with_suffix(".picks"))
        greedy = Sharded(executor=large.executor)
        return greedy.take(parts, opening, journal=journal, progress=self.progress)

    def _measure(self, made: Taken, budget: Budget, start: FeatureStart) -> Selection:
        """Replay the picks in float64: variances after each, and what was guaranteed."""
        picked = replace(start, rows=Stored(made.phi), residual=made.noise - start.noise)
        costs = None if budget.costs is None else made.costs.numpy()
        picks = Selection(np.arange(len(made.rows)), np.array(made.gains), costs=costs)
        done = measured(
            self.criterion,
            picked,
            picks,
            budget=budget,
            prior=start.prior,
            most=len(self.large.points),
            progress=self.progress,
        )
        return replace(done, indices=np.array(made.rows, dtype=np.int64))


def _kept(start: Path) -> bool:
    """Whether the file of a start is there; one that is damaged is made again, with a warning."""
    try:
        verify(start, start.name)
    except FileNotFoundError:
        return False
    except DamagedFile as error:
        warnings.warn(rebuilt(error), DamageWarning, stacklevel=2)
        return False
    return True


def large_width(features: Features, points: Readable) -> int:
    """The number of features."""
    phi = features.phi(torch.from_numpy(points.take(np.zeros(1, dtype=np.int64))))
    return int(phi.shape[1])


def _whole_file(large: Large) -> str | None:
    """The file that is the matrix of features itself, as it is."""
    points = large.points
    files: tuple[str, ...] = getattr(points, "as_is", ())
    if not can(large.features, "identity") or len(files) != 1:
        return None
    matrix = mapped(files[0])
    return files[0] if matrix.flags.c_contiguous and matrix.dtype.isnative else None
