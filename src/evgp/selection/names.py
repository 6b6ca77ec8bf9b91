"""What strings stand for at the front doors; everywhere else objects are passed."""

import re
from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np

from evgp._capabilities import can
from evgp._errors import PoolError
from evgp.criteria import Criterion, ExpectedVariance, MutualInformation, Percentile
from evgp.greedy import Exact, Exchange, Greedy, Lazy, Sharded, Stochastic, TwoRounds
from evgp.kernels import Features

CRITERIA: dict[str, Criterion] = {
    "ev": ExpectedVariance(),
    "median": Percentile(50),
    "p90": Percentile(90),
    "max": Percentile(100),
    "mi": MutualInformation(),
}
GREEDIES: dict[str, Greedy] = {
    "exact": Exact(),
    "lazy": Lazy(),
    "stochastic": Stochastic(),
    "exchange": Exchange(),
    "two-rounds": TwoRounds(),
}
# Exchange is the default up to this many (candidates x picks²): minutes, never hours. It is a
# number of operations and not of seconds, so that the picks do not depend on the machine.
_EXCHANGE = 4e9
METHODS = ("auto", "dense", "features", "sharded")
STORAGES = ("float64", "float32", "auto")


def criterion_named(criterion: str | Criterion) -> Criterion:
    """The criterion of this name; objects pass.

    >>> criterion_named("p90")
    Percentile(r=90)
    """
    if isinstance(criterion, Criterion):
        return criterion
    if not isinstance(criterion, str) or criterion not in CRITERIA:
        raise PoolError(f"expected a criterion among {', '.join(CRITERIA)}; got {criterion!r}")
    return CRITERIA[criterion]


def choose_greedy(
    greedy: str | Greedy, c: int, k: int, criterion: Criterion, *, sharded: bool = False
) -> Greedy:
    """The greedy of this name; "auto" is exchange for the expected variance while affordable.

    A sharded run is exact, or in two rounds.

    >>> choose_greedy("auto", 10_000, 400, ExpectedVariance())
    Exchange(passes=20)
    >>> choose_greedy("auto", 100_000, 1000, ExpectedVariance())
    Exact()
    """
    if sharded:
        return _choose_sharded(greedy)
    if isinstance(greedy, Greedy) and not isinstance(greedy, str):
        return greedy
    if greedy == "auto":
        affordable = can(criterion, "exchangeable") and c * k * k <= _EXCHANGE
        return Exchange() if affordable else Exact()
    return greedy_named(greedy)


def greedy_of(greedy: object) -> Greedy | str:
    """The search that is given or named; "auto" is left to the plan.

    >>> greedy_of("lazy")
    Lazy()
    """
    if greedy == "auto" or (isinstance(greedy, Greedy) and not isinstance(greedy, str | type)):
        return greedy
    return greedy_named(greedy)


def greedy_named(greedy: object) -> Greedy:
    """The search of this name, where there is nothing to decide by.

    >>> greedy_named("lazy")
    Lazy()
    """
    if not isinstance(greedy, str) or greedy not in GREEDIES:
        raise PoolError(f"expected a greedy among auto, {', '.join(GREEDIES)}; got {greedy!r}")
    return GREEDIES[greedy]


def _choose_sharded(greedy: str | Greedy) -> Greedy:
    over = greedy if isinstance(greedy, str) else getattr(greedy, "over_shards", "")
    if over in ("auto", "exact"):
        return Sharded()
    if over == "two-rounds":
        return TwoRounds()
    raise PoolError(
        f"expected the greedy auto, exact or two-rounds for a sharded run, got {greedy!r}"
    )


def thinned_to(thin: int | None, criterion: Criterion) -> int | None:
    """How many test points to keep; None for all.

    >>> thinned_to(None, MutualInformation())
    1000
    """
    if thin is None:
        return getattr(criterion, "test_points", None)
    return whole(thin, "thin", 1)


def noise_of(noise: Any) -> float:
    """The noise of a label, as a fraction of the prior variance.

    >>> noise_of(1e-6)
    1e-06
    """
    number = isinstance(noise, int | float | np.integer | np.floating)
    if not number or isinstance(noise, bool) or not 0 <= noise < inf:
        raise PoolError(f"expected noise >= 0, a fraction of the prior variance; got {noise!r}")
    return float(noise)


def one_of(value: object, name: str, among: Sequence[str]) -> str:
    """One of a few words.

    >>> one_of("dense", "method", METHODS)
    'dense'
    """
    if not isinstance(value, str) or value not in among:
        raise PoolError(f"expected a {name} among {', '.join(among)}; got {value!r}")
    return value


def bytes_of(text: int | str) -> int:
    """A number of bytes, as people write it.

    >>> bytes_of("2GB"), bytes_of("512 MiB"), bytes_of(1000)
    (2000000000, 536870912, 1000)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?b?)\s*", str(text).lower())
    if found is None or float(found[1]) <= 0:
        raise PoolError(f"expected an amount of memory such as 2GB or 500MB, got {text!r}")
    base, power = (1024 if "i" in found[2] else 1000), "kmgt".find(found[2][:1] or "b") + 1
    return int(float(found[1]) * base ** max(0, power))


def flag_of(value: Any, name: str) -> bool:
    """Yes or no, and nothing that only looks like it.

    >>> flag_of(True, "standardise")
    True
    """
    if not isinstance(value, bool | np.bool_):
        raise PoolError(f"expected {name} True or False, got {value!r}")
    return bool(value)


def features_of(features: object) -> str | Features | None:
    """The features, or their name, which is looked up where they are made.

    >>> features_of("nystrom-512")
    'nystrom-512'
    """
    if features is None or isinstance(features, str):
        return features
    if isinstance(features, Features) and not isinstance(features, type):
        return features
    raise PoolError(
        "expected features as a name, such as raw or nystrom-512, or an object with phi and "
        f"residual; got {features!r}"
    )


def whole(value: object, name: str, least: int, most: int | None = None) -> int:
    """A whole number within bounds.

    >>> whole(3, "k", 1)
    3
    """
    if (
        not isinstance(value, int | np.integer)
        or isinstance(value, bool)
        or value < least
        or (most is not None and value > most)
    ):
        upto = "" if most is None else f" to {most}"
        raise PoolError(f"expected {name} as a whole number from {least}{upto}, got {value!r}")
    return int(value)
