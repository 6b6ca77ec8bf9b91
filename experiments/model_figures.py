"""Figures of the study of model selection, from its rows."""

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from evgp import metrics
from experiments.data import TITLES
from experiments.rows import Record, Rows, column, distinct, mean_by, where
from experiments.set_figures import plain_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WAYS = {
    "evgp-ms": ("EV-GP+MS", "#3d4fd1", "-", "o"),
    "evgp-ms-1se": ("EV-GP+MS, one standard error", "#8a2fb0", "--", "D"),
    "fixed": ("EV-GP, 2-layer ReLU", "#00785a", "-", "^"),
    "naswot": ("EV-GP, NASWOT", "#b35c00", "-", "s"),
}
_CHOOSE = ("evgp-ms", "evgp-ms-1se", "naswot")
_MARKS = {"relu": "o", "gelu": "s", "leaky_relu": "^", "erf": "D", "sin": "P"}


def draw(rows: Rows) -> "dict[str, Figure]":
    """The test error by round; and the score against the error of each architecture."""
    return {
        "model-selection": _draw_rounds(where(rows, kind="round")),
        "score-and-error": _draw_ladder(where(rows, kind="ladder")),
        "scores-progression": _draw_progress(where(rows, kind="round"), where(rows, kind="ladder")),
        "which-network": _draw_which(where(rows, kind="round")),
    }


def _panels(rows: Rows, height: float, draw: "Callable[[Axes, list[Record]], None]") -> "Figure":
    from matplotlib.figure import Figure

    names = distinct(rows, "dataset")
    figure = Figure(figsize=(3.4 * max(1, len(names)), height), layout="constrained")
    panels = figure.subplots(1, max(1, len(names)), squeeze=False)[0]
    for axes, name in zip(panels, names, strict=True):
        axes.set_title(TITLES[name])
        axes.spines[["top", "right"]].set_visible(False)
        draw(axes, where(rows, dataset=name))
    return figure


def _draw_rounds(rows: Rows) -> "Figure":
    def panel(axes: "Axes", some: list[Record]) -> None:
        for way, (words, colour, dashes, mark) in WAYS.items():
            logs = [{**row, "log": np.log(row["mse"])} for row in where(some, strategy=way)]
            labels, found = mean_by(logs, "labels", "log")
            mean, error = found.T
            axes.plot(labels, np.exp(mean), dashes, color=colour, marker=mark, ms=3.5, label=words)
            ends = np.exp(mean - error), np.exp(mean + error)
            axes.fill_between(labels, *ends, color=colour, alpha=0.12, linewidth=0)
        axes.set(xlabel="labels", yscale="log")
        plain_ticks(axes.yaxis)

    figure = _panels(rows, 3.4, panel)
    figure.axes[0].set_ylabel("test MSE, geometric mean\n(band: standard error)")
    handles, words = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, words, loc="outside lower center", ncols=4, frameon=False)
    return figure


def _draw_ladder(rows: Rows) -> "Figure":
    from matplotlib import colormaps
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    names, sizes = distinct(rows, "dataset"), sorted(distinct(rows, "labels"))
    figure = Figure(figsize=(3.2 * len(names), 3.0 * len(sizes) + 0.4), layout="constrained")
    panels = figure.subplots(len(sizes), len(names), squeeze=False)
    shades = colormaps["viridis"]
    for line, size in zip(panels, sizes, strict=True):
        for axes, name in zip(line, names, strict=True):
            some = where(rows, dataset=name, labels=size, seed=0)
            for row in some:
                kind, depth = row["network"].rsplit("-", 1)
                axes.scatter(
                    row["score"], row["mse"], marker=_MARKS[kind], s=38,
                    color=shades(0.1 + 0.25 * (int(depth) - 1)), edgecolor="white", linewidth=0.5,
                )  # fmt: skip
            rank = ranks(some, "score")[0] if some else np.nan
            axes.set_title(
                f"{TITLES[name]}, {size} labels, seed 0\nSpearman {rank:.2f}", fontsize=10
            )
            axes.set(xscale="log", yscale="log")
            axes.spines[["top", "right"]].set_visible(False)
            plain_ticks(axes.xaxis)
            plain_ticks(axes.yaxis)
    for axes in panels[-1]:
        axes.set_xlabel("score without training")
    for axes in panels[:, 0]:
        axes.set_ylabel("test MSE when trained")
    kinds = list(dict.fromkeys(row["network"].rsplit("-", 1)[0] for row in rows))
    keys = [Line2D([], [], ls="", marker=_MARKS[kind], color="#585d6b") for kind in kinds]
    keys += [Line2D([], [], ls="", marker="o", color=shades(0.1 + 0.25 * i)) for i in range(4)]
    words = [*kinds, *(f"depth {i + 1}" for i in range(4))]
    figure.legend(keys, words, loc="outside lower center", ncols=9, frameon=False)
    return figure


