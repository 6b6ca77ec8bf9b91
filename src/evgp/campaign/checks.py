"""What people may say, and call themselves."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any
from unicodedata import normalize

from evgp._errors import CampaignError
from evgp.campaign.events import Value
from evgp.nets import mlp

_LONGEST = 200
_FARTHEST = 1e100  # so that sums of squares are finite


def checked_classes(classes: Sequence[str], number: bool) -> tuple[str, ...]:
    """Two different classes at least, or none where a number is asked for."""
    names = tuple(checked_name(normalize("NFC", one), "a class") for one in classes)
    if number == bool(names):
        raise CampaignError(
            "expected classes (such as spam,ham), or number=True for a regression; got "
            + ("both" if number else "neither")
        )
    if names and (len(names) < 2 or len(set(names)) < len(names)):
        raise CampaignError(f"expected two different classes at least, got {', '.join(names)}")
    return names


def check_network(settings: Mapping[str, Any]) -> None:
    """Refuse arguments of `evgp.mlp` of which no network can be built."""
    try:
        mlp(**settings)
    except TypeError as error:
        raise CampaignError(f"expected arguments of evgp.mlp as network, got {error}") from error


def checked_name(text: str, what: str) -> str:
    """A name on one line, its spaces made single.

    >>> checked_name("  Ann   Lee ", "a person")
    'Ann Lee'
    """
    made = " ".join(str(text).split())
    if not made or len(made) > _LONGEST or not made.isprintable():
        raise CampaignError(
            f"expected {what} of 1 to {_LONGEST} printable letters, got {str(text)[:40]!r}"
        )
    return made


def checked_person(text: str) -> str:
    """The name of a person, the same whichever way its accents are encoded.

    >>> checked_person("Zoe\u0308") == checked_person("Zo\u00eb")
    True
    """
    return checked_name(normalize("NFC", str(text)), "the name of a person")


def checked_value(value: Value | None, classes: Sequence[str]) -> Value:
    """One of the classes, or a finite number where there are none."""
    if classes:
        known = {normalize("NFC", one): one for one in classes}
        found_class = known.get(normalize("NFC", str(value)))
        if found_class is None:
            raise CampaignError(
                f"expected a label among {', '.join(classes)}; got {value!r}; check the spelling"
            )
        return found_class
    try:
        if isinstance(value, str) and ("_" in value or not value.isascii()):
            raise ValueError  # Python would read 1_5 as 15
        found = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError) as error:
        raise CampaignError(f"expected a number as label, got {value!r}") from error
    if not isfinite(found):
        raise CampaignError(f"expected a finite number as label, got {value!r}")
    if abs(found) > _FARTHEST:
        raise CampaignError(
            f"expected a number from -{_FARTHEST:g} to {_FARTHEST:g} as label, got {found:g}; "
            "check its exponent, or give all labels in a larger unit"
        )
    return found
