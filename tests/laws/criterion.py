"""What any criterion must pass."""

from collections.abc import Callable

import torch

from evgp.criteria import Criterion
from evgp.posterior import Start
from tests.laws.posterior import Truth


def obeys(
    criterion: Criterion, value: Callable[[Truth, list[int]], float], truth: Truth, picks: list[int]
) -> None:
    """Gains are differences of the value, found by a direct solve; order of rows is no matter."""
    candidates = truth.pool.unlabelled()
    posterior = Start(truth.kernel, truth.pool, truth.noise)(candidates)
    for row in picks:
        posterior.observe_(row)
    before = candidates[picks].tolist()
    rows = torch.tensor([r for r in range(len(candidates)) if r not in picks])
    gains = criterion.gains(posterior, rows)
    for row, gain in zip(rows.tolist(), gains.tolist(), strict=True):
        after = [*before, int(candidates[row])]
        expected = value(truth, after) - value(truth, before)
        assert abs(gain - expected) < 1e-7 * max(1, abs(expected)), (row, gain, expected)
    turned = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))
    assert torch.allclose(criterion.gains(posterior, rows[turned]), gains[turned])
    assert bool((criterion.ceilings(posterior)[rows] >= gains - 1e-12).all())
