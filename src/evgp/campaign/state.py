"""What a campaign has come to: a pure fold of its events."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from evgp._errors import CampaignError
from evgp.campaign.events import Answered, Created, Picked, Value
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
    def worth(self) -> dict[int, float]:
        """What the label of each pick takes of the variance, as a share of that before any."""
        return {
            row: (before - after) / one.prior
            for one in self.rounds
            for row, before, after in zip(one.rows, (one.start, *one.left), one.left, strict=False)
        }

    @property
    def passed(self) -> list[int]:
        """Rows that were looked at and have no label."""
        return [row for row, one in self.verdicts.items() if not one.labelled]


class Folding:
    """Events folded as they come, at the cost of what is new; an answer taken back costs a fold."""

    def __init__(self) -> None:
        self.count = 0
        self._created: Created | None = None
        self._rounds: list[Picked] = []
        self._standing: dict[int, Answered] = {}
        self._given: set[int] = set()
        self._people: dict[int, dict[str, Answered]] = {}
        self._verdicts: dict[int, Verdict] = {}
        self._state: State | None = None

    def add(self, entries: Sequence[Entry]) -> None:
        """Take further events, in order; those that were taken already are left out."""
        for entry in entries:
            if entry.number <= self.count:
                continue
            self._check(entry)
            self.count, self._state, event = entry.number, None, entry.event
            if isinstance(event, Created):
                self._created = event
            elif isinstance(event, Picked):
                self._rounds.append(event)
            elif isinstance(event, Answered):
                self._standing[entry.number] = event
                self._given.add(entry.number)
                self._answered(event)
            elif self._standing.pop(event.of, None) is not None:
                # The order of rows is that of the first answers which stand: begin again.
                self._people.clear()
                self._verdicts.clear()
                for answer in self._standing.values():
                    self._answered(answer)

    @property
    def state(self) -> State:
        """What all events so far lead to."""
        if self._state is None:
            assert self._created is not None
            self._state = State(
                self._created, tuple(self._rounds), dict(self._verdicts), dict(self._standing)
            )
        return self._state

    def _check(self, entry: Entry) -> None:
        """Refuse an event that cannot follow those before it: a file may hold anything."""
        event, begun = entry.event, self._created
        if begun is None or isinstance(event, Created):
            fits = begun is None and isinstance(event, Created)
        elif isinstance(event, Picked):
            before = {row for one in self._rounds for row in one.rows}
            fits = len({*event.rows} - before) == len(event.rows)
            fits = fits and max(event.rows, default=0) < begun.rows
        elif isinstance(event, Answered):
            number = isinstance(event.value, float)
            known = event.value in begun.classes if begun.classes else number
            fits = event.row < begun.rows and (known or event.kind != "label")
        else:
            fits = event.of in self._given
        if not fits:
            raise CampaignError(
                f"expected a whole campaign, got an event {entry.number} that cannot follow those "
                "before it; restore the file from a copy"
            )

    def _answered(self, answer: Answered) -> None:
        people = self._people.setdefault(answer.row, {})
        people.pop(answer.who, None)  # so that the order is that of what counts
        people[answer.who] = answer
        self._verdicts[answer.row] = resolved(people)


def fold(entries: Sequence[Entry]) -> State:
    """The state that events lead to; the same events, the same state."""
    made = Folding()
    made.add(entries)
    return made.state


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
