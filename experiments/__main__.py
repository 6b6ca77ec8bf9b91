"""`python -m experiments NAME`: figures and tables of the paper, by name."""

import os
import shlex
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

# Before torch is loaded: threads that wait by spinning keep each other from what they wait for.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import typer

from evgp._errors import DatasetError, EvgpWarning
from evgp.cli import _options as options
from evgp.cli._output import fail, guarded, lines, note, prepare_streams, show, show_json, tell
from experiments.named import NAMES, study_named
from experiments.progress import watched
from experiments.record import claims_of, read_record
from experiments.runner import RESULTS, Reproduced
from experiments.runner import reproduce as run
from experiments.store import CELLS, Store
from experiments.study import SCALES

Name = Annotated[
    str | None,
    typer.Argument(metavar="NAME", help="The study; --list names all.", show_default=False),
]
Listed = Annotated[bool, typer.Option("--list", help="List the studies.")]
ScaleName = Annotated[
    str,
    typer.Option(
        "--scale",
        metavar="SCALE",
        help="smoke: seconds, to see that it runs; laptop: an hour or two on two cores; "
        "paper: everything, days.",
    ),
]
Out = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="FOLDER",
        help="Rows and figures go to a folder of the study's name in here; what is finished here "
        "is not run again.",
    ),
]
DrawOnly = Annotated[bool, typer.Option("--draw", help="Run nothing; draw what is finished.")]
Packed = Annotated[
    bool, typer.Option("--pack", help="Put finished cells into one table a study; run nothing.")
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", metavar="N", min=1, help="Processes at once; else as cores and memory allow."
    ),
]
app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@app.command()
@guarded
def reproduce(
    name: Name = None,
    *,
    listed: Listed = False,
    scale: ScaleName = "laptop",
    out: Out = Path(RESULTS),
    draw: DrawOnly = False,
    jobs: Jobs = None,
    pack: Packed = False,
    json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Run a study of the paper, and say of each of its claims whether our rows agree.

    Rows go to rows.csv, figures are drawn from them alone, and how they were made is in study.json.
    A run that was stopped goes on where it was; studies in one folder share what they have in
    common. Only a smoke run gives way to one of another scale. Datasets are looked for in
    $EVGP_DATA.

    \b
    Examples:
      python -m experiments --list
      python -m experiments model-selection --scale smoke --out /tmp/results
      python -m experiments variance-correlation --draw
    """
    if listed:
        _list(json)
        return
    if pack:
        tell(f"{Store(out).pack()} cells put into tables in {out / CELLS}")
        return
    if name is None:
        raise DatasetError(f"expected a study among {', '.join(NAMES)}; got none")
    wanted = next((one for one in SCALES if one == scale), None)
    if wanted is None:
        raise DatasetError(f"expected --scale among {', '.join(SCALES)}; got {scale!r}")
    begun = perf_counter()
    try:
        with watched(quiet) as watch, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("ignore")
            warnings.simplefilter("default", EvgpWarning)
            made = run(
                name,
                scale=wanted,
                out=out,
                jobs=jobs,
                draw_only=draw,
                command=shlex.join(["python", "-m", "experiments", *sys.argv[1:]]),
                watch=watch,
            )
    except KeyboardInterrupt:
        fail(f"stopped; finished cells in {out} are kept, the same command goes on", code=130)
    note(list(dict.fromkeys(str(one.message) for one in caught)), quiet=quiet)
    record = read_record(made.folder) or {}
    _show(made, record, json)
    if not quiet:
        if record.get("departures"):
            tell(f"where it departs from the paper: {record['departures']}")
        tell(f"wrote {made.folder} in {perf_counter() - begun:,.0f} s")


def _list(json: bool) -> None:
    studies = [study_named(one) for one in NAMES]
    table = {
        "study": [one.name for one in studies],
        "paper": [one.paper for one in studies],
        "shows": [one.title for one in studies],
    }
    if json:
        show_json({"studies": lines(table)})
    else:
        show(table)


def _show(made: Reproduced, record: Mapping[str, Any], json: bool) -> None:
    claims, caution = claims_of(made.study, made.folder), _caution(record)
    if json:
        facts = {name: record.get(name) for name in ("scale", "cells", "finished")}
        show_json(
            {
                "study": made.study.name, **facts, "caution": caution,
                "claims": [vars(one) for one in claims],
            }
        )  # fmt: skip
        return
    show(
        {
            "claim": [one.paper for one in claims],
            "ours": [one.ours for one in claims],
            "verdict": ["; ".join(filter(None, [one.verdict, caution])) for one in claims],
        }
    )


def _caution(record: Mapping[str, Any]) -> str:
    """Why verdicts say less than they seem to: not all has run, or only to see that it does."""
    done, cells = record.get("finished"), record.get("cells")
    part = f"{done} of {cells} cells" if done != cells else ""
    smoke = "smoke sizes, which say nothing of the paper" if record.get("scale") == "smoke" else ""
    return ", ".join(filter(None, [part, smoke]))


if __name__ == "__main__":
    prepare_streams()
    app(prog_name="python -m experiments")
