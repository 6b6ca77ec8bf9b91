"""The figures of the page of an audit, as SVG; the style sheet has their colours."""

from collections.abc import Sequence

from markupsafe import Markup

from evgp.report.audit_summary import AuditSummary, TrainedNetworks
from evgp.report.axes import Axis, grid, join, path, percent, stretched, tag
from evgp.report.figures import bars

LANES = 5  # heights over which the dots of a strip are spread, so that equal values are visible


def histogram(s: AuditSummary) -> Markup:
    """Test rows by how much networks will disagree there."""
    unit = s.unit or 1.0
    edges = [unit * edge for edge in s.bars.edges]
    x, y = Axis(0, edges[-1]), Axis(0, 1.05 * max(s.bars.counts), whole=True)
    at = percent(x.at(unit * s.bars.median))
    median = tag("line", class_="median after", x1=at, x2=at, y1=0, y2="100%")
    return join([grid(x, y), bars(edges, s.bars.counts, x, y, "after"), median])


def influence(s: AuditSummary) -> Markup:
    """The increase in variance without each training row, largest first, in percent.

    The area of the redundant rows is grey.
    """
    if not s.influence or max(s.influence) <= 0:
        return Markup("")
    x, y = Axis(0, s.rows, whole=s.rows > 5), Axis(0, 104 * max(s.influence))
    steps: list[tuple[float, float]] = [(0, 100 * s.influence[0])]
    for place, value in zip(s.places, s.influence, strict=True):
        steps += [(steps[-1][0], 100 * value), (place, 100 * value)]
    filled = tag("path", class_="band", d=path(x, y, [(0, 0), *steps, (s.rows, 0)]) + "Z")
    line = tag("path", class_="ours", d=path(x, y, steps))
    parts = [grid(x, y)]
    if 0 < s.redundant:
        start = x.at(s.rows - s.redundant)
        width = percent(100 - start)
        parts.append(tag("rect", class_="idle", x=percent(start), width=width, height="100%"))
    return join([*parts, stretched(filled, line)])


def fan(s: AuditSummary) -> Markup:
    """Mean variance against additional labels: the best ones, and random draws."""
    if not s.after:
        return Markup("")
    curves = [(s.variance, *draw) for draw in s.chance]
    heights = [height for curve in (s.after, *curves) for height in curve]
    low, high = min(heights), max(heights)
    room = 0.06 * (high - low) or 0.5 * high or 1.0
    # From zero, unless all lines would be at the top.
    bottom = 0.0 if low < 0.7 * high else low - room
    x, y = Axis(0, len(s.helps), whole=True), Axis(bottom, high + room)
    lines = [tag("path", class_="chance", d=path(x, y, list(enumerate(draw)))) for draw in curves]
    ours = tag("path", class_="ours", d=path(x, y, list(enumerate(s.after))))
    return join([grid(x, y), stretched(*lines, ours)])


def strip(s: AuditSummary) -> Markup:
    """Mean variance left by random sets, and by this one."""
    if not s.random:
        return Markup("")
    low, high = (f((*s.random, s.variance)) for f in (min, max))
    room = 0.08 * (high - low) or 0.5 * high or 1.0
    x = Axis(max(0.0, low - room), high + room)
    ticks = [
        tag("text", x.label(tick), class_="tick", x=percent(x.at(tick)), y="100%", dy="1.7em",
            text_anchor="middle")
        for tick in x.ticks()
    ]  # fmt: skip
    base = tag("line", class_="grid", x1=0, x2="100%", y1="100%", y2="100%")
    dots = [
        tag("circle", class_="chance-dot", cx=percent(x.at(value)), r=5,
            cy=percent(30 + 60 * (i % LANES + 0.5) / LANES))
        for i, value in enumerate(sorted(s.random))
    ]  # fmt: skip
    return join([base, *ticks, *dots, *_mine(x.at(s.variance))])


def _mine(at: float) -> Sequence[Markup]:
    side = "start" if at < 15 else "end" if at > 85 else "middle"
    place = percent(at)
    return (
        tag("line", class_="mine", x1=place, x2=place, y1="16%", y2="100%"),
        tag("text", "this set", class_="mine-name", x=place, y="8%", text_anchor=side),
    )


def scatter(s: AuditSummary, seen: TrainedNetworks) -> Markup:
    """Observed against predicted standard deviation of test rows, and the line of equality."""
    unit = s.unit or 1.0
    points = [(unit * a, unit * b) for a, b in seen.points]
    high = 1.05 * max((max(point) for point in points), default=0.0) or 1.0
    axis = Axis(0, high)
    equal = tag("path", class_="floor", d=path(axis, axis, [(0, 0), (high, high)]))
    dots = "".join(path(axis, axis, [point]) + "h0" for point in points)
    crowd = "dots" if len(points) <= 300 else "dots many"
    return join([grid(axis, axis), stretched(equal, tag("path", class_=crowd, d=dots))])
