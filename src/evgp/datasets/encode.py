"""From named columns to a matrix: numbers scaled and words one-hot, both as the pool says."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from jaxtyping import Float

from evgp._errors import DatasetError, DataWarning
from evgp._reading import check_memory
from evgp.datasets import _holes
from evgp.datasets._columns import (
    Category,
    Column,
    Number,
    counted,
    is_category,
    is_number,
    is_time,
    to_numbers,
    to_words,
)
from evgp.datasets._holes import Hole
from evgp.datasets.tables import Table, quoted

# What to do about cells without a value.
FILL = "fill them in, or use impute=True"


@dataclass(frozen=True)
class Encoder:
    """What was learnt from the pool's columns, to be applied to any table with the same names.

    >>> table = Table(pa.table({"size": [1, 3, 3, 1], "kind": ["a", "b", "a", "a"]}), "pool.csv")
    >>> encoder = Encoder.fit(table)
    >>> encoder.names
    ('size', 'kind=a', 'kind=b')
    >>> encoder.transform(table)[:2]
    array([[-1.,  1.,  0.],
           [ 1.,  0.,  1.]])
    """

    columns: tuple[Column, ...]
    ignored: tuple[str, ...] = ()
    impute: bool = False
    notes: tuple[str, ...] = ()
    source: str = "the pool"

    @classmethod
    def fit(
        cls,
        table: Table,
        *,
        id: str | None = None,
        drop: Sequence[str] = (),
        impute: bool = False,
        max_categories: int = 50,
        standardise: bool = True,
    ) -> "Encoder":
        """Learn scaling and categories; `notes` says what looks odd.

        Without `standardise` numbers stay as they are, and so do constant columns.
        """
        return cls.fit_transform(
            table,
            id=id,
            drop=drop,
            impute=impute,
            max_categories=max_categories,
            standardise=standardise,
        )[0]

    @classmethod
    def fit_transform(
        cls,
        table: Table,
        *,
        id: str | None = None,
        drop: Sequence[str] = (),
        impute: bool = False,
        max_categories: int = 50,
        standardise: bool = True,
    ) -> tuple["Encoder", Float[np.ndarray, "n d"]]:
        """The same, and the features of the table itself."""
        from evgp.datasets._layout import Layout  # which makes encoders

        left_out = ((id,) if id is not None else ()) + tuple(drop)
        for name in left_out:
            table.column(name)
        layout = Layout(
            table.source,
            len(table),
            table.data.schema,
            left_out,
            max_categories,
            standardise,
            impute,
        )
        for name in layout.used:
            usable(table.source, name, table.column(name).type)
        return layout.fit(table.data)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features, column by column."""
        return tuple(name for column in self.columns for name in column.features)

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the table's columns that the features come from."""
        return tuple(column.name for column in self.columns)

    @property
    def words(self) -> tuple[str, ...]:
        """The columns of words: those to be read from a CSV as text."""
        words = [column for column in self.columns if isinstance(column, Category)]
        return tuple(column.name for column in words if column.written)

    def transform(self, table: Table) -> Float[np.ndarray, "n d"]:
        """The features of a table, matched by column name, with the pool's scaling and categories.

        What differs from the pool without stopping the work is a `DataWarning`.
        """
        odd = self.compare(table)
        notes = _refuse_holes(table, self.sources, self.impute) + odd
        x, unknown = self.matrix(table)
        notes += [
            f"{counted(count, 'cell')} of column {name!r} with words that {self.source} does not "
            "have; they count as none of its categories"
            for name, count in unknown.items()
        ]
        for note in notes:
            warnings.warn(f"{table.source}: {note}", DataWarning, stacklevel=2)
        return x

    def compare(self, table: Table) -> list[str]:
        """Refuse a table without the pool's columns, or of other kinds; notes on further ones."""
        here, known = set(table.names), {*self.sources, *self.ignored}
        absent = [name for name in self.sources if name not in here]
        if absent:
            raise DatasetError(
                f"{table.source}: expected the columns of {self.source}, got none named "
                f"{quoted(absent)}"
            )
        self.matrix(Table(table.data.slice(0, 0), table.source))
        extra = [name for name in table.names if name not in known]
        if not extra:
            return []
        return [f"ignored {_named(extra, 'column')} that {self.source} does not have"]

    def matrix(self, table: Table) -> tuple[Float[np.ndarray, "n d"], dict[str, int]]:
        """The features of a table without holes, and the number of unknown words by column."""
        # The matrix, and what is made of the column with the most categories on the way.
        widest = max((len(column.features) for column in self.columns), default=0)
        check_memory(8 * len(table) * (len(self.names) + 2 * widest), table.source)
        x = np.empty((len(table), len(self.names)))
        unknown: dict[str, int] = {}
        start = 0
        for column in self.columns:
            stop = start + len(column.features)
            x[:, start:stop] = self._encode(column, table, unknown)
            start = stop
        return x, unknown

    def _encode(
        self, column: Column, table: Table, unknown: dict[str, int]
    ) -> Float[np.ndarray, "n d"]:
        cells = table.column(column.name)
        if isinstance(column, Number):
            if not (is_number(cells.type) or is_time(cells.type)):
                raise DatasetError(
                    f"{table.source}: expected numbers in column {column.name!r}, as in "
                    f"{self.source}, got {cells.type}"
                )
            values = to_numbers(cells)
            with np.errstate(over="ignore"):
                made = column.encode(np.where(np.isfinite(values), values, column.fill))
            if not np.isfinite(made).all():
                row = int(np.argmin(np.isfinite(made[:, 0])))
                raise DatasetError(
                    f"{table.source}: expected numbers near those of {self.source} in column "
                    f"{column.name!r}, got {values[row]:.6g} in row {row}, which is too far from "
                    "them to be scaled; check it"
                )
            return made
        if not (is_category(cells.type) or is_number(cells.type)):
            raise DatasetError(
                f"{table.source}: expected words in column {column.name!r}, as in {self.source}, "
                f"got {cells.type}"
            )
        codes = column.codes(to_words(cells))
        if none := int((codes < 0).sum()):
            unknown[column.name] = none
        return column.encode(codes)


