"""Learning curves: the style of each strategy, drawn as SVG for the page and with Matplotlib."""

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from evgp import datasets
from evgp.comparison.rows import MEASURES
from evgp.comparison.statistics import central
from evgp.comparison.summary import RANDOM, Comparison, Contest, Curve
from evgp.errors import DatasetError, UnknownName
from evgp.report import words
from evgp.report.axes import STEPS, Axis, grid, join, path, percent, stretched, tag

WIDE_SPAN = 20  # ratio of the largest to the smallest mean beyond which the axis is logarithmic
GAP = 6.5  # percent of the height between two names, so that they never touch
NAMED = 16  # characters of a name
MANY = 14  # maximum number of names that fit next to a curve
_MARKED = 25  # maximum number of points that are drawn with markers
STYLE: Any = {"svg.hashsalt": "evgp", "font.size": 9.5, "axes.edgecolor": "#585d6b"}
_NAME = re.compile(r"[^\w.+-]+")
_FEW = 8  # maximum number of ticks; with more numbers of labels, some have none


@dataclass(frozen=True)
class Look:
    """The style of one line: its CSS class, colour in print, dashes, marker and width."""

    name: str
    colour: str
    dashes: tuple[float, ...]
    marker: str
    width: float


_OURS = (
    ("#3d4fd1", (), "o"),
    ("#8a2fb0", (3.5, 1.2), "o"),
    ("#1f6fb5", (1.2, 0.9), "o"),
    ("#0d8080", (6, 1.5, 1.2, 1.5), "h"),
    ("#c03a8c", (5, 2), "p"),
)
_GREY = Look("random", "#6b7080", (), "x", 1.8)
_OTHERS = (
    ("#b35c00", (), "s"),
    ("#00785a", (6, 2), "^"),
    ("#b8265e", (2, 1.5), "v"),
    ("#0b7fab", (7, 2, 2, 2), "D"),
    ("#7a6a00", (4, 3), "P"),
    ("#5b3a1e", (1, 1.5), "*"),
)


def looks(strategies: Sequence[str]) -> dict[str, Look]:
    """The style of each strategy: variants of evgp are strongest, random is grey.

    Styles follow the alphabet, not the rank, so that more seeds do not change colours.

    >>> [look.name for look in looks(["badge", "random", "evgp"]).values()]
    ['other0', 'random', 'ours0']
    """
    kin = sorted(name for name in strategies if name.startswith("evgp"))
    others = sorted(name for name in strategies if name not in (*kin, RANDOM))
    styles = {name: _look("ours", _OURS, i, 2.6) for i, name in enumerate(kin)}
    styles |= {name: _look("other", _OTHERS, i, 1.5) for i, name in enumerate(others)}
    return {name: styles.get(name, _GREY) for name in strategies}


def _look(
    kind: str, looks: Sequence[tuple[str, tuple[float, ...], str]], i: int, width: float
) -> Look:
    i %= len(looks)
    colour, dashes, marker = looks[i]
    return Look(f"{kind}{i}", colour, dashes, marker, width)


@dataclass(frozen=True)
class LogAxis(Axis):
    """A logarithmic axis from `low` to `high`.

    >>> LogAxis(1, 100).at(10), LogAxis(1, 100).ticks()
    (50.0, [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0])
    """

    def at(self, value: float) -> float:
        value = max(value, self.low * 1e-3)
        return 100 * log10(value / self.low) / log10(self.high / self.low)

    def ticks(self) -> list[float]:
        """Powers of ten, and 2 and 5 times these if there is room."""
        powers = range(floor(log10(self.low)), ceil(log10(self.high)) + 1)
        for factors in ((1, 2, 5), (1, 3), (1,)):
            values = [f * 10.0**p for p in powers for f in factors]
            values = [m for m in values if self.low * (1 - 1e-9) <= m <= self.high * (1 + 1e-9)]
            if len(values) <= STEPS + 1:
                break
        return values[:: ceil(len(values) / (STEPS + 1))]

    def label(self, value: float) -> str:
        return f"{value:,g}" if 1e-3 <= value < 1e6 else words.number(value, 1)


def is_wide(heights: Sequence[float]) -> bool:
    """Whether means span so much that only a logarithmic axis shows them all."""
    return bool(heights) and bool(0 < min(heights) < max(heights) / WIDE_SPAN)


