"""Finished cells on the disk, shared by all studies of a folder, each whole or not there.

While a study runs, each cell is a file of its own; `pack` puts those of one kind into one table,
JSON lines by the name that the file had. A file of its own goes before a line.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import Any

from evgp._errors import DamagedFile, DatasetError
from evgp._reading import read_text
from evgp.datasets import atomic, check_document, signed, write_text
from experiments.rows import Record, Rows, plain
from experiments.study import Cell
from experiments.versions import version

CELLS = "cells"
_KEYS = ("work", "settings", "seconds", "made", "checksum", "rows")
_NAMED_BY = ("dataset", "strategy", "seed")
# What is kept of a run; a cell that was taken over from elsewhere says by which command.
_RUN = {"ended": float, "cpu_seconds": float, "jobs": int, "cores": int, "versions": dict}


@dataclass(frozen=True)
class Finished:
    """The rows of a cell, the seconds that it took, and what was kept of how it was made."""

    rows: list[Record]
    seconds: float
    made: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Store:
    """A folder of cells, named by what decides their rows.

    >>> import tempfile
    >>> store = Store(Path(tempfile.mkdtemp()))
    >>> store.add(Cell("a:b", {"seed": 0}), [{"mse": 0.5}], seconds=1.0)
    >>> store.rows([Cell("a:b", {"seed": 0})])
    [{'seed': 0, 'mse': 0.5}]
    """

    folder: Path

    def missing(self, cells: Sequence[Cell]) -> list[Cell]:
        """Those that are not finished."""
        return [cell for cell in cells if self.found(cell) is None]

    def rows(self, cells: Sequence[Cell]) -> list[Record]:
        """Of all that are finished, each row with the plain settings of its cell."""
        made = []
        for cell in cells:
            found = self.found(cell)
            told = {k: v for k, v in cell.settings.items() if isinstance(v, str | int | float)}
            made += [{**told, **row} for row in (found.rows if found else ())]
        return made

    def seconds(self, cells: Sequence[Cell]) -> float:
        """What those that are finished took, one after another."""
        return sum(found.seconds for found in map(self.found, cells) if found is not None)

    def found(self, cell: Cell) -> Finished | None:
        """A cell if it is finished; one that is damaged is not."""
        try:
            return self._read(cell)
        except DatasetError:
            return None

    def damage(self, cells: Sequence[Cell]) -> list[str]:
        """A sentence for each cell whose file is there and cannot be used."""
        told = []
        for cell in cells:
            if not self._path(cell).exists() and self._packed(cell) is None:
                continue
            try:
                self._read(cell)
            except DatasetError as error:
                told.append(str(error))
        return told

    def add(
        self, cell: Cell, rows: Rows, seconds: float, made: Mapping[str, Any] | None = None
    ) -> None:
        """Keep a finished cell, and how it was made."""
        if not rows:
            raise DatasetError(
                f"{cell.work}: expected rows from {dict(cell.settings)}, got none; fix the study"
            )
        path = self._path(cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = plain(rows)
        document = {
            "work": cell.work,
            "settings": dict(cell.settings),
            "seconds": round(seconds, 2),
            **({"made": dict(made)} if made else {}),
            "checksum": _checksum(kept),
            "rows": kept,
        }
        with atomic(path) as part:
            part.write_text(json.dumps(signed(document), allow_nan=False), encoding="utf-8")

    def pack(self) -> int:
        """Put all cells that are files into tables, and remove the files; how many there were."""
        files: dict[str, list[Path]] = {}
        for path in sorted((self.folder / CELLS).glob("*.json")):
            files.setdefault(path.name.split("-")[0], []).append(path)
        for what, paths in files.items():
            table = self.folder / CELLS / f"{what}.jsonl"
            lines = {**_lines(table), **{path.name: read_text(path).strip() for path in paths}}
            text = "".join(f"{json.dumps(name)}\t{lines[name]}\n" for name in sorted(lines))
            write_text(table, text)
            for path in paths:
                path.unlink()
        return sum(map(len, files.values()))

    def _packed(self, cell: Cell) -> str | None:
        path = self._path(cell)
        return _lines(path.parent / f"{path.name.split('-')[0]}.jsonl").get(path.name)

    def _path(self, cell: Cell) -> Path:
        # The first version is not told: cells keep the names from before there were any.
        told, number = [cell.work, dict(cell.settings)], version(cell)
        text = json.dumps(told if number == 1 else [*told, number], sort_keys=True)
        name = "-".join(
            str(cell.settings[key]).replace("/", "_").replace(":", "_")[:24]
            for key in _NAMED_BY
            if key in cell.settings
        )
        what = cell.work.split(":")[0].rsplit(".", 1)[-1]
        key = hashlib.sha256(text.encode()).hexdigest()[:12]
        return self.folder / CELLS / "-".join(filter(None, [what, name, f"{key}.json"]))

    def _read(self, cell: Cell) -> Finished:
        path = self._path(cell)
        try:
            line = None if path.exists() else self._packed(cell)
            document = json.loads(read_text(path) if line is None else line)
            rows = [dict(row) for row in document["rows"]]
            seconds = float(document["seconds"])
            made = _made(document.get("made", {}))
            asked = document["work"], document["settings"]
            # Cells from before there were checksums have none.
            whole = document.get("checksum", _checksum(rows)) == _checksum(rows)
        except (
            ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError,
        ) as error:  # fmt: skip
            raise _damaged(path, f"a file that is broken ({error})") from error
        if asked != (cell.work, json.loads(json.dumps(dict(cell.settings)))):
            raise _damaged(path, "one of other settings")
        if not rows or not all(rows):
            raise _damaged(path, "one without rows")
        if not (isfinite(seconds) and seconds >= 0):
            raise _damaged(path, f"one that took {seconds} s")
        asked_of = {"dataset": cell.settings.get("dataset_name"), **cell.settings}
        for key, wanted in ((key, asked_of.get(key)) for key in _NAMED_BY):
            other = next((row[key] for row in rows if row.get(key, wanted) != wanted), None)
            if wanted is not None and other is not None:
                raise _damaged(path, f"rows whose {key} is {other!r}")
        strange = [v for row in rows for v in row.values() if not isinstance(v, str | int | float)]
        if strange:
            raise _damaged(path, f"a value that is neither number nor word ({strange[0]!r})")
        if not whole:
            raise _damaged(path, "rows that were cut or altered")
        try:
            check_document(path, document, _KEYS)
        except DamagedFile as error:
            raise _damaged(path, f"one that was altered ({error.why})") from error
        return Finished(rows, seconds, made)


def _lines(table: Path) -> Mapping[str, str]:
    """The documents of a table by the names that their files had."""
    if not table.exists():
        return {}
    about = table.stat()
    return _read_lines(table, about.st_size, about.st_mtime_ns)


@lru_cache(64)
def _read_lines(table: Path, size: int, changed: int) -> Mapping[str, str]:
    parts = (line.partition("\t") for line in read_text(table).splitlines())
    return {name.strip('"'): document for name, _, document in parts}


def _checksum(rows: Rows) -> str:
    return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()[:16]


def _made(told: Any) -> dict[str, Any]:
    made = {name: told[name] for name in (_RUN if "versions" in told else ("by",)) if name in told}
    run = {name: _RUN[name](made[name]) for name in (_RUN if "versions" in made else ())}
    return {**{name: str(value) for name, value in made.items()}, **run}


def _damaged(path: Path, what: str) -> DatasetError:
    return DatasetError(f"{path}: expected a finished cell, got {what}")
