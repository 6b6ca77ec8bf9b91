"""The points of a request as numbers: whole in memory, or learnt from their files."""

import warnings
from typing import cast

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from evgp._checks import can
from evgp._errors import DataWarning, PoolError
from evgp._executor import counted
from evgp._linalg import in_pairs
from evgp.datasets import Fitted, Streamed, Survey
from evgp.pool import Pool
from evgp.selection import checks
from evgp.selection.request import Points, Request
from evgp.selection.shards import Held


def read(request: Request) -> Pool:
    """The points of a request in memory, on the pool's scale."""
    if can(request.x, "in_files"):
        fitted = fit(request)
        parts = [None if one is None else _whole(one) for one in (fitted, *like(fitted, request))]
    else:
        parts = [
            None if one is None else _held(one)
            for one in (request.x, request.x_test, request.x_labelled)
        ]
    x, x_test, x_labelled = parts
    assert x is not None
    pool = Pool(x, x_test, request.test, request.test_weights, request.labelled, x_labelled)
    return pool if request.thin is None else checks.thinned(pool, request.thin, request.seed)


def fit(request: Request, sample: Int[np.ndarray, " r"] | None = None) -> Fitted:
    """One pass over a pool in files: its scaling, its categories, and the rows of a sample.

    O(n d) time, and the memory of a few blocks and of the sample.
    """
    pool = cast(Streamed, request.x)
    rows = np.arange(min(8, len(pool))) if sample is None else sample
    starts = range(0, len(pool), request.shard)
    ends = [(start, min(len(pool), start + request.shard)) for start in starts]
    calls = [(pool, low, high, rows[(rows >= low) & (rows < high)]) for low, high in ends]
    names = [f"{pool.name}, rows {low} to {high - 1}" for low, high in ends]
    each = counted(request.report, "reading", len(ends))
    fitted = pool.fitted(in_pairs(request.place().run(_survey, calls, names, each), Survey.merge))
    for note in fitted.notes:
        warnings.warn(note, DataWarning, stacklevel=2)
    return fitted


def _survey(pool: Streamed, start: int, stop: int, rows: Int[np.ndarray, " r"]) -> Survey:
    return pool.survey(start, stop, rows)


def like(fitted: Fitted, request: Request) -> tuple[Fitted | None, Fitted | None]:
    """Test and labelled points in files, on the scale of the pool."""
    test, outside = (
        None if one is None else fitted.like(cast(Streamed, one))
        for one in (request.x_test, request.x_labelled)
    )
    return test, outside


def _whole(pool: Fitted) -> Tensor:
    """All of a pool in files, as numbers."""
    return torch.from_numpy(np.concatenate([block for _, block in pool.blocks(0, len(pool))]))


def _held(points: Points) -> Tensor:
    if not can(points, "in_memory"):
        raise PoolError(
            "expected points to pick from, got their shape alone, which a plan can be made for; "
            "give the points"
        )
    return cast(Held, points).x
