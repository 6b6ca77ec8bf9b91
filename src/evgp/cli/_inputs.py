"""From the paths on the command line to arrays for the library."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
from jaxtyping import Float

from evgp._errors import DataWarning, EvgpWarning
from evgp.datasets import Encoder, Labelled, Table, ids, read_labelled, read_table

T = TypeVar("T")


@dataclass(frozen=True)
class Inputs:
    """The pool as numbers, with everything the command line said about it."""

    table: Table
    encoder: Encoder
    x: Float[np.ndarray, "n d"]
    names: Sequence[object] | None
    costs: Float[np.ndarray, " n"] | None
    x_test: Float[np.ndarray, "m d"] | None
    labelled: Labelled = field(default_factory=Labelled)
    notes: tuple[str, ...] = ()


def load(
    pool: Path,
    *,
    id: str | None,
    drop: Sequence[str],
    delimiter: str | None,
    array: str | None,
    costs: str | None,
    labelled: Path | None,
    test: Path | None,
    impute: bool,
    max_categories: int,
    standardise: bool,
) -> Inputs:
    """Read and encode the pool, then the files that must agree with it."""

    def _array(path: Path, other: Path | None) -> str | None:
        # The pool may be an archive and the test file not, or the other way round.
        archives = [one is not None and one.suffix.lower() == ".npz" for one in (path, other)]
        return None if archives == [False, True] else array

    table, notes = noted(
        lambda: read_table(
            pool, delimiter=delimiter, array=_array(pool, test), text=(id,) if id else ()
        )
    )
    names = None if id is None else ids(table, id)
    prices = None if costs is None else table.numbers(costs)
    left_out = (*split(drop, table.names), *((costs,) if costs is not None else ()))
    encoder = Encoder.fit(
        table,
        id=id,
        drop=left_out,
        impute=impute,
        max_categories=max_categories,
        standardise=standardise,
    )
    notes += encoder.notes
    with warnings.catch_warnings():
        # The encoder's own notes have said what was filled.
        warnings.simplefilter("ignore", DataWarning)
        x = encoder.transform(table)
    known = Labelled()
    if labelled is not None:
        rows = range(len(table)) if names is None else names
        known, more = noted(
            lambda: read_labelled(labelled, encoder, rows, id=id, delimiter=delimiter, pool=x)
        )
        notes += [known.note, *more]
    x_test = None
    if test is not None:
        x_test, more = noted(
            lambda: encoder.transform(
                read_table(test, delimiter=delimiter, array=_array(test, pool), text=encoder.words)
            )
        )
        notes += more
    return Inputs(table, encoder, x, names, prices, x_test, known, tuple(notes))


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
    parts: list[str] = []
    for name in names:
        parts += [name] if name in known else [part.strip() for part in name.split(",") if part]
    return tuple(dict.fromkeys(parts))
