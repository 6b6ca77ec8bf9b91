"""EV-GP over shards of features, for pools larger than the memory of one machine."""

import warnings
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from evgp._checks import can, recorded, shown
from evgp._executor import Executor, Here
from evgp.datasets import Fitted, PickFile, array_file, cache_folder, check_room, in_use, verify
from evgp.errors import DamagedFile, DamageWarning, PluginError
from evgp.kernels import Features
from evgp.pool import Selection
from evgp.posterior import FeatureStart
from evgp.posterior.feature_rows import Mapped, Stored, close_mapped, mapped
from evgp.search import (
    Budget,
    FeaturePicks,
    Shard,
    ShardStart,
    best_of,
)
from evgp.selection.request import InMemory, Request
from evgp.selection.run import (
    check_degree,
    check_variance,
    in_units,
    measured,
    scaled_features,
)
from evgp.selection.shards import (
    Readable,
    ShardRecipe,
    evenly_spaced_of,
    probe,
    rebuilt,
    total,
)


def sharded_picks(
    request: Request,
    points: Fitted | InMemory,
    features: Features,
    *,
    test: Fitted | InMemory | None,
    outside: Readable | None,
    scratch: bool,
    search: Any,
) -> Selection:
    """Make the picks of a request over points that are read in ranges, as in memory.

    `scratch` keeps the row sums in files as well. Intermediate files are kept in the request's
    cache; without one, they are removed from the user's cache once the picks are made. A run that
    was interrupted resumes from these files.
    """
    features, unit = scaled_features(features, evenly_spaced_of(points))
    check_degree(request.criterion, unit)
    key = blake2b(digest_size=16)
    key.update(points.content(_maker(points, request)).encode())
    key.update(probe(features, points).encode())
    cache = cache_folder() if request.cache is None else Path(request.cache)
    folder = cache / f"features-{key.hexdigest()}"
    with in_use(folder, remove=request.cache is None):
        try:
            run = _ShardedRun(
                request,
                points,
                features,
                test,
                outside,
                scratch,
                search,
                key.hexdigest(),
                folder,
            )
            return in_units(run.pick(), request.criterion, unit)
        finally:
            close_mapped()


def _maker(points: Fitted | InMemory, request: Request) -> Executor:
    """Return where features are computed: points in memory are not sent to workers."""
    return Here() if can(points, "in_memory") else request.place()


