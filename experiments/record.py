"""What a study's folder holds beside figures: its rows, and the record of how they were made."""

import hashlib
import json
import platform
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from evgp._errors import DamagedFile, DatasetError
from evgp._reading import read_text
from evgp.datasets import check_document, signed, write_text
from experiments import rows as table
from experiments.rows import Record, Rows
from experiments.store import Finished
from experiments.study import SCALES, Claim, Scale, Study

T = TypeVar("T")
ROWS, RECORD = "rows.csv", "study.json"
_NEEDED = {
    "study": str, "scale": str, "departures": str, "command": str, "versions": dict,
    "cells": int, "finished": int, "cell_seconds": int | float, "cores": int | str,
}  # fmt: skip
_KNOWN_SINCE = {
    "rows": int, "checksum": str, "jobs": int, "cpu_seconds": int | float,
    "clock_seconds": int | float, "taken_over": dict, "drawn_with": str,
}  # fmt: skip


def versions() -> dict[str, str]:
    """Of what decides the numbers, as they are here and now."""
    packages = {name: version(name).split("+")[0] for name in ("torch", "numpy", "scipy")}
    return {"python": platform.python_version(), **packages}


def read_record(folder: Path) -> dict[str, Any] | None:
    """How the rows of a folder were made; None where nothing was."""
    path = folder / RECORD
    if not path.exists():
        return None
    try:
        found = json.loads(read_text(path))
    except DatasetError:
        raise
    except (ValueError, RecursionError) as error:
        raise _broken(path, f"a file that is broken ({error})") from error
    if not isinstance(found, dict):
        raise _broken(path, "something else")
    kinds = {**_NEEDED, **{name: kind for name, kind in _KNOWN_SINCE.items() if name in found}}
    for name, kind in kinds.items():
        if not isinstance(found.get(name), kind):
            raise _broken(path, f"{name}: {found.get(name)!r}")
    if found["scale"] not in SCALES or found["study"] != folder.name:
        raise _broken(path, f"one of {found['study']!r} at scale {found['scale']!r}")
    try:
        return check_document(path, found, (*kinds, *_KNOWN_SINCE, "settings"))
    except DamagedFile as error:
        raise _broken(path, f"one that was altered ({error.why})") from error


def write_record(folder: Path, document: Mapping[str, Any]) -> None:
    """Keep it, whole or not at all; what is not known is left out."""
    known = {name: value for name, value in document.items() if value is not None}
    write_text(folder / RECORD, json.dumps(signed(known), indent=2) + "\n")


def check_scale(folder: Path, scale: Scale, *, draw_only: bool = False) -> None:
    """Refuse a folder whose record this scale may not replace: only a smoke run gives way."""
    found = read_record(folder)
    if draw_only and found is not None and found["scale"] != scale:
        raise DatasetError(
            f"{folder}: expected a record of scale {scale} to draw, got one of {found['scale']}; "
            f"say --scale {found['scale']}"
        )
    if found is not None and found["scale"] not in ("smoke", scale):
        raise DatasetError(
            f"{folder}: expected no record of another scale than {scale}, got one of "
            f"{found['scale']}; keep it, and give another folder with --out"
        )


def rows_of(folder: Path) -> list[Record]:
    """The rows of a folder, as many as its record counts."""
    found, record = table.read(folder / ROWS), read_record(folder)
    counted = len(found) if record is None else record.get("rows", len(found))
    if counted != len(found):
        raise DatasetError(
            f"{folder / ROWS}: expected {counted} rows as {RECORD} counts them, got {len(found)}; "
            "make them anew with --draw"
        )
    if record is not None and record.get("checksum", told := checksum(folder)) != told:
        raise DatasetError(
            f"{folder / ROWS}: expected the rows that {RECORD} was written with, got some that "
            "were altered; restore them, or make them anew with --draw"
        )
    return found


def checksum(folder: Path) -> str:
    """Of the rows of a folder, whatever ends their lines."""
    text = read_text(folder / ROWS).replace("\r\n", "\n").replace("\r", "\n")
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def claims_of(study: Study, folder: Path) -> Sequence[Claim]:
    """What the rows of a folder say of the paper's claims."""
    return from_rows(study.claims, folder)


def from_rows(make: Callable[[Rows], T], folder: Path) -> T:
    """What is made of the rows of a folder, which may hold what no study wrote."""
    found = rows_of(folder)
    try:
        return make(found)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise DatasetError(
            f"{folder / ROWS}: expected rows as the study writes them, got some that it cannot use "
            f"({type(error).__name__}: {error}); make them anew with --draw"
        ) from error


def how_made(found: Sequence[Finished], former: Mapping[str, Any]) -> dict[str, Any]:
    """What cells say of how they were made, and where none does, what was known before.

    Seconds on the clock are those in which a cell was running, so runs that were resumed add up.
    """
    told = [one.made for one in found]
    ran = [one for one in told if "versions" in one]
    by = [one["by"] for one in told if "by" in one]
    every = len(ran) == len(found)
    known = [*([former] if former and not every else []), *ran]
    names = {name: None for one in known for name in one["versions"]}
    on = _all([one["cores"] for one in known]) or "unknown"
    return {
        "cell_seconds": round(sum(one.seconds for one in found)),
        "cpu_seconds": round(sum(one["cpu_seconds"] for one in ran)) if every else None,
        "clock_seconds": round(_covered(found)) if every else None,
        "jobs": max(one["jobs"] for one in ran) if every else None,
        "cores": int(on) if on.isdecimal() else on,
        "versions": {
            name: _all([one["versions"].get(name, "") for one in known]) for name in names
        },
        "taken_over": {command: by.count(command) for command in dict.fromkeys(by)} or None,
    }


def _all(values: Sequence[object]) -> str:
    """Every value once.

    >>> _all([2, 2, "2, 4"])
    '2, 4'
    """
    each = (part for value in values for part in str(value).split(", "))
    return ", ".join(dict.fromkeys(filter(None, each)))


def _covered(found: Sequence[Finished]) -> float:
    covered, until = 0.0, 0.0
    for begun, ended in sorted(
        (one.made["ended"] - one.seconds, one.made["ended"]) for one in found
    ):
        covered += max(0.0, ended - max(begun, until))
        until = max(until, ended)
    return covered


def _broken(path: Path, what: str) -> DatasetError:
    return DatasetError(
        f"{path}: expected the record of a study, got {what}; remove it and run the study again, "
        "finished cells are kept"
    )
