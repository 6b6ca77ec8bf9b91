"""`python -m experiments NAME`: figures and tables of the paper, by name."""

import os
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, perf_counter
from typing import Annotated, Any

# Set before torch is loaded: threads that wait by spinning keep each other from working.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import typer

from evgp.cli import _options as options
from evgp.cli._output import fail, guarded, lines, note, prepare_streams, show, show_json, tell
from evgp.comparison.cells import CELLS
from evgp.errors import DatasetError, EvgpWarning
from experiments import worth
from experiments.runner import RESULTS, Reproduced, claims_of, read_record, spoken
from experiments.runner import reproduce as run
from experiments.study import NAMES, SCALES, store_in, study_named

Name = Annotated[
    str | None,
    typer.Argument(metavar="NAME", help="The study; --list names all.", show_default=False),
]
Tables = Annotated[
    Path | None,
    typer.Argument(
        metavar="TABLES",
        help="For the study worth: the folder that python -m experiments.tables wrote.",
        show_default=False,
    ),
]
Seeds = Annotated[
    int, typer.Option("--seeds", metavar="N", min=1, help="Repetitions; for the study worth.")
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
        help="Rows and figures go to a subfolder with the study's name; finished cells are not run "
        "again.",
    ),
]
DrawOnly = Annotated[bool, typer.Option("--draw", help="Run nothing; draw what is finished.")]
Packed = Annotated[
    bool, typer.Option("--pack", help="Pack finished cells into one table per study; run nothing.")
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        metavar="N",
        min=1,
        help="Number of parallel processes; by default as many as cores and memory allow.",
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
    tables: Tables = None,
    *,
    listed: Listed = False,
    scale: ScaleName = "laptop",
    out: Out = Path(RESULTS),
    draw: DrawOnly = False,
    jobs: Jobs = None,
    pack: Packed = False,
    seeds: Seeds = 20,
    json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Run a study of the paper, and report for each of its claims whether our rows agree.

    Rows go to rows.csv, figures are drawn from them alone, and how they were made is in study.json.
    An interrupted run resumes where it stopped; studies in one folder share common cells. Only
    smoke results are replaced by a run at another scale. Datasets are looked for in $EVGP_DATA.

    \b
    Examples:
      python -m experiments --list
      python -m experiments model-selection --scale smoke --out /tmp/results
      python -m experiments variance-correlation --draw
      python -m experiments worth tables/ --seeds 20
    """
    if listed:
        _list(json)
        return
    if name == worth.NAME:
        _worth(tables, seeds, jobs, pack)
        return
    if tables is not None:
        raise DatasetError(f"expected a folder of tables for {worth.NAME} only, got {tables}")
    if pack:
        tell(f"{store_in(out).pack()} cells packed into tables in {out / CELLS}")
        return
    if name is None:
        known = ", ".join((*NAMES, worth.NAME))
        raise DatasetError(f"expected a study among {known}; got none")
    chosen_scale = next((item for item in SCALES if item == scale), None)
    if chosen_scale is None:
        raise DatasetError(f"expected --scale among {', '.join(SCALES)}; got {scale!r}")
    begun = perf_counter()
    try:
        with watched(quiet) as watch, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("ignore")
            warnings.simplefilter("default", EvgpWarning)
            result = run(
                name,
                scale=chosen_scale,
                out=out,
                jobs=jobs,
                draw_only=draw,
                command=shlex.join(["python", "-m", "experiments", *sys.argv[1:]]),
                watch=watch,
            )
    except KeyboardInterrupt:
        fail(f"stopped; finished cells in {out} are kept; run the same command to resume", code=130)
    note(list(dict.fromkeys(str(warning.message) for warning in caught)), quiet=quiet)
    record = read_record(result.folder) or {}
    _show(result, record, json)
    if not quiet:
        if record.get("departures"):
            tell(f"differences from the paper: {record['departures']}")
        tell(f"wrote {result.folder} in {perf_counter() - begun:,.0f} s")


def _worth(tables: Path | None, seeds: int, jobs: int | None, pack: bool) -> None:
    """Run the study of what picks are worth, which is ours and has no figure in the paper."""
    if pack:
        tell(f"{worth.pack()} cells packed into tables in {worth.RESULTS}")
        return
    if tables is None or not tables.is_dir():
        raise DatasetError(
            "expected a folder of tables for the study worth, got "
            f"{'none' if tables is None else tables}; python -m experiments.tables FOLDER writes it"
        )
    worth.run(tables, seeds, jobs or 1)


def _list(json: bool) -> None:
    studies = [study_named(name) for name in NAMES]
    table = {
        "study": [*(study.name for study in studies), worth.NAME],
        "paper": [*(study.paper for study in studies), "ours"],
        "shows": [*(study.title for study in studies), worth.TITLE],
    }
    if json:
        show_json({"studies": lines(table)})
    else:
        show(table)


def _show(result: Reproduced, record: Mapping[str, Any], json: bool) -> None:
    claims, caution = claims_of(result.study, result.folder), _caution(record)
    if json:
        facts = {name: record.get(name) for name in ("scale", "cells", "finished")}
        show_json(
            {
                "study": result.study.name, **facts, "caution": caution,
                "claims": [vars(claim) for claim in claims],
            }
        )  # fmt: skip
        return
    show(
        {
            "claim": [claim.paper for claim in claims],
            "ours": [claim.ours for claim in claims],
            "verdict": ["; ".join(filter(None, [claim.verdict, caution])) for claim in claims],
        }
    )


def _caution(record: Mapping[str, Any]) -> str:
    """Return a caution if verdicts mean little: unfinished cells, or a smoke run."""
    done, cells = record.get("finished"), record.get("cells")
    part = f"{done} of {cells} cells" if done != cells else ""
    smoke = (
        "smoke sizes, which say nothing about the paper" if record.get("scale") == "smoke" else ""
    )
    return ", ".join(filter(None, [part, smoke]))


@contextmanager
def watched(quiet: bool) -> Iterator[Callable[[int, int, float | None], object]]:
    """Show progress: a bar on a terminal, a line per finished cell in a pipe."""
    if quiet:
        yield lambda done, total, left: None
        return
    if not sys.stderr.isatty():
        yield lambda done, total, left: tell(counted(done, total, left))
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, Task, TextColumn
    from rich.progress import Progress as Bar
    from rich.text import Text

    # Cells take minutes, longer than the window from which the bar's own column estimates the pace.
    class Left(ProgressColumn):
        max_refresh = 0.5

        def render(self, task: Task) -> Text:
            until = task.fields["until"]
            return Text("" if until is None else ahead(max(0.0, until - monotonic())))

    parts = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Left())
    with Bar(*parts, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("cells", total=None, until=None)

        def move(done: int, total: int, left: float | None) -> None:
            until = None if left is None else monotonic() + left
            bar.update(task, completed=done, total=total, until=until)

        yield move


def counted(done: int, total: int, left: float | None) -> str:
    """Describe how far a run is.

    >>> counted(12, 36, 1440.0), counted(0, 36, None), counted(36, 36, 0.0)
    ('12 of 36 cells, about 24 min left', '0 of 36 cells', '36 of 36 cells')
    """
    rest = "" if left is None or done == total else f", {ahead(left)}"
    return f"{done:,} of {total:,} cells{rest}"


def ahead(seconds: float) -> str:
    """Describe the time left, in few words.

    >>> ahead(90.0), ahead(0.0)
    ('about 90 s left', 'nearly done')
    """
    return f"about {spoken(seconds)} left" if seconds >= 1 else "nearly done"


if __name__ == "__main__":
    prepare_streams()
    app(prog_name="python -m experiments")
