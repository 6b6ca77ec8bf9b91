"""From facts to sentences: what is off, and what to do about it."""

from collections.abc import Iterator

from evgp.checkup.facts import Facts, Folder, Memory, Threads

_LITTLE = 10**9  # bytes: torch alone takes a third of it
_LITTLE_DISK = 2 * 10**9
_OLD_SQLITE = (3, 12)  # before it, `synchronous=EXTRA` is not known
_TRIED = ((3, 11), (3, 13))


def advise(facts: Facts) -> tuple[str, ...]:
    """What is off, the worst first; empty where all is well."""
    return (
        *_packages(facts),
        *_versions(facts),
        *_memory(facts.memory),
        *_threads(facts.threads),
        *(said for folder in facts.folders for said in _folder(folder)),
    )


def is_broken(facts: Facts) -> bool:
    """Whether evgp cannot be used as it is."""
    return any(package.trouble for package in facts.packages)


def _packages(facts: Facts) -> Iterator[str]:
    for package in facts.packages:
        if package.trouble:
            shown = f"{package.name} {package.version}".strip()
            yield (
                f"{shown}: {package.trouble}; do "
                f'`pip install --force-reinstall "{package.name}{package.needs}"`'
            )
    if not facts.evgp:
        yield "evgp runs from its sources and is not installed; do `pip install --editable .`"


def _versions(facts: Facts) -> Iterator[str]:
    oldest, newest = _TRIED
    if not oldest <= _numbers(facts.python)[:2] <= newest:
        yield (
            f"Python {facts.python} was never tried; take one from {_dotted(oldest)} to "
            f"{_dotted(newest)}"
        )
    if _numbers(facts.sqlite) < _OLD_SQLITE:
        yield (
            f"SQLite {facts.sqlite} is older than {_dotted(_OLD_SQLITE)}, so a power cut may lose "
            "the last label of a campaign; take a newer Python"
        )


def _memory(memory: Memory) -> Iterator[str]:
    if memory.usable < _LITTLE:
        where = "" if memory.limit is None else f" within a limit of {memory.limit / 1e9:.1f} GB"
        yield (
            f"{memory.usable / 1e9:.1f} GB of memory is free{where}, which is little; end other "
            "programs, and ask `evgp plan` before a run"
        )
    elif memory.usable < memory.free / 2:
        yield (
            f"this container allows {memory.usable / 1e9:.1f} GB more, less than the "
            f"{memory.free / 1e9:.1f} GB that are free; give large runs "
            f"`--memory {memory.usable / 1.25e9:.1f}GB`"
        )


def _threads(threads: Threads) -> Iterator[str]:
    asked = threads.asked
    if asked is not None and not all(map(_is_count, asked.split(","))):
        yield f"OMP_NUM_THREADS is {asked!r}, which is no count; set it to {threads.cores}"
    most = max((count for _, count in threads.blas), default=0)
    if max(most, threads.torch or 0) > threads.cores:
        yield (
            f"{max(most, threads.torch or 0)} threads share {threads.cores} "
            f"core{'s' if threads.cores > 1 else ''}, which is slower than one each; set "
            f"OMP_NUM_THREADS={threads.cores}"
        )


def _folder(folder: Folder) -> Iterator[str]:
    if folder.variable == "EVGP_DATA" and not folder.exists:
        yield f"EVGP_DATA is {folder.path}, where no folder is; set it to the folder of datasets"
    if folder.role == "cache":
        if not folder.writable:
            yield f"{folder.path} cannot be written to; set EVGP_CACHE to a folder that can"
        elif folder.free is not None and folder.free < _LITTLE_DISK:
            yield (
                f"{folder.path} has room for {folder.free / 1e9:.1f} GB more, which is little for "
                "large pools; set EVGP_CACHE to a folder on a larger disk"
            )


def _is_count(text: str) -> bool:
    return text.strip().isdecimal() and int(text) > 0


def _numbers(version: str) -> tuple[int, ...]:
    parts = version.split(".")
    return tuple(int("".join(c for c in part if c.isdigit()) or 0) for part in parts[:3])


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
