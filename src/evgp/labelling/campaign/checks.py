"""Checks of labels, class names, and names of people."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any
from unicodedata import normalize

from evgp.errors import BadArgument, CampaignError, UnknownName
from evgp.labelling.campaign.events import Value
from evgp.selection.request import Model

_MAX_LENGTH = 200
_MAX_NUMBER = 1e100  # so that sums of squares are finite


def checked_classes(classes: Sequence[str], number: bool) -> tuple[str, ...]:
    """At least two different classes, or none for a campaign that asks for numbers."""
    names = tuple(checked_name(normalize("NFC", name), "a class") for name in classes)
    if number == bool(names):
        raise CampaignError(
            "expected either classes= (such as spam,ham) or number=True for a regression, got "
            + ("both" if number else "neither")
        )
    if names and (len(names) < 2 or len(set(names)) < len(names)):
        raise CampaignError(f"expected at least two different classes, got {', '.join(names)}")
    return names


def model_of(
    network: str | Mapping[str, Any] | None, kernel: str | None = None, choose: bool = False
) -> Model:
    """The network of a campaign, from its name or its settings."""
    settings = {"network": network} if isinstance(network, str) else dict(network or {})
    try:
        model = Model(**settings | ({} if kernel is None else {"kernel": kernel}))
    except TypeError as error:
        raise CampaignError(f"expected the name of a network, or its settings; {error}") from error
    if choose and {*model.changed()} & {"network", "kernel"}:
        raise CampaignError("expected choose_network with an mlp, got another network or kernel")
    return model


def checked_name(text: str, what: str) -> str:
    """A name on one line, with single spaces.

    >>> checked_name("  Ann   Lee ", "a person")
    'Ann Lee'
    """
    name = " ".join(str(text).split())
    if not name or len(name) > _MAX_LENGTH or not name.isprintable():
        raise CampaignError(
            f"expected {what} of 1 to {_MAX_LENGTH} printable characters, got {str(text)[:40]!r}"
        )
    return name


def checked_person(text: str) -> str:
    """The name of a person, the same however its accents are encoded.

    >>> checked_person("Zoe\u0308") == checked_person("Zo\u00eb")
    True
    """
    return checked_name(normalize("NFC", str(text)), "the name of a person")


def checked_value(value: Value | None, classes: Sequence[str]) -> Value:
    """One of the classes, or a finite number if there are none."""
    if classes:
        known = {normalize("NFC", name): name for name in classes}
        name = known.get(normalize("NFC", str(value)))
        if name is None:
            if isinstance(value, str):
                raise UnknownName.of(CampaignError)("a label", value, tuple(classes))
            among = f"among {', '.join(classes)}"
            raise BadArgument.of(CampaignError)("a label", among, repr(value))
        return name
    try:
        if isinstance(value, str) and ("_" in value or not value.isascii()):
            raise ValueError  # Python would read 1_5 as 15
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError) as error:
        raise CampaignError(f"expected a number as label, got {value!r}") from error
    if not isfinite(number):
        raise CampaignError(f"expected a finite number as label, got {value!r}")
    if abs(number) > _MAX_NUMBER:
        raise CampaignError(
            f"expected a label from -{_MAX_NUMBER:g} to {_MAX_NUMBER:g}, got {number:g}; "
            "check its exponent, or use a larger unit for all labels"
        )
    return number
