"""`evgp campaign`: `new`, `next`, `label`, `undo`, `status`, `export`, `report`."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evgp.cli import _options as options
from evgp.cli._label_studio import ForLabelStudio, ImagesAt, write_tasks
from evgp.cli._output import called, guarded, in_flags, note, noted, progress, show, show_json, tell
from evgp.errors import CampaignError

if TYPE_CHECKING:
    from evgp.labelling.campaign.events import Answered

_OF_MODEL = (
    "network", "weights", "unit", "draws", "kernel", "depth", "activation", "w_std", "b_std",
)  # fmt: skip
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
    typer.Option("--classes", metavar="NAMES", help="Classes to choose from, separated by commas."),
]
Number = Annotated[bool, typer.Option("--number", help="People enter a number (regression).")]
ChooseNetwork = Annotated[
    bool,
    typer.Option("--choose-network", help="Let the labels so far choose the network (EV-GP+MS)."),
]
Shown = Annotated[
    list[str] | None,
    options.option(
        "--show",
        "COLUMN",
        "Column that people see; repeat the option, or separate several names with commas. All by "
        "default.",
    ),
]
HowMany = Annotated[int, typer.Option("-k", metavar="N", min=1, help="Number of rows.")]
LabelFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="Table or .jsonl with a column of ids (or row numbers, from 0) and one of labels.",
        show_default=False,
    ),
]
Who = Annotated[
    str, typer.Option("--who", metavar="PERSON", help="Name of the person who answers.")
]
LabelledAs = Annotated[
    str | None,
    typer.Option(
        "--label", metavar="COLUMN", help="Column of FILE with the labels; default label."
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
        help="Write the page here (.html); default NAME.html next to the campaign.",
    ),
]


@guarded
@options.with_shared_options
def new(
    name: Name,
    pool: CampaignPool,
    *,
    classes: Classes = None,
    number: Number = False,
    show: Shown = None,
    choose_network: ChooseNetwork = False,
    quiet: options.Quiet = False,
    **shared: Any,
) -> None:
    """Create a campaign: people label what EV-GP picks from POOL, round after round.

    Everything is stored in one file, NAME.evgp, with the encoded pool next to it. POOL itself stays
    where it is and must not change. Options that `evgp pick` has too mean the same here, and hold
    for all rounds.

    \b
    Examples:
      evgp campaign new spam mails.parquet --id key --classes spam,ham
      evgp campaign new spam mails.csv --id key --text subject,body --show body --classes spam,ham
      evgp campaign new prices houses.csv --id house --number
      evgp campaign new birds photos/ --classes sparrow,finch,other
    """
    from evgp.cli._picked import model_of
    from evgp.datasets.scaling import described
    from evgp.labelling.campaign import Campaign

    model = model_of(shared).changed()
    shared |= {part: shared[part] or () for part in ("drop", "text")}
    arguments = {part: value for part, value in shared.items() if part not in _OF_MODEL}
    arguments["x_test"] = arguments.pop("test")
    campaign, notes = noted(
        lambda: Campaign.create(
            name, pool, classes=options.parts(classes or ""), number=number, show=show or (),
            choose_network=choose_network, network=model, **arguments,
        )
    )  # fmt: skip
    note([*notes, *map(in_flags, campaign.notes)], quiet=quiet)
    if not quiet:
        rows, scale = f"{campaign.created.rows:,} rows", campaign.created.settings["scaled"]
        tell(
            f"{campaign.path}: {rows}. Scale: {described(scale)}. Pick the first with evgp "
            f"campaign next {name}"
        )


@guarded
def next(
    name: Name,
    *,
    k: HowMany = 20,
    json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Print the next K rows to label, best first: waiting ones, then new picks.

    \b
    Examples:
      evgp campaign next spam -k 50
      evgp campaign next spam -k 50 --json
    """
    from evgp.labelling.campaign import Campaign

    campaign = Campaign.open(name)
    with progress(quiet) as bar:
        items = campaign.next(k, progress=bar)
    prices = campaign.costs
    if json:
        cards = [{**vars(item), "card": campaign.source.card(item.row)} for item in items]
        show_json({"campaign": str(campaign.path), "items": cards})
    else:
        show(
            {
                "rank": [item.rank for item in items],
                "id": [item.name for item in items],
                "row": [item.row for item in items],
                **({} if prices is None else {"cost": [prices[item.row] for item in items]}),
            }
        )
    if not quiet and len(items) < k:
        dear = "" if prices is None else ", or too expensive for a round"
        tell(f"only {len(items)} of {k} rows: all others are labelled or skipped{dear}")


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
    """Record the labels in FILE.

    All of them are recorded, or none; repeating the same file is harmless. Rows are identified by
    the campaign's --id column (or `id`), or by number in the column `row`. "skip" or "unsure" in
    place of a label records that a person gave none; empty cells are ignored. Reads files that evgp
    campaign export wrote, too.

    \b
    Example:
      evgp campaign label spam labels.csv --who ann
    """
    from evgp._reading import opened
    from evgp.labelling.campaign import Campaign
    from evgp.labelling.campaign.files import read_answers

    campaign = Campaign.open(name)
    answers = read_answers(campaign, file, label, delimiter=delimiter)
    with opened(file, CampaignError) as stream:
        content = hashlib.file_digest(stream, "sha256")
    content.update((label or "").encode("utf-8", "surrogateescape"))
    digest = content.hexdigest()[:16]
    receipts = campaign.answers(
        [answer for _, answer in answers],
        who=who,
        keys=[f"{who} {digest} {line}" for line, _ in answers],
    )
    if not quiet:
        new = sum(not receipt.repeated for receipt in receipts)
        known = len(receipts) - new
        known_too = f"; {known} {'was' if known == 1 else 'were'} known" if known else ""
        tell(f"{new} new answer{'' if new == 1 else 's'} recorded{known_too}")


