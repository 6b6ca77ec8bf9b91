"""Statistics and charts of the overview page, computed from the campaign's events."""

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from jaxtyping import Float, Int, Shaped
from markupsafe import Markup

from evgp.labelling.campaign import Answered, Campaign, State, Verdict
from evgp.labelling.campaign.events import Undone, Value
from evgp.labelling.campaign.journal import Entry
from evgp.report.axes import Axis, grid, join, path, percent, stretched, tag
from evgp.report.figures import equal_axes
from evgp.report.summary import Plane, backdrop, main_plane

_LATEST = 12


@dataclass(frozen=True)
class Person:
    """Work of one person; `agrees` is the share of `shared` rows with the same label by others."""

    name: str
    labels: int
    skipped: int
    unsure: int
    undone: int
    last: str
    shared: int
    agrees: float | None


@dataclass(frozen=True)
class Activity:
    """One answer that somebody gave."""

    who: str
    row: int
    answer: str
    at: str
    undone: bool


@dataclass(frozen=True)
class Statistics:
    """Counts for the overview; `twice` rows have labels of several people, who agree by `alpha`."""

    rows: int
    labelled: int
    waiting: int
    skipped: int
    unsure: int
    disputed: int
    rounds: int
    twice: int
    alpha: float | None
    counts: Mapping[str, int]
    people: Sequence[Person]
    latest: Sequence[Activity]


def statistics(state: State, log: Sequence[Entry]) -> Statistics:
    """Count answers, people and agreement; O(events)."""
    verdicts = state.verdicts.values()
    kinds = Counter(map(_kind, verdicts))
    shared = [labels for verdict in verdicts if len(labels := _labels(verdict)) > 1]
    return Statistics(
        rows=state.created.rows,
        labelled=kinds["label"],
        waiting=len(state.pending),
        skipped=kinds["skip"],
        unsure=kinds["unsure"],
        disputed=sum(verdict.disputed for verdict in verdicts),
        rounds=len(state.rounds),
        twice=len(shared),
        alpha=alpha([list(labels.values()) for labels in shared]),
        counts=dict.fromkeys(state.created.classes, 0)
        | Counter(str(value) for value in state.labels.values() if state.created.classes),
        people=_people(state, log),
        latest=_latest(state, log),
    )


def alpha(rows: Sequence[Sequence[Value]]) -> float | None:
    r"""Krippendorff's $\alpha = 1 - D_o / D_e$: 1 for full agreement, 0 for chance agreement.

    $D_o$ is the mean disagreement of two labels of one row and $D_e$ that of any two labels.
    Classes disagree by 0 or 1, numbers by $(a - b)^2$. None where it is undefined.

    >>> alpha([["a", "a"], ["b", "b"], ["a", "b"]])
    0.4444444444444444
    """
    rows = _scaled(rows)
    values = [value for row in rows for value in row]
    expected = _disagreement(values)
    if expected == 0:
        return None
    observed = sum(_disagreement(row) / (len(row) - 1) for row in rows)
    return 1 - (len(values) - 1) * observed / expected


def _scaled(rows: Sequence[Sequence[Value]]) -> Sequence[Sequence[Value]]:
    """Divide numbers by the largest, because squares of large ones would overflow."""
    sizes = [abs(value) for row in rows for value in row if isinstance(value, float)]
    largest = max(sizes, default=0.0)
    if not largest:
        return rows
    return [
        [value / largest if isinstance(value, float) else value for value in row] for row in rows
    ]


def _disagreement(values: Sequence[Value]) -> float:
    """Disagreement summed over all ordered pairs."""
    numbers = [value for value in values if isinstance(value, float)]
    if numbers:
        middle = fmean(numbers)
        return 2 * len(numbers) * sum((value - middle) ** 2 for value in numbers)
    return len(values) ** 2 - sum(count**2 for count in Counter(values).values())


def _labels(verdict: Verdict) -> dict[str, Value]:
    return {
        who: answer.value for who, answer in verdict.answers.items() if answer.value is not None
    }


def _kind(verdict: Verdict) -> str:
    if verdict.labelled:
        return "label"
    return list(verdict.answers.values())[-1].kind


def _people(state: State, log: Sequence[Entry]) -> list[Person]:
    kinds: dict[str, Counter[str]] = {}
    last: dict[str, str] = {}
    for entry in log:
        if isinstance(entry.event, Answered | Undone):
            last[entry.event.who] = entry.at
            counts = kinds.setdefault(entry.event.who, Counter())
            counts["undone"] += isinstance(entry.event, Undone)
    for answer in state.standing.values():
        kinds[answer.who][answer.kind] += 1
    agreement: dict[str, list[float]] = {name: [] for name in kinds}
    for verdict in state.verdicts.values():
        labels = _labels(verdict)
        for who, value in labels.items():
            others = [label for name, label in labels.items() if name != who]
            if others:
                agreement[who].append(fmean(float(label == value) for label in others))
    return sorted(
        (
            Person(
                name, counts["label"], counts["skip"], counts["unsure"], counts["undone"],
                last[name], len(agreement[name]),
                fmean(agreement[name]) if agreement[name] else None,
            )
            for name, counts in kinds.items()
        ),
        key=lambda person: -person.labels,
    )  # fmt: skip


def _latest(state: State, log: Sequence[Entry]) -> list[Activity]:
    latest = []
    for entry in reversed(log):
        if isinstance(entry.event, Answered):
            event = entry.event
            answer = {"skip": "skipped", "unsure": "cannot tell"}.get(event.kind)
            undone = entry.number not in state.standing
            latest.append(
                Activity(event.who, event.row, answer or shown(event.value), entry.at, undone)
            )
        if len(latest) == _LATEST:
            break
    return latest


