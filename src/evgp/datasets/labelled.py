"""Which rows have a name, and which have a label already."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from jaxtyping import Float, Int
from torch import Tensor

from evgp._errors import DatasetError
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
    to_words,
)
from evgp.datasets.encode import Encoder, Streamed
from evgp.datasets.tables import Table, read_table

# Bytes that Python takes for a line of its own, and for a name in a dictionary.
_LINE, _NAME = 150, 200
_HEAD = 2**16
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}")


@dataclass(frozen=True)
class Labelled:
    """Rows of the pool that are labelled, labelled rows from outside, and how a file was read."""

    rows: Int[np.ndarray, " l"] = field(default_factory=lambda: np.empty(0, np.int64))
    x: np.ndarray | Tensor | Streamed | None = None
    note: str = ""


def ids(table: Table, name: str) -> list[object]:
    """One name for each row: present, and different from all others.

    >>> ids(Table(pa.table({"image": ["7", "8"]}), "pool.csv"), "image")
    [7, 8]
    """
    column = table.column(name)
    if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
        raise DatasetError(
            f"{table.source}: expected words or numbers in id column {name!r}, got {column.type}"
        )
    empty = np.flatnonzero(missing(column))
    if len(empty):
        raise DatasetError(
            f"{table.source}: expected an id in each row, got {len(empty):,} missing in column "
            f"{name!r} ({shown(empty)}; rows count from 0)"
        )
    check_memory(_NAME * len(column), table.source)
    values: list[object] = cells_of(column)
    doubled = [value for value, count in Counter(values).items() if count > 1]
    if doubled:
        named = ", ".join(repr(value)[:60] for value in doubled[:3])
        raise DatasetError(
            f"{table.source}: expected a different id in each row, got {len(doubled):,} more than "
            f"once in column {name!r} ({named}{', ...' if len(doubled) > 3 else ''})"
        )
    # Ids are read as text to keep leading zeros; whole numbers that 64 bits hold become numbers.
    if all(isinstance(value, str) and _is_whole(value) for value in values):
        return [int(str(value)) for value in values]
    return values


def cells_of(column: pa.ChunkedArray) -> list[object]:
    """Cells as plain values; equal words of a dictionary are one, as they may be long."""
    if pa.types.is_dictionary(column.type) and is_category(column.type.value_type):
        return list(to_objects(to_words(column)))
    return list(plain(column).to_pylist())


def read_labelled(
    path: str | Path,
    encoder: Encoder | None,
    names: Sequence[object],
    *,
    id: str | None = None,
    delimiter: str | None = None,
    pool: Float[np.ndarray, "n d"] | None = None,
) -> Labelled:
    """Understand a file of labelled rows: ids, row numbers, or a table with the pool's columns.

    `names` are the ids of the pool's rows in order; without an id column they are 0, 1, 2, ...
    `pool` is the encoded pool: rows without an id that equal one of its rows count as that row.
    Without an encoder the pool has no columns, so there are ids or row numbers only.
    """
    path = Path(path)
    check_plain(path)
    if (words := _single_column(path, encoder)) is not None:
        rows = _find(words, names, id, path)
        return Labelled(rows, None, f"{path}: read as {_what(rows, id)}")
    keys = (id, "id") if id is not None else ("index",)
    text = (*(key for key in keys if key), *(encoder.words if encoder is not None else ()))
    table = read_table(path, delimiter=delimiter, text=text)
    key = next((key for key in keys if key in table.names), None)
    if encoder is not None and set(encoder.sources) <= set(table.names):
        if id in table.names:
            return _rows_by_id(table, encoder, names, str(id))
        return _rows_by_value(table, encoder, pool)
    if key is None:
        wanted = " or ".join(repr(key) for key in dict.fromkeys(keys))
        columns = "" if encoder is None else f"the columns of {encoder.source}, or "
        raise DatasetError(
            f"{path}: expected {columns}a column {wanted}, got {', '.join(table.names[:8])}"
        )
    rows = _find([str(value) for value in cells_of(table.column(key))], names, id, path)
    return Labelled(rows, None, f"{path}: read as {_what(rows, id)}")


def _rows_by_id(table: Table, encoder: Encoder, names: Sequence[object], id: str) -> Labelled:
    """Rows with the pool's columns: those the pool has by id, and those from outside."""
    at = {str(name): row for row, name in enumerate(names)}
    keys = [known(str(key), at) for key in cells_of(table.column(id))]
    inside = _rows(at[key] for key in keys if key in at)
    outside = [row for row, key in enumerate(keys) if key not in at]
    x = encoder.transform(_taken(table, outside)) if outside else None
    return Labelled(inside, x, _told(table, len(inside), len(outside)))


