"""Stochastic greedy search: each pick is the best of a random sample of the candidates.

Mirzasoleiman et al., Lazier Than Lazy Greedy, AAAI 2015.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Generator, Tensor

from evgp._checks import integer, keep
from evgp._executor import Progress, silent
from evgp.criteria import Criterion
from evgp.pool import Selection
from evgp.search.greedy import Budget, Opens, selection, winner


@dataclass(frozen=True)
class Stochastic:
    """Greedy search that picks the best of `sample` random candidates, drawn again for each pick.

    With `sample` at least the number of candidates it is `Exact`.
    """

    sample: int = 1000

    def __post_init__(self) -> None:
        keep(self, sample=integer(self.sample, "sample", 1, why="the candidates of each pick"))

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
        rows: list[int] = []
        gains: list[float] = []
        spent = 0.0
        while len(rows) < budget.k:
            left = budget.allowed(free, spent).nonzero().squeeze(1)
            drawn = left[torch.randperm(len(left), generator=generator)[: self.sample]]
            seen = torch.zeros_like(free)
            seen[drawn] = True
            best = winner(posterior, criterion, seen, budget.rates())
            if best is None:
                break
            row, gain = best
            posterior.observe_(row)
            free[row] = False
            spent += budget.price([row])
            rows.append(row)
            gains.append(gain)
            progress("picking", len(rows), budget.k)
        return selection(candidates, rows, gains, budget)
