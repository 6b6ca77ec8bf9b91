"""`evgp pick`: from a table or a folder of images to a ranked list of what to label."""

from dataclasses import replace

from evgp.cli import _options as options
from evgp.cli._output import Meter, guarded, note, progress, show, show_json, tell


@guarded
def pick(
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
    """Pick the rows or images of POOL that are worth labelling first, best first.

    Prints rank, id (or row number, from 0), gain and the variance left after each pick: a table on
    a terminal, tab-separated in a pipe. Any first part of the list is a sensible smaller batch.

    \b
    Examples:
      evgp pick pool.csv -k 100 --id image -o picks.csv --report report.html
      evgp pick pool.parquet --costs minutes --budget 480 --drop label
      evgp pick pool.csv -k 50 --labelled picks.csv --test test.csv --json
      evgp pick embeddings.npy -k 1000 --features raw
      evgp pick images/ -k 100 --network cnn --report report.html
      evgp pick pool.npz -k 100 --network my_package.nets:build --weights net.safetensors
      evgp pick folder-of-parquet/ -k 1000 --memory 2GB -o picks.csv
      evgp pick folder-of-parquet/ -k 1000 --dask tcp://10.0.0.1:8786 --cache /shared/evgp
    """
    options.check_wish(k, costs, budget)

    import evgp
    from evgp.cli import _picked
    from evgp.cli._inputs import Asked, noted
    from evgp.cli._network import Described
    from evgp.cli._samples import load
    from evgp.cli._streamed import Large, open_streamed

    _picked.check_paths(output, report, (pool, labelled, test))
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
    made = described.network()
    large = Large(method, memory, dask, cache)
    with progress(quiet) as bar:
        given = open_streamed(asked) if large.wanted(asked) else load(asked, made, bar)
    prior = described.kernel(made, given.shape, seed)
    note(given.notes, quiet=quiet)
    with progress(quiet) as bar, large.executor() as executor:
        meter = Meter(bar)
        selection, more = noted(
            lambda: evgp.pick(
                given.x,
                k,
                budget=budget,
                costs=given.costs,
                x_test=given.x_test,
                labelled=given.labelled.rows,
                x_labelled=given.outside,
                network=made,
                kernel=prior,
                criterion=criterion,
                greedy=greedy,
                noise=noise,
                standardise=given.raw and not no_standardise,
                storage=storage,
                thin=thin,
                features=features,
                method=method,
                memory=memory,
                executor=executor,
                cache=cache,
                seed=seed,
                progress=meter,
            )
        )
    inputs = given.seen(selection, shown=report is not None)
    more = list(dict.fromkeys((*more, *selection.warnings)))
    # The library was given encoded columns; to repeat the run takes what the command was given.
    again = {
        "standardise": not no_standardise,
        "impute": impute,
        "max_categories": max_categories,
        "id": id,
        "drop": list(inputs.dropped) or None,
        "costs": costs,
        "labelled_file": None if labelled is None else str(labelled),
        "test_file": None if test is None else str(test),
        "delimiter": delimiter,
        "array": array,
        "image_size": image_size,
        "network": described.told(made),
        "weights": None if weights is None else str(weights),
        "unit": None if isinstance(made, evgp.Network) else unit,
        "draws": None if isinstance(made, evgp.Network) else draws,
    }
    selection = replace(selection, settings={**selection.settings, **again})
    picked = _picked.Picked(selection, inputs, (*inputs.notes, *more))
    _, said = noted(lambda: picked.write(output, report, network=described.told(made)))
    more += said
    picked = replace(picked, notes=(*picked.notes, *said))
    if json:
        show_json(picked.document())
    else:
        show(picked.columns())
    note(more, quiet=quiet)
    if not quiet:
        tell(picked.told(output, report, meter.told(len(inputs))))
