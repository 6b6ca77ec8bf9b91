"""Suites: many pools and strategies with the same protocol, run in pieces, kept as one table.

The pools are described in `pools.toml`: content, origin, licence, citation, and a checksum of the
contents. They are not part of the package; those of the paper are named datasets, and the others
are Parquet files, which `python -m experiments.pools` in the repository makes from packages of
public registries.
"""

import hashlib
import os
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby, product
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa

from evgp._checks import integer, one_of, path_of
from evgp.comparison.cells import Cell, Store, run_cells
from evgp.comparison.protocol import DatasetSource, Protocol
from evgp.comparison.rows import NETWORK, Row, read_rows, row_of, write_rows
from evgp.comparison.run import cell_of, check_rows, warn_of_damage
from evgp.datasets import names
from evgp.datasets.cache import cache_folder
from evgp.datasets.parquet import read_parquet
from evgp.errors import DatasetError

SUITES = ("tables", "images", "text", "embeddings")
SEEDS = 30
ROWS = "rows.parquet"
VECTORS = ("text", "embeddings")  # suites whose pools a model made
FOLDER = "suites"  # of the pools, in $EVGP_DATA or in the cache
LEARNERS = ("1nn", "linear", "ntk", "trees")
# After `@`: the scaling of version 0.1, or one that suits a rival better than the default.
COLD = (
    "random", "evgp", "evgp-cells", "evgp@columns", "kmeans", "kmeans++", "typiclust",
    "typiclust@common", "maxherding", "probcover", "farthest-first", "max-variance", "lcmd",
    "lcmd@columns", "bait",
)  # fmt: skip
ROUNDS = {
    "classification": ("random", "evgp", "badge", "margin", "evgp+margin"),
    "regression": ("random", "evgp", "lcmd", "badge"),
}  # fmt: skip
_POOL = 1_000
_MOST = 400  # labels
_MEMBERS = 3
_MEMORY = 1_500_000_000  # bytes of a cell
_ROUNDS = 3
# Seconds of a cell with networks, on a core of two.
_NETWORKS = {"regression": 14.0, "classification": 5.0}


