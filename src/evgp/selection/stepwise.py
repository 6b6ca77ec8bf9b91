"""EV-GP one pick at a time, with what every other row would have brought."""

import numpy as np
import torch
from jaxtyping import Float, Int

from evgp.search.greedy import winner
from evgp.selection.backends import DenseBackend
from evgp.selection.plan import Plan
from evgp.selection.run import gains_in_units

_BLOCK = 512  # rows whose gains are computed at once


def stepwise(
    plan: Plan, *, with_gains: bool = True
) -> tuple[Int[np.ndarray, " k"], Float[np.ndarray, "k c"]]:
    """The picks of the exact greedy over the exact kernel, and the gains of all rows before each.

    A picked row has the gain NaN from then on; without `with_gains` all are NaN, and not computed.

    >>> from evgp.selection import plan
    >>> x = np.array([[0.0], [1.0], [3.0]])
    >>> picks, gains = stepwise(plan(x, 2, standardise=False, method="dense"))
    >>> picks.tolist(), gains.shape, np.nanargmax(gains, axis=1).tolist()
    ([2, 1], (2, 3), [2, 1])
    """
    plan.check()
    criterion, free = plan.request.criterion, plan.request.rows()
    opened = DenseBackend(plan.request).opened(plan.storage)
    posterior = opened.start(free)
    left = torch.ones(len(free), dtype=torch.bool)
    rows, gains = [], np.full((plan.request.k, len(free)), np.nan)
    for step in range(plan.request.k):
        best = winner(posterior, criterion, left)
        assert best is not None  # k rows are free
        if with_gains:
            for part in torch.split(left.nonzero().squeeze(1), _BLOCK):
                gains[step, part.numpy()] = criterion.gains(posterior, part).numpy()
        rows.append(best[0])
        left[best[0]] = False
        posterior.observe_(best[0])
    return free[rows].numpy(), gains_in_units(gains, criterion, opened.unit)
