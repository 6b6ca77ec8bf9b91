"""The state of a campaign: a pure fold of its events."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from evgp.errors import CampaignError
from evgp.labelling.campaign.events import Answered, Created, Picked, Value
from evgp.labelling.campaign.journal import Entry


@dataclass(frozen=True)
class Verdict:
    """The label of a row, if it has one, and the answers of each person.

    The latest answer of each person counts, unless it was undone. A row is labelled if anybody gave
    it a label: the class that most people gave (ties go to the first), or the median of numbers. It
    is disputed if people gave different labels.
    """

    value: Value | None
    answers: Mapping[str, Answered]
    disputed: bool = False

    @property
    def labelled(self) -> bool:
        """Whether the row has a label."""
        return self.value is not None


@dataclass(frozen=True)
class State:
    """The rounds so far, and the verdict on each answered row, in the order of first answers."""

    created: Created
    rounds: tuple[Picked, ...] = ()
    verdicts: Mapping[int, Verdict] = field(default_factory=dict)
    standing: Mapping[int, Answered] = field(
        default_factory=dict
    )  # by number, without those undone

    @property
    def picked(self) -> list[int]:
        """All picked rows, best first."""
        return [row for batch in self.rounds for row in batch.rows]

    @property
    def pending(self) -> list[int]:
        """Picked rows without an answer."""
        return [row for row in self.picked if row not in self.verdicts]

    @property
    def labels(self) -> dict[int, Value]:
        """The label that counts for each labelled row, in the order of first answers."""
        return {
            row: verdict.value
            for row, verdict in self.verdicts.items()
            if verdict.value is not None
        }

    @property
    def worth(self) -> dict[int, float]:
        """The share of the prior variance that the label of each pick removes."""
        return {
            row: (before - after) / batch.prior
            for batch in self.rounds
            for row, before, after in zip(
                batch.rows, (batch.start, *batch.left), batch.left, strict=False
            )
        }

    @property
    def passed(self) -> list[int]:
        """Rows that were answered without a label: skipped, or unsure."""
        return [row for row, verdict in self.verdicts.items() if not verdict.labelled]


class StateBuilder:
    """Folds events as they arrive, at the cost of the new ones; an undo costs a whole fold."""

    def __init__(self) -> None:
        self.count = 0
        self._created: Created | None = None
        self._rounds: list[Picked] = []
        self._standing: dict[int, Answered] = {}
        self._answer_numbers: set[int] = set()
        self._people: dict[int, dict[str, Answered]] = {}
        self._verdicts: dict[int, Verdict] = {}
        self._state: State | None = None

    def add(self, entries: Sequence[Entry]) -> None:
        """Add further events, in order; those that were added before are skipped."""
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
                self._answer_numbers.add(entry.number)
                self._answered(event)
            elif self._standing.pop(event.of, None) is not None:
                # Rows are in the order of their first answer, which may have changed: start over.
                self._people.clear()
                self._verdicts.clear()
                for answer in self._standing.values():
                    self._answered(answer)

    @property
    def state(self) -> State:
        """The state after all events so far."""
        if self._state is None:
            assert self._created is not None
            self._state = State(
                self._created, tuple(self._rounds), dict(self._verdicts), dict(self._standing)
            )
        return self._state

    def _check(self, entry: Entry) -> None:
        """Raise if an event cannot follow those before it: a file may contain anything."""
        event, created = entry.event, self._created
        if created is None or isinstance(event, Created):
            valid = created is None and isinstance(event, Created)
        elif isinstance(event, Picked):
            before = {row for batch in self._rounds for row in batch.rows}
            valid = len({*event.rows} - before) == len(event.rows)
            valid = valid and max(event.rows, default=0) < created.rows
        elif isinstance(event, Answered):
            number = isinstance(event.value, float)
            known = event.value in created.classes if created.classes else number
            valid = event.row < created.rows and (known or event.kind != "label")
        else:
            valid = event.of in self._answer_numbers
        if not valid:
            raise CampaignError(
                f"damaged campaign: event {entry.number} cannot follow those before it; restore "
                "the file from a backup"
            )

    def _answered(self, answer: Answered) -> None:
        people = self._people.setdefault(answer.row, {})
        people.pop(answer.who, None)  # so that answers are in order of their latest change
        people[answer.who] = answer
        self._verdicts[answer.row] = resolved(people)


def fold(entries: Sequence[Entry]) -> State:
    """The state after these events; the same events give the same state."""
    builder = StateBuilder()
    builder.add(entries)
    return builder.state


def resolved(people: Mapping[str, Answered]) -> Verdict:
    """The verdict on a row, by the rule that `Verdict` states.

    >>> ann, bob = Answered(0, "ann", "label", "spam"), Answered(0, "bob", "label", "ham")
    >>> verdict = resolved({"ann": ann, "bob": bob})
    >>> verdict.value, verdict.disputed
    ('spam', True)
    """
    values = [
        answer.value
        for answer in people.values()
        if answer.kind == "label" and answer.value is not None
    ]
    if not values:
        return Verdict(None, dict(people))
    numbers = [value for value in values if isinstance(value, float)]
    if numbers:
        return Verdict(float(median(numbers)), dict(people), len(set(numbers)) > 1)
    counts = Counter(values)  # the order of first answers breaks ties
    value, _ = counts.most_common(1)[0]
    return Verdict(value, dict(people), len(counts) > 1)
