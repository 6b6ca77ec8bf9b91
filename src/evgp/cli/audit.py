"""`evgp audit`: how much networks trained on a set will disagree, and where, before training."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evgp._errors import DatasetError
from evgp._executor import Progress
from evgp.cli import _options as options
from evgp.cli._output import guarded, note, progress, show, show_json, tell

if TYPE_CHECKING:
    from evgp import Audit, Recipe
    from evgp.cli._audited import AuditCall, Sets
    from evgp.report import AuditSummary, Trained

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
        help="Rows where predictions must be good, with the same columns; labels are not needed.",
        show_default=False,
    ),
]
Label = Annotated[
    str, typer.Option("--label", metavar="COLUMN", help="Column that holds the labels.")
]
PoolTable = Annotated[
    Path | None,
    typer.Option(
        "--pool", metavar="FILE", help="Rows that could be labelled next, with the same columns."
    ),
]
Count = Annotated[
    int,
    typer.Option(
        "-k", metavar="N", min=1, help="How many rows to list, and to choose from the pool."
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", metavar="FILE",
        help="Write what is predicted for every test row: .csv, .tsv, .jsonl, .parquet.",
    ),
]  # fmt: skip
Train = Annotated[
    bool,
    typer.Option("--train", help="Train networks too, and compare what they do with what was "
                 "predicted."),
]  # fmt: skip
Members = Annotated[
    int, typer.Option("--members", metavar="N", min=2, help="Networks that --train trains.")
]
Width = Annotated[int, typer.Option("--width", metavar="N", min=1, help="Width of their layers.")]
Steps = Annotated[
    int, typer.Option("--steps", metavar="N", min=1, help="Steps of their training, by Adam.")
]
Rate = Annotated[float, typer.Option("--lr", metavar="RATE", help="Size of these steps.")]


@guarded
def audit(
    train_file: TrainFile,
    test_file: TestFile,
    *,
    label: Label,
    pool: PoolTable = None,
    k: Count = 10,
    output: Output = None,
    report: options.ReportFile = None,
    train: Train = False,
    members: Members = 50,
    steps: Steps = 500,
    lr: Rate = 0.01,
    width: Width = 512,
    task: options.TaskName = None,
    id: options.Id = None,
    drop: options.Drop = None,
    impute: options.Impute = False,
    delimiter: options.Delimiter = None,
    depth: options.Depth = 2,
    activation: options.Activation = "relu",
    w_std: options.WStd = 1.0,
    b_std: options.BStd = 0.1,
    noise: options.Noise = 1e-6,
    seed: options.Seed = 0,
    json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Say how much networks trained on TRAIN will disagree at the rows of TEST, before training.

    Prints the test rows most at risk: how much networks of infinite width, trained from random
    initialisations, differ there (deviation), the Gaussian process's deviation, which is never less
    (ceiling). Both are for labels with deviation 1, and the first is given in the label's own unit
    too; of classes, both are for outputs that are 1 for a class and 0 for the others. Said too:
    which training rows are redundant, what further labels from a pool would do, and how the set
    stands among random ones.

    \b
    Examples:
      evgp audit train.csv test.csv --label price --id house --report audit.html
      evgp audit train.csv test.csv --label price --pool unlabelled.csv -k 20 -o spread.csv
      evgp audit train.csv test.csv --label kind --train --members 50
    """
    import evgp
    from evgp.cli import _audited
    from evgp.cli._output import noted
    from evgp.cli._picked import check_paths, write_both
    from evgp.report import render_audit

    wanted = _audited.AuditCall(
        train_file, test_file, pool, label, task, id, drop or (), impute, delimiter
    )
    check_paths(output, report, wanted.files)
    network = evgp.mlp(depth, width, activation, w_std, b_std)
    if lr <= 0:
        raise DatasetError(f"expected --lr above 0, got {lr}; 0.01 is usual")
    sets = _audited.load_sets(wanted)
    note(sets.notes, quiet=quiet)
    trained, further = None, None if sets.pool is None else sets.pool.x
    with progress(quiet) as bar:
        # The columns are encoded already.
        how: Any = {"noise": noise, "standardise": False, "seed": seed, "progress": bar}
        found, more = noted(
            lambda: evgp.audit(sets.train.x, sets.test.x, network, pool=further, k=k, **how)
        )
        if train:
            outputs = sets.data.classes or 1
            net = evgp.mlp(depth, width, activation, w_std, b_std, outputs=outputs)
            recipe = evgp.Recipe(net, {"optimiser": "adam", "lr": lr, "steps": steps}, gentler=3)
            trained = _trained(recipe, found, sets, members=members, seed=seed, bar=bar)
    more_settings = {"members": members, "steps": steps, "lr": lr} if train else {}
    settings = _settings(wanted, sets, str(network), noise, seed) | more_settings
    made = _audited.Audited(found, sets, label, k, trained, settings, (*sets.notes, *more))
    summary = made.summary(network=str(network))
    page = None if report is None else render_audit(summary)
    _, said = noted(lambda: write_both(output, made.columns(), report, page))
    if json:
        show_json(made.document())
    else:
        show(made.at_risk())
    note([*more, *said], quiet=quiet)
    if not quiet:
        tell(sets.taken(task))
        _tell(summary, [str(path) for path in (output, report) if path is not None])


def _settings(
    call: "AuditCall", sets: "Sets", network: str, noise: float, seed: int
) -> dict[str, object]:
    """As the page of the audit shows them."""
    return {
        "label": call.label, "task": sets.data.kind, "network": network, "noise": noise,
        "seed": seed, "id": call.id, "drop": ", ".join(call.drop) or None,
        "impute": call.impute or None,
    }  # fmt: skip


def _tell(summary: "AuditSummary", files: list[str]) -> None:
    from evgp.report import audit_words
    from evgp.report.words import THIN

    for sentence in audit_words.lead(summary):
        tell(sentence.replace(THIN, " "))
    if files:
        tell(f"Written: {', '.join(files)}.")


def _trained(
    recipe: "Recipe", found: "Audit", sets: "Sets", *, members: int, seed: int, bar: Progress
) -> "Trained":
    """Networks trained on the set, beside what was predicted for them."""
    import evgp
    from evgp.report import Trained

    ensemble = recipe(sets.train.x, sets.y, members=members, seed=seed, progress=bar)
    outputs = ensemble.predict(sets.test.x)
    # Of targets with mean 0, the mean square is what predicting the mean would cost.
    loss = float(ensemble.losses.mean()) / float(sets.y.square().mean())
    made = evgp.confirm(found, outputs)
    if sets.y_test is None:
        return Trained(made, loss)
    if sets.data.classes:
        single = (sets.guesses(outputs) != sets.y_test).double().mean()
        together = (sets.guesses(outputs.mean(0)) != sets.y_test).double().mean()
        return Trained(made, loss, float(single), float(together))
    error, bias = evgp.metrics.mse(outputs, sets.y_test), evgp.metrics.bias(outputs, sets.y_test)
    return Trained(made, loss, error**0.5, bias**0.5)
