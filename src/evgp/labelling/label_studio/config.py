"""The label config of a campaign: what people see in Label Studio."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

import pyarrow as pa
import pyarrow.compute as pc

from evgp.datasets import Table, plain
from evgp.errors import CampaignError, WrongFormat
from evgp.labelling.campaign import Campaign
from evgp.labelling.campaign.source import LONG

CONTROL = "label"
DOUBT = "doubt"
CANNOT_TELL = "cannot tell"
_MAX_TEXTS = 20


@dataclass(frozen=True)
class Layout:
    """How a row is shown: as an image, or its long texts one by one and the rest as a table."""

    image: bool = False
    long: tuple[str, ...] = ()
    short: bool = True


def layout_of(campaign: Campaign) -> Layout:
    """The layout of a campaign's pool, the same in every round. O(cells of text)."""
    source = campaign.source
    if source.table is None:
        return Layout(image=True)
    table, names = source.table, campaign.shown
    long = tuple(name for name in names if _is_long(table, name))[:_MAX_TEXTS]
    return Layout(long=long, short=not long or len(names) > len(long))


def label_config(classes: Sequence[str], layout: Layout) -> str:
    """The label config: classes to choose from, or a number if there are none.

    >>> print(label_config(["spam", "ham"], Layout(long=("body",))))
    <View>
      <Header value="body"/>
      <Text name="text_1" value="$text_1"/>
      <Table name="row" value="$row"/>
      <Choices name="label" toName="row" choice="single" required="true" showInline="true">
        <Choice value="spam"/>
        <Choice value="ham"/>
        <Choice value="cannot tell"/>
      </Choices>
    </View>
    """
    lines = ["<View>"]
    for j, name in enumerate(layout.long, 1):
        # Label Studio reads a value that starts with $ as the name of a field.
        title = f"column {name}" if name.startswith("$") else name
        lines += [f"  <Header value={_quoted(title)}/>"]
        lines += [f'  <Text name="text_{j}" value="$text_{j}"/>']
    if layout.image:
        lines += ['  <Image name="row" value="$image" zoom="true" zoomControl="true"/>']
    elif layout.short:
        lines += ['  <Table name="row" value="$row"/>']
    shown = "row" if layout.image or layout.short else "text_1"
    choice = "single" if len(classes) < 10 else "single-radio"
    if classes:
        choices = [*classes, *([] if CANNOT_TELL in classes else [CANNOT_TELL])]
        lines += [
            f'  <Choices name="{CONTROL}" toName="{shown}" choice="{choice}" required="true" '
            'showInline="true">',
            *(f"    <Choice value={_quoted(name)}/>" for name in choices),
            "  </Choices>",
        ]
    else:
        lines += [
            f'  <Number name="{CONTROL}" toName="{shown}"/>',
            f'  <Choices name="{DOUBT}" toName="{shown}" choice="single">',
            f"    <Choice value={_quoted(CANNOT_TELL)}/>",
            "  </Choices>",
        ]
    return "\n".join([*lines, "</View>"])


def check_config(config: object, classes: Sequence[str], where: str) -> None:
    """Raise if a campaign could not record the answers of a label config; a team may add to ours.

    >>> check_config("<View><Rating name='stars' toName='row'/></View>", ["a", "b"], "project 3")
    Traceback (most recent call last):
    ...
    evgp.errors.WrongFormat: project 3: expected a control <Choices name="label"> in its label \
config, got none; use the config that evgp exports for Label Studio, or another project=
    """
    tag = "Choices" if classes else "Number"
    fix = "use the config that evgp exports for Label Studio, or another project="
    try:
        root = ElementTree.fromstring(str(config))
    except (ElementTree.ParseError, ValueError) as error:
        raise WrongFormat.of(CampaignError)(
            str(where), "a label config in XML", repr(str(config)[:40]), str(fix)
        ) from error
    controls = [part for part in root.iter() if part.get("name") == CONTROL and part.get("toName")]
    if not controls or controls[0].tag != tag:
        got = f"<{controls[0].tag}>" if controls else "none"
        raise WrongFormat.of(CampaignError)(
            where, f'a control <{tag} name="{CONTROL}"> in its label config', got, fix
        )
    offered = [choice.get("alias") or choice.get("value") for choice in controls[0].iter("Choice")]
    unknown = [name for name in offered if name not in (*classes, CANNOT_TELL)]
    if unknown:
        raise WrongFormat.of(CampaignError)(
            where,
            f"the classes {', '.join(classes)} in its label config",
            f"{unknown[0]!r} too",
            fix,
        )


def _is_long(table: Table, name: str) -> bool:
    column = plain(table.column(name))
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return False
    lengths, lines = pc.utf8_length(column), pc.match_substring_regex(column, r"[\r\n]")
    return (pc.max(lengths).as_py() or 0) > LONG or bool(pc.any(lines).as_py())


def printable(text: str) -> str:
    """Text with unprintable characters replaced, safe in messages and XML.

    >>> printable("line\\nline")
    'line\ufffdline'
    """
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def _quoted(text: str) -> str:
    """Text as an XML attribute."""
    return quoteattr(printable(text), {'"': "&quot;"})
