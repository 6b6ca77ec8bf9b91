"""Learning curves as pictures, for papers and READMEs."""

import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evgp import datasets
from evgp._errors import DatasetError
from evgp.arena.figures import drawn_curves, is_wide, span
from evgp.arena.looks import Look, looks
from evgp.arena.row import MEASURES
from evgp.arena.summarise import central
from evgp.arena.summary import Comparison, Contest, Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKED = 25
_STYLE: Any = {"svg.hashsalt": "evgp", "font.size": 9.5, "axes.edgecolor": "#585d6b"}
_NAME = re.compile(r"[^\w.+-]+")
_FEW = 8  # numbers of labels that all stand on the axis


def plot_curves(
    comparison: Comparison, dataset: str, metrics: Sequence[str] | None = None
) -> "Figure":
    """Draw the learning curves of one dataset, a panel for each metric; `.savefig(...)` writes it.

    Without `metrics` those that are central are drawn. Bands are those of `Curve`.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    contest = next((made for made in comparison.contests if made.dataset == dataset), None)
    if contest is None:
        known = ", ".join(made.dataset for made in comparison.contests)
        raise DatasetError(f"expected a dataset of the comparison ({known}), got {dataset!r}")
    shown = list(central(contest) or contest.metrics[:1])
    if metrics is not None:
        shown = [_known(contest, name) for name in metrics]
    with rc_context(_STYLE):
        figure = Figure(figsize=(5.2 * max(1, len(shown)), 4.3), dpi=160, layout="constrained")
        panels = figure.subplots(1, max(1, len(shown)), squeeze=False)[0]
        styles = looks(comparison.strategies)
        for axes, metric in zip(panels, shown, strict=False):
            _panel(axes, contest, metric, styles)
        figure.suptitle(dataset, parse_math=False)
        _legend(figure, contest, styles)
    return figure


def save_plots(comparison: Comparison, folder: str | Path) -> tuple[Path, ...]:
    """Write the central metrics of each dataset as PNG and SVG; the same rows, the same bytes.

    The name of a file is that of its dataset, less what file names cannot hold.
    """
    from matplotlib import rc_context

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    made: list[Path] = []
    for contest in comparison.contests:
        figure = plot_curves(comparison, contest.dataset)
        name = _free(contest.dataset, {path.stem for path in made})
        # A font may lack a sign of a name; the picture is right all the same.
        with rc_context(_STYLE), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
            for kind, dated in (("png", "Software"), ("svg", "Date")):
                path = folder / f"{name}.{kind}"
                with datasets.atomic(path) as part:
                    figure.savefig(part, format=kind, metadata={dated: None})
                made.append(path)
    return tuple(made)


def _known(contest: Contest, metric: str) -> str:
    if metric not in contest.metrics:
        raise DatasetError(
            f"expected a metric of {contest.dataset} ({', '.join(contest.metrics)}), got {metric!r}"
        )
    return metric


def _free(dataset: str, taken: set[str]) -> str:
    name = _NAME.sub("_", dataset).strip("._")[:100] or "dataset"
    numbered = (f"{name}-{i}" for i in range(2, len(taken) + 3))
    return name if name not in taken else next(other for other in numbered if other not in taken)


def _panel(axes: "Axes", contest: Contest, metric: str, styles: dict[str, Look]) -> None:
    from matplotlib.ticker import MaxNLocator

    drawn = drawn_curves(contest, metric)
    for name, curve in drawn.items():
        _draw(axes, contest, curve, styles[name])
    made = list(drawn.values())
    if is_wide(made):
        axes.set_yscale("log")
        heights = [height for curve in made for height in curve.mean]
        axes.set_ylim(0.8 * min(heights), 1.25 * max(heights))
    elif made:
        axes.set_ylim(*span(made))
    axes.set(xlabel="labels", ylabel=MEASURES[metric].words)
    if len(contest.labels) <= _FEW:
        axes.set_xticks(contest.labels)
    else:
        axes.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#ecece8", linewidth=0.8)
    axes.set_axisbelow(True)


def _draw(axes: "Axes", contest: Contest, curve: Curve, look: Look) -> None:
    strong = look.name.startswith("ours")
    axes.plot(
        contest.labels,
        curve.mean,
        color=look.colour,
        linewidth=look.width,
        linestyle=(0, look.dashes) if look.dashes else "-",
        marker=look.marker if len(contest.labels) <= _MARKED else "",
        markersize=5 if strong else 4,
        markeredgewidth=1,
        zorder=4 if strong else 3,
    )
    if curve.band != "none":
        alpha = 0.16 if strong else 0.09
        axes.fill_between(
            contest.labels, curve.low, curve.high, color=look.colour, alpha=alpha, linewidth=0
        )


def _legend(figure: "Figure", contest: Contest, styles: dict[str, Look]) -> None:
    from matplotlib.lines import Line2D

    names = [one.strategy for one in contest.entrants]
    keys = [
        Line2D(
            [],
            [],
            color=styles[name].colour,
            linewidth=styles[name].width,
            linestyle=(0, styles[name].dashes) if styles[name].dashes else "-",
            marker=styles[name].marker,
            markersize=4.5,
        )
        for name in names
    ]
    places = [str(i) for i in range(len(names))]
    legend = figure.legend(
        keys, places, loc="outside lower center", ncols=min(6, len(names)), frameon=False,
        handlelength=3,
    )  # fmt: skip
    # Set afterwards: a name may begin with "_" or hold a "$", which a legend reads its own way.
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_parse_math(False)
        text.set_text(name if len(name) <= 28 else name[:27] + "…")
