"""Errors and warnings that this package raises on purpose: classes, fields, and sentences.

The classes at the top say what it is about (the pool, a network, a campaign); those below say
what is wrong, with fields, and word it once. `BadArgument.of(NetworkError)` is both.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any, TypeVar

__all__ = [
    "BadArgument",
    "CampaignError",
    "CannotWrite",
    "Conflict",
    "DamageWarning",
    "DamagedFile",
    "DataWarning",
    "DatasetError",
    "Detailed",
    "DiskFull",
    "DoesNotFit",
    "DuplicateNames",
    "EmbedderError",
    "EmptyFile",
    "EvgpError",
    "EvgpWarning",
    "ExecutorError",
    "MemoryPlanError",
    "MissingColumn",
    "MissingFile",
    "MissingValues",
    "NetworkError",
    "NoRoom",
    "NotFinite",
    "NotFiniteGain",
    "NotNumbers",
    "NotNumeric",
    "NotPositiveDefinite",
    "NumericalWarning",
    "PluginError",
    "PoolError",
    "RaggedRow",
    "RowsOutOfRange",
    "SeveralTexts",
    "Stopped",
    "TableProblems",
    "TooFewRows",
    "TooManyCategories",
    "UnknownName",
    "UnreadableFile",
    "UnusableColumn",
    "WrongCount",
    "WrongEnding",
    "WrongFormat",
    "WrongShape",
]


class EvgpError(Exception):
    """Base class of all errors that this package raises on purpose."""


class PoolError(EvgpError, ValueError):
    """A pool, or an argument for it, cannot be used."""


class NetworkError(EvgpError, ValueError):
    """A network was described in a way that cannot be built or propagated."""


class PluginError(EvgpError, ValueError):
    """An object that another package offers by name cannot be used."""


class EmbedderError(EvgpError, ValueError):
    """Texts or images cannot be turned into vectors as requested."""


class DatasetError(EvgpError, ValueError):
    """A file or table cannot be read as a pool."""


class DamagedFile(DatasetError):
    """A file that this package wrote is not as it was written: its path, and what is wrong."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(path, why)
        self.path, self.why = path, why

    def __str__(self) -> str:
        return f"{self.path}: expected the file as it was written, but {self.why}; run again"


class DiskFull(EvgpError, OSError):
    """There is no room for a file; the message names it."""


class MemoryPlanError(EvgpError, MemoryError):
    """The run would not fit in memory; the message says what would."""


class NotPositiveDefinite(EvgpError, ArithmeticError):
    """A covariance matrix could not be factorised, even with jitter."""


class ExecutorError(EvgpError, RuntimeError):
    """The executor cannot continue."""


class CampaignError(EvgpError, ValueError):
    """A campaign cannot be opened, or cannot take what it was given."""


class Conflict(CampaignError):
    """The same key was used for something else."""


class NoRoom(CampaignError, DiskFull):
    """The disk is full; nothing that was acknowledged is lost."""


class EvgpWarning(UserWarning):
    """Base class of all warnings of this package."""


class NumericalWarning(EvgpWarning):
    """A numerical rescue happened; the message says how large it was."""


class DataWarning(EvgpWarning):
    """Something in the data looks unlike what was meant."""


class DamageWarning(EvgpWarning):
    """A file that this package wrote was damaged; the message says what was done about it."""


T = TypeVar("T", bound=EvgpError)


class Detailed(EvgpError):
    """An error with fields, from which its sentence is made; copies and pickles keep them."""

    _kind: type[EvgpError] | None = None

    @classmethod
    def of(cls: type[T], kind: type[EvgpError]) -> type[T]:
        """The same error, caught by `except kind` too.

        >>> error = BadArgument.of(NetworkError)("width", "as an integer from 1", "0")
        >>> isinstance(error, NetworkError), error.argument, str(error)
        (True, 'width', 'expected width as an integer from 1, got 0')
        """
        return cls if issubclass(cls, kind) else _both(cls, kind)  # type: ignore[arg-type]

    def __str__(self) -> str:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        cls = type(self) if self._kind is None else type(self).__bases__[0]
        return _restored, (cls, self._kind, vars(self))


@cache
def _both(cls: type[Any], kind: type[EvgpError]) -> Any:
    return type(cls.__name__, (cls, kind), {"__module__": cls.__module__, "_kind": kind})


