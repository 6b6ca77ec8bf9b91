"""What a campaign has come to: a pure fold of its events."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from evgp.campaign.events import Answered, Created, Picked, Undone, Value
from evgp.campaign.journal import Entry


@dataclass(frozen=True)
class Verdict:
    """What counts for a row: a label, or why there is none; and what each person said of it.

    Of each person the latest answer counts that was not taken back. A row with a label from anybody
    is labelled: with the class that most people gave, of several such the one that was given first;
    with the median of numbers. It is disputed where people gave different labels.
    """

    value: Value | None
    answers: Mapping[str, Answered]
    disputed: bool = False

    @property
    def labelled(self) -> bool:
        """Has it a label?"""
        return self.value is not None


@dataclass(frozen=True)
class State:
    """Rounds so far, and what people said of each row, in the order of first answers."""

    created: Created
    rounds: tuple[Picked, ...] = ()
    verdicts: Mapping[int, Verdict] = field(default_factory=dict)
    standing: Mapping[int, Answered] = field(default_factory=dict)  # by number, not taken back

    @property
    def picked(self) -> list[int]:
        """Every row that was picked, best first."""
        return [row for one in self.rounds for row in one.rows]

    @property
    def pending(self) -> list[int]:
        """Picked rows of which nobody has said anything that stands."""
        return [row for row in self.picked if row not in self.verdicts]

    @property
    def labels(self) -> dict[int, Value]:
        """The label that counts for each labelled row, in the order of first answers."""
        return {row: one.value for row, one in self.verdicts.items() if one.value is not None}

    @property
    def passed(self) -> list[int]:
        """Rows that were looked at and have no label."""
        return [row for row, one in self.verdicts.items() if not one.labelled]


def fold(entries: Sequence[Entry]) -> State:
    """The state that events lead to; the same events, the same state."""
    first = entries[0].event
    assert isinstance(first, Created)
    rounds: list[Picked] = []
    standing: dict[int, Answered] = {}
    for entry in entries[1:]:
        event = entry.event
        if isinstance(event, Picked):
            rounds.append(event)
        elif isinstance(event, Answered):
            standing[entry.number] = event
        elif isinstance(event, Undone):
            standing.pop(event.of, None)
    by_row: dict[int, dict[str, Answered]] = {}
    for answer in standing.values():
        people = by_row.setdefault(answer.row, {})
        people.pop(answer.who, None)  # so that the order is that of what counts
        people[answer.who] = answer
    verdicts = {row: resolved(people) for row, people in by_row.items()}
    return State(first, tuple(rounds), verdicts, standing)


def resolved(people: Mapping[str, Answered]) -> Verdict:
    """What counts, by the rule of `Verdict`.

    >>> one, two = Answered(0, "ann", "label", "spam"), Answered(0, "bob", "label", "ham")
    >>> made = resolved({"ann": one, "bob": two})
    >>> made.value, made.disputed
    ('spam', True)
    """
    values = [one.value for one in people.values() if one.kind == "label" and one.value is not None]
    if not values:
        return Verdict(None, dict(people))
    numbers = [value for value in values if isinstance(value, float)]
    if numbers:
        return Verdict(float(median(numbers)), dict(people), len(set(numbers)) > 1)
    counts = Counter(values)  # the order of first answers breaks ties
    value, _ = counts.most_common(1)[0]
    return Verdict(value, dict(people), len(counts) > 1)
