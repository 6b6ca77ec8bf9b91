"""The wheel, and an environment that holds it and what it requires, but no extras."""

import subprocess
import sys
from email.message import Message
from email.parser import Parser
from importlib.metadata import Distribution, distribution
from pathlib import Path
from venv import EnvBuilder
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as a user would, from the sources as they are."""
    folder = tmp_path_factory.mktemp("dist")
    command = ("wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(folder))
    subprocess.run([*PIP, *command, str(ROOT)], check=True, capture_output=True)
    (result,) = folder.iterdir()
    return result


@pytest.fixture(scope="session")
def metadata(wheel: Path) -> Message:
    """The metadata of the wheel."""
    with ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return Parser().parsestr(archive.read(name).decode())


@pytest.fixture(scope="session")
def core(wheel: Path, metadata: Message, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a new environment: the wheel is installed there, what it requires linked.

    Nothing else is in it, so that what evgp imports and does not require is noticed.
    """
    folder = tmp_path_factory.mktemp("core")
    EnvBuilder(symlinks=True).create(folder)
    (packages,) = folder.glob("lib/python*/site-packages")
    for item in _required(metadata.get_all("Requires-Dist", [])).values():
        _link(item, packages)
    programs = folder / "bin"
    command = ("--python", str(programs / "python"), "install", "--no-deps", "--no-index")
    subprocess.run([*PIP, *command, str(wheel)], check=True, capture_output=True)
    return programs


def _required(lines: list[str]) -> dict[str, Distribution]:
    """All that some requirements lead to."""
    entries: dict[str, Distribution] = {}
    waiting = [(Requirement(line), "") for line in lines]
    while waiting:
        first, extra = waiting.pop()
        name = canonicalize_name(first.name)
        if first.marker is not None and not first.marker.evaluate({"extra": extra}):
            continue
        new = name not in entries
        if new:
            entries[name] = distribution(name)
        for expected in ({""} if new else set()) | first.extras:
            waiting += [(Requirement(line), expected) for line in entries[name].requires or ()]
    return entries


def _link(one: Distribution, packages: Path) -> None:
    """The folders and files of a package, as they are installed."""
    for top in {file.parts[0] for file in one.files or ()} - {"..", "__pycache__"}:
        link = packages / top
        if not link.exists():
            link.symlink_to(Path(str(one.locate_file(top))))
