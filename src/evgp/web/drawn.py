"""The live figures: what the labels leave uncertain, and the pool coloured by label."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Shaped
from markupsafe import Markup

from evgp.campaign import Campaign, State
from evgp.report.axes import Axis, grid, join, path, percent, stretched, tag
from evgp.report.components import Plane, backdrop, main_plane
from evgp.report.figures import equal_axes

COLOURS = 8  # classes that have a colour of their own, as in web.css
SHADES = 5  # of numbers, from low to high
_SHARES = (0.5, 0.8, 0.9)
_FAR = 1e300  # old campaigns may hold numbers whose differences are infinite


@dataclass(frozen=True)
class Figure:
    """A drawing, what it says in words, and what its colours mean: (class, name, count)."""

    svg: Markup
    words: str
    legend: Sequence[tuple[str, str, int]] = ()


def budget(state: State) -> Figure | None:
    """The share of the variance left against picks, and how far the answers have come.

    Those that were looked at come first, and only labels take something away.
    """
    if not state.rounds:
        return None
    worth, passed = state.worth, {*state.passed}
    looked = [row for row in state.picked if row in state.verdicts]
    done, left = len(looked), [state.rounds[0].start / state.rounds[0].prior]
    for row in [*looked, *state.pending]:
        left.append(max(0.0, left[-1] - (0.0 if row in passed else worth[row])))
    x, y = Axis(0, max(1, len(left) - 1), whole=True), Axis(0, 1.04 * max(left))
    parts = [grid(x, y)]
    for share in _SHARES:
        at = percent(100 - y.at(1 - share))
        if 1 - share < y.high:
            words = f"{100 * share:.0f} % removed"
            parts += [
                tag("line", class_="target", x1=0, x2="100%", y1=at, y2=at),
                tag("text", words, class_="target-name", x="100%", y=at, dy=-4, text_anchor="end"),
            ]
    ours = list(enumerate(left))
    ahead = tag("path", class_="ahead", d=path(x, y, ours[done:]))
    behind = tag("path", class_="ours", d=path(x, y, ours[: done + 1]))
    dot = tag("circle", class_="ours-dot", r=5, cx=percent(x.at(done)),
              cy=percent(100 - y.at(left[done])))  # fmt: skip
    words = (
        f"Share of the variance left against picks: {100 * left[done]:.0f} % after the {done} that "
        f"were looked at, {100 * left[-1]:.0f} % once those that wait are labelled."
    )
    return Figure(join([*parts, stretched(ahead, behind), dot]), words)


class Chart:
    """The pool on the plane of its two main components; made when first asked for."""

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign
        self._lock = threading.Lock()
        self._plane: Plane | None = None
        self._x: Shaped[np.ndarray, "n ..."] | None = None
        self._at: dict[int, tuple[float, float]] = {}
        self._behind: list[int] = []

    def figure(self, state: State) -> Figure:
        """The pool, what waits, and what has which label."""
        groups = _groups(state)
        with self._lock:
            self._prepare([row for _, _, rows in groups for row in rows])
            x, y = equal_axes(list(self._at.values()))
            seen = {row for _, _, rows in groups for row in rows}
            drawn = [("pool", "not picked yet", [row for row in self._behind if row not in seen])]
            layers = [
                tag("path", class_=f"dots {name}",
                    d="".join(path(x, y, [self._at[row]]) + "h0" for row in rows))
                for name, _, rows in [*drawn, *groups]
                if rows
            ]  # fmt: skip
        legend = [(name, words, len(rows)) for name, words, rows in groups if rows]
        told = ", ".join(f"{count} {words}" for _, words, count in legend) or "no label yet"
        return Figure(stretched(*layers), f"Map of {state.created.rows:,} rows: {told}.", legend)

    def _prepare(self, rows: Sequence[int]) -> None:
        if self._plane is None:
            seed = self._campaign.created.settings["seed"]
            behind = backdrop(self._campaign.created.rows, np.zeros(0, dtype=np.int64), seed=seed)
            self._behind = behind.tolist()
            self._plane = main_plane(self._rows(behind), seed=seed)
            self._place(behind)
        new = [row for row in rows if row not in self._at]
        if new:
            self._place(np.array(new))

    def _place(self, rows: Int[np.ndarray, " r"]) -> None:
        assert self._plane is not None
        at = self._plane.place(self._rows(rows))
        self._at |= {int(row): (float(a), float(b)) for row, (a, b) in zip(rows, at, strict=True)}

    def _rows(self, rows: Int[np.ndarray, " r"]) -> Float[np.ndarray, "r d"]:
        if self._x is None:
            self._x = self._campaign.x()
        return np.array(self._x[rows], dtype=np.float64).reshape(len(rows), -1)


def _groups(state: State) -> list[tuple[str, str, list[int]]]:
    """Rows of one colour: what waits, what was passed over, and each label."""
    made = [("waiting", "waiting", state.pending), ("passed", "skipped or unsure", state.passed)]
    labels = state.labels
    if state.created.classes:
        for i, name in enumerate(state.created.classes):
            colour = f"c{i}" if i < COLOURS else "others"
            made.append((colour, name, [row for row, value in labels.items() if value == name]))
        return made
    values = np.array([float(value) for value in labels.values()])
    if not len(values):
        return made
    near = np.clip(values, -_FAR, _FAR)
    edges = np.unique(np.quantile(near, np.linspace(0, 1, SHADES + 1)[1:-1]))
    bins = np.searchsorted(edges, near, side="right")
    for shade in range(len(edges) + 1):
        rows = [row for row, bin in zip(labels, bins, strict=True) if bin == shade]
        if rows:
            inside = values[bins == shade]
            words = f"{inside.min():.4g} to {inside.max():.4g}"
            made.append((f"q{shade}", words, rows))
    return made
