"""Picks as tasks for Label Studio, in order of rank."""

import base64
from collections.abc import Sequence
from hashlib import sha256
from io import BytesIO
from typing import Any
from urllib.parse import quote

from evgp.datasets import Images
from evgp.labelling.campaign import Campaign, Item
from evgp.labelling.campaign.events import to_json
from evgp.labelling.campaign.source import cells
from evgp.labelling.label_studio.config import layout_of
from evgp.report.pictures import without_metadata

ROW, RANK, POOL, CAMPAIGN = "evgp_row_id", "evgp_rank", "evgp_pool", "evgp_campaign"
_MAX_SIDE = 1_024  # pixels of the longest side of an image inside a task
_LOSSLESS_SIDE = 256  # pixels


def pool_mark(campaign: Campaign) -> str:
    """Identifies the pool in a task."""
    return campaign.created.checksum[:16]


def campaign_mark(campaign: Campaign) -> str:
    """Identifies the campaign in a task: there may be several on one pool."""
    first = campaign.log()[0]
    return sha256(f"{first.at} {to_json(first.event)}".encode()).hexdigest()[:16]


def foreign_origin(campaign: Campaign, pool: object, mark: object) -> str | None:
    """Where tasks with these marks come from, or None if they are of this campaign.

    Tasks of earlier versions have no campaign mark; for them the pool decides.
    """
    if pool != pool_mark(campaign):
        return "from another pool"
    if mark is not None and mark != campaign_mark(campaign):
        return "for another campaign on the same pool"
    return None


def waiting(campaign: Campaign) -> list[Item]:
    """Picked rows without an answer, best first."""
    state = campaign.state
    rank = {row: number for number, row in enumerate(state.picked, 1)}
    return [Item(row, campaign.source.names[row], rank[row]) for row in state.pending]


def tasks_of(
    campaign: Campaign, items: Sequence[Item], *, images: str | None = None
) -> list[dict[str, Any]]:
    """Tasks for Label Studio, one per item, in order of rank.

    A task has `evgp_row_id` (the row's name), `evgp_rank`, `evgp_pool` and `evgp_campaign`, and
    what people see: `row` with the short columns and `text_1` ... with the long ones, or `image`,
    which is a data URI of at most 1,024 pixels on a side, or a URL that starts with `images` and
    ends with the image's name.
    """
    layout = layout_of(campaign)
    marks = {POOL: pool_mark(campaign), CAMPAIGN: campaign_mark(campaign)}
    tasks = []
    for item in sorted(items, key=lambda item: item.rank):
        data: dict[str, Any] = {ROW: _text(item.name), RANK: item.rank} | marks
        source_images = campaign.source.images
        if source_images is not None:
            data["image"] = (
                data_uri(source_images, item.row) if images is None else images + quote(item.name)
            )
        else:
            shown = {cell.name: cell.text for cell in cells(campaign.card(item.row))}
            for j, name in enumerate(layout.long, 1):
                # Label Studio shows an error for an empty text.
                data[f"text_{j}"] = shown.pop(name, "") or "–"
            if layout.short:
                data["row"] = {_text(name): text for name, text in shown.items()}
        tasks.append({"data": data})
    return tasks


def data_uri(images: Images, row: int) -> str:
    """An image without metadata as a data URI: PNG up to 256 pixels, else JPEG."""
    image = without_metadata(images.thumbnail(row, _MAX_SIDE))
    kind = "png" if max(image.size) <= _LOSSLESS_SIDE else "jpeg"
    stream = BytesIO()
    image.save(stream, kind, **({} if kind == "png" else {"quality": 85}))
    return f"data:image/{kind};base64,{base64.b64encode(stream.getvalue()).decode()}"


def _text(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
