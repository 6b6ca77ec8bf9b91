"""What commands share in reading: notes, and columns to leave out."""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from evgp._errors import EvgpWarning
from evgp.cli._output import in_flags
from evgp.datasets import read_table, split

T = TypeVar("T")


def noted(call: Callable[[], T]) -> tuple[T, list[str]]:
    """Call, and take the warnings of this package as notes; those of others are not for users."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    ours = (item for item in caught if issubclass(item.category, EvgpWarning))
    return result, [in_flags(str(item.message)) for item in ours]


def left_out(path: Path, drop: Sequence[str], delimiter: str | None = None) -> tuple[str, ...]:
    """What --drop names in a table, which is read only where a comma may belong to a name."""
    if not (path.is_file() and any("," in name for name in drop)):
        return split(drop, ())
    table, _ = noted(lambda: read_table(path, delimiter=delimiter))
    return split(drop, table.names)
