"""Run a study: the cells that are missing, in processes, then its table and figures."""

from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryFile
from time import perf_counter, process_time, time
from typing import TYPE_CHECKING, Any
from warnings import warn

from evgp._errors import DatasetError, DataWarning
from evgp._machine import available_memory
from evgp._processes import cores, in_processes, tell
from evgp.datasets import atomic, locate, names
from experiments import rows as table
from experiments.named import study_named
from experiments.pace import Watch, seconds_left, unwatched
from experiments.record import (
    ROWS,
    check_scale,
    checksum,
    from_rows,
    how_made,
    read_record,
    versions,
    write_record,
)
from experiments.store import CELLS, Store
from experiments.study import Cell, Scale, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Where recorded rows and figures are kept, in the folder of the repository.
RESULTS = "experiments/results"
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
    out: str | Path = RESULTS,
    jobs: int | None = None,
    draw_only: bool = False,
    command: str = "",
    watch: Watch = unwatched,
) -> Reproduced:
    """Run a study of the paper by name, and write its rows and figures to a folder of its own.

    What is finished under `out` is not run again, whichever study asked for it, so a run that was
    stopped goes on where it was. With `draw_only` nothing runs: rows are gathered from what is
    finished, and figures drawn from the rows. A folder with a record of another scale is refused,
    unless that is smoke.
    """
    study = study_named(name)
    folder = Path(out) / study.name
    for one in () if draw_only else (folder, Path(out) / CELLS):
        _try(one)
    check_scale(folder, scale, draw_only=draw_only)
    store, cells = Store(Path(out)), list(study.cells(study.scales[scale]))
    for damage in store.damage(cells):
        warn(f"{damage}; it is {'left out' if draw_only else 'run again'}", DataWarning, 2)
    left = store.missing(cells)
    if not draw_only:
        most = 1 if study.alone else jobs or cores()
        _run(store, cells, left, most=most, watch=watch)
    if len(left) < len(cells) or not draw_only:
        _publish(study, scale, store, cells, "" if draw_only or not left else command)
    draw(study, folder)
    finished = len(cells) - (len(left) if draw_only else 0)
    return Reproduced(study, folder, finished, store.seconds(cells))


def _try(folder: Path) -> None:
    """Refuse a folder that cannot be written before anything runs for it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise DatasetError(
            f"{folder}: expected a folder that can be written, got {error.strerror}; give another "
            "with --out"
        ) from error


def _run(store: Store, cells: list[Cell], left: list[Cell], *, most: int, watch: Watch) -> None:
    """The cells that are left, in as many processes as there is room for, at most so many."""
    for data in sorted({data_of(cell) for cell in left} & {*names()}):
        locate(data)  # what is missing is told before anything runs
    count = min(most, len(left), max(1, available_memory() // _BYTES))
    took = {id(cell): found.seconds for cell in cells if (found := store.found(cell))}
    before = [(cell, took[id(cell)]) for cell in cells if id(cell) in took]

    def heard(more: int) -> None:
        waiting = [cell for cell in left if id(cell) not in took]
        took.update({id(cell): one.seconds for cell in waiting if (one := store.found(cell))})
        now = [(cell, took[id(cell)]) for cell in left if id(cell) in took]
        waiting = [cell for cell in left if id(cell) not in took]
        watch(len(took), len(cells), seconds_left(now, before, waiting, count))

    heard(0)
    if count > 1:
        in_processes(_elsewhere, [(store, cell, count) for cell in left], count, heard)
    else:
        for cell in left:
            _work(store, cell, 1)
            heard(1)


def draw(study: Study, folder: Path) -> None:
    """Every figure of a study as PNG and SVG, from its rows alone."""
    from matplotlib import rc_context

    with rc_context(_STYLE):
        for name, figure in from_rows(study.draw, folder).items():
            _save(figure, folder, name)
    record = read_record(folder)
    if record is not None:
        write_record(folder, {**record, "drawn_with": drawn_with()})


def drawn_with() -> str:
    """What decides the bytes of a figure, beside its rows."""
    return f"matplotlib {version('matplotlib')}"


def _save(figure: "Figure", folder: Path, name: str) -> None:
    for kind, dated in (("png", "Software"), ("svg", "Date")):
        with atomic(folder / f"{name}.{kind}") as part:
            figure.savefig(part, format=kind, dpi=140, metadata={dated: None})


def data_of(cell: Cell) -> str:
    """The dataset that a cell works on; made-up data has a name too."""
    return str(cell.settings.get("dataset") or cell.settings.get("dataset_name") or "")


def _elsewhere(store: Store, cell: Cell, count: int) -> None:
    """In a process of its own."""
    _work(store, cell, count)
    tell()


def _work(store: Store, cell: Cell, count: int) -> None:
    module, function = cell.work.split(":")
    module = module.replace("evgp.studies.", "experiments.")  # as cells were recorded first
    begun, busy = perf_counter(), process_time()
    rows = getattr(import_module(module), function)(**cell.settings)
    seconds = perf_counter() - begun
    made = {
        "ended": round(time(), 2),
        "cpu_seconds": round(process_time() - busy, 2),
        "jobs": count,
        "cores": cores(),
        "versions": versions(),
    }
    store.add(cell, rows, seconds, made)


def _publish(study: Study, scale: Scale, store: Store, cells: list[Cell], command: str) -> None:
    """The rows of what is finished, and how they came to be; without a command, as they did."""
    folder = store.folder / study.name
    folder.mkdir(parents=True, exist_ok=True)
    former = read_record(folder) or {}
    if former.get("scale") != scale:
        former = {}
    found = [one for one in map(store.found, cells) if one is not None]
    rows = store.rows(cells)
    document = {
        "study": study.name,
        "scale": scale,
        "settings": dict(study.scales[scale]),
        "departures": _departures(study, scale),
        "command": command or former.get("command", ""),
        "cells": len(cells),
        "finished": len(found),
        "rows": len(rows),
        **how_made(found, former),
    }
    table.write(folder / ROWS, rows)
    write_record(folder, {**document, "checksum": checksum(folder)})


def _departures(study: Study, scale: Scale) -> str:
    if scale == "smoke":
        return "its sizes only show that it runs; what comes out says nothing of the paper."
    return study.departures if scale == "laptop" else study.paper_departures
