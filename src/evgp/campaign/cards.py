"""A row as a person reads it: names and text, never anything but text."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan
from typing import Literal

LONG = 60  # letters, from which on a text gets the whole width
_MOST_LETTERS = 20_000
_MOST_CELLS = 300


@dataclass(frozen=True)
class CardCell:
    """One column of a row."""

    name: str
    text: str
    kind: Literal["number", "short", "long", "missing"]


def cells(card: Mapping[str, object]) -> list[CardCell]:
    """The columns of a row, long texts first, at most 300 of them.

    >>> [(cell.text, cell.kind) for cell in cells({"a": 0.1 + 0.2, "b": None, "c": "=1+2"})]
    [('0.3', 'number'), ('', 'missing'), ('=1+2', 'short')]
    """
    made = [_cell(str(name), value) for name, value in list(card.items())[:_MOST_CELLS]]
    ordered = sorted(made, key=lambda cell: cell.kind != "long")
    left = len(card) - len(made)
    return ordered + ([CardCell("…", f"and {left:,} more columns", "short")] if left > 0 else [])


def _cell(name: str, value: object) -> CardCell:
    if value is None or (isinstance(value, float) and isnan(value)):
        return CardCell(name, "", "missing")
    if isinstance(value, bool):
        return CardCell(name, "yes" if value else "no", "short")
    if isinstance(value, int):
        return CardCell(name, str(value), "number")
    if isinstance(value, float):
        return CardCell(name, f"{value:.7g}", "number")
    if isinstance(value, bytes):
        return CardCell(name, f"{len(value):,} bytes", "short")
    text = str(value).encode("utf-8", "replace").decode()
    if len(text) > _MOST_LETTERS:
        text = f"{text[:_MOST_LETTERS]} … ({len(text) - _MOST_LETTERS:,} more letters)"
    return CardCell(name, text, "long" if len(text) > LONG or "\n" in text else "short")
