"""`evgp new`, `next`, `label`, `undo`, `status`, `export`: a campaign from the command line."""

import hashlib
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evgp._errors import CampaignError
from evgp.cli import _options as options
from evgp.cli._output import clean, guarded, progress, show, show_json, tell

if TYPE_CHECKING:
    from evgp.campaign import Campaign
    from evgp.campaign.events import Kind, Value

Name = Annotated[
    Path,
    typer.Argument(
        metavar="NAME",
        help="The campaign: NAME.evgp in this folder, or a path.",
        show_default=False,
    ),
]
CampaignPool = Annotated[
    Path,
    typer.Argument(
        metavar="POOL", help="A table, or a folder of images, to label.", show_default=False
    ),
]
Classes = Annotated[
    str | None,
    typer.Option("--classes", metavar="NAMES", help="What people choose from, by commas."),
]
Number = Annotated[bool, typer.Option("--number", help="People give a number (regression).")]
ChooseNetwork = Annotated[
    bool,
    typer.Option("--choose-network", help="Let the labels so far choose the network (EV-GP+MS)."),
]
HowMany = Annotated[int, typer.Option("-k", metavar="N", min=1, help="How many rows.")]
LabelFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="Table with a column of ids (or row, from 0) and one of labels.",
        show_default=False,
    ),
]
Who = Annotated[str, typer.Option("--who", metavar="PERSON", help="Whose answers these are.")]
LabelledAs = Annotated[
    str, typer.Option("--label", metavar="COLUMN", help="Column of the file with the labels.")
]
ExportFile = Annotated[
    Path,
    typer.Option("-o", "--output", metavar="FILE", help="Write .csv, .tsv, .jsonl or .parquet."),
]
PageFile = Annotated[
    Path, typer.Option("-o", "--output", metavar="FILE", help="Write the page here: .html.")
]
_SKIP = {"skip": "skip", "skipped": "skip", "unsure": "unsure", "cannot tell": "unsure"}


