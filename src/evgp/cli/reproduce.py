"""`evgp reproduce`: figures and tables of the paper, by name."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from evgp._errors import DatasetError, EvgpWarning
from evgp.cli import _options as options
from evgp.cli._cells import watched
from evgp.cli._output import called, fail, guarded, lines, note, show, show_json, tell

Name = Annotated[
    str | None,
    typer.Argument(metavar="NAME", help="The study; --list tells all.", show_default=False),
]
Listed = Annotated[bool, typer.Option("--list", help="Tell which studies there are.")]
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
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", metavar="N", min=1, help="Processes at once; else as cores and memory allow."
    ),
]


@guarded
def reproduce(
    name: Name = None,
    *,
    listed: Listed = False,
    scale: ScaleName = "laptop",
    out: Out = Path("studies"),
    draw: DrawOnly = False,
    jobs: Jobs = None,
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
      evgp reproduce --list
      evgp reproduce model-selection --scale smoke --out /tmp/studies
      evgp reproduce variance-correlation --draw
    """
    from evgp.studies import NAMES, SCALES, claims_of, study_named
    from evgp.studies import reproduce as run
    from evgp.studies.record import read_record

    if listed or name is None:
        if not listed:
            raise DatasetError(f"expected a study among {', '.join(NAMES)}; got none")
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
        return
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
                command=called(),
                watch=watch,
            )
    except KeyboardInterrupt:
        fail(f"stopped; finished cells in {out} are kept, the same command goes on", code=130)
    note(list(dict.fromkeys(str(one.message) for one in caught)), quiet=quiet)
    claims = claims_of(made.study, made.folder)
    record = read_record(made.folder) or {}
    caution = _caution(record)
    if json:
        told = {name: record.get(name) for name in ("scale", "cells", "finished")}
        show_json(
            {
                "study": made.study.name, **told, "caution": caution,
                "claims": [vars(one) for one in claims],
            }
        )  # fmt: skip
    else:
        show(
            {
                "claim": [one.paper for one in claims],
                "ours": [one.ours for one in claims],
                "verdict": ["; ".join(filter(None, [one.verdict, caution])) for one in claims],
            }
        )
    if not quiet:
        if record.get("departures"):
            tell(f"where it departs from the paper: {record['departures']}")
        tell(f"wrote {made.folder} in {perf_counter() - begun:,.0f} s")


def _caution(record: Mapping[str, Any]) -> str:
    """Why verdicts say less than they seem to: not all has run, or only to see that it does."""
    done, cells = record.get("finished"), record.get("cells")
    part = f"{done} of {cells} cells" if done != cells else ""
    smoke = "smoke sizes, which say nothing of the paper" if record.get("scale") == "smoke" else ""
    return ", ".join(filter(None, [part, smoke]))
