"""What all searches share: the budget, and which candidate is best."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from evgp._checks import recorded
from evgp._executor import Progress, silent
from evgp.criteria import Criterion
from evgp.errors import NotFiniteGain
from evgp.pool import Selection
from evgp.posterior import Posterior

Opens = Callable[[Int[Tensor, " c"]], Posterior]

# Gains that differ by less than this share of the best, or by no more than rounding, are a tie,
# and the lowest index wins: rounding must not decide.
TIE = 1e-7


@dataclass(frozen=True)
class Budget:
    """How much may be picked: k rows, and as many as the money buys if rows have costs.

    `by_rate` ranks candidates by gain per cost instead of gain.
    """

    k: int
    costs: Float[Tensor, " c"] | None = None
    money: float = inf
    by_rate: bool = False

    def price(self, rows: list[int]) -> float:
        """Total cost of these rows; zero if rows have no costs."""
        return 0.0 if self.costs is None else float(self.costs[rows].sum())

    def affords(self, row: int, spent: float) -> bool:
        """Whether the remaining money buys this row."""
        return self.costs is None or float(self.costs[row]) <= self._rest(spent)

    def allowed(self, free: Bool[Tensor, " c"], spent: float) -> Bool[Tensor, " c"]:
        """The free candidates that the remaining money buys."""
        return free if self.costs is None else free & (self.costs <= self._rest(spent))

    def _rest(self, spent: float) -> float:
        # A tolerance of 1e-12 for sums like 0.1 + 0.2, which should fit in 0.3.
        return self.money * (1 + 1e-12) - spent

    def rates(self) -> Float[Tensor, " c"] | None:
        """Costs by which gains are divided, if they are."""
        return self.costs if self.by_rate else None


@runtime_checkable
class Greedy(Protocol):
    """A search: from gains to picks.

    A search may have further attributes, which are used where present; a missing one counts as no:

    - `nested`: its picks for k begin those for any larger k, so that a strategy computes them once;
    - `swaps`: it exchanges picks, which the estimated time allows for;
    - `over_shards(executor)`: returns what searches in its place in a sharded run: an object whose
      `take(shards, start, progress=...)` returns `FeaturePicks`, as `Sharded` and `TwoRounds` do;
    - `resumes`: this `take` also accepts `journal=`, which records finished picks.
    """

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
        ...


def winner(
    posterior: Posterior,
    criterion: Criterion,
    allowed: Bool[Tensor, " c"],
    per: Float[Tensor, " c"] | None = None,
) -> tuple[int, float] | None:
    """The best allowed row and its gain, computed in float64; None if no row is allowed."""
    settled = contenders(posterior, criterion, allowed, per)
    if not settled:
        return None
    row = min(settled)
    return row, settled[row] * (1.0 if per is None else float(per[row]))


def contenders(
    posterior: Posterior,
    criterion: Criterion,
    allowed: Bool[Tensor, " c"],
    per: Float[Tensor, " c"] | None = None,
) -> dict[int, float]:
    """The rows whose gains (per cost, with `per`) tie with the best, and these gains.

    Running sums may be rounded (float32 storage), so ceilings only decide which rows to compute:
    they are computed exactly, a few at a time, until no other row can reach the best. A gain ties
    with the best if it is within 1e-7 of it, or within rounding; the lowest row of these wins, so
    that storage, threads and chunks make no difference.
    """
    if not bool(allowed.any()):
        return {}
    lost = rounding(criterion, posterior)
    ceilings = criterion.ceilings(posterior) + lost
    ceilings = torch.where(allowed, ceilings if per is None else ceilings / per, -inf)
    settled: dict[int, float] = {}
    look, best, floor = 1, -inf, -inf
    while True:
        rows = torch.topk(ceilings, min(look, len(ceilings))).indices
        if bool(ceilings[rows].isnan().any()):  # topk puts NaN first
            raise not_finite(criterion, posterior, ceilings, torch.arange(len(ceilings)))
        rows = rows[(ceilings[rows] >= floor) & (ceilings[rows] > -inf)]
        if len(rows) == 0:
            break
        rows = rows.sort().values
        gains = gains_of(criterion, posterior, rows)
        gains = gains if per is None else gains / per[rows]
        settled.update(zip(rows.tolist(), gains.tolist(), strict=True))
        best = max(settled.values())
        floor = tie_of(best)
        ceilings[rows] = -inf
        look = min(2 * look, 512)
    return {
        row: gain
        for row, gain in settled.items()
        if gain + (lost if per is None else lost / float(per[row])) >= floor
    }


def gains_of(
    criterion: Criterion, posterior: Posterior, rows: Int[Tensor, " r"]
) -> Float[Tensor, " r"]:
    """Gains of these candidates; refuse any that is NaN or infinite."""
    gains = criterion.gains(posterior, rows)
    if not bool(gains.isfinite().all()):
        raise not_finite(criterion, posterior, gains, rows)
    return gains


def not_finite(
    criterion: Criterion, posterior: Posterior, gains: Float[Tensor, " r"], rows: Int[Tensor, " r"]
) -> NotFiniteGain:
    """Return the error for the first gain that is NaN, or else infinite."""
    wrong = gains.isnan() if bool(gains.isnan().any()) else ~gains.isfinite()
    at = int(wrong.nonzero()[0])
    step = len(getattr(posterior, "observed", list)()) + 1
    return NotFiniteGain(recorded(criterion), float(gains[at]), int(rows[at]), step)


def tie_of(best: float) -> float:
    """The smallest gain that ties with the best, apart from rounding."""
    return best - TIE * abs(best)


def rounding(criterion: Criterion, posterior: Posterior) -> float:
    """The rounding error of a gain, if the criterion gives it, else 0."""
    bound = getattr(criterion, "rounding", None)
    return 0.0 if bound is None else float(bound(posterior))


@runtime_checkable
class Gained(Protocol):
    """Picks with their gains."""

    @property
    def gains(self) -> Iterable[float]:
        """The gain of each pick."""


Picks = TypeVar("Picks", bound=Gained)


def best_of(choices: Sequence[Picks]) -> Picks:
    """The picks with the largest sum of gains; of several within 1e-7 of it, the first.

    The same rows in another order gain the same up to rounding, which depends on the shards.

    >>> from evgp.pool import Selection
    >>> orders = [Selection(np.array(rows), np.array([0.1, 0.2])) for rows in ([3, 4], [4, 3])]
    >>> best_of(orders).indices
    array([3, 4])
    """
    sums = [float(sum(picks.gains)) for picks in choices]
    floor = tie_of(max(sums))
    return next(picks for picks, gain in zip(choices, sums, strict=True) if gain >= floor)


def selection(
    candidates: Int[Tensor, " c"], rows: list[int], gains: list[float], budget: Budget
) -> Selection:
    """Picks as pool indices."""
    costs = None if budget.costs is None else budget.costs[rows].numpy()
    return Selection(candidates[rows].numpy(), np.array(gains, dtype=np.float64), costs=costs)
