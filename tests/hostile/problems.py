"""Random small problems, all options drawn together; how evgp and the brute force read them."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

import evgp
from evgp import search
from evgp.criteria import Linearised
from evgp.kernels import Inducing, Raw
from evgp.posterior import FeatureStart, Start
from evgp.search import Budget, greedy
from evgp.selection import request as rules
from tests.hostile import brute
from tests.hostile.brute_kernels import Net, kernels

Array = np.ndarray
DISK = 16  # rows of a shard on the disk, and a look of the lazy greedy: small pools have several
LOOK = 2
UNIT = 0.1  # of prices: such sums are not exact in binary, and should fit in a budget all the same


@dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """Everything that is requested from evgp; prices and the budget are multiples of `UNIT`.

    `door` is "pick", "strategy" (`EVGP` and a `Pool`), or "greedy" (the search alone).
    """

    x: Array
    x_test: Array | None = None
    test: list[int] | None = None
    weights: Array | None = None
    labelled: list[int] = field(default_factory=list)
    x_labelled: Array | None = None
    candidates: list[int] | None = None
    k: int | None = 1
    prices: Array | None = None
    budget: float | None = None
    by_rate: bool = False
    net: Net = Net()
    kernel: str = "ntk"
    criterion: str = "ev"
    search: str = "exact"
    options: Mapping[str, int] = field(default_factory=dict)
    noise: float = 1e-6
    standardise: bool = True
    storage: str = "float64"
    thin: int | None = None
    features: str | None = None
    method: str = "auto"
    seed: int = 0
    door: str = "pick"

    def __repr__(self) -> str:
        """What can be pasted: `check(Problem(...))`."""
        shown = []
        for item in fields(self):
            value = getattr(self, item.name)
            text = f"np.array({value.tolist()!r})" if isinstance(value, Array) else repr(value)
            shown.append(f"    {item.name}={text},")
        return "\n".join(["Problem(", *shown, ")"])

    def free(self) -> list[int]:
        """The rows that may be picked, in order."""
        rows = range(len(self.x)) if self.candidates is None else self.candidates
        return sorted(set(rows) - set(self.labelled))

    def most(self) -> int:
        """Picks at most."""
        return len(self.free()) if self.k is None else self.k

    def money(self, by_rate: bool = False) -> brute.Money:
        """For the brute force."""
        if self.prices is None or self.budget is None:
            return brute.Money()
        return brute.Money(self.prices, self.budget, by_rate)

    def rules(self) -> list[brute.Money]:
        """The ways in which a run may spend: with prices both are tried, and the better is kept."""
        if self.door == "greedy":
            return [self.money(self.by_rate)]
        return [self.money(rate) for rate in ((False,) if self.prices is None else (False, True))]


# -- the brute force's reading ---------------------------------------------------------------------


def points_of(problem: Problem) -> list[Array]:
    """Pool, labelled points outside it, and test points of their own, as the kernel sees them."""
    x, outside, test = problem.x, problem.x_labelled, problem.x_test
    if problem.standardise and problem.door == "pick" and problem.features != "raw":
        x, outside, test = brute.standardised(x, outside, test)
    empty = x[:0]
    result = (x, empty if outside is None else outside, empty if test is None else test)
    return [item.reshape(len(item), int(np.prod(x.shape[1:]))) for item in result]


def inducing_rows(problem: Problem, x: Array) -> Array | None:
    """The rows that features "nystrom-5" go through: k-means++, each row once; None for a tie."""
    count = min(int(str(problem.features).split("-")[1]), len(x))
    if count == len(x):
        return np.sort(np.unique(x, axis=0, return_index=True)[1])
    return brute.spread(x, count, problem.seed)


def modelled(problem: Problem, extra: Array | None = None) -> brute.Model | None:
    """The problem as the brute force sees it; None if k-means++ meets a tie.

    `extra` points, on the scale of the kernel, come last: they may be labelled, and are no more.
    `eps` of the model is measured: how far the kernels of evgp are from those of the brute force.
    """
    parts = points_of(problem)
    x, outside, own = parts
    test = np.arange(len(x)) if problem.test is None else np.array(problem.test)
    test = test if problem.x_test is None else len(x) + len(outside) + np.arange(len(own))
    weights = np.ones(len(test)) if problem.weights is None else problem.weights
    weights = weights / weights.sum()
    if problem.thin is not None and problem.thin < len(test):
        kept = brute.thinned(np.concatenate(parts)[test], weights, problem.thin, problem.seed)
        if kept is None:
            return None
        test, weights = test[kept[0]], kept[1]
    points = np.concatenate([*_stored(problem, parts), *([] if extra is None else [extra])])
    known = [*_first(problem), *range(len(x), len(x) + len(outside))]
    gram, rest, kernel_eps = points @ points.T, None, 0.0
    eps = 0.0
    if problem.features != "raw":
        gram = kernels(problem.net, points, points)[problem.kernel == "ntk"]
        eps = kernel_eps = apart(problem, points, gram)
    if problem.features not in (None, "raw"):
        inducing = inducing_rows(problem, x)
        if inducing is None or not gram.diagonal()[inducing].any():
            return None
        gram, rest, times = brute.nystrom(gram, inducing)
        copies = len(np.unique(x, axis=0)) < len(x)  # which evgp may take twice
        eps = (eps + 2e-15 * len(points) + copies * brute.JITTER) * times
        eps += 1.3e-8 if float32(problem) else 0.0  # rows of features, and there is a margin
    return brute.Model(
        gram, test, weights, known, problem.noise, rest=rest, eps=eps, eps_rest=kernel_eps,
        by_features=problem.features is not None,
    )  # fmt: skip


def float32(problem: Problem) -> bool:
    """Whether rows of features are kept in float32."""
    stored = problem.storage == "float32" or problem.method == "sharded"
    return problem.features is not None and stored


def _stored(problem: Problem, parts: list[Array]) -> list[Array]:
    """Points as they are kept; with raw features in float32 labelled ones come again, unrounded."""
    x, outside, own = parts
    if problem.features != "raw" or not float32(problem):
        return parts
    short = x.astype(np.float32).astype(float)
    own = own if problem.method == "sharded" else own.astype(np.float32).astype(float)
    return [short, outside, own, x[problem.labelled]]


def _first(problem: Problem) -> list[int]:
    """Where the labelled rows are."""
    if problem.features != "raw" or not float32(problem):
        return problem.labelled
    n = sum(len(item) for item in points_of(problem))
    return list(range(n, n + len(problem.labelled)))


def apart(problem: Problem, points: Array, gram: Array) -> float:
    """How far the kernel of evgp is from this one, relative to both variances.

    Also if the inputs are rounded otherwise: between points in one direction the angle of ReLU has
    half the digits.
    """
    size = np.sqrt(np.maximum(gram.diagonal(), 1e-300))
    rows, place = np.unique(points, axis=0, return_inverse=True)  # copies stay copies
    moves = 1e-15 * np.random.default_rng(0).normal(size=(4, *rows.shape))
    moves[0] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", evgp.EvgpWarning)
        result = [kernel_of(problem)((rows * (1 + move))[place.reshape(-1)]) for move in moves]
    theirs = np.array(result)
    return float((np.abs(theirs - gram) / np.outer(size, size)).max()) + 1e-15 * _moved(problem)


def _moved(problem: Problem) -> float:
    """What rounding of the inputs is multiplied by when they are scaled."""
    if not problem.standardise or problem.door != "pick":
        return 0.0
    columns = problem.x.reshape(*problem.x.shape[:2], -1).swapaxes(1, 2)
    columns = columns.reshape(-1, columns.shape[2])
    columns = columns[:, np.ptp(columns, axis=0) > 0]
    return float((np.abs(columns).max(0) / columns.std(0)).max()) if columns.size else 0.0


# -- evgp's reading --------------------------------------------------------------------------------


def network_of(net: Net) -> evgp.Network:
    """The same network."""
    leaky = net.activation == "leaky_relu"
    activation = evgp.nets.LeakyRelu(net.slope) if leaky else net.activation
    return evgp.mlp(net.depth, 8, activation, w_std=net.w_std, b_std=net.b_std)


def kernel_of(problem: Problem) -> Any:
    """The same kernel."""
    return {"ntk": evgp.NTK, "nngp": evgp.NNGP}[problem.kernel](network_of(problem.net))


def criterion_of(problem: Problem) -> Any:
    """The same criterion; by its name where it has one."""
    named = {"p50": "median", "p90": "p90", "p100": "max", "ev": "ev", "mi": "mi"}
    if problem.door == "pick" and problem.criterion in named:
        return named[problem.criterion]
    if problem.criterion.startswith("p"):
        return evgp.Percentile(float(problem.criterion[1:]))
    plain = {"ev": evgp.ExpectedVariance, "mi": evgp.MutualInformation, "linearised": Linearised}
    return plain[problem.criterion]()


def search_of(problem: Problem) -> Any:
    """The same search; by its name where it has no options."""
    if problem.door == "pick" and not problem.options:
        return problem.search
    kinds = {
        "auto": search.Exact, "exact": search.Exact, "lazy": search.Lazy,
        "stochastic": search.Stochastic, "exchange": search.Exchange, "sharded": search.Sharded,
        "two-rounds": search.TwoRounds,
    }  # fmt: skip
    return kinds[problem.search](**problem.options)


@dataclass(frozen=True)
class Answer:
    """What evgp answered; `converged` are the runs of exchange that ended before the last pass."""

    made: evgp.Selection
    warnings: list[str]
    passes: list[int]


def answered(problem: Problem, folder: Path) -> Answer:
    """Ask evgp."""
    passes: list[int] = []

    def heard(stage: str, done: int, total: int) -> None:
        if stage == "exchanging":
            if done == 1:
                passes.append(0)
            passes[-1] = done

    with (
        warnings.catch_warnings(record=True) as caught,
        mock.patch.object(rules, "SHARD", DISK),
        mock.patch.object(greedy, "_LOOK", LOOK),
    ):
        warnings.simplefilter("always")
        asked = {"pick": _picked, "strategy": _by_strategy, "greedy": _by_greedy}[problem.door]
        result = asked(problem, folder, heard)
    for warning in caught:
        assert issubclass(warning.category, evgp.EvgpWarning), warning.message
    return Answer(result, [str(warning.message) for warning in caught], passes)


def _picked(problem: Problem, folder: Path, heard: Any) -> evgp.Selection:
    return evgp.pick(problem.x, problem.k, progress=heard, **arguments(problem, folder))


def arguments(problem: Problem, folder: Path) -> dict[str, Any]:
    """What `evgp.pick` is asked, but for x and k."""
    money = problem.budget is not None
    return {
        "budget": problem.budget * UNIT if money else None,
        "costs": problem.prices * UNIT if money else None,
        "x_test": problem.x_test,
        "test_weights": None if problem.weights is None else problem.weights * 7,
        "labelled": problem.labelled or None,
        "x_labelled": problem.x_labelled,
        "candidates": problem.candidates,
        "network": network_of(problem.net),
        "kernel": None if problem.kernel == "ntk" else problem.kernel,
        "criterion": criterion_of(problem),
        "greedy": search_of(problem),
        "noise": problem.noise,
        "scale": "columns" if problem.standardise else None,
        "storage": problem.storage,
        "thin": problem.thin,
        "features": problem.features,
        "method": problem.method,
        "seed": problem.seed,
        "memory": "8GB",  # whatever is free at the moment
        "cache": folder if problem.method == "sharded" else None,
    }


def _pool(problem: Problem) -> evgp.Pool:
    tensor = torch.from_numpy
    weights = problem.weights
    return evgp.Pool(
        tensor(problem.x),
        None if problem.x_test is None else tensor(problem.x_test),
        None if problem.test is None else torch.tensor(problem.test),
        None if weights is None else tensor(weights / weights.sum()),
        torch.tensor(problem.labelled, dtype=torch.int64),
        None if problem.x_labelled is None else tensor(problem.x_labelled),
    )


def _prior(problem: Problem) -> Any:
    """The kernel, or the features in its place."""
    if problem.features is None:
        return kernel_of(problem)
    if problem.features == "raw":
        return Raw()
    x = problem.x.reshape(len(problem.x), -1)
    rows = inducing_rows(problem, x)
    return Inducing(kernel_of(problem), torch.from_numpy(problem.x[rows]))


def _dtype(problem: Problem) -> torch.dtype:
    return torch.float32 if problem.storage == "float32" else torch.float64


def _by_strategy(problem: Problem, folder: Path, heard: Any) -> evgp.Selection:
    strategy = evgp.EVGP(
        _prior(problem), criterion_of(problem), search_of(problem), problem.noise, _dtype(problem)
    )
    money = problem.budget is not None
    return strategy(
        _pool(problem),
        problem.k,
        costs=torch.from_numpy(problem.prices * UNIT) if money else None,
        budget=problem.budget * UNIT if money else np.inf,
        candidates=None if problem.candidates is None else torch.tensor(problem.free()),
        generator=torch.Generator().manual_seed(problem.seed),
        progress=heard,
    )


def _by_greedy(problem: Problem, folder: Path, heard: Any) -> evgp.Selection:
    pool, prior, free = _pool(problem), _prior(problem), torch.tensor(problem.free())
    if problem.features is None:
        mean = float(pool.test_weights() @ prior.diag(pool.test_points()))
        start: Any = Start(prior, pool, problem.noise * mean, _dtype(problem))
    else:
        start = FeatureStart.of(prior, pool, problem.noise, _dtype(problem))
    costs = None
    if problem.budget is not None and problem.prices is not None:
        costs = torch.from_numpy(problem.prices * UNIT)[free]
    budget = np.inf if problem.budget is None else problem.budget * UNIT
    return search_of(problem)(
        start,
        criterion_of(problem),
        free,
        Budget(problem.most(), costs, budget, problem.by_rate),
        generator=torch.Generator().manual_seed(problem.seed),
        progress=heard,
    )
