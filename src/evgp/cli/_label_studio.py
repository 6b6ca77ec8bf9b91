"""Options for Label Studio that several commands share, and tasks as a file."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evgp.cli._output import tell
from evgp.errors import CampaignError

if TYPE_CHECKING:
    from evgp.labelling.campaign import Campaign

ForLabelStudio = Annotated[
    bool, typer.Option("--label-studio", help="For Label Studio; see docs/label-studio.md.")
]
ImagesAt = Annotated[
    str | None,
    typer.Option(
        "--images",
        metavar="PREFIX",
        help="Address of the images, to which their names are appended. Without it the tasks "
        "contain the images, at most 1,024 pixels wide and high.",
    ),
]


def write_tasks(campaign: "Campaign", output: Path, *, images: str | None, quiet: bool) -> None:
    """Write the waiting picks as tasks, and next to them the label config."""
    from evgp.datasets import check_writable, write_text, written
    from evgp.labelling.label_studio.config import label_config, layout_of
    from evgp.labelling.label_studio.tasks import tasks_of, waiting

    config = output.with_suffix(".xml")
    check_writable(output, (".json",))
    check_writable(config, (".xml",))
    check_images(campaign, images)
    items = waiting(campaign)
    if not items:
        raise CampaignError(
            "no picks are waiting for a label; pick some with evgp campaign next "
            f"{campaign.path.stem}"
        )
    tasks = tasks_of(campaign, items, images=images)
    with written(config, label_config(campaign.created.classes, layout_of(campaign)) + "\n"):
        write_text(output, json.dumps(tasks, ensure_ascii=False, indent=1) + "\n")
    if not quiet:
        tell(f"{len(tasks):,} tasks written to {output}, the label config to {config}")


def check_images(campaign: "Campaign", images: str | None) -> None:
    """Raise if --images is given for a table."""
    if images is not None and campaign.source.images is None:
        raise CampaignError("--images is for folders of images; this pool is a table")
