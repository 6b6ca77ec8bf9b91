"""Generate the page on the command line from `--help`.

python -m evgp.cli.docs docs/cli.md
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command
from typer.testing import CliRunner

from evgp.cli.main import app

_TOP = """# The command line

Generated from `--help` by `python -m evgp.cli.docs docs/cli.md`. Data go to stdout: a table on a
terminal, tab-separated in a pipe, one JSON document with `--json`. Progress, notes and errors go to
stderr. Exit codes: 0 success, 1 an error (one line says what to fix), 2 invalid usage, 130 stopped
with Ctrl-C. Files are written completely or not at all.
"""


def page() -> str:
    """Return the whole page as Markdown."""
    called = (("evgp", *words) for words in [(), *calls(get_command(app))])
    parts = (f"## {' '.join(words)}\n\n```text\n{_help(*words[1:])}\n```\n" for words in called)
    return "\n".join([_TOP, *parts])


def calls(command: Any) -> Iterator[tuple[str, ...]]:
    """Return all commands and sub-commands except hidden ones, each as a list of words."""
    for name, inner in getattr(command, "commands", {}).items():
        if not inner.hidden:
            yield (name,)
            yield from ((name, *words) for words in calls(inner))


def _help(*command: str) -> str:
    result = CliRunner().invoke(app, [*command, "--help"], prog_name="evgp", terminal_width=96)
    return "\n".join(line.rstrip() for line in result.output.strip().splitlines())


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(page(), encoding="utf-8")
    else:
        sys.stdout.write(page())
