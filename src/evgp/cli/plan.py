"""`evgp plan`: estimate the memory and time of a pick before running it."""

import sys

from evgp.cli._options import PickOptions, with_options
from evgp.cli._output import guarded, in_flags, note, progress, show, show_json, tell
from evgp.errors import size


@guarded
@with_options(PickOptions, hidden=("output", "report"))
def plan(options: PickOptions) -> None:
    """Estimate the memory and time of a pick on this machine, and show how it would run.

    Takes the options of `evgp pick` and reads the pool, but neither picks nor writes anything.
    With --budget, it plans for the largest number of rows that the budget can buy.

    \b
    Examples:
      evgp plan pool.csv -k 100
      evgp plan pool.npy -k 1000 --thin 5000 --json
    """
    from evgp.cli._picked import check_paths, read_request
    from evgp.datasets.scaling import described
    from evgp.selection.plan import planned

    check_paths(options.output, options.report, (options.pool, options.labelled, options.test))
    if not options.quiet and (options.output or options.report):
        tell("note: evgp plan writes nothing; -o and --report are for evgp pick")
    with progress(options.quiet) as bar:
        _, request, notes = read_request(options, None, bar)
    plan = planned(request)
    columns = {"columns": request.pool.used} if request.pool.used else {}
    facts = {**columns, **plan.facts()}
    if options.json:
        show_json(facts | {"warnings": notes})
    else:
        formatted = _readable if sys.stdout.isatty() else lambda _, value: str(value)
        show({"what": list(facts), "value": [formatted(*fact) for fact in facts.items()]})
    note(notes, quiet=options.quiet)
    if not options.quiet:
        tell(in_flags(str(plan)))
        tell(f"Scale: {described(request.pool.scale)}.")


def _readable(name: str, value: object) -> str:
    """Format a value with its unit, for people."""
    if name in ("memory", "available", "disk") and isinstance(value, int | float):
        return size(value)
    if name == "seconds" and isinstance(value, int | float):
        return f"{value:,.1f} s" if value < 120 else f"{value / 60:,.0f} min"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
