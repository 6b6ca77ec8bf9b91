"""`evgp reproduce`: say where to reproduce the paper's figures and tables."""

import shlex
from typing import Annotated

import typer

from evgp.cli._output import fail, guarded

Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME", help="The study, and options.", show_default=False),
]


@guarded
def reproduce(words: Words = None) -> None:
    """Print where to find the studies of the paper, which are not part of the package."""
    asked = shlex.join(words or ["NAME"])
    fail(
        "the studies of the paper are in the repository, not in the package; in its folder run "
        f"`python -m experiments {asked}`"
    )
