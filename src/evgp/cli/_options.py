"""Options that several commands share, each with its help."""

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

Activations: TypeAlias = Literal["relu", "leaky_relu", "gelu", "erf", "sin", "identity"]
Criteria: TypeAlias = Literal["ev", "median", "p90", "max", "mi"]
Greedies: TypeAlias = Literal["auto", "exact", "lazy", "stochastic", "exchange", "two-rounds"]
Methods: TypeAlias = Literal["auto", "dense", "features", "sharded"]
Storages: TypeAlias = Literal["auto", "float64", "float32"]

PoolFile = Annotated[
    Path,
    typer.Argument(
        metavar="POOL",
        help="Table to choose from: .csv, .tsv (also .gz), .parquet, .arrow, .feather, .npy, .npz; "
        "a folder of .parquet, .arrow or .npy files; or a folder of images.",
        show_default=False,
    ),
]
Count = Annotated[
    int | None, typer.Option("-k", metavar="N", help="How many rows to pick.", show_default=False)
]
OutputFile = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", metavar="FILE", help="Write the picks: .csv, .tsv, .jsonl, .parquet."
    ),
]
ReportFile = Annotated[
    Path | None,
    typer.Option("--report", metavar="FILE", help="Write a page that shows and explains them."),
]
Id = Annotated[
    str | None,
    typer.Option("--id", metavar="COLUMN", help="Column that names each row; never a feature."),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        "--drop",
        metavar="COLUMN",
        help="Column to leave out, such as the label; repeat it, or divide names by commas.",
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option("--delimiter", metavar="CHAR", help="What divides CSV columns, as ';' or 'tab'."),
]
ArrayName = Annotated[
    str | None,
    typer.Option(
        "--array", metavar="NAME", help="Which array of an .npz file to read; only those."
    ),
]
LabelColumn = Annotated[
    str | None,
    typer.Option("--label", metavar="COLUMN", help="Column of your table that holds the labels."),
]
TaskName = Annotated[
    str | None,
    typer.Option(
        "--task", metavar="KIND", help="regression or classification; else taken from the labels."
    ),
]
Costs = Annotated[
    str | None,
    typer.Option(
        "--costs", metavar="COLUMN", help="Column with the price of each row; needs --budget."
    ),
]
Budget = Annotated[
    float | None,
    typer.Option("--budget", metavar="MONEY", help="Spend at most this much; needs --costs."),
]
LabelledFile = Annotated[
    Path | None,
    typer.Option(
        "--labelled",
        metavar="FILE",
        help="What is labelled already: ids, row numbers (from 0), or rows with the same columns.",
    ),
]
TestFile = Annotated[
    Path | None,
    typer.Option(
        "--test",
        metavar="FILE",
        help="Rows where predictions must be good, with the same columns; else the pool itself.",
    ),
]
Thin = Annotated[
    int | None,
    typer.Option("--thin", metavar="N", help="Keep N well-spread test points; saves memory."),
]
NetworkName = Annotated[
    str,
    typer.Option(
        "--network",
        metavar="NAME",
        help="mlp, cnn, resnet18, wrn-16-1, a plugin's name, or package.module:function that makes "
        "a torch module.",
    ),
]
KernelName = Annotated[
    str,
    typer.Option(
        "--kernel",
        metavar="NAME",
        help="ntk or nngp of the network; or in its place a plugin's name, or package.module:name "
        "of your own.",
    ),
]
Weights = Annotated[
    Path | None,
    typer.Option(
        "--weights", metavar="FILE", help="Weights of the network: .safetensors, or a torch file."
    ),
]
OutputUnit = Annotated[
    str,
    typer.Option(
        "--unit",
        metavar="WHICH",
        help="Output of the network to look at: random, trace (all of them), or its number.",
    ),
]
Draws = Annotated[
    int,
    typer.Option("--draws", metavar="N", min=1, help="Average over N initialisations."),
]
ImageSize = Annotated[
    int | None,
    typer.Option(
        "--image-size",
        metavar="N",
        min=1,
        help="Resize images to N x N; else 32 x 32, unless all have one small size.",
    ),
]
FeatureName = Annotated[
    str | None,
    typer.Option(
        "--features",
        metavar="NAME",
        help="In place of the exact kernel: nystrom-512, sketch-512 (of a torch module), or raw "
        "(the columns themselves, unscaled, as for embeddings); else only where it would not fit.",
    ),
]
MethodName = Annotated[
    Methods,
    typer.Option(
        "--method",
        help="dense: the whole matrix; features: a few numbers a row; sharded: these on the disk, "
        "for pools larger than memory; auto: the first that fits.",
    ),
]
Memory = Annotated[
    str | None,
    typer.Option("--memory", metavar="SIZE", help="Stay within this much, such as 2GB."),
]
Dask = Annotated[
    str | None,
    typer.Option(
        "--dask", metavar="ADDRESS", help="Work on a Dask cluster, such as tcp://10.0.0.1:8786."
    ),
]
Cache = Annotated[
    Path | None,
    typer.Option(
        "--cache",
        metavar="FOLDER",
        help="Keep the features of a sharded run here, for the next; workers must see it too.",
    ),
]
Depth = Annotated[int, typer.Option("--depth", metavar="N", help="Hidden layers of the network.")]
Activation = Annotated[Activations, typer.Option("--activation", help="Activation of the network.")]
WStd = Annotated[
    float,
    typer.Option("--w-std", metavar="X", help="Deviation of the initial weights of all layers."),
]
BStd = Annotated[
    float,
    typer.Option("--b-std", metavar="X", help="Deviation of the initial biases of all layers."),
]
CriterionName = Annotated[
    Criteria,
    typer.Option(
        "--criterion",
        help="Variance to lower: mean, median, 90th percentile or largest; or information to gain.",
    ),
]
GreedyName = Annotated[
    Greedies,
    typer.Option("--greedy", help="How to search; auto takes the best that is affordable."),
]
Noise = Annotated[
    float,
    typer.Option(
        "--noise", metavar="X", help="Noise of a label, as a fraction of the mean prior variance."
    ),
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Same seed, same picks.")]
# None tells a seed of 0 that was given from none at all, as it has another name besides.
SeedOrNone = Annotated[
    int | None,
    typer.Option("--seed", metavar="N", help="Same seed, same picks; 0 unless given."),
]
RandomState = Annotated[
    int | None, typer.Option("--random-state", metavar="N", help="Another word for --seed.")
]
StorageName = Annotated[
    Storages, typer.Option("--storage", help="Precision of the large matrix; float32 halves it.")
]
Impute = Annotated[
    bool,
    typer.Option("--impute", help="Fill missing cells with the mean or the most frequent word."),
]
MaxCategories = Annotated[
    int,
    typer.Option("--max-categories", metavar="N", min=2, help="Most words a column may hold."),
]
NoStandardise = Annotated[
    bool, typer.Option("--no-standardise", help="Take numbers as they are, unscaled.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only errors on stderr.")]


def parts(text: str) -> list[str]:
    """What is divided by commas.

    >>> parts("a, b,")
    ['a', 'b']
    """
    return [part.strip() for part in text.split(",") if part.strip()]


def check_wish(k: int | None, costs: str | None, budget: float | None) -> None:
    """Refuse a call that does not say how many rows, or says half of what money needs."""
    if k is None and budget is None:
        raise typer.BadParameter("say how many rows with -k, or how much money with --budget")
    if budget is not None and costs is None:
        raise typer.BadParameter("--budget needs --costs, the column with the price of each row")
    if costs is not None and budget is None:
        raise typer.BadParameter("--costs needs --budget, how much may be spent")
