"""`problem(rng)`: one random problem, with all its options drawn together so that they interact."""

from typing import Any

import numpy as np

from tests.hostile.brute_kernels import Net
from tests.hostile.problems import Problem

Array = np.ndarray
CRITERIA = ("ev", "linearised", "percentile", "mi")
# Searches that know every criterion, and those that need features.
SEARCHES = ("exact", "lazy", "stochastic", "exchange")
ON_FEATURES = ("sharded", "two-rounds")


def problem(
    rng: np.random.Generator,
    criterion: str | None = None,
    search: str | None = None,
    most: int = 40,
) -> Problem:
    """A problem that evgp should be able to answer, of this criterion and search if they are given.

    `most` rows at most; with mutual information half as many, because it is slower to check.

    >>> problem(np.random.default_rng(0)).x.shape
    (3, 5)
    """
    criterion = str(rng.choice(CRITERIA)) if criterion is None else criterion
    by_features = criterion in ("ev", "linearised") and rng.random() < 0.5
    if search is None:
        search = str(rng.choice((*SEARCHES, *ON_FEATURES) if by_features else SEARCHES))
    by_features |= search in ON_FEATURES
    door = str(rng.choice(("pick", "strategy", "greedy"), p=(0.6, 0.25, 0.15)))
    own = _chance(rng, 0.4)
    x, more = _points(rng, most // 2 if criterion == "mi" else most)
    asked: dict[str, Any] = {
        "x": x,
        "x_test": more(rng, int(rng.integers(1, 25))) if own else None,
        "door": door,
        "criterion": _percentile(rng) if criterion == "percentile" else criterion,
        "net": _net(rng),
        "kernel": "nngp" if _chance(rng, 0.15) else "ntk",
        "noise": float(10 ** rng.uniform(-8, 0)) if _chance(rng, 0.7) else 1e-6,
        # Rows that are all alike are refused where they are scaled.
        "standardise": _chance(rng, 0.7) and _differs(x),
        "storage": str(rng.choice(("float64", "float32"))),
        "seed": int(rng.integers(100)),
        "by_rate": _chance(rng, 0.5),
    }
    if not own and door != "pick" and _chance(rng, 0.5):
        count = int(rng.integers(1, len(x) + 1))
        asked["test"] = np.sort(rng.permutation(len(x))[:count]).tolist()
    asked |= _known(rng, x, more)
    if by_features:
        asked |= _features(rng, len(x), search, door)
    elif door == "pick":
        asked["method"] = str(rng.choice(("auto", "dense")))
    asked |= _search(rng, search, asked)
    points = len(asked["x_test"] if own else asked.get("test", x))
    if criterion != "mi" and asked.get("method") != "sharded" and _chance(rng, 0.5):
        asked["weights"] = _weights(rng, points)
    if door == "pick" and asked.get("method") != "sharded" and _chance(rng, 0.2):
        asked["thin"] = int(rng.integers(1, points + 2))
    return Problem(**(asked | _purse(rng, Problem(**asked))))


def _differs(x: Array) -> bool:
    return bool(np.ptp(x, axis=tuple(axis for axis in range(x.ndim) if axis != 1)).any())


def _chance(rng: np.random.Generator, share: float) -> bool:
    return bool(rng.random() < share)


def _points(rng: np.random.Generator, most: int) -> tuple[Array, Any]:
    """A pool, and a function that draws further points like it, copies of its rows among them."""
    n = int(rng.integers(2, 13) if _chance(rng, 0.5) and most > 13 else rng.integers(2, most + 1))
    d = int(rng.integers(1, 7))
    kind = rng.choice(("normal", "grid", "heavy", "clusters", "offset"))
    centres, scale = rng.normal(size=(3, d)), 10 ** rng.uniform(-1, 1, size=d)
    offset = rng.normal(size=d) * 3
    constant = int(rng.integers(d)) if d > 1 and _chance(rng, 0.25) else None

    def draw(rng: np.random.Generator, count: int) -> Array:
        result = rng.normal(size=(count, d))
        if kind == "grid":
            result = rng.integers(-2, 3, size=(count, d)).astype(float)
        if kind == "heavy":
            result = np.clip(rng.standard_t(2, size=(count, d)), -20, 20)
        if kind == "clusters":
            result = centres[rng.integers(3, size=count)] + 0.01 * result
        if kind == "offset":
            result = result * scale + offset
        if constant is not None:
            result[:, constant] = 0.7
        return result

    x = draw(rng, n)
    if _chance(rng, 0.5):  # exact copies
        count = int(rng.integers(1, n))
        x[rng.permutation(n)[:count]] = x[rng.integers(n, size=count)]
    if _chance(rng, 0.1):  # and some that are nearly copies
        x[rng.integers(n)] = x[rng.integers(n)] * (1 + 1e-4)
    images = d in (4, 6) and _chance(rng, 0.3)

    def shaped(points: Array) -> Array:
        return points.reshape(len(points), 2, d // 2) if images else points

    def more(rng: np.random.Generator, count: int) -> Array:
        result = shaped(draw(rng, count))
        if _chance(rng, 0.5):
            subset = int(rng.integers(1, count + 1))
            result[rng.permutation(count)[:subset]] = shaped(x)[rng.integers(n, size=subset)]
        return result

    return shaped(x), more


def _net(rng: np.random.Generator) -> Net:
    activations = ("relu", "leaky_relu", "erf", "sin", "gelu", "identity")
    return Net(
        depth=int(rng.choice((0, 1, 2, 3, 4), p=(0.05, 0.25, 0.4, 0.2, 0.1))),
        activation=str(rng.choice(activations, p=(0.4, 0.12, 0.12, 0.12, 0.12, 0.12))),
        w_std=1.0 if _chance(rng, 0.5) else float(rng.uniform(0.5, 1.8)),
        b_std=float(rng.choice((0.1, 0.0, rng.uniform(0, 1)), p=(0.5, 0.2, 0.3))),
        slope=float(rng.choice((0.1, rng.uniform(-0.3, 0.9)))),
    )


def _percentile(rng: np.random.Generator) -> str:
    return f"p{rng.choice((0, 37.5, 50, 75, 90, 100)):g}"


def _known(rng: np.random.Generator, x: Array, more: Any) -> dict[str, Any]:
    """Labelled rows and points, and the only rows that may be picked."""
    n, result = len(x), dict[str, Any]()
    if _chance(rng, 0.4):
        result["labelled"] = np.sort(rng.permutation(n)[: rng.integers(1, min(n, 8))]).tolist()
    if _chance(rng, 0.3):
        result["x_labelled"] = more(rng, int(rng.integers(1, 5)))
    if _chance(rng, 0.3):
        left = np.setdiff1d(np.arange(n), result.get("labelled", []))
        subset = rng.permutation(left)[: rng.integers(1, len(left) + 1)]
        also = rng.integers(n, size=2)  # labelled ones do not count, nor does a second mention
        result["candidates"] = [*subset.tolist(), *also.tolist()]
        if len(result["candidates"]) == n:  # which may look like a mask of zeros and ones
            result["candidates"] += [int(subset[0])]
    return result


def _features(rng: np.random.Generator, n: int, search: str, door: str) -> dict[str, Any]:
    """Which features, and where they are."""
    subset = f"nystrom-{int(rng.integers(1, n + 1))}"
    kind = str(rng.choice(("raw", "nystrom-1000", subset)))
    ways = ["auto", "features"]
    if door == "pick" and search in ("exact", "two-rounds"):
        ways += ["sharded"] * 2
    return {"features": kind, "method": str(rng.choice(ways)) if door == "pick" else "auto"}


def _search(rng: np.random.Generator, search: str, asked: dict[str, Any]) -> dict[str, Any]:
    """The search with its options; by name alone where these are left as they are."""
    count = int(rng.integers(1, 6))
    named = asked["door"] == "pick" and (_chance(rng, 0.4) or asked.get("method") == "sharded")
    if search == "sharded":
        return {"search": search, "options": {"shards": count}}
    if named:
        # "auto" means the exact greedy.
        return {"search": "auto" if search == "exact" and _chance(rng, 0.5) else search}
    options = {"stochastic": {"sample": int(rng.integers(1, 12))}, "two-rounds": {"shards": count},
               "exchange": {"passes": int(rng.choice((0, 1, 2, 20, 20)))}}  # fmt: skip
    return {"search": search, "options": options.get(search, {})}


def _weights(rng: np.random.Generator, points: int) -> Array:
    """Of test points: some without any, at times all the same."""
    result = rng.exponential(size=points) if _chance(rng, 0.7) else np.ones(points)
    if _chance(rng, 0.5):
        result[rng.permutation(points)[: rng.integers(0, points)]] = 0
    return result


def _purse(rng: np.random.Generator, asked: Problem) -> dict[str, Any]:
    """k, or prices and a budget that buys at least one row, or both."""
    free = asked.free()
    k = int(rng.integers(1, min(8, len(free)) + 1))
    k = len(free) if len(free) <= 10 and _chance(rng, 0.15) else k
    if not _chance(rng, 0.35):
        return {"k": k}
    prices = rng.integers(1, 8, size=len(asked.x)) if _chance(rng, 0.8) else np.ones(len(asked.x))
    cheapest = prices[free].min()
    budget = int(cheapest + rng.integers(0, max(2, min(prices[free].sum(), 25))))
    at_most = k if _chance(rng, 0.5) or len(free) > 14 or asked.door == "greedy" else None
    half = 0.5 if _chance(rng, 0.3) else 0.0  # money that no price is made for
    return {"k": at_most, "prices": prices.astype(int), "budget": budget + half}