@dataclass(frozen=True)
class SuitePool:
    """A pool of a suite: its labels, its size, its origin, and what to cite.

    `classes` is 0 for numbers. `rows` is the number of rows, of which at most 1,000 are the pool.
    `rounds` says that networks are also trained on it, round by round. `seconds` is how long a cell
    without networks took on one of two cores. `sha256` is a checksum of the contents, or only of
    the labels if a model made the vectors.
    """

    name: str
    suite: str
    rows: int
    classes: int
    source: str
    licence: str
    citation: str
    seconds: float
    sha256: str = ""
    pool: int = 0
    test: int = 0
    rounds: bool = False

    @property
    def is_named(self) -> bool:
        """Whether it is one of the paper's datasets, whose files are checked elsewhere."""
        return self.name in names()

    @property
    def kind(self) -> str:
        """Classification or regression."""
        return "classification" if self.classes else "regression"

    @property
    def budgets(self) -> tuple[int, ...]:
        """1 to 20 labels per class, or 10 to 160 labels; at most half the pool, or 400 labels."""
        each = (1, 2, 4, 10, 20)
        sizes = (
            [self.classes * per_class for per_class in each]
            if self.classes
            else [10, 20, 40, 80, 160]
        )
        return tuple(n for n in sizes if 2 <= n <= min(self.pool_size // 2, _MOST))

    @property
    def pool_size(self) -> int:
        """Number of rows to pick from; the others are the test part, at most as many."""
        return self.pool or min(_POOL, self.rows // 2)

    def data(self) -> DatasetSource:
        """The pool as a source of a comparison; refuses one that is not there."""
        test = self.test or min(_POOL, self.rows - self.rows // 2)
        size = (self.pool_size, test)
        if self.is_named:
            small = self.pool_size < _POOL
            pool, test_part = (None, None) if small else size
            return DatasetSource(self.name, task=self.kind, pool=pool, test=test_part)
        path = self.path
        if path is None:
            raise DatasetError(
                f"{self.name}: the pool is not on this machine; make it with `python -m "
                "experiments.pools` in the repository, which says where it goes"
            )
        return DatasetSource(str(path), label="label", task=self.kind, pool=size[0], test=size[1])

    @property
    def path(self) -> Path | None:
        """The file of a pool that is not a named dataset; None if it is not on this machine."""
        paths = (folder / f"{self.name}.parquet" for folder in folders())
        return next((path for path in paths if path.exists()), None)

    def check(self) -> None:
        """Refuse a file whose contents differ from those behind the recorded rows."""
        # The vectors of a model differ in their last digits between machines.
        columns = ("label",) if self.suite in VECTORS else None
        if self.path is not None and fingerprint(self.path, columns) != self.sha256:
            raise DatasetError(
                f"{self.path}: expected the pool that the suite was recorded with, got other "
                "contents; delete the file and make it again with `python -m experiments.pools`"
            )

    def protocols(self) -> list[tuple[Protocol, tuple[str, ...]]]:
        """The cold start, and the rounds with networks if it has them, each with strategies."""
        cold = Protocol(
            budgets=self.budgets, learners=LEARNERS, search="exact", noise=1e-6, scale="auto"
        )
        pairs: list[tuple[Protocol, tuple[str, ...]]] = [(cold, COLD)]
        if self.rounds:
            batch = 2 * self.classes or 20
            networks = Protocol(
                budget=(_ROUNDS + 1) * batch, batch=batch, start=batch, members=_MEMBERS,
                learners=(NETWORK, *LEARNERS), search="exact", noise=1e-6, scale="auto",
            )  # fmt: skip
            pairs.append((networks, ROUNDS[self.kind]))
        return pairs


@cache
def suite_pools() -> tuple[SuitePool, ...]:
    """All pools of all suites.

    >>> sorted({pool.suite for pool in suite_pools()})
    ['embeddings', 'images', 'tables', 'text']
    """
    text = files("evgp").joinpath("comparison", "pools.toml").read_text(encoding="utf-8")
    return tuple(SuitePool(name, **about) for name, about in tomllib.loads(text).items())


def pools_of(suite: str) -> tuple[SuitePool, ...]:
    """The pools of one suite.

    >>> len(pools_of("images"))
    4
    """
    one_of(suite, "suite", SUITES, error=DatasetError)
    return tuple(pool for pool in suite_pools() if pool.suite == suite)


def folders() -> tuple[Path, ...]:
    """Where pools are looked for: `$EVGP_DATA/suites`, then the user's cache."""
    data = os.environ.get("EVGP_DATA")
    return (*([Path(data) / FOLDER] if data else []), cache_folder() / FOLDER)


def fingerprint(path: Path, columns: Sequence[str] | None = None) -> str:
    """64 bits of a SHA-256 of the contents of a table, or of some columns, whatever wrote it."""
    state = hashlib.sha256()
    table = read_parquet(path)
    for name in table.column_names if columns is None else columns:
        column = table.column(name)
        state.update(f"{name}\0".encode())
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            state.update("\0".join(column.to_pylist()).encode())
        else:
            state.update(np.ascontiguousarray(column.to_numpy().astype("<f8")).data)
    return state.hexdigest()[:16]


@dataclass(frozen=True)
class SuitePlan:
    """Cells of a suite that are still to run, in the order of seeds, and how long they take."""

    suite: str
    pools: tuple[SuitePool, ...]
    absent: tuple[SuitePool, ...]
    cells: tuple[Cell, ...]
    finished: int
    seconds: float

    @property
    def hours(self) -> float:
        """Hours of one core."""
        return self.seconds / 3600

    def __str__(self) -> str:
        left = f"{len(self.cells):,} cells left of {len(self.cells) + self.finished:,}"
        text = f"{self.suite}: {len(self.pools)} pools, {left}, about {self.hours:.1f} core-hours"
        if self.absent:
            text += f"; not on this machine: {', '.join(pool.name for pool in self.absent)}"
        return text


def plan_suite(
    suite: str, out: str | Path, seeds: int = SEEDS, strategies: Sequence[str] | None = None
) -> SuitePlan:
    """Return the unfinished cells of a suite in a folder."""
    integer(seeds, "seeds", 1, 1_000)
    recorded = recorded_rows(out)
    done = {(row.dataset, row.batch, row.strategy, row.seed) for row in recorded}
    there = tuple(pool for pool in pools_of(suite) if pool.is_named or pool.path is not None)
    absent = tuple(pool for pool in pools_of(suite) if pool not in there)
    runs = [(pool, *run) for pool in there for run in pool.protocols()]
    runs.sort(key=lambda run: NETWORK in run[1].learners)  # cold starts of all seeds come first
    cells: list[Cell] = []
    seconds, finished = 0.0, 0
    for cold, group in groupby(runs, key=lambda run: NETWORK not in run[1].learners):
        for seed, (pool, protocol, every) in product(range(seeds), list(group)):
            chosen = [name for name in every if strategies is None or name in strategies]
            asked = [cell_of(pool.data(), name, seed, protocol) for name in chosen]
            left = [cell for cell in asked if _run_of(cell) not in done]
            cells += left
            finished += len(asked) - len(left)
            seconds += len(left) * (pool.seconds if cold else _NETWORKS[pool.kind])
    return SuitePlan(suite, there, absent, tuple(cells), finished, seconds)


def run_suite(
    suite: str,
    *,
    out: str | Path,
    seeds: int = SEEDS,
    strategies: Sequence[str] | None = None,
    jobs: int | None = None,
    watch: Callable[[int, int, float | None], object] = lambda done, total, left: None,
) -> tuple[Row, ...]:
    """Run the unfinished cells of a suite, seed by seed; return all of its rows.

    Finished cells are in `out/rows.parquet`; those of the seed that is running are files in
    `out/cells`, so that a stopped run resumes. `watch` is called with the number of finished cells,
    the total number, and the seconds left if known.
    """
    folder = path_of(out, "out", error=DatasetError)
    collect(Store(folder, check=check_rows))
    plan = plan_suite(suite, folder, seeds, strategies)
    if not plan.pools:
        raise DatasetError(
            f"expected pools of the suite {suite} on this machine, got none; make them with "
            "`python -m experiments.pools` in the repository"
        )
    for pool in plan.pools:
        pool.check()
    return run_recorded(folder, plan.cells, finished=plan.finished, jobs=jobs, watch=watch)


def run_recorded(
    out: str | Path,
    cells: Sequence[Cell],
    *,
    finished: int = 0,
    jobs: int | None = None,
    watch: Callable[[int, int, float | None], object] = lambda done, total, left: None,
) -> tuple[Row, ...]:
    """Run the cells that the table of a folder lacks, and add them to it after each seed.

    `finished` counts other cells that are finished, for `watch`.
    """
    store = Store(path_of(out, "out", error=DatasetError), check=check_rows)
    collect(store)
    there = {(row.dataset, row.batch, row.strategy, row.seed) for row in recorded_rows(out)}
    left = [cell for cell in cells if _run_of(cell) not in there]
    before = finished + len(cells) - len(left)
    total, done, begun = finished + len(cells), before, perf_counter()
    for group in _by_seed(left):

        def heard(new: int, of: int, seconds: float | None, earlier: int = done) -> None:
            now = earlier + new
            each = (perf_counter() - begun) / max(1, now - before)
            watch(now, total, each * (total - now) if now > before else None)

        run_cells(store, group, jobs=jobs, memory=_MEMORY, watch=heard)
        done += len(group)
        collect(store)
    return recorded_rows(out)


def _run_of(cell: Cell) -> tuple[str, int, str, int]:
    """The dataset, batch, strategy and seed of a cell, as its rows have them."""
    about = cell.settings
    batch = 0 if about.get("budgets") else about["batch"]
    return about["dataset"], batch, about["strategy"], about["seed"]


def _by_seed(cells: Sequence[Cell]) -> Iterator[list[Cell]]:
    for _, group in groupby(cells, key=lambda cell: cell.settings["seed"]):
        yield list(group)


def recorded_rows(folder: str | Path) -> tuple[Row, ...]:
    """The rows in the table of a suite; none if there is no table yet."""
    path = path_of(folder, "out", error=DatasetError) / ROWS
    return read_rows(path) if path.exists() else ()


def collect(store: Store) -> int:
    """Move the finished cells of a folder into its table; return how many there were."""
    warn_of_damage(store)
    finished = list(store.every())
    if not finished:
        return 0
    rows = [row_of(row) for _, cell in finished for row in cell.rows]
    add_rows(store.folder, rows)
    for cell, _ in finished:
        store.path(cell).unlink()
    return len(finished)


def add_rows(folder: Path, rows: Sequence[Row]) -> None:
    """Add rows to the table of a suite; new rows replace those of the same run."""
    every = {_key(row): row for row in (*recorded_rows(folder), *rows)}
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(folder / ROWS, [every[key] for key in sorted(every)])


def _key(row: Row) -> tuple[str, int, str, int, int, str]:
    return row.dataset, row.batch, row.strategy, row.seed, row.labels, row.learner