def too_few(source: str, rows: int) -> DatasetError:
    """What to say of a pool without a choice."""
    return DatasetError(f"{source}: expected at least 2 rows to choose from, got {rows}")


def usable(source: str, name: str, kind: pa.DataType) -> None:
    """Refuse a column that holds neither numbers nor words."""
    if not (is_number(kind) or is_time(kind) or is_category(kind)):
        raise DatasetError(
            f"{source}: expected numbers or words in column {name!r}, got {kind}; spread it over "
            f"plain columns, or leave it out with drop={name!r}"
        )


def nothing(source: str, constant: int, left_out: int) -> DatasetError:
    """What to say of a pool whose rows are all alike."""
    return DatasetError(
        f"{source}: expected a column that differs between rows, got "
        f"{counted(constant, 'constant column')} and {left_out} left out; there is nothing to "
        "choose by"
    )


def none_left(source: str, left_out: int) -> DatasetError:
    """What to say of a pool whose columns are all left out."""
    return DatasetError(
        f"{source}: expected a column to choose by, got {left_out} left out and no other; leave "
        "out fewer"
    )


def dropped(constant: Sequence[str]) -> str:
    """The note on constant columns."""
    return f"dropped {_named(constant, 'constant column')}"


def as_seconds(name: str) -> str:
    """The note on a column of times."""
    return f"column {name!r} holds times, taken as seconds"


def taken(hint: str, categories: int) -> str:
    """The note on words that may have been meant otherwise."""
    return f"{hint} (taken as {categories} categories)"


def filled(holes: Sequence[Hole]) -> str:
    """The note on cells that had no value."""
    total = counted(sum(hole.count for hole in holes), "cell")
    return f"filled {total} with the pool's mean or most frequent word: {_holes.listed(holes)}"


def _refuse_holes(table: Table, names: Sequence[str], impute: bool) -> list[str]:
    """Raise for missing and infinite cells, with columns and rows, or note that they are filled."""
    found = [hole for name in names for hole in _holes.in_cells(name, table.column(name))]
    if not impute:
        _holes.refuse(found, table.source, FILL)
    return [filled(found)] if found else []


def _named(names: Sequence[str], what: str) -> str:
    return f"{counted(len(names), what)} ({quoted(names)})"
