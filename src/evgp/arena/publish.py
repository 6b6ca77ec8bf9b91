"""What a folder shows of its rows: tables, plots and a page, drawn from the rows alone."""

import platform
from collections.abc import Mapping
from pathlib import Path

import torch

from evgp._reading import check_plain, read_bytes
from evgp.arena.plot import save_plots
from evgp.arena.render import render
from evgp.arena.study import Study
from evgp.arena.summarise import summarise
from evgp.arena.summary import Comparison
from evgp.arena.table import write_rows
from evgp.datasets import write_text

PAGE, COMMANDS, ROWS = "page.html", "commands.txt", ("rows.csv", "rows.parquet")
_MOST_BYTES = 10_000_000


def check_publishable(folder: str | Path) -> None:
    """Refuse a folder where something else has the name of a file to write, before anything runs.

    >>> check_publishable("a-folder-that-is-not-there-yet")
    """
    place = Path(folder)
    for name in (*ROWS, PAGE):
        if (place / name).exists():
            check_plain(place / name)
    _commands(place)


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
    Study(place).warn_of_damage()
    rows = Study(place).rows()
    comparison = summarise(rows)
    for name in ROWS:
        write_rows(place / name, rows)
    save_plots(comparison, place)
    told = {
        **(settings or {}),
        "torch": torch.__version__.split("+")[0],
        "python": platform.python_version(),
    }
    # Bytes of a file's name that are not UTF-8 are question marks, as in the names of datasets.
    shown = command.encode("utf-8", "replace").decode()
    commands = "\n".join(_remembered(place, shown))
    page = render(comparison, {"command": commands, "version": version, **told})
    write_text(place / PAGE, page)
    return comparison


def _remembered(folder: Path, command: str) -> list[str]:
    """Every command so far, each once, with this one as the last."""
    every = [line for line in _commands(folder) if line != command] + ([command] if command else [])
    write_text(folder / COMMANDS, "".join(f"{line}\n" for line in every))
    return every


def _commands(folder: Path) -> list[str]:
    path = folder / COMMANDS
    if not path.exists():
        return []
    return read_bytes(path, most=_MOST_BYTES).decode("utf-8", "replace").splitlines()
