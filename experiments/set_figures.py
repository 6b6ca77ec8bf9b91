"""Figures of training sets: criterion against networks, and paths of picks."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from evgp import metrics
from evgp.arena.looks import looks
from experiments.contests import NAMES
from experiments.data import TITLES
from experiments.rows import Record, Rows, column, distinct, mean_by, where
from experiments.sets import CRITERIA, correlation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

WORDS = {"output_variance_p90": "variance, 90th percentile", "mse": "test MSE"}


def scattered(
    rows: Rows, pairs: Sequence[tuple[str, str]], strategies: dict[str, str], grows: Sequence[str]
) -> "Figure":
    """A line for each dataset: criterion against metric for each pair, then metrics by size.

    `strategies` are the paths to draw, with the criterion that each one raises.
    """
    from matplotlib.figure import Figure

    names = distinct(rows, "dataset")
    wide = len(pairs) + len(grows)
    figure = Figure(figsize=(3.0 * wide, 2.6 * len(names) + 0.4), layout="constrained")
    grid = figure.subplots(len(names), wide, squeeze=False)
    styles = looks([*strategies, "random"])
    for line, name in zip(grid, names, strict=True):
        mine = where(rows, dataset=name)
        for axes, (criterion, metric) in zip(line, pairs, strict=False):
            _cloud(axes, mine, criterion, metric)
            for way, raised in strategies.items():
                if raised == criterion:
                    path = where(mine, strategy=way, seed=0)
                    axes.plot(
                        column(path, criterion), column(path, metric), "o-", ms=3, lw=1.2,
                        color=styles[way].colour,
                    )  # fmt: skip
        for axes, metric in zip(line[len(pairs) :], grows, strict=True):
            _growth(axes, mine, metric, ["random", *strategies])
        for axes in line:
            axes.spines[["top", "right"]].set_visible(False)
        said = line[0].get_title()
        line[0].set_title(f"{TITLES[name]}: {said}" if said else TITLES[name], fontsize=9)
    handles, words = grid[0, -1].get_legend_handles_labels()
    columns = 6 if wide > 2 else 3
    figure.legend(
        handles, words, loc="outside lower center", ncols=columns, frameon=False,
        title=_bands(rows, [*strategies, "random"]), title_fontsize=8.5,
    )  # fmt: skip
    return figure


def _bands(rows: Rows, ways: Sequence[str]) -> str:
    """What the bands are, where there are some: the deviation over so many sets of a size."""
    most = {way: max(map(len, _sizes(where(rows, strategy=way))), default=0) for way in ways}
    drawn = {way: sets for way, sets in most.items() if sets > 1}
    picked = {sets for way, sets in drawn.items() if way != "random"}
    told = [f"{sets} of picks" for sets in sorted(picked)]
    told += [f"{drawn['random']} random ones"] if "random" in drawn else []
    return f"bands: the deviation over sets, {' and '.join(told)}" if told else ""


def _sizes(rows: list[Record]) -> list[list[Record]]:
    """The sets of each dataset and size."""
    return [
        where(some, labels=size)
        for name in distinct(rows, "dataset")
        for some in [where(rows, dataset=name)]
        for size in distinct(some, "labels")
    ]


def clouds(panels: Mapping[str, list[Record]], criterion: str, metric: str) -> "Figure":
    """Criterion against metric over random sets, for each panel by its title."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.0 * len(panels), 2.9), layout="constrained")
    grid = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, (title, rows) in zip(grid, panels.items(), strict=True):
        _cloud(axes, rows, criterion, metric)
        axes.set_title(f"{title}\n{axes.get_title()}", fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
        if axes is not grid[0]:
            axes.set_ylabel("")
    return figure


def _cloud(axes: "Axes", rows: list[Record], criterion: str, metric: str) -> None:
    some = where(rows, strategy="random")
    axes.scatter(column(some, criterion), column(some, metric), s=9, color="#9a9fae", linewidth=0)
    sp = correlation(rows, criterion, metric)
    pr = correlation(rows, criterion, metric, metrics.pearson)
    axes.set_title(f"Spearman {sp:.2f}, Pearson {pr:.2f}", fontsize=9)
    axes.set(xlabel=CRITERIA[criterion], ylabel=WORDS[metric], yscale="log")
    plain_ticks(axes.yaxis)


def _growth(axes: "Axes", rows: list[Record], metric: str, ways: Sequence[str]) -> None:
    styles = looks(ways)
    for way in ways:
        some, look = where(rows, strategy=way), styles[way]
        labels, found = mean_by(some, "labels", metric)
        spread = [column(where(some, labels=one), metric) for one in labels]
        axes.plot(
            labels, found[:, 0], color=look.colour, linewidth=look.width * 0.7, marker=look.marker,
            linestyle=(0, look.dashes) if look.dashes else "-", markersize=3.5,
            label=NAMES.get(way, way),
        )  # fmt: skip
        if max(map(len, spread)) > 1:
            wide = [one.std(ddof=1) if len(one) > 1 else 0.0 for one in spread]
            low = [
                max(m - w, min(one)) for m, w, one in zip(found[:, 0], wide, spread, strict=True)
            ]
            axes.fill_between(
                labels, low, found[:, 0] + wide, color=look.colour, alpha=0.15, linewidth=0
            )
    axes.set(xlabel="labels", ylabel=WORDS[metric], yscale="log")
    plain_ticks(axes.yaxis)


def plain_ticks(axis: "Axis") -> None:
    """A few plain numbers on a logarithmic axis, however short it is."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    low, high = axis.get_view_interval()
    if high < 8 * low:
        axis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    else:
        axis.set_major_locator(LogLocator(subs=(1, 3) if high < 200 * low else (1,), numticks=6))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
