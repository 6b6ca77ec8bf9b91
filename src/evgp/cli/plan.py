"""`evgp plan`: what a pick would take, before it is made."""

import sys
from dataclasses import asdict

import typer

from evgp.cli import _options as options
from evgp.cli._output import guarded, note, show, show_json


@guarded
def plan(
    pool: options.PoolFile,
    *,
    k: options.Count = None,
    id: options.Id = None,
    drop: options.Drop = None,
    labelled: options.LabelledFile = None,
    test: options.TestFile = None,
    thin: options.Thin = None,
    impute: options.Impute = False,
    max_categories: options.MaxCategories = 50,
    delimiter: options.Delimiter = None,
    array: options.ArrayName = None,
    depth: options.Depth = 2,
    activation: options.Activation = "relu",
    criterion: options.CriterionName = "ev",
    greedy: options.GreedyName = "auto",
    storage: options.StorageName = "auto",
    json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Say what picking K rows of POOL takes on this machine, and how it would be done.

    Reads the table, but picks nothing and writes nothing.

    \b
    Examples:
      evgp plan pool.csv -k 100
      evgp plan pool.npy -k 1000 --thin 5000 --json
    """
    if k is None:
        raise typer.BadParameter("say how many rows with -k")

    import evgp
    from evgp._errors import PoolError
    from evgp.cli._inputs import load

    inputs = load(
        pool,
        id=id,
        drop=drop or (),
        delimiter=delimiter,
        array=array,
        costs=None,
        labelled=labelled,
        test=test,
        impute=impute,
        max_categories=max_categories,
        standardise=True,
    )
    if not 1 <= k <= len(inputs.x):
        raise PoolError(f"expected k in 1..{len(inputs.x)}, the rows of {pool}, got k={k}")
    outside = 0 if inputs.labelled.x is None else len(inputs.labelled.x)
    made = evgp.plan(
        len(inputs.x),
        inputs.x.shape[1],
        k,
        m=None if inputs.x_test is None else len(inputs.x_test),
        labelled=len(inputs.labelled.rows) + outside,
        network=evgp.mlp(depth=depth, activation=activation),
        criterion=criterion,
        greedy=greedy,
        storage=storage,
        thin=thin,
    )
    facts = {"columns": len(inputs.encoder.sources), **asdict(made)}
    if json:
        show_json(facts | {"warnings": list(inputs.notes)})
    else:
        told = _readable if sys.stdout.isatty() else lambda _, value: str(value)
        values = [told(name, value) for name, value in facts.items()]
        show({"what": list(facts), "value": values})
    note(inputs.notes, quiet=quiet)
    if not quiet:
        typer.echo(str(made), err=True)


def _readable(name: str, value: object) -> str:
    """A number with its unit, for a person."""
    if name in ("memory", "available") and isinstance(value, int | float):
        return f"{value / 1e9:,.2f} GB"
    if name == "seconds" and isinstance(value, int | float):
        return f"{value:,.1f} s" if value < 120 else f"{value / 60:,.0f} min"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
