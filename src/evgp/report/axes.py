"""Axes and SVG elements for figures that stretch with the page while their text does not.

A figure is an SVG without a `viewBox`: circles and labels are placed by percentages, so that only
distances change when the page is narrow. Lines cannot be written in percent; they go into a nested
SVG of 1000 x 1000 that is stretched, with strokes of constant width.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from markupsafe import Markup, escape

STEPS = 6  # between the ticks of an axis, at most


@dataclass(frozen=True)
class Axis:
    """An axis from `low` to `high`, which is 100 % long.

    >>> Axis(0, 40).at(10), Axis(0, 40).ticks()
    (25.0, [0.0, 10.0, 20.0, 30.0, 40.0])
    """

    low: float
    high: float
    whole: bool = False  # ticks only at integers

    def at(self, value: float) -> float:
        """The position of a value, in percent of the axis."""
        return 100 * (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """Round numbers along the axis."""
        step = self.step()
        first, last = ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9)
        return [step * i for i in range(first, last + 1)]

    def step(self) -> float:
        """The smallest of 1, 2, 2.5, 5 times a power of ten that needs at most six steps."""
        power = 10.0 ** floor(log10((self.high - self.low) / STEPS))
        steps = [power * factor for factor in (1, 2, 2.5, 5, 10, 20)]
        fits = [s for s in steps if (self.high - self.low) / s <= STEPS]
        return max(1.0, ceil(fits[0])) if self.whole else fits[0]

    def label(self, value: float) -> str:
        """The label of a tick, with as many decimals as the step has."""
        step = self.step()
        if not 1e-4 <= step < 1e6:
            return f"{value:.2g}".replace("e-0", "e-").replace("e+0", "e")
        places = next(p for p in range(7) if abs(round(step, p) - step) < 1e-9 * step)
        return f"{value:,.{places}f}"


def tag(name: str, *children: str, **attributes: object) -> Markup:
    """An SVG element; text and attributes are escaped unless they are `Markup`.

    >>> tag("text", "a < b", class_="tick", text_anchor="end")
    Markup('<text class="tick" text-anchor="end">a &lt; b</text>')
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
    )
    return Markup(f"<{name}{written}>{join(children)}</{name}>")


def join(parts: Sequence[str]) -> Markup:
    """Concatenate parts, escaped unless they are `Markup`."""
    return Markup("").join(parts)


def percent(value: float) -> str:
    """A length in percent, as short as it can be.

    >>> percent(25.0), percent(33.3333), percent(-0.001)
    ('25%', '33.33%', '0%')
    """
    return f"{round(value, 2) + 0.0:.2f}".rstrip("0").rstrip(".") + "%"


def grid(x: Axis, y: Axis) -> Markup:
    """The ticks of both axes, and horizontal grid lines."""
    parts: list[Markup] = []
    for value in y.ticks():
        at = percent(100 - y.at(value))
        parts += [
            tag("line", class_="grid", x1=0, x2="100%", y1=at, y2=at),
            tag("text", y.label(value), class_="tick", x=-10, y=at, dy=".34em", text_anchor="end"),
        ]
    for value in x.ticks():
        at = percent(x.at(value))
        centred = {"dy": "1.7em", "text_anchor": "middle"}
        parts.append(tag("text", x.label(value), class_="tick", x=at, y="100%", **centred))
    return join(parts)


def path(x: Axis, y: Axis, points: Sequence[tuple[float, float]]) -> str:
    """The path data of a line through points, in units of the nested SVG."""
    pairs = (f"{_thousandths(x.at(a))},{_thousandths(100 - y.at(b))}" for a, b in points)
    return "M" + "L".join(pairs)


def stretched(*children: str) -> Markup:
    """The nested SVG of 1000 x 1000 that fills the plot."""
    return tag("svg", *children, viewBox="0 0 1000 1000", preserveAspectRatio="none",
               width="100%", height="100%")  # fmt: skip


def _thousandths(value: float) -> str:
    return f"{round(10 * value, 1) + 0.0:.1f}".removesuffix(".0")
