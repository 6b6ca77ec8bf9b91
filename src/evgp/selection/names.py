"""What strings stand for at the front doors; everywhere else objects are passed."""

from torch import nn

from evgp._capabilities import can
from evgp._checks import integer, one_of, shown
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
    if isinstance(criterion, Criterion) and not isinstance(criterion, type):
        return criterion
    return CRITERIA[one_of(criterion, "a criterion", tuple(CRITERIA))]


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
    if isinstance(greedy, Greedy) and not isinstance(greedy, str | type | nn.Module):
        return greedy
    return "auto" if isinstance(greedy, str) and greedy == "auto" else greedy_named(greedy)


def greedy_named(greedy: object) -> Greedy:
    """The search of this name, where there is nothing to decide by.

    >>> greedy_named("lazy")
    Lazy()
    """
    return GREEDIES[one_of(greedy, "a greedy", ("auto", *GREEDIES))]


def _choose_sharded(greedy: str | Greedy) -> Greedy:
    over = greedy if isinstance(greedy, str) else getattr(greedy, "over_shards", "")
    if over in ("auto", "exact"):
        return Sharded()
    if over == "two-rounds":
        return TwoRounds()
    raise PoolError(
        f"expected the greedy auto, exact or two-rounds for a sharded run, got {shown(greedy)}"
    )


def thinned_to(thin: int | None, criterion: Criterion) -> int | None:
    """How many test points to keep; None for all.

    >>> thinned_to(None, MutualInformation())
    1000
    """
    if thin is None:
        return getattr(criterion, "test_points", None)
    return integer(thin, "thin", 1)


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
        f"residual; got {shown(features)}"
    )
