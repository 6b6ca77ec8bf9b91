"""Search in two rounds: in every shard, then among the finalists; for slow connections.

Mirzasoleiman et al., Distributed Submodular Maximization, NeurIPS 2013 (GreeDi).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from uuid import uuid4

import torch
from jaxtyping import Int
from torch import Generator, Tensor

from evgp._checks import instance, integer, keep
from evgp._executor import Executor, Here, Progress, counted, silent
from evgp.criteria import Criterion
from evgp.pool import Selection
from evgp.posterior.feature_rows import Stored
from evgp.search.greedy import Budget, Opens, best_of, selection
from evgp.search.shard import Shard, ShardStart
from evgp.search.sharded import FeaturePicks, Sharded, positions, split


@dataclass(frozen=True)
class TwoRounds:
    """Each shard picks on its own, for all test points; the best of these finalists are picked.

    Each shard is visited once and reads its features k times; the finalists are (shards k) x p.
    The picks of the best single shard are used instead if they are better, with further finalists
    as far as k and the money allow. Not exact: docs/scale.md shows what it loses.
    """

    shards: int = field(default=2, repr=False)  # of a pool in memory
    executor: Executor = field(default_factory=Here, repr=False)

    def over_shards(self, executor: Executor) -> "TwoRounds":
        """Return this search with another executor."""
        return replace(self, executor=executor)

    def __post_init__(self) -> None:
        keep(self, shards=integer(self.shards, "shards", 1))
        instance(self.executor, "an executor", Executor, "evgp.integrations.dask.executor(client)")

    def __call__(
        self,
        start: Opens,
        criterion: Criterion,
        candidates: Int[Tensor, " c"],
        budget: Budget,
        *,
        generator: Generator,
        progress: Progress = silent,
    ) -> Selection:
        """Picks among the candidates, with their gains."""
        parts, opening = split(start, criterion, candidates, budget, self.shards)
        picks = self.take(parts, opening, progress=progress)
        return selection(candidates, positions(candidates, picks.rows), picks.gains, budget)

    def take(
        self, parts: Sequence[Shard], opening: ShardStart, *, progress: Progress = silent
    ) -> FeaturePicks:
        """Picks among the rows of the shards, by their numbers in the pool."""
        each = counted(progress, "shards", len(parts))
        calls = [(part, opening) for part in parts]
        names = [f"{uuid4().hex}-{shard}" for shard in range(len(parts))]
        finals = [picks for picks in self.executor.run(alone, calls, names, each) if picks.rows]
        if not finals:
            return alone(parts[0], opening)
        rows = torch.tensor([row for picks in finals for row in picks.rows])
        order = rows.argsort()
        phi = torch.cat([picks.phi for picks in finals])[order]
        noise = torch.cat([picks.noise for picks in finals])[order] - opening.noise
        costs = torch.cat([picks.costs for picks in finals])[order]
        prices = costs if parts[0].prices is not None else None
        final = Shard(0, Stored(phi), noise, None, prices)
        last = Sharded(1).take([final], opening, progress=progress)
        place = {row: at for at, row in enumerate(rows[order].tolist())}
        shards = [replace(picks, rows=[place[row] for row in picks.rows]) for picks in finals]
        best = best_of([last, *shards])
        if best is not last:  # a shard may have run out of rows before k or the money was reached
            best = Sharded(1).take([final], opening, journal=_StartFrom(best.rows))
        return replace(best, rows=[int(rows[order[row]]) for row in best.rows])


@dataclass(frozen=True)
class _StartFrom:
    """Picks to start from; further ones are not recorded."""

    picks: list[int]

    def rows(self) -> list[int]:
        """The picks so far."""
        return self.picks

    def add(self, row: int) -> None:
        """Do nothing."""


def alone(part: Shard, opening: ShardStart) -> FeaturePicks:
    """What a shard would pick if it were the whole pool."""
    return Sharded(1).take([part], opening)
