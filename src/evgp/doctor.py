"""Look at this machine and this installation, and advise what to fix."""

import os
import platform
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, packages_distributions, requires, version
from importlib.util import find_spec
from pathlib import Path

import psutil
from packaging.requirements import InvalidRequirement, Requirement

from evgp._extras import EXTRAS
from evgp._machine import limits
from evgp._processes import cores
from evgp.errors import DatasetError

_LOW_MEMORY = 10**9  # bytes; torch alone takes a third of it
_LOW_DISK = 2 * 10**9
_OLD_SQLITE = (3, 12)  # earlier versions do not know `synchronous=EXTRA`
_TESTED = ((3, 11), (3, 13))


@dataclass(frozen=True)
class Package:
    """A required package: its version, the versions that evgp needs, and what is wrong with it.

    `version` is empty if it is not installed, `trouble` if nothing is wrong.
    """

    name: str
    version: str
    needs: str = ""
    trouble: str = ""


@dataclass(frozen=True)
class Threads:
    """Cores that this process may use, threads that it uses, and `OMP_NUM_THREADS`."""

    cores: int
    torch: int | None
    blas: tuple[tuple[str, int], ...] = ()
    asked: str | None = None


@dataclass(frozen=True)
class Memory:
    """Memory in bytes: of the machine, free now, and the tightest limit of a container, if any."""

    total: int
    free: int
    limit: int | None = None
    used: int | None = None

    @property
    def usable(self) -> int:
        """Memory that a run can use now.

        >>> Memory(total=8, free=6, limit=4, used=1).usable
        3
        """
        if self.limit is None:
            return self.free
        return min(self.free, max(0, self.limit - (self.used or 0)))


@dataclass(frozen=True)
class Device:
    """A device that torch can use."""

    name: str
    about: str


@dataclass(frozen=True)
class Folder:
    """A folder that evgp reads or writes; the environment `variable` changes it."""

    role: str
    path: str
    variable: str
    exists: bool
    writable: bool
    free: int | None = None
    sets: tuple[str, ...] = ()


@dataclass(frozen=True)
class OptionalPart:
    """An optional part: whether it is installed, and the command that installs it."""

    name: str
    purpose: str
    packages: tuple[tuple[str, str], ...]
    install: str

    @property
    def present(self) -> bool:
        """Whether all its packages are installed."""
        return all(version for _, version in self.packages)


@dataclass(frozen=True)
class Environment:
    """Everything that `evgp doctor` shows."""

    evgp: str
    python: str
    platform: str
    sqlite: str
    packages: tuple[Package, ...]
    threads: Threads
    memory: Memory
    devices: tuple[Device, ...]
    folders: tuple[Folder, ...]
    missing_sets: tuple[str, ...]
    parts: tuple[OptionalPart, ...]


_IMPORTED_AS = {"scikit-learn": "sklearn", "pillow": "PIL"}
# Others are shown only if something is wrong with them.
_SHOWN = ("torch", "numpy", "scipy", "scikit-learn", "pyarrow")


def required() -> tuple[Package, ...]:
    """The required packages, each imported to check that it works."""
    return tuple(_tried(requirement) for requirement in _requirements())


def is_shown(package: Package) -> bool:
    """Whether to show the version of a package."""
    return package.name in _SHOWN or bool(package.trouble)


def optional() -> tuple[OptionalPart, ...]:
    """The extras, with the versions of their packages; nothing is imported."""
    packages = packages_distributions()  # which takes a third of a second
    return tuple(
        OptionalPart(
            extra.name,
            extra.purpose,
            tuple((module, _module_version(module, packages)) for module in extra.modules),
            extra.install,
        )
        for extra in EXTRAS.values()
    )


