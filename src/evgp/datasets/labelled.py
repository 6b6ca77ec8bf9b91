"""Read the ids of rows, and files that list labelled rows."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from jaxtyping import Float, Int
from torch import Tensor

from evgp._reading import check_memory, check_plain, opened, read_text
from evgp.datasets.columns import (
    counted,
    is_category,
    is_number,
    is_time,
    missing,
    plain,
    shown,
    to_objects,
    to_text,
)
from evgp.datasets.encode import Encoder, Streamed
from evgp.datasets.formats import Format
from evgp.datasets.tables import Table, read_table
from evgp.datasets.vectors import is_vector
from evgp.errors import DatasetError, DuplicateNames, MissingValues, UnusableColumn, WrongFormat

# Bytes of memory for a line as a Python string, and for a name in a dictionary.
_LINE, _NAME = 150, 200
_HEAD = 2**16
# Columns of a file that `evgp pick -o` wrote: its row numbers are in 'index'.
OURS = frozenset({"rank", "index", "gain", "variance_left"})
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}")


@dataclass(frozen=True)
class Labelled:
    """Labelled rows of the pool, labelled points outside it, and a note on how a file was read."""

    rows: Int[np.ndarray, " l"] = field(default_factory=lambda: np.empty(0, np.int64))
    x: np.ndarray | Tensor | Streamed | None = None
    note: str = ""


def ids(table: Table, name: str) -> list[object]:
    """Return the id of each row; refuse missing and duplicate ids.

    >>> ids(Table(pa.table({"image": ["7", "8"]}), "pool.csv"), "image")
    [7, 8]
    """
    column = table.column(name)
    if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
        raise UnusableColumn(table.source, name, "words or numbers as ids", str(column.type))
    empty = np.flatnonzero(missing(column))
    if len(empty):
        problem = f"{len(empty):,} missing in column {name!r} ({shown(empty)})"
        rows = tuple(empty[:3].tolist())
        raise MissingValues(
            table.source, {name: len(empty)}, rows, problem, "", "an id in each row"
        )
    check_memory(_NAME * len(column), table.source)
    values: list[object] = cells_of(column)
    doubled = [value for value, count in Counter(values).items() if count > 1]
    if doubled:
        expected = f"a different id in each row of column {name!r}"
        advice = "choose another column, or leave out id= to name them by row number"
        raise DuplicateNames(table.source, expected, tuple(map(str, doubled)), advice)
    # Ids are read as text to keep leading zeros; if all are 64-bit integers, they become integers.
    if all(isinstance(value, str) and _is_whole(value) for value in values):
        return [int(str(value)) for value in values]
    return values


def cells_of(column: pa.ChunkedArray) -> list[object]:
    """Return cells as Python values; equal strings of a dictionary share one object."""
    if pa.types.is_dictionary(column.type) and is_category(column.type.value_type):
        return list(to_objects(to_text(column)))
    return list(plain(column).to_pylist())


def read_labelled(
    path: str | Path,
    encoder: Encoder | None,
    names: Sequence[object],
    *,
    id: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    dates: str | None = None,
    encoding: str | None = None,
    formats: Mapping[str, Format] | None = None,
    pool: Float[np.ndarray, "n d"] | None = None,
) -> Labelled:
    """Read a file of labelled rows: ids, row numbers, or a table with the pool's columns.

    `names` are the ids of the pool's rows in order; without an id column they are 0, 1, 2, ...
    `pool` is the encoded pool: rows without an id that equal one of its rows count as that row.
    Without an encoder the pool has no columns, so the file lists ids or row numbers. `formats` are
    those of the pool's numbers and dates.
    """
    path = Path(path)
    check_plain(path)
    if (lines := _single_column(path, encoder)) is not None:
        rows = _find(lines, names, id, path)
        return Labelled(rows, None, f"{path}: read as {_what(rows, id)}")
    keys = (id, "id") if id is not None else ("index",)
    text = (*(key for key in keys if key), *(encoder.words if encoder is not None else ()))
    table = read_table(
        path,
        delimiter=delimiter,
        decimal=decimal,
        encoding=encoding,
        dates=dates,
        text=text,
        formats=formats,
    )
    key = next((key for key in keys if key in table.names), None)
    columns = () if encoder is None else (*encoder.sources, *encoder.ignored)
    picks = key is not None and set(table.names) >= OURS and not set(columns) >= OURS
    if encoder is not None and not picks and set(encoder.sources) <= set(table.names):
        if id in table.names:
            return _rows_by_id(table, encoder, names, str(id))
        return _rows_by_value(table, encoder, pool)
    if key is None:
        expected = " or ".join(repr(key) for key in dict.fromkeys(keys))
        like_pool = "" if encoder is None else f"the columns of {encoder.source}, or "
        raise WrongFormat.of(DatasetError)(
            str(path), f"{like_pool}a column {expected}", ", ".join(table.names[:8])
        )
    rows = _find([str(value) for value in cells_of(table.column(key))], names, id, path)
    return Labelled(rows, None, f"{path}: read as {_what(rows, id)}")


def _rows_by_id(table: Table, encoder: Encoder, names: Sequence[object], id: str) -> Labelled:
    """Find rows with the pool's columns in the pool by their ids; the others are outside it."""
    row_of = {str(name): row for row, name in enumerate(names)}
    keys = [known(str(key), row_of) for key in cells_of(table.column(id))]
    inside = _rows(row_of[key] for key in keys if key in row_of)
    outside = [row for row, key in enumerate(keys) if key not in row_of]
    x = encoder.transform(_part(table, outside)) if outside else None
    return Labelled(inside, x, _note(table, len(inside), len(outside)))


