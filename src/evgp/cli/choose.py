"""`evgp choose`: rank networks on labelled data without training any."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from evgp.cli import _options as options
from evgp.cli._output import guarded, lines, note, progress, show, show_json, tell
from evgp.errors import BadArgument, NetworkError

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
Label = Annotated[str, options.option("--label", "COLUMN", "Column with the labels.")]
Folds = Annotated[int, options.option("--folds", "N", "Random folds of the labels.", min=2)]
Kappa = Annotated[
    float,
    options.option("--kappa", "SHARE", "Share of the labels held out in each fold."),
]
Depths = Annotated[
    str,
    options.option("--depths", "NUMBERS", "Numbers of hidden layers to try, separated by commas."),
]
ActivationNames = Annotated[
    str,
    options.option(
        "--activations",
        "NAMES",
        f"Activations to try, separated by commas: {', '.join(get_args(options.Activations))}.",
    ),
]
Listed = Annotated[
    Path | None,
    options.option(
        "--networks",
        "FILE",
        "Your own networks in a TOML file, instead of depths and activations: one [[network]] "
        "each, with name, depth, activation, w_std, b_std.",
    ),
]
Most = Annotated[
    int,
    options.option(
        "--most", "N", "Use at most N rows, sampled with the seed; the cost is N³.", min=4
    ),
]
PlotFile = Annotated[
    Path | None, options.option("--plot", "FILE", "Plot the ranking: .png, .svg, .pdf.")
]


@guarded
def choose(
    data: LabelledTable,
    *,
    label: Label,
    task: options.TaskName = None,
    id: options.Id = None,
    column: options.OnlyColumn = None,
    drop: options.Drop = None,
    text: options.TextColumn = None,
    embed: options.EmbedderName = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    impute: options.Impute = False,
    scale: options.ScaleName = "columns",
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
    """Rank architectures by how well networks trained on some labels of DATA predict the others.

    No network is trained: in each random fold, the error of the mean prediction (fit) and the
    variance between initialisations (spread) are those of infinitely wide networks, in closed form.
    The score is their sum; lower is better. Predicting the mean of the labels scores 1 (for
    classes, scores are squared errors of zeros and ones, summed over classes). Errors are standard
    errors that account for folds sharing rows.

    \b
    Examples:
      evgp choose prices.csv --label price --drop id
      evgp choose digits.parquet --label digit --task classification --plot ranking.png
      evgp choose waves.csv --label y --activations relu,gelu,sin
    """
    from evgp.architectures import candidates, read_networks
    from evgp.architectures import choose as run
    from evgp.cli._output import left_out, noted
    from evgp.datasets import check_writable, load_csv
    from evgp.datasets.scaling import described

    if plot is not None:
        check_writable(plot, (".png", ".svg", ".pdf"))
    dropped = left_out(data, drop or (), delimiter)
    table, notes = noted(
        lambda: load_csv(
            data, label, task=task or "auto", test=0, seed=seed, id=id, drop=dropped,
            impute=impute, column=column, text=text or (), embed=embed, delimiter=delimiter,
            decimal=decimal, encoding=encoding, scale=options.scaling(scale),
        )
    )  # fmt: skip
    note(notes, quiet=quiet)
    outputs = table.classes or 1
    if networks is not None:
        nets = read_networks(networks, outputs=outputs)
    else:
        nets = candidates(_numbers(depths), tuple(options.parts(activations)), outputs=outputs)
    x, y = table.x[:most], table.y[:most]
    if len(x) < len(table.x) and not quiet:
        tell(f"note: used {len(x):,} of {len(table.x):,} rows (--most)")
    with progress(quiet) as bar:
        # The table is scaled already, by all of its rows.
        choice = run(nets, x, y, folds=folds, kappa=kappa, scale=None, seed=seed, progress=bar)
    if plot is not None:
        _draw(choice, plot)
    _show(choice, json=json)
    if not quiet:
        tell(f"labels were read as {table.about}; change that with --task")
        tell(f"Scale: {described(table.scale)}.")
        tell(_sentence(choice))


def _show(choice: "Choice", *, json: bool) -> None:
    if json:
        show_json(document(choice))
        return
    shown = columns(choice)
    if sys.stdout.isatty():  # to leave room for names
        del shown["behind_error"]
    show(shown)


def columns(choice: "Choice") -> dict[str, list[object]]:
    """One line for each architecture, best first."""
    ranked = choice.ranked
    return {
        "rank": [number for number, _ in enumerate(ranked, 1)],
        "network": [scored.name for scored in ranked],
        "score": [scored.score for scored in ranked],
        "error": [scored.error for scored in ranked],
        "fit": [scored.fit for scored in ranked],
        "spread": [scored.spread for scored in ranked],
        "behind": [scored.lead for scored in ranked],
        "behind_error": [scored.doubt for scored in ranked],
    }


def document(choice: "Choice") -> dict[str, object]:
    """The ranking as JSON."""
    return {
        "chosen": choice.chosen.name,
        "network": repr(choice.network),
        "folds": choice.folds,
        "left_out": choice.left_out,
        "ranked": lines(columns(choice)),
    }


def _sentence(choice: "Choice") -> str:
    best, *others = choice.ranked
    close = [scored.name for scored in others if scored.lead <= scored.doubt]
    within = f"; within one standard error of it: {', '.join(close)}" if close else ""
    if not close and len(choice.ranked) > 1:
        within = "; the others are more than one standard error behind"
    return f"best: {best.name}, expected squared error {best.score:.3g}{within}"


def _draw(choice: "Choice", path: Path) -> None:
    from evgp.architectures.choose import plot_choice
    from evgp.datasets import atomic

    figure = plot_choice(choice)
    with atomic(path) as part:
        figure.savefig(part, format=path.suffix.lower().removeprefix("."))


def _numbers(text: str) -> tuple[int, ...]:
    parts = options.parts(text)
    if not parts or not all(part.isdecimal() and int(part) >= 1 for part in parts):
        raise BadArgument.of(NetworkError)("depths", "of at least 1, such as 1,2,3", repr(text))
    return tuple(int(part) for part in parts)
