"""From the paths on the command line to arrays for the library."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
from jaxtyping import Float, Int, Shaped

from evgp._errors import DataWarning, EvgpWarning
from evgp.cli._options import parts
from evgp.datasets import (
    ArrayPictures,
    Cells,
    Encoder,
    Images,
    Labelled,
    ids,
    read_labelled,
    read_table,
)
from evgp.pool import Selection

T = TypeVar("T")


@dataclass(frozen=True)
class Inputs:
    """The pool as numbers, with everything the command line said about it.

    `features` name its inputs where it is a table and `columns` hold what the table shows;
    `raw` says that the numbers are not scaled yet. Where only some of `total` rows were read,
    `numbers` say in order which.
    """

    source: str
    x: Shaped[np.ndarray, " n *d"]
    features: tuple[str, ...] = ()
    used: int = 0
    dropped: tuple[str, ...] = ()
    columns: Mapping[str, Cells] = field(default_factory=dict)
    names: Sequence[object] | None = None
    costs: Float[np.ndarray, " n"] | None = None
    x_test: Shaped[np.ndarray, " m *d"] | None = None
    labelled: Labelled = field(default_factory=Labelled)
    pictures: Images | ArrayPictures | None = None
    raw: bool = False
    notes: tuple[str, ...] = ()
    numbers: Int[np.ndarray, " n"] | None = None
    total: int | None = None

    def __len__(self) -> int:
        return len(self.x) if self.total is None else self.total

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one sample."""
        return self.x.shape[1:]

    @property
    def outside(self) -> Shaped[np.ndarray, " a *d"] | None:
        """Labelled points that are not in the pool."""
        return self.labelled.x

    def seen(self, selection: Selection, *, shown: bool) -> "Inputs":
        """All rows were read already."""
        return self

    def place(self, rows: Int[np.ndarray, " k"]) -> Int[np.ndarray, " k"]:
        """Where rows of the pool are among those that were read."""
        return rows if self.numbers is None else np.searchsorted(self.numbers, rows)


@dataclass(frozen=True)
class Asked:
    """What the command line says of the files to read."""

    pool: Path
    labelled: Path | None = None
    test: Path | None = None
    id: str | None = None
    drop: Sequence[str] = ()
    costs: str | None = None
    delimiter: str | None = None
    array: str | None = None
    impute: bool = False
    max_categories: int = 50
    standardise: bool = True
    image_size: int | None = None

    def array_of(self, path: Path, other: Path | None) -> str | None:
        """The array's name, where the pool is an archive and the test file is not, or both are."""
        archives = [one is not None and one.suffix.lower() == ".npz" for one in (path, other)]
        return None if archives == [False, True] else self.array


def load_table(asked: Asked) -> Inputs:
    """Read and encode the pool, then the files that must agree with it."""
    pool, id = asked.pool, asked.id
    name = asked.array_of(pool, asked.test)
    table, notes = noted(
        lambda: read_table(
            pool, delimiter=asked.delimiter, array=name, text=() if id is None else (id,)
        )
    )
    names = None if id is None else ids(table, id)
    prices = None if asked.costs is None else table.numbers(asked.costs)
    dropped = split(asked.drop, table.names)
    encoder = Encoder.fit(
        table,
        id=id,
        drop=(*dropped, *(() if asked.costs is None else (asked.costs,))),
        impute=asked.impute,
        max_categories=asked.max_categories,
        standardise=asked.standardise,
    )
    notes += encoder.notes
    with warnings.catch_warnings():
        # The encoder's own notes have said what was filled.
        warnings.simplefilter("ignore", DataWarning)
        x = encoder.transform(table)
    known, x_test = Labelled(), None
    if (labelled := asked.labelled) is not None:
        rows = range(len(table)) if names is None else names
        known, more = noted(
            lambda: read_labelled(labelled, encoder, rows, id=id, delimiter=asked.delimiter, pool=x)
        )
        notes += [known.note, *more]
    if (test := asked.test) is not None:
        name = asked.array_of(test, pool)
        x_test, more = noted(
            lambda: encoder.transform(
                read_table(test, delimiter=asked.delimiter, array=name, text=encoder.words)
            )
        )
        notes += more
    return Inputs(
        source=table.source,
        x=x,
        features=encoder.names,
        used=len(encoder.sources),
        dropped=dropped,
        columns={name: table.cells(name) for name in table.names},
        names=names,
        costs=prices,
        x_test=x_test,
        labelled=known,
        notes=tuple(notes),
    )


def noted(call: Callable[[], T]) -> tuple[T, list[str]]:
    """Call, and take the warnings of this package as notes; those of others are not for users."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    return result, [str(item.message) for item in caught if issubclass(item.category, EvgpWarning)]


def split(names: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Names divided by commas, unless the whole is a name itself.

    >>> split(["a, b", "c,d"], known=["a", "b", "c,d"])
    ('a', 'b', 'c,d')
    """
    found = [part for name in names for part in ([name] if name in known else parts(name))]
    return tuple(dict.fromkeys(found))


def left_out(path: Path, drop: Sequence[str], delimiter: str | None = None) -> tuple[str, ...]:
    """What --drop names in a table."""

    def names() -> Sequence[str]:
        table, _ = noted(lambda: read_table(path, delimiter=delimiter))
        return table.names

    return split(drop, looked_up(drop, names) if path.is_file() else ())


def looked_up(drop: Sequence[str], names: Callable[[], Sequence[str]]) -> Sequence[str]:
    """Names of columns, which are looked at only where a comma may belong to one.

    >>> looked_up(["a", "b"], lambda: 1 / 0)
    ()
    """
    return names() if any("," in name for name in drop) else ()
