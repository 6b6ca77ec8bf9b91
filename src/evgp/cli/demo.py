"""`evgp demo`: data to try things on."""

from pathlib import Path
from typing import Annotated

import typer

from evgp.cli._output import fail, guarded, show, tell

Name = Annotated[
    str | None, typer.Argument(metavar="NAME", help="The dataset.", show_default=False)
]
Paths = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="PATH",
        help="Files or folders to write; with several, rows are split among them at random.",
        show_default=False,
    ),
]


@guarded
def demo(name: Name = None, paths: Paths = None) -> None:
    """Write data to try evgp on; without arguments, list the datasets.

    The data come with scikit-learn, so nothing is downloaded. Existing files are not replaced.

    \b
    Examples:
      evgp demo
      evgp demo digits digits.csv
      evgp demo diabetes train.csv test.csv pool.csv
      evgp demo images images/
    """
    from evgp.datasets.demo import DEMOS, write

    if name is None:
        show(
            {
                "name": list(DEMOS),
                "data": [demo.about for demo in DEMOS.values()],
                "path": [", ".join(demo.endings) or "a folder" for demo in DEMOS.values()],
            }
        )
        return
    if not paths:
        fail(f"expected a path to write to, such as `evgp demo {name} PATH`")
    for part, path in enumerate(paths):
        rows = write(name, path, part, len(paths))
        tell(f"{path}: {rows:,} rows")
