"""Greedy search that compares all candidates before every pick."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Int
from torch import Generator, Tensor

from evgp._executor import Executor, Progress, silent
from evgp.criteria import Criterion
from evgp.pool import Selection
from evgp.posterior import Posterior
from evgp.search.greedy import Budget, Opens, selection, winner
from evgp.search.sharded import Sharded


@dataclass(frozen=True)
class Exact:
    """Greedy search: pick the best candidate, update the posterior, repeat.

    With the expected variance one pick costs one read of the c x m matrix and O(k (c + m)).
    """

    nested: ClassVar[bool] = True

    def over_shards(self, executor: Executor) -> Sharded:
        """Return the same search over shards."""
        return Sharded(executor=executor)

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
        rows, gains = self.fill_(posterior, criterion, free, budget, progress=progress)
        return selection(candidates, rows, gains, budget)

    def fill_(
        self,
        posterior: Posterior,
        criterion: Criterion,
        free: Bool[Tensor, " c"],
        budget: Budget,
        *,
        taken: tuple[int, ...] = (),
        progress: Progress = silent,
    ) -> tuple[list[int], list[float]]:
        """Add picks to those taken until k or the money is reached; marks them as not free."""
        rows: list[int] = []
        gains: list[float] = []
        spent = budget.price(list(taken))
        while len(taken) + len(rows) < budget.k:
            best = winner(posterior, criterion, budget.allowed(free, spent), budget.rates())
            if best is None:
                break
            row, gain = best
            posterior.observe_(row)
            free[row] = False
            spent += budget.price([row])
            rows.append(row)
            gains.append(gain)
            progress("picking", len(taken) + len(rows), budget.k)
        return rows, gains
