"""The events of a campaign. Nothing else changes it, and no event is ever removed."""

import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from math import isfinite
from typing import Any, ClassVar, Literal, TypeAlias
from unicodedata import normalize

from evgp.datasets.scaling import SCALES
from evgp.errors import CampaignError

Value: TypeAlias = str | float
Kind: TypeAlias = Literal["label", "skip", "unsure"]
# Options of `evgp.read_pool` that settings contain if they were given.
_WORDS = ("column", "costs", "embed", "delimiter", "decimal", "encoding", "dates", "array")
_COUNTS = ("max_categories", "image_size")
READING = ("text", *_COUNTS, *_WORDS)
KINDS: tuple[Kind, ...] = ("label", "skip", "unsure")


@dataclass(frozen=True)
class Created:
    """The pool, and what people label with: one of `classes`, or a number if there are none.

    `pool` is its path relative to the campaign file, `checksum` that of its content. `array` is the
    name of the file with the encoded rows, a hash of them. `settings` say how picks are made.
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
    """An answer of a person for a row: a label, "skip", or "unsure"."""

    name: ClassVar[str] = "answered"
    row: int
    who: str
    kind: Kind
    value: Value | None = None


@dataclass(frozen=True)
class Undone:
    """A person undoes an answer of theirs; `of` is its number."""

    name: ClassVar[str] = "undone"
    of: int
    who: str


Event: TypeAlias = Created | Picked | Answered | Undone
_KINDS: dict[str, Any] = {kind.name: kind for kind in (Created, Picked, Answered, Undone)}
_ARRAY = re.compile(r"[0-9a-f]{32}\.npy")
_TUPLES = ("rows", "gains", "left", "classes")


def to_json(event: Event) -> str:
    """One line of JSON; equal events give equal lines.

    >>> to_json(Undone(3, "ann"))
    '{"of":3,"who":"ann"}'
    """
    line = json.dumps(asdict(event), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    # Bytes of a file name that are not UTF-8 become JSON escapes.
    return line.encode("utf-8", "backslashreplace").decode()


def normalised(event: Event) -> Event:
    """The event with its person's name in one Unicode form, as accents can be encoded in two.

    >>> normalised(Undone(3, "Zoe\u0308")) == Undone(3, "Zo\u00eb")
    True
    """
    if isinstance(event, Answered | Undone):
        return replace(event, who=normalize("NFC", event.who))
    return event


def from_json(name: str, body: str) -> Event:
    """The event of a line of JSON; the file may contain anything, so all of it is checked."""
    try:
        fields = {
            key: tuple(value) if key in _TUPLES and isinstance(value, list) else value
            for key, value in json.loads(body).items()
        }
        event = _KINDS[name](**fields)
        valid = _CHECKS[type(event)](event)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise CampaignError(f"expected an event of a campaign, got {name}: {body[:80]}") from error
    if not valid or not isinstance(event, Created | Picked | Answered | Undone):
        raise CampaignError(f"expected an event of a campaign, got {name}: {body[:80]}")
    return event


def _is_created(event: Created) -> bool:
    settings = event.settings
    texts = [event.pool, event.checksum, event.array, *event.classes, *settings["drop"]]
    return (
        all(isinstance(text, str) for text in (*texts, event.id or ""))
        and isinstance(event.classes, tuple)
        and _ARRAY.fullmatch(event.array) is not None
        and "\0" not in event.pool
        and _is_row(event.rows)
        and isinstance(settings["drop"], list)
        and isinstance(settings["network"], dict)
        and all(isinstance(settings[key], bool) for key in ("impute", "choose_network"))
        and settings.get("scale", "columns") in (None, *SCALES)
        and all(isinstance(settings.get(key, ""), str) for key in (*_WORDS, "features", "weights"))
        and all(isinstance(n, str) for key in ("text", "show") for n in settings.get(key, []))
        and all(_is_row(settings.get(key, 1)) for key in (*_COUNTS, "thin"))
        and all(map(_is_row, settings.get("without_text", [])))
        and isinstance(settings.get("budget", 1), int | float)
        and _is_test(settings.get("test", ["", "", 0]))
        and _is_row(settings["seed"])
    )


def _is_test(test: object) -> bool:
    """A path, the name of an array, and the number of its rows."""
    if not isinstance(test, list) or len(test) != 3:
        return False
    return isinstance(test[0], str) and isinstance(test[1], str) and _is_row(test[2])


def _is_picked(event: Picked) -> bool:
    numbers = (*event.gains, *event.left, event.start, event.prior)
    return (
        all(isinstance(part, tuple) for part in (event.rows, event.gains, event.left))
        and all(map(_is_row, event.rows))
        and len(event.rows) == len(event.gains) == len(event.left)
        and all(isinstance(number, float) and isfinite(number) for number in numbers)
        and event.prior > 0
        and isinstance(event.network, str)
    )


def _is_answered(event: Answered) -> bool:
    labelled = isinstance(event.value, str) or (
        isinstance(event.value, float) and isfinite(event.value)
    )
    return (
        _is_row(event.row)
        and _is_person(event.who)
        and event.kind in KINDS
        and (labelled if event.kind == "label" else event.value is None)
    )


def _is_undone(event: Undone) -> bool:
    return _is_row(event.of) and _is_person(event.who)


def _is_row(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_person(value: object) -> bool:
    return isinstance(value, str) and value != "" and value.isprintable()


_CHECKS: dict[type, Callable[[Any], bool]] = {
    Created: _is_created, Picked: _is_picked, Answered: _is_answered, Undone: _is_undone,
}  # fmt: skip
