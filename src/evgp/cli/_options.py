"""Options shared by several commands, with their help, and the options of `evgp pick`."""

import inspect
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import MISSING, dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, get_type_hints

import typer

from evgp._defaults import MAX_CATEGORIES, NOISE, TRAINING_SCALE

Activations: TypeAlias = Literal["relu", "leaky_relu", "gelu", "erf", "sin", "identity"]
Criteria: TypeAlias = Literal["ev", "median", "p90", "max", "mi", "cells"]
Greedies: TypeAlias = Literal[
    "auto", "exact", "lazy", "stochastic", "exchange", "two-rounds", "one-per-cell"
]
Scales: TypeAlias = Literal["auto", "columns", "smooth", "smooth-unit", "common", "unit", "none"]
Methods: TypeAlias = Literal["auto", "dense", "features", "sharded"]
DateOrders: TypeAlias = Literal["day-first", "month-first"]
Storages: TypeAlias = Literal["auto", "float64", "float32"]


def option(flag: str, metavar: str, help: str, *, min: int | None = None) -> Any:
    """An option with one flag, what its value is called, and its help."""
    return typer.Option(flag, metavar=metavar, help=help, min=min)


PoolFile = Annotated[
    Path,
    typer.Argument(
        metavar="POOL",
        help="Table to choose from: .csv, .tsv, .jsonl (also .gz, .zst), .parquet, .arrow, "
        ".feather, .xlsx, .npy, .npz; - for a table on standard input; a folder of such "
        "files of one kind; or a folder of images.",
        show_default=False,
    ),
]
Count = Annotated[
    int | None, typer.Option("-k", metavar="N", help="Number of rows to pick.", show_default=False)
]
OutputFile = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        help="Write the picks, with all columns of the pool, to a .csv, .tsv, .jsonl, .parquet or "
        ".xlsx file.",
    ),
]
CopyTo = Annotated[
    Path | None,
    option("--copy-to", "FOLDER", "Copy the picked images to a new folder, numbered by rank."),
]
ReportFile = Annotated[
    Path | None,
    option("--report", "FILE", "Write an HTML page that shows and explains the results."),
]
Id = Annotated[
    str | None,
    option("--id", "COLUMN", "Column with the name of each row; not used as a feature."),
]
OnlyColumn = Annotated[
    str | None,
    option(
        "--column",
        "NAME",
        "The only column to use as features, such as one of embeddings; by default, a single "
        "column of lists of numbers is found by itself.",
    ),
]
Drop = Annotated[
    list[str] | None,
    option(
        "--drop",
        "COLUMN",
        "Column to leave out, such as the label; repeat the option, or separate several "
        "names with commas.",
    ),
]
Delimiter = Annotated[
    str | None,
    option(
        "--delimiter",
        "CHAR",
        "Delimiter of a CSV file, such as ';' or 'tab'; recognised by default.",
    ),
]
Decimal = Annotated[
    str | None,
    option("--decimal", "CHAR", "Decimal sign, '.' or ','; recognised by default."),
]
Encoding = Annotated[
    str | None,
    option(
        "--encoding",
        "NAME",
        "Encoding of a CSV file, such as cp1252 or utf-16; recognised by default.",
    ),
]
Dates = Annotated[
    DateOrders | None,
    option("--dates", "ORDER", "How to read dates such as 3/4/2021: day-first or month-first."),
]
ArrayName = Annotated[
    str | None,
    option("--array", "NAME", "Name of the array to read; for .npz files only."),
]
TextColumn = Annotated[
    list[str] | None,
    option(
        "--text",
        "COLUMN",
        "Column of text to embed; several names, separated by commas or given by repeating the "
        "option, are joined. By default, a single column of free text is found by itself.",
    ),
]
EmbedderName = Annotated[
    str | None,
    option(
        "--embed",
        "NAME",
        "What turns texts or images into vectors. Text: tfidf (the default), or a "
        "sentence-transformers model, by its folder or by its name if it was downloaded before. "
        "Images: torchvision:NAME or timm:NAME, with @FILE for the weights. Both: "
        "package.module:function.",
    ),
]
Label = Annotated[str, option("--label", "COLUMN", "Column with the labels.")]
LabelColumn = Annotated[str | None, option("--label", "COLUMN", "Column with the labels.")]
TaskName = Annotated[
    str | None,
    option("--task", "KIND", "regression or classification; inferred from the labels by default."),
]
Costs = Annotated[
    str | None,
    option("--costs", "COLUMN", "Column with the cost of labelling each row; needs --budget."),
]
Budget = Annotated[
    float | None,
    option("--budget", "MONEY", "Maximum total cost of the picks, in a campaign of each round."),
]
LabelledFile = Annotated[
    Path | None,
    option(
        "--labelled",
        "FILE",
        "Rows that are already labelled: their ids, their row numbers (from 0), or rows with "
        "the same columns as the pool.",
    ),
]
TestFile = Annotated[
    Path | None,
    option(
        "--test",
        "FILE",
        "Rows at which predictions must be good, with the same columns as the pool; the pool "
        "itself by default.",
    ),
]
Thin = Annotated[
    int | None,
    option("--thin", "N", "Keep only N well-spread test points, to save memory."),
]
NetworkName = Annotated[
    str,
    option(
        "--network",
        "NAME",
        "mlp, cnn, resnet18, wrn-16-1, the name of a plugin, or package.module:function for a "
        "function that returns a torch module.",
    ),
]
KernelName = Annotated[
    str,
    option(
        "--kernel",
        "NAME",
        "ntk or nngp, the kernels of the network; or the name of a plugin, or "
        "package.module:name, to use another kernel instead.",
    ),
]
Weights = Annotated[
    Path | None,
    option(
        "--weights", "FILE", "File with the network's weights: .safetensors, or saved by torch."
    ),
]
OutputUnit = Annotated[
    str,
    option(
        "--unit",
        "WHICH",
        "Output of the network whose kernel is used: random, trace (all outputs) or a number.",
    ),
]
Draws = Annotated[
    int,
    option("--draws", "N", "Number of initialisations to average over.", min=1),
]
ImageSize = Annotated[
    int | None,
    option(
        "--image-size",
        "N",
        "Resize images to N x N; 32 x 32 by default, unless all have the same small size.",
        min=1,
    ),
]
FeatureName = Annotated[
    str | None,
    option(
        "--features",
        "NAME",
        "Features that replace the exact kernel: nystrom-512, sketch-512 (for torch modules), "
        "or raw (the columns themselves, unscaled, for embeddings); by default only if the exact "
        "kernel does not fit in memory, or takes many times as long.",
    ),
]
MethodName = Annotated[
    Methods,
    typer.Option(
        "--method",
        help="dense: the whole kernel matrix; features: features in memory; sharded: features on "
        "disk, for pools larger than memory; auto: the first that fits, or features where dense "
        "would take minutes.",
    ),
]
Memory = Annotated[
    str | None,
    option("--memory", "SIZE", "Maximum memory to use, such as 2GB."),
]
Dask = Annotated[
    str | None,
    option("--dask", "ADDRESS", "Run on a Dask cluster, such as tcp://10.0.0.1:8786."),
]
Cache = Annotated[
    Path | None,
    option(
        "--cache",
        "FOLDER",
        "Keep the features of a sharded run here for the next run; Dask workers need access "
        "to this folder.",
    ),
]
Depth = Annotated[int, option("--depth", "N", "Number of hidden layers.")]
Activation = Annotated[
    Activations, typer.Option("--activation", help="Activation function of the network.")
]
WStd = Annotated[
    float,
    option("--w-std", "X", "Standard deviation of the initial weights of all layers."),
]
BStd = Annotated[
    float,
    option("--b-std", "X", "Standard deviation of the initial biases of all layers."),
]
CriterionName = Annotated[
    Criteria,
    typer.Option(
        "--criterion",
        help="What to optimise: the mean (ev), median, 90th percentile or maximum of the variance, "
        "the mutual information (mi), or one pick in each of N cells (cells), for about one label "
        "per class.",
    ),
]
GreedyName = Annotated[
    Greedies,
    typer.Option(
        "--greedy",
        help="Search algorithm; auto means exact: a longer list starts with the shorter one.",
    ),
]
Noise = Annotated[
    float,
    option(
        "--noise", "X", "Variance of the label noise, as a fraction of the mean prior variance."
    ),
]
Seed = Annotated[
    int,
    option("--seed", "N", "Random seed; the same seed gives the same results."),
]
SeedOfPick = Annotated[
    int,
    typer.Option(
        "--seed",
        "--random-state",
        metavar="N",
        help="Random seed; the same seed gives the same results.",
    ),
]
StorageName = Annotated[
    Storages,
    typer.Option("--storage", help="Precision of the large matrix; float32 takes half the memory."),
]
Impute = Annotated[
    bool,
    typer.Option(
        "--impute", help="Fill missing values with the column's mean or most frequent value."
    ),
]
MaxCategories = Annotated[
    int,
    option(
        "--max-categories", "N", "Maximum number of distinct values in a categorical column.", min=2
    ),
]
ScaleName = Annotated[
    Scales,
    typer.Option(
        "--scale",
        help="How numbers are scaled: each column by itself (columns), with far values pulled in "
        "(smooth), all columns by one number (common), then rows to equal length (smooth-unit, "
        "unit), or not at all (none); auto chooses based on the columns.",
    ),
]
Final = Annotated[
    bool,
    typer.Option(
        "--final",
        help="Improve the list for exactly N labels; it cannot be extended later.",
    ),
]
AsInPaper = Annotated[
    bool,
    typer.Option(
        "--as-in-paper",
        help="The settings of the EV-GP paper: each column scaled by itself, the NTK of two hidden "
        "layers of ReLU units, the mean variance, a greedy search.",
    ),
]
NoStandardise = Annotated[
    bool, typer.Option("--no-standardise", help="The former name of --scale none.", hidden=True)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors on stderr.")]


def parts(text: str) -> list[str]:
    """Split a comma-separated list.

    >>> parts("a, b,")
    ['a', 'b']
    """
    return [part.strip() for part in text.split(",") if part.strip()]


# What --as-in-paper sets; a test compares it with `evgp.paper()`.
_PAPER = {
    "network": "mlp",
    "depth": 2,
    "activation": "relu",
    "w_std": 1.0,
    "b_std": 0.1,
    "kernel": "ntk",
    "criterion": "ev",
    "greedy": "exact",
    "noise": 1e-6,
    "scale": "columns",
}


@dataclass(frozen=True, kw_only=True)
class PickOptions:
    """The options of `evgp pick` and `evgp plan`, in the order of `--help`.

    A field named like an argument of `evgp.pick` is passed on as that argument.
    """

    pool: PoolFile
    k: Count = None
    output: OutputFile = None
    report: ReportFile = None
    copy_to: CopyTo = None
    id: Id = None
    column: OnlyColumn = None
    drop: Drop = None
    costs: Costs = None
    budget: Budget = None
    labelled: LabelledFile = None
    test: TestFile = None
    thin: Thin = None
    impute: Impute = False
    max_categories: MaxCategories = MAX_CATEGORIES
    scale: ScaleName = "auto"
    text: TextColumn = None
    embed: EmbedderName = None
    no_standardise: NoStandardise = False
    as_in_paper: AsInPaper = False
    delimiter: Delimiter = None
    decimal: Decimal = None
    encoding: Encoding = None
    dates: Dates = None
    array: ArrayName = None
    image_size: ImageSize = None
    network: NetworkName = "mlp"
    weights: Weights = None
    unit: OutputUnit = "random"
    draws: Draws = 1
    kernel: KernelName = "ntk"
    features: FeatureName = None
    method: MethodName = "auto"
    memory: Memory = None
    dask: Dask = None
    cache: Cache = None
    depth: Depth = 2
    activation: Activation = "relu"
    w_std: WStd = 1.0
    b_std: BStd = 0.1
    criterion: CriterionName = "ev"
    greedy: GreedyName = "auto"
    final: Final = False
    noise: Noise = NOISE
    storage: StorageName = "auto"
    seed: SeedOfPick = 0
    json: AsJson = False
    quiet: Quiet = False

    def __post_init__(self) -> None:
        if self.no_standardise:
            if self.scale not in ("auto", "none"):
                raise typer.BadParameter("--no-standardise is --scale none; leave one of them out")
            typer.echo("note: --no-standardise is now --scale none", err=True)
            object.__setattr__(self, "scale", "none")
        if self.as_in_paper:
            for name, value in _PAPER.items():
                own = self.__dataclass_fields__[name].default
                if getattr(self, name) not in (own, value):
                    flag = f"--{name.replace('_', '-')}"
                    raise typer.BadParameter(
                        f"--as-in-paper sets {flag} itself; leave one of them out"
                    )
                object.__setattr__(self, name, value)
        if self.k is None and self.budget is None:
            raise typer.BadParameter("say how many rows with -k, or how much money with --budget")
        if self.budget is not None and self.costs is None:
            raise typer.BadParameter("--budget needs --costs, the column with the cost of each row")
        if self.costs is not None and self.budget is None:
            raise typer.BadParameter("--costs needs --budget, how much may be spent")


# Options of a pick that a campaign takes too, for all its rounds.
SHARED = (
    "id", "column", "drop", "costs", "budget", "test", "thin", "impute", "max_categories", "scale",
    "text", "embed", "delimiter", "decimal", "encoding", "dates", "array", "image_size", "network",
    "weights", "unit", "draws", "kernel", "features", "depth", "activation", "w_std", "b_std",
    "seed",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class LabelledOptions:
    """The options of commands that read a table with labels."""

    task: TaskName = None
    id: Id = None
    column: OnlyColumn = None
    drop: Drop = None
    text: TextColumn = None
    embed: EmbedderName = None
    delimiter: Delimiter = None
    decimal: Decimal = None
    encoding: Encoding = None
    dates: Dates = None
    impute: Impute = False
    scale: ScaleName = TRAINING_SCALE
    json: AsJson = False
    quiet: Quiet = False

    def reading(self) -> dict[str, Any]:
        """How to read the table: arguments of the library, but for the task and the scale."""
        names = ("id", "column", "embed", "delimiter", "decimal", "encoding", "dates", "impute")
        lists = {"drop": tuple(self.drop or ()), "text": tuple(self.text or ())}
        return {name: getattr(self, name) for name in names} | lists


Options = TypeVar("Options")


def with_options(
    kind: type[Options], *, hidden: tuple[str, ...] = ()
) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Return a decorator: the command has the fields of a class as options, as one argument.

    `--help` lists the fields of the class itself first, then those that it inherits, without
    the options in `hidden`.

    >>> @with_options(PickOptions)
    ... def run(options): ...
    >>> list(inspect.signature(run).parameters)[:2]
    ['pool', 'k']
    """
    parameters = _parameters(kind, hidden=hidden)

    def decorate(run: Callable[[Options], None]) -> Callable[..., None]:
        @wraps(run)
        def command(**values: Any) -> None:
            run(kind(**values))

        return _with(command, parameters)

    return decorate


def with_shared_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with the shared options of a pick in place of its `**options`."""
    own = inspect.signature(command, eval_str=True).parameters.values()
    named = [parameter for parameter in own if parameter.kind is not inspect.Parameter.VAR_KEYWORD]
    shared = [parameter for parameter in _parameters(PickOptions) if parameter.name in SHARED]
    return _with(command, [*named, *shared])


def _parameters(kind: type, *, hidden: Sequence[str] = ()) -> list[inspect.Parameter]:
    """Return the fields of a class as parameters of a function: its own, then inherited ones."""
    hints = get_type_hints(kind, include_extras=True)
    for name in hidden:
        option = copy(hints[name].__metadata__[0])
        option.hidden = True
        hints[name] = Annotated[hints[name].__origin__, option]
    defaults = {field.name: field.default for field in fields(kind)}
    order = dict.fromkeys(name for base in kind.__mro__ for name in inspect.get_annotations(base))
    return [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if defaults[name] is MISSING else defaults[name],
            annotation=hints[name],
        )
        for name in order
    ]


def _with(
    command: Callable[..., None], parameters: Sequence[inspect.Parameter]
) -> Callable[..., None]:
    """Return a command with these parameters, as typer reads them."""
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters} | {
        "return": None
    }
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return command
