"""Look at everything once."""

import os
import platform
import shutil
import sqlite3
from pathlib import Path

from evgp._errors import DatasetError
from evgp.checkup.facts import Facts, Folder
from evgp.checkup.machine import devices, memory, threads
from evgp.checkup.packages import installed, optional, required


def look() -> Facts:
    """What this machine and this installation have.

    >>> facts = look()
    >>> {"torch", "numpy"} <= {package.name for package in facts.packages}
    True
    """
    packages = required()
    whole = not any(package.trouble for package in packages)
    folders, missing = _folders() if whole else ((), ())
    return Facts(
        evgp=installed("evgp"),
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.release()} on {platform.machine()}",
        sqlite=sqlite3.sqlite_version,
        packages=packages,
        threads=threads(),
        memory=memory(),
        devices=devices(),
        folders=folders,
        missing_sets=missing,
        parts=optional(),
    )


def _folders() -> tuple[tuple[Folder, ...], tuple[str, ...]]:
    """Data and cache, and which named sets are nowhere; their code needs every package."""
    from evgp.datasets import cache_folder, locate, names

    found: dict[Path, list[str]] = {}
    missing = []
    for name in names():
        try:
            found.setdefault(locate(name).parent, []).append(name)
        except DatasetError:
            missing.append(name)
    kept = cache_folder()
    given = os.environ.get("EVGP_DATA")
    folders = [_folder("data", Path(given), "EVGP_DATA", found)] if given else []
    folders += [
        _folder("data", kept / "data", "EVGP_CACHE", found),
        _folder("cache", kept, "EVGP_CACHE", {}),
    ]
    return tuple(folders), tuple(missing)


def _folder(role: str, path: Path, variable: str, found: dict[Path, list[str]]) -> Folder:
    """The nearest folder that exists says whether ours could be made, and how much fits."""
    there = next((one for one in (path, *path.absolute().parents) if one.exists()), path)
    exists = path.is_dir()
    try:
        free: int | None = shutil.disk_usage(there).free
    except OSError:
        free = None
    writable = there.is_dir() and os.access(there, os.W_OK | os.X_OK)
    return Folder(role, str(path), variable, exists, writable, free, tuple(found.get(path, ())))
