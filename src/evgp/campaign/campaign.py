"""A campaign: people label what EV-GP picks, round after round, and nothing is lost."""

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Shaped

from evgp._checks import seed_of
from evgp._errors import CampaignError, Conflict
from evgp._executor import Progress, silent
from evgp._linalg import standardised
from evgp.architectures import candidates, choose
from evgp.campaign.checks import (
    check_network,
    checked_classes,
    checked_name,
    checked_person,
    checked_value,
)
from evgp.campaign.events import KINDS, Answered, Created, Kind, Picked, Undone, Value
from evgp.campaign.journal import Entry, Journal, Wanted
from evgp.campaign.source import Source, checksum, encoded, kept, kept_array, open_source, scale_of
from evgp.campaign.state import Folding, State, fold
from evgp.datasets import ArrayCode
from evgp.nets import Network, mlp
from evgp.selection import pick

SUFFIX = ".evgp"
_LEAST = 10  # labels before the network is chosen by them


@dataclass(frozen=True)
class Item:
    """A row to label: its number, its name, and its rank among all picks, from 1."""

    row: int
    name: str
    rank: int


@dataclass(frozen=True)
class Receipt:
    """An answer that is on the disk; `repeated` if it was there already."""

    number: int
    repeated: bool


@dataclass(frozen=True)
class Submission:
    """An answer of a person on its way, with the key that makes sending it twice harmless."""

    row: int | str
    who: str
    key: str
    kind: Kind = "label"
    value: Value | None = None


