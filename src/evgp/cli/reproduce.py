"""`evgp reproduce`: where the figures and tables of the paper are made."""

from typing import Annotated

import typer

from evgp.cli._output import fail, guarded

Words = Annotated[
    list[str] | None, typer.Argument(metavar="NAME", help="The study.", show_default=False)
]


@guarded
def reproduce(words: Words = None) -> None:
    """Say where to find the studies of the paper, which are not part of the package."""
    name = words[0] if words else "NAME"
    fail(
        "the studies of the paper are in the repository, not in the package; in its folder run "
        f"`python -m experiments {name}` or `make reproduce NAME={name}`"
    )
