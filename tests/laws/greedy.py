"""What any greedy must pass."""

import numpy as np
import torch

from evgp.criteria import Criterion
from evgp.pool import Pool
from evgp.posterior import Start
from evgp.search import Budget, Greedy
from evgp.testing import Truth


def obeys(greedy: Greedy, criterion: Criterion, start: Start, k: int) -> None:
    """k distinct candidates; each gain is what the criterion gives; same seed, same picks."""
    candidates = start.pool.unlabelled()
    made = [
        greedy(start, criterion, candidates, Budget(k), generator=torch.Generator().manual_seed(3))
        for _ in range(2)
    ]
    assert np.array_equal(made[0].indices, made[1].indices)
    assert len(set(made[0].indices.tolist())) == k
    assert set(made[0].indices.tolist()) <= set(candidates.tolist())
    posterior = start(candidates)
    place = {int(index): row for row, index in enumerate(candidates)}
    for index, gain in zip(made[0].indices, made[0].gains, strict=True):
        row = torch.tensor([place[int(index)]])
        found = float(criterion.gains(posterior, row))
        assert abs(found - gain) < 1e-9 * max(1.0, abs(gain))
        posterior.observe_(int(row))


def brute(pool: Pool, truth: Truth, k: int) -> list[int]:
    """Greedy by direct solves: every candidate, every step."""
    picks: list[int] = []
    free = pool.unlabelled().tolist()
    for _ in range(k):
        left = [(truth.mean_variance([*picks, i]), i) for i in free if i not in picks]
        picks.append(min(left)[1])
    return picks
