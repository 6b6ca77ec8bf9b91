"""What a folder shows of its rows: tables, plots and a page, drawn from the rows alone."""

import platform
from collections.abc import Mapping
from pathlib import Path

import torch

from evgp._errors import DatasetError
from evgp._reading import read_text
from evgp.arena.plot import save_plots
from evgp.arena.render import render
from evgp.arena.study import Study
from evgp.arena.summarise import summarise
from evgp.arena.summary import Comparison
from evgp.arena.table import write_rows
from evgp.datasets import write_text

PAGE, COMMANDS = "page.html", "commands.txt"
_MOST_BYTES = 10_000_000


def publish(
    folder: str | Path,
    *,
    command: str = "",
    version: str = "",
    settings: Mapping[str, object] | None = None,
) -> Comparison:
    """Write `rows.csv`, `rows.parquet`, plots and `page.html` from the finished cells of a folder.

    A plot can be redone without a run. Commands that led here are kept in `commands.txt`, so that a
    study that grew tells them all.
    """
    place = Path(folder)
    rows = Study(place).rows()
    comparison = summarise(rows)
    for name in ("rows.csv", "rows.parquet"):
        write_rows(place / name, rows)
    save_plots(comparison, place)
    told = {
        **(settings or {}),
        "torch": torch.__version__.split("+")[0],
        "python": platform.python_version(),
    }
    commands = "\n".join(_remembered(place, command))
    page = render(comparison, {"command": commands, "version": version, **told})
    write_text(place / PAGE, page)
    return comparison


def _remembered(folder: Path, command: str) -> list[str]:
    """Every command so far, each once, with this one as the last."""
    path = folder / COMMANDS
    try:
        before = read_text(path, most=_MOST_BYTES).splitlines() if path.exists() else []
    except DatasetError:
        before = []  # a note that cannot be read is no reason to lose what was run
    every = [line for line in before if line != command] + ([command] if command else [])
    write_text(path, "".join(f"{line}\n" for line in every))
    return every
