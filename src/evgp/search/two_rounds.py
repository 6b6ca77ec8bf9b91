"""Two rounds: a greedy in every shard, then one over the finalists; for when rounds are dear.

Mirzasoleiman et al., Distributed Submodular Maximization, NeurIPS 2013 (GreeDi).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar
from uuid import uuid4

import torch
from jaxtyping import Int
from torch import Generator, Tensor

from evgp._checks import instance, integer, keep
from evgp._executor import Executor, Here, Progress, counted, silent
from evgp.criteria import Criterion
from evgp.pool import Selection
from evgp.posterior.rows import Stored
from evgp.search._round import Opening, Part
from evgp.search.greedy import Budget, Opens, best_of, selection
from evgp.search.sharded import Sharded, Taken, positions, split


@dataclass(frozen=True)
class TwoRounds:
    """Every shard picks for itself, judged by all test points; the best of the finalists win.

    Each shard is visited once and reads its features k times; the finalists are (shards k) x p.
    The picks of the best single shard are kept where they are better, and other finalists added
    while k and the money allow. Not exact: see docs/scale.md for what it loses.
    """

    shards: int = field(default=2, repr=False)  # of a pool in memory
    executor: Executor = field(default_factory=Here, repr=False)
    over_shards: ClassVar[str] = "two-rounds"

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
        made = self.take(parts, opening, progress=progress)
        return selection(candidates, positions(candidates, made.rows), made.gains, budget)

    def take(
        self, parts: Sequence[Part], opening: Opening, *, progress: Progress = silent
    ) -> Taken:
        """Picks among the rows of the parts, by their number in the pool."""
        each = counted(progress, "shards", len(parts))
        calls = [(part, opening) for part in parts]
        names = [f"{uuid4().hex}-{shard}" for shard in range(len(parts))]
        finals = [one for one in self.executor.run(alone, calls, names, each) if one.rows]
        if not finals:
            return alone(parts[0], opening)
        rows = torch.tensor([row for one in finals for row in one.rows])
        order = rows.argsort()
        phi = torch.cat([one.phi for one in finals])[order]
        noise = torch.cat([one.noise for one in finals])[order] - opening.noise
        costs = torch.cat([one.costs for one in finals])[order]
        prices = costs if parts[0].prices is not None else None
        final = Part(0, Stored(phi), noise, None, prices)
        last = Sharded(1).take([final], opening, progress=progress)
        place = {row: at for at, row in enumerate(rows[order].tolist())}
        shards = [replace(one, rows=[place[row] for row in one.rows]) for one in finals]
        best = best_of([last, *shards])
        if best is not last:  # a shard may have run out of rows before k or the money was reached
            best = Sharded(1).take([final], opening, journal=_Begun(best.rows))
        return replace(best, rows=[int(rows[order[row]]) for row in best.rows])


@dataclass(frozen=True)
class _Begun:
    """Picks to go on from; further ones are not written down."""

    picks: list[int]

    def rows(self) -> list[int]:
        """The picks so far."""
        return self.picks

    def add(self, row: int) -> None:
        """Forget it."""


def alone(part: Part, opening: Opening) -> Taken:
    """What a shard would pick if it were all there is to pick from."""
    return Sharded(1).take([part], opening)
