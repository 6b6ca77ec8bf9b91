"""`evgp compare`: which strategy would have needed fewer labels, shown with trained networks."""

import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from evgp._errors import DamageWarning, EvgpWarning, PoolError
from evgp.cli import _options as options
from evgp.cli._output import called, fail, guarded, note, progress, show, show_json, tell

if TYPE_CHECKING:
    from evgp.arena import Comparison, Terms

Data = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        help="Datasets of the paper by name (boston, naval, protein, kin8nm, california, "
        "optdigits, mnist, emnist, svhn, cifar100), or a labelled table of your own with --label.",
        show_default=False,
    ),
]
Strategies = Annotated[
    str,
    typer.Option(
        "--strategies",
        metavar="NAMES",
        help="Divided by commas: evgp, random, kmeans++, coreset, max-variance, badge, mlmoc, "
        "mlmoc-seq, batchbald; evgp-p90, evgp-mi, evgp-emp, evgp-sparse, ...; evgp:40+badge for a "
        "warm start; a plugin's name, or package.module:name for your own.",
    ),
]
Out = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="FOLDER",
        help="Rows, plots and page go here; what is finished there is not run again.",
    ),
]
Budget = Annotated[
    int, typer.Option("--budget", metavar="N", min=1, help="Labels to spend, in whole batches.")
]
Batch = Annotated[int, typer.Option("--batch", metavar="N", min=1, help="Labels of one round.")]
Start = Annotated[
    int,
    typer.Option(
        "--start", metavar="N", min=0, help="Random labels before the first round, of the budget."
    ),
]
Seeds = Annotated[
    int,
    typer.Option("--seeds", metavar="N", min=1, help="Repeats: splits, draws, initialisations."),
]
Members = Annotated[
    int,
    typer.Option("--members", metavar="N", min=2, help="Networks trained after each round."),
]
Width = Annotated[
    int, typer.Option("--width", metavar="N", min=1, help="Width of the mlp that is trained.")
]
Rate = Annotated[
    float | None,
    typer.Option("--lr", metavar="RATE", help="Step size of training; else the paper's."),
]
Steps = Annotated[
    int | None,
    typer.Option(
        "--steps",
        metavar="N",
        min=1,
        help="Steps of training (passes over the labels, for classes); else the paper's 1,000 "
        "(100).",
    ),
]
PoolSize = Annotated[
    int | None,
    typer.Option("--pool", metavar="N", min=2, help="Take only N points of the pool's part."),
]
TestSize = Annotated[
    int | None,
    typer.Option(
        "--test",
        metavar="N",
        min=1,
        help="Test on N points only; of a table of your own the rest is the pool.",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", metavar="N", min=1, help="Processes at once; else as cores and memory allow."
    ),
]
_NOTES = 3
COLUMNS = ("dataset", "metric", "strategy", "area", "deviation", "to_random", "p", "reaches_at")


