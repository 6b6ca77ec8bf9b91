"""The `evgp` command.

Heavy modules are imported inside the commands that need them, so that `--help` is instant.
"""

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, Literal, TypeAlias

import typer
from typer.completion import (  # type: ignore[attr-defined]
    completion_init,
    get_completion_script,
    install,
)
from typer.core import TyperOption

from evgp.cli._output import prepare_streams, silence, tell
from evgp.cli.audit import audit
from evgp.cli.campaign import export, label, new, report, status, undo
from evgp.cli.campaign import next as next_rows
from evgp.cli.choose import choose
from evgp.cli.compare import compare
from evgp.cli.demo import demo
from evgp.cli.doctor import doctor
from evgp.cli.label_studio import pull, push
from evgp.cli.look import look
from evgp.cli.pick import pick
from evgp.cli.plan import plan
from evgp.cli.reproduce import reproduce
from evgp.cli.serve import serve

Shell: TypeAlias = Literal["bash", "zsh", "fish", "powershell", "pwsh"]
_VARIABLE = "_EVGP_COMPLETE"  # set by a shell that asks for completions
_LOOK: Any = {
    "add_completion": False,
    "no_args_is_help": True,
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 100},
}
app = typer.Typer(name="evgp", pretty_exceptions_enable=False, **_LOOK)
campaign = typer.Typer(name="campaign", help="Label in rounds, alone or with others.", **_LOOK)
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
    """Return a command under its name of version 0.1, which stays valid for one release."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        tell(f"note: `evgp {name}` is now `evgp campaign {name}`")
        command(*args, **kwargs)

    return run


app.command("pick")(pick)
app.command("plan")(plan)
app.command("look")(look)
app.command("compare")(compare)
app.command("choose")(choose)
app.command("audit")(audit)
app.command("reproduce", context_settings={"ignore_unknown_options": True})(reproduce)
app.add_typer(campaign)
app.command("demo")(demo)
app.command("doctor")(doctor)
for _name, _command in _CAMPAIGN.items():
    campaign.command(_name)(_command)
    app.command(_name, hidden=True)(_renamed(_name, _command))


def _version(requested: bool) -> bool:
    if requested:
        from evgp import __version__

        typer.echo(f"evgp {__version__}")
        raise typer.Exit
    return requested


def _completion(option: TyperOption, shell: Shell | None) -> None:
    """Print or install the completion script of a shell that is given by name.

    Typer's own options detect the shell they were started from; in a script or an editor there is
    none.
    """
    if shell is None:
        return
    if option.name == "show_completion":
        typer.echo(get_completion_script(prog_name="evgp", complete_var=_VARIABLE, shell=shell))
    else:
        _, path = install(shell=shell, prog_name="evgp", complete_var=_VARIABLE)
        typer.echo(f"{path} written; start a new {shell} to use it", err=True)
    raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
    show_completion: Annotated[
        Shell | None,
        typer.Option(
            "--show-completion",
            metavar="SHELL",
            callback=_completion,
            is_eager=True,
            help="Print the completion script for bash, zsh, fish, powershell or pwsh.",
        ),
    ] = None,
    install_completion: Annotated[
        Shell | None,
        typer.Option(
            "--install-completion",
            metavar="SHELL",
            callback=_completion,
            is_eager=True,
            help="Install the completion script.",
        ),
    ] = None,
) -> None:
    """Choose which rows of an unlabelled table to label first.

    \b
    Example:
      evgp pick pool.csv -k 100 -o picks.csv --report report.html
    """


def main() -> None:
    """Run the command line."""
    # Set before torch is loaded: by default its threads wait by spinning, which slows everything
    # down if other processes need the cores too. A value set by the user is kept.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    prepare_streams()
    if _VARIABLE in os.environ:
        completion_init()
    try:
        app(prog_name="evgp")
    finally:
        try:
            sys.stdout.flush()
        except OSError:
            silence(sys.stdout)


if __name__ == "__main__":
    main()