@guarded
def undo(name: Name, *, who: Who = "me", quiet: options.Quiet = False) -> None:
    """Undo the latest answer of a person.

    \b
    Example:
      evgp campaign undo spam --who ann
    """
    from evgp.labelling.campaign import Campaign

    campaign = Campaign.open(name)
    undone = campaign.undo(who)
    if not quiet:
        row = campaign.source.names[undone.row]
        verdict = campaign.state.verdicts.get(undone.row)
        before = None if verdict is None else verdict.answers.get(who)
        again = (
            "" if before is None else f"; the earlier answer of {who} counts again: {_text(before)}"
        )
        tell(f"undone: {row}, {_text(undone)} by {who}{again}")


def _text(answer: "Answered") -> str:
    return repr(answer.value) if answer.kind == "label" else str(answer.kind)


@guarded
def status(name: Name, *, json: options.AsJson = False, quiet: options.Quiet = False) -> None:
    """Show the progress of a campaign, and whether more labels will help.

    \b
    Example:
      evgp campaign status spam
    """
    from evgp.labelling.campaign import Campaign
    from evgp.labelling.campaign.estimates import hint

    campaign = Campaign.open(name)
    state, advice = campaign.state, hint(campaign)
    people: dict[str, int] = {}
    for answer in state.standing.values():
        people[answer.who] = people.get(answer.who, 0) + 1
    counts: dict[str, Any] = {
        "rows": state.created.rows,
        "rounds": len(state.rounds),
        "labelled": len(state.labels),
        "waiting": len(state.pending),
        "skipped or unsure": len(state.passed),
        "disputed": sum(verdict.disputed for verdict in state.verdicts.values()),
        "network": state.rounds[-1].network if state.rounds else "given",
    }
    if json:
        show_json({**counts, "people": people, "hint": {**vars(advice), "words": advice.words}})
        return
    counts |= {f"answers of {who}": count for who, count in people.items()}
    show({"what": list(counts), "count": [str(value) for value in counts.values()]})
    if not quiet:
        tell(advice.words)


@guarded
def export(
    name: Name,
    *,
    output: ExportFile,
    label_studio: ForLabelStudio = False,
    images: ImagesAt = None,
    quiet: options.Quiet = False,
) -> None:
    """Write the labelled rows to a file.

    It has all their columns, their labels, and the number of answers. With --label-studio, write
    the waiting picks instead, as tasks for Label Studio, and next to them the label config for its
    project.

    \b
    Examples:
      evgp campaign export spam -o labelled.parquet
      evgp campaign export spam --label-studio -o tasks.json
    """
    from evgp.cli._picked import check_paths
    from evgp.labelling.campaign import Campaign
    from evgp.labelling.campaign import export as write

    if label_studio:
        write_tasks(Campaign.open(name), output, images=images, quiet=quiet)
        return
    if images is not None:
        raise CampaignError("--images works only with --label-studio; leave it out")
    campaign = Campaign.open(name)
    check_paths(output, None, (campaign.pool_path,))
    count = write(campaign, output)
    if not quiet:
        tell(f"{count:,} labelled rows written to {output}")


@guarded
def report(name: Name, *, output: PageFile = None, quiet: options.Quiet = False) -> None:
    """Write an HTML page with all picks so far, their answers, and the variance left.

    \b
    Example:
      evgp campaign report spam -o picks.html
    """
    from evgp.datasets import check_writable, write_text
    from evgp.labelling.campaign import Campaign
    from evgp.labelling.campaign.report import summarise_campaign
    from evgp.report import render

    if output is not None:
        check_writable(output, (".html", ".htm"))
    campaign = Campaign.open(name)
    output = output or campaign.path.with_suffix(".html")
    check_writable(output, (".html", ".htm"))
    write_text(output, render(summarise_campaign(campaign, command=called())))
    if not quiet:
        tell(f"written: {output}")
