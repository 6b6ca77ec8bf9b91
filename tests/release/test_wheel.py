"""What is built: a small wheel of Python and pages, sources that build it again."""

import re
import subprocess
import sys
import tarfile
import tomllib
from email.message import Message
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import evgp
from evgp._extras import EXTRAS

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FOR_US = {"dev", "docs"}  # extras for those who build evgp
IMPORTED_AS = {
    "scikit-activeml": "skactiveml",
    "modAL-python": "modAL",
    "sentence-transformers": "sentence_transformers",
}


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sources")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (paths,) = folder.glob("*.tar.gz")
    return paths


def test_the_wheel_is_pure_and_small(wheel: Path) -> None:
    assert wheel.name == f"evgp-{evgp.__version__}-py3-none-any.whl"
    assert wheel.stat().st_size < 775_000


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
    about = f"evgp-{evgp.__version__}.dist-info"
    assert {name.split("/")[0] for name in names} == {"evgp", about}
    package = ROOT / "src" / "evgp"
    expected = {
        f"evgp/{path.relative_to(package).as_posix()}"
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".md"
    }
    assert {name for name in names if name.startswith("evgp/")} == expected
    assert {"evgp/py.typed", "evgp/labelling/web/label.js", "evgp/report/page.html"} <= names
    assert {f"{about}/entry_points.txt", f"{about}/licenses/LICENSE"} <= names


def test_the_wheel_says_what_it_needs(metadata: Message) -> None:
    assert metadata["Version"] == evgp.__version__
    assert set(metadata.get_all("Provides-Extra")) == set(PROJECT["optional-dependencies"])
    core = {
        item.name
        for item in map(Requirement, metadata.get_all("Requires-Dist"))
        if item.marker is None
    }
    assert core == {Requirement(line).name for line in PROJECT["dependencies"]}
    assert core.isdisjoint({"fastapi", "uvicorn", "dask", "distributed", "httpx", "numba"})


def test_pythons_are_those_that_are_promised(metadata: Message) -> None:
    named = {
        line.rsplit(" ", 1)[1]
        for line in metadata.get_all("Classifier")
        if line.startswith("Programming Language :: Python :: 3.")
    }
    assert named == {"3.11", "3.12", "3.13"}
    assert all(version in SpecifierSet(metadata["Requires-Python"]) for version in named)
    page = (ROOT / "docs" / "release.md").read_text(encoding="utf-8")
    assert all(version in page for version in named)


def test_every_extra_is_known_with_all_its_packages() -> None:
    declared = {
        name: {module for line in lines for module in _modules(Requirement(line))}
        for name, lines in PROJECT["optional-dependencies"].items()
        if name not in FOR_US
    }
    assert {extra.name: set(extra.modules) for extra in EXTRAS.values()} == declared, (
        "add it to EXTRAS in src/evgp/_extras.py"
    )
    (own,) = (first for line in PROJECT["optional-dependencies"]["dev"]
              if (first := Requirement(line)).name == "evgp")  # fmt: skip
    assert own.extras == set(PROJECT["optional-dependencies"]) - {"dev", "text"}, (
        "dev is everything but language models"
    )


def _modules(one: Requirement) -> set[str]:
    return {IMPORTED_AS.get(one.name, one.name), *one.extras}


def test_every_extra_is_documented() -> None:
    page = (ROOT / "docs" / "release.md").read_text(encoding="utf-8")
    for extra in EXTRAS.values():
        packages = ", ".join(f"`{module}`" for module in extra.modules)
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{extra.name}` |")]
        assert row.replace("`", "") == f"| {extra.name} | {extra.purpose} | {packages} |".replace(
            "`", ""
        )


def test_the_sources_are_whole_and_build_the_same_wheel(
    sources: Path, wheel: Path, tmp_path: Path
) -> None:
    with tarfile.open(sources) as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    for name in ("tests/release", "benchmarks", "CITATION.cff", "SECURITY.md", "LICENSE"):
        assert (folder / name).exists(), name
    for page in ("README.md", "CONTRIBUTING.md", "docs/index.md"):
        text = (folder / page).read_text(encoding="utf-8")
        for link in re.findall(r"\]\(([^)#\s:]+)[)#]", text):
            assert (folder / page).parent.joinpath(link).exists(), f"{page} links to {link}"
    assert not list(folder.rglob("__pycache__")) and not (folder / ".venv").exists()
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    (again,) = tmp_path.glob("*.whl")
    assert sha256(again.read_bytes()).digest() == sha256(wheel.read_bytes()).digest()
