"""The loop of active learning: pick, ask for labels, repeat."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import torch
from jaxtyping import Int
from torch import Generator, Tensor, nn

from evgp._checks import integer, seed_of, shown
from evgp._typing import ArrayLike
from evgp.errors import PoolError
from evgp.pool import Pool, Selection
from evgp.strategies import Strategy, is_ahead, renewed
from evgp.strategies.strategy import picked

Oracle = Callable[[Int[Tensor, " k"]], ArrayLike]


@dataclass(frozen=True)
class Round:
    """One round of `evgp.run`.

    Attributes
    ----------
    number : int
        Number of the round, from 0.
    selection : Selection
        What was picked.
    pool : Pool
        The pool with the labels of this round.
    seconds : float
        How long picking took.
    """

    number: int
    selection: Selection
    pool: Pool
    seconds: float


def run(
    pool: Pool, strategy: Strategy, oracle: Oracle, rounds: int, k: int, *, seed: int = 0
) -> Iterator[Round]:
    """Active learning in rounds: pick k points, ask an oracle for their labels, repeat.

    A strategy that looks at a random network (an empirical kernel) gets a new network in each
    round. A strategy that does not depend on rounds or labels picks for all rounds in the first.

    Parameters
    ----------
    pool : Pool
        The pool; it may have labels already (`Pool(x, labelled=rows, y=...)`).
    strategy : Strategy
        What picks, such as `evgp.EVGP(evgp.NTK(evgp.mlp()))` or `evgp.strategies.Random()`.
    oracle : callable
        Function from row numbers (a tensor of k) to their k labels.
    rounds : int
        Number of rounds.
    k : int
        Picks in each round.
    seed : int
        Seed of all random choices.

    Returns
    -------
    iterator of evgp.loop.Round
        One after each round, with the selection and the pool with its new labels.

    Raises
    ------
    EvgpError
        At once if an argument is wrong or the pool has too few points without a label; later if
        the strategy or the oracle returns something else than k rows or k labels.

    Examples
    --------
    >>> from evgp.strategies import Random
    >>> x = torch.arange(10.0)[:, None]
    >>> for step in run(Pool(x), Random(), lambda rows: x[rows, 0] ** 2, rounds=2, k=3):
    ...     print(step.number, step.pool.y.shape)
    0 torch.Size([3])
    1 torch.Size([6])
    """
    rounds, k, seed = integer(rounds, "rounds", 1), integer(k, "k", 1), seed_of(seed)
    if not callable(strategy) or isinstance(strategy, type | nn.Module):
        raise PoolError(
            f"expected a strategy, such as evgp.strategies.Random(), got {shown(strategy)}; make "
            "one from a name with evgp.strategies.strategy_named"
        )
    if not callable(oracle) or isinstance(oracle, type | nn.Module):
        raise PoolError(
            "expected an oracle, a function that takes rows and returns their labels; got "
            f"{type(oracle).__name__}"
        )
    if not isinstance(pool, Pool):
        raise PoolError(f"expected a Pool, got {type(pool).__name__}; give evgp.Pool(x)")
    free = len(pool.unlabelled())
    if rounds * k > free:
        raise PoolError(
            f"expected a budget of at most {free:,}, the rows that may be picked; got "
            f"{rounds:,} rounds of {k:,}, {rounds * k:,} in all"
        )
    if pool.y is None and len(pool.known()):
        raise PoolError(
            "expected the labels y of the points that are labelled already, got none; pass them "
            "as Pool(..., y=...)"
        )
    return _rounds(pool, strategy, oracle, rounds=rounds, k=k, seed=seed)


def _rounds(
    pool: Pool, strategy: Strategy, oracle: Oracle, *, rounds: int, k: int, seed: int
) -> Iterator[Round]:
    ahead: Selection | None = None
    for number in range(rounds):
        start, own = perf_counter(), _seed(seed, number)
        generator = Generator().manual_seed(own)
        if not is_ahead(strategy):
            selection = renewed(strategy, own)(pool, k, generator=generator)
        else:
            ahead = ahead or strategy(pool, k * rounds, generator=generator)
            selection = ahead[number * k : (number + 1) * k]
        seconds = perf_counter() - start
        rows = _picked(selection, pool, k)
        pool = pool.reveal(rows, _answer(oracle, rows))
        yield Round(number, selection, pool, seconds)


def _seed(seed: int, number: int) -> int:
    """A different seed for each round."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])


def _picked(selection: Selection, pool: Pool, k: int) -> Int[Tensor, " k"]:
    """The rows that a strategy picked, checked: the strategy may be a user's own."""
    rows = torch.as_tensor(picked(selection, "the strategy").indices)
    free = set(pool.unlabelled().tolist())
    if rows.shape != (k,) or len(free.intersection(rows.tolist())) < k:
        raise PoolError(
            f"expected {k} different rows without a label from the strategy, got "
            f"{rows.tolist()[: k + 1]}"
        )
    return rows


def _answer(oracle: Oracle, rows: Int[Tensor, " k"]) -> Tensor:
    labels = oracle(rows)
    try:
        values = labels if isinstance(labels, Tensor) else torch.from_numpy(np.array(labels))
    except (TypeError, ValueError) as error:
        raise PoolError(
            f"expected numbers as labels from the oracle, one per row, got {labels!r}; number the "
            "classes from 0"
        ) from error
    if values.ndim == 0 or len(values) != len(rows):
        raise PoolError(
            f"expected {len(rows)} labels from the oracle, one per row; got shape "
            f"{tuple(values.shape)}"
        )
    if values.is_floating_point() and not bool(torch.isfinite(values).all()):
        raise PoolError("expected finite labels from the oracle, got NaN or inf")
    return values