@guarded
def new(
    name: Name,
    pool: CampaignPool,
    *,
    id: options.Id = None,
    classes: Classes = None,
    number: Number = False,
    drop: options.Drop = None,
    impute: options.Impute = False,
    depth: options.Depth = 2,
    activation: options.Activation = "relu",
    choose_network: ChooseNetwork = False,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """Begin a campaign: people label what EV-GP picks from POOL, round after round.

    Everything is kept in one file, NAME.evgp, and beside it the encoded pool. POOL itself stays
    where it is and must not change.

    \b
    Examples:
      evgp new spam mails.parquet --id key --classes spam,ham
      evgp new prices houses.csv --id house --number
      evgp new birds photos/ --classes sparrow,finch,other
    """
    from evgp.campaign import Campaign

    made = Campaign.create(
        name,
        pool,
        id=id,
        classes=[one.strip() for one in (classes or "").split(",") if one.strip()],
        number=number,
        drop=[one.strip() for part in drop or () for one in part.split(",")],
        impute=impute,
        network={"depth": depth, "activation": activation},
        choose_network=choose_network,
        seed=seed,
    )
    if not quiet:
        tell(f"{made.path}: {made.created.rows:,} rows; ask for the first with evgp next {name}")


@guarded
def next(
    name: Name,
    *,
    k: HowMany = 20,
    json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Tell the K rows to label now, best first: those that wait, then further picks.

    \b
    Examples:
      evgp next spam -k 50
      evgp next spam -k 50 --json
    """
    from evgp.campaign import Campaign

    campaign = Campaign.open(name)
    with progress(quiet) as bar:
        items = campaign.next(k, progress=bar)
    if json:
        cards = [{**vars(one), "card": campaign.source.card(one.row)} for one in items]
        show_json({"campaign": str(campaign.path), "items": cards})
    else:
        show(
            {
                "rank": [one.rank for one in items],
                "id": [one.name for one in items],
                "row": [one.row for one in items],
            }
        )
    if not quiet and len(items) < k:
        tell(f"{len(items)} of {k}: every other row is labelled or skipped")


@guarded
def label(
    name: Name,
    file: LabelFile,
    *,
    label: LabelledAs = "label",
    who: Who = "me",
    quiet: options.Quiet = False,
) -> None:
    """Take labels from FILE: all of it, or nothing; the same file twice is harmless.

    Ids are in the column that the campaign's --id names (or `id`); without one in `row`. A cell
    "skip" or "unsure" says that a person looked and gave none; an empty cell says nothing.

    \b
    Example:
      evgp label spam labels.csv --who ann
    """
    from evgp.campaign import Campaign

    campaign = Campaign.open(name)
    given = _given(campaign, file, label)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    made = campaign.answers(
        [answer for _, answer in given], who=who, keys=[f"{who} {digest} {i}" for i, _ in given]
    )
    if not quiet:
        fresh = sum(not one.repeated for one in made)
        known = len(made) - fresh
        tell(f"{fresh} answers taken" + (f"; {known} were there already" if known else ""))


@guarded
def undo(name: Name, *, who: Who = "me", quiet: options.Quiet = False) -> None:
    """Take back the latest answer of a person.

    \b
    Example:
      evgp undo spam --who ann
    """
    from evgp.campaign import Campaign

    campaign = Campaign.open(name)
    taken = campaign.undo(who)
    if not quiet:
        what = repr(taken.value) if taken.kind == "label" else taken.kind
        tell(f"taken back: {clean(campaign.source.names[taken.row])} is no longer {what} by {who}")


@guarded
def status(name: Name, *, json: options.AsJson = False, quiet: options.Quiet = False) -> None:
    """Tell how far a campaign is, who did what, and whether more labels will help.

    \b
    Example:
      evgp status spam
    """
    from evgp.campaign import Campaign
    from evgp.campaign.hint import hint

    campaign = Campaign.open(name)
    state, found = campaign.state, hint(campaign)
    people: dict[str, int] = {}
    for one in state.standing.values():
        people[one.who] = people.get(one.who, 0) + 1
    told: dict[str, Any] = {
        "rows": state.created.rows,
        "rounds": len(state.rounds),
        "labelled": len(state.labels),
        "waiting": len(state.pending),
        "skipped or unsure": len(state.passed),
        "disputed": sum(one.disputed for one in state.verdicts.values()),
        "network": state.rounds[-1].network if state.rounds else "given",
    }
    if json:
        show_json({**told, "people": people, "hint": {**vars(found), "words": found.words}})
        return
    told |= {f"answers of {clean(who)}": count for who, count in people.items()}
    show({"what": list(told), "count": [str(value) for value in told.values()]})
    if not quiet:
        tell(found.words)


@guarded
def export(name: Name, *, output: ExportFile, quiet: options.Quiet = False) -> None:
    """Write the labelled rows with all their columns, and how their labels came to be.

    \b
    Example:
      evgp export spam -o labelled.parquet
    """
    from evgp.campaign import Campaign
    from evgp.campaign import export as write

    count = write(Campaign.open(name), output)
    if not quiet:
        tell(f"{count:,} labelled rows written to {output}")


@guarded
def report(name: Name, *, output: PageFile, quiet: options.Quiet = False) -> None:
    """Write a page that shows all picks so far, what people said of them, and what is left.

    \b
    Example:
      evgp report spam -o spam.html
    """
    from evgp.campaign import Campaign
    from evgp.datasets import check_writable, write_text
    from evgp.report import render
    from evgp.report.of_campaign import summarise_campaign

    check_writable(output, (".html", ".htm"))
    campaign = Campaign.open(name)
    command = shlex.join(["evgp", *sys.argv[1:]])
    write_text(output, render(summarise_campaign(campaign, command=command)))
    if not quiet:
        tell(f"written: {output}")


def _given(
    campaign: "Campaign", file: Path, label: str
) -> list[tuple[int, "tuple[int | str, Kind, Value | None]"]]:
    """The answers of a file, each with its line."""
    from evgp.datasets import plain, read_table

    table = read_table(file, text=(label, *(() if campaign.created.id is None else ("id",))))
    known = [one for one in (campaign.created.id, "id", "evgp_id", "row", "evgp_row") if one]
    column = next_of(known, table.names)
    if column is None:
        raise CampaignError(
            f"{file}: expected a column {' or '.join(map(repr, dict.fromkeys(known)))}, got "
            f"{', '.join(table.names)}"
        )
    rows, values = (plain(table.column(one)).to_pylist() for one in (column, label))
    made: list[tuple[int, tuple[int | str, Kind, Value | None]]] = []
    for line, (row, value) in enumerate(zip(rows, values, strict=True)):
        if value is None or str(value).strip() == "":
            continue
        by_number = column in ("row", "evgp_row")
        said = _SKIP.get(str(value).strip().lower())
        at: int | str = _number(file, line, row) if by_number else str(row)
        if said in ("skip", "unsure") and str(value) not in campaign.created.classes:
            made.append((line, (at, said, None)))  # type: ignore[arg-type]
        else:
            made.append((line, (at, "label", str(value))))
    return made


def next_of(wanted: list[str], names: tuple[str, ...]) -> str | None:
    """The first of some names that is there.

    >>> next_of(["key", "id"], ("id", "label"))
    'id'
    """
    return [*(one for one in wanted if one in names), None][0]


def _number(file: Path, line: int, row: object) -> int:
    try:
        return int(str(row))
    except ValueError as error:
        raise CampaignError(
            f"{file}: expected a row number in line {line}, got {row!r} (lines count from 0)"
        ) from error