def plain_axes(axes: "Axes") -> None:
    """Remove two sides of the frame, and draw faint horizontal lines behind the curves."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#ecece8", linewidth=0.8)
    axes.set_axisbelow(True)


def span(curves: Sequence[Curve]) -> tuple[float, float]:
    """The range of the axis: all means, and as much of wide bands as keeps the means legible."""
    means = [height for curve in curves for height in curve.mean]
    low, high = min(means), max(means)
    room = high - low or abs(high) or 1.0
    bottom = min(low - 0.04 * room, max(min(min(c.low) for c in curves), low - 0.25 * room))
    top = max(high + 0.04 * room, min(max(max(c.high) for c in curves), high + 0.25 * room))
    return (max(bottom, 0.0) if low >= 0 else bottom), top


def curves(contest: Contest, metric: str, looks: Mapping[str, Look]) -> Markup:
    """One metric against the number of labels; each strategy has a band and a name."""
    drawn = drawn_curves(contest, metric)
    if not drawn or len(contest.labels) < 2:
        return Markup("")
    shown = list(drawn.values())
    x = Axis(contest.labels[0], contest.labels[-1], whole=True)
    heights = [height for curve in shown for height in curve.mean]
    if is_wide(heights):
        y: Axis = LogAxis(0.8 * min(heights), 1.25 * max(heights))
    else:
        y = Axis(*span(shown))
    # The first names are best, and drawn on top.
    order = sorted(drawn, key=lambda name: looks[name].width)
    bands = [_band(contest.labels, drawn[name], x, y, looks[name].name) for name in order]
    lines = [
        tag(
            "path",
            tag("title", name),
            class_=f"line {looks[name].name}",
            d=path(x, y, list(zip(contest.labels, drawn[name].mean, strict=True))),
        )
        for name in order
    ]
    return join([grid(x, y), stretched(*bands, *lines), _names(drawn, y, looks)])


def description(contest: Contest, metric: str) -> str:
    """Describe the figure in words, for screen readers."""
    ends = [
        f"{name} {words.number(curve.mean[0], 3)} to {words.number(curve.mean[-1], 3)}"
        for name, curve in drawn_curves(contest, metric).items()
    ]
    first, last = contest.labels[0], contest.labels[-1]
    return f"{MEASURES[metric].words} from {first:,} to {last:,} labels: {'; '.join(ends)}."


def bands(contest: Contest, metrics: Sequence[str]) -> set[str]:
    """The kinds of bands in the figures of a contest."""
    return {curve.band for metric in metrics for curve in drawn_curves(contest, metric).values()}


def swatch(look: Look) -> Markup:
    """A short piece of the line, for the legend."""
    line = tag("line", class_=f"line {look.name}", x1=0, x2=30, y1=5, y2=5)
    return tag("svg", line, class_="swatch", width=30, height=10, aria_hidden="true")


def drawn_curves(contest: Contest, metric: str) -> dict[str, Curve]:
    """The curves of one metric, by strategy."""
    every = {entrant.strategy: entrant.score(metric).curve for entrant in contest.entrants}
    return {name: curve for name, curve in every.items() if curve is not None}


def _band(labels: Sequence[int], curve: Curve, x: Axis, y: Axis, look: str) -> Markup:
    if curve.band == "none":
        return Markup("")
    above = list(zip(labels, curve.high, strict=True))
    below = list(zip(labels, curve.low, strict=True))
    return tag("path", class_=f"spread {look}", d=path(x, y, [*above, *reversed(below)]) + "Z")


def _names(drawn: Mapping[str, Curve], y: Axis, looks: Mapping[str, Look]) -> Markup:
    """Names at the ends of the lines, moved apart where they would touch."""
    if len(drawn) > MANY:
        return Markup("")
    ends = sorted((100 - y.at(curve.mean[-1]), name) for name, curve in drawn.items())
    places = apart([at for at, _ in ends])
    shown = [name if len(name) <= NAMED else name[: NAMED - 1] + "…" for _, name in ends]
    texts = [
        tag("text", text, class_=f"name {looks[name].name}", x="100%", dx=8, y=percent(at),
            dy=".34em")
        for at, text, (_, name) in zip(places, shown, ends, strict=True)
    ]  # fmt: skip
    return tag("g", *texts, class_="names", aria_hidden="true")


def apart(places: Sequence[float], gap: float = GAP) -> list[float]:
    """Move sorted positions as little as possible, so that they are a gap apart and in 0..100.

    >>> apart([10, 11, 50]), apart([99, 100])
    ([7.25, 13.75, 50.0], [93.5, 100.0])
    """
    groups: list[list[float]] = []
    for place in places:
        groups.append([place])
        while len(groups) > 1 and _start(groups[-1], gap) < _end(groups[-2], gap) + gap - 1e-9:
            groups[-2:] = [groups[-2] + groups[-1]]
    return [_start(group, gap) + i * gap for group in groups for i in range(len(group))]


def _start(group: Sequence[float], gap: float) -> float:
    length = (len(group) - 1) * gap
    centred = sum(group) / len(group) - length / 2
    return max(0.0, min(centred, 100.0 - length))


def _end(group: Sequence[float], gap: float) -> float:
    return _start(group, gap) + (len(group) - 1) * gap


if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_curves(
    comparison: Comparison,
    dataset: str,
    metrics: Sequence[str] | None = None,
    *,
    learner: str | None = None,
) -> "Figure":
    """Draw the learning curves of one dataset, one panel per metric; `.savefig(...)` saves it.

    The default is to draw the central metrics and, with several learners, the mean over them. Bands
    are those of `Curve`.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    played = [each for each in comparison.contests if each.dataset == dataset]
    if not played:
        known = tuple(each.dataset for each in comparison.main)
        raise UnknownName.of(DatasetError)("a dataset", dataset, known)
    contest = next((each for each in played if learner in (None, each.learner)), None)
    if contest is None:
        known = tuple(each.learner for each in played)
        raise UnknownName.of(DatasetError)("a learner", str(learner), known)
    shown = list(central(contest) or contest.metrics[:1])
    if metrics is not None:
        shown = [_known(contest, name) for name in metrics]
    with rc_context(STYLE):
        figure = Figure(figsize=(5.2 * max(1, len(shown)), 4.3), dpi=160, layout="constrained")
        panels = figure.subplots(1, max(1, len(shown)), squeeze=False)[0]
        styles = looks(comparison.strategies)
        for axes, metric in zip(panels, shown, strict=False):
            _panel(axes, contest, metric, styles)
        figure.suptitle(contest.title, parse_math=False)
        _legend(figure, contest, styles)
    return figure


