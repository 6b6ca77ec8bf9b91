"""The work of one shard: keep its sums, follow the picks, and offer its best rows.

Calls are pure: an answer depends on what was sent, now or earlier. A process keeps the sums of its
shards, so that a pick sends two vectors; a process that missed earlier picks reports how far it
got, and is sent the rest.
"""

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Lock

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from evgp._linalg import JITTER
from evgp.criteria import Criterion
from evgp.datasets import naming, reserve, verify
from evgp.datasets.files import KEPT
from evgp.errors import NotFiniteGain
from evgp.posterior import FeaturePosterior
from evgp.posterior.feature_rows import FeatureRows, close_mapped, mapped
from evgp.posterior.feature_sums import Change, FeatureSums, Sums
from evgp.search.greedy import Budget, contenders

# Number of runs whose sums a process keeps; an older run that continues computes them again.
_RUNS_KEPT = 4


@dataclass(frozen=True, eq=False)
class Shard:
    """A shard of the pool: its rows, their residuals, and which of them may be picked."""

    first: int  # the number of its first row in the pool
    rows: FeatureRows
    residual: Float[Tensor, " c"] | str  # or the npy file with it
    free: Bool[Tensor, " c"] | None = None
    prices: Float[Tensor, " c"] | None = None

    def __len__(self) -> int:
        return self.rows.shape[0]

    def rest(self) -> Float[Tensor, " c"]:
        """The variance of each row that its features miss."""
        kept = self.residual
        return torch.from_numpy(mapped(kept)) if isinstance(kept, str) else kept


@dataclass(frozen=True, eq=False)
class ShardStart:
    """What all shards of a run share at the start.

    `scratch` is a folder for their sums, None for memory; `file`, if there is one, has the
    state, so that it need not be sent.
    """

    state: FeatureSums
    noise: float
    rest: float
    criterion: Criterion
    budget: Budget  # without costs, which each shard has for its own rows
    scratch: str | None = None
    file: str | None = None

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, **({} if self.file is None else {"state": None})}

    def __setstate__(self, kept: dict[str, object]) -> None:
        if isinstance(file := kept["file"], str):
            verify(file, Path(file).name)
            p, m = torch.from_numpy(np.array(mapped(file)))
            kept = {**kept, "state": FeatureSums(p, m)}
        self.__dict__.update(kept)

    def noise_of_(self, residual: Float[Tensor, " c"]) -> Float[Tensor, " c"]:
        """Turn residuals into variances of labels, in state."""
        least = JITTER * (float(self.state.m.trace()) + self.rest)
        return residual.add_(self.noise).clamp_(min=least)


@dataclass(frozen=True, eq=False)
class Step:
    """A pick: its row in the pool, its cost, and how it changes all sums."""

    row: int
    cost: float
    change: Change


@dataclass(frozen=True, eq=False)
class Offer:
    """Rows of a shard that may be the best of all, by their numbers in the pool.

    `lost`, `most` and `reach` are those of `Contenders`.
    """

    rows: list[int]
    gains: list[float]
    lost: list[float]
    phi: Float[Tensor, "r p"]
    noise: Float[Tensor, " r"]
    costs: Float[Tensor, " r"]
    most: float = -inf
    reach: float = -inf


