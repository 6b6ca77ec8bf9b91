"""What people see in Label Studio: the label config of a campaign."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

import pyarrow as pa
import pyarrow.compute as pc

from evgp._errors import CampaignError
from evgp.campaign import Campaign
from evgp.campaign.cards import LONG
from evgp.datasets import Table, plain

CONTROL = "label"
DOUBT = "doubt"
CANNOT_TELL = "cannot tell"
_MOST_TEXTS = 20


@dataclass(frozen=True)
class Layout:
    """How a row is shown: as a picture; or its long texts one by one, and the rest as a table."""

    image: bool = False
    long: tuple[str, ...] = ()
    short: bool = True


def layout_of(campaign: Campaign) -> Layout:
    """The layout of a campaign's pool, the same in every round. O(cells of text)."""
    source = campaign.source
    if source.table is None:
        return Layout(image=True)
    table, id = source.table, campaign.created.id
    names = [name for name in table.names if name != id]
    long = tuple(name for name in names if _is_long(table, name))[:_MOST_TEXTS]
    return Layout(long=long, short=not long or len(names) > len(long))


def label_config(classes: Sequence[str], layout: Layout) -> str:
    """The label config: classes to choose from, or a number where there are none.

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
        # A word in front, where Label Studio would take the name for that of a field.
        title = f"column {name}" if name.startswith("$") else name
        lines += [f"  <Header value={_quoted(title)}/>"]
        lines += [f'  <Text name="text_{j}" value="$text_{j}"/>']
    if layout.image:
        lines += ['  <Image name="row" value="$image" zoom="true" zoomControl="true"/>']
    elif layout.short:
        lines += ['  <Table name="row" value="$row"/>']
    shown = "row" if layout.image or layout.short else "text_1"
    many = "single" if len(classes) < 10 else "single-radio"
    if classes:
        choices = [*classes, *([] if CANNOT_TELL in classes else [CANNOT_TELL])]
        lines += [
            f'  <Choices name="{CONTROL}" toName="{shown}" choice="{many}" required="true" '
            'showInline="true">',
            *(f"    <Choice value={_quoted(one)}/>" for one in choices),
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
    """Refuse a label config whose answers a campaign could not take; a team may add to ours.

    >>> check_config("<View><Rating name='stars' toName='row'/></View>", ["a", "b"], "project 3")
    Traceback (most recent call last):
    ...
    evgp._errors.CampaignError: project 3: expected a control <Choices name="label"> in its label \
config, got none; take the config of evgp campaign export --label-studio, or another --project
    """
    wanted = "Choices" if classes else "Number"
    fix = "take the config of evgp campaign export --label-studio, or another --project"
    try:
        root = ElementTree.fromstring(str(config))
    except (ElementTree.ParseError, ValueError) as error:
        raise CampaignError(
            f"{where}: expected a label config in XML, got {str(config)[:40]!r}; {fix}"
        ) from error
    found = [one for one in root.iter() if one.get("name") == CONTROL and one.get("toName")]
    if not found or found[0].tag != wanted:
        got = f"<{found[0].tag}>" if found else "none"
        raise CampaignError(
            f'{where}: expected a control <{wanted} name="{CONTROL}"> in its label config, got '
            f"{got}; {fix}"
        )
    offered = [one.get("alias") or one.get("value") for one in found[0].iter("Choice")]
    strange = [one for one in offered if one not in (*classes, CANNOT_TELL)]
    if strange:
        raise CampaignError(
            f"{where}: expected the classes {', '.join(classes)} in its label config, got "
            f"{strange[0]!r} too; {fix}"
        )


def _is_long(table: Table, name: str) -> bool:
    column = plain(table.column(name))
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return False
    lengths, lines = pc.utf8_length(column), pc.match_substring_regex(column, r"[\r\n]")
    return (pc.max(lengths).as_py() or 0) > LONG or bool(pc.any(lines).as_py())


def printable(text: str) -> str:
    """Text of letters that a sentence and XML can hold.

    >>> printable("line\\nline")
    'line\ufffdline'
    """
    return "".join(one if one.isprintable() else "\ufffd" for one in text)


def _quoted(text: str) -> str:
    """An XML attribute."""
    return quoteattr(printable(text), {'"': "&quot;"})