@dataclass
class _ShardedRun:
    """One sharded run, with its files in one folder."""

    request: Request
    points: Fitted | InMemory
    features: Features
    test: Fitted | InMemory | None
    outside: Readable | None
    scratch: bool
    search: Any
    key: str
    folder: Path

    def pick(self) -> Selection:
        """Compute the features and sums, then search, then measure the selection."""
        request, n = self.request, len(self.points)
        recipe = ShardRecipe(
            self.points, self.features, str(self.folder), request.shard, key=self.key
        )
        direct = self._whole_file()
        if direct is not None:
            recipe = replace(recipe, keep=False)
        else:
            check_room(self.folder, self._missing(recipe))
        moment, rest = total(recipe, _maker(self.points, request), request.report, "features")
        moment, rest = moment / n, rest / n
        if self.test is not None:
            moment, rest = self._test_sums(self.test)
        known, own = self._known()
        start = FeatureStart(Stored(known), own, moment, rest, 0.0, known, own)
        check_variance(start.prior)
        start = replace(start, noise=request.noise * start.prior)
        parts = self._parts(recipe, direct)
        prices = self._prices(parts)
        scratch = str(self.folder / "scratch") if self.scratch else None
        searches: list[FeaturePicks] = []
        for by_rate in (False, True) if prices is not None else (False,):
            within = Budget(request.k, None, request.budget, by_rate)
            opening = ShardStart(
                start.state(), start.noise, rest, request.criterion, within, scratch
            )
            searches.append(self._take(parts, self._stored(opening, parts)))
        # Gain per cost alone, or gain alone, can be arbitrarily bad; the better of the two cannot.
        budget = Budget(request.k, prices, request.budget)
        return self._measure(best_of(searches), budget, start)

    def _missing(self, recipe: ShardRecipe) -> int:
        """Return the number of bytes still to be written."""
        width = self._width()
        scratch = 48 * len(self.points) if self.scratch else 0
        for shard in range(len(recipe)):
            if not Path(recipe.file("sums", shard)).exists():
                start, stop = recipe.range(shard)
                scratch += (stop - start) * (4 * width + 8) + 8 * (width + 1) * width
        return scratch

    def _test_sums(self, test: Fitted | InMemory) -> tuple[Float[Tensor, "p p"], float]:
        """Sum the features of the test points; the criterion needs only these sums."""
        request, maker = self.request, _maker(test, self.request)
        folder = self.folder / f"test-{test.content(maker)}"
        folder.mkdir(exist_ok=True)
        key = f"{self.key}/{folder.name}"
        recipe = ShardRecipe(test, self.features, str(folder), request.shard, keep=False, key=key)
        moment, rest = total(recipe, maker, request.report, "test points")
        return moment / len(test), rest / len(test)

    def _known(self) -> tuple[Float[Tensor, "l p"], Float[Tensor, " l"]]:
        """Return the features of the labelled points, and their residual variances."""
        labelled, outside, width = self.request.labelled.numpy(), self.outside, self._width()
        blocks = [self.points.take(labelled)] if len(labelled) else []
        if outside is not None:
            blocks += [block for _, block in outside.blocks(0, len(outside))]
        phis, rests = [torch.empty(0, width, dtype=torch.float64)], [torch.empty(0).double()]
        for block in blocks:
            x = torch.from_numpy(np.ascontiguousarray(block))
            phi = self.features.phi(x)
            phis.append(phi.double())
            rests.append(self.features.residual(x, phi).double())
        return torch.cat(phis), torch.cat(rests)

    def _parts(self, recipe: ShardRecipe, direct: str | None) -> list[Shard]:
        costs, parts = self.request.costs, []
        for shard in range(len(recipe)):
            start, stop = recipe.range(shard)
            rows = recipe.rows(shard) if direct is None else Mapped(direct, start, stop)
            zeros = torch.zeros(1, dtype=torch.float64).expand(stop - start)
            rest = zeros if direct is not None else recipe.file("rest", shard)
            prices = None if costs is None else costs[start:stop]
            parts.append(Shard(start, rows, rest, self._free(start, stop), prices))
        return parts

    def _free(self, start: int, stop: int) -> Tensor | None:
        """Return which rows of a range may be picked; None means all of them."""

        def inside(rows: Int[Tensor, " r"]) -> Tensor:
            return rows[(rows >= start) & (rows < stop)] - start

        labelled, candidates = inside(self.request.labelled), self.request.candidates
        if candidates is None and not len(labelled):
            return None
        free = torch.full((stop - start,), candidates is None)
        if candidates is not None:
            free[inside(candidates)] = True
        free[labelled] = False
        return free

    def _prices(self, parts: list[Shard]) -> Float[Tensor, " c"] | None:
        """Return the prices of all rows that may be picked."""
        kept = [
            part.prices if part.free is None else part.prices[part.free]
            for part in parts
            if part.prices is not None
        ]
        return torch.cat(kept) if kept else None

    def _stored(self, opening: ShardStart, parts: list[Shard]) -> ShardStart:
        """Store an opening's state in a file, named by a hash of all that the picks depend on."""
        key = blake2b(digest_size=16)
        settings = (
            opening.noise,
            opening.rest,
            opening.criterion,
            self.search,
            opening.budget.money,
        )
        key.update(repr((*settings, opening.budget.by_rate, self.request.shard)).encode())
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

    def _take(self, parts: list[Shard], opening: ShardStart) -> FeaturePicks:
        journal = {}
        if can(self.search, "resumes"):
            journal = {"journal": PickFile(Path(str(opening.file)).with_suffix(".picks"))}
        picks = self.search.take(parts, opening, **journal, progress=self.request.report)
        if not isinstance(picks, FeaturePicks):
            got = f"{shown(picks)} from {recorded(self.search)}"
            raise PluginError(f"expected FeaturePicks, got {got}")
        return picks

    def _measure(self, result: FeaturePicks, budget: Budget, start: FeatureStart) -> Selection:
        """Replay the picks in float64 to compute the variance after each, and the certificate."""
        picked = replace(start, rows=Stored(result.phi), residual=result.noise - start.noise)
        costs = None if budget.costs is None else result.costs.numpy()
        picks = Selection(np.arange(len(result.rows)), np.array(result.gains), costs=costs)
        selection = measured(
            self.request.criterion,
            picked,
            picks,
            budget=budget,
            prior=start.prior,
            most=len(self.points),
            progress=self.request.report,
        )
        return replace(selection, indices=np.array(result.rows, dtype=np.int64))

    def _width(self) -> int:
        """Return the number of features."""
        first = torch.from_numpy(self.points.take(np.zeros(1, dtype=np.int64)))
        return int(self.features.phi(first).shape[1])

    def _whole_file(self) -> str | None:
        """Return the input file that already is the feature matrix; None if there is none."""
        files: tuple[str, ...] = getattr(self.points, "as_is", ())
        if not can(self.features, "identity") or len(files) != 1:
            return None
        matrix = mapped(files[0])
        return files[0] if matrix.flags.c_contiguous and matrix.dtype.isnative else None


def _kept(start: Path) -> bool:
    """Whether the file of a start exists and is intact; warn if it is damaged."""
    try:
        verify(start, start.name)
    except FileNotFoundError:
        return False
    except DamagedFile as error:
        warnings.warn(rebuilt(error), DamageWarning, stacklevel=2)
        return False
    return True