def save_plots(comparison: Comparison, folder: str | Path) -> tuple[Path, ...]:
    """Save the curves of each dataset as PNG and SVG; the same rows give the same bytes.

    Files are named after the dataset, without characters that file names cannot have. With several
    learners, these show their mean, and each learner has a file named after it.
    """
    from matplotlib import rc_context

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    for contest in comparison.contests:
        figure = plot_curves(comparison, contest.dataset, learner=contest.learner)
        own = contest.dataset if contest in comparison.main else _with_learner(contest)
        name = _free(own, {path.stem for path in paths})
        # A font may lack a character of a name, which is harmless.
        with rc_context(STYLE), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
            paths += save_figure(figure, folder, name)
    return tuple(paths)


def _with_learner(contest: Contest) -> str:
    return f"{contest.dataset}-{contest.learner}"


def save_figure(
    figure: "Figure", folder: Path, name: str, dpi: float | str = "figure"
) -> list[Path]:
    """Save a figure as PNG and SVG, without a date, so that the same figure has the same bytes."""
    paths = []
    for kind, dated in (("png", "Software"), ("svg", "Date")):
        paths.append(folder / f"{name}.{kind}")
        with datasets.atomic(paths[-1]) as part:
            figure.savefig(part, format=kind, dpi=dpi, metadata={dated: None})
    return paths


def _known(contest: Contest, metric: str) -> str:
    if metric not in contest.metrics:
        what = f"a metric of {contest.dataset}"
        raise UnknownName.of(DatasetError)(what, metric, tuple(contest.metrics))
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
    shown = list(drawn.values())
    heights = [height for curve in shown for height in curve.mean]
    if is_wide(heights):
        axes.set_yscale("log")
        axes.set_ylim(0.8 * min(heights), 1.25 * max(heights))
    elif shown:
        axes.set_ylim(*span(shown))
    axes.set(xlabel="labels", ylabel=MEASURES[metric].words)
    if len(contest.labels) <= _FEW:
        axes.set_xticks(contest.labels)
    else:
        axes.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
    plain_axes(axes)


def draw_curve(
    axes: "Axes",
    x: Any,
    mean: Any,
    look: Look,
    *,
    band: tuple[Any, Any] | None = None,
    shade: float = 0.1,
    **style: Any,
) -> None:
    """Draw one line in its style, or that of `style`, and the band around it."""
    line = {
        "color": look.colour,
        "linewidth": look.width,
        "linestyle": (0, look.dashes) if look.dashes else "-",
        "marker": look.marker,
    }
    axes.plot(x, mean, **{**line, **style})
    if band is not None:
        axes.fill_between(x, *band, color=look.colour, alpha=shade, linewidth=0)


def _draw(axes: "Axes", contest: Contest, curve: Curve, look: Look) -> None:
    strong = look.name.startswith("ours")
    draw_curve(
        axes,
        contest.labels,
        curve.mean,
        look,
        band=None if curve.band == "none" else (curve.low, curve.high),
        shade=0.16 if strong else 0.09,
        marker=look.marker if len(contest.labels) <= _MARKED else "",
        markersize=5 if strong else 4,
        markeredgewidth=1,
        zorder=4 if strong else 3,
    )


def _legend(figure: "Figure", contest: Contest, styles: dict[str, Look]) -> None:
    from matplotlib.lines import Line2D

    names = [entrant.strategy for entrant in contest.entrants]
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
    # Set afterwards, because a legend interprets "_" at the start and "$".
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_parse_math(False)
        text.set_text(name if len(name) <= 28 else name[:27] + "…")
