"""The accelerated greedy: a stale gain below a fresh one need not be looked at.

Minoux, Accelerated greedy algorithms for maximizing submodular set functions, 1978.
"""

import heapq
from dataclasses import dataclass
from math import inf
from typing import ClassVar

import torch
from jaxtyping import Int
from torch import Generator, Tensor

from evgp._executor import Progress, silent
from evgp.criteria import Criterion
from evgp.greedy.greedy import Opens, Purse, rounding, selection, tie_of
from evgp.pool import Selection

_LOOK = 16


@dataclass(frozen=True)
class Lazy:
    """A priority queue of stale gains; only the top is brought up to date.

    Equal to `Exact` where gains only shrink. Expected variance does not always have diminishing
    returns, so there it is a heuristic, if a good one. A pick costs O(m k) for each gain brought up
    to date, and no read of the c x m matrix.
    """

    nested: ClassVar[bool] = True

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
        per = purse.rates()
        scale = torch.ones(len(candidates), dtype=torch.float64) if per is None else per
        lost = rounding(criterion, posterior) / scale
        stale = (criterion.ceilings(posterior) / scale + lost).tolist()
        heap = [(-gain, row) for row, gain in enumerate(stale)]
        heapq.heapify(heap)
        rows: list[int] = []
        gains: list[float] = []
        spent = 0.0
        while len(rows) < purse.k:
            fresh: dict[int, float] = {}
            best = -inf
            while heap and -heap[0][0] >= tie_of(best):
                # A few at a time: the rows behind the top are likely to be asked for next.
                top = [heapq.heappop(heap)[1] for _ in range(min(_LOOK, len(heap)))]
                # Money only shrinks, so what it does not buy now stays out.
                top = [row for row in top if purse.affords(row, spent)]
                if top:
                    asked = torch.tensor(top)
                    answers = (criterion.gains(posterior, asked) / scale[asked]).tolist()
                    fresh.update(zip(top, answers, strict=True))
                    best = max(best, *answers)
            if not fresh:
                break
            row = min(row for row, gain in fresh.items() if gain + float(lost[row]) >= tie_of(best))
            posterior.observe_(row)
            spent += purse.price([row])
            rows.append(row)
            gains.append(fresh.pop(row) * float(scale[row]))
            for other, gain in fresh.items():
                heapq.heappush(heap, (-gain - float(lost[other]), other))
            progress("picking", len(rows), purse.k)
        return selection(candidates, rows, gains, purse)
