"""The plain greedy: every candidate is looked at before every pick."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Int
from torch import Generator, Tensor

from evgp._executor import Progress, silent
from evgp.criteria import Criterion
from evgp.pool import Selection
from evgp.posterior import Posterior
from evgp.search.greedy import Opens, Purse, selection, winner


@dataclass(frozen=True)
class Exact:
    """Take the best, tell the posterior, repeat.

    With the expected variance one pick costs one read of the c x m matrix and O(k (c + m)).
    """

    nested: ClassVar[bool] = True
    over_shards: ClassVar[str] = "exact"

    def __call__(
        self,
        start: Opens,
        criterion: Criterion,
        candidates: Int[Tensor, " c"],
        purse: Purse,
        *,
        generator: Generator,
        progress: Progress = silent,
    ) -> Selection:
        """Picks among the candidates, with their gains."""
        posterior = start(candidates)
        free = torch.ones(len(candidates), dtype=torch.bool)
        rows, gains = self.fill_(posterior, criterion, free, purse, progress=progress)
        return selection(candidates, rows, gains, purse)

    def fill_(
        self,
        posterior: Posterior,
        criterion: Criterion,
        free: Bool[Tensor, " c"],
        purse: Purse,
        *,
        taken: tuple[int, ...] = (),
        progress: Progress = silent,
    ) -> tuple[list[int], list[float]]:
        """Picks on top of those taken, until k or the money is reached; marks them not free."""
        rows: list[int] = []
        gains: list[float] = []
        spent = purse.price(list(taken))
        while len(taken) + len(rows) < purse.k:
            best = winner(posterior, criterion, purse.allowed(free, spent), purse.rates())
            if best is None:
                break
            row, gain = best
            posterior.observe_(row)
            free[row] = False
            spent += purse.price([row])
            rows.append(row)
            gains.append(gain)
            progress("picking", len(taken) + len(rows), purse.k)
        return rows, gains
