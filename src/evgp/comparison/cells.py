"""Cells of comparisons and studies: saved as they finish, and run in processes.

A cell is a function and its settings. While a study runs, each finished cell is one JSON file, so
an interrupted run can resume. `Store.pack` moves the files of a finished study into one compressed
table of JSON lines, each with the name of its file; if a cell is in both, the file takes
precedence.
"""

import hashlib
import json
import lzma
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module, metadata
from math import isfinite
from pathlib import Path
from time import perf_counter, process_time, time
from typing import Any, TypeAlias

from evgp._machine import available_memory
from evgp._processes import cores, in_processes, report_step
from evgp._reading import read_bytes, read_text, room
from evgp.comparison.rows import Record, Records
from evgp.datasets import atomic, check_document, signed
from evgp.errors import DamagedFile, DatasetError

CELLS = "cells"
Settings: TypeAlias = Mapping[str, Any]
Watch: TypeAlias = Callable[[int, int, float | None], object]
"""Called with the number of finished cells, the total number, and the seconds left if known."""

_KEYS = ("work", "settings", "seconds", "made", "checksum", "rows", "extra")
_NAMED_BY = ("dataset", "strategy", "seed")
# How a cell was run; a cell that was taken over from another command has only that command.
_RUN = {"ended": float, "cpu_seconds": float, "jobs": int, "cores": int, "versions": dict}
# Modules under whose old names cells were recorded, and where they are now.
_MOVED = {"evgp.arena": "evgp.comparison"}
_MEMORY_SHARE = 0.8  # of the free memory that cells may take together


@dataclass(frozen=True)
class Cell:
    """The name of a function, and the settings that determine its rows.

    >>> Cell("experiments.contests:play", {"seed": 1}).settings
    {'seed': 1}
    """

    work: str
    settings: Settings


@dataclass(frozen=True)
class Outcome:
    """Result of a cell with more to save than rows."""

    rows: list[Record]
    extra: Mapping[str, Any] = field(default_factory=dict)


Work: TypeAlias = Callable[..., list[Record] | Outcome]


@dataclass(frozen=True)
class Finished:
    """A finished cell: its rows, how long it took, how it was run, and what else was saved."""

    rows: list[Record]
    seconds: float
    made: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)


def first_version(cell: Cell) -> int:
    """Version 1: the rows of the function have never changed."""
    return 1


def any_rows(rows: Records) -> None:
    """Accept the rows of any cell."""


