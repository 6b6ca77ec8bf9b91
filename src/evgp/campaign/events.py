"""What can happen in a campaign. Nothing else changes it, and nothing that happened is removed."""

import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from math import isfinite
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
_ARRAY = re.compile(r"[0-9a-f]{32}\.npy")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LISTS = ("rows", "gains", "left", "classes")


def written(event: Event) -> str:
    """One line of JSON; equal events are equal lines.

    >>> written(Undone(3, "ann"))
    '{"of":3,"who":"ann"}'
    """
    line = json.dumps(asdict(event), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    # The name of a pool may not be UTF-8: Python has surrogates there, which JSON can escape.
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", line)


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
        whole = _CHECKS[type(made)](made)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise CampaignError(f"expected an event of a campaign, got {name}: {body[:80]}") from error
    if not whole or not isinstance(made, Created | Picked | Answered | Undone):
        raise CampaignError(f"expected an event of a campaign, got {name}: {body[:80]}")
    return made


def _is_created(one: Created) -> bool:
    """Whether all that it says is of the right kind: a file may hold anything."""
    settings = one.settings
    texts = [one.pool, one.checksum, one.array, *one.classes, *settings["drop"]]
    return (
        all(isinstance(text, str) for text in (*texts, one.id or ""))
        and isinstance(one.classes, tuple)
        and _ARRAY.fullmatch(one.array) is not None
        and "\0" not in one.pool
        and _is_row(one.rows)
        and isinstance(settings["drop"], list)
        and isinstance(settings["network"], dict)
        and all(isinstance(settings[key], bool) for key in ("impute", "choose_network"))
        and _is_row(settings["seed"])
    )


def _is_picked(one: Picked) -> bool:
    numbers = (*one.gains, *one.left, one.start, one.prior)
    return (
        all(isinstance(part, tuple) for part in (one.rows, one.gains, one.left))
        and all(map(_is_row, one.rows))
        and len(one.rows) == len(one.gains) == len(one.left)
        and all(isinstance(number, float) and isfinite(number) for number in numbers)
        and one.prior > 0
        and isinstance(one.network, str)
    )


def _is_answered(one: Answered) -> bool:
    said = isinstance(one.value, str) or (isinstance(one.value, float) and isfinite(one.value))
    return (
        _is_row(one.row)
        and _is_person(one.who)
        and one.kind in KINDS
        and (said if one.kind == "label" else one.value is None)
    )


def _is_undone(one: Undone) -> bool:
    return _is_row(one.of) and _is_person(one.who)


def _is_row(given: object) -> bool:
    return type(given) is int and given >= 0


def _is_person(given: object) -> bool:
    return isinstance(given, str) and given != "" and given.isprintable()


_CHECKS: dict[type, Callable[[Any], bool]] = {
    Created: _is_created, Picked: _is_picked, Answered: _is_answered, Undone: _is_undone,
}  # fmt: skip
