"""Columns of lists of numbers, such as embeddings: each list becomes that many features."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Float

from evgp.datasets.columns import Category, Number
from evgp.errors import DatasetError, MissingColumn, NotNumeric, UnusableColumn, quoted


@dataclass(frozen=True)
class Vector:
    """A column of lists of one length, encoded as scaled numbers; a group of its own.

    `numbers` are the members that are not constant, at `places` in the list. `scale` is how the
    group is scaled.
    """

    name: str
    length: int
    numbers: tuple[Number, ...]
    places: tuple[int, ...]
    scale: str | None

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features that the column becomes."""
        return tuple(number.name for number in self.numbers)

    def encode(self, values: Float[np.ndarray, "n length"]) -> Float[np.ndarray, "n d"]:
        """Return the scaled numbers; each missing one is replaced by its fill value."""
        unit, mean, std, fill = self._parts
        chosen = values if len(self.places) == self.length else values[:, list(self.places)]
        with np.errstate(over="ignore"):
            return (np.where(np.isfinite(chosen), chosen, fill) / unit - mean) / std

    @cached_property
    def _parts(self) -> Float[np.ndarray, "4 d"]:
        parts = [(number.scale, number.mean, number.std, number.fill) for number in self.numbers]
        return np.array(parts).T


Column: TypeAlias = Number | Category | Vector


def is_vector(kind: pa.DataType) -> bool:
    """Whether cells of this type are lists of numbers.

    >>> is_vector(pa.list_(pa.float16(), 384)), is_vector(pa.list_(pa.list_(pa.float32())))
    (True, False)
    """
    kind = getattr(kind, "storage_type", kind)  # some libraries give lists a type of their own
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if not any(is_list(kind) for is_list in lists):
        return False
    inner = kind.value_type
    kinds = pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_null
    return any(is_kind(inner) for is_kind in kinds)


def member(name: str, place: int) -> str:
    """Return the name of one number of a column of lists.

    >>> member("embedding", 0)
    'embedding[0]'
    """
    return f"{name}[{place}]"


def length_of(cells: pa.ChunkedArray) -> int | None:
    """Return the length of the lists: that of the first one that is not empty; None if all are.

    >>> length_of(pa.chunked_array([[None, [], [1.0, 2.0]]]))
    2
    """
    kind = getattr(cells.type, "storage_type", cells.type)
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size) or None
    for chunk in cells.chunks:
        lengths = pc.fill_null(pc.list_value_length(_plain(chunk)), 0).to_numpy(False)
        if len(places := np.flatnonzero(lengths)):
            return int(lengths[places[0]])
    return None


def empty(source: str, name: str) -> UnusableColumn:
    """Return the error for a column whose lists are all empty or missing."""
    advice = f"fill them in, or leave the column out with drop={name!r}"
    return UnusableColumn(source, name, "lists of numbers", "empty ones only", advice)


def matrix_of(
    cells: pa.ChunkedArray, length: int, name: str, source: str, first: int = 0
) -> Float[np.ndarray, "n length"]:
    """Return lists of one length as a float64 matrix, with NaN for missing numbers and lists.

    A list of another length is refused with its row; `first` is the number of the first row.

    >>> matrix_of(pa.chunked_array([[[1.0, 2.0], None]]), 2, "embedding", "pool.parquet")
    array([[ 1.,  2.],
           [nan, nan]])
    """
    x = np.empty((len(cells), length))
    start = 0
    for chunk in cells.chunks:
        part, present = _plain(chunk), np.asarray(chunk.is_valid().to_numpy(False), dtype=bool)
        lengths = np.where(
            present, pc.fill_null(pc.list_value_length(part), 0).to_numpy(False), length
        )
        if len(wrong := np.flatnonzero(lengths != length)):
            got = f"one of {lengths[wrong[0]]}"
            row = first + start + int(wrong[0])
            raise NotNumeric(source, name, f"lists of {length} numbers", got, _ADVICE, row)
        # Without the lists that are missing, whatever their place holds.
        values = part.flatten()
        if pa.types.is_float16(values.type):
            values = values.cast(pa.float32())
        values = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        x[start : start + len(part)][present] = values.reshape(-1, length)
        x[start : start + len(part)][~present] = np.nan
        start += len(part)
    return x


_ADVICE = "make all lists equally long"


def chosen(
    schema: pa.Schema, column: str | None, left_out: Sequence[str], source: str
) -> tuple[str, ...]:
    """Return which columns the choice of a column leaves out: all others; none without a choice.

    Several columns of lists are refused unless one of them is chosen.
    """
    if column is not None:
        if column not in schema.names:
            raise MissingColumn(source, column, tuple(schema.names))
        if column in left_out:
            raise DatasetError(
                f"{source}: expected column={column!r} as a feature, got it left out by id=, "
                "drop= or costs= too; name it once"
            )
        return tuple(name for name in schema.names if name != column)
    out = set(left_out)
    names = [field.name for field in schema if is_vector(field.type) and field.name not in out]
    if len(names) > 1:
        raise DatasetError(
            f"{source}: expected one column of lists of numbers, got {len(names)} "
            f"({quoted(names)}); choose one, such as column={names[0]!r}, or leave out the others "
            "with drop="
        )
    return ()


def _plain(cells: pa.Array) -> pa.Array:
    return cells.storage if isinstance(cells, pa.ExtensionArray) else cells