def _restored(cls: type[Detailed], kind: type[EvgpError] | None, fields: dict[str, Any]) -> Any:
    whole = cls if kind is None else cls.of(kind)
    error = whole.__new__(whole)
    error.__dict__.update(fields)
    return error


_PARENTHESES = re.compile(r"\([^()]*\)")


def sentence(expected: str, got: object, advice: str = "", source: str = "") -> str:
    """Word an error: where, what was expected, what came, what to do.

    >>> sentence("a column 'price'", "'a', 'b'", source="pool.csv")
    "pool.csv: expected a column 'price', got 'a', 'b'"
    >>> sentence("k as an integer from 1 to 40, the rows of the pool", 0, "take fewer")
    'expected k as an integer from 1 to 40, the rows of the pool; got 0; take fewer'
    """
    where = f"{source}: " if source else ""
    mark = ";" if ", " in _PARENTHESES.sub("", expected) else ","
    return f"{where}expected {expected}{mark} got {got}" + (f"; {advice}" if advice else "")


def quoted(names: Sequence[str], most: int = 8, letters: int = 40) -> str:
    """The first few names of a list, each cut if it is long.

    >>> quoted(["a", "b" * 99])
    "'a', 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb...'"
    """
    short = [name if len(name) <= letters else f"{name[:letters]}..." for name in names[:most]]
    return ", ".join(map(repr, short)) + (
        f" and {len(names) - most} more" if len(names) > most else ""
    )


def either(choices: Sequence[str]) -> str:
    """Join choices with commas and a final `or`.

    >>> either((".csv", ".tsv", ".parquet"))
    '.csv, .tsv or .parquet'
    """
    return ", ".join(choices[:-1]) + " or " + choices[-1] if len(choices) > 1 else choices[0]


def size(count: float) -> str:
    """Format a number of bytes.

    >>> size(1_500_000_000), size(73_700)
    ('1.5 GB', '73.7 kB')
    """
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= scale:
            return f"{count / scale:,.1f} {unit}"
    return f"{count / 1e3:.1f} kB"


def _near(name: str, choices: Sequence[str]) -> str | None:
    """The choice that was probably meant, ignoring case."""
    folded = {choice.casefold(): choice for choice in reversed(choices)}
    matches = get_close_matches(name.casefold(), folded, 1, cutoff=0.7)
    return folded[matches[0]] if matches else None


@dataclass(eq=False, repr=False)
class BadArgument(Detailed, ValueError):
    """An argument has the wrong type, or is out of bounds."""

    argument: str
    expected: str  # such as `as an integer from 1 to 40`
    got: str
    advice: str = ""

    def __str__(self) -> str:
        return sentence(f"{self.argument} {self.expected}", self.got, self.advice)


@dataclass(eq=False, repr=False)
class UnknownName(Detailed, ValueError):
    """A name is unknown."""

    argument: str
    value: str
    choices: tuple[str, ...]
    others: str = ""  # what else is possible
    advice: str = ""

    @property
    def suggestion(self) -> str | None:
        """The choice that was probably meant."""
        return _near(self.value, self.choices)

    def __str__(self) -> str:
        others = f", {self.others}" if self.others else ""
        hint = f"; did you mean {self.suggestion!r}?" if self.suggestion else ""
        known = ", ".join(self.choices) + others
        more = f"; {self.advice}" if self.advice else ""
        got = quoted([self.value], letters=80)
        return f"expected {self.argument} among {known}; got {got}{hint}{more}"


@dataclass(eq=False, repr=False)
class WrongShape(Detailed, ValueError):
    """An array has the wrong shape."""

    argument: str
    expected: str
    got: tuple[int, ...]
    advice: str = ""

    def __str__(self) -> str:
        got = f"{self.got}" if "shape" in self.expected else f"shape {self.got}"
        return sentence(f"{self.argument} {self.expected}", got, self.advice)


@dataclass(eq=False, repr=False)
class WrongCount(Detailed, ValueError):
    """The number of something is wrong."""

    what: str
    expected: int
    got: int
    each: str = ""  # such as `one for each row of x`

    def __str__(self) -> str:
        each = f", {self.each}" if self.each else ""
        return sentence(f"{self.expected:,} {self.what}{each}", f"{self.got:,}")


