"""The front door: from an array, a dataset or files to a selection."""

from pathlib import Path

from evgp._errors import PoolError
from evgp._executor import Executor
from evgp._reading import reading_within
from evgp._typing import ArrayLike
from evgp.criteria import Criterion
from evgp.datasets import Samples, Streamed
from evgp.greedy import Greedy, Progress, silent
from evgp.kernels import EmpiricalNTK, Features, Kernel, Source
from evgp.nets import Network, mlp
from evgp.pool import Selection
from evgp.strategies import checks
from evgp.strategies.evgp import most_picks
from evgp.strategies.filed import Filed, filed
from evgp.strategies.held import Asked
from evgp.strategies.names import criterion_named, thinned_to
from evgp.strategies.plan import bytes_of, kernel_of, network_of
from evgp.strategies.rules import Rules, described
from evgp.strategies.stream import Place, opened


def pick(
    x: ArrayLike | Samples | Place,
    k: int | None = None,
    *,
    budget: float | None = None,
    costs: ArrayLike | None = None,
    x_test: ArrayLike | Samples | Place | None = None,
    test_weights: ArrayLike | None = None,
    labelled: ArrayLike | None = None,
    x_labelled: ArrayLike | Samples | Place | None = None,
    candidates: ArrayLike | None = None,
    network: Network | Source | str = mlp(),
    kernel: Kernel | str | None = None,
    criterion: str | Criterion = "ev",
    greedy: str | Greedy = "auto",
    noise: float = 1e-6,
    standardise: bool = True,
    storage: str = "float64",
    thin: int | None = None,
    features: str | Features | None = None,
    method: str = "auto",
    memory: int | str | None = None,
    executor: Executor | None = None,
    cache: str | Path | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> Selection:
    """Which k rows of x to label, in which order, before any label exists.

    `x` is an array or tensor, one point a row, or a torch `Dataset` or `DataLoader`, or a Hugging
    Face dataset, whose labels are left aside; picks are positions in it. A path (Parquet, Arrow or
    npy, one file or a folder of them) or `evgp.open_pool(...)` stays in its files: see "sharded".

    The test points are `x_test` (with `test_weights`), or the pool itself; `thin` keeps that many
    of them by k-means++. `labelled` are rows already labelled, `x_labelled` labelled points outside
    the pool, `candidates` the only rows that may be picked. With `costs` (one price a row) and a
    `budget`, picks stay within the money. `standardise` scales each column to mean 0 and deviation
    1 over the pool (each channel, for images). `noise` is a fraction of the mean prior variance.
    `network` is an `mlp`, whose exact infinite-width NTK is used, or anything that `EmpiricalNTK`
    takes: a torch module, a function that makes one, a `cnn`; or a name ("resnet18", a plugin's,
    "package.module:name"). `kernel` takes its place: an object, or a name ("nngp", ...).
    `features` take the place of the pool x test matrix where that would be too large: "nystrom-512"
    (inducing points of the kernel), "sketch-512" (of a torch module's gradients), "raw" (the inputs
    themselves, unscaled, such as embeddings), or any `Features`; None uses them only where the
    matrix would not fit, and says so.

    `method` is "dense" (the matrix), "features" (in memory), "sharded" (features on the disk, a
    block at a time), or "auto": the first that fits in `memory` (such as "2GB"; by default most of
    what is free). Shards lie in `cache`, and stay there; without it they go when the picks are
    made, and a run that was stopped goes on where it was. An `executor`, such as that of
    `evgp.integrations.dask`, has them worked on elsewhere. What a run will cost says `evgp.plan`;
    one that would not fit is refused before it starts.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(100, 3))
    >>> pick(x, k=5).indices.shape
    (5,)
    """
    rule = criterion_named(criterion)
    network = network_of(network)
    chosen = kernel_of(network, seed, kernel)
    rules = Rules(
        chosen,
        described(network if kernel is None else chosen),
        rule,
        greedy,
        features,
        noise,
        seed,
        storage,
        thinned_to(thin, rule),
        method,
        memory,
        executor,
        None if cache is None else Path(cache),
        told={"k": k, "budget": budget, "standardise": standardise},
    )
    if isinstance(x, str | Path | Streamed):
        if test_weights is not None:
            raise PoolError("expected no test_weights with files; repeat test points instead")
        with reading_within(None if memory is None else bytes_of(memory)):
            return Filed(
                opened(x, standardise=standardise and features != "raw"),
                filed(x_test, "x_test"),
                filed(x_labelled, "x_labelled"),
                labelled,
                candidates,
                costs,
                budget,
            ).pick(k, rules, progress)
    used = rules.kernel
    finite = isinstance(used, EmpiricalNTK)
    points = checks.inputs(x, "x", indices=finite)
    if isinstance(used, EmpiricalNTK) and not points.is_floating_point():
        finite = used.looks_up(tuple(points.shape[1:]))  # else whole numbers are numbers
        points = points if finite else points.double()
    given, outside = (
        None if one is None else checks.inputs(_array(one, name), name, points, indices=finite)
        for one, name in ((x_test, "x_test"), (x_labelled, "x_labelled"))
    )
    known = checks.rows_of(labelled, "labelled", len(points))
    free = checks.free_rows(candidates, known, len(points))
    weights = checks.test_weights(test_weights, rule, len(points if given is None else given))
    prices, money = checks.money(costs, budget, len(points))
    aim = most_picks(k, len(free), None if prices is None else prices[free], money)
    sure = rules.plan(
        len(points),
        tuple(points.shape[1:]),
        aim,
        m=None if given is None else len(given),
        labelled=len(known) + (0 if outside is None else len(outside)),
    )
    scaled = standardise and points.is_floating_point() and features != "raw"
    asked = Asked(points, given, outside, weights, known, free, prices, money)
    return rules.make(
        sure,
        lambda: (asked.scaled() if scaled else asked).pick(k, rules, sure, progress),
        labelled=len(known) + (0 if outside is None else len(outside)),
        candidates=len(free),
    )


def _array(one: ArrayLike | Samples | Place, name: str) -> ArrayLike | Samples:
    if isinstance(one, str | Path | Streamed):
        raise PoolError(f"expected {name} as an array, as x is one; got files")
    return one
