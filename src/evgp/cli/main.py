"""The command `evgp`.

Nothing heavy is imported here, so that help is instant; each command imports what it needs.
"""

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from evgp.cli._output import prepare_streams, silence, tell
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

_LOOK: Any = {
    "add_completion": False,
    "no_args_is_help": True,
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 100},
}
app = typer.Typer(name="evgp", pretty_exceptions_enable=False, **_LOOK)
campaign = typer.Typer(name="campaign", help="Label with other people, in rounds.", **_LOOK)
_CAMPAIGN: dict[str, Callable[..., None]] = {
    "new": new,
    "next": next_rows,
    "label": label,
    "undo": undo,
    "status": status,
    "export": export,
    "serve": serve,
    "report": report,
    "push": push,
    "pull": pull,
}


def _renamed(name: str, command: Callable[..., None]) -> Callable[..., None]:
    """A command by the name that it had in version 0.1, for one release."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        tell(f"note: `evgp {name}` is now `evgp campaign {name}`")
        command(*args, **kwargs)

    return run


app.command("pick")(pick)
app.command("plan")(plan)
app.command("compare")(compare)
app.command("choose")(choose)
app.command("audit")(audit)
app.command("reproduce")(reproduce)
app.add_typer(campaign)
app.command("doctor")(doctor)
for _name, _command in _CAMPAIGN.items():
    campaign.command(_name)(_command)
    app.command(_name, hidden=True)(_renamed(_name, _command))


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