def shown(value: Value | None) -> str:
    """A label as text.

    >>> shown(2.5), shown("spam")
    ('2.5', 'spam')
    """
    return f"{value:.7g}" if isinstance(value, float) else str(value)


COLOURS = 8  # classes that have a colour of their own, as in web.css
SHADES = 5  # of numbers, from low to high
_SHARES = (0.5, 0.8, 0.9)
_LARGEST = 1e300  # labels of old campaigns may have differences that overflow


@dataclass(frozen=True)
class Figure:
    """A drawing, its description, and its legend of (CSS class, name, count)."""

    svg: Markup
    description: str
    legend: Sequence[tuple[str, str, int]] = ()


def variance_curve(state: State) -> Figure | None:
    """The share of the variance left against picks, with a dot where the answers end.

    Answered picks come first, and only those with a label reduce the variance.
    """
    if not state.rounds:
        return None
    worth, passed = state.worth, {*state.passed}
    answered = [row for row in state.picked if row in state.verdicts]
    done, left = len(answered), [state.rounds[0].start / state.rounds[0].prior]
    for row in [*answered, *state.pending]:
        left.append(max(0.0, left[-1] - (0.0 if row in passed else worth[row])))
    x, y = Axis(0, max(1, len(left) - 1), whole=True), Axis(0, 1.04 * max(left))
    parts = [grid(x, y)]
    for share in _SHARES:
        at = percent(100 - y.at(1 - share))
        if 1 - share < y.high:
            name = f"{100 * share:.0f} % removed"
            parts += [
                tag("line", class_="target", x1=0, x2="100%", y1=at, y2=at),
                tag("text", name, class_="target-name", x="100%", y=at, dy=-4, text_anchor="end"),
            ]
    points = list(enumerate(left))
    waiting = tag("path", class_="ahead", d=path(x, y, points[done:]))
    labelled = tag("path", class_="ours", d=path(x, y, points[: done + 1]))
    dot = tag("circle", class_="ours-dot", r=5, cx=percent(x.at(done)),
              cy=percent(100 - y.at(left[done])))  # fmt: skip
    description = (
        f"Share of the variance left against picks: {100 * left[done]:.0f} % after {done} "
        f"answered, {100 * left[-1]:.0f} % once all waiting ones are labelled."
    )
    return Figure(join([*parts, stretched(waiting, labelled), dot]), description)


class PoolMap:
    """The pool on its two main components, coloured by label; computed when first needed."""

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign
        self._lock = threading.Lock()
        self._plane: Plane | None = None
        self._x: Shaped[np.ndarray, "n ..."] | None = None
        self._points: dict[int, tuple[float, float]] = {}
        self._background: list[int] = []

    def figure(self, state: State) -> Figure:
        """Rows not picked yet, waiting rows, and labelled rows by label."""
        groups = _groups(state)
        with self._lock:
            self._prepare([row for _, _, rows in groups for row in rows])
            x, y = equal_axes(list(self._points.values()))
            seen = {row for _, _, rows in groups for row in rows}
            rest = [row for row in self._background if row not in seen]
            layers = [
                tag("path", class_=f"dots {name}",
                    d="".join(path(x, y, [self._points[row]]) + "h0" for row in rows))
                for name, _, rows in [("pool", "", rest), *groups]
                if rows
            ]  # fmt: skip
        legend = [(colour, name, len(rows)) for colour, name, rows in groups if rows]
        counts = ", ".join(f"{count} {name}" for _, name, count in legend) or "no label yet"
        return Figure(stretched(*layers), f"Map of {state.created.rows:,} rows: {counts}.", legend)

    def _prepare(self, rows: Sequence[int]) -> None:
        if self._plane is None:
            seed = self._campaign.created.settings["seed"]
            none = np.zeros(0, dtype=np.int64)
            background = backdrop(self._campaign.created.rows, none, seed=seed)
            self._background = background.tolist()
            self._plane = main_plane(self._rows(background), seed=seed)
            self._place(background)
        new = [row for row in rows if row not in self._points]
        if new:
            self._place(np.array(new))

    def _place(self, rows: Int[np.ndarray, " r"]) -> None:
        assert self._plane is not None
        at = self._plane.place(self._rows(rows))
        self._points |= {
            int(row): (float(a), float(b)) for row, (a, b) in zip(rows, at, strict=True)
        }

    def _rows(self, rows: Int[np.ndarray, " r"]) -> Float[np.ndarray, "r d"]:
        if self._x is None:
            self._x = self._campaign.x()
        return np.array(self._x[rows], dtype=np.float64).reshape(len(rows), -1)


def _groups(state: State) -> list[tuple[str, str, list[int]]]:
    """Rows by colour: waiting, without a label, and one group for each label."""
    groups = [("waiting", "waiting", state.pending), ("passed", "skipped or unsure", state.passed)]
    labels = state.labels
    if state.created.classes:
        for i, name in enumerate(state.created.classes):
            colour = f"c{i}" if i < COLOURS else "others"
            groups.append((colour, name, [row for row, value in labels.items() if value == name]))
        return groups
    values = np.array([float(value) for value in labels.values()])
    if not len(values):
        return groups
    clipped = np.clip(values, -_LARGEST, _LARGEST)
    edges = np.unique(np.quantile(clipped, np.linspace(0, 1, SHADES + 1)[1:-1]))
    bins = np.searchsorted(edges, clipped, side="right")
    for shade in range(len(edges) + 1):
        rows = [row for row, number in zip(labels, bins, strict=True) if number == shade]
        if rows:
            inside = values[bins == shade]
            name = f"{inside.min():.4g} to {inside.max():.4g}"
            groups.append((f"q{shade}", name, rows))
    return groups
