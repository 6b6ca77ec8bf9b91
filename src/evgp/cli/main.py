"""The command `evgp`.

Nothing heavy is imported here, so that help is instant; each command imports what it needs.
"""

import os
import sys
from typing import Annotated

import typer

from evgp.cli._output import prepare_streams, silence
from evgp.cli.audit import audit
from evgp.cli.campaign import export, label, new, report, status, undo
from evgp.cli.campaign import next as next_rows
from evgp.cli.choose import choose
from evgp.cli.compare import compare
from evgp.cli.completion import InstallCompletion, ShowCompletion, prepare_completion
from evgp.cli.doctor import doctor
from evgp.cli.label_studio import pull, push
from evgp.cli.pick import pick
from evgp.cli.plan import plan
from evgp.cli.reproduce import reproduce
from evgp.cli.serve import serve

app = typer.Typer(
    name="evgp",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command("pick")(pick)
app.command("plan")(plan)
app.command("compare")(compare)
app.command("choose")(choose)
app.command("audit")(audit)
app.command("reproduce")(reproduce)
app.command("new")(new)
app.command("next")(next_rows)
app.command("label")(label)
app.command("undo")(undo)
app.command("status")(status)
app.command("export")(export)
app.command("push")(push)
app.command("pull")(pull)
app.command("serve")(serve)
app.command("report")(report)
app.command("doctor")(doctor)


def _version(asked: bool) -> bool:
    if asked:
        from evgp import __version__

        typer.echo(f"evgp {__version__}")
        raise typer.Exit
    return asked


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
    show_completion: ShowCompletion = None,
    install_completion: InstallCompletion = None,
) -> None:
    """Say which rows of an unlabelled table to label first, before any label exists.

    \b
    Example:
      evgp pick pool.csv -k 100 -o picks.csv --report report.html
    """


def main() -> None:
    """Run the command line."""
    # Before torch is loaded: its threads wait by spinning, and where others want the cores too,
    # they keep each other from what they wait for. What a user has set stays.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    prepare_streams()
    prepare_completion()
    try:
        app(prog_name="evgp")
    finally:
        try:
            sys.stdout.flush()
        except OSError:
            silence(sys.stdout)


if __name__ == "__main__":
    main()
