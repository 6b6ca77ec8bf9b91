"""Picks from pools that stay in their files."""

from math import inf, prod
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from evgp._executor import counted
from evgp._linalg import in_pairs
from evgp.datasets import Fitted, Streamed, Survey, open_pool
from evgp.greedy import Progress, TwoRounds
from evgp.pool import Selection
from evgp.strategies.large import Large
from evgp.strategies.names import choose_greedy
from evgp.strategies.plan import Plan
from evgp.strategies.reduce import P, features_named, fewer, looked_at, width_of
from evgp.strategies.rules import Rules
from evgp.strategies.shards import Held

Place: TypeAlias = str | Path | Streamed


def opened(where: Place, *, standardise: bool = True) -> Streamed:
    """A pool by the name of its files, or as it is."""
    return where if isinstance(where, Streamed) else open_pool(where, standardise=standardise)


def fit(pool: Streamed, rules: Rules, plan: Plan, progress: Progress) -> Fitted:
    """One pass over a pool: its scaling, its categories, and rows to choose inducing points from.

    O(n d) time, and the memory of a few blocks and 20,000 rows.
    """
    width = width_of(plan.kind) if plan.kind else None
    rows = looked_at(len(pool), width or P, rules.seed) if width else np.arange(min(8, len(pool)))
    starts = range(0, len(pool), rules.shard)
    ends = [(start, min(len(pool), start + rules.shard)) for start in starts]
    calls = [(pool, low, high, rows[(rows >= low) & (rows < high)]) for low, high in ends]
    names = [f"{pool.name}, rows {low} to {high - 1}" for low, high in ends]
    surveys = rules.place().run(_survey, calls, names, counted(progress, "reading", len(ends)))
    return pool.fitted(in_pairs(surveys, Survey.merge))


def _survey(pool: Streamed, start: int, stop: int, rows: Int[np.ndarray, " r"]) -> Survey:
    return pool.survey(start, stop, rows)


def _seen(pool: Fitted, rules: Rules, plan: Plan) -> Tensor:
    """The points that inducing points are chosen from."""
    width = width_of(plan.kind) if plan.kind else None
    rows = fewer(len(pool.kept), prod(pool.shape), width or 1, rules.seed)
    return torch.from_numpy(pool.sampled(rows))


def whole(pool: Fitted) -> Tensor:
    """All of a pool in memory, encoded."""
    return torch.from_numpy(np.concatenate([block for _, block in pool.blocks(0, len(pool))]))


def pick_sharded(
    points: Fitted | Held,
    k: int | None,
    rules: Rules,
    plan: Plan,
    *,
    test: Fitted | Held | None = None,
    outside: Fitted | Held | None = None,
    labelled: Int[Tensor, " l"],
    candidates: Int[Tensor, " c"] | None = None,
    prices: Tensor | None = None,
    budget: float = inf,
    progress: Progress,
) -> Selection:
    """Picks over shards of features on the disk."""
    seen = points.x if isinstance(points, Held) else _seen(points, rules, plan)
    chosen = plan.kind if rules.features is None else rules.features
    large = Large(
        points if isinstance(points, Held) else points.bare(),
        features_named(chosen, rules.kernel, seen, rules.seed),
        test,
        labelled.numpy(),
        outside,
        None if candidates is None else candidates.numpy(),
        prices,
        rules.place(),
        rules.shard,
        plan.scratch,
        rules.cache,
    )
    greedy = choose_greedy(rules.greedy, 1, 1, rules.criterion, sharded=True)
    return large.pick(
        k,
        budget=budget,
        noise=rules.noise,
        criterion=rules.criterion,
        two_rounds=isinstance(greedy, TwoRounds),
        progress=progress,
    )
