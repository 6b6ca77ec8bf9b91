"""Exchange: greedy search, then swaps of picks for better candidates until none helps.

Fedorov, Theory of Optimal Experiments, 1972; Mitchell's DETMAX, 1974.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from jaxtyping import Bool, Int
from torch import Generator, Tensor

from evgp._checks import integer, keep
from evgp._executor import Progress, silent
from evgp.criteria import Criterion
from evgp.pool import Selection
from evgp.posterior import Posterior
from evgp.search.greedy import Budget, Exact, Opens, best_of, gains_of, rounding, selection, winner

# A swap must gain at least this share of what it replaces, or rounding could swap forever.
_PAYS = 1e-6


@dataclass(frozen=True)
class Exchange:
    """Greedy search, then passes that swap each pick for the best other candidate.

    A pass takes out each pick in turn and looks for the best candidate: O(k c) per pick and no read
    of the c x m matrix; one read for each swap that is made. Picks are ranked greedily within
    the final set, so that any prefix is a sensible smaller batch. Never worse than `Exact`; the
    selection's `settings["final_gain"]` is the share of the variance left that the swaps removed.
    """

    passes: int = 20
    swaps: ClassVar[bool] = True

    def __post_init__(self) -> None:
        keep(self, passes=integer(self.passes, "passes", 0))

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
        posterior = start(candidates)
        free = torch.ones(len(candidates), dtype=torch.bool)
        rows, gains = Exact().fill_(posterior, criterion, free, budget, progress=progress)
        plain = selection(candidates, rows, gains, budget)
        if len(rows) in (0, len(candidates)):
            return plain
        before = posterior.mean_variance()
        for done in range(self.passes):
            swaps = self._pass_(posterior, criterion, free, budget, rows)
            progress("exchanging", done + 1, self.passes)
            if swaps == 0:
                break
        ranked = _rank(start, criterion, candidates, rows, budget)
        # An improvement within rounding does not count.
        best = best_of([plain, ranked])
        gained = 1 - posterior.mean_variance() / before if before > 0 and best is ranked else 0.0
        return replace(best, settings={"final_gain": gained})

    def _pass_(
        self,
        posterior: Posterior,
        criterion: Criterion,
        free: Bool[Tensor, " c"],
        budget: Budget,
        rows: list[int],
    ) -> int:
        """Try to swap every pick once; returns the number of swaps made."""
        swaps = 0
        for place, row in enumerate(list(rows)):
            spent = budget.price(rows[:place] + rows[place + 1 :])
            posterior.forget_(row)
            own = float(gains_of(criterion, posterior, torch.tensor([row])))
            best = winner(posterior, criterion, budget.allowed(free, spent))
            least = own + _PAYS * abs(own) + rounding(criterion, posterior)
            if best is not None and best[1] > least:
                posterior.observe_(best[0])
                free[row], free[best[0]] = True, False
                rows[place] = best[0]
                swaps += 1
            else:
                posterior.observe_(row)
        more, _ = Exact().fill_(posterior, criterion, free, budget, taken=tuple(rows))
        rows.extend(more)
        return swaps + len(more)


def _rank(
    start: Opens,
    criterion: Criterion,
    candidates: Int[Tensor, " c"],
    rows: list[int],
    budget: Budget,
) -> Selection:
    """The set in greedy order."""
    inside = torch.tensor(sorted(rows))
    costs = None if budget.costs is None else budget.costs[inside]
    within = Budget(len(rows), costs, budget.money, budget.by_rate)
    return Exact()(start, criterion, candidates[inside], within, generator=torch.Generator())