def _part(table: Table, rows: Sequence[int]) -> Table:
    """Return some rows of the columns that can be features; pyarrow cannot take all types."""
    usable = [
        field.name
        for field in table.data.schema
        if is_number(field.type)
        or is_time(field.type)
        or is_category(field.type)
        or is_vector(field.type)
    ]
    return Table(table.data.select(usable).take(rows), table.source)


def _rows_by_value(
    table: Table, encoder: Encoder, pool: Float[np.ndarray, "n d"] | None
) -> Labelled:
    """Match each row with the first free row of the pool that equals it; others are outside."""
    x = encoder.transform(table)
    # Adding zero makes -0.0 and 0.0 the same bytes.
    unmatched = Counter(row.tobytes() for row in x + 0.0)
    inside = []
    for row, values in enumerate(() if pool is None else pool + 0.0):
        if unmatched[key := values.tobytes()] > 0:
            unmatched[key] -= 1
            inside.append(row)
    outside = []
    for row in reversed(range(len(x))):
        if unmatched[key := (x[row] + 0.0).tobytes()] > 0:
            unmatched[key] -= 1
            outside.append(row)
    left = x[outside[::-1]] if outside else None
    return Labelled(_rows(inside), left, _note(table, len(inside), len(outside)))


def _note(table: Table, inside: int, outside: int) -> str:
    parts = [f"{counted(inside, 'labelled row')} of the pool"] if inside else []
    parts += [f"{counted(outside, 'labelled row')} from outside the pool"] if outside else []
    return f"{table.source}: read as {' and '.join(parts)}"


def _single_column(path: Path, encoder: Encoder | None) -> list[str] | None:
    """Return the lines of a text file with one column, unless it is the pool's only column."""
    if path.suffix.lower() not in (".txt", ".csv", ".tsv", ""):
        return None
    with opened(path) as stream:
        head = stream.read(_HEAD).decode("utf-8-sig", errors="replace")
    first = next(filter(None, map(_bare, head.splitlines())), "")
    divided = path.suffix.lower() in (".csv", ".tsv") and any(mark in first for mark in ",\t;|")
    if divided or (encoder and encoder.sources == (first,)):
        return None
    text = read_text(path)
    check_memory(_LINE * (text.count("\n") + 1) + 2 * len(text), str(path))
    lines = [line for line in map(_bare, text.splitlines()) if line]
    if not lines:
        raise WrongFormat.of(DatasetError)(str(path), "labelled rows", "an empty file")
    return lines


def _bare(line: str) -> str:
    return line.strip().strip('"')


def _find(
    entries: Sequence[str], names: Sequence[object], id: str | None, path: Path
) -> Int[np.ndarray, " l"]:
    check_memory(_NAME * len(names), str(path))
    row_of = {str(name): row for row, name in enumerate(names)}
    if len(entries) > 1 and known(entries[0], row_of) not in row_of and _is_heading(entries[0], id):
        entries = entries[1:]
    entries = [known(entry, row_of) for entry in entries]
    strange = [entry for entry in entries if entry not in row_of]
    if strange:
        listed = ", ".join(entry[:60] for entry in strange[:3]) + (
            ", ..." if len(strange) > 3 else ""
        )
        expected = f"values of {id!r}" if id is not None else f"row numbers in 0..{len(names) - 1}"
        raise WrongFormat.of(DatasetError)(
            str(path), str(expected), f"{len(strange):,} that the pool does not have ({listed})"
        )
    return _rows(row_of[entry] for entry in entries)


def _is_heading(word: str, id: str | None) -> bool:
    """Whether the first line is a heading: the name of the ids, or text above row numbers.

    >>> _is_heading("image", "image"), _is_heading("img7", "image"), _is_heading("1.5", None)
    (True, False, False)
    """
    if id is not None:
        return word.casefold() in (id.casefold(), "id", "ids")
    try:
        float(word)
    except ValueError:
        return True
    return False


def _rows(rows: Iterable[int]) -> Int[np.ndarray, " l"]:
    """Return row numbers without duplicates, in order of first occurrence."""
    return np.array(list(dict.fromkeys(rows)), dtype=np.int64)


def _what(rows: Int[np.ndarray, " l"], id: str | None) -> str:
    be = "is" if len(rows) == 1 else "are"
    if id is None:
        return f"{counted(len(rows), 'row number')} (counted from 0) that {be} labelled"
    return f"{counted(len(rows), 'value')} of {id!r} that {be} labelled"


def known(word: str, at: Mapping[str, int]) -> str:
    """Return an id as written in the pool, without the quote that our CSV output may have added.

    >>> known("'=1+2", {"=1+2": 0}), known("'a", {"'a": 0}), known("'b", {})
    ('=1+2', "'a", "'b")
    """
    bare = word.removeprefix("'")
    return bare if word not in at and bare in at else word


def _is_whole(word: str) -> bool:
    """Whether text is a 64-bit integer in its usual form, without leading zeros.

    >>> [_is_whole(word) for word in ("7", "-7", "07", "9223372036854775808")]
    [True, True, False, False]
    """
    return _WHOLE.fullmatch(word) is not None and -(2**63) <= int(word) < 2**63
