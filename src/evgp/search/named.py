"""Searches by name."""

from collections.abc import Callable
from typing import Any

from torch import nn

from evgp._checks import can, one_of, recorded
from evgp._executor import Executor
from evgp.criteria import Criterion
from evgp.errors import PoolError
from evgp.search.exchange import Exchange
from evgp.search.greedy import Exact, Greedy, Lazy, Stochastic
from evgp.search.one_per_cell import OnePerCell
from evgp.search.sharded import TwoRounds

GREEDIES: dict[str, Callable[[], Greedy]] = {
    "exact": Exact,
    "lazy": Lazy,
    "stochastic": Stochastic,
    "exchange": Exchange,
    "two-rounds": TwoRounds,
    "one-per-cell": OnePerCell,
}


def choose_greedy(
    greedy: str | Greedy,
    criterion: Criterion,
    *,
    final: bool = False,
    sharded: Executor | None = None,
) -> Greedy:
    """Return the search of this name; "auto" is the one whose list for k begins that for k + 1.

    With `final`, picks are exchanged for exactly k. `sharded` is the executor of a sharded run.

    >>> from evgp.criteria import CellMeans, ExpectedVariance
    >>> choose_greedy("auto", ExpectedVariance())
    Exact()
    >>> choose_greedy("auto", ExpectedVariance(), final=True)
    Exchange(passes=20)
    >>> choose_greedy("auto", CellMeans())
    OnePerCell(noise=0.01, passes=20)
    """
    own = getattr(criterion, "own_search", None)
    if own is not None and not (sharded or final) and greedy in ("auto", own):
        return greedy_named(own)
    if own is not None:
        raise PoolError(
            f"expected no other search with {criterion!r}, which has its own; got "
            + (
                "a sharded run"
                if sharded
                else "final=True"
                if final
                else f"greedy={_given(greedy)}"
            )
        )
    if final:
        if greedy not in ("auto", "exchange") or sharded:
            raise PoolError(
                "final=True cannot be combined with a sharded run"
                if sharded
                else "final=True chooses the search; remove greedy="
            )
        if not can(criterion, "exchangeable"):
            raise PoolError(f"expected a criterion that swaps can improve, got {criterion!r}")
        return Exchange()
    search: Any = Exact() if greedy == "auto" else greedy_of(greedy)
    over_shards = None if sharded is None else getattr(search, "over_shards", None)
    if sharded is not None and not callable(over_shards):
        raise PoolError(
            "a sharded run supports greedy='auto', 'exact', 'two-rounds' or a search with "
            f"over_shards(), not {_given(greedy)}"
        )
    return search if over_shards is None else over_shards(sharded)


def greedy_of(greedy: object) -> Greedy | str:
    """Return a search given as an object or a name; "auto" is left for the plan to decide.

    >>> greedy_of("lazy")
    Lazy()
    """
    if isinstance(greedy, Greedy) and not isinstance(greedy, str | type | nn.Module):
        return greedy
    return "auto" if isinstance(greedy, str) and greedy == "auto" else greedy_named(greedy)


def greedy_named(greedy: object) -> Greedy:
    """Return the search of this name, which must not be "auto".

    >>> greedy_named("lazy")
    Lazy()
    """
    return GREEDIES[one_of(greedy, "greedy", ("auto", *GREEDIES))]()


def _given(greedy: str | Greedy) -> str:
    """The name of a search, or how it is shown if it has none.

    >>> _given(Lazy()), _given("lazy")
    ("'lazy'", "'lazy'")
    """
    named = (name for name, make in GREEDIES.items() if make() == greedy)
    return next(map(repr, named), recorded(greedy))
