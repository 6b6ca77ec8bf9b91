"""`evgp plan`: what a pick would take, before it is made."""

import sys
from dataclasses import asdict
from math import inf

from evgp.cli import _options as options
from evgp.cli._output import guarded, note, progress, show, show_json, tell


@guarded
def plan(
    pool: options.PoolFile,
    *,
    k: options.Count = None,
    output: options.OutputFile = None,
    report: options.ReportFile = None,
    id: options.Id = None,
    drop: options.Drop = None,
    costs: options.Costs = None,
    budget: options.Budget = None,
    labelled: options.LabelledFile = None,
    test: options.TestFile = None,
    thin: options.Thin = None,
    impute: options.Impute = False,
    max_categories: options.MaxCategories = 50,
    no_standardise: options.NoStandardise = False,
    delimiter: options.Delimiter = None,
    array: options.ArrayName = None,
    image_size: options.ImageSize = None,
    network: options.NetworkName = "mlp",
    weights: options.Weights = None,
    unit: options.OutputUnit = "random",
    draws: options.Draws = 1,
    kernel: options.KernelName = "ntk",
    features: options.FeatureName = None,
    method: options.MethodName = "auto",
    memory: options.Memory = None,
    dask: options.Dask = None,
    cache: options.Cache = None,
    depth: options.Depth = 2,
    activation: options.Activation = "relu",
    w_std: options.WStd = 1.0,
    b_std: options.BStd = 0.1,
    criterion: options.CriterionName = "ev",
    greedy: options.GreedyName = "auto",
    noise: options.Noise = 1e-6,
    storage: options.StorageName = "auto",
    seed: options.Seed = 0,
    json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Say what picking rows of POOL takes on this machine, and how it would be done.

    Takes every option of `evgp pick`, reads the pool, but picks nothing and writes nothing. With
    --budget it plans for as many of the cheapest rows as the money buys.

    \b
    Examples:
      evgp plan pool.csv -k 100
      evgp plan pool.npy -k 1000 --thin 5000 --json
    """
    options.check_wish(k, costs, budget)

    import evgp
    from evgp._errors import PoolError
    from evgp.cli._inputs import Asked, Inputs
    from evgp.cli._network import Described
    from evgp.cli._picked import check_paths
    from evgp.cli._samples import load
    from evgp.cli._streamed import Large, open_streamed
    from evgp.strategies import checks
    from evgp.strategies.evgp import most_picks
    from evgp.strategies.names import whole

    check_paths(output, report, (pool, labelled, test))
    described = Described(network, depth, activation, w_std, b_std, weights, unit, draws, kernel)
    asked = Asked(
        pool,
        labelled,
        test,
        id=id,
        drop=drop or (),
        costs=costs,
        delimiter=delimiter,
        array=array,
        impute=impute,
        max_categories=max_categories,
        standardise=not no_standardise and features != "raw",
        image_size=image_size,
    )
    net = described.network()
    large = Large(method, memory, dask, cache)
    with progress(quiet) as bar:
        inputs = open_streamed(asked) if large.wanted(asked) else load(asked, net, bar)
    prior = described.kernel(net, inputs.shape, seed)
    whole(seed, "seed", 0, 2**32 - 1)
    if not 0 <= noise < inf:
        raise PoolError(f"expected noise >= 0, a fraction of the prior variance; got {noise}")
    n = len(inputs)
    known = checks.rows_of(inputs.labelled.rows, "labelled", n)
    prices, money = checks.money(inputs.costs, budget, n)
    if prices is not None:
        prices = prices[checks.free_rows(None, known, n)]
    aim = most_picks(k, n - len(known), prices, money)
    outside = 0 if inputs.outside is None else len(inputs.outside)
    made = evgp.plan(
        n,
        inputs.shape,
        aim,
        m=None if inputs.x_test is None else len(inputs.x_test),
        labelled=len(known) + outside,
        kernel=prior,
        criterion=criterion,
        greedy=greedy,
        storage=storage,
        thin=thin,
        features=features,
        method=method if dask is None else "sharded",
        memory=memory,
        held=isinstance(inputs, Inputs),
    )
    facts = {**({"columns": inputs.used} if inputs.used else {}), **asdict(made)}
    if json:
        show_json(facts | {"warnings": list(inputs.notes)})
    else:
        told = _readable if sys.stdout.isatty() else lambda _, value: str(value)
        values = [told(name, value) for name, value in facts.items()]
        show({"what": list(facts), "value": values})
    note(inputs.notes, quiet=quiet)
    if not quiet:
        tell(str(made))


def _readable(name: str, value: object) -> str:
    """A number with its unit, for a person."""
    if name in ("memory", "available", "disk") and isinstance(value, int | float):
        return f"{value / 1e9:,.2f} GB"
    if name == "seconds" and isinstance(value, int | float):
        return f"{value:,.1f} s" if value < 120 else f"{value / 60:,.0f} min"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