@dataclass(eq=False, repr=False)
class NotFinite(Detailed, ValueError):
    """Numbers are NaN or infinite: how many, in which rows first, and in which column first."""

    argument: str
    count: int
    rows: tuple[int, ...]
    column: int
    advice: str = "drop or impute them"

    def __str__(self) -> str:
        first = ", ".join(map(str, self.rows[:3]))
        where = f"first rows {first}; first column {self.column}"
        got = f"{self.count:,} NaN or inf ({where})"
        return sentence(f"finite numbers in {self.argument}", got, self.advice)


@dataclass(eq=False, repr=False)
class NotFiniteGain(Detailed, PluginError):
    """A criterion gave a gain that is NaN or infinite, before pick number `step`."""

    criterion: str
    gain: float
    row: int
    step: int
    in_pool: bool = False  # else `row` counts candidates

    def __str__(self) -> str:
        got = f"{self.gain} for row {self.row} at pick {self.step}"
        return sentence(f"finite gains from the criterion {self.criterion}", got, "fix it")


@dataclass(eq=False, repr=False)
class NotNumbers(Detailed, PoolError, TypeError):
    """The pool has non-numeric values; also a TypeError, as scikit-learn's checks require."""

    argument: str
    got: str
    advice: str = "encode words and dates first"

    def __str__(self) -> str:
        return sentence(f"numbers in {self.argument}", self.got, self.advice)


@dataclass(eq=False, repr=False)
class RowsOutOfRange(Detailed, PoolError):
    """Row numbers that the pool does not have: how many, and the first of them."""

    argument: str
    rows: int
    count: int
    first: int

    def __str__(self) -> str:
        got = f"{self.count:,} outside (first: {self.first})"
        return sentence(f"{self.argument} from 0 to {self.rows - 1}", got)


@dataclass(eq=False, repr=False)
class TooFewRows(Detailed, DatasetError):
    """There are fewer rows than are needed."""

    source: str
    asked: int
    available: int
    advice: str = ""
    purpose: str = "to choose from"

    def __str__(self) -> str:
        expected = f"at least {self.asked:,} rows {self.purpose}"
        return sentence(expected, f"{self.available:,}", self.advice, self.source)


@dataclass(eq=False, repr=False)
class MissingColumn(Detailed, DatasetError):
    """A table has no column of this name."""

    source: str
    name: str
    columns: tuple[str, ...]

    @property
    def suggestion(self) -> str | None:
        """The column that was perhaps meant."""
        return _near(self.name, self.columns)

    def __str__(self) -> str:
        hint = f"did you mean {self.suggestion!r}?" if self.suggestion else ""
        there = f"the columns are {quoted(self.columns)}" if self.columns else "it has no columns"
        where = f"{self.source}: " if self.source else ""
        return f"{where}no column {self.name!r}; {there}" + (f"; {hint}" if hint else "")


@dataclass(eq=False, repr=False)
class MissingValues(Detailed, DatasetError):
    """Cells without a value: how many in each column, and the first rows."""

    source: str
    columns: Mapping[str, int]
    rows: tuple[int, ...]
    details: str
    advice: str
    expected: str = "a value in each cell"

    def __str__(self) -> str:
        ends = self.details.endswith(")")
        first = ", counting from 0)" if ends else " (rows count from 0)"
        got = self.details.removesuffix(")") + first
        return sentence(self.expected, got, self.advice, self.source)


@dataclass(eq=False, repr=False)
class TableProblems(Detailed, DatasetError):
    """All problems of a table, and the options that solve them."""

    source: str
    problems: tuple[str, ...]  # each with its column, count and first rows
    options: Mapping[str, object]  # as arguments of `evgp.read_pool`; empty if nothing helps
    given: Mapping[str, object]  # the options that were given

    @property
    def call(self) -> str:
        """The call that works."""
        options = {**self.given, **self.options}
        source = self.source if self.source.isidentifier() else repr(self.source)
        words = [f"{name}={value!r}" for name, value in options.items()]
        return f"evgp.read_pool({', '.join([source, *words])})"

    def __str__(self) -> str:
        listed = "; ".join(f"({at}) {text}" for at, text in enumerate(self.problems, 1))
        works = f"; this works: {self.call}" if self.options else "; no column is left to use"
        problems = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        return f"{self.source}: {problems} (rows count from 0): {listed}{works}"


@dataclass(eq=False, repr=False)
class SeveralTexts(Detailed, DatasetError):
    """A table has several columns of free text, and none was chosen."""

    source: str
    columns: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"{self.source}: expected at most one column of free text, got {len(self.columns)} "
            f"({quoted(self.columns)}); choose with text={self.columns[0]!r}, embed them together "
            f"with text={','.join(self.columns)!r}, or leave the others out with drop="
        )