def _draw_which(rows: Rows) -> "Figure":
    def panel(axes: "Axes", some: list[Record]) -> None:
        nets = sorted(distinct(some, "network"), key=_place)
        for place, way in zip((-0.27, 0.0, 0.27), _CHOOSE, strict=True):
            words, colour, _, mark = WAYS[way]
            chosen = Counter((row["labels"], row["network"]) for row in where(some, strategy=way))
            x = [labels for labels, _ in chosen]
            y = [nets.index(network) + place for _, network in chosen]
            size = [7.0 * count for count in chosen.values()]
            axes.scatter(x, y, s=size, color=colour, marker=mark, label=words, linewidth=0)
        axes.set_yticks(range(len(nets)), nets, fontsize=7)
        axes.set_yticks(np.arange(len(nets) - 1) + 0.5, minor=True)
        axes.tick_params(axis="y", which="minor", length=0)
        axes.set(xlabel="labels", ylim=(len(nets) - 0.5, -0.5))
        axes.grid(axis="y", which="minor", color="#dcdcd6", linewidth=0.8)
        axes.set_axisbelow(True)

    figure = _panels(rows, 6.4, panel)
    handles, words = figure.axes[0].get_legend_handles_labels()
    figure.legend(
        handles, words, loc="outside lower center", ncols=3, frameon=False,
        title="larger marks: more seeds", title_fontsize=9,
    )  # fmt: skip
    return figure


def _draw_progress(played: Rows, tried: Rows) -> "Figure":
    """One trial: every architecture where all were trained, what was chosen, and what is fixed."""

    def panel(axes: "Axes", some: list[Record]) -> None:
        every = [row for row in some if row["kind"] == "ladder"]
        axes.scatter(
            column(every, "labels"), column(every, "mse"), marker="x", s=22, color="#9a9fae",
            linewidth=1, label="every architecture (trained at these sizes alone)",
        )  # fmt: skip
        for way, words, colour in (
            ("evgp-ms", "chosen by EV-GP+MS", "#b8265e"),
            ("fixed", "2-layer ReLU throughout, on its own picks", "#3d4fd1"),
        ):
            line = sorted(where(some, strategy=way), key=lambda row: int(row["labels"]))
            axes.plot(
                column(line, "labels"), column(line, "mse"), "o-", ms=3.5, color=colour, label=words
            )
        axes.set(xlabel="labels", yscale="log")
        plain_ticks(axes.yaxis)

    figure = _panels([*where(played, seed=0), *where(tried, seed=0)], 3.4, panel)
    figure.axes[0].set_ylabel("test MSE, seed 0")
    handles, words = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, words, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _place(network: str) -> tuple[int, int]:
    kind, depth = network.rsplit("-", 1)
    return list(_MARKS).index(kind), int(depth)


def ranks(rows: Rows, score: str, sign: float = 1.0) -> list[float]:
    """Spearman of a score with the test error over the architectures, for each seed."""
    made = []
    for seed in distinct(rows, "seed"):
        found = np.array(
            [sign * column(where(rows, seed=seed), score), column(where(rows, seed=seed), "mse")]
        )
        found = found[:, np.isfinite(found).all(0)]
        flat = found.shape[1] < 3 or bool((np.ptp(found, axis=1) == 0).any())
        made.append(np.nan if flat else metrics.spearman(*found))
    return made
