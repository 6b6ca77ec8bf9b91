"""`evgp audit`: predict, before training, where networks trained on a set will disagree."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evgp._defaults import NOISE
from evgp._executor import Progress
from evgp.cli import _options
from evgp.cli._options import LabelledOptions, with_options
from evgp.cli._output import guarded, note, progress, show, show_json, tell
from evgp.errors import DatasetError

if TYPE_CHECKING:
    from evgp.audits import Audit
    from evgp.cli._audit_io import AuditResult, AuditTables
    from evgp.datasets import ReadOptions
    from evgp.nets import Network
    from evgp.report import AuditSummary, Trained
    from evgp.training import Recipe

_TABLE = ".csv, .tsv (also .gz), .parquet, .arrow, .feather."
TrainFile = Annotated[
    Path,
    typer.Argument(
        metavar="TRAIN", help=f"Table with labels to train on: {_TABLE}", show_default=False
    ),
]
TestFile = Annotated[
    Path,
    typer.Argument(
        metavar="TEST",
        help="Rows to predict, with the same columns; labels are optional.",
        show_default=False,
    ),
]
PoolTable = Annotated[
    Path | None,
    typer.Option(
        "--pool", metavar="FILE", help="Unlabelled rows to choose from, with the same columns."
    ),
]
Count = Annotated[
    int,
    typer.Option(
        "-k", metavar="N", min=1, help="Number of rows to list, and to choose from the pool."
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", metavar="FILE",
        help="Write the prediction for every test row: .csv, .tsv, .jsonl, .parquet.",
    ),
]  # fmt: skip
Train = Annotated[
    bool,
    typer.Option("--train", help="Also train networks, and compare them with the prediction."),
]  # fmt: skip
Members = Annotated[
    int,
    typer.Option("--members", metavar="N", min=2, help="Number of networks that --train trains."),
]
Width = Annotated[int, typer.Option("--width", metavar="N", min=1, help="Width of their layers.")]
Steps = Annotated[
    int, typer.Option("--steps", metavar="N", min=1, help="Training steps, with Adam.")
]
Rate = Annotated[float, typer.Option("--lr", metavar="RATE", help="Learning rate.")]


@dataclass(frozen=True, kw_only=True)
class AuditOptions(LabelledOptions):
    """The options of `evgp audit`, in the order of `--help`."""

    train_file: TrainFile
    test_file: TestFile
    label: _options.Label
    pool: PoolTable = None
    k: Count = 10
    output: Output = None
    report: _options.ReportFile = None
    train: Train = False
    members: Members = 50
    steps: Steps = 500
    lr: Rate = 0.01
    width: Width = 512
    depth: _options.Depth = 2
    activation: _options.Activation = "relu"
    w_std: _options.WStd = 1.0
    b_std: _options.BStd = 0.1
    noise: _options.Noise = NOISE
    seed: _options.Seed = 0


@guarded
@with_options(AuditOptions)
def audit(options: AuditOptions) -> None:
    """Predict, before training, how much networks trained on TRAIN will disagree at rows of TEST.

    Prints the test rows with the most disagreement: the standard deviation of infinitely wide
    networks trained from random initialisations, and an upper bound, that of the NTK Gaussian
    process (ceiling). Both are for labels with standard deviation 1 (for classes: for outputs of 1
    and 0), and the first is also given in the unit of the label. Also prints how many training rows
    are redundant, what more labels from a pool would do, and how the training set compares with
    random ones.

    \b
    Examples:
      evgp audit train.csv test.csv --label price --id house --report audit.html
      evgp audit train.csv test.csv --label price --pool unlabelled.csv -k 20 -o spread.csv
      evgp audit train.csv test.csv --label kind --train --members 50
    """
    import evgp
    from evgp.cli import _audit_io
    from evgp.cli._output import noted
    from evgp.cli._picked import check_paths

    if options.lr <= 0:
        raise DatasetError(f"expected --lr above 0, got {options.lr}; 0.01 is usual")
    files = (options.train_file, options.test_file, options.pool)
    check_paths(options.output, options.report, files)
    how = evgp.datasets.ReadOptions(**options.reading(), scale=options.scale)
    sizes = (options.depth, options.width, options.activation, options.w_std, options.b_std)
    network = (mlp := partial(evgp.mlp, *sizes))()
    label, seed, noise = options.label, options.seed, options.noise
    tables = _audit_io.read_tables(files, label, how, options.task)
    note(tables.notes, quiet=options.quiet)
    trained = None
    settings = {"label": label, "task": tables.data.kind, "network": str(network), "noise": noise}
    settings |= {"seed": seed, **_settings(how), "scale": tables.scale or "none"}
    with progress(options.quiet) as bar:
        # The columns are encoded already.
        again: Any = {"noise": noise, "scale": None, "seed": seed, "progress": bar}
        prediction, notes = noted(lambda: _audited(tables, network, k=options.k, **again))
        if options.train:
            recipe = _recipe(mlp(outputs=tables.data.classes or 1), options.lr, options.steps)
            trained = _trained(recipe, prediction, tables, options, bar)
            settings |= {name: getattr(options, name) for name in ("members", "steps", "lr")}
    all_notes = (*tables.notes, *notes)
    result = _audit_io.AuditResult(
        prediction, tables, label, options.k, trained, settings, all_notes
    )
    _write(result, str(network), notes, options)


def _write(result: "AuditResult", network: str, notes: list[str], options: AuditOptions) -> None:
    """Write the files, print the rows with the most disagreement, then notes and sentences."""
    from evgp.cli._output import noted
    from evgp.cli._picked import write_both
    from evgp.datasets.scaling import described
    from evgp.report import render_audit

    output, report = options.output, options.report
    summary = result.summary(network=network)
    page = None if report is None else render_audit(summary)
    _, more = noted(lambda: write_both(output, result.columns(), report, page))
    if options.json:
        show_json(result.document())
    else:
        show(result.at_risk())
    note([*notes, *more], quiet=options.quiet)
    if not options.quiet:
        tell(result.tables.how_labels_were_read(options.task))
        tell(f"Scale: {described(result.tables.scale)}.")
        _tell(summary, [str(path) for path in (output, report) if path is not None])


def _settings(how: "ReadOptions") -> dict[str, object]:
    """Describe how the tables were read, for the page of the audit."""
    return {
        "id": how.id, "column": how.column, "drop": ", ".join(how.drop) or None,
        "text": ", ".join(how.text) or None, "embed": how.embed, "impute": how.impute or None,
    }  # fmt: skip


def _tell(summary: "AuditSummary", files: list[str]) -> None:
    from evgp.report import audit_words
    from evgp.report.words import THIN

    for sentence in audit_words.lead(summary):
        tell(sentence.replace(THIN, " "))
    if files:
        tell(f"Written: {', '.join(files)}.")


def _audited(tables: "AuditTables", network: "Network", **how: Any) -> "Audit":
    import evgp

    pool = None if tables.pool is None else tables.pool.x
    return evgp.audit(tables.train.x, tables.test.x, network, pool=pool, **how)


def _recipe(network: "Network", lr: float, steps: int) -> "Recipe":
    from evgp.training import Recipe

    return Recipe(network, {"optimiser": "adam", "lr": lr, "steps": steps}, gentler=3)


def _trained(
    recipe: "Recipe",
    prediction: "Audit",
    tables: "AuditTables",
    options: AuditOptions,
    bar: Progress,
) -> "Trained":
    """Train networks on the set, and compare them with the prediction."""
    import evgp
    from evgp.report import Trained

    ensemble = recipe(
        tables.train.x, tables.y, members=options.members, seed=options.seed, progress=bar
    )
    outputs, y_test = ensemble.predict(tables.test.x), tables.y_test
    # Targets have mean 0, so their mean square is the loss of predicting the mean.
    loss = float(ensemble.losses.mean()) / float(tables.y.square().mean())
    confirmation = evgp.audits.confirm(prediction, outputs)
    if y_test is None:
        return Trained(confirmation, loss)
    if tables.data.classes:
        single = (tables.predicted_classes(outputs) != y_test).double().mean()
        together = (tables.predicted_classes(outputs.mean(0)) != y_test).double().mean()
        return Trained(confirmation, loss, float(single), float(together))
    error, bias = evgp.metrics.mse(outputs, y_test), evgp.metrics.bias(outputs, y_test)
    return Trained(confirmation, loss, error**0.5, bias**0.5)