class Campaign:
    """One SQLite file, and beside it the encoded pool in a file named by its content.

    Every change is an event that is added to the file before it is acknowledged; the state is
    folded from the events, and the same events give the same state and the same picks.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._folding = Folding()
        self._lock = threading.Lock()
        self._source: Source | None = None
        self._scale: ArrayCode | None = None

    @classmethod
    def create(
        cls,
        path: str | Path,
        pool: str | Path,
        *,
        id: str | None = None,
        classes: Sequence[str] = (),
        number: bool = False,
        drop: Sequence[str] = (),
        impute: bool = False,
        network: Mapping[str, Any] | None = None,
        choose_network: bool = False,
        seed: int = 0,
    ) -> "Campaign":
        """Begin a campaign on a table or a folder of images, for `classes` or for a `number`.

        `network` are arguments of `evgp.mlp`; with `choose_network` the labels so far choose it in
        each round (EV-GP+MS). O(rows) time and memory, as the pool is encoded once.
        """
        place, where = campaign_path(path), Path(pool)
        names = checked_classes(classes, number)
        seed_of(seed)
        check_network(network or {})
        if place.exists():
            raise CampaignError(
                f"{place}: expected a new campaign, got a file that is there; take another name"
            )
        digest = checksum(where)
        source = open_source(where, id=id)
        x = encoded(source, id=id, drop=drop, impute=impute)
        first = Created(
            pool=os.path.relpath(where.resolve(), place.resolve().parent),
            checksum=digest,
            array="",
            rows=len(source),
            id=id,
            classes=names,
            settings={
                "drop": list(drop),
                "impute": impute,
                "network": dict(network or {}),
                "choose_network": choose_network,
                "seed": seed,
            },
        )
        with kept(_arrays(place), x) as array:
            return cls(Journal.create(place, replace(first, array=array)))

    @classmethod
    def open(cls, path: str | Path) -> "Campaign":
        """A campaign that is there; a damaged or newer file, or a changed pool, is refused."""
        made = cls(Journal.open(campaign_path(path)))
        try:
            check_network(made.created.settings["network"])
            made.check_pool()
        except BaseException:
            made.close()
            raise
        return made

    @property
    def path(self) -> Path:
        """Its file."""
        return self._journal.path

    @property
    def state(self) -> State:
        """What all events so far lead to, those of other processes too."""
        entries = self._journal.events()
        with self._lock:
            self._folding.add(entries[self._folding.count :])
            return self._folding.state

    @property
    def created(self) -> Created:
        """What it began with."""
        return self.state.created

    @property
    def pool_path(self) -> Path:
        """Where its pool lies."""
        return self.path.resolve().parent / self.created.pool

    @property
    def source(self) -> Source:
        """The rows for people; read when first asked for."""
        if self._source is None:
            begun = self.created
            self._source = open_source(self.pool_path, id=begun.id, rows=begun.rows)
        return self._source

    def check_pool(self) -> None:
        """Refuse a pool that is not as it was when the campaign began."""
        if checksum(self.pool_path) != self.created.checksum:
            raise CampaignError(
                f"{self.pool_path}: expected the pool as it was when {self.path.name} began, got "
                "another content, to which its rows may not belong; restore the file, or begin a "
                "new campaign"
            )

    def log(self) -> Sequence[Entry]:
        """All events in order."""
        return self._journal.events()

    def next(self, k: int, *, progress: Progress = silent) -> list[Item]:
        """k rows to label now: those that still wait, then the best further ones.

        New picks know of all rows that have a label or wait for one, and leave out those that were
        skipped. The cost of `evgp.pick`.
        """
        if k < 1:
            raise CampaignError(f"expected a number of rows from 1, got {k}")
        while True:
            state = self.state
            waiting = state.pending
            free = self.created.rows - len({*state.picked, *state.verdicts})
            wanted = min(k - len(waiting), free)
            if wanted <= 0:
                return self._items(waiting[:k])
            round = f"round {len(state.rounds) + 1}", self._pick(state, wanted, progress)
            try:
                self._journal.add(partial(_only, round))
            except Conflict:  # another process has picked this round meanwhile
                continue
            return self._items(self.state.pending[:k])

    def answer(
        self,
        row: int | str,
        kind: Kind = "label",
        value: Value | None = None,
        *,
        who: str = "me",
        key: str | None = None,
    ) -> Receipt:
        """Say something of a row (its number, or its name): a label, "skip" or "unsure".

        The answer is on the disk when this returns. With the same `key` the same answer is taken
        once, however often it is sent; another answer with it is a `Conflict`.
        """
        return self.answers([(row, kind, value)], who=who, keys=None if key is None else [key])[0]

    def answers(
        self,
        given: Sequence[tuple[int | str, Kind, Value | None]],
        *,
        who: str = "me",
        keys: Sequence[str] | None = None,
    ) -> list[Receipt]:
        """Several answers of one person at once: all of them are taken, or none."""
        person = checked_person(who)
        events = [self.event(row, kind, value, person) for row, kind, value in given]
        named = (
            [None] * len(events) if keys is None else [checked_name(key, "a key") for key in keys]
        )
        before = 0

        def wanted(entries: Sequence[Entry]) -> list[Wanted]:
            nonlocal before
            before = len(entries)
            return [
                (f"answer {key}" if key is not None else f"new {len(entries) + i}", event)
                for i, (key, event) in enumerate(zip(named, events, strict=True))
            ]

        made = self._journal.add(wanted)
        return [Receipt(entry.number, entry.number <= before) for entry in made]

    def submit(self, given: Sequence[Submission]) -> list[Receipt | CampaignError]:
        """Answers of several people in one transaction; each gets its receipt, or its own error.

        When this returns all that have a receipt are on the disk. Where the disk is full, or the
        file fails, this raises and none is taken.
        """
        found: dict[int, Wanted] = {}
        made: dict[int, Receipt | CampaignError] = {}
        for i, one in enumerate(given):
            try:
                person = checked_person(one.who)
                event = self.event(one.row, one.kind, one.value, person)
                found[i] = f"answer {checked_name(one.key, 'a key')}", event
            except CampaignError as error:
                made[i] = error
        told = self._journal.add_each(list(found.values())) if found else []
        for i, entry in zip(found, told, strict=True):
            made[i] = entry if isinstance(entry, Conflict) else Receipt(entry[0].number, entry[1])
        return [made[i] for i in range(len(given))]

    def add(self, wanted: Callable[[Sequence[Entry]], Sequence[Wanted]]) -> list[Entry]:
        """Decide on all events so far, and add to them, in one transaction."""
        return self._journal.add(wanted)

    def undo(self, who: str = "me", *, key: str | None = None) -> Answered:
        """Take back the latest answer of a person that stands; give what it was."""
        person = checked_person(who)
        taken: list[Answered] = []

        def wanted(entries: Sequence[Entry]) -> list[Wanted]:
            if key is not None:
                before = [one for one in entries if one.key == f"undo {key}"]
                if before and isinstance(before[0].event, Undone):
                    undone = before[0].event
                    original = entries[undone.of - 1].event
                    assert isinstance(original, Answered)
                    taken.append(original)
                    return [(before[0].key, Undone(undone.of, person))]
            standing = fold(entries).standing
            mine = [number for number, one in standing.items() if one.who == person]
            if not mine:
                raise CampaignError(f"expected an answer of {person} to take back, got none")
            taken.append(standing[mine[-1]])
            name = f"undo {key}" if key is not None else f"new {len(entries)}"
            return [(name, Undone(mine[-1], person))]

        self._journal.add(wanted)
        return taken[-1]

    def labelled(self) -> tuple[list[int], list[Value]]:
        """Rows that have a label, and the labels that count."""
        found = self.state.labels
        return list(found), list(found.values())

    def network(self) -> tuple[str, Network]:
        """The network that picks now: the one that was given, or that the labels choose."""
        settings = self.created.settings
        given = mlp(**settings["network"])
        rows, y = self.targets()
        if not settings["choose_network"] or len(rows) < _LEAST:
            return "given", given
        made = choose(candidates(), self.points(rows), y, standardise=False, seed=settings["seed"])
        return made.chosen.name, made.network

    def targets(self) -> tuple[list[int], torch.Tensor]:
        """Labelled rows, and their labels as numbers: scaled ones, or those of classes."""
        rows, values = self.labelled()
        classes = self.created.classes
        if classes:
            return rows, torch.tensor([classes.index(str(value)) for value in values])
        y = torch.tensor([float(value) for value in values], dtype=torch.float64)
        return rows, standardised(y) if rows else y

    def x(self) -> Shaped[np.ndarray, " n *d"]:
        """The encoded rows."""

        def again() -> Shaped[np.ndarray, " n *d"]:
            self.check_pool()
            how = self.created.settings
            return encoded(self.source, id=self.created.id, drop=how["drop"], impute=how["impute"])

        return kept_array(_arrays(self.path), self.created.array, self.created.rows, again)

    def points(self, rows: Sequence[int]) -> Float[torch.Tensor, "r d"]:
        """Encoded rows as networks see them: images on the scale of the pool, as in `pick`."""
        x = self.x()
        made = np.array(x[rows], dtype=np.float64)
        if self.source.images is not None:
            self._scale = self._scale or scale_of(np.asarray(x))
            made, _ = self._scale.encode(made, 0, str(self.source.path))
        return torch.from_numpy(made).flatten(1)

    def close(self) -> None:
        """Let go of the file."""
        self._journal.close()

    def _pick(self, state: State, k: int, progress: Progress) -> Picked:
        (name, network), x = self.network(), self.x()
        taken = {*state.picked, *state.verdicts}
        known = sorted(taken - {*state.passed})
        free = np.array(sorted({*range(state.created.rows)} - taken))
        made = pick(
            np.asarray(x),
            k,
            labelled=known or None,
            candidates=free,
            network=network,
            standardise=self.source.images is not None,
            seed=state.created.settings["seed"],
            progress=progress,
        )
        return Picked(
            rows=tuple(int(row) for row in made.indices),
            gains=tuple(float(gain) for gain in made.gains),
            left=tuple(float(left) for left in made.variance_left),
            start=float(made.start_variance),
            prior=float(made.prior_variance),
            network=name,
        )

    def _items(self, rows: Sequence[int]) -> list[Item]:
        rank = {row: number for number, row in enumerate(self.state.picked, 1)}
        return [Item(row, self.source.names[row], rank[row]) for row in rows]

    def event(self, row: int | str, kind: Kind, value: Value | None, who: str) -> Answered:
        """An answer that can be taken, or a `CampaignError`."""
        if kind not in KINDS:
            raise CampaignError(f"expected an answer among {', '.join(KINDS)}; got {kind!r}")
        number = self.source.row_of(row) if isinstance(row, str) else row
        if not 0 <= number < self.created.rows:
            raise CampaignError(
                f"expected a row from 0 to {self.created.rows - 1}, got {number}; check the id"
            )
        if kind != "label":
            if value is not None:
                raise CampaignError(f"expected no label with {kind}, got {value!r}")
            return Answered(number, who, kind)
        return Answered(number, who, kind, checked_value(value, self.created.classes))


def campaign_path(name: str | Path) -> Path:
    """The file of a campaign by its name.

    >>> campaign_path("spam").name, campaign_path("spam.evgp").name
    ('spam.evgp', 'spam.evgp')
    """
    path = Path(name)
    if not path.name or path.name == "..":
        raise CampaignError(f"expected the name of a campaign, such as spam, got {str(name)!r}")
    return path if path.suffix == SUFFIX else path.with_name(path.name + SUFFIX)


def _only(wanted: Wanted, entries: Sequence[Entry]) -> list[Wanted]:
    return [wanted]


def _arrays(path: Path) -> Path:
    return path.with_name(path.name + "-arrays")
