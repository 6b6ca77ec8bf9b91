"""What can happen in a campaign. Nothing else changes it, and nothing that happened is removed."""

import json
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias
from unicodedata import normalize

from evgp._errors import CampaignError

Value: TypeAlias = str | float
Kind: TypeAlias = Literal["label", "skip", "unsure"]
KINDS: tuple[Kind, ...] = ("label", "skip", "unsure")


@dataclass(frozen=True)
class Created:
    """The pool, and what is asked of people: one of `classes`, or a number where there are none.

    `pool` is the way to the file from the campaign's, `checksum` of its content; `array` names the
    file of encoded rows by their content. `settings` say how picks are made.
    """

    name: ClassVar[str] = "created"
    pool: str
    checksum: str
    array: str
    rows: int
    id: str | None
    classes: tuple[str, ...]
    settings: dict[str, Any]


@dataclass(frozen=True)
class Picked:
    """A batch of rows to label, best first, with the mean variance left after each."""

    name: ClassVar[str] = "picked"
    rows: tuple[int, ...]
    gains: tuple[float, ...]
    left: tuple[float, ...]
    start: float
    prior: float
    network: str


@dataclass(frozen=True)
class Answered:
    """What a person said of a row: a label, or that it was skipped, or that they cannot tell."""

    name: ClassVar[str] = "answered"
    row: int
    who: str
    kind: Kind
    value: Value | None = None


@dataclass(frozen=True)
class Undone:
    """A person takes an answer of theirs back; `of` is its number."""

    name: ClassVar[str] = "undone"
    of: int
    who: str


Event: TypeAlias = Created | Picked | Answered | Undone
_KNOWN: dict[str, Any] = {one.name: one for one in (Created, Picked, Answered, Undone)}
_LISTS = ("rows", "gains", "left", "classes")


def written(event: Event) -> str:
    """One line of JSON; equal events are equal lines.

    >>> written(Undone(3, "ann"))
    '{"of":3,"who":"ann"}'
    """
    return json.dumps(asdict(event), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def composed(event: Event) -> Event:
    """The event with the name of its person in one spelling, as accents can be encoded in two.

    >>> composed(Undone(3, "Zoe\u0308")) == Undone(3, "Zo\u00eb")
    True
    """
    if isinstance(event, Answered | Undone):
        return replace(event, who=normalize("NFC", event.who))
    return event


def read(name: str, body: str) -> Event:
    """The event of a line."""
    try:
        told = json.loads(body)
        found = {
            key: tuple(value) if key in _LISTS and isinstance(value, list) else value
            for key, value in told.items()
        }
        made = _KNOWN[name](**found)
    except (KeyError, TypeError, ValueError) as error:
        raise CampaignError(f"expected an event of a campaign, got {name}: {body[:80]}") from error
    assert isinstance(made, Created | Picked | Answered | Undone)
    return made