@guarded
def compare(
    data: Data,
    *,
    strategies: Strategies = "evgp,random,kmeans++,badge",
    out: Out = Path("comparison"),
    budget: Budget = 100,
    batch: Batch = 20,
    start: Start = 0,
    seeds: Seeds = 5,
    members: Members = 10,
    label: options.LabelColumn = None,
    task: options.TaskName = None,
    id: options.Id = None,
    drop: options.Drop = None,
    delimiter: options.Delimiter = None,
    impute: options.Impute = False,
    pool: PoolSize = None,
    test: TestSize = None,
    network: options.NetworkName = "mlp",
    depth: options.Depth = 2,
    width: Width = 512,
    lr: Rate = None,
    steps: Steps = None,
    jobs: Jobs = None,
    json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Let strategies spend the same budget on DATA, train networks on what each picked, and tell.

    Half of a table is the pool and half is for the test. After each batch, networks that differ by
    their initialisation alone are trained on the labels so far. Printed is the mean height of each
    learning curve over the seeds, its difference to random picks, the p-value of a paired t-test
    (adjusted by Holm's rule), and with how many labels the curve is where random's ends. A run that
    was stopped goes on where it was.

    \b
    Examples:
      evgp compare kin8nm --budget 100 --batch 20 --seeds 5 --out runs/kin8nm
      evgp compare prices.csv --label price --drop id --strategies evgp,random --out runs/prices
      evgp compare mnist --strategies evgp,random,badge,batchbald --budget 200 --batch 50
    """
    from evgp import __version__
    from evgp.arena import PAGE, Subject, Terms, check_publishable, publish
    from evgp.arena import compare as run
    from evgp.cli._output import left_out
    from evgp.report.words import several

    names = options.parts(strategies)
    if not names:
        raise PoolError("expected strategies to compare, got none; such as evgp,random")
    terms = Terms(budget, batch, start, members, network, depth, width, lr, steps)
    dropped = [left_out(Path(one), drop or (), delimiter) for one in data]
    subjects = [
        Subject(one, label, task, id, out, impute, pool, test, delimiter)
        for one, out in zip(data, dropped, strict=True)
    ]
    check_publishable(out)
    begun = perf_counter()
    try:
        with progress(quiet, lines=True) as bar, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run(subjects, names, out=out, terms=terms, seeds=range(seeds), jobs=jobs, progress=bar)
    except KeyboardInterrupt:
        kept = len(list(out.glob("cells/*.json")))
        cells = f"{several(kept, 'finished cell')} in {out} {'is' if kept == 1 else 'are'} kept"
        fail(f"stopped; {cells}, and the same command goes on from there", code=130)
    note(_notes(caught), quiet=quiet)
    with warnings.catch_warnings():
        # A quote before a name in rows.csv is no news: rows.parquet has it as it is.
        warnings.simplefilter("ignore", EvgpWarning)
        made = publish(out, command=called(), version=__version__, settings=_settings(terms))
    _show(made, json=json, quiet=quiet)
    if not quiet:
        spent = perf_counter() - begun
        tell(f"wrote {out / 'rows.csv'}, plots and {out / PAGE} in {spent:,.0f} s")


def _settings(terms: "Terms") -> dict[str, object]:
    """As the page of the comparison shows them."""
    names = ["budget", "batch", "network", "members"]
    names += ["depth", "width"] if terms.network == "mlp" else []
    names += ["start"] if terms.start else []
    usual = "as in the paper"
    return {name: getattr(terms, name) for name in names} | {
        "lr": terms.lr or usual, "steps": terms.steps or usual,
    }  # fmt: skip


def _show(made: "Comparison", *, json: bool, quiet: bool) -> None:
    if json:
        show_json(made.as_dict())
    else:
        show(_narrow(table(made)) if sys.stdout.isatty() else table(made))
    for contest in () if quiet else made.contests:
        tell(f"{contest.dataset}: {contest.verdict}")
        note(contest.notes, quiet=quiet)


def table(comparison: "Comparison") -> Mapping[str, Sequence[object]]:
    """A line for each dataset, metric and strategy."""
    from evgp.arena import MEASURES

    lines: list[tuple[object, ...]] = []
    for contest in comparison.contests:
        for metric in (name for name in contest.metrics if MEASURES[name].central):
            for entrant in contest.entrants:
                score = entrant.score(metric)
                paired, saved = score.paired, score.saved
                lines.append(
                    (
                        contest.dataset,
                        metric,
                        entrant.strategy,
                        _or_dash(score.mean),
                        _or_dash(score.deviation),
                        _or_dash(None if paired is None else paired.difference),
                        _or_dash(None if paired is None else paired.holm),
                        _or_dash(None if saved is None else saved.at),
                    )
                )
    return dict(zip(COLUMNS, zip(*lines, strict=True), strict=True)) if lines else {}


def _narrow(columns: Mapping[str, Sequence[object]]) -> Mapping[str, Sequence[object]]:
    """What fits a terminal: no deviation, and no name of the only dataset.

    >>> list(_narrow({"dataset": ["a", "a"], "area": [1.0, 2.0], "deviation": [0.1, 0.2]}))
    ['area']
    """
    alone = len(set(columns.get("dataset", ()))) < 2
    out = {"deviation", *(["dataset"] if alone else [])}
    return {name: cells for name, cells in columns.items() if name not in out}


def _notes(caught: Sequence[warnings.WarningMessage]) -> list[str]:
    """What was damaged, then what the data warned of: the first few, as seeds warn of the same."""
    ours = [one for one in caught if issubclass(one.category, EvgpWarning)]
    ours.sort(key=lambda one: not issubclass(one.category, DamageWarning))
    made = list(dict.fromkeys(str(one.message) for one in ours))
    more = len(made) - _NOTES
    return [*made[:_NOTES], f"{more} more like these, for other seeds"] if more > 0 else made


def _or_dash(value: float | None) -> object:
    return "" if value is None else float(value)
