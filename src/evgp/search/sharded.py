"""The exact greedy over shards, wherever they live: the same picks as in one place.

Per pick every shard is sent two vectors of p numbers, and answers with its best row; ties and sums
follow the rules of one place, so the number of shards and of workers changes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, runtime_checkable
from uuid import uuid4

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

from evgp._checks import instance, integer, keep
from evgp._errors import PoolError
from evgp._executor import Executor, Here, Progress, silent
from evgp.criteria import Criterion
from evgp.pool import Selection
from evgp.posterior import FeaturePosterior, FeatureStart
from evgp.posterior.rows import Some, Stored
from evgp.posterior.sums import FeatureSums
from evgp.search._round import Call, Found, Opening, Part, Step, advance, close
from evgp.search.greedy import Budget, Opens, selection, tie_of


@runtime_checkable
class PickJournal(Protocol):
    """Where finished picks are written down, so that a run that was stopped goes on from there."""

    def rows(self) -> list[int]:
        """The picks so far."""
        ...

    def add(self, row: int) -> None:
        """One more, on the disk when this returns."""
        ...


@dataclass
class Blank:
    """Nothing is written down."""

    def rows(self) -> list[int]:
        """None."""
        return []

    def add(self, row: int) -> None:
        """Forget it."""


@dataclass(frozen=True, eq=False)
class Taken:
    """Picks with what is needed to go on without the pool."""

    rows: list[int]
    gains: list[float]
    phi: Float[Tensor, "k p"]
    noise: Float[Tensor, " k"]
    costs: Float[Tensor, " k"]


@dataclass(frozen=True)
class Sharded:
    """Take the best of the shards' best, tell all shards, repeat: equal to `Exact`.

    A pick costs each shard one read of its c x p features, p² for the candidates it looks at
    closely, and sends 16 p bytes out and about 8 p back. Six numbers a row are kept where the shard
    lives. A place that lost its sums reads its features once to have them again.
    """

    shards: int = field(default=2, repr=False)  # of a pool in memory
    executor: Executor = field(default_factory=Here, repr=False)
    over_shards: ClassVar[str] = "exact"

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
        self,
        parts: Sequence[Part],
        opening: Opening,
        *,
        journal: PickJournal = Blank(),
        progress: Progress = silent,
    ) -> Taken:
        """Picks among the rows of the parts, by their number in the pool."""
        lead = Leader(opening, FeatureSums(opening.state.p.clone(), opening.state.m))
        for row in journal.rows()[: opening.budget.k]:
            lead.take_(_looked_up(parts, row, opening), 0)
            progress("picking", len(lead.steps), opening.budget.k)
        run = uuid4().hex
        told: list[int] = [-1] * len(parts)  # picks that each shard knows; -1: not even itself
        try:
            while len(lead.steps) < opening.budget.k:
                found = self._ask(run, parts, lead, told)
                at = _best(found)
                if at is None:
                    break
                lead.take_(*at)
                journal.add(lead.steps[-1].row)
                progress("picking", len(lead.steps), opening.budget.k)
            if max(told) >= 0:
                names = [f"{run}-{shard}" for shard in range(len(parts))]
                self.executor.run(close, [(run,)] * len(parts), names)
        finally:
            close(run)
        return lead.taken()

    def _ask(self, run: str, parts: Sequence[Part], lead: "Leader", told: list[int]) -> list[Found]:
        """What every shard has to offer, once all know all picks."""
        answers: dict[int, Found | None] = {}
        waiting = list(range(len(parts)))
        while waiting:
            calls = []
            for shard in waiting:
                since = max(0, told[shard])
                given = (parts[shard], lead.opening) if told[shard] < 0 else None
                steps = tuple(lead.steps[since:])
                calls.append((Call(run, shard, since, steps, lead.spent, given),))
            names = [f"{run}-{shard}" for shard in waiting]
            made = self.executor.run(advance, calls, names)
            again = []
            for shard, answer in zip(waiting, made, strict=True):
                if isinstance(answer, int):
                    told[shard] = answer
                    again.append(shard)
                else:
                    told[shard] = len(lead.steps)
                    answers[shard] = answer
            waiting = again
        return [one for one in answers.values() if one is not None]


@dataclass
class Leader:
    """The picks of all shards together, and P after them."""

    opening: Opening
    state: FeatureSums
    steps: list[Step] = field(default_factory=list)
    gains: list[float] = field(default_factory=list)
    kept: list[tuple[Tensor, float]] = field(default_factory=list)
    spent: float = 0.0

    def take_(self, found: Found, at: int) -> None:
        """Pick one of the rows found; its gain is computed anew, the same wherever it came from."""
        phi, noise, cost = found.phi[at], float(found.noise[at]), float(found.costs[at])
        alone = FeaturePosterior(Stored(phi[None]), self.state, noise=found.noise[at : at + 1])
        self.gains.append(float(self.opening.criterion.gains(alone, torch.tensor([0]))))
        u, _ = self.state.direction(phi, noise)
        self.steps.append(Step(found.rows[at], cost, self.state.change_(u, -1)))
        self.kept.append((phi, noise))
        self.spent += cost

    def taken(self) -> Taken:
        """All of it."""
        width = len(self.state.m)
        phis = [phi for phi, _ in self.kept]
        return Taken(
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
) -> tuple[list[Part], Opening]:
    """A pool in memory as so many parts, and what they begin with."""
    if not isinstance(start, FeatureStart):
        raise PoolError("expected features for a sharded greedy, got a kernel; use features=")
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
        parts.append(Part(low, rows, start.residual[at], free[at], own))
    return parts, Opening(start.state(), start.noise, start.rest, criterion, budget)


def positions(candidates: Int[Tensor, " c"], rows: Sequence[int]) -> list[int]:
    """Where rows of the pool are among the candidates."""
    place = {index: at for at, index in enumerate(candidates.tolist())}
    return [place[row] for row in rows]


def _best(found: Sequence[Found]) -> tuple[Found, int] | None:
    """The lowest row among gains within a tie of the best."""
    gains = [gain for one in found for gain in one.gains]
    if not gains:
        return None
    floor = tie_of(max(gains))
    every = [
        (row, one, at)
        for one in found
        for at, (row, gain) in enumerate(zip(one.rows, one.gains, strict=True))
        if gain + one.lost[at] >= floor
    ]
    _, one, at = min(every, key=lambda entry: entry[0])
    return one, at


def _looked_up(parts: Sequence[Part], row: int, opening: Opening) -> Found:
    """A pick that was written down, with its features."""
    for part in parts:
        at = torch.tensor([row - part.first])
        if 0 <= row - part.first < len(part):
            noise = opening.noise_of_(part.rest()[at].clone())
            costs = torch.zeros(1, dtype=torch.float64)
            costs = costs if part.prices is None else part.prices[at]
            return Found([row], [0.0], [0.0], part.rows.take(at), noise, costs)
    raise PoolError(f"expected a pick among the rows of the pool, got {row}")
