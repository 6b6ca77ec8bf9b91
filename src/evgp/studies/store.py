"""Finished cells on the disk, shared by all studies of a folder, each whole or not there."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evgp.datasets import atomic
from evgp.studies.rows import Record, Rows, plain
from evgp.studies.study import Cell


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
        return [cell for cell in cells if self._read(cell) is None]

    def rows(self, cells: Sequence[Cell]) -> list[Record]:
        """Of all that are finished, each row with the plain settings of its cell."""
        made = []
        for cell in cells:
            found = self._read(cell)
            told = {k: v for k, v in cell.settings.items() if isinstance(v, str | int | float)}
            made += [{**told, **row} for row in (found[0] if found else ())]
        return made

    def seconds(self, cells: Sequence[Cell]) -> float:
        """What those that are finished took, one after another."""
        return sum(found[1] for found in map(self._read, cells) if found is not None)

    def add(self, cell: Cell, rows: Rows, seconds: float) -> None:
        """Keep a finished cell."""
        path = self._path(cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        document = {
            "work": cell.work,
            "settings": dict(cell.settings),
            "seconds": round(seconds, 2),
            "rows": plain(rows),
        }
        with atomic(path) as part:
            part.write_text(json.dumps(document, allow_nan=False), encoding="utf-8")

    def _path(self, cell: Cell) -> Path:
        text = json.dumps([cell.work, dict(cell.settings)], sort_keys=True)
        name = "-".join(
            str(cell.settings[key]).replace("/", "_").replace(":", "_")[:24]
            for key in ("dataset", "strategy", "seed")
            if key in cell.settings
        )
        what = cell.work.split(":")[0].rsplit(".", 1)[-1]
        key = hashlib.sha256(text.encode()).hexdigest()[:12]
        return self.folder / "cells" / "-".join(filter(None, [what, name, f"{key}.json"]))

    def _read(self, cell: Cell) -> tuple[list[Record], float] | None:
        try:
            document = json.loads(self._path(cell).read_text(encoding="utf-8"))
            return [dict(row) for row in document["rows"]], float(document["seconds"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
