"""What was found, as plain data; whoever prints it decides how it looks."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Package:
    """One that evgp cannot do without: its version, what evgp needs, and what is wrong with it.

    `version` is empty where it is not installed; `trouble` is empty where all is well.
    """

    name: str
    version: str
    needs: str = ""
    trouble: str = ""


@dataclass(frozen=True)
class Threads:
    """Cores that this process may use, threads that it does use, and what the environment asks."""

    cores: int
    torch: int | None
    blas: tuple[tuple[str, int], ...] = ()
    asked: str | None = None


@dataclass(frozen=True)
class Memory:
    """Bytes: of the machine, free now, and the least that a container allows, if one does."""

    total: int
    free: int
    limit: int | None = None
    used: int | None = None

    @property
    def usable(self) -> int:
        """What a run can have now.

        >>> Memory(total=8, free=6, limit=4, used=1).usable
        3
        """
        if self.limit is None:
            return self.free
        return min(self.free, max(0, self.limit - (self.used or 0)))


@dataclass(frozen=True)
class Device:
    """Where torch can compute."""

    name: str
    about: str


@dataclass(frozen=True)
class Folder:
    """A folder that evgp reads or fills; `variable` moves it."""

    role: str
    path: str
    variable: str
    exists: bool
    writable: bool
    free: int | None = None
    sets: tuple[str, ...] = ()


@dataclass(frozen=True)
class OptionalPart:
    """An optional part: whether it is there, or the line that installs it."""

    name: str
    purpose: str
    packages: tuple[tuple[str, str], ...]
    install: str

    @property
    def present(self) -> bool:
        """Whether all its packages are installed."""
        return all(version for _, version in self.packages)


@dataclass(frozen=True)
class Facts:
    """All of it."""

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
