"""`evgp choose`: rank networks on labelled data without training any."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from evgp.cli import _options
from evgp.cli._options import LabelledOptions, option, with_options
from evgp.cli._output import guarded, lines, note, progress, show, show_json, tell
from evgp.errors import BadArgument, NetworkError

if TYPE_CHECKING:
    from evgp.architectures import Choice
    from evgp.datasets import Dataset
    from evgp.nets import Network

LabelledTable = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="Table with labels: .csv, .tsv (also .gz), .parquet, .arrow, .feather.",
        show_default=False,
    ),
]
Folds = Annotated[int, option("--folds", "N", "Random folds of the labels.", min=2)]
Kappa = Annotated[
    float,
    option("--kappa", "SHARE", "Share of the labels held out in each fold."),
]
Depths = Annotated[
    str,
    option("--depths", "NUMBERS", "Numbers of hidden layers to try, separated by commas."),
]
ActivationNames = Annotated[
    str,
    option(
        "--activations",
        "NAMES",
        f"Activations to try, separated by commas: {', '.join(get_args(_options.Activations))}.",
    ),
]
Listed = Annotated[
    Path | None,
    option(
        "--networks",
        "FILE",
        "Your own networks in a TOML file, instead of depths and activations: one [[network]] "
        "each, with name, depth, activation, w_std, b_std.",
    ),
]
Most = Annotated[
    int,
    option("--most", "N", "Use at most N rows, sampled with the seed; the cost is N³.", min=4),
]
PlotFile = Annotated[Path | None, option("--plot", "FILE", "Plot the ranking: .png, .svg, .pdf.")]


@dataclass(frozen=True, kw_only=True)
class ChooseOptions(LabelledOptions):
    """The options of `evgp choose`, in the order of `--help`."""

    data: LabelledTable
    label: _options.Label
    depths: Depths = "1,2,3,4"
    activations: ActivationNames = "relu,gelu,leaky_relu,erf"
    networks: Listed = None
    folds: Folds = 100
    kappa: Kappa = 0.3
    most: Most = 1000
    plot: PlotFile = None
    seed: _options.Seed = 0


@guarded
@with_options(ChooseOptions)
def choose(options: ChooseOptions) -> None:
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
    from evgp.architectures import choose as run
    from evgp.datasets import check_writable
    from evgp.datasets.scaling import described

    plot, quiet = options.plot, options.quiet
    if plot is not None:
        check_writable(plot, (".png", ".svg", ".pdf"))
    table, notes = _read(options)
    note(notes, quiet=quiet)
    nets = _networks(options, table.classes or 1)
    x, y = table.x[: options.most], table.y[: options.most]
    if len(x) < len(table.x) and not quiet:
        tell(f"note: used {len(x):,} of {len(table.x):,} rows (--most)")
    with progress(quiet) as bar:
        # The table is scaled already, by all of its rows.
        choice = run(
            nets, x, y, folds=options.folds, kappa=options.kappa, scale=None, seed=options.seed,
            progress=bar,
        )  # fmt: skip
    if plot is not None:
        _draw(choice, plot)
    _show(choice, json=options.json)
    if not quiet:
        tell(f"labels were read as {table.about}; change that with --task")
        tell(f"Scale: {described(table.scale)}.")
        tell(_sentence(choice))


def _read(options: ChooseOptions) -> "tuple[Dataset, list[str]]":
    """Read the table; return notes too."""
    from evgp.cli._output import left_out, noted
    from evgp.datasets import load_csv

    how = options.reading()
    how["drop"] = left_out(options.data, how["drop"], options.delimiter)
    how |= {"task": options.task or "auto", "scale": options.scale, "seed": options.seed}
    return noted(lambda: load_csv(options.data, options.label, test=0, **how))


def _networks(options: ChooseOptions, outputs: int) -> "dict[str, Network]":
    from evgp.architectures import candidates, read_networks

    if options.networks is not None:
        return read_networks(options.networks, outputs=outputs)
    names = tuple(_options.parts(options.activations))
    return candidates(_numbers(options.depths), names, outputs=outputs)


def _show(choice: "Choice", *, json: bool) -> None:
    if json:
        show_json(document(choice))
        return
    shown = columns(choice)
    if sys.stdout.isatty():  # to leave room for names
        del shown["behind_error"]
    show(shown)


def columns(choice: "Choice") -> dict[str, list[object]]:
    """Return one line for each architecture, best first."""
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
    """Return the ranking as a JSON document."""
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
    parts = _options.parts(text)
    if not parts or not all(part.isdecimal() and int(part) >= 1 for part in parts):
        raise BadArgument.of(NetworkError)("depths", "of at least 1, such as 1,2,3", repr(text))
    return tuple(int(part) for part in parts)
