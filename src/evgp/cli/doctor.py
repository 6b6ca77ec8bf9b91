"""`evgp doctor`: report what this machine and this installation have, and what to fix.

It runs when something is broken, so it uses nothing of the package that needs torch, pyarrow or
similar packages, and imports them one by one in places where that may fail.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from evgp.cli import _options as options
from evgp.cli._output import clean, fail, guarded, in_flags, show_json, tell

if TYPE_CHECKING:
    from evgp.doctor import Environment, Folder, Memory, OptionalPart

Row = tuple[str, str]


@guarded
def doctor(*, json: options.AsJson = False) -> None:
    """Show versions, threads, memory, devices, folders and optional parts, and what to fix.

    Include its output when you ask for help. The exit code is 1 if evgp cannot work as installed.

    \b
    Examples:
      evgp doctor
      evgp doctor --json > machine.json
    """
    try:
        from evgp.doctor import advise, inspect, is_broken
    except ImportError as error:
        fail(f"{error.name} cannot be imported ({error}); run `pip install --force-reinstall evgp`")
    environment = inspect()
    advice = [in_flags(sentence) for sentence in advise(environment)]
    if json:
        usable = {"memory": asdict(environment.memory) | {"usable": environment.memory.usable}}
        parts = [asdict(part) | {"present": part.present} for part in environment.parts]
        show_json(asdict(environment) | usable | {"parts": parts, "advice": advice})
    else:
        _print(list(_rows(environment)))
        for sentence in advice or ("no problems found",):
            tell(sentence)
    if is_broken(environment):
        raise typer.Exit(1)


def _rows(environment: "Environment") -> Iterator[Row]:
    from evgp.doctor import is_shown

    yield "evgp", environment.evgp or "run from source"
    yield "python", f"{environment.python} on {environment.platform}"
    for package in environment.packages:
        if is_shown(package):
            yield package.name, package.trouble or package.version
    yield "sqlite", environment.sqlite
    threads = environment.threads
    yield "cores", str(threads.cores)
    if threads.torch is not None:
        yield (
            "threads",
            ", ".join(
                f"{name}: {count}" for name, count in (("torch", threads.torch), *threads.blas)
            ),
        )
    yield "memory", _memory(environment.memory)
    for device in environment.devices:
        yield "device", f"{device.name}: {device.about}"
    for folder in environment.folders:
        yield folder.role, _folder(folder)
    if environment.missing_sets:
        yield "missing data", f"{', '.join(environment.missing_sets)} (for evgp compare)"
    for part in environment.parts:
        yield f"evgp[{part.name}]", _part(part)


def _memory(memory: "Memory") -> str:
    free = f"{memory.free / 1e9:.1f} GB free of {memory.total / 1e9:.1f} GB"
    if memory.limit is None:
        return free
    return f"{free}; {memory.usable / 1e9:.1f} GB left of a limit of {memory.limit / 1e9:.1f} GB"


def _folder(folder: "Folder") -> str:
    state = "" if folder.exists else ", not created yet" if folder.writable else ", missing"
    if folder.role == "cache" and folder.free is not None:
        state += f", {folder.free / 1e9:.0f} GB free"
    sets = f": {', '.join(folder.sets)}" if folder.sets else ""
    return f"{folder.path} (${folder.variable}{state}){sets}"


def _part(part: "OptionalPart") -> str:
    if part.present:
        return ", ".join(f"{name} {version}" for name, version in part.packages)
    absent = ", ".join(name for name, version in part.packages if not version)
    return f"{absent} not installed: {part.install} ({part.purpose})"


def _print(rows: Sequence[Row]) -> None:
    """Print a table on a terminal, tab-separated lines into a pipe."""
    if not sys.stdout.isatty():
        for name, value in rows:
            typer.echo(f"{clean(name)}\t{clean(value)}")
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE, show_header=False)
    for name, value in rows:
        table.add_row(Text(clean(name)), Text(clean(value)))
    Console().print(table)
