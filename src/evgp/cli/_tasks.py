"""Options about Label Studio that several commands share, and tasks as a file."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evgp._errors import CampaignError
from evgp.cli._output import tell

if TYPE_CHECKING:
    from evgp.campaign import Campaign

ForLabelStudio = Annotated[
    bool, typer.Option("--label-studio", help="For Label Studio; see docs/label-studio.md.")
]
ImagesAt = Annotated[
    str | None,
    typer.Option(
        "--images",
        metavar="PREFIX",
        help="Where Label Studio finds the images: an address, to which their names are added. "
        "Without it they travel in the tasks, at most 1,024 pixels wide and high.",
    ),
]


def write_tasks(campaign: "Campaign", output: Path, *, images: str | None, quiet: bool) -> None:
    """Write the picks that wait, and beside them the label config."""
    from evgp.datasets import check_writable, write_text, written
    from evgp.integrations.label_studio.config import label_config, layout_of
    from evgp.integrations.label_studio.tasks import tasks_of, waiting

    config = output.with_suffix(".xml")
    check_writable(output, (".json",))
    check_writable(config, (".xml",))
    check_images(campaign, images)
    items = waiting(campaign)
    if not items:
        raise CampaignError(
            f"expected picks that wait for a label, got none; ask for some with evgp campaign next "
            f"{campaign.path.stem}"
        )
    tasks = tasks_of(campaign, items, images=images)
    with written(config, label_config(campaign.created.classes, layout_of(campaign)) + "\n"):
        write_text(output, json.dumps(tasks, ensure_ascii=False, indent=1) + "\n")
    if not quiet:
        tell(f"{len(tasks):,} tasks written to {output}, the label config to {config}")


def check_images(campaign: "Campaign", images: str | None) -> None:
    """Refuse --images where there are none."""
    if images is not None and campaign.source.images is None:
        raise CampaignError("expected --images for a folder of images only, got a table")
