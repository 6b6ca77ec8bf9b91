"""How far a campaign is, who did what, and how far people agree: pure functions of its events."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from evgp.campaign import Answered, State, Verdict
from evgp.campaign.events import Undone, Value
from evgp.campaign.journal import Entry

_LATEST = 12


@dataclass(frozen=True)
class Person:
    """What one person did; `agrees` is how often others gave the same label, of `shared` rows."""

    name: str
    labels: int
    skipped: int
    unsure: int
    undone: int
    last: str
    shared: int
    agrees: float | None


@dataclass(frozen=True)
class Deed:
    """One thing that somebody did."""

    who: str
    row: int
    said: str
    at: str
    undone: bool


@dataclass(frozen=True)
class Tally:
    """All of it. `twice` rows have labels of several people, `alpha` is how far those agree."""

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
    latest: Sequence[Deed]


def tally(state: State, log: Sequence[Entry]) -> Tally:
    """Count; O(events)."""
    kinds = Counter(_kind(one) for one in state.verdicts.values())
    pairs = [labels for one in state.verdicts.values() if len(labels := _labels(one)) > 1]
    return Tally(
        rows=state.created.rows,
        labelled=kinds["label"],
        waiting=len(state.pending),
        skipped=kinds["skip"],
        unsure=kinds["unsure"],
        disputed=sum(one.disputed for one in state.verdicts.values()),
        rounds=len(state.rounds),
        twice=len(pairs),
        alpha=alpha([list(one.values()) for one in pairs]),
        counts=dict.fromkeys(state.created.classes, 0)
        | Counter(str(value) for value in state.labels.values() if state.created.classes),
        people=_people(state, log),
        latest=_latest(state, log),
    )


def alpha(rows: Sequence[Sequence[Value]]) -> float | None:
    r"""Krippendorff's $\alpha = 1 - D_o / D_e$: 1 for full agreement, 0 for that of chance.

    $D_o$ is the mean disagreement of two labels of one row and $D_e$ that of any two labels, a
    disagreement being 0 or 1 for classes and $(a - b)^2$ for numbers. None where it is not defined.

    >>> alpha([["a", "a"], ["b", "b"], ["a", "b"]])
    0.4444444444444444
    """
    rows = _scaled(rows)
    every = [value for row in rows for value in row]
    expected = _disagreement(every)
    if expected == 0:
        return None
    observed = sum(_disagreement(row) / (len(row) - 1) for row in rows)
    return 1 - (len(every) - 1) * observed / expected


def _scaled(rows: Sequence[Sequence[Value]]) -> Sequence[Sequence[Value]]:
    """Numbers as parts of the largest, as squares of large ones are more than a float holds."""
    sizes = [abs(value) for row in rows for value in row if isinstance(value, float)]
    largest = max(sizes, default=0.0)
    if not largest:
        return rows
    return [[one / largest if isinstance(one, float) else one for one in row] for row in rows]


def _disagreement(values: Sequence[Value]) -> float:
    """The sum over all ordered pairs."""
    numbers = [value for value in values if isinstance(value, float)]
    if numbers:
        middle = fmean(numbers)
        return 2 * len(numbers) * sum((value - middle) ** 2 for value in numbers)
    return len(values) ** 2 - sum(count**2 for count in Counter(values).values())


def _labels(verdict: Verdict) -> dict[str, Value]:
    return {who: one.value for who, one in verdict.answers.items() if one.value is not None}


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
    for one in state.standing.values():
        kinds[one.who][one.kind] += 1
    same: dict[str, list[float]] = {name: [] for name in kinds}
    for verdict in state.verdicts.values():
        labels = _labels(verdict)
        for who, value in labels.items():
            others = [one for name, one in labels.items() if name != who]
            if others:
                same[who].append(fmean(float(one == value) for one in others))
    return sorted(
        (
            Person(
                name, counts["label"], counts["skip"], counts["unsure"], counts["undone"],
                last[name], len(same[name]), fmean(same[name]) if same[name] else None,
            )
            for name, counts in kinds.items()
        ),
        key=lambda one: -one.labels,
    )  # fmt: skip


def _latest(state: State, log: Sequence[Entry]) -> list[Deed]:
    found = []
    for entry in reversed(log):
        if isinstance(entry.event, Answered):
            one = entry.event
            said = {"skip": "skipped", "unsure": "cannot tell"}.get(one.kind) or shown(one.value)
            gone = entry.number not in state.standing
            found.append(Deed(one.who, one.row, said, entry.at, gone))
        if len(found) == _LATEST:
            break
    return found


def shown(value: Value | None) -> str:
    """A label as text.

    >>> shown(2.5), shown("spam")
    ('2.5', 'spam')
    """
    return f"{value:.7g}" if isinstance(value, float) else str(value)