@dataclass(eq=False, repr=False)
class UnusableColumn(Detailed, DatasetError):
    """A column has the wrong content."""

    source: str
    column: str
    expected: str
    got: str
    advice: str = ""

    def __str__(self) -> str:
        expected = f"{self.expected} in column {self.column!r}"
        return sentence(expected, self.got, self.advice, self.source)


@dataclass(eq=False, repr=False)
class NotNumeric(UnusableColumn):
    """A column, or one cell of it, is not a number."""

    row: int | None = None

    def __str__(self) -> str:
        where = "" if self.row is None else f" in row {self.row} (rows count from 0)"
        expected = f"{self.expected} in column {self.column!r}"
        return sentence(expected, f"{self.got}{where}", self.advice, self.source)


@dataclass(eq=False, repr=False)
class TooManyCategories(Detailed, DatasetError):
    """A column of words has more different ones than `max_categories`."""

    source: str
    column: str
    most: int
    got: int
    seen: int | None = None  # rows that were read so far, if not all

    def __str__(self) -> str:
        seen = "" if self.seen is None else f" in {self.seen:,} of the rows"
        advice = f"use drop={self.column!r}, or raise max_categories="
        expected = f"at most {self.most} categories in column {self.column!r}"
        return sentence(expected, f"{self.got:,}{seen}", advice, self.source)


@dataclass(eq=False, repr=False)
class DuplicateNames(Detailed, DatasetError):
    """Names that must be distinct are repeated."""

    source: str
    expected: str
    names: tuple[str, ...]
    advice: str = ""

    def __str__(self) -> str:
        got = f"{quoted(self.names)} more than once"
        return sentence(self.expected, got, self.advice, self.source)


@dataclass(eq=False, repr=False)
class RaggedRow(Detailed, DatasetError):
    """A line of a file has more or fewer cells than the first one."""

    path: str
    line: int | None
    expected: int
    got: int

    def __str__(self) -> str:
        where = "a line" if self.line is None else f"line {self.line:,}"
        return (
            f"{self.path}: expected {self.expected} columns in each line, as in the first, got "
            f"{self.got} in {where}; fix that line, or check the delimiter"
        )


@dataclass(eq=False, repr=False)
class EmptyFile(Detailed, DatasetError):
    """A file without anything in it, or without rows."""

    path: str
    expected: str = "a table"
    got: str = "an empty file"

    def __str__(self) -> str:
        return sentence(self.expected, self.got, source=self.path)


@dataclass(eq=False, repr=False)
class UnreadableFile(Detailed, ValueError):
    """A file cannot be opened or read."""

    path: str
    why: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.why}" + (f"; {self.advice}" if self.advice else "")


@dataclass(eq=False, repr=False)
class MissingFile(UnreadableFile):
    """There is no such file."""

    why: str = "no such file"
    advice: str = "check the path"


@dataclass(eq=False, repr=False)
class WrongFormat(Detailed, ValueError):
    """The content of a file does not fit its name or its place."""

    path: str
    expected: str
    got: str = "one that is cut short, damaged or of another kind"
    advice: str = ""

    def __str__(self) -> str:
        return sentence(self.expected, self.got, self.advice, self.path)


@dataclass(eq=False, repr=False)
class WrongEnding(Detailed, DatasetError):
    """The ending of a file name is not one that can be read, or written."""

    path: str
    endings: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.path}: expected a name ending in {either(self.endings)}"


@dataclass(eq=False, repr=False)
class CannotWrite(Detailed, DatasetError):
    """A file cannot be written, or must not be."""

    path: str
    why: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.why}" + (f"; {self.advice}" if self.advice else "")


@dataclass(eq=False, repr=False)
class DoesNotFit(Detailed, ValueError):
    """Something needs more bytes of memory, or of the disk, than are free."""

    what: str
    needed: int
    available: int
    where: str = "of memory are free"
    advice: str = "take fewer rows or columns"

    def __str__(self) -> str:
        return (
            f"{self.what}: it needs {size(self.needed)}, and {size(self.available)} {self.where}; "
            f"{self.advice}"
        )


@dataclass(eq=False, repr=False)
class Stopped(Detailed, ValueError):
    """Code of another package, found by its name, raised an exception."""

    name: str
    error: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.name} raised {self.error}" + (f"; {self.advice}" if self.advice else "")
