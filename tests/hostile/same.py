"""Pools and requests whose picks must not depend on what should not matter."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import evgp
from evgp.criteria import Linearised
from evgp.search import Stochastic
from tests.hostile.conftest import Tally

PART = "same picks"


def problems(rng: np.random.Generator, count: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pools in turn of distinct rows, of copies, and of copies that differ in some digit.

    Each with the number of the row that a row is a copy of.
    """
    for number in range(count):
        rows, columns = int(rng.integers(20, 50)), int(rng.integers(1, 8))
        x, origin = rng.normal(size=(rows, columns)), np.arange(rows)
        if number % 3:
            origin = np.repeat(origin[: rows // 3], 5)
            x = x[origin]
        if number % 3 == 2:
            x = x + 10.0 ** rng.integers(-13, -4) * rng.normal(size=x.shape)
        order = rng.permutation(len(x))
        yield x[order], origin[order]


def asked(rng: np.random.Generator) -> dict[str, Any]:
    """A criterion, a search and a noise; half of the time the expected variance."""
    criterion = rng.choice(["ev", "ev", "ev", "ev", "linearised", "median", "p90", "max", "mi"])
    search = rng.choice(["exact", "lazy", "exchange", "stochastic"])
    return {
        "criterion": Linearised() if criterion == "linearised" else str(criterion),
        "greedy": Stochastic(9) if search == "stochastic" else str(search),
        "noise": float(rng.choice([1e-8, 1e-6, 1e-2])),
    }


def picked(x: np.ndarray, k: int, **given: Any) -> list[int]:
    return evgp.pick(x, k, **given).indices.tolist()


def check(tally: Tally, what: str, pairs: list[tuple[object, object]]) -> None:
    differ = [f"{item} and {other}" for item, other in pairs if item != other]
    assert not differ, f"{what}: {len(differ)} of {len(pairs)} differ, first {differ[0]}"
    tally(PART, what, len(pairs), len(pairs))
