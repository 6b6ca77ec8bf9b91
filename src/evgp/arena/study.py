"""Many cells in a folder: in processes of their own, and never one of them twice."""

import hashlib
import json
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from math import isfinite, nan
from pathlib import Path
from typing import Any

from evgp._checks import instance, integer, path_of, seed_of, words
from evgp._errors import DamagedFile, DamageWarning, DatasetError, EvgpError, PoolError
from evgp._executor import Progress
from evgp._machine import available_memory
from evgp._processes import cores, in_processes, tell
from evgp._progress import check_progress, reporting
from evgp._reading import read_json
from evgp.arena.cell import Cell, Played
from evgp.arena.row import Row
from evgp.arena.terms import Subject, Terms
from evgp.datasets import Dataset, atomic, check_document, signed

_KINDS: dict[str, Any] = {
    one.name: (float, int, type(None)) if one.type is float else one.type for one in fields(Row)
}
_TABLES = "tables.json"


@dataclass(frozen=True)
class Study:
    """A folder of finished cells, each in a file of its own that is whole or not there.

    >>> import tempfile
    >>> Study(Path(tempfile.mkdtemp())).rows()
    ()
    """

    folder: Path

    def rows(self) -> tuple[Row, ...]:
        """Of all cells that are finished, in the order of their names."""
        return tuple(row for _, rows in self._finished() for row in rows)

    def missing(self, cells: Sequence[Cell]) -> list[Cell]:
        """Those that are not finished yet, or whose file is damaged."""
        return [cell for cell in cells if self._found(self._path(cell)) is None]

    def warn_of_damage(self, cells: Sequence[Cell] = ()) -> None:
        """Name the files that are damaged: cells that will be played again, and all others."""
        again = {self._path(cell) for cell in cells}
        for path in self._files():
            try:
                _read(path)
            except FileNotFoundError:
                continue
            except DamagedFile as error:
                done = "is played again" if path in again else "is left out: delete it"
                warnings.warn(
                    f"{path} was damaged ({error.why}) and {done}", DamageWarning, stacklevel=3
                )

    def add(self, cell: Cell, played: Played) -> None:
        """Keep a finished cell."""
        document = {
            "cell": _told(cell),
            "rows": [_plain(row) for row in played.rows],
            "picks": played.picks.tolist(),
        }
        path = self._path(cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic(path) as part:
            part.write_text(json.dumps(signed(document), allow_nan=False), encoding="utf-8")

    def agree(self, subjects: Sequence[Subject], terms: Terms) -> None:
        """Refuse a folder in which the same data was compared on other terms."""
        wanted = {one.name: _terms(one, terms) for one in subjects}
        for told, _ in self._finished():
            other = wanted.get(told["name"])
            if other is None or other == told["terms"]:
                continue
            every = {**told["terms"], **other}
            name = next(name for name in every if other.get(name) != told["terms"].get(name))
            raise DatasetError(
                f"{self.folder}: expected {told['name']} on the terms of the rows there, with "
                f"{name} {told['terms'].get(name, 'as usual')}; got "
                f"{other.get(name, 'the usual')}; take another folder"
            )

    def remember(self, subjects: Sequence[Subject]) -> None:
        """Keep the checksums of the user's tables; refuse one that has changed since."""
        path = self.folder / _TABLES
        try:
            told: Any = read_json(path, "checksums of tables") if path.exists() else {}
            known = dict(told)
        except (ValueError, TypeError) as error:
            raise DatasetError(
                f"{path}: expected checksums of tables, got a damaged file; delete it, or take "
                "another folder"
            ) from error
        for subject in subjects:
            digest = subject.checksum()
            if digest is None:
                continue
            if known.setdefault(subject.name, digest) != digest:
                raise DatasetError(
                    f"{self.folder}: expected {subject.source} as it was when the rows there were "
                    "made, got another content; take another folder"
                )
        if known:
            with atomic(path) as part:
                part.write_text(json.dumps(known), encoding="utf-8")

    def _path(self, cell: Cell) -> Path:
        name = "".join(c if c.isalnum() or c in "+-" else "_" for c in cell.strategy)[:40]
        key = _key(_told(cell))
        subject = "".join(c if c.isalnum() else "_" for c in cell.subject.name)[:40]
        return (
            self.folder / "cells" / f"{subject}-{name}-{cell.seed}-{cell.terms.members}-{key}.json"
        )

    def _files(self) -> list[Path]:
        return sorted((self.folder / "cells").glob("*.json"))

    def _finished(self) -> Iterator[tuple[dict[str, Any], tuple[Row, ...]]]:
        """What all cells in the folder are, and their rows; damaged ones are left out."""
        for path in self._files():
            if (found := self._found(path)) is not None:
                yield found

    def _found(self, path: Path) -> tuple[dict[str, Any], tuple[Row, ...]] | None:
        """The cell in a file; None where it is not there, or is not what this package wrote."""
        try:
            return _read(path)
        except (FileNotFoundError, DamagedFile):
            return None

    def open(self) -> None:
        """Make the folder, or refuse one that cannot be written, before anything runs."""
        cells = self.folder / "cells"
        try:
            cells.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise DatasetError(
                f"{self.folder}: expected a folder for the rows, got a file; take another name"
            ) from error
        for folder in (self.folder, cells):
            if not os.access(folder, os.W_OK | os.X_OK):
                raise DatasetError(f"{folder}: the folder may not be written to")


def compare(
    data: str | Subject | Sequence[str | Subject],
    strategies: str | Sequence[str],
    *,
    out: str | Path,
    terms: Terms = Terms(),
    seeds: int | Sequence[int] = 5,
    jobs: int | None = None,
    progress: Progress | bool | None = None,
) -> tuple[Row, ...]:
    """Play every strategy on every dataset with every seed, and give all rows of the folder.

    `data` are names of datasets, or `Subject`s: tables of your own with a label; `strategies` are
    names, as `strategy_named` knows them; `seeds` how many, or which.
    Everything is checked before anything runs. Cells that are finished in the folder are not run
    again, so a run that was stopped goes on where it was, and a study may grow by strategies,
    seeds and members. Cells run in `jobs` processes, by default as many as there are cores and as
    memory allows, each with its share of the threads.
    """
    listed = [data] if isinstance(data, str | Subject) else data
    instance(listed, "data", Sequence, "a name, a Subject, or a list of them")
    subjects = [one if isinstance(one, Subject) else Subject(one) for one in listed]
    names = tuple(dict.fromkeys(words(strategies, "strategies")))
    if not isinstance(seeds, Sequence) or isinstance(seeds, str | bytes):
        seeds = range(integer(seeds, "seeds", 1, 1_000_000))
    seeds = tuple(dict.fromkeys(seed_of(one) for one in seeds))
    instance(terms, "terms", Terms, "evgp.Terms(budget=100)")
    jobs = None if jobs is None else integer(jobs, "jobs", 1)
    check_progress(progress)
    check(subjects, names, seeds, terms)
    study = Study(path_of(out, "out", error=DatasetError))
    study.agree(subjects, terms)
    cells = [
        Cell(subject, name, seed, terms) for subject in subjects for seed in seeds for name in names
    ]
    study.warn_of_damage(cells)
    left = study.missing(cells)
    study.open()
    study.remember(subjects)
    most = max(_bytes(one.load(seeds[0])) for one in subjects) if left else 0
    fit = max(1, int(available_memory() * 0.8) // max(1, most))
    count = min(jobs or cores(), len(left), fit)
    done, total = (len(cells) - len(left)) * terms.rounds, len(cells) * terms.rounds
    with reporting(progress) as report:
        meter = _Meter(report, done, total)
        meter(0)
        if count > 1:
            in_processes(_work, [(study, cell) for cell in left], count, meter)
        else:
            for cell in left:
                study.add(cell, cell.play(lambda: meter(1)))
    return study.rows()


def check(
    subjects: Sequence[Subject], strategies: tuple[str, ...], seeds: Sequence[int], terms: Terms
) -> None:
    """Refuse what cannot run, for each dataset, before anything does."""
    for what, given in (("datasets", subjects), ("strategies", strategies), ("seeds", seeds)):
        if not given:
            raise PoolError(f"expected {what} to compare, got none")
    twice = [one.name for one in subjects]
    if len(set(twice)) < len(twice):
        raise PoolError(f"expected datasets with different names, got {', '.join(twice)}")
    for subject in subjects:
        terms.check(subject.load(seeds[0]), strategies, seeds[0])
    for subject in subjects:
        for seed in seeds[1:] if subject.varies else ():
            try:
                terms.fits(subject.load(seed))
            except EvgpError as error:
                raise DatasetError(f"with seed {seed}: {error}") from error


def _work(study: Study, cell: Cell) -> None:
    """Play a cell and keep it, in a process of its own."""
    study.add(cell, cell.play(tell))


@dataclass
class _Meter:
    """Counts rounds."""

    progress: Progress
    done: int
    total: int

    def __call__(self, more: int) -> None:
        self.done += more
        self.progress("rounds", self.done, self.total)


def _bytes(data: Dataset) -> int:
    """About what a cell needs: the data, its kernel matrix, and networks."""
    points = sum(part.numel() * part.element_size() for part in (data.x, data.x_test))
    n = len(data.x)
    return int(1.5 * (n * min(n, 25_000) * (4 if n > 10_000 else 8)) + 3 * points + 1.5e9)


def _read(path: Path) -> tuple[dict[str, Any], tuple[Row, ...]]:
    """What the cell in a file is, and its rows; what this package did not write is damaged."""
    if not path.exists():
        raise FileNotFoundError(str(path))
    try:
        found: Any = read_json(path, "a cell")
        document = check_document(path, found, ("cell", "rows", "picks"))
        told, rows = document["cell"], tuple(_row(row) for row in document["rows"])
        # Older cells have no digest; but their names are one of what they are.
        fits = path.stem.endswith(f"-{_key(told)}") and all(_belongs(row, told) for row in rows)
    except OSError as error:
        raise DamagedFile(str(path), f"it cannot be read ({error.strerror})") from error
    except DamagedFile:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedFile(str(path), "it is broken JSON, or no cell") from error
    if not fits:
        raise DamagedFile(str(path), "it is another cell than its name says")
    if not rows:
        raise DamagedFile(str(path), "it has no rows")
    return told, rows


def _belongs(row: Row, told: dict[str, Any]) -> bool:
    wanted = (told["name"], told["strategy"], told["seed"], told["members"])
    return (row.dataset, row.strategy, row.seed, row.members) == wanted


def _key(told: dict[str, Any]) -> str:
    """By which files of cells are named."""
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:12]


def _told(cell: Cell) -> dict[str, Any]:
    return {
        "name": cell.subject.name,
        "terms": _terms(cell.subject, cell.terms),
        "members": cell.terms.members,
        "strategy": cell.strategy,
        "seed": cell.seed,
    }


def _terms(subject: Subject, terms: Terms) -> dict[str, Any]:
    """What cells of one dataset agree in: all but the members, where it is not the usual."""
    said = {
        one.name: getattr(part, one.name)
        for part in (subject, terms)
        for one in fields(part)
        if one.name != "members" and getattr(part, one.name) != one.default
    }
    always = {"budget": terms.budget, "batch": terms.batch}
    return json.loads(json.dumps({**always, **said}))


def _plain(row: Row) -> dict[str, Any]:
    """JSON has no NaN."""
    return {
        name: None if isinstance(value, float) and not isfinite(value) else value
        for name, value in asdict(row).items()
    }


def _row(plain: dict[str, Any]) -> Row:
    values: dict[str, Any] = {}
    for one in fields(Row):
        # A metric that is younger than the file is not in it.
        value = plain[one.name] if one.default is MISSING else plain.get(one.name)
        if not isinstance(value, _KINDS[one.name]):
            raise TypeError(one.name)
        values[one.name] = nan if value is None else value
    return Row(**values)
