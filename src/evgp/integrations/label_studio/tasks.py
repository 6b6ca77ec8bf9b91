"""Picks as tasks of Label Studio, in the order of their ranks."""

import base64
from collections.abc import Sequence
from hashlib import sha256
from io import BytesIO
from typing import Any
from urllib.parse import quote

from PIL import Image

from evgp.campaign import Campaign, Item
from evgp.campaign.cards import cells
from evgp.campaign.events import written
from evgp.datasets import Images
from evgp.integrations.label_studio.config import layout_of

ROW, RANK, POOL, CAMPAIGN = "evgp_row_id", "evgp_rank", "evgp_pool", "evgp_campaign"
_SIDE = 1_024  # pixels of the longest side of a picture that travels in its task
_LOSSLESS = 256


def pool_mark(campaign: Campaign) -> str:
    """What tasks carry to say which pool they are of."""
    return campaign.created.checksum[:16]


def campaign_mark(campaign: Campaign) -> str:
    """What tasks carry to say which campaign they are of: there may be several on one pool."""
    first = campaign.log()[0]
    return sha256(f"{first.at} {written(first.event)}".encode()).hexdigest()[:16]


def stranger(campaign: Campaign, pool: object, mark: object) -> str | None:
    """What else tasks with these marks were made from; None where they are of this campaign.

    Tasks of earlier versions have no mark of a campaign: there the pool decides.
    """
    if pool != pool_mark(campaign):
        return "from another pool"
    if mark is not None and mark != campaign_mark(campaign):
        return "for another campaign on the same pool"
    return None


def waiting(campaign: Campaign) -> list[Item]:
    """The picked rows of which nobody has said anything yet, best first."""
    state = campaign.state
    rank = {row: number for number, row in enumerate(state.picked, 1)}
    return [Item(row, campaign.source.names[row], rank[row]) for row in state.pending]


def tasks_of(
    campaign: Campaign, items: Sequence[Item], *, images: str | None = None
) -> list[dict[str, Any]]:
    """Tasks for Label Studio, one an item, in their order.

    A task carries `evgp_row_id` (the row's name), `evgp_rank`, `evgp_pool` and `evgp_campaign`, and
    what people look at: `row` with the short columns, `text_1` ... with the long ones; or `image`,
    a data URI of at most 1,024 pixels on a side, or the address that begins with `images` and ends
    in its name.
    """
    layout = layout_of(campaign)
    marks = {POOL: pool_mark(campaign), CAMPAIGN: campaign_mark(campaign)}
    made = []
    for item in sorted(items, key=lambda one: one.rank):
        data: dict[str, Any] = {ROW: _text(item.name), RANK: item.rank} | marks
        pictures = campaign.source.images
        if pictures is not None:
            data["image"] = (
                data_uri(pictures, item.row) if images is None else images + quote(item.name)
            )
        else:
            card = campaign.source.card(item.row)
            card.pop(campaign.created.id or "", None)
            shown = {cell.name: cell.text for cell in cells(card)}
            for j, name in enumerate(layout.long, 1):
                # Label Studio shows an error where a text is empty.
                data[f"text_{j}"] = shown.pop(name, "") or "–"
            if layout.short:
                data["row"] = {_text(name): text for name, text in shown.items()}
        made.append({"data": data})
    return made


def data_uri(images: Images, row: int) -> str:
    """A picture as text: PNG where it is small, JPEG above 256 pixels; nothing but its pixels."""
    made = images.thumbnail(row, _SIDE)
    bare = Image.new(made.mode, made.size)
    bare.paste(made)  # without what a camera noted about place and time
    kind = "png" if max(made.size) <= _LOSSLESS else "jpeg"
    stream = BytesIO()
    bare.save(stream, kind, **({} if kind == "png" else {"quality": 85}))
    return f"data:image/{kind};base64,{base64.b64encode(stream.getvalue()).decode()}"


def _text(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
