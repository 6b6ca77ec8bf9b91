"""Run a study: the missing cells, then its rows, its record and its figures.

The folder of a study holds `rows.csv`, figures that are drawn from these rows alone, and the record
of how they were made, `study.json`.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, TypeVar
from warnings import warn

from evgp._reading import read_text
from evgp.comparison.cells import CELLS, Cell, Finished, Store, Watch, run_cells
from evgp.comparison.curves import STYLE, save_figure
from evgp.comparison.rows import Record, Records, read_records, write_records
from evgp.datasets import check_document, locate, names, signed, write_text
from evgp.errors import DamagedFile, DamageWarning, DatasetError
from experiments.study import SCALES, Claim, Scale, Study, store_in, study_named, work_named

T = TypeVar("T")
# Where recorded rows and figures are kept, in the folder of the repository.
RESULTS = "experiments/results"
ROWS, RECORD = "rows.csv", "study.json"
_DIGITS = 9  # of numbers in rows.csv
_BYTES = 3 << 30  # approximate memory of a cell: a kernel of 10,000 points, and networks
_NEEDED = {
    "study": str, "scale": str, "departures": str, "command": str, "versions": dict,
    "cells": int, "finished": int, "cell_seconds": int | float, "cores": int | str,
}  # fmt: skip
_KNOWN_SINCE = {
    "rows": int, "checksum": str, "jobs": int, "cpu_seconds": int | float,
    "clock_seconds": int | float, "taken_over": dict, "drawn_with": str,
}  # fmt: skip


@dataclass(frozen=True)
class Reproduced:
    """The result of a run: its folder, the number of cells, and their total time."""

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
    watch: Watch = lambda done, total, left: None,
) -> Reproduced:
    """Run a study of the paper by name, and write its rows and figures to a folder of its own.

    Finished cells under `out` are not run again, whichever study ran them, so an interrupted run
    resumes where it stopped. With `draw_only` nothing runs: rows are gathered from what is
    finished, and figures drawn from the rows. A folder with a record of another scale is refused,
    unless that is smoke.
    """
    study = study_named(name)
    folder = Path(out) / study.name
    for place in () if draw_only else (folder, Path(out) / CELLS):
        _check_writable(place)
    check_scale(folder, scale, draw_only=draw_only)
    store, cells = store_in(Path(out)), list(study.cells(study.scales[scale]))
    for damage in store.damage(cells):
        done = "left out" if draw_only else "run again"
        warn(f"{damage.path} was damaged ({damage.why}) and is {done}", DamageWarning, 2)
    left = store.missing(cells)
    if not draw_only:
        _run(store, cells, left, jobs=1 if study.alone else jobs, watch=watch)
    if len(left) < len(cells) or not draw_only:
        _publish(study, scale, store, cells, "" if draw_only or not left else command)
    draw(study, folder)
    finished = len(cells) - (len(left) if draw_only else 0)
    return Reproduced(study, folder, finished, store.seconds(cells))


def _check_writable(folder: Path) -> None:
    """Raise if a folder cannot be written, before anything runs."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise DatasetError(
            f"{folder}: expected a folder that can be written, got {error.strerror}; pass another "
            "as --out"
        ) from error


def _run(
    store: Store, cells: list[Cell], left: list[Cell], *, jobs: int | None, watch: Watch
) -> None:
    for data in sorted({data_of(cell) for cell in left} & {*names()}):
        locate(data)  # a missing file is reported before anything runs
    run_cells(store, cells, jobs=jobs, memory=_BYTES, find=work_named, watch=watch)


def data_of(cell: Cell) -> str:
    """The name of the dataset of a cell; synthetic data has a name too."""
    return str(cell.settings.get("dataset") or cell.settings.get("dataset_name") or "")


def draw(study: Study, folder: Path) -> None:
    """Draw all figures of a study as PNG and SVG, from its rows alone."""
    from matplotlib import rc_context

    with rc_context(STYLE):
        for name, figure in from_rows(study.draw, folder).items():
            save_figure(figure, folder, name, dpi=140)
    record = read_record(folder)
    if record is not None:
        write_record(folder, {**record, "drawn_with": drawn_with()})


def drawn_with() -> str:
    """What determines the bytes of a figure, apart from its rows."""
    return f"matplotlib {version('matplotlib')}"


def _publish(study: Study, scale: Scale, store: Store, cells: list[Cell], command: str) -> None:
    """Write the rows of finished cells, and how they were made."""
    folder = store.folder / study.name
    folder.mkdir(parents=True, exist_ok=True)
    former = read_record(folder) or {}
    if former.get("scale") != scale:
        former = {}
    finished = [values for values in map(store.found, cells) if values is not None]
    rows = store.rows(cells)
    document = {
        "study": study.name,
        "scale": scale,
        "settings": dict(study.scales[scale]),
        "departures": _departures(study, scale),
        "command": command or former.get("command", ""),
        "cells": len(cells),
        "finished": len(finished),
        "rows": len(rows),
        **how_made(finished, former),
    }
    write_records(folder / ROWS, rows, digits=_DIGITS)
    write_record(folder, {**document, "checksum": checksum(folder)})


def _departures(study: Study, scale: Scale) -> str:
    if scale == "smoke":
        return "its sizes only show that it runs; the results say nothing about the paper."
    return study.departures if scale == "laptop" else study.paper_departures


