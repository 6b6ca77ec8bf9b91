"""Options for reading a pool, and the names of columns and files in them."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypedDict

from evgp._checks import flag, integer, keep, one_of, word, words
from evgp._defaults import MAX_CATEGORIES
from evgp.datasets.scaling import scale_of


class Written(TypedDict):
    """How CSV files are written; whatever is None is recognised."""

    delimiter: str | None
    decimal: str | None
    encoding: str | None
    dates: str | None


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Options for reading a pool.

    `column` is the only column used as features; `id`, `drop` and `costs` name columns that are not
    features. With `impute`, missing values are filled with the mean of a numeric column or the most
    frequent value of a categorical one. `delimiter`, `decimal`, `encoding` and `dates` are for CSV
    files and recognised by default, `array` names an array of an .npz file, and `image_size` is for
    folders of images. `text` names columns of text, and `embed` is what turns these, or images,
    into vectors.

    The others describe the inputs of the network: with `fixed` they have a fixed shape, so constant
    columns of an array stay (as zeros); with `channels_first` they are images; integers of shapes
    for which `looks_up` returns True are not scaled.
    """

    id: str | None = None
    column: str | None = None
    drop: str | Sequence[str] = ()
    costs: str | None = None
    impute: bool = False
    max_categories: int = MAX_CATEGORIES
    scale: str | None = "auto"
    text: str | Sequence[str] = ()
    embed: object = None
    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    dates: str | None = None
    array: str | None = None
    image_size: int | None = None
    fixed: bool = False
    channels_first: bool = False
    looks_up: Callable[[tuple[int, ...]], bool] | None = None

    def __post_init__(self) -> None:
        for name in ("id", "column", "costs", "delimiter", "decimal", "encoding", "array"):
            if getattr(self, name) is not None:
                word(getattr(self, name), name)
        if self.dates is not None:
            one_of(self.dates, "dates", ("day-first", "month-first"))
        flag(self.impute, "impute")
        keep(
            self,
            drop=words(self.drop, "drop") if self.drop != () else (),
            text=words(self.text, "text") if self.text != () else (),
            # The inputs of a user's network are scaled by column, or by channel.
            scale="columns" if self.fixed and self.scale == "auto" else scale_of(self.scale),
            max_categories=integer(self.max_categories, "max_categories", 1),
        )

    def array_of(self, path: Path, other: object) -> str | None:
        """Return the array's name, unless `array` is meant for the `other` file, an archive."""
        archives = [isinstance(p, Path) and p.suffix.lower() == ".npz" for p in (path, other)]
        return None if archives == [False, True] else self.array

    def flattens(self, shape: tuple[int, ...]) -> bool:
        """Whether the axes of rows of this shape become one, so that columns are scaled."""
        return len(shape) > 1 and not self.fixed and self.scale not in (None, "columns")

    @property
    def dialect(self) -> "Written":
        """How CSV files are written, as far as options say so."""
        return Written(
            delimiter=self.delimiter, decimal=self.decimal, encoding=self.encoding, dates=self.dates
        )

    def given(self) -> dict[str, object]:
        """Return the options that were given, as arguments of `evgp.read_pool`."""
        names = ("id", "column", "drop", "costs", "impute", "max_categories")
        more = ("delimiter", "decimal", "encoding", "dates", "array")
        values = {name: getattr(self, name) for name in (*names, *more)}
        unset = (None, (), False)
        arguments = {name: value for name, value in values.items() if value not in unset}
        if arguments["max_categories"] == MAX_CATEGORIES:
            del arguments["max_categories"]
        return arguments | ({"drop": [*self.drop]} if self.drop else {})

    def of_columns(self) -> list[str]:
        """Return the options in use that apply to columns only."""
        named = ("id", "column", "drop", "costs", "impute", "text")
        return [f"{name}=" for name in named if getattr(self, name)]


# The options that a user gives; the others are asked by the network.
READING = tuple(
    part.name
    for part in fields(ReadOptions)
    if part.name not in ("fixed", "channels_first", "looks_up")
)


def split_all(names: Sequence[str]) -> tuple[str, ...]:
    """Split names of columns that are not known yet: a comma may be part of a name."""
    return tuple(dict.fromkeys((*names, *split(names, ()))))


def split(names: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Split comma-separated names, unless the whole text is a known name itself.

    >>> split(["a, b", "c,d"], known=["a", "b", "c,d"])
    ('a', 'b', 'c,d')
    """
    parts = (
        [name] if name in known else [part.strip() for part in name.split(",") if part.strip()]
        for name in names
    )
    return tuple(dict.fromkeys(name for part in parts for name in part))


def address(path: str | Path) -> str | None:
    """Restore the address that a path was before pathlib merged its slashes; None if it was none.

    >>> address(Path("s3://bucket/pool")), address(Path("pool.parquet"))
    ('s3://bucket/pool', None)
    """
    match = re.fullmatch(r"([a-z][a-z0-9+.-]+):/+(.*)", str(path))
    if match is None or Path(path).exists():
        return None
    return f"{match[1]}://{'/' if match[1] == 'file' else ''}{match[2]}"
