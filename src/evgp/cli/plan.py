"""`evgp plan`: what a pick would take, before it is made."""

import sys

from evgp.cli._output import guarded, note, progress, show, show_json, tell
from evgp.cli._wanted import PickOptions, wanting


@guarded
@wanting
def plan(wanted: PickOptions) -> None:
    """Say what picking rows of POOL takes on this machine, and how it would be done.

    Takes every option of `evgp pick`, reads the pool, but picks nothing and writes nothing. With
    --budget it plans for as many of the cheapest rows as the money buys.

    \b
    Examples:
      evgp plan pool.csv -k 100
      evgp plan pool.npy -k 1000 --thin 5000 --json
    """
    from evgp.cli._asked import PickCall
    from evgp.cli._output import noted
    from evgp.cli._picked import check_paths
    from evgp.selection.plan import planned

    check_paths(wanted.output, wanted.report, (wanted.pool, wanted.labelled, wanted.test))
    asked = PickCall.of(wanted)
    with progress(wanted.quiet) as bar, asked.reading():
        pool = asked.pool(bar)
        request, notes = noted(lambda: asked.request(pool))
    made, notes = planned(request), [*pool.notes, *notes]
    facts = {**({"columns": pool.used} if pool.used else {}), **made.facts()}
    if wanted.json:
        show_json(facts | {"warnings": notes})
    else:
        told = _readable if sys.stdout.isatty() else lambda _, value: str(value)
        values = [told(name, value) for name, value in facts.items()]
        show({"what": list(facts), "value": values})
    note(notes, quiet=wanted.quiet)
    if not wanted.quiet:
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
