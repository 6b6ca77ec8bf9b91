"""What any strategy must pass."""

import copy

import numpy as np
import pytest
import torch

from evgp._errors import PoolError
from evgp.pool import Pool
from evgp.strategies.strategy import Strategy


def obeys(strategy: Strategy, pool: Pool, k: int) -> None:
    """k distinct unlabelled picks; same seed, same picks; the pool is unchanged; k is checked."""
    assert isinstance(strategy, Strategy)
    before = copy.deepcopy(pool)
    made = [strategy(pool, k, generator=torch.Generator().manual_seed(7)) for _ in range(2)]
    assert made[0].indices.tolist() == made[1].indices.tolist()
    assert made[0].indices.dtype == np.int64 and made[0].gains.shape == (k,)
    assert len(set(made[0].indices.tolist())) == k
    assert set(made[0].indices.tolist()) <= set(pool.unlabelled().tolist())
    for name in ("x", "x_test", "labelled", "x_labelled"):
        one, other = getattr(before, name), getattr(pool, name)
        assert one is other is None or torch.equal(one, other)
    every = len(pool.unlabelled())
    whole = strategy(pool, every, generator=torch.Generator().manual_seed(7))
    assert sorted(whole.indices.tolist()) == pool.unlabelled().tolist()
    for wrong in (0, every + 1):
        with pytest.raises(PoolError, match=f"k as an integer from 1 to {every}, "):
            strategy(pool, wrong, generator=torch.Generator())
