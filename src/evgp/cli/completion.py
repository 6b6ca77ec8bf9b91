"""Completion of commands and options in a shell, for a shell that is named.

Typer's own options ask which shell they were started from; in a script or an editor there is none.
"""

import os
from typing import Annotated, Literal, TypeAlias

import typer
from typer.completion import (  # type: ignore[attr-defined]
    completion_init,
    get_completion_script,
    install,
)

Shell: TypeAlias = Literal["bash", "zsh", "fish", "powershell", "pwsh"]
_VARIABLE = "_EVGP_COMPLETE"  # what a shell asks through


def prepare_completion() -> None:
    """Teach the parser how shells ask, if one is asking."""
    if _VARIABLE in os.environ:
        completion_init()


def _show(shell: Shell | None) -> None:
    if shell is not None:
        typer.echo(get_completion_script(prog_name="evgp", complete_var=_VARIABLE, shell=shell))
        raise typer.Exit


def _install(shell: Shell | None) -> None:
    if shell is not None:
        _, path = install(shell=shell, prog_name="evgp", complete_var=_VARIABLE)
        typer.echo(f"{path}: written, for the next {shell} that is started", err=True)
        raise typer.Exit


ShowCompletion = Annotated[
    Shell | None,
    typer.Option(
        "--show-completion",
        metavar="SHELL",
        callback=_show,
        is_eager=True,
        help="Print completion for bash, zsh, fish, powershell or pwsh.",
    ),
]
InstallCompletion = Annotated[
    Shell | None,
    typer.Option(
        "--install-completion",
        metavar="SHELL",
        callback=_install,
        is_eager=True,
        help="Install it.",
    ),
]
