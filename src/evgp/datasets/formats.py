"""Numbers, dates and lists written as text: thousands, percent and currency signs, dd/mm/yyyy."""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from evgp.datasets.columns import counted
from evgp.errors import NotNumeric, quoted

_CURRENCY = r"[$€£¥₹]|USD|EUR|GBP|CHF|JPY|CAD|AUD"
_SIGN = re.compile(rf"\s*[+−-]?\s*({_CURRENCY})|({_CURRENCY}|%)\s*\Z")
# Thousands separators, as a regular expression class; the last one is a space of any width.
_BLANK = "[\\s\u00a0\u202f]"
_THOUSANDS = {"": "", ",": ",", ".": r"\.", "'": "['’]", " ": _BLANK}
_WORDS = {",": "commas", ".": "points", "'": "apostrophes", " ": "spaces"}
_DECIMALS = {".": r"\.", ",": ","}
_FIRST = 50  # number of cells that are tried before the whole column
_DATE = re.compile(r"\s*(\d{4}|\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d{1,2})(?:[ T].*)?\Z")
_ITEM = r"[+-]?(?:\d+\.?\d*|\.\d+|nan|NaN|inf)(?:[eE][+-]?\d+)?"
_TIME = r"(?:[ T]+(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}))?)?"


@dataclass(frozen=True)
class NumberFormat:
    """Numbers with a decimal sign, and optionally a thousands separator and a unit.

    >>> price = NumberFormat(".", ",", "$")
    >>> price.parse(pa.chunked_array([["$1,200.50", "-$3", None]])).to_pylist()
    [1200.5, -3.0, None]
    >>> print(price)
    numbers with '$', thousands commas
    """

    decimal: str
    thousands: str = ""
    sign: str = ""

    def __str__(self) -> str:
        parts = [repr(self.sign)] if self.sign else []
        parts += [f"thousands {_WORDS[self.thousands]}"] if self.thousands else []
        parts += ["decimal commas"] if self.decimal == "," else []
        return f"numbers with {', '.join(parts)}" if parts else "numbers written as text"

    @property
    def pattern(self) -> str:
        """The regular expression that each cell must match."""
        point, sign = _DECIMALS[self.decimal], re.escape(self.sign)
        plain = rf"(?:\d+(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d+)?"
        mark = _THOUSANDS[self.thousands]
        grouped = rf"|[1-9]\d{{0,2}}(?:{mark}\d{{3}})+(?:{point}\d+)?" if mark else ""
        core = rf"[+−-]?{_BLANK}*(?:{plain}{grouped})"
        before = rf"[+−-]?{_BLANK}*{sign}{_BLANK}*{core}"
        signed = rf"(?:{before}|{core}{_BLANK}*{sign})" if self.sign else core
        return rf"^{_BLANK}*{signed}{_BLANK}*$"

    def parse(self, cells: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return float64 cells; all must match the pattern."""
        text = pc.replace_substring_regex(cells, rf"{_BLANK}|\+|{_CURRENCY}|%", "")
        if self.thousands.strip():
            text = pc.replace_substring_regex(text, _THOUSANDS[self.thousands], "")
        text = pc.replace_substring(text, "−", "-")
        return pc.replace_substring(text, self.decimal, ".").cast(pa.float64())


@dataclass(frozen=True)
class DateFormat:
    """Dates of day, month and year in some order, with or without the time of day.

    >>> day_first = DateFormat("dmy", "/")
    >>> day_first.parse(pa.chunked_array([["31/12/2024 8:30"]])).cast(pa.string()).to_pylist()
    ['2024-12-31 08:30:00']
    """

    order: str
    mark: str
    time: bool = True

    def __str__(self) -> str:
        words = {"d": "day", "m": "month", "y": "year"}
        return f"dates as {self.mark.join(words[part] for part in self.order)}"

    @property
    def pattern(self) -> str:
        """The regular expression that each cell must match."""
        digits = {"y": r"(?P<y>\d{4})", "m": r"(?P<m>\d{1,2})", "d": r"(?P<d>\d{1,2})"}
        date = re.escape(self.mark).join(digits[part] for part in self.order)
        return rf"^\s*{date}{_TIME}\s*$"

    def parse(self, cells: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return dates, or times in seconds; `ArrowInvalid` if a day does not exist."""
        parts = pc.extract_regex(cells, self.pattern)
        year, month, day, *clock = (
            pc.struct_field(parts, name) for name in ("y", "m", "d", "hour", "minute", "second")
        )
        pads = [pc.utf8_lpad(part, 2, "0") for part in (month, day, *clock)]
        # The separator must have the type of the text, which may be a large string.
        dash, colon, blank = (pa.scalar(sign, year.type) for sign in "-: ")
        dates = pc.binary_join_element_wise(year, pads[0], pads[1], dash)
        if not self.time:
            return dates.cast(pa.date32())
        times = pc.binary_join_element_wise(*pads[2:], colon)
        return pc.binary_join_element_wise(dates, times, blank).cast(pa.timestamp("s"))


@dataclass(frozen=True)
class IsoTimes:
    """Dates and times as in ISO 8601, which Arrow reads by itself."""

    kind: pa.DataType

    def __str__(self) -> str:
        return "dates as year-month-day"

    def parse(self, cells: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return times; raise `ArrowInvalid` if a cell is not a time."""
        return cells.cast(self.kind)


@dataclass(frozen=True)
class ListFormat:
    """Lists of numbers, as Python, JSON, NumPy and databases print them.

    >>> ListFormat().parse(pa.chunked_array([["[0.5, 1]", "[2. 3.]", "{4,5}"]])).to_pylist()
    [[0.5, 1.0], [2.0, 3.0], [4.0, 5.0]]
    """

    pattern: ClassVar[str] = rf"^\s*[\[({{]\s*{_ITEM}(?:[\s,;]+{_ITEM})+[\s,;]*[\])}}]\s*$"

    def __str__(self) -> str:
        return "lists of numbers"

    def parse(self, cells: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return lists of float64; all cells must match the pattern."""
        text = pc.replace_substring_regex(cells, r"[\[\](){}\s,;]+", " ")
        return pc.split_pattern(pc.utf8_trim_whitespace(text), " ").cast(pa.list_(pa.float64()))


Format = NumberFormat | DateFormat | IsoTimes | ListFormat


@dataclass(frozen=True)
class Recognised:
    """A table with numbers and dates in place of text, with the formats and notes on them.

    `decimal` is the decimal sign found in its columns; None if there is none, or both. `raw` are
    the columns before the conversion.
    """

    data: pa.Table
    formats: Mapping[str, Format] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    decimal: str | None = None
    raw: Mapping[str, pa.ChunkedArray] = field(default_factory=dict)


def recognise(
    data: pa.Table,
    decimal: str | None = None,
    skip: Container[str] = (),
    dates: str | None = None,
) -> Recognised:
    """Turn text columns into numbers or dates if all cells have the same format. A column such as
    '1,234' can be read in two ways; the other columns decide, and otherwise it stays text, with a
    note. So do dates such as 3/4/2021, unless `dates` is "day-first" or "month-first".

    >>> recognise(pa.table({"a": ["1,5", "2,25"], "b": ["1.234", "5.678"]})).data.to_pydict()
    {'a': [1.5, 2.25], 'b': [1234.0, 5678.0]}
    """
    formats: dict[str, Format] = {}
    doubtful: dict[str, dict[str, NumberFormat]] = {}
    doubts: list[str] = []
    orders: list[str] = []
    shown: set[str] = set()
    for name, cells in _texts(data, skip):
        readings = _numbers(cells)
        if decimal is not None:
            readings = {sign: way for sign, way in readings.items() if sign in ("", decimal)}
        if len(readings) > 1:
            doubtful[name] = readings
        elif readings:
            formats[name] = next(iter(readings.values()))
            shown |= {*readings} - {""}
        elif _all(cells, ListFormat.pattern):
            formats[name] = ListFormat()
        elif ways := _dates(cells):
            formats[name] = ways[-1 if dates == "month-first" else 0]
            orders += [name] if len(ways) > 1 and dates is None else []
    decimal = decimal or (next(iter(shown)) if len(shown) == 1 else None)
    for name, readings in doubtful.items():
        if decimal is not None:
            formats[name] = readings[decimal]
        else:
            doubts.append(name)
    formats = {name: way for name, way in formats.items() if name not in orders}
    notes = [*_notes(data, formats)]
    either = {
        "a number with thousands or with decimals; read as text (pass decimal= to decide)": doubts,
        "day/month or month/day; read as text (pass dates='day-first' or 'month-first' to "
        "decide)": orders,
    }
    notes += [
        f"{_named(names)}: {example(data[names[0]])!r} may be {words}"
        for words, names in either.items()
        if names
    ]
    raw = {name: data[name] for name in formats}
    for name, way in formats.items():
        data = data.set_column(data.schema.get_field_index(name), name, way.parse(data[name]))
    return Recognised(data, formats, tuple(notes), decimal, raw)


def apply(data: pa.Table, formats: Mapping[str, Format], source: str) -> pa.Table:
    """Read text columns of another table like those of the pool, or in another format that fits."""
    for name, cells in _texts(data, ()):
        if name not in formats:
            continue
        way = formats[name]
        fits = isinstance(way, IsoTimes) or _all(cells, way.pattern)
        dates = isinstance(way, DateFormat | IsoTimes)
        if not fits or (dates and not _exist(cells, way)):
            way = _other(cells, way, name, source)
        data = data.set_column(data.schema.get_field_index(name), name, way.parse(cells))
    return data


def _other(cells: pa.ChunkedArray, way: Format, name: str, source: str) -> Format:
    """Return another format of the same kind that fits a column; refuse a column that has none."""
    numbers = isinstance(way, NumberFormat)
    ways: list[Format] = [NumberFormat(way.decimal)] if isinstance(way, NumberFormat) else []
    ways = [way for way in ways if isinstance(way, NumberFormat) and _all(cells, way.pattern)]
    if not isinstance(way, ListFormat):
        ways += _numbers(cells).values() if numbers else _dates(cells)
    if len(ways) == 1 or (ways and numbers):
        return ways[0]
    got, row = repr(example(cells)), 0
    if not isinstance(way, IsoTimes):
        fits = pc.fill_null(pc.match_substring_regex(cells, way.pattern), True)
        row = max(0, pc.index(fits, False).as_py())
        got = repr(cells[row].as_py()[:40])
    raise NotNumeric(source, name, f"{way}, as in the pool,", got, row=row)


def example(cells: pa.ChunkedArray) -> str:
    """Return the first cell that is not missing, shortened."""
    return str(next(iter(cells.drop_null()[:1].to_pylist()), ""))[:40]


def _notes(data: pa.Table, formats: Mapping[str, Format]) -> Iterator[str]:
    """Yield one note for each format, with its columns."""
    groups: dict[str, list[str]] = {}
    for name, way in formats.items():
        groups.setdefault(str(way), []).append(name)
    for words, names in groups.items():
        yield f"{_named(names)} read as {words}, such as {example(data.column(names[0]))!r}"


def _named(names: Sequence[str]) -> str:
    several = f"{counted(len(names), 'column')} ({quoted(names)})"
    return f"column {names[0]!r}" if len(names) == 1 else several


def _texts(data: pa.Table, skip: Container[str]) -> Iterator[tuple[str, pa.ChunkedArray]]:
    for name, cells in zip(data.column_names, data.columns, strict=True):
        is_text = pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type)
        if is_text and name not in skip and cells.null_count < len(cells):
            yield name, cells


def _all(cells: pa.ChunkedArray, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(cells, pattern)).as_py())