@dataclass(frozen=True)
class Store:
    """A folder of finished cells, each written completely or not at all, named by its settings.

    `version` counts how often the rows of a cell have changed; it is part of the name from the
    second version on. `check` raises a `ValueError` or `TypeError` for invalid rows.

    >>> import tempfile
    >>> store = Store(Path(tempfile.mkdtemp()))
    >>> store.add(Cell("a:b", {"seed": 0}), [{"mse": 0.5}], seconds=1.0)
    >>> store.rows([Cell("a:b", {"seed": 0})])
    [{'seed': 0, 'mse': 0.5}]
    """

    folder: Path
    version: Callable[[Cell], int] = first_version
    check: Callable[[Records], object] = any_rows

    def missing(self, cells: Sequence[Cell]) -> list[Cell]:
        """The cells that are not finished, or whose file is damaged."""
        return [cell for cell in cells if self.found(cell) is None]

    def rows(self, cells: Sequence[Cell]) -> list[Record]:
        """The rows of all finished cells, each with the plain settings of its cell."""
        rows = []
        for cell in cells:
            finished = self.found(cell)
            plain = {k: v for k, v in cell.settings.items() if isinstance(v, str | int | float)}
            rows += [{**plain, **row} for row in (finished.rows if finished else ())]
        return rows

    def seconds(self, cells: Sequence[Cell]) -> float:
        """Total time of the finished cells."""
        return sum(cell.seconds for cell in map(self.found, cells) if cell is not None)

    def found(self, cell: Cell) -> Finished | None:
        """The finished cell; None if it is not finished, or if its file is damaged."""
        try:
            loaded = self._load(self.path(cell).name)
        except DatasetError:
            return None
        return None if loaded is None else loaded[1]

    def every(self) -> Iterator[tuple[Cell, Finished]]:
        """All finished cells of the folder in the order of their names, except damaged ones."""
        for name in self._names():
            try:
                loaded = self._load(name)
            except DatasetError:
                continue
            if loaded is not None:
                yield loaded

    def damage(self, cells: Sequence[Cell] | None = None) -> list[DamagedFile]:
        """Describe damaged files, of these cells or of the whole folder."""
        names = self._names() if cells is None else [self.path(cell).name for cell in cells]
        damage = []
        for name in names:
            try:
                self._load(name)
            except DamagedFile as error:
                damage.append(error)
            except DatasetError as error:
                damage.append(DamagedFile(str(self._file(name)), f"it cannot be read ({error})"))
        return damage

    def add(
        self,
        cell: Cell,
        rows: Records,
        seconds: float,
        made: Mapping[str, Any] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        """Save a finished cell, how it was run, and what else its function returned."""
        if not rows:
            raise DatasetError(
                f"{cell.work}: expected rows from {dict(cell.settings)}, got none; fix the study"
            )
        document = {
            "work": cell.work,
            "settings": dict(cell.settings),
            "seconds": round(seconds, 2),
            **({"made": dict(made)} if made else {}),
            "rows": finite(rows),
            **({"extra": dict(extra)} if extra else {}),
        }
        path = self.path(cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic(path) as part:
            part.write_text(json.dumps(signed(document), allow_nan=False), encoding="utf-8")

    def pack(self) -> int:
        """Move all cells from files into compressed tables; return how many files there were."""
        folder = self.folder / CELLS
        files: dict[Path, list[Path]] = {}
        for plain in folder.glob("*.jsonl"):  # of earlier versions
            files[plain.with_suffix(".jsonl.xz")] = []
        for path in sorted(folder.glob("*.json")):
            files.setdefault(self._table(path.name), []).append(path)
        for table, paths in files.items():
            lines = {**_lines(table), **{path.name: read_text(path).strip() for path in paths}}
            text = "".join(f"{json.dumps(name)}\t{lines[name]}\n" for name in sorted(lines))
            with atomic(table) as part:
                part.write_bytes(lzma.compress(text.encode()))
            for path in (*paths, table.with_suffix("")):
                path.unlink(missing_ok=True)
        return sum(map(len, files.values()))

    def path(self, cell: Cell) -> Path:
        """The file of a cell while its study runs."""
        # The first version is not part of the name: cells keep those from before there were any.
        decided, version = [cell.work, dict(cell.settings)], self.version(cell)
        text = json.dumps(decided if version == 1 else [*decided, version], sort_keys=True)
        words = [_plain_name(cell.settings[key]) for key in _NAMED_BY if key in cell.settings]
        module = cell.work.split(":")[0].rsplit(".", 1)[-1]
        key = hashlib.sha256(text.encode()).hexdigest()[:12]
        return self._file("-".join(filter(None, [module, *words, f"{key}.json"])))

    def _names(self) -> list[str]:
        folder = self.folder / CELLS
        tables = {
            folder / f"{path.name.split('.')[0]}.jsonl.xz" for path in folder.glob("*.jsonl*")
        }
        packed = (name for table in tables for name in _lines(table))
        return sorted({*packed, *(path.name for path in folder.glob("*.json"))})

    def _file(self, name: str) -> Path:
        return self.folder / CELLS / name

    def _table(self, name: str) -> Path:
        return self._file(f"{name.split('-', maxsplit=1)[0]}.jsonl.xz")

    def _load(self, name: str) -> tuple[Cell, Finished] | None:
        """The cell with this name, or None; raises `DamagedFile` if its file is damaged."""
        path = self._file(name)
        text = read_text(path) if path.exists() else _lines(self._table(name)).get(name)
        if text is None:
            return None
        try:
            document = check_document(path, json.loads(text), _KEYS)
            cell = Cell(document["work"], document["settings"])
            finished = _finished(document)
            problem = _problem(cell, finished, document)
            self.check(finished.rows)
            named = self.path(cell).name == name
        except DamagedFile:
            raise
        except (
            ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError,
        ) as error:  # fmt: skip
            raise DamagedFile(str(path), f"it is invalid JSON, or not a cell ({error})") from error
        if not named:
            raise DamagedFile(str(path), "its content does not match its name")
        if problem:
            raise DamagedFile(str(path), problem)
        return cell, finished


def _plain_name(value: object) -> str:
    """The beginning of a value, without characters that file names cannot have.

    >>> _plain_name("random:100+mlmoc")
    'random_100+mlmoc'
    """
    return "".join(c if c.isalnum() or c in "+-_." else "_" for c in str(value)[:24])


def _finished(document: Mapping[str, Any]) -> Finished:
    rows = [dict(row) for row in document["rows"]]
    origin = document.get("made", {})
    kept = {
        name: origin[name] for name in (_RUN if "versions" in origin else ("by",)) if name in origin
    }
    run = {name: _RUN[name](kept[name]) for name in (_RUN if "versions" in kept else ())}
    origin = {**{name: str(value) for name, value in kept.items()}, **run}
    return Finished(rows, float(document["seconds"]), origin, dict(document.get("extra", {})))


def _problem(cell: Cell, finished: Finished, document: Mapping[str, Any]) -> str:
    """Describe what is wrong with a document that has no checksum."""
    rows = finished.rows
    if not rows or not all(rows):
        return "it has no rows"
    if not (isfinite(finished.seconds) and finished.seconds >= 0):
        return f"it took {finished.seconds} s"
    settings = {"dataset": cell.settings.get("dataset_name"), **cell.settings}
    for key, setting in ((key, settings.get(key)) for key in _NAMED_BY):
        other = next((row[key] for row in rows if row.get(key, setting) != setting), None)
        if setting is not None and other is not None:
            return f"it has rows whose {key} is {other!r}"
    strange = [v for row in rows for v in row.values() if not isinstance(v, str | int | float)]
    if strange:
        return f"it has a value that is neither number nor text ({strange[0]!r})"
    # Cells had a checksum of their rows before they had a digest of everything.
    text = json.dumps(rows, sort_keys=True)
    checksum = hashlib.sha256(text.encode()).hexdigest()[:16]
    return "" if document.get("checksum", checksum) == checksum else "its rows were changed"


def _lines(table: Path) -> Mapping[str, str]:
    """The documents of a table, by the names of their files; tables were not always compressed."""
    lines: dict[str, str] = {}
    for path in (table.with_suffix(""), table):
        if path.exists():
            about = path.stat()
            lines |= _read_lines(path, about.st_size, about.st_mtime_ns)
    return lines


@lru_cache(64)
def _read_lines(table: Path, size: int, changed: int) -> Mapping[str, str]:
    text = _decompressed(table) if table.suffix == ".xz" else read_text(table)
    parts = (line.partition("\t") for line in text.splitlines())
    return {name.strip('"'): document for name, _, document in parts}


def _decompressed(path: Path) -> str:
    """The text of a compressed file, if it is whole and fits in memory."""
    whole = lzma.LZMADecompressor(lzma.FORMAT_XZ)
    try:
        text = whole.decompress(read_bytes(path), max_length=room()).decode()
    except (lzma.LZMAError, UnicodeDecodeError) as error:
        raise DamagedFile(str(path), f"it cannot be decompressed ({error})") from error
    if not whole.eof:
        raise DamagedFile(str(path), "it is cut off, or larger than memory")
    return text


def finite(rows: Iterable[Record]) -> list[Record]:
    """Rows without missing and infinite values, which JSON cannot represent."""
    return [
        {
            name: value
            for name, value in row.items()
            if value is not None and not (isinstance(value, float) and not isfinite(value))
        }
        for row in rows
    ]


_HEARD: ContextVar[Callable[[int], object]] = ContextVar("heard", default=lambda steps: None)


def step() -> None:
    """Report that one step of the running cell is done."""
    _HEARD.get()(1)


def function_named(work: str) -> Work:
    """The function with this name, such as `package.module:function`.

    >>> function_named("evgp.comparison.cells:finite").__name__
    'finite'
    """
    module, function = work.split(":")
    target: Work = getattr(import_module(_MOVED.get(module, module)), function)
    return target


def run_cells(
    store: Store,
    cells: Sequence[Cell],
    *,
    jobs: int | None = None,
    memory: int = 0,
    find: Callable[[str], Work] = function_named,
    watch: Watch = lambda done, total, left: None,
    steps: Callable[[int], object] = lambda count: None,
) -> None:
    """Run the missing cells, and save each when it finishes.

    They run in `jobs` processes, by default one per core as long as each has `memory` bytes.
    `watch` is called for each finished cell, `steps` for each `step` within one. `find` returns the
    function of a cell by name, and like the store can be pickled.
    """
    left = store.missing(cells)
    fit = int(_MEMORY_SHARE * available_memory()) // max(1, memory)
    count = min(jobs or cores(), len(left), max(1, fit))
    took = {id(cell): done.seconds for cell in cells if (done := store.found(cell))}
    before = [(cell, took[id(cell)]) for cell in cells if id(cell) in took]

    def look() -> None:
        waiting = [cell for cell in left if id(cell) not in took]
        took.update({id(cell): done.seconds for cell in waiting if (done := store.found(cell))})
        now = [(cell, took[id(cell)]) for cell in left if id(cell) in took]
        waiting = [cell for cell in left if id(cell) not in took]
        watch(len(took), len(cells), seconds_left(now, before, waiting, count))

    def heard(more: int) -> None:
        # A finished cell reports 0.
        look() if more == 0 else steps(more)

    look()
    if count > 1:
        in_processes(_elsewhere, [(store, cell, count, find) for cell in left], count, heard)
        return
    for cell in left:
        _work(store, cell, 1, find, heard)


def _elsewhere(store: Store, cell: Cell, count: int, find: Callable[[str], Work]) -> None:
    """Run a cell in a separate process."""
    _work(store, cell, count, find, report_step)


def _work(
    store: Store,
    cell: Cell,
    count: int,
    find: Callable[[str], Work],
    heard: Callable[[int], object],
) -> None:
    begun, busy = perf_counter(), process_time()
    token = _HEARD.set(heard)
    try:
        result = find(cell.work)(**cell.settings)
    finally:
        _HEARD.reset(token)
    outcome = result if isinstance(result, Outcome) else Outcome(result)
    origin = {
        "ended": round(time(), 2),
        "cpu_seconds": round(process_time() - busy, 2),
        "jobs": count,
        "cores": cores(),
        "versions": versions(),
    }
    store.add(cell, outcome.rows, perf_counter() - begun, origin, outcome.extra)
    heard(0)


def versions() -> dict[str, str]:
    """Versions of the packages that determine the numbers."""
    packages = {name: metadata.version(name).split("+")[0] for name in ("torch", "numpy", "scipy")}
    return {"python": platform.python_version(), **packages}


# How cells are alike, closest first.
_ALIKE: tuple[Callable[[Cell], object], ...] = (
    lambda cell: [cell.work, {k: v for k, v in cell.settings.items() if k != "seed"}],
    lambda cell: [cell.work, cell.settings.get("dataset"), cell.settings.get("strategy")],
    lambda cell: [cell.work, cell.settings.get("dataset")],
    lambda cell: cell.work,
    lambda cell: "any",
)


def seconds_left(
    now: Sequence[tuple[Cell, float]],
    before: Sequence[tuple[Cell, float]],
    left: Sequence[Cell],
    processes: int,
) -> float | None:
    """How long the remaining cells will take: each as long as the most similar finished cells.

    Of equally similar cells those of this run (`now`) count. None if none is finished.

    >>> quick, slow, more = (Cell("a:b", {"dataset": d, "seed": s}) for d, s in ["x0", "y0", "y1"])
    >>> seconds_left([(quick, 2.0), (slow, 60.0)], [], [more], 2)
    60.0
    """
    known = [_means(finished, kind) for kind in _ALIKE for finished in (now, before)]
    kinds = [kind for kind in _ALIKE for _ in range(2)]
    costs = []
    for cell in left:
        means = (mean.get(_key(cell, kind)) for mean, kind in zip(known, kinds, strict=True))
        cost = next((mean for mean in means if mean is not None), None)
        if cost is None:
            return None
        costs.append(cost)
    return max([0.0, sum(costs) / max(1, min(processes, len(costs))), *costs])


def _means(
    finished: Sequence[tuple[Cell, float]], kind: Callable[[Cell], object]
) -> Mapping[str, float]:
    groups: dict[str, list[float]] = {}
    for cell, seconds in finished:
        groups.setdefault(_key(cell, kind), []).append(seconds)
    return {key: sum(values) / len(values) for key, values in groups.items()}


def _key(cell: Cell, kind: Callable[[Cell], object]) -> str:
    return json.dumps(kind(cell), sort_keys=True)
