"""`evgp campaign`: `new`, `next`, `label`, `undo`, `status`, `export`, `report`."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evgp._errors import CampaignError
from evgp.cli import _options as options
from evgp.cli._output import called, guarded, progress, show, show_json, tell
from evgp.cli._tasks import ForLabelStudio, ImagesAt, write_tasks

if TYPE_CHECKING:
    from evgp.campaign.events import Answered

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
        help="Table (also .jsonl) with a column of ids (or row, from 0) and one of labels.",
        show_default=False,
    ),
]
Who = Annotated[str, typer.Option("--who", metavar="PERSON", help="Whose answers these are.")]
LabelledAs = Annotated[
    str | None,
    typer.Option(
        "--label", metavar="COLUMN", help="Column of the file with the labels, by default label."
    ),
]
ExportFile = Annotated[
    Path,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        help="Write .csv, .tsv, .jsonl or .parquet; with --label-studio .json.",
    ),
]
PageFile = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        help="Write the page here: .html; by default NAME.html beside the campaign.",
    ),
]


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
      evgp campaign new spam mails.parquet --id key --classes spam,ham
      evgp campaign new prices houses.csv --id house --number
      evgp campaign new birds photos/ --classes sparrow,finch,other
    """
    from evgp.campaign import Campaign
    from evgp.cli._output import left_out

    made = Campaign.create(
        name,
        pool,
        id=id,
        classes=options.parts(classes or ""),
        number=number,
        drop=left_out(pool, drop or ()),
        impute=impute,
        network={"depth": depth, "activation": activation},
        choose_network=choose_network,
        seed=seed,
    )
    if not quiet:
        rows = f"{made.created.rows:,} rows"
        tell(f"{made.path}: {rows}; ask for the first with evgp campaign next {name}")


@guarded
def next(
    name: Name,
    *,
    k: HowMany = 20,
    json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Print the K rows to label now, best first: those that wait, then further picks.

    \b
    Examples:
      evgp campaign next spam -k 50
      evgp campaign next spam -k 50 --json
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
    label: LabelledAs = None,
    delimiter: options.Delimiter = None,
    who: Who = "me",
    quiet: options.Quiet = False,
) -> None:
    """Take labels from FILE: all of it, or nothing; the same file twice is harmless.

    Ids are in the column that the campaign's --id names (or `id`); without one in `row`. A cell
    "skip" or "unsure" says that a person looked and gave none; an empty cell says nothing. Takes
    what evgp campaign export writes, too.

    \b
    Example:
      evgp campaign label spam labels.csv --who ann
    """
    from evgp._reading import opened
    from evgp.campaign import Campaign
    from evgp.campaign.given import read_answers

    campaign = Campaign.open(name)
    given = read_answers(campaign, file, label, delimiter=delimiter)
    with opened(file, CampaignError) as stream:
        content = hashlib.file_digest(stream, "sha256")
    content.update((label or "").encode("utf-8", "surrogateescape"))
    digest = content.hexdigest()[:16]
    made = campaign.answers(
        [answer for _, answer in given], who=who, keys=[f"{who} {digest} {i}" for i, _ in given]
    )
    if not quiet:
        fresh = sum(not one.repeated for one in made)
        known = len(made) - fresh
        taken = f"{fresh} answer{'' if fresh == 1 else 's'} taken"
        tell(
            taken + (f"; {known} {'was' if known == 1 else 'were'} there already" if known else "")
        )


@guarded
def undo(name: Name, *, who: Who = "me", quiet: options.Quiet = False) -> None:
    """Take back the latest answer of a person.

    \b
    Example:
      evgp campaign undo spam --who ann
    """
    from evgp.campaign import Campaign

    campaign = Campaign.open(name)
    taken = campaign.undo(who)
    if not quiet:
        row = campaign.source.names[taken.row]
        left = campaign.state.verdicts.get(taken.row)
        before = None if left is None else left.answers.get(who)
        again = "" if before is None else f"; what {who} said before counts again: {_said(before)}"
        tell(f"taken back: {row}, {_said(taken)} by {who}{again}")


def _said(answer: "Answered") -> str:
    return repr(answer.value) if answer.kind == "label" else str(answer.kind)


@guarded
def status(name: Name, *, json: options.AsJson = False, quiet: options.Quiet = False) -> None:
    """Show how far a campaign is, who did what, and whether more labels will help.

    \b
    Example:
      evgp campaign status spam
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
    told |= {f"answers of {who}": count for who, count in people.items()}
    show({"what": list(told), "count": [str(value) for value in told.values()]})
    if not quiet:
        tell(found.words)


@guarded
def export(
    name: Name,
    *,
    output: ExportFile,
    label_studio: ForLabelStudio = False,
    images: ImagesAt = None,
    quiet: options.Quiet = False,
) -> None:
    """Write the labelled rows with all their columns, and how their labels came to be.

    With --label-studio write the picks that wait instead, as tasks for Label Studio, and beside
    them the label config for its project.

    \b
    Examples:
      evgp campaign export spam -o labelled.parquet
      evgp campaign export spam --label-studio -o tasks.json
    """
    from evgp.campaign import Campaign
    from evgp.campaign import export as write
    from evgp.cli._picked import check_paths

    if label_studio:
        write_tasks(Campaign.open(name), output, images=images, quiet=quiet)
        return
    if images is not None:
        raise CampaignError("expected --images with --label-studio only; leave it out")
    campaign = Campaign.open(name)
    check_paths(output, None, (campaign.pool_path,))
    count = write(campaign, output)
    if not quiet:
        tell(f"{count:,} labelled rows written to {output}")


@guarded
def report(name: Name, *, output: PageFile = None, quiet: options.Quiet = False) -> None:
    """Write a page that shows all picks so far, what people said of them, and what is left.

    \b
    Example:
      evgp campaign report spam -o picks.html
    """
    from evgp.campaign import Campaign
    from evgp.datasets import check_writable, write_text
    from evgp.report import render
    from evgp.report.of_campaign import summarise_campaign

    if output is not None:
        check_writable(output, (".html", ".htm"))
    campaign = Campaign.open(name)
    output = output or campaign.path.with_suffix(".html")
    check_writable(output, (".html", ".htm"))
    write_text(output, render(summarise_campaign(campaign, command=called())))
    if not quiet:
        tell(f"written: {output}")
