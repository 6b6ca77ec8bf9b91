"""`evgp choose`: which network would do best on these labels, before any is trained."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evgp._errors import NetworkError
from evgp.cli import _options as options
from evgp.cli._output import guarded, lines, note, progress, show, show_json, tell

if TYPE_CHECKING:
    from evgp.architectures import Choice

LabelledTable = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="Table with labels: .csv, .tsv (also .gz), .parquet, .arrow, .feather.",
        show_default=False,
    ),
]
Label = Annotated[
    str, typer.Option("--label", metavar="COLUMN", help="Column that holds the labels.")
]
Folds = Annotated[
    int, typer.Option("--folds", metavar="N", min=2, help="Random folds of the labels.")
]
Kappa = Annotated[
    float,
    typer.Option("--kappa", metavar="SHARE", help="Share of the labels left out of each fold."),
]
Depths = Annotated[
    str, typer.Option("--depths", metavar="NUMBERS", help="Hidden layers to try, by commas.")
]
ActivationNames = Annotated[
    str,
    typer.Option(
        "--activations",
        metavar="NAMES",
        help="Activations to try, by commas: relu, gelu, leaky_relu, erf, sin, identity.",
    ),
]
Listed = Annotated[
    Path | None,
    typer.Option(
        "--networks",
        metavar="FILE",
        help="Networks of your own in TOML, in place of depths and activations: a [[network]] "
        "each, with name, depth, activation, w_std, b_std.",
    ),
]
Most = Annotated[
    int,
    typer.Option(
        "--most", metavar="N", min=4, help="Look at N rows at most, drawn by the seed: cost is N³."
    ),
]
PlotFile = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Draw the ranking: .png, .svg, .pdf.")
]


@guarded
def choose(
    data: LabelledTable,
    *,
    label: Label,
    task: options.TaskName = None,
    id: options.Id = None,
    drop: options.Drop = None,
    delimiter: options.Delimiter = None,
    impute: options.Impute = False,
    depths: Depths = "1,2,3,4",
    activations: ActivationNames = "relu,gelu,leaky_relu,erf",
    networks: Listed = None,
    folds: Folds = 100,
    kappa: Kappa = 0.3,
    most: Most = 1000,
    plot: PlotFile = None,
    seed: options.Seed = 0,
    json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Rank architectures by how well networks, trained on some labels of DATA, predict the others.

    No network is trained: for each random fold the error of the mean prediction (fit) and the
    spread between initialisations are those of networks of infinite width, in closed form. The
    score is their sum; less is better. A score of 1 is that of the mean of the labels (for classes
    scores are squared errors of zeros and ones, summed over classes). Errors are standard errors
    that allow for folds sharing rows.

    \b
    Examples:
      evgp choose prices.csv --label price --drop id
      evgp choose digits.parquet --label digit --task classification --plot ranking.png
      evgp choose waves.csv --label y --activations relu,gelu,sin
    """
    from evgp.architectures import candidates, listed
    from evgp.architectures import choose as run
    from evgp.cli._output import left_out, noted
    from evgp.datasets import check_writable, load_csv

    if plot is not None:
        check_writable(plot, (".png", ".svg", ".pdf"))
    dropped = left_out(data, drop or (), delimiter)
    table, notes = noted(
        lambda: load_csv(
            data, label, task=task or "auto", test=0, seed=seed, id=id, drop=dropped,
            impute=impute, delimiter=delimiter,
        )
    )  # fmt: skip
    note(notes, quiet=quiet)
    outputs = table.classes or 1
    if networks is not None:
        nets = listed(networks, outputs=outputs)
    else:
        nets = candidates(_numbers(depths), tuple(options.parts(activations)), outputs=outputs)
    x, y = table.x[:most], table.y[:most]
    if len(x) < len(table.x) and not quiet:
        tell(f"note: looked at {len(x):,} of {len(table.x):,} rows (--most)")
    with progress(quiet) as bar:
        # The table is scaled already, by all of its rows.
        made = run(nets, x, y, folds=folds, kappa=kappa, standardise=False, seed=seed, progress=bar)
    if plot is not None:
        _draw(made, plot)
    if json:
        show_json(document(made))
    else:
        table_of = columns(made)
        if sys.stdout.isatty():  # room for names; the error of `behind` is in the last line
            del table_of["behind_error"]
        show(table_of)
    if not quiet:
        tell(f"took the labels as {table.about}; --task says otherwise")
        tell(_told(made))


def columns(choice: "Choice") -> dict[str, list[object]]:
    """A line for each architecture, best first."""
    ranked = choice.ranked
    return {
        "rank": [number for number, _ in enumerate(ranked, 1)],
        "network": [one.name for one in ranked],
        "score": [one.score for one in ranked],
        "error": [one.error for one in ranked],
        "fit": [one.fit for one in ranked],
        "spread": [one.spread for one in ranked],
        "behind": [one.lead for one in ranked],
        "behind_error": [one.doubt for one in ranked],
    }


def document(choice: "Choice") -> dict[str, object]:
    """The same for a program."""
    return {
        "chosen": choice.chosen.name,
        "network": repr(choice.network),
        "folds": choice.folds,
        "left_out": choice.left_out,
        "ranked": lines(columns(choice)),
    }


def _told(choice: "Choice") -> str:
    best, close = choice.ranked[0], [one for one in choice.ranked[1:] if one.lead <= one.doubt]
    near = ", ".join(one.name for one in close)
    within = f"; within one standard error of it: {near}" if close else ""
    if not close and len(choice.ranked) > 1:
        within = "; the others are behind by more than one standard error"
    return f"best: {best.name}, expected squared error {best.score:.3g}{within}"


def _draw(choice: "Choice", path: Path) -> None:
    from evgp.architectures.plot import plot_choice
    from evgp.datasets import atomic

    figure = plot_choice(choice)
    with atomic(path) as part:
        figure.savefig(part, format=path.suffix.lower().removeprefix("."))


def _numbers(text: str) -> tuple[int, ...]:
    parts = options.parts(text)
    if not parts or not all(part.isdecimal() and int(part) >= 1 for part in parts):
        raise NetworkError(f"expected depths as numbers from 1, such as 1,2,3; got {text!r}")
    return tuple(int(part) for part in parts)
