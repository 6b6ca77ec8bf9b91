"""What is wrong with an installation, and what to do about it."""

from collections.abc import Iterator

from evgp.doctor.environment import Environment, Folder, Memory, Threads

_LOW_MEMORY = 10**9  # bytes; torch alone takes a third of it
_LOW_DISK = 2 * 10**9
_OLD_SQLITE = (3, 12)  # earlier versions do not know `synchronous=EXTRA`
_TESTED = ((3, 11), (3, 13))


def advise(environment: Environment) -> tuple[str, ...]:
    """The problems, worst first; empty if there are none."""
    return (
        *_packages(environment),
        *_versions(environment),
        *_memory(environment.memory),
        *_threads(environment.threads),
        *(sentence for folder in environment.folders for sentence in _folder(folder)),
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


def _memory(memory: Memory) -> Iterator[str]:
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
            f"`--memory {memory.usable / 1.25e9:.1f}GB`"
        )


def _threads(threads: Threads) -> Iterator[str]:
    asked = threads.asked
    if asked is not None and not all(map(_is_count, asked.split(","))):
        yield f"OMP_NUM_THREADS is {asked!r}, expected a number; set it to {threads.cores}"
    most = max((count for _, count in threads.blas), default=0)
    if max(most, threads.torch or 0) > threads.cores:
        yield (
            f"{max(most, threads.torch or 0)} threads share {threads.cores} "
            f"core{'s' if threads.cores > 1 else ''}, which is slower than one thread per core; "
            f"set OMP_NUM_THREADS={threads.cores}"
        )


def _folder(folder: Folder) -> Iterator[str]:
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


def _is_count(text: str) -> bool:
    return text.strip().isdecimal() and int(text) > 0


def _numbers(version: str) -> tuple[int, ...]:
    parts = version.split(".")
    return tuple(int("".join(c for c in part if c.isdigit()) or 0) for part in parts[:3])


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
