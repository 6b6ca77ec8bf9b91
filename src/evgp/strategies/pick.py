"""The front door: from an array to a selection."""

import warnings
from dataclasses import replace
from math import inf

import torch

from evgp._errors import DataWarning, EvgpWarning, PoolError
from evgp._linalg import JITTER
from evgp._typing import ArrayLike
from evgp.criteria import Criterion
from evgp.datasets import Samples
from evgp.greedy import Greedy, Progress, silent
from evgp.kernels import EmpiricalNTK, Features, Kernel, Source, Tabulated
from evgp.nets import Network, mlp
from evgp.pool import Pool, Selection
from evgp.strategies import checks
from evgp.strategies.evgp import EVGP, most_picks
from evgp.strategies.names import choose_greedy, criterion_named, thinned_to, whole
from evgp.strategies.plan import kernel_of, plan, refuse
from evgp.strategies.reduce import P, features_named


def pick(
    x: ArrayLike | Samples,
    k: int | None = None,
    *,
    budget: float | None = None,
    costs: ArrayLike | None = None,
    x_test: ArrayLike | Samples | None = None,
    test_weights: ArrayLike | None = None,
    labelled: ArrayLike | None = None,
    x_labelled: ArrayLike | Samples | None = None,
    candidates: ArrayLike | None = None,
    network: Network | Source = mlp(),
    kernel: Kernel | None = None,
    criterion: str | Criterion = "ev",
    greedy: str | Greedy = "auto",
    noise: float = 1e-6,
    standardise: bool = True,
    storage: str = "float64",
    thin: int | None = None,
    features: str | Features | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> Selection:
    """Which k rows of x to label, in which order, before any label exists.

    `x` is an array or tensor, one point a row, or a torch `Dataset` or `DataLoader`, or a Hugging
    Face dataset, whose labels are left aside; picks are positions in it.

    The test points are `x_test` (with `test_weights`), or the pool itself; `thin` keeps that many
    of them by k-means++. `labelled` are rows already labelled, `x_labelled` labelled points outside
    the pool, `candidates` the only rows that may be picked. With `costs` (one price a row) and a
    `budget`, picks stay within the money. `standardise` scales each column to mean 0 and deviation
    1 over the pool (each channel, for images). `noise` is a fraction of the mean prior variance.
    `network` is an `mlp`, whose exact infinite-width NTK is used, or anything that `EmpiricalNTK`
    takes: a torch module, a function that makes one, a `cnn`. `kernel` takes the place of both.
    `features` take the place of the pool x test matrix where that would be too large: "nystrom-512"
    (inducing points of the kernel), "sketch-512" (of a torch module's gradients), "raw" (the inputs
    themselves, unscaled, such as embeddings), or any `Features`; None uses them only where the
    matrix would not fit, and says so.
    What it will cost says `evgp.plan`; a run that would not fit in memory is
    refused before it starts.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(100, 3))
    >>> pick(x, k=5).indices.shape
    (5,)
    """
    rule = criterion_named(criterion)
    used = kernel if kernel is not None else kernel_of(network, seed)
    finite = isinstance(used, EmpiricalNTK)
    points = checks.inputs(x, "x", indices=finite)
    if isinstance(used, EmpiricalNTK) and not points.is_floating_point():
        finite = used.looks_up(tuple(points.shape[1:]))  # else whole numbers are numbers
        points = points if finite else points.double()
    given, outside = (
        None if one is None else checks.inputs(one, name, like=points, indices=finite)
        for one, name in ((x_test, "x_test"), (x_labelled, "x_labelled"))
    )
    known = checks.rows_of(labelled, "labelled", len(points))
    free = checks.free_rows(candidates, known, len(points))
    weights = checks.test_weights(test_weights, rule, len(points if given is None else given))
    prices, money = checks.money(costs, budget, len(points))
    aim = most_picks(k, len(free), None if prices is None else prices[free], money)
    whole(seed, "seed", 0, 2**32 - 1)
    if not 0 <= noise < inf:
        raise PoolError(f"expected noise >= 0, a fraction of the prior variance; got {noise}")
    thin = thinned_to(thin, rule)
    sure = plan(
        len(points),
        tuple(points.shape[1:]),
        aim,
        m=None if given is None else len(given),
        labelled=len(known) + (0 if outside is None else len(outside)),
        kernel=used,
        criterion=rule,
        greedy=greedy,
        storage=storage,
        thin=thin,
        features=features if features is None or isinstance(features, str) else _named(features),
    )
    refuse(sure)
    chosen = features if features is not None or sure.method == "dense" else sure.method
    storage_of = {"float32": torch.float32, "float64": torch.float64}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", EvgpWarning)
        if chosen is not None and features is None:
            warnings.warn(
                f"the {len(points):,} x {sure.test_points:,} matrix of the exact kernel would not "
                f"fit in memory, so the picks are those of {sure.method} features",
                DataWarning,
                stacklevel=2,
            )
        if standardise and points.is_floating_point() and chosen != "raw":
            scale = checks.scale_of(points)
            if not bool(scale.factor.any()):
                warnings.warn(
                    "every column is constant, so all rows are alike and any pick is as good",
                    DataWarning,
                    stacklevel=2,
                )
            points = scale(points)
            given = None if given is None else scale(given)
            outside = None if outside is None else scale(outside)
        pool = Pool(points, given, None, weights, known, outside)
        pool = pool if thin is None else checks.thinned(pool, thin, seed)
        prior: Kernel | Features = used
        if chosen is not None:
            progress("features", 0, 1)
            prior = features_named(chosen, used, pool.x, seed)
            progress("features", 1, 1)
        elif isinstance(used, EmpiricalNTK):
            progress("kernel", 0, 1)
            prior, pool = _tabulate(used, pool)
            progress("kernel", 1, 1)
        strategy = EVGP(
            prior,
            rule,
            choose_greedy(greedy, len(free), aim, rule),
            noise,
            storage_of[sure.storage],
        )
        made = strategy(
            pool,
            k,
            costs=prices,
            budget=money,
            candidates=free,
            generator=torch.Generator().manual_seed(seed),
            progress=progress,
        )
        _remark(made, noise)
    for one in caught:
        warnings.warn(one.message, stacklevel=2)
    settings = {
        "rows": len(points),
        "features": points[0].numel(),
        "test_points": len(pool.test_points()),
        "labelled": len(pool.known()),
        "candidates": len(free),
        "k": k,
        "budget": budget,
        "network": _described(network if kernel is None else kernel),
        "criterion": repr(rule),
        "greedy": repr(strategy.greedy),
        "noise": noise,
        "noise_variance": max(noise, JITTER) * made.prior_variance,
        "jitter": JITTER if noise < JITTER else 0.0,
        "standardise": standardise,
        "storage": sure.storage,
        "method": sure.method if chosen is None or isinstance(chosen, str) else repr(chosen),
        "thin": thin,
        "seed": seed,
    }
    return replace(made, settings=settings, warnings=tuple(str(one.message) for one in caught))


def _named(features: Features) -> str:
    """A name with as many features, for the plan."""
    width = getattr(features, "p", None) or len(getattr(features, "points", ())) or P
    return f"nystrom-{width}"


def _tabulate(kernel: EmpiricalNTK, pool: Pool) -> tuple[Kernel, Pool]:
    """The kernel between all points, once, and the pool as row numbers of it."""
    parts = [part for part in (pool.x, pool.x_test, pool.x_labelled) if part is not None]
    table = Tabulated(kernel(torch.cat(parts)))
    rows = torch.arange(sum(len(part) for part in parts), dtype=torch.float64)[:, None]
    places = iter(torch.split(rows, [len(part) for part in parts]))
    x = next(places)
    x_test = None if pool.x_test is None else next(places)
    x_labelled = None if pool.x_labelled is None else next(places)
    return table, replace(pool, x=x, x_test=x_test, x_labelled=x_labelled)


def _described(network: object) -> str:
    """Short, also for a torch module of many lines."""
    if isinstance(network, torch.nn.Module):
        count = sum(param.numel() for param in network.parameters())
        return f"{type(network).__name__} with {count:,} parameters"
    return repr(network)


def _remark(made: Selection, noise: float) -> None:
    """Say what a reader of the picks should know."""
    worse = int((made.gains < 0).sum())
    if worse:
        warnings.warn(
            f"{worse} of {len(made)} picks have a negative gain: the criterion is not monotone, "
            "and fewer labels would serve it better",
            DataWarning,
            stacklevel=2,
        )
    nothing = min(max(1e-9, 3 * noise), 1e-5) * made.prior_variance
    enough = int((made.variance_left > nothing).sum()) + 1
    if made.prior_variance > 0 and enough < len(made):
        warnings.warn(
            f"the first {enough} of {len(made)} picks leave no variance beyond the noise (the pool "
            "has no more distinct points, or the network is linear), so the others add nothing",
            DataWarning,
            stacklevel=2,
        )