def installed(name: str) -> str:
    """The version of a package; empty if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _module_version(name: str, packages: Mapping[str, list[str]]) -> str:
    """The version of the package that a module belongs to; empty if there is no such module."""
    if find_spec(name) is None:
        return ""
    return installed(packages.get(name, [name])[0]) or "unknown version"


def _requirements() -> Iterator[Requirement]:
    try:
        lines = requires("evgp") or []
    except PackageNotFoundError:  # run from source, not installed
        lines = list(_SHOWN)
    for line in lines:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield requirement


def _tried(requirement: Requirement) -> Package:
    """Try to import a package; a broken one may raise anything, so anything is caught."""
    name, needs = requirement.name, str(requirement.specifier)
    version = installed(name)
    if not version:
        return Package(name, "", needs, "it is not installed")
    if not requirement.specifier.contains(version, prereleases=True):
        return Package(name, version, needs, f"evgp needs {needs}")
    try:
        import_module(_IMPORTED_AS.get(name, name))
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        return Package(name, version, needs, f"it cannot be imported ({reason[:200]})")
    return Package(name, version, needs)


def threads() -> Threads:
    """The threads of torch and of linear algebra libraries, and the cores that they may use."""
    return Threads(cores(), _torch_threads(), tuple(_blas()), os.environ.get("OMP_NUM_THREADS"))


def memory(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> Memory:
    """The memory of the machine, and of the tightest container around this process."""
    now = psutil.virtual_memory()
    containers = limits(root, own)
    limit, used = min(containers, key=lambda pair: pair[0] - pair[1], default=(None, None))
    return Memory(int(now.total), int(now.available), limit, used)


def devices() -> tuple[Device, ...]:
    """The CPU, and the other devices that torch can use."""
    available = [Device("cpu", f"{cores()} cores")]
    try:
        import torch

        for i in range(torch.cuda.device_count()):
            about = torch.cuda.get_device_properties(i)
            available.append(
                Device(f"cuda:{i}", f"{about.name}, {about.total_memory / 1e9:.0f} GB")
            )
        if torch.backends.mps.is_available():
            available.append(Device("mps", "Apple GPU"))
    except Exception as error:  # a driver that does not match may raise anything
        available.append(Device("others", f"unknown ({type(error).__name__}: {error})"))
    return tuple(available)


def _torch_threads() -> int | None:
    try:
        import torch

        return int(torch.get_num_threads())
    except Exception:  # reported with the packages
        return None


def _blas() -> Iterator[tuple[str, int]]:
    """The linear algebra libraries of NumPy, SciPy and torch, each once, with its threads."""
    try:
        import scipy.linalg  # noqa: F401  loads those of NumPy too
        from threadpoolctl import threadpool_info

        libraries = {
            f"{pool['internal_api']} {pool.get('version') or ''}".strip(): int(pool["num_threads"])
            for pool in threadpool_info()
        }
    except Exception:
        return
    yield from sorted(libraries.items())
    try:
        import torch

        if torch.backends.mkl.is_available():  # type: ignore[no-untyped-call]
            yield "mkl in torch", int(torch.get_num_threads())
    except Exception:
        return


def inspect() -> Environment:
    """Look at this machine and this installation.

    >>> {"torch", "numpy"} <= {package.name for package in inspect().packages}
    True
    """
    packages = required()
    working = not any(package.trouble for package in packages)
    folders, missing = _folders() if working else ((), ())
    return Environment(
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
    """The data and cache folders, and the named datasets that are missing.

    Imported here, because `datasets` needs every required package.
    """
    from evgp.datasets import cache_folder, locate, names

    datasets: dict[Path, list[str]] = {}
    missing = []
    for name in names():
        try:
            datasets.setdefault(locate(name).parent, []).append(name)
        except DatasetError:
            missing.append(name)
    cache = cache_folder()
    chosen = os.environ.get("EVGP_DATA")
    folders = [_folder("data", Path(chosen), "EVGP_DATA", datasets)] if chosen else []
    folders += [
        _folder("data", cache / "data", "EVGP_CACHE", datasets),
        _folder("cache", cache, "EVGP_CACHE", {}),
    ]
    return tuple(folders), tuple(missing)


def _folder(role: str, path: Path, variable: str, datasets: dict[Path, list[str]]) -> Folder:
    """A folder; if it does not exist, its nearest parent says whether it could be created."""
    there = next((parent for parent in (path, *path.absolute().parents) if parent.exists()), path)
    exists = path.is_dir()
    try:
        free: int | None = shutil.disk_usage(there).free
    except OSError:
        free = None
    writable = there.is_dir() and os.access(there, os.W_OK | os.X_OK)
    return Folder(role, str(path), variable, exists, writable, free, tuple(datasets.get(path, ())))


def advise(environment: Environment) -> tuple[str, ...]:
    """The problems, worst first; empty if there are none."""
    return (
        *_packages(environment),
        *_versions(environment),
        *_of_memory(environment.memory),
        *_of_threads(environment.threads),
        *(sentence for folder in environment.folders for sentence in _of_folder(folder)),
    )


def is_broken(environment: Environment) -> bool:
    """Whether evgp cannot work as it is installed."""
    return any(package.trouble for package in environment.packages)


def _packages(environment: Environment) -> Iterator[str]:
    for package in environment.packages:
        if package.trouble:
            shown = f"{package.name} {package.version}".strip()
            yield (
                f"{shown}: {package.trouble}; run "
                f'`pip install --force-reinstall "{package.name}{package.needs}"`'
            )
    if not environment.evgp:
        yield "evgp runs from source and is not installed; run `pip install --editable .`"


def _versions(environment: Environment) -> Iterator[str]:
    oldest, newest = _TESTED
    if not oldest <= _numbers(environment.python)[:2] <= newest:
        yield (
            f"evgp is not tested with Python {environment.python}; use {_dotted(oldest)} to "
            f"{_dotted(newest)}"
        )
    if _numbers(environment.sqlite) < _OLD_SQLITE:
        yield (
            f"SQLite {environment.sqlite} is older than {_dotted(_OLD_SQLITE)}, so a power "
            "failure may lose the last label of a campaign; use a newer Python"
        )


def _of_memory(memory: Memory) -> Iterator[str]:
    if memory.usable < _LOW_MEMORY:
        where = "" if memory.limit is None else f" within a limit of {memory.limit / 1e9:.1f} GB"
        yield (
            f"only {memory.usable / 1e9:.1f} GB of memory is free{where}; close other programs, "
            "and check with `evgp plan` before a run"
        )
    elif memory.usable < memory.free / 2:
        yield (
            f"this container allows only {memory.usable / 1e9:.1f} GB of the "
            f"{memory.free / 1e9:.1f} GB that are free; run large jobs with "
            f"memory='{memory.usable / 1.25e9:.1f}GB'"
        )


def _of_threads(threads: Threads) -> Iterator[str]:
    asked = threads.asked
    if asked is not None and not all(
        part.strip().isdecimal() and int(part) > 0 for part in asked.split(",")
    ):
        yield f"OMP_NUM_THREADS is {asked!r}, expected a number; set it to {threads.cores}"
    most = max((count for _, count in threads.blas), default=0)
    if max(most, threads.torch or 0) > threads.cores:
        yield (
            f"{max(most, threads.torch or 0)} threads share {threads.cores} "
            f"core{'s' if threads.cores > 1 else ''}, which is slower than one thread per core; "
            f"set OMP_NUM_THREADS={threads.cores}"
        )


def _of_folder(folder: Folder) -> Iterator[str]:
    if folder.variable == "EVGP_DATA" and not folder.exists:
        yield f"EVGP_DATA is {folder.path}, which is not a folder; set it to the folder of datasets"
    if folder.role == "cache":
        if not folder.writable:
            yield f"{folder.path} is not writable; set EVGP_CACHE to a folder that is"
        elif folder.free is not None and folder.free < _LOW_DISK:
            yield (
                f"{folder.path} has only {folder.free / 1e9:.1f} GB free, which may be too "
                "little for large pools; set EVGP_CACHE to a folder on a larger disk"
            )


def _numbers(version: str) -> tuple[int, ...]:
    parts = version.split(".")
    return tuple(int("".join(c for c in part if c.isdigit()) or 0) for part in parts[:3])


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