@dataclass
class ShardState:
    """A shard with its sums after the first `done` picks."""

    part: Shard
    posterior: FeaturePosterior
    free: Bool[Tensor, " c"]
    done: int = 0

    @classmethod
    def of(cls, part: Shard, opening: ShardStart, state: FeatureSums) -> "ShardState":
        """The state at the start of a run."""
        kept = _kept(len(part), opening.scratch)
        kept[5] = part.rest()
        opening.noise_of_(kept[5])
        sums = Sums.of(part.rows, opening.state, kept[:5])
        posterior = FeaturePosterior(part.rows, state, noise=kept[5], rest=opening.rest, sums=sums)
        free = torch.ones(len(part), dtype=torch.bool) if part.free is None else part.free.clone()
        return cls(part, posterior, free)

    def follow_(self, step: Step) -> None:
        """Note a pick; the features are read once for all noted picks, at the next request."""
        self.posterior.follow_(step.change)
        if 0 <= step.row - self.part.first < len(self.free):
            self.free[step.row - self.part.first] = False
        self.done += 1

    def best(self, opening: ShardStart, spent: float, *, every: bool = False) -> Offer | None:
        """The allowed rows near the best gain, with gains above those of all lower rows.

        If no gain can exceed rounding, only the lowest row, unless `every` row is asked for.
        """
        budget = opening.budget
        budget = Budget(budget.k, self.part.prices, budget.money, budget.by_rate)
        allowed = budget.allowed(self.free, spent)
        try:
            near = contenders(
                self.posterior, opening.criterion, allowed, budget.rates(), every=every
            )
        except NotFiniteGain as error:
            row = self.part.first + error.row
            raise replace(error, row=row, step=self.done + 1, in_pool=True) from None
        rows: list[int] = []
        high = reach = -inf
        for row in sorted(near.gains):
            gain, lost = near.gains[row], near.lost[row]
            if gain > high or gain + lost > reach:
                rows.append(row)
            high, reach = max(high, gain), max(reach, gain + lost)
        if not rows:
            return None
        at, prices = torch.tensor(rows), self.part.prices
        return Offer(
            [self.part.first + row for row in rows],
            [near.gains[row] for row in rows],
            [near.lost[row] for row in rows],
            self.part.rows.take(at),
            self.posterior.noise()[at],
            torch.zeros(len(rows), dtype=torch.float64) if prices is None else prices[at].double(),
            near.most,
            near.reach,
        )


@dataclass
class _Run:
    """The shards of one run in this process."""

    opening: ShardStart
    state: FeatureSums
    states: dict[int, ShardState] = field(default_factory=dict)
    done: int = 0
    lock: Lock = field(default_factory=Lock)


_RUNS: OrderedDict[str, _Run] = OrderedDict()
_GUARD = Lock()


@dataclass(frozen=True, eq=False)
class ShardUpdate:
    """The picks of a run from number `since` on, for one of its shards.

    `setup` describes the shard to a process that does not know it yet; `every` row that may be the
    best is to be computed.
    """

    run: str
    shard: int
    since: int
    steps: tuple[Step, ...]
    spent: float
    setup: tuple[Shard, ShardStart] | None = None
    every: bool = False


def advance(call: ShardUpdate) -> Offer | int | None:
    """A shard's best rows after all picks of the run.

    A number in place of them is the pick from which on the process needs updates; -1: it has no
    state.
    """
    run, shard, setup, since, steps = call.run, call.shard, call.setup, call.since, call.steps
    with _GUARD:
        here = _RUNS.get(run)
        if here is None:
            if setup is None:
                return -1
            start = setup[1].state
            here = _RUNS[run] = _Run(setup[1], FeatureSums(start.p.clone(), start.m))
        _RUNS.move_to_end(run)
        while len(_RUNS) > _RUNS_KEPT:
            _RUNS.popitem(last=False)
    with here.lock:
        state = here.states.get(shard)
        if state is None:
            if setup is None:
                return -1
            state = here.states[shard] = ShardState.of(setup[0], setup[1], here.state)
        behind = min(here.done, state.done)
        if behind < since:
            return behind
        for step in steps[here.done - since :]:
            here.state.p.addr_(step.change.u, step.change.u, alpha=step.change.sign)
            here.done += 1
        for step in steps[state.done - since :]:
            state.follow_(step)
        return state.best(here.opening, call.spent, every=call.every)


def close(run: str) -> None:
    """Forget a run, and close the files that it read."""
    with _GUARD:
        _RUNS.pop(run, None)
    close_mapped()


def _kept(n: int, scratch: str | None) -> Float[Tensor, "6 n"]:
    """Space for five sums and the noise of each row: memory, or an unnamed file in `scratch`."""
    if scratch is None:
        return torch.empty(6, n, dtype=torch.float64)
    Path(scratch).mkdir(parents=True, exist_ok=True)
    name = Path(scratch, "sums")  # for messages: the file itself has no visible name
    with naming(name, advice=KEPT), NamedTemporaryFile(dir=scratch, prefix=".evgp-sums-") as file:
        sums = np.memmap(file, dtype=np.float64, mode="w+", shape=(6, n))
        reserve(file.name, name)
    return torch.from_numpy(sums)
