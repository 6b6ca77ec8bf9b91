"""`evgp compare`: which strategy would have needed fewer labels, shown with trained networks."""

import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from evgp.cli import _options
from evgp.cli._options import LabelledOptions, option, with_options
from evgp.cli._output import called, fail, guarded, in_flags, note, progress, show, show_json, tell
from evgp.errors import DamageWarning, EvgpWarning, PoolError

if TYPE_CHECKING:
    from evgp.comparison import Comparison, DatasetSource, Protocol

Data = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="DATA...",
        help="Datasets of the paper by name (boston, naval, protein, kin8nm, california, "
        "optdigits, mnist, emnist, svhn, cifar100), or a labelled table of your own with --label.",
        show_default=False,
    ),
]
SuiteName = Annotated[
    str | None,
    option(
        "--suite",
        "NAME",
        "Compare on many pools in place of DATA, with a fixed protocol: tables, images, text or "
        "embeddings. Prints the core-hours first.",
    ),
]
OnlyPlan = Annotated[
    bool,
    typer.Option(
        "--plan", help="With --suite: only print the unfinished cells and their core-hours."
    ),
]
Strategies = Annotated[
    str | None,
    option(
        "--strategies",
        "NAMES",
        "Names separated by commas: evgp, random, kmeans++, kmeans, coreset (or "
        "farthest-first), typiclust, probcover, maxherding, lcmd, bait, max-variance, badge, "
        "mlmoc, mlmoc-seq, batchbald, dropquery, margin, entropy; evgp-p90, evgp-mi, evgp-emp, "
        "evgp-sparse, ...; evgp:40+margin for a warm start; evgp@columns, kmeans@unit, ... for "
        "another --scale; a plugin's name, or package.module:name for your own.",
    ),
]
Out = Annotated[
    Path,
    option(
        "--out",
        "FOLDER",
        "Folder for rows, plots and the page; cells that are finished there are not run again.",
    ),
]
Budget = Annotated[
    int, option("--budget", "N", "Number of labels; a multiple of the batch size.", min=1)
]
Batch = Annotated[int, option("--batch", "N", "Labels per round.", min=1)]
Start = Annotated[
    int,
    option(
        "--start",
        "N",
        "Random labels before the first round; they count towards the budget.",
        min=0,
    ),
]
Budgets = Annotated[
    str | None,
    option(
        "--budgets",
        "N,N,...",
        "Cold starts in place of --budget and --batch: each number of labels is picked as "
        "one batch, such as 10,20,40.",
    ),
]
Learners = Annotated[
    list[str] | None,
    option(
        "--learner",
        "NAMES",
        "Model to fit to the labels; separate several by commas, or repeat the option: network "
        "(the default), 1nn, linear, ntk, trees, boosting.",
    ),
]
Seeds = Annotated[
    int | None,
    option(
        "--seeds",
        "N",
        "Number of repetitions, each with its own split and initialisation: 5 by default, 30 with "
        "--suite.",
        min=1,
    ),
]
Members = Annotated[
    int,
    option("--members", "N", "Number of networks trained after each round.", min=2),
]
Width = Annotated[int, option("--width", "N", "Width of the mlp that is trained.", min=1)]
Rate = Annotated[
    float | None,
    option("--lr", "RATE", "Learning rate; the paper's by default."),
]
Steps = Annotated[
    int | None,
    option(
        "--steps",
        "N",
        "Training steps (passes over the labels, for classes); the paper's 1,000 (100) by default.",
        min=1,
    ),
]
PoolSize = Annotated[
    int | None,
    option("--pool", "N", "Use only N points of the pool.", min=2),
]
TestSize = Annotated[
    int | None,
    option(
        "--test", "N", "Test on N points only; the rest of your own table becomes the pool.", min=1
    ),
]
Jobs = Annotated[
    int | None,
    option(
        "--jobs",
        "N",
        "Number of parallel processes; by default as many as cores and memory allow.",
        min=1,
    ),
]
_NOTES = 6
COLUMNS = (
    "dataset", "learner", "metric", "strategy", "area", "standard_deviation", "to_random", "p",
    "reaches_at",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class CompareOptions(LabelledOptions):
    """The options of `evgp compare`, in the order of `--help`."""

    data: Data = None
    suite: SuiteName = None
    plan: OnlyPlan = False
    strategies: Strategies = None
    out: Out = Path("comparison")
    budget: Budget = 100
    batch: Batch = 20
    start: Start = 0
    budgets: Budgets = None
    learner: Learners = None
    scale: _options.ScaleName = "auto"
    seeds: Seeds = None
    members: Members = 10
    label: _options.LabelColumn = None
    pool: PoolSize = None
    test: TestSize = None
    network: _options.NetworkName = "mlp"
    depth: _options.Depth = 2
    width: Width = 512
    lr: Rate = None
    steps: Steps = None
    jobs: Jobs = None

    def protocol(self) -> "Protocol":
        """Return the budget of every strategy, and the learners that are fitted to its labels."""
        from evgp.comparison import Protocol

        return Protocol(
            self.budget, self.batch, self.start, self.members, self.network, self.depth,
            self.width, self.lr, self.steps, scale=self.scale, learners=_learners(self.learner),
            budgets=_numbers(self.budgets),
        )  # fmt: skip

    def source(self, path: str) -> "DatasetSource":
        """Return one of the datasets, with the options to read it."""
        from evgp.cli._output import left_out
        from evgp.comparison import DatasetSource

        how = self.reading()
        how["drop"] = left_out(Path(path), how["drop"], self.delimiter)
        how |= {name: getattr(self, name) for name in ("label", "task", "pool", "test")}
        return DatasetSource(path, **how)


@guarded
@with_options(CompareOptions)
def compare(options: CompareOptions) -> None:
    """Compare strategies on labelled DATA: train networks on each selection and report the results.

    Every strategy has the same budget. Half of a table is the pool, the other half the test set.
    After each batch, networks that differ only in their initialisation are trained on the labels so
    far. Prints the mean height of each learning curve over the seeds, its difference from random
    picks, the p-value of a paired t-test (adjusted by Holm's method), and the number of labels at
    which the curve reaches random's final value. An interrupted run resumes where it stopped. With
    --learner, other learners are fitted to the same labels, in seconds where networks take minutes.

    \b
    Examples:
      evgp compare kin8nm --budget 100 --batch 20 --seeds 5 --out runs/kin8nm
      evgp compare prices.csv --label price --drop id --strategies evgp,random --out runs/prices
      evgp compare prices.csv --label price --learner 1nn,linear,trees --budgets 10,20,40,80
      evgp compare reviews.csv --label stars --text body --learner linear --budgets 10,20,40
      evgp compare mnist --strategies evgp,random,badge,batchbald --budget 200 --batch 50
      evgp compare --suite tables --plan --out runs/tables
      evgp compare --suite tables --out runs/tables
    """
    if options.suite is not None or not options.data:
        from evgp.cli._suite import run_and_show

        return run_and_show(options)
    from evgp.comparison import check_publishable
    from evgp.comparison import compare as run

    protocol, names = options.protocol(), _names(options.strategies)
    sources = [options.source(path) for path in options.data]
    check_publishable(options.out)
    begun = perf_counter()
    with _noted(options.out, options.quiet), progress(options.quiet, lines=True) as bar:
        run(
            sources, names, out=options.out, protocol=protocol, seeds=options.seeds or 5,
            jobs=options.jobs, progress=bar,
        )  # fmt: skip
    _publish(options.out, protocol, begun, json=options.json, quiet=options.quiet)


def _publish(out: Path, protocol: "Protocol", begun: float, *, json: bool, quiet: bool) -> None:
    """Write the page, print its table, and report where it is."""
    from evgp import __version__
    from evgp.comparison import PAGE, publish
    from evgp.datasets.scaling import described

    with _without_quotes():
        comparison = publish(
            out, command=called(), version=__version__, settings=_settings(protocol)
        )
    _show(comparison, json=json, quiet=quiet)
    if not quiet:
        tell(f"Scale: {described(protocol.scale)}.")
        tell(f"wrote {out / 'rows.csv'}, plots and {out / PAGE} in {perf_counter() - begun:,.0f} s")


@contextmanager
def _without_quotes() -> Iterator[None]:
    """Suppress warnings about quoted names in rows.csv; rows.parquet has the names unchanged."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvgpWarning)
        yield


@contextmanager
def _noted(out: Path, quiet: bool) -> Iterator[None]:
    """Show warnings as notes at the end, and report what is kept if a run is stopped."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
    except KeyboardInterrupt:
        fail(_stopped(out), code=130)
    note(_notes(caught), quiet=quiet)


def _names(strategies: str | None) -> list[str]:
    names = _options.parts("evgp,random,kmeans++,badge" if strategies is None else strategies)
    if not names:
        raise PoolError("name at least one strategy, such as evgp,random")
    return names


def _learners(names: Sequence[str] | None) -> tuple[str, ...]:
    """Return the learners from all uses of the option.

    >>> _learners(["1nn, linear", "trees"]), _learners(None)
    (('1nn', 'linear', 'trees'), ('network',))
    """
    if names is None:
        return ("network",)
    return tuple(part for text in names for part in _options.parts(text))


def _numbers(text: str | None) -> tuple[int, ...]:
    """Parse a list of numbers.

    >>> _numbers("10,20"), _numbers(None)
    ((10, 20), ())
    """
    if text is None:
        return ()
    parts = _options.parts(text)
    if not parts or not all(part.isdecimal() and part.isascii() for part in parts):
        raise PoolError(f"expected budgets such as 10,20,40; got {text!r}")
    return tuple(map(int, parts))


def _stopped(out: Path) -> str:
    from evgp._repr import several

    kept = len(list(out.glob("cells/*.json")))
    cells = f"{several(kept, 'finished cell')} in {out} {'is' if kept == 1 else 'are'} kept"
    return f"stopped; {cells}; run the same command to resume"


def _settings(protocol: "Protocol") -> dict[str, object]:
    """Describe the settings for the page of the comparison."""
    trained = "network" in protocol.learners
    names = ["network", *(["members"] if trained else [])]
    names += ["depth", "width"] if protocol.network == "mlp" else []
    names += ["start"] if protocol.start else []
    usual = "as in the paper"
    spent: dict[str, object] = {"budget": protocol.budget, "batch": protocol.batch}
    if protocol.budgets:
        spent = {"budgets": ", ".join(map(str, protocol.budgets))}
    spent["scale"] = protocol.scale or "none"
    if protocol.learners != ("network",):
        spent["learners"] = ", ".join(protocol.learners)
    return spent | {name: getattr(protocol, name) for name in names} | {
        "lr": protocol.lr or usual, "steps": protocol.steps or usual,
    }  # fmt: skip


def _show(made: "Comparison", *, json: bool, quiet: bool) -> None:
    if json:
        show_json(made.as_dict())
    else:
        show(_narrow(table(made)) if sys.stdout.isatty() else table(made))
    for contest in () if quiet else made.main:
        tell(f"{contest.dataset}: {contest.verdict}")
        note(contest.notes, quiet=quiet)


def table(comparison: "Comparison") -> Mapping[str, Sequence[object]]:
    """Return a line for each dataset, learner, metric and strategy; a lone network is not named."""
    from evgp.comparison import MEASURES

    lines: list[tuple[object, ...]] = []
    for contest in comparison.contests:
        for metric in (name for name in contest.metrics if MEASURES[name].central):
            for entrant in contest.entrants:
                score = entrant.score(metric)
                paired, saved = score.paired, score.saved
                lines.append(
                    (
                        contest.dataset,
                        contest.learner,
                        metric,
                        entrant.strategy,
                        _or_dash(score.mean),
                        _or_dash(score.deviation),
                        _or_dash(None if paired is None else paired.difference),
                        _or_dash(None if paired is None else paired.holm),
                        _or_dash(None if saved is None else saved.at),
                    )
                )
    columns = dict(zip(COLUMNS, zip(*lines, strict=True), strict=True)) if lines else {}
    if not any(contest.shown for contest in comparison.contests):
        columns.pop("learner", None)
    return columns


def _narrow(columns: Mapping[str, Sequence[object]]) -> Mapping[str, Sequence[object]]:
    """Drop columns to fit a terminal: the standard deviation, and the name of the only dataset.

    >>> list(_narrow({"dataset": ["a"], "area": [1.0], "standard_deviation": [0.1]}))
    ['area']
    """
    alone = len(set(columns.get("dataset", ()))) < 2
    out = {"standard_deviation", *(["dataset"] if alone else [])}
    return {name: cells for name, cells in columns.items() if name not in out}


def _notes(caught: Sequence[warnings.WarningMessage]) -> list[str]:
    """Return warnings as notes, damage first; only a few, because seeds repeat the same ones."""
    ours = [warning for warning in caught if issubclass(warning.category, EvgpWarning)]
    ours.sort(key=lambda warning: not issubclass(warning.category, DamageWarning))
    shown = list(dict.fromkeys(in_flags(str(warning.message)) for warning in ours))
    more = len(shown) - _NOTES
    return [*shown[:_NOTES], f"{more} more like these, for other seeds"] if more > 0 else shown


def _or_dash(value: float | None) -> object:
    return "" if value is None else float(value)
