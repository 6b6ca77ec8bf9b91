"""How long the cells that are left will take, judged by those that are finished."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from experiments.study import Cell

Watch: TypeAlias = Callable[[int, int, float | None], object]
"""Hears how many cells are finished, of how many, and the seconds left where they are known."""


def unwatched(done: int, total: int, left: float | None) -> None:
    """Tell nobody."""


# What makes cells alike, the most telling first.
_ALIKE: tuple[Callable[[Cell], object], ...] = (
    lambda cell: [cell.work, {k: v for k, v in cell.settings.items() if k != "seed"}],
    lambda cell: [cell.work, cell.settings.get("dataset"), cell.settings.get("strategy")],
    lambda cell: [cell.work, cell.settings.get("dataset")],
    lambda cell: cell.work,
    lambda cell: "any",
)


def seconds_left(
    now: Sequence[tuple[Cell, float]],
    before: Sequence[tuple[Cell, float]],
    left: Sequence[Cell],
    processes: int,
) -> float | None:
    """What is left, over the processes: each cell like the mean of finished ones most alike it.

    Those of this run, `now`, go before others that are as much alike. None if nothing is finished.

    >>> quick, slow, more = (Cell("a:b", {"dataset": d, "seed": s}) for d, s in ["x0", "y0", "y1"])
    >>> seconds_left([(quick, 2.0), (slow, 60.0)], [], [more], 2)
    60.0
    """
    known = [_means(finished, kind) for kind in _ALIKE for finished in (now, before)]
    kinds = [kind for kind in _ALIKE for _ in range(2)]
    costs = []
    for cell in left:
        found = (means.get(_key(cell, kind)) for means, kind in zip(known, kinds, strict=True))
        cost = next((one for one in found if one is not None), None)
        if cost is None:
            return None
        costs.append(cost)
    return max([0.0, sum(costs) / max(1, min(processes, len(costs))), *costs])


def spoken(seconds: float) -> str:
    """A time in few words.

    >>> [spoken(one) for one in (42.3, 1450, 13_000)]
    ['42 s', '24 min', '3.6 h']
    """
    if seconds < 119.5:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7170 else f"{seconds / 3600:.1f} h"


def _means(
    finished: Sequence[tuple[Cell, float]], kind: Callable[[Cell], object]
) -> Mapping[str, float]:
    found: dict[str, list[float]] = {}
    for cell, seconds in finished:
        found.setdefault(_key(cell, kind), []).append(seconds)
    return {key: sum(values) / len(values) for key, values in found.items()}


def _key(cell: Cell, kind: Callable[[Cell], object]) -> str:
    return json.dumps(kind(cell), sort_keys=True)
