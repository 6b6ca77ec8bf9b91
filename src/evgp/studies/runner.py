"""Run a study: the cells that are missing, in processes, then its table and figures."""

import json
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy
import scipy
import torch

from evgp._executor import Progress, silent
from evgp._machine import available_memory
from evgp._processes import cores, in_processes, tell
from evgp.datasets import atomic, locate, names, write_text
from evgp.studies import rows as table
from evgp.studies.named import study_named
from evgp.studies.store import Store
from evgp.studies.study import Cell, Claim, Scale, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROWS, RECORD = "rows.csv", "study.json"
_STYLE: Any = {"svg.hashsalt": "evgp", "font.size": 9.5, "axes.edgecolor": "#585d6b"}
_BYTES = 3 << 30  # about what a cell may need: a kernel of 10,000 points and networks


@dataclass(frozen=True)
class Reproduced:
    """What a run left: where, how much of it, and what the rows say of the paper's claims."""

    study: Study
    folder: Path
    cells: int
    seconds: float


def reproduce(
    name: str,
    *,
    scale: Scale = "laptop",
    out: str | Path = "studies",
    jobs: int | None = None,
    draw_only: bool = False,
    command: str = "",
    progress: Progress = silent,
) -> Reproduced:
    """Run a study of the paper by name, and write its rows and figures to a folder of its own.

    What is finished under `out` is not run again, whichever study asked for it, so a run that was
    stopped goes on where it was. With `draw_only` nothing runs: rows are gathered from what is
    finished, and figures drawn from the rows.
    """
    study = study_named(name)
    folder = Path(out) / study.name
    store, cells = Store(Path(out)), list(study.cells(study.scales[scale]))
    left = store.missing(cells)
    if draw_only:
        if len(left) < len(cells):
            _publish(study, scale, store, cells, "")
        draw(study, folder)
        return Reproduced(study, folder, len(cells) - len(left), store.seconds(cells))
    for data in sorted({data_of(cell) for cell in left} & {*names()}):
        locate(data)  # what is missing is told before anything runs
    done = len(cells) - len(left)
    progress("cells", done, len(cells))

    def heard(more: int) -> None:
        nonlocal done
        done += more
        progress("cells", done, len(cells))

    most = 1 if study.alone else jobs or cores()
    count = min(most, len(left), max(1, available_memory() // _BYTES))
    if count > 1:
        in_processes(_elsewhere, [(store, cell) for cell in left], count, heard)
    else:
        for cell in left:
            _work(store, cell)
            heard(1)
    _publish(study, scale, store, cells, command)
    draw(study, folder)
    return Reproduced(study, folder, len(cells), store.seconds(cells))


def draw(study: Study, folder: Path) -> None:
    """Every figure of a study as PNG and SVG; the same rows, the same bytes."""
    from matplotlib import rc_context

    with rc_context(_STYLE):
        for name, figure in study.draw(table.read(folder / ROWS)).items():
            _save(figure, folder, name)


def claims_of(study: Study, folder: Path) -> Sequence[Claim]:
    """What the rows of a folder say of the paper's claims."""
    found = table.read(folder / ROWS)
    return study.claims(found) if found else ()


def _save(figure: "Figure", folder: Path, name: str) -> None:
    for kind, dated in (("png", "Software"), ("svg", "Date")):
        with atomic(folder / f"{name}.{kind}") as part:
            figure.savefig(part, format=kind, dpi=140, metadata={dated: None})


def data_of(cell: Cell) -> str:
    """The dataset that a cell works on; made-up data has a name too."""
    return str(cell.settings.get("dataset") or cell.settings.get("dataset_name") or "")


def _elsewhere(store: Store, cell: Cell) -> None:
    """In a process of its own."""
    _work(store, cell)
    tell()


def _work(store: Store, cell: Cell) -> None:
    module, function = cell.work.split(":")
    begun = perf_counter()
    made = getattr(import_module(module), function)(**cell.settings)
    store.add(cell, made, perf_counter() - begun)


def _publish(study: Study, scale: Scale, store: Store, cells: list[Cell], command: str) -> None:
    """The rows of what is finished, and how they came to be."""
    folder = store.folder / study.name
    folder.mkdir(parents=True, exist_ok=True)
    table.write(folder / ROWS, store.rows(cells))
    document = {
        "study": study.name,
        "scale": scale,
        "settings": dict(study.scales[scale]),
        "departures": _departures(study, scale),
        "command": command or f"evgp reproduce {study.name} --scale {scale}",
        "cells": len(cells),
        "finished": len(cells) - len(store.missing(cells)),
        "cell_seconds": round(store.seconds(cells)),
        "cores": cores(),
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__.split("+")[0],
            "numpy": numpy.__version__,
            "scipy": scipy.__version__,
        },
    }
    write_text(folder / RECORD, json.dumps(document, indent=2) + "\n")


def _departures(study: Study, scale: Scale) -> str:
    if scale == "smoke":
        return "its sizes only show that it runs; what comes out says nothing of the paper."
    return study.departures if scale == "laptop" else study.paper_departures
