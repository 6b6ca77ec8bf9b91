"""Which rows have a name, and which have a label already."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from jaxtyping import Float, Int

from evgp._errors import DatasetError
from evgp.datasets._columns import missing, plain, shown
from evgp.datasets.encode import Encoder
from evgp.datasets.tables import Table, read_table


@dataclass(frozen=True)
class Labelled:
    """Rows of the pool that are labelled, labelled rows from outside, and how a file was read."""

    rows: Int[np.ndarray, " l"] = field(default_factory=lambda: np.empty(0, np.int64))
    x: Float[np.ndarray, "a d"] | None = None
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
    values = plain(column).to_pylist()
    doubled = [value for value, count in Counter(values).items() if count > 1]
    if doubled:
        named = ", ".join(repr(value) for value in doubled[:3])
        raise DatasetError(
            f"{table.source}: expected a different id in each row, got {len(doubled):,} more than "
            f"once in column {name!r} ({named}{', ...' if len(doubled) > 3 else ''})"
        )
    # Ids are read as text to keep leading zeros; plain whole numbers may be numbers again.
    if all(isinstance(value, str) and _is_whole(value) for value in values):
        return [int(value) for value in values]
    return values


def read_labelled(
    path: str | Path,
    encoder: Encoder,
    names: Sequence[object],
    *,
    id: str | None = None,
    delimiter: str | None = None,
) -> Labelled:
    """Understand a file of labelled rows: ids, row numbers, or a table with the pool's columns.

    `names` are the ids of the pool's rows in order; without an id column they are 0, 1, 2, ...
    """
    path = Path(path)
    if path.is_file() and (words := _single_column(path, encoder)) is not None:
        rows = _find(words, names, id, path)
        return Labelled(rows, None, f"{path}: read as {_what(rows, id)}")
    keys = (id, "id") if id is not None else ("index",)
    text = (*(key for key in keys if key), *encoder.words)
    table = read_table(path, delimiter=delimiter, text=text)
    key = next((key for key in keys if key in table.names), None)
    if set(encoder.sources) <= set(table.names):
        return _rows_of(table, encoder, names, id if id in table.names else None)
    if key is None:
        wanted = " or ".join(repr(key) for key in dict.fromkeys(keys))
        raise DatasetError(
            f"{path}: expected the columns of {encoder.source}, or a column {wanted}, "
            f"got {', '.join(table.names[:8])}"
        )
    rows = _find([str(value) for value in table.column(key).to_pylist()], names, id, path)
    return Labelled(rows, None, f"{path}: read as {_what(rows, id)}")


def _rows_of(table: Table, encoder: Encoder, names: Sequence[object], id: str | None) -> Labelled:
    """Rows with the pool's columns: those the pool has by id, and those from outside."""
    at = {str(name): row for row, name in enumerate(names)} if id is not None else {}
    keys = [str(key) for key in table.column(id).to_pylist()] if id is not None else []
    inside = _rows(at[key] for key in keys if key in at)
    outside = [row for row in range(len(table)) if not keys or keys[row] not in at]
    x = encoder.transform(Table(table.data.take(outside), table.source)) if outside else None
    parts = [f"{len(inside):,} labelled rows of the pool"] if len(inside) else []
    parts += [f"{len(outside):,} labelled rows from outside the pool"] if outside else []
    return Labelled(inside, x, f"{table.source}: read as {' and '.join(parts)}")


def _single_column(path: Path, encoder: Encoder) -> list[str] | None:
    """The lines of a text file that has one column, unless that column is the pool's only one."""
    if path.suffix.lower() not in (".txt", ".csv", ".tsv", ""):
        return None
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise DatasetError(f"{path}: expected ids in UTF-8 text, got other bytes") from error
    words = [line.strip().strip('"') for line in lines if line.strip()]
    if not words:
        raise DatasetError(f"{path}: expected labelled rows, got an empty file")
    divided = path.suffix.lower() in (".csv", ".tsv") and any(mark in words[0] for mark in ",\t;|")
    return None if divided or encoder.sources == (words[0],) else words


def _find(
    words: Sequence[str], names: Sequence[object], id: str | None, path: Path
) -> Int[np.ndarray, " l"]:
    at = {str(name): row for row, name in enumerate(names)}
    # A first line that is no id, above lines that are, is a heading.
    if words[0] not in at and len(words) > 1 and words[1] in at:
        words = words[1:]
    strange = [word for word in words if word not in at]
    if strange:
        listed = ", ".join(strange[:3]) + (", ..." if len(strange) > 3 else "")
        expected = f"values of {id!r}" if id is not None else f"row numbers in 0..{len(names) - 1}"
        raise DatasetError(
            f"{path}: expected {expected}, got {len(strange):,} that the pool does not have "
            f"({listed})"
        )
    return _rows(at[word] for word in words)


def _rows(rows: Iterable[int]) -> Int[np.ndarray, " l"]:
    """Each row once, in order."""
    return np.array(list(dict.fromkeys(rows)), dtype=np.int64)


def _what(rows: Int[np.ndarray, " l"], id: str | None) -> str:
    kind = "row numbers (counted from 0)" if id is None else f"values of {id!r}"
    return f"{len(rows):,} {kind} that are labelled"


def _is_whole(word: str) -> bool:
    return word.isascii() and word.removeprefix("-").isdigit() and str(int(word)) == word
