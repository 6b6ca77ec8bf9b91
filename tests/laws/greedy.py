"""What any greedy must pass."""

from dataclasses import dataclass

import numpy as np
import torch

from evgp.criteria import Criterion
from evgp.kernels import Kernel
from evgp.pool import Pool
from evgp.posterior import Start
from evgp.search import Budget, Greedy
from evgp.testing import Truth


def obeys(greedy: Greedy, criterion: Criterion, start: Start, k: int) -> None:
    """k distinct candidates; each gain is what the criterion gives; same seed, same picks."""
    candidates = start.pool.unlabelled()
    selections = [
        greedy(start, criterion, candidates, Budget(k), generator=torch.Generator().manual_seed(3))
        for _ in range(2)
    ]
    assert np.array_equal(selections[0].indices, selections[1].indices)
    assert len(set(selections[0].indices.tolist())) == k
    assert set(selections[0].indices.tolist()) <= set(candidates.tolist())
    posterior = start(candidates)
    place = {int(index): row for row, index in enumerate(candidates)}
    for index, gain in zip(selections[0].indices, selections[0].gains, strict=True):
        row = torch.tensor([place[int(index)]])
        result = float(criterion.gains(posterior, row))
        assert abs(result - gain) < 1e-9 * max(1.0, abs(gain))
        posterior.observe_(int(row))


@dataclass(frozen=True)
class _LookedUp:
    """A kernel of row numbers, whose values were computed once."""

    matrix: torch.Tensor

    def __call__(self, x1: torch.Tensor, x2: torch.Tensor | None = None) -> torch.Tensor:
        rows, columns = (item[:, 0].long() for item in (x1, x1 if x2 is None else x2))
        return self.matrix[rows][:, columns]

    def diag(self, x: torch.Tensor) -> torch.Tensor:
        return self.matrix.diagonal()[x[:, 0].long()]


def truth_of(kernel: Kernel, pool: Pool, noise: float) -> Truth:
    """The truth about a pool that is asked for many sets of picks."""
    n = len(pool.x)
    points = pool.x if pool.x_test is None else torch.cat([pool.x, pool.x_test])
    numbers = torch.arange(len(points), dtype=torch.float64)[:, None]
    tested = None if pool.x_test is None else numbers[n:]
    return Truth(_LookedUp(kernel(points)), Pool(numbers[:n], x_test=tested), noise)


def brute(pool: Pool, truth: Truth, k: int) -> list[int]:
    """Greedy by direct solves: every candidate, every step."""
    picks: list[int] = []
    free = pool.unlabelled().tolist()
    for _ in range(k):
        left = [(truth.mean_variance([*picks, i]), i) for i in free if i not in picks]
        picks.append(min(left)[1])
    return picks
