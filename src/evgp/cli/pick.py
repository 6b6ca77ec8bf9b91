"""`evgp pick`: from a table to a ranked list of what to label."""

from dataclasses import replace

from evgp.cli import _options as options
from evgp.cli._output import guarded, note, progress, show, show_json, tell


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
    """Pick the rows of POOL that are worth labelling first, best first.

    Prints rank, id (or row number, from 0), gain and the variance left after each pick: a table on
    a terminal, tab-separated in a pipe. Any first part of the list is a sensible smaller batch.

    \b
    Examples:
      evgp pick pool.csv -k 100 --id image -o picks.csv --report report.html
      evgp pick pool.parquet --costs minutes --budget 480 --drop label
      evgp pick pool.csv -k 50 --labelled picks.csv --test test.csv --json
    """
    options.check_wish(k, costs, budget)

    import evgp
    from evgp.cli import _picked
    from evgp.cli._inputs import load, noted, split

    _picked.check_paths(output, report, (pool, labelled, test))
    inputs = load(
        pool,
        id=id,
        drop=drop or (),
        delimiter=delimiter,
        array=array,
        costs=costs,
        labelled=labelled,
        test=test,
        impute=impute,
        max_categories=max_categories,
        standardise=not no_standardise,
    )
    network = evgp.mlp(depth=depth, activation=activation, w_std=w_std, b_std=b_std)
    note(inputs.notes, quiet=quiet)
    with progress(quiet) as bar:
        selection, more = noted(
            lambda: evgp.pick(
                inputs.x,
                k,
                budget=budget,
                costs=inputs.costs,
                x_test=inputs.x_test,
                labelled=inputs.labelled.rows,
                x_labelled=inputs.labelled.x,
                network=network,
                criterion=criterion,
                greedy=greedy,
                noise=noise,
                standardise=False,
                storage=storage,
                thin=thin,
                seed=seed,
                progress=bar,
            )
        )
    more = list(dict.fromkeys((*more, *selection.warnings)))
    # The library was given encoded columns; to repeat the run takes what the command was given.
    asked = {
        "standardise": not no_standardise,
        "impute": impute,
        "max_categories": max_categories,
        "id": id,
        "drop": list(split(drop or (), inputs.table.names)) or None,
        "costs": costs,
        "labelled_file": None if labelled is None else str(labelled),
        "test_file": None if test is None else str(test),
        "delimiter": delimiter,
        "array": array,
    }
    selection = replace(selection, settings={**selection.settings, **asked})
    picked = _picked.Picked(selection, inputs, (*inputs.notes, *more))
    _, said = noted(lambda: picked.write(output, report, network=str(network)))
    more += said
    picked = replace(picked, notes=(*picked.notes, *said))
    if json:
        show_json(picked.document())
    else:
        show(picked.columns())
    note(more, quiet=quiet)
    if not quiet:
        tell(picked.told(output, report))
