"""Greedy search over shards, in any processes: the same picks as in one place.

For each pick every shard is sent two vectors of p numbers, and answers with its best row. Ties and
sums follow the same rules as in one place, so the numbers of shards and workers do not matter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import ClassVar, Protocol, runtime_checkable
from uuid import uuid4

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

from evgp._checks import instance, integer, keep
from evgp._executor import Executor, Here, Progress, counted, silent
from evgp.criteria import Criterion
from evgp.errors import PoolError
from evgp.pool import Selection
from evgp.posterior import FeaturePosterior, FeatureStart
from evgp.posterior.feature_rows import Some, Stored
from evgp.posterior.feature_sums import FeatureSums
from evgp.search.greedy import Budget, Opens, best_of, selection, tie_of
from evgp.search.shard import Offer, Shard, ShardStart, ShardUpdate, Step, advance, close


@runtime_checkable
class PickJournal(Protocol):
    """Where finished picks are recorded, so that an interrupted run can resume."""

    def rows(self) -> list[int]:
        """The picks so far."""
        ...

    def add(self, row: int) -> None:
        """Record one more; it is on disk when this returns."""
        ...


@dataclass
class NoJournal:
    """Records nothing."""

    def rows(self) -> list[int]:
        """No picks."""
        return []

    def add(self, row: int) -> None:
        """Do nothing."""


@dataclass(frozen=True, eq=False)
class FeaturePicks:
    """Picks with their features, noise and costs, for use without the pool."""

    rows: list[int]
    gains: list[float]
    phi: Float[Tensor, "k p"]
    noise: Float[Tensor, " k"]
    costs: Float[Tensor, " k"]


@dataclass(frozen=True)
class Sharded:
    """Pick the best of the shards' best rows, update all shards, repeat: equal to `Exact`.

    A pick costs each shard one read of its c x p features, and p² for each candidate that it
    computes exactly; it sends 16 p bytes out and about 8 p back. Each shard's process keeps six
    numbers per row; a process that lost them reads the features once to recompute them.
    """

    shards: int = field(default=2, repr=False)  # number of shards of a pool in memory
    executor: Executor = field(default_factory=Here, repr=False)
    resumes: ClassVar[bool] = True

    def over_shards(self, executor: Executor) -> "Sharded":
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
        self,
        parts: Sequence[Shard],
        opening: ShardStart,
        *,
        journal: PickJournal = NoJournal(),
        progress: Progress = silent,
    ) -> FeaturePicks:
        """Picks among the rows of the shards, by their numbers in the pool."""
        lead = Coordinator(opening, FeatureSums(opening.state.p.clone(), opening.state.m))
        for row in journal.rows()[: opening.budget.k]:
            lead.take_(_looked_up(parts, row, opening), 0)
            progress("picking", len(lead.steps), opening.budget.k)
        run = uuid4().hex
        known: list[int] = [-1] * len(
            parts
        )  # number of picks that each shard knows; -1 if it has no state
        try:
            while len(lead.steps) < opening.budget.k:
                offers = self._ask(run, parts, lead, known)
                best = _best(offers)
                if best is None:
                    break
                lead.take_(*best)
                journal.add(lead.steps[-1].row)
                progress("picking", len(lead.steps), opening.budget.k)
            if max(known) >= 0:
                names = [f"{run}-{shard}" for shard in range(len(parts))]
                self.executor.run(close, [(run,)] * len(parts), names)
        finally:
            close(run)
        return lead.taken()

    def _ask(
        self, run: str, parts: Sequence[Shard], lead: "Coordinator", known: list[int]
    ) -> list[Offer]:
        """The best rows of every shard, once all shards know all picks."""
        answers: dict[int, Offer | None] = {}
        waiting, every = list(range(len(parts))), False
        while waiting:
            calls = []
            for shard in waiting:
                since = max(0, known[shard])
                setup = (parts[shard], lead.opening) if known[shard] < 0 else None
                steps = tuple(lead.steps[since:])
                calls.append((ShardUpdate(run, shard, since, steps, lead.spent, setup, every),))
            names = [f"{run}-{shard}" for shard in waiting]
            replies = self.executor.run(advance, calls, names)
            again = []
            for shard, answer in zip(waiting, replies, strict=True):
                if isinstance(answer, int):
                    known[shard] = answer
                    again.append(shard)
                else:
                    known[shard] = len(lead.steps)
                    answers[shard] = answer
            waiting = again
            if not waiting and not every:
                waiting, every = _unclear(answers), True
        return [offer for offer in answers.values() if offer is not None]


@dataclass
class Coordinator:
    """Chooses among the offers of the shards; keeps the picks, and P after them."""

    opening: ShardStart
    state: FeatureSums
    steps: list[Step] = field(default_factory=list)
    gains: list[float] = field(default_factory=list)
    kept: list[tuple[Tensor, float]] = field(default_factory=list)
    spent: float = 0.0

    def take_(self, offer: Offer, at: int) -> None:
        """Pick a row of an offer; its gain is computed here, the same for any number of shards."""
        phi, noise, cost = offer.phi[at], float(offer.noise[at]), float(offer.costs[at])
        alone = FeaturePosterior(Stored(phi[None]), self.state, noise=offer.noise[at : at + 1])
        self.gains.append(float(self.opening.criterion.gains(alone, torch.tensor([0]))))
        u, _ = self.state.direction(phi, noise)
        self.steps.append(Step(offer.rows[at], cost, self.state.change_(u, -1)))
        self.kept.append((phi, noise))
        self.spent += cost

    def taken(self) -> FeaturePicks:
        """The picks so far."""
        width = len(self.state.m)
        phis = [phi for phi, _ in self.kept]
        return FeaturePicks(
            [step.row for step in self.steps],
            self.gains,
            torch.stack(phis) if phis else torch.empty(0, width, dtype=torch.float64),
            torch.tensor([noise for _, noise in self.kept], dtype=torch.float64),
            torch.tensor([step.cost for step in self.steps], dtype=torch.float64),
        )


def split(
    start: Opens,
    criterion: Criterion,
    candidates: Int[Tensor, " c"],
    budget: Budget,
    shards: int,
) -> tuple[list[Shard], ShardStart]:
    """A pool in memory split into shards, and what they share at the start."""
    if not isinstance(start, FeatureStart):
        raise PoolError("expected features for a sharded search, got a kernel; pass features=")
    n = len(start)
    free = torch.zeros(n, dtype=torch.bool)
    free[candidates] = True
    prices = None
    if budget.costs is not None:
        prices = torch.full((n,), torch.inf, dtype=torch.float64)
        prices[candidates] = budget.costs.double()
    step = -(-n // max(1, shards))
    parts = []
    for low in range(0, n, step):
        at = slice(low, min(n, low + step))
        rows = (
            start.rows.span(at.start, at.stop)
            if isinstance(start.rows, Stored)
            else Some(start.rows, torch.arange(at.start, at.stop))
        )
        own = None if prices is None else prices[at]
        parts.append(Shard(low, rows, start.residual[at], free[at], own))
    return parts, ShardStart(start.state(), start.noise, start.rest, criterion, budget)


def positions(candidates: Int[Tensor, " c"], rows: Sequence[int]) -> list[int]:
    """The positions of pool rows among the candidates."""
    place = {index: at for at, index in enumerate(candidates.tolist())}
    return [place[row] for row in rows]


def _unclear(offers: Mapping[int, Offer | None]) -> list[int]:
    """The shards that must compute every row, as one that they left out might decide the pick."""
    known = {shard: offer for shard, offer in offers.items() if offer is not None}
    brief = [shard for shard, offer in known.items() if offer.most > -inf]
    if not brief:
        return []
    best = max(gain for offer in known.values() for gain in offer.gains)
    low, high = tie_of(best), tie_of(max(best, *(known[shard].most for shard in brief)))
    ends = [
        gain + lost
        for offer in known.values()
        for gain, lost in zip(offer.gains, offer.lost, strict=True)
    ]
    doubt = any(low <= end < high for end in ends) or any(
        known[shard].gains[0] + known[shard].lost[0] < low <= known[shard].reach for shard in brief
    )
    return brief if doubt else []


def _best(offers: Sequence[Offer]) -> tuple[Offer, int] | None:
    """The lowest row among those that tie with the best."""
    gains = [gain for offer in offers for gain in offer.gains]
    if not gains:
        return None
    floor = tie_of(max(gains))
    every = [
        (row, offer, at)
        for offer in offers
        for at, (row, gain) in enumerate(zip(offer.rows, offer.gains, strict=True))
        if gain + offer.lost[at] >= floor
    ]
    _, offer, at = min(every, key=lambda entry: entry[0])
    return offer, at


def _looked_up(parts: Sequence[Shard], row: int, opening: ShardStart) -> Offer:
    """A pick from the journal, with its features."""
    for part in parts:
        at = torch.tensor([row - part.first])
        if 0 <= row - part.first < len(part):
            noise = opening.noise_of_(part.rest()[at].clone())
            costs = torch.zeros(1, dtype=torch.float64)
            costs = costs if part.prices is None else part.prices[at]
            return Offer([row], [0.0], [0.0], part.rows.take(at), noise, costs)
    raise PoolError(f"expected a pick among the rows of the pool, got {row}")


@dataclass(frozen=True)
class TwoRounds:
    """Each shard picks on its own, for all test points; the best of these finalists are picked.

    Each shard is visited once and reads its features k times; the finalists are (shards k) x p.
    The picks of the best single shard are used instead if they are better, with further finalists
    as far as k and the money allow. Not exact: docs/scale.md shows what it loses.

    Mirzasoleiman et al., Distributed Submodular Maximization, NeurIPS 2013 (GreeDi).
    """

    shards: int = field(default=2, repr=False)  # number of shards of a pool in memory
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
    """Return what a shard would pick if it were the whole pool."""
    return Sharded(1).take([part], opening)
