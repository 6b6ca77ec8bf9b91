"""Pools that stay in their files: what to read of them, and when."""

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from jaxtyping import Float, Int

from evgp._checks import bytes_of
from evgp._errors import DatasetError
from evgp._executor import Executor
from evgp._memory import available_memory
from evgp._reading import reading_within
from evgp.cli._inputs import Asked, Inputs, looked_up, split
from evgp.datasets import Cells, Encoder, Labelled, Streamed, Table, open_pool, read_labelled
from evgp.pool import Selection

_FILES = (".parquet", ".arrow", ".feather", ".ipc", ".npy")
# Rows besides the picks that the map of a report shows.
_MAP = 5_000
_READ = 1 << 16


@dataclass(frozen=True)
class Large:
    """What the command line says of a large run."""

    method: str = "auto"
    memory: str | None = None
    dask: str | None = None
    cache: Path | None = None

    def wanted(self, asked: Asked) -> bool:
        """Whether the pool stays in its files: asked for, a folder, or too large to read."""
        if self.dask is not None or self.method == "sharded" or address(asked.pool) is not None:
            return True
        if asked.pool.is_dir():
            return any(path.suffix.lower() in _FILES for path in asked.pool.rglob("*"))
        if asked.pool.suffix.lower() not in _FILES or not asked.pool.is_file():
            return False
        room = available_memory() // 2 if self.memory is None else bytes_of(self.memory) // 4
        try:
            pool = _open(asked.pool, asked)
        except DatasetError:
            return False  # who reads it says what is wrong
        return 8 * len(pool) * pool.widest > room

    def reading(self) -> AbstractContextManager[None]:
        """What is read meanwhile stays within --memory, too."""
        return reading_within(None if self.memory is None else bytes_of(self.memory))

    @contextmanager
    def executor(self) -> Iterator[Executor | None]:
        """The workers of a Dask cluster, where one is named."""
        if self.dask is None:
            yield None
            return
        from evgp.integrations.dask import connect, executor

        with connect(self.dask) as client:
            yield executor(client)


def address(path: Path) -> str | None:
    """The address that a path was before its slashes were merged, if it was one.

    >>> address(Path("s3://bucket/pool")), address(Path("pool.parquet"))
    ('s3://bucket/pool', None)
    """
    found = re.fullmatch(r"([a-z][a-z0-9+.-]+):/+(.*)", str(path))
    if found is None or path.exists():
        return None
    return f"{found[1]}://{'/' if found[1] == 'file' else ''}{found[2]}"


@dataclass(frozen=True, eq=False)
class Opened:
    """A pool in files, with what else the command line names."""

    asked: Asked
    x: Streamed
    x_test: Streamed | None
    labelled: Labelled
    costs: Float[np.ndarray, " n"] | None
    notes: tuple[str, ...] = ()
    raw: bool = False
    outside: Streamed | None = None

    def __len__(self) -> int:
        return len(self.x)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one sample: in a table with as many columns as its words may become."""
        return (self.x.widest,) if len(self.x.shape) == 1 else self.x.shape

    @property
    def used(self) -> int:
        """Columns that are used."""
        return self.x.shape[0] if self.x.columns else 0

    def seen(self, selection: Selection, *, shown: bool) -> Inputs:
        """The picks as they are in the files, and with `shown` some other rows for a map."""
        rows = np.unique(selection.indices)
        if shown:
            random = np.random.default_rng(0)
            more = random.choice(len(self.x), min(_MAP, len(self.x)), replace=False)
            rows = np.union1d(rows, more)
        names = None
        if self.asked.id is not None:
            names = self.x.cells(self.asked.id, rows)
        x, columns, used = np.empty((len(rows), 0)), dict[str, Cells](), 0
        if shown:
            x, columns, used = self._sample(rows)
        return Inputs(
            source=self.x.name,
            x=x,
            features=self.x.columns,
            used=used,
            dropped=split(self.asked.drop, self.x.columns),
            columns=columns,
            names=names,
            numbers=rows,
            total=len(self.x),
            labelled=self.labelled,
            notes=self.notes,
        )

    def _sample(
        self, rows: Int[np.ndarray, " r"]
    ) -> tuple[Float[np.ndarray, "r d"], dict[str, Cells], int]:
        """Numbers to draw a map from, and what the report's table shows."""
        raw = self.x.raw_at(rows, self.x.columns)
        if not isinstance(raw, pa.Table):
            return np.asarray(raw, dtype=np.float64).reshape(len(rows), -1), {}, 0
        table = Table(raw, self.x.name)
        left_out = (*self.asked.drop, *(() if self.asked.costs is None else (self.asked.costs,)))
        encoder = Encoder.fit(
            table,
            id=self.asked.id,
            drop=split(left_out, table.names),
            impute=self.asked.impute,
            max_categories=len(rows) + 1,
            standardise=self.asked.standardise,
        )
        columns = {name: table.cells(name) for name in table.names}
        return encoder.transform(table), columns, len(encoder.sources)


def open_streamed(asked: Asked) -> Opened:
    """Look at the metadata of the pool, and read the files that must agree with it."""
    refused = {
        "--array": asked.array,
        "--delimiter": asked.delimiter if asked.labelled is None else None,
        "--image-size": asked.image_size,
    }
    given = [name for name, value in refused.items() if value]
    if given:
        raise DatasetError(
            f"{asked.pool}: {', '.join(given)} cannot apply to a pool that stays in its files; "
            "leave it out"
        )
    pool = _open(asked.pool, asked)
    known, outside = Labelled(), None
    if asked.labelled is not None and (outside := _outside(asked, pool)) is not None:
        known = Labelled(
            note=f"{asked.labelled}: read as {len(outside):,} labelled rows from outside the pool; "
            "give ids for those that are in it"
        )
    elif asked.labelled is not None:
        names = range(len(pool)) if asked.id is None else _all_names(pool, asked.id)
        known = read_labelled(asked.labelled, None, names, id=asked.id, delimiter=asked.delimiter)
    prices = None
    if asked.costs is not None:
        prices = pool.numbers(asked.costs, 0, len(pool))
    test = None if asked.test is None else _open(asked.test, asked, test=True)
    notes = (known.note,) if known.note else ()
    return Opened(asked, pool, test, known, prices, notes, outside=outside)


def _outside(asked: Asked, pool: Streamed) -> Streamed | None:
    """Labelled rows with the columns of the pool, and without ids."""
    if asked.labelled is None or asked.labelled.suffix.lower() not in _FILES:
        return None
    rows = open_pool(asked.labelled)
    left_out = {asked.id, asked.costs, *split(asked.drop, pool.columns)}
    named = asked.id is not None and asked.id in rows.columns
    return None if named or not set(pool.columns) - left_out <= set(rows.columns) else rows


def _open(path: Path, asked: Asked, *, test: bool = False) -> Streamed:
    where = address(path) or path
    if test:
        return open_pool(
            where,
            impute=asked.impute,
            max_categories=asked.max_categories,
            standardise=asked.standardise,
        )
    return open_pool(
        where,
        id=asked.id,
        drop=split(asked.drop, looked_up(asked.drop, lambda: open_pool(where).columns)),
        costs=asked.costs,
        impute=asked.impute,
        max_categories=asked.max_categories,
        standardise=asked.standardise,
    )


def _all_names(pool: Streamed, column: str) -> list[object]:
    names: list[object] = []
    for start in range(0, len(pool), _READ):
        names += pool.cells(column, np.arange(start, min(len(pool), start + _READ)))
    return names
