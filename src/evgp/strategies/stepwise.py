"""EV-GP one pick at a time, with what every other row would have brought."""

import numpy as np
import torch
from jaxtyping import Float, Int

from evgp.greedy import silent
from evgp.greedy.greedy import winner
from evgp.pool import Pool
from evgp.strategies.evgp import EVGP, check_prior
from evgp.strategies.strategy import unlabelled

_BLOCK = 512  # rows whose gains are computed at once


def stepwise(
    strategy: EVGP, pool: Pool, k: int, *, told: bool = True
) -> tuple[Int[np.ndarray, " k"], Float[np.ndarray, "k c"]]:
    """The picks of an exact greedy, and the gains of all unlabelled rows before each of them.

    A picked row has the gain NaN from then on; without `told` all gains are NaN, and not computed.

    >>> from evgp import NTK, mlp
    >>> x = torch.tensor([[0.0], [1.0], [3.0]], dtype=torch.float64)
    >>> picks, gains = stepwise(EVGP(NTK(mlp())), Pool(x), 2)
    >>> picks.tolist(), gains.shape, np.nanargmax(gains, axis=1).tolist()
    ([2, 1], (2, 3), [2, 1])
    """
    free = unlabelled(pool, k)
    start, prior = strategy._open(pool, silent)
    check_prior(prior)
    posterior = start(free)
    left = torch.ones(len(free), dtype=torch.bool)
    rows, gains = [], np.full((k, len(free)), np.nan)
    for step in range(k):
        best = winner(posterior, strategy.criterion, left)
        assert best is not None  # k rows are free
        if told:
            for part in torch.split(left.nonzero().squeeze(1), _BLOCK):
                gains[step, part.numpy()] = strategy.criterion.gains(posterior, part).numpy()
        rows.append(best[0])
        left[best[0]] = False
        posterior.observe_(best[0])
    return free[rows].numpy(), gains
