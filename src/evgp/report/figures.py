"""The figures of the page of a selection, as SVG; the style sheet has their colours."""

from collections.abc import Sequence

from markupsafe import Markup

from evgp.report import words
from evgp.report.axes import Axis, grid, join, path, percent, stretched, tag
from evgp.report.summary import Pick, Summary

NUMBERED = 60
RATIO = 1.5  # width over height of the map, as in page.css, so that both axes have one scale
LAYERS = 6
CROWDS = ((12, "few"), (40, "some"), (150, "many"))
TINY = 28


def curve(summary: Summary) -> Markup:
    """Mean variance left against labels, with the band that contains the best choice."""
    if not summary.left:
        return Markup("")
    x, y = curve_axes(summary)
    ours, best = list(enumerate(summary.left)), list(enumerate(summary.best))
    drawn = [tag("path", class_="ours", d=path(x, y, ours))]
    if best:
        band = tag("path", class_="band", d=path(x, y, [*ours, *reversed(best)]) + "Z")
        drawn = [band, tag("path", class_="floor", d=path(x, y, best)), *drawn]
    cursor = tag(
        "g",
        tag("line", class_="hair", y1=0, y2="100%"),
        tag("circle", class_="floor-dot", r=4),
        tag("circle", class_="ours-dot", r=5),
        class_="cursor",
    )
    lines, names = _targets(summary, y)
    return join([grid(x, y), lines, stretched(*drawn), names, cursor])


def curve_axes(summary: Summary) -> tuple[Axis, Axis]:
    """Labels from zero to all picks; variance from zero to its start."""
    high = max(summary.left, default=0.0)
    return Axis(0, max(1, len(summary.picks)), whole=True), Axis(0, 1.04 * high or 1.0)


def _targets(summary: Summary, y: Axis) -> tuple[Markup, Markup]:
    """Lines at shares of the variance removed, and their names, which are drawn on top."""
    lines: list[Markup] = []
    names: list[Markup] = []
    last = 0.0
    for need in summary.needs:
        top = 100 - y.at((1 - need.share) * (summary.prior or 0.0))
        if top < 0:
            continue
        # If two names would touch, the lower one goes below its line.
        at, below, last = percent(top), top - last < 8, top
        name = words.percent(need.share) + " removed"
        end = {"x": "100%", "y": at, "dy": 10 if below else -4, "text_anchor": "end"}
        lines.append(tag("line", class_="target", x1=0, x2="100%", y1=at, y2=at))
        names.append(tag("text", name, class_="target-name", **end))
    return join(lines), join(names)


def scatter(summary: Summary) -> Markup:
    """The map: the pool, and on top the picks, the first of them numbered and uppermost."""
    points = summary.scatter.points
    x, y = scatter_axes(summary)
    # Dots of one path do not darken where they overlap; several layers make dense areas visible.
    layers = [
        tag("path", class_="pool", d="".join(path(x, y, [point]) + "h0" for point in part))
        for part in (points[i::LAYERS] for i in range(LAYERS))
        if part
    ]
    picks = [_pick(summary, pick, x, y) for pick in reversed(summary.picks)]
    focus = tag("g", tag("circle", r=13), tag("text", dy=".35em"), class_="focus")
    return join([stretched(*layers), tag("g", *picks, class_="chosen"), focus])


def scatter_axes(summary: Summary) -> tuple[Axis, Axis]:
    """Axes of the map that contain every point, on one scale."""
    return equal_axes([*summary.scatter.points, *(pick.at for pick in summary.picks)])


def equal_axes(points: Sequence[tuple[float, float]]) -> tuple[Axis, Axis]:
    """Axes that contain every point, widened until both have the same scale."""
    at = points or [(0.0, 0.0)]
    spans = [(min(values), max(values)) for values in zip(*at, strict=True)]
    centres = [(low + high) / 2 for low, high in spans]
    wide, tall = (high - low for low, high in spans)
    largest = max(abs(end) for span in spans for end in span)
    # Points in one place far from 0 still need a range larger than rounding.
    half = max(0.56 * max(tall, wide / RATIO), 1e-9 * largest) or 1.0
    (a, b), reach = centres, RATIO * half
    return Axis(a - reach, a + reach), Axis(b - half, b + half)


def _pick(summary: Summary, pick: Pick, x: Axis, y: Axis) -> Markup:
    left, top = percent(x.at(pick.at[0])), percent(100 - y.at(pick.at[1]))
    name = tag("title", f"{pick.rank}: {pick.id}, gain {words.number(pick.gain)}")
    if pick.rank > NUMBERED:
        return tag("circle", name, cx=left, cy=top, r=2.75)
    return tag(
        "g",
        name,
        tag("circle", cx=left, cy=top, r=9),
        tag("text", str(pick.rank), x=left, y=top, dy=".35em"),
    )


def histogram(summary: Summary) -> Markup:
    """Test points by variance, before and after."""
    counts = summary.histogram
    if counts is None:
        return Markup("")
    x, y = Axis(0, counts.edges[-1]), Axis(0, 1.05 * max(*counts.before, *counts.after), whole=True)
    before = bars(counts.edges, counts.before, x, y, "before")
    after = bars(counts.edges, counts.after, x, y, "after")
    medians = [
        tag(
            "line", class_=f"median {name}", x1=(at := percent(x.at(value))), x2=at, y1=0, y2="100%"
        )
        for name, value in zip(("before", "after"), counts.medians, strict=True)
    ]
    return join([grid(x, y), before, after, *medians, tag("rect", class_="bin", height="100%")])


def bars(edges: Sequence[float], counts: Sequence[int], x: Axis, y: Axis, name: str) -> Markup:
    """The bars of a histogram, without empty ones."""
    bars = [
        tag("rect", x=percent(x.at(edges[i])), y=percent(100 - y.at(count)),
            width=percent(100 / len(counts)), height=percent(y.at(count)))
        for i, count in enumerate(counts)
        if count
    ]  # fmt: skip
    return tag("g", *bars, class_=name)


def share(value: float, most: float) -> str:
    """The length of a bar in percent of the longest.

    >>> share(0.02, 0.08)
    '25%'
    """
    return percent(100 * max(0.0, value) / most) if most > 0 else "0%"


def crowd(count: int) -> str:
    """The CSS class for a gallery of so many images.

    >>> crowd(10), crowd(80), crowd(500)
    ('few', 'many', 'crowd')
    """
    return next((name for most, name in CROWDS if count <= most), "crowd")


def is_tiny(summary: Summary) -> bool:
    """Whether images are so small that their pixels should be shown as squares."""
    shown = [pick.picture for pick in summary.picks if pick.picture is not None]
    return max(max(picture.width, picture.height) for picture in shown) <= TINY
