"""Learning curves as SVG written by hand, coloured by the style sheet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from markupsafe import Markup

from evgp.arena.looks import Look
from evgp.arena.row import MEASURES
from evgp.arena.summary import Contest, Curve
from evgp.report import words
from evgp.report.axes import Axis, grid, join, path, percent, stretched, tag

WIDE_SPAN = 20
GAP = 6.5  # percent of the height between two names, so that they never touch
NAMED = 16
MANY = 14  # more names than this do not fit beside a curve


@dataclass(frozen=True)
class LogAxis(Axis):
    """Positive values from `low` to `high`, equal factors equally far apart.

    >>> LogAxis(1, 100).at(10), LogAxis(1, 100).ticks()
    (50.0, [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0])
    """

    def at(self, value: float) -> float:
        value = max(value, self.low * 1e-3)
        return 100 * log10(value / self.low) / log10(self.high / self.low)

    def ticks(self, most: int = 6) -> list[float]:
        """Powers of ten, with 2 and 5 times them where there is room."""
        powers = range(floor(log10(self.low)), ceil(log10(self.high)) + 1)
        for factors in ((1, 2, 5), (1, 3), (1,)):
            made = [f * 10.0**p for p in powers for f in factors]
            made = [m for m in made if self.low * (1 - 1e-9) <= m <= self.high * (1 + 1e-9)]
            if len(made) <= most + 1:
                break
        return made[:: ceil(len(made) / (most + 1))]

    def label(self, value: float, most: int = 6) -> str:
        return f"{value:,g}" if 1e-3 <= value < 1e6 else words.number(value, 1)


def is_wide(curves: Sequence[Curve]) -> bool:
    """Do the means span so much that only a logarithmic axis shows them all?"""
    heights = [height for curve in curves for height in curve.mean]
    return bool(heights) and min(heights) > 0 and max(heights) > WIDE_SPAN * min(heights)


def span(curves: Sequence[Curve]) -> tuple[float, float]:
    """Heights to draw: all means, and of wide bands no more than leaves the means legible."""
    means = [height for curve in curves for height in curve.mean]
    low, high = min(means), max(means)
    room = high - low or abs(high) or 1.0
    bottom = min(low - 0.04 * room, max(min(min(c.low) for c in curves), low - 0.25 * room))
    top = max(high + 0.04 * room, min(max(max(c.high) for c in curves), high + 0.25 * room))
    return (max(bottom, 0.0) if low >= 0 else bottom), top


def curves(contest: Contest, metric: str, looks: Mapping[str, Look]) -> Markup:
    """One metric against labels, each strategy with its band and its name at the end."""
    drawn = drawn_curves(contest, metric)
    if not drawn or len(contest.labels) < 2:
        return Markup("")
    made = list(drawn.values())
    x = Axis(contest.labels[0], contest.labels[-1], whole=True)
    if is_wide(made):
        heights = [height for curve in made for height in curve.mean]
        y: Axis = LogAxis(0.8 * min(heights), 1.25 * max(heights))
    else:
        y = Axis(*span(made))
    # Those named first are best; the strongest lie on top.
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
    """The figure in words, for those who do not see it."""
    ends = [
        f"{name} {words.number(curve.mean[0], 3)} to {words.number(curve.mean[-1], 3)}"
        for name, curve in drawn_curves(contest, metric).items()
    ]
    first, last = contest.labels[0], contest.labels[-1]
    return f"{MEASURES[metric].words} from {first:,} to {last:,} labels: {'; '.join(ends)}."


def bands(contest: Contest, metrics: Sequence[str]) -> set[str]:
    """Which kinds of band the figures of a contest have."""
    return {curve.band for metric in metrics for curve in drawn_curves(contest, metric).values()}


def swatch(look: Look) -> Markup:
    """A bit of the line, for the legend."""
    line = tag("line", class_=f"line {look.name}", x1=0, x2=30, y1=5, y2=5)
    return tag("svg", line, class_="swatch", width=30, height=10, aria_hidden="true")


def drawn_curves(contest: Contest, metric: str) -> dict[str, Curve]:
    """The curves that there are of one metric, by strategy."""
    found = {one.strategy: one.score(metric).curve for one in contest.entrants}
    return {name: curve for name, curve in found.items() if curve is not None}


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
    made = [
        tag("text", text, class_=f"name {looks[name].name}", x="100%", dx=8, y=percent(at),
            dy=".34em")
        for at, text, (_, name) in zip(places, shown, ends, strict=True)
    ]  # fmt: skip
    return tag("g", *made, class_="names", aria_hidden="true")


def apart(places: Sequence[float], gap: float = GAP) -> list[float]:
    """Sorted places moved as little as it takes to be a gap apart and within 0..100.

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