def _taken(table: Table, rows: Sequence[int]) -> Table:
    """Some rows, of columns that can be features: pyarrow cannot take rows of every other kind."""
    usable = [
        field.name
        for field in table.data.schema
        if is_number(field.type) or is_time(field.type) or is_category(field.type)
    ]
    return Table(table.data.select(usable).take(rows), table.source)


def _rows_by_value(
    table: Table, encoder: Encoder, pool: Float[np.ndarray, "n d"] | None
) -> Labelled:
    """Rows with the pool's columns: each claims the first free row of the pool that equals it."""
    x = encoder.transform(table)
    # Adding zero makes -0.0 and 0.0 the same bytes.
    wanted = Counter(row.tobytes() for row in x + 0.0)
    inside = []
    for row, values in enumerate(() if pool is None else pool + 0.0):
        if wanted[key := values.tobytes()] > 0:
            wanted[key] -= 1
            inside.append(row)
    outside = []
    for row in reversed(range(len(x))):
        if wanted[key := (x[row] + 0.0).tobytes()] > 0:
            wanted[key] -= 1
            outside.append(row)
    left = x[outside[::-1]] if outside else None
    return Labelled(_rows(inside), left, _told(table, len(inside), len(outside)))


def _told(table: Table, inside: int, outside: int) -> str:
    parts = [f"{counted(inside, 'labelled row')} of the pool"] if inside else []
    parts += [f"{counted(outside, 'labelled row')} from outside the pool"] if outside else []
    return f"{table.source}: read as {' and '.join(parts)}"


def _single_column(path: Path, encoder: Encoder | None) -> list[str] | None:
    """The lines of a text file that has one column, unless that column is the pool's only one."""
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
    words = [word for word in map(_bare, text.splitlines()) if word]
    if not words:
        raise DatasetError(f"{path}: expected labelled rows, got an empty file")
    return words


def _bare(line: str) -> str:
    return line.strip().strip('"')


def _find(
    words: Sequence[str], names: Sequence[object], id: str | None, path: Path
) -> Int[np.ndarray, " l"]:
    check_memory(_NAME * len(names), str(path))
    at = {str(name): row for row, name in enumerate(names)}
    if len(words) > 1 and known(words[0], at) not in at and _is_heading(words[0], id):
        words = words[1:]
    words = [known(word, at) for word in words]
    strange = [word for word in words if word not in at]
    if strange:
        listed = ", ".join(word[:60] for word in strange[:3]) + (
            ", ..." if len(strange) > 3 else ""
        )
        expected = f"values of {id!r}" if id is not None else f"row numbers in 0..{len(names) - 1}"
        raise DatasetError(
            f"{path}: expected {expected}, got {len(strange):,} that the pool does not have "
            f"({listed})"
        )
    return _rows(at[word] for word in words)


def _is_heading(word: str, id: str | None) -> bool:
    """The name of the ids, or anything but a number above row numbers; a mistyped id is none.

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
    """Each row once, in order."""
    return np.array(list(dict.fromkeys(rows)), dtype=np.int64)


def _what(rows: Int[np.ndarray, " l"], id: str | None) -> str:
    be = "is" if len(rows) == 1 else "are"
    if id is None:
        return f"{counted(len(rows), 'row number')} (counted from 0) that {be} labelled"
    return f"{counted(len(rows), 'value')} of {id!r} that {be} labelled"


def known(word: str, at: Mapping[str, int]) -> str:
    """An id as the pool has it, also where a CSV had a quote put before it.

    >>> known("'=1+2", {"=1+2": 0}), known("'a", {"'a": 0}), known("'b", {})
    ('=1+2', "'a", "'b")
    """
    bare = word.removeprefix("'")
    return bare if word not in at and bare in at else word


def _is_whole(word: str) -> bool:
    """Whether text is a whole number that 64 bits hold, written as numbers are.

    >>> [_is_whole(word) for word in ("7", "-7", "07", "9223372036854775808")]
    [True, True, False, False]
    """
    return _WHOLE.fullmatch(word) is not None and -(2**63) <= int(word) < 2**63
