"""`evgp doctor`: what this machine and this installation have, and what should be fixed.

It is asked when something is broken, so it uses nothing of the package that needs torch, pyarrow or
the like, and imports them one by one where they may fail.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from evgp.cli import _options as options
from evgp.cli._output import clean, fail, guarded, show_json, tell

if TYPE_CHECKING:
    from evgp.checkup import Facts, Folder, Memory, OptionalPart

Row = tuple[str, str]


@guarded
def doctor(*, json: options.AsJson = False) -> None:
    """Show versions, threads, memory, devices, folders and optional parts, and what to fix.

    Send what it prints along when you ask for help. The exit code is 1 where evgp cannot work as it
    is installed.

    \b
    Examples:
      evgp doctor
      evgp doctor --json > machine.json
    """
    try:
        from evgp.checkup import advise, look
        from evgp.checkup.advice import is_broken
    except ImportError as error:
        fail(f"{error.name} cannot be imported ({error}); do `pip install --force-reinstall evgp`")
    facts = look()
    advice = advise(facts)
    if json:
        usable = {"memory": asdict(facts.memory) | {"usable": facts.memory.usable}}
        parts = [asdict(part) | {"present": part.present} for part in facts.parts]
        show_json(asdict(facts) | usable | {"parts": parts, "advice": advice})
    else:
        _print(list(_rows(facts)))
        for said in advice or ("all is well",):
            tell(said)
    if is_broken(facts):
        raise typer.Exit(1)


def _rows(facts: "Facts") -> Iterator[Row]:
    from evgp.checkup.packages import is_shown

    yield "evgp", facts.evgp or "run from its sources"
    yield "python", f"{facts.python} on {facts.platform}"
    for package in facts.packages:
        if is_shown(package):
            yield package.name, package.trouble or package.version
    yield "sqlite", facts.sqlite
    threads = facts.threads
    yield "cores", str(threads.cores)
    if threads.torch is not None:
        yield (
            "threads",
            ", ".join(
                f"{name}: {count}" for name, count in (("torch", threads.torch), *threads.blas)
            ),
        )
    yield "memory", _memory(facts.memory)
    for device in facts.devices:
        yield "device", f"{device.name}: {device.about}"
    for folder in facts.folders:
        yield folder.role, _folder(folder)
    if facts.missing_sets:
        yield "no data of", f"{', '.join(facts.missing_sets)} (for evgp compare)"
    for part in facts.parts:
        yield f"evgp[{part.name}]", _part(part)


def _memory(memory: "Memory") -> str:
    said = f"{memory.free / 1e9:.1f} GB free of {memory.total / 1e9:.1f} GB"
    if memory.limit is None:
        return said
    return f"{said}; {memory.usable / 1e9:.1f} GB more within the limit {memory.limit / 1e9:.1f} GB"


def _folder(folder: "Folder") -> str:
    state = "" if folder.exists else ", not there yet" if folder.writable else ", not there"
    if folder.role == "cache" and folder.free is not None:
        state += f", room for {folder.free / 1e9:.0f} GB"
    sets = f": {', '.join(folder.sets)}" if folder.sets else ""
    return f"{folder.path} (${folder.variable}{state}){sets}"


def _part(part: "OptionalPart") -> str:
    if part.present:
        return ", ".join(f"{name} {version}" for name, version in part.packages)
    absent = ", ".join(name for name, version in part.packages if not version)
    return f"no {absent}: {part.install} ({part.purpose})"


def _print(rows: Sequence[Row]) -> None:
    """A table for a terminal, tab-separated for a pipe."""
    if not sys.stdout.isatty():
        for what, found in rows:
            typer.echo(f"{clean(what)}\t{clean(found)}")
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE, show_header=False)
    for what, found in rows:
        table.add_row(Text(clean(what)), Text(clean(found)))
    Console().print(table)
