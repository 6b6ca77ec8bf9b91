"""`evgp look`: show the columns of a table, how they would be used, and what is odd."""

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from evgp._defaults import MAX_CATEGORIES
from evgp.cli import _options as options
from evgp.cli._output import flags, guarded, in_flags, note, show, show_json, tell, works

_File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="Table to examine, in any format that `evgp pick` reads; - is standard input.",
        show_default=False,
    ),
]


@guarded
def look(
    file: _File,
    *,
    id: options.Id = None,
    drop: options.Drop = None,
    max_categories: options.MaxCategories = MAX_CATEGORIES,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    dates: options.Dates = None,
    json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Show each column of a table: its type, how it would be used, and what is odd.

    Lists all problems, and a command that works despite them. The exit code is 0 even if the
    table has problems.

    \b
    Examples:
      evgp look pool.csv
      evgp look pool.xlsx --id customer --json
    """
    from evgp.datasets import look as look_at

    how: dict[str, Any] = {"id": id, "drop": [*(drop or ())], "delimiter": delimiter}
    how |= {"decimal": decimal, "encoding": encoding, "dates": dates}
    report = look_at(str(file), max_categories=max_categories, **how)
    if json:
        show_json(asdict(report))
        return
    columns = report.columns
    show(
        {
            "column": [column.name for column in columns],
            "type": [column.type for column in columns],
            "use": [column.use for column in columns],
            "missing": [column.missing for column in columns],
            "distinct": ["" if column.distinct is None else column.distinct for column in columns],
            "example": [column.example for column in columns],
            "odd": [in_flags("; ".join(column.odd)) for column in columns],
        }
    )
    note([in_flags(text) for text in report.notes], quiet=quiet)
    for problem in report.problems:
        tell(f"problem: {in_flags(problem.words)}")
    tell(str(report).partition("\n")[0])
    if report.options is None:
        tell("no column can be used")
        return
    if max_categories != MAX_CATEGORIES:
        how["max_categories"] = str(max_categories)
    chosen = {name: value for name, value in {**how, **report.options}.items() if value}
    works(" ".join(filter(None, [f"evgp pick {shlex.quote(str(file))} -k 10", flags(chosen)])))