def _numbers(cells: pa.ChunkedArray) -> dict[str, NumberFormat]:
    """Return the formats that fit a column of numbers, by decimal sign; empty for words. The key is
    empty if no cell has a decimal sign, so that every format gives the same numbers.
    """
    first = cells.drop_null()[:_FIRST].to_pylist()
    match = _SIGN.search(first[0])
    sign = (match[1] or match[2]) if match else ""
    formats: dict[str, NumberFormat] = {}
    for decimal in _DECIMALS:
        for mark in _THOUSANDS:
            way = NumberFormat(decimal, mark, sign)
            if mark == decimal or not all(re.match(way.pattern, cell) for cell in first):
                continue
            if _all(cells, way.pattern):
                formats[decimal] = way
                break
    if not formats:
        return {}
    if not _all(cells, r"^[^.,]*$"):
        return formats
    way = next(iter(formats.values()))
    # Text of digits only may be a code, so it stays text.
    return {"": way} if sign or way.thousands else {}


def _dates(cells: pa.ChunkedArray) -> list[DateFormat | IsoTimes]:
    """Return the formats that fit a column of dates: two if the order is ambiguous."""
    first = cells.drop_null()[:_FIRST].to_pylist()
    match = _DATE.match(first[0])
    if match is None or not all(map(_DATE.match, first)):
        return []
    mark, timed = match[2], not _all(cells, r"^[^:]*$")
    ways: list[DateFormat | IsoTimes]
    if len(match[1]) == 4:
        ways = [DateFormat("ymd", mark, timed)]
        if mark == "-" and not _all(cells, DateFormat("ymd", mark).pattern):
            ways = [IsoTimes(pa.timestamp("us")), IsoTimes(pa.timestamp("us", "UTC"))]
    else:
        # With points, the day always comes first.
        ways = [DateFormat(order, mark, timed) for order in ("dmy", "mdy")]
        ways = ways[:1] if mark == "." else ways
    return [way for way in ways if _exist(cells, way)]


def _exist(cells: pa.ChunkedArray, way: Format) -> bool:
    """Whether all cells are dates if they are read in this way."""
    try:
        return way.parse(cells).null_count == cells.null_count
    except pa.ArrowInvalid:
        return False
