"""The page on the command line, from what `--help` says.

python -m evgp.cli.docs docs/cli.md
"""

import sys
from pathlib import Path

from typer.main import get_command
from typer.testing import CliRunner

from evgp.cli.main import app

_TOP = """# The command line

Generated from `--help` by `python -m evgp.cli.docs docs/cli.md`. Data go to stdout: a table on a
terminal, tab-separated in a pipe, one JSON document with `--json`. Progress, notes and errors go to
stderr. Exit codes: 0 done, 1 something to mend (one line says what), 2 a wrong call, 130 stopped
with Ctrl-C. Files are written whole or not at all.
"""


def page() -> str:
    """The whole page, as Markdown."""
    names: list[str] = list(getattr(get_command(app), "commands", {}))
    parts = [_TOP, f"## evgp\n\n```text\n{_help()}\n```\n"]
    parts += [f"## evgp {name}\n\n```text\n{_help(name)}\n```\n" for name in names]
    return "\n".join(parts)


def _help(*command: str) -> str:
    result = CliRunner().invoke(app, [*command, "--help"], prog_name="evgp", terminal_width=96)
    return "\n".join(line.rstrip() for line in result.output.strip().splitlines())


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(page(), encoding="utf-8")
    else:
        sys.stdout.write(page())