def how_made(finished: Sequence[Finished], former: Mapping[str, Any]) -> dict[str, Any]:
    """Collect how cells were run, from the cells, or else from the earlier record.

    Seconds on the clock are those in which a cell was running, so runs that were resumed add up.
    """
    every = [cell.made for cell in finished]
    runs = [result for result in every if "versions" in result]
    commands = [result["by"] for result in every if "by" in result]
    complete = len(runs) == len(finished)
    known = [*([former] if former and not complete else []), *runs]
    packages = {name: None for result in known for name in result["versions"]}
    cores = _all([result["cores"] for result in known]) or "unknown"
    return {
        "cell_seconds": round(sum(cell.seconds for cell in finished)),
        "cpu_seconds": round(sum(run["cpu_seconds"] for run in runs)) if complete else None,
        "clock_seconds": round(_covered(finished)) if complete else None,
        "jobs": max(run["jobs"] for run in runs) if complete else None,
        "cores": int(cores) if cores.isdecimal() else cores,
        "versions": {
            name: _all([result["versions"].get(name, "") for result in known]) for name in packages
        },
        "taken_over": {name: commands.count(name) for name in dict.fromkeys(commands)} or None,
    }


def _all(values: Sequence[object]) -> str:
    """Every value once.

    >>> _all([2, 2, "2, 4"])
    '2, 4'
    """
    each = (part for value in values for part in str(value).split(", "))
    return ", ".join(dict.fromkeys(filter(None, each)))


def _covered(finished: Sequence[Finished]) -> float:
    covered, until = 0.0, 0.0
    for begun, ended in sorted(
        (cell.made["ended"] - cell.seconds, cell.made["ended"]) for cell in finished
    ):
        covered += max(0.0, ended - max(begun, until))
        until = max(until, ended)
    return covered


def read_record(folder: Path) -> dict[str, Any] | None:
    """How the rows of a folder were made; None if there are none."""
    path = folder / RECORD
    if not path.exists():
        return None
    try:
        record = json.loads(read_text(path))
    except DatasetError:
        raise
    except (ValueError, RecursionError) as error:
        raise _broken(path, f"a file that is broken ({error})") from error
    if not isinstance(record, dict):
        raise _broken(path, "something else")
    kinds = {**_NEEDED, **{name: kind for name, kind in _KNOWN_SINCE.items() if name in record}}
    for name, kind in kinds.items():
        if not isinstance(record.get(name), kind):
            raise _broken(path, f"{name}: {record.get(name)!r}")
    if record["scale"] not in SCALES or record["study"] != folder.name:
        raise _broken(path, f"one of {record['study']!r} at scale {record['scale']!r}")
    try:
        return check_document(path, record, (*kinds, *_KNOWN_SINCE, "settings"))
    except DamagedFile as error:
        raise _broken(path, f"one that was altered ({error.why})") from error


def write_record(folder: Path, document: Mapping[str, Any]) -> None:
    """Write the record, completely or not at all; unknown values are left out."""
    known = {name: value for name, value in document.items() if value is not None}
    write_text(folder / RECORD, json.dumps(signed(known), indent=2) + "\n")


def check_scale(folder: Path, scale: Scale, *, draw_only: bool = False) -> None:
    """Raise if this scale may not replace the record; only smoke runs may be replaced."""
    record = read_record(folder)
    if draw_only and record is not None and record["scale"] != scale:
        raise DatasetError(
            f"{folder}: expected a record of scale {scale} to draw, got one of {record['scale']}; "
            f"pass --scale {record['scale']}"
        )
    if record is not None and record["scale"] not in ("smoke", scale):
        raise DatasetError(
            f"{folder}: expected no record of another scale than {scale}, got one of "
            f"{record['scale']}; keep it, and pass another folder as --out"
        )


def rows_of(folder: Path) -> list[Record]:
    """The rows of a folder; raises if they do not match its record."""
    path = folder / ROWS
    if not path.exists():
        raise DatasetError(f"{path}: expected the rows of a study, got no file; run it")
    try:
        rows = read_records(path)
    except DamagedFile as error:
        raise DatasetError(
            f"{path}: expected the rows of a study, but {error.why}; write them again with --draw"
        ) from error
    record = read_record(folder)
    counted = len(rows) if record is None else record.get("rows", len(rows))
    if not rows or counted != len(rows):
        raise DatasetError(
            f"{path}: expected {counted or 'some'} rows as {RECORD} counts them, got {len(rows)}; "
            "write them again with --draw"
        )
    if record is not None and record.get("checksum", current := checksum(folder)) != current:
        raise DatasetError(
            f"{path}: expected the rows that {RECORD} was written with, got some that were "
            "altered; restore them, or write them again with --draw"
        )
    return rows


def checksum(folder: Path) -> str:
    """The checksum of the rows of a folder, independent of line endings."""
    text = read_text(folder / ROWS).replace("\r\n", "\n").replace("\r", "\n")
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def claims_of(study: Study, folder: Path) -> Sequence[Claim]:
    """The claims of the paper, checked with the rows of a folder."""
    return from_rows(study.claims, folder)


def from_rows(make: Callable[[Records], T], folder: Path) -> T:
    """Apply a function to the rows of a folder, which may not be those of a study."""
    rows = rows_of(folder)
    try:
        return make(rows)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise DatasetError(
            f"{folder / ROWS}: expected rows as the study writes them, got some that it cannot use "
            f"({type(error).__name__}: {error}); write them again with --draw"
        ) from error


def _broken(path: Path, what: str) -> DatasetError:
    return DatasetError(
        f"{path}: expected the record of a study, got {what}; remove it and run the study again, "
        "finished cells are kept"
    )


def spoken(seconds: float) -> str:
    """Format a duration.

    >>> [spoken(one) for one in (42.3, 1450, 13_000)]
    ['42 s', '24 min', '3.6 h']
    """
    if seconds < 119.5:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7170 else f"{seconds / 3600:.1f} h"
