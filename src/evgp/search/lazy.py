"""Lazy greedy search: a stale gain below an up-to-date one need not be computed again.

Minoux, Accelerated greedy algorithms for maximizing submodular set functions, 1978.
"""

import heapq
from dataclasses import dataclass
from math import inf
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

from evgp._executor import Progress, silent
from evgp.criteria import Criterion
from evgp.pool import Selection
from evgp.posterior import Posterior
from evgp.search.greedy import Budget, Opens, gains_of, not_finite, rounding, selection, tie_of

_LOOK = 16
_BLOCK = 512  # rows whose gains are computed at once
# Running sums with errors above this share of the largest were rounded to float32.
_ROUNDED = 1e-10


@dataclass(frozen=True)
class Lazy:
    """Greedy search with a priority queue of stale gains; only the top is brought up to date.

    Equal to `Exact` where gains only shrink. Expected variance does not always have diminishing
    returns, so there it is a heuristic, though a good one. A pick costs O(m k) for each gain
    brought up to date, and no read of the c x m matrix. If that is stored in float32, all gains are
    computed once at the start, so that rounding does not decide which ones are updated later.
    """

    nested: ClassVar[bool] = True

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
        per = budget.rates()
        scale = torch.ones(len(candidates), dtype=torch.float64) if per is None else per
        lost = rounding(criterion, posterior) / scale
        stale = (_first_gains(posterior, criterion) / scale + lost).tolist()
        heap = [(-gain, row) for row, gain in enumerate(stale)]
        heapq.heapify(heap)
        rows: list[int] = []
        gains: list[float] = []
        spent = 0.0
        while len(rows) < budget.k:
            fresh: dict[int, float] = {}
            best = -inf
            while heap and -heap[0][0] >= tie_of(best):
                # Money only shrinks: a row that is too expensive now stays so.
                top = [row for row in _top(heap) if budget.affords(row, spent)]
                for part in (
                    torch.split(torch.tensor(top, dtype=torch.int64), _BLOCK) if top else ()
                ):
                    values = (gains_of(criterion, posterior, part) / scale[part]).tolist()
                    fresh.update(zip(part.tolist(), values, strict=True))
                    best = max(best, *values)
            if not fresh:
                break
            row = min(row for row, gain in fresh.items() if gain + float(lost[row]) >= tie_of(best))
            posterior.observe_(row)
            spent += budget.price([row])
            rows.append(row)
            gains.append(fresh.pop(row) * float(scale[row]))
            for other, gain in fresh.items():
                heapq.heappush(heap, (-gain - float(lost[other]), other))
            progress("picking", len(rows), budget.k)
        return selection(candidates, rows, gains, budget)


def _first_gains(posterior: Posterior, criterion: Criterion) -> Float[Tensor, " c"]:
    """Gains before the first pick, whatever type the matrix is stored in."""
    ceilings = criterion.ceilings(posterior)
    if bool(ceilings.isnan().any()):
        raise not_finite(criterion, posterior, ceilings, torch.arange(len(ceilings)))
    if not bool((posterior.slack() > _ROUNDED * posterior.fall().max()).any()):
        return ceilings
    rows = torch.arange(len(ceilings))
    return torch.cat([gains_of(criterion, posterior, part) for part in torch.split(rows, _BLOCK)])


def _top(heap: list[tuple[float, int]]) -> list[int]:
    """A few rows from the top, which are likely to be needed next, and all that tie with them.

    So copies, whose stale gains differ by rounding at most, are brought up to date together.
    """
    rows: list[int] = []
    last = inf
    while heap and (len(rows) < _LOOK or -heap[0][0] >= tie_of(last)):
        stale, row = heapq.heappop(heap)
        last = -stale
        rows.append(row)
    return rows
