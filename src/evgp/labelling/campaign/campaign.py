"""A labelling campaign: people label what EV-GP picks, round after round."""

import os
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Shaped

from evgp._checks import integer, seed_of, words
from evgp._executor import Progress, silent
from evgp._linalg import standardised
from evgp.architectures import candidates, choose
from evgp.datasets import ArrayCode, ReadOptions
from evgp.datasets.scaling import scale_of
from evgp.errors import (
    BadArgument,
    CampaignError,
    Conflict,
    DataWarning,
    UnknownName,
    UnreadableFile,
)
from evgp.kernels import Kernel
from evgp.labelling.campaign.checks import (
    checked_classes,
    checked_name,
    checked_person,
    checked_value,
    model_of,
)
from evgp.labelling.campaign.events import (
    KINDS,
    READING,
    Answered,
    Created,
    Kind,
    Picked,
    Undone,
    Value,
)
from evgp.labelling.campaign.journal import Entry, Journal, NewEvent
from evgp.labelling.campaign.source import (
    Source,
    checksum,
    encoded,
    encoded_test,
    image_scaling,
    open_source,
    rows_to_store,
    stored,
    stored_array,
)
from evgp.labelling.campaign.state import State, StateBuilder, fold
from evgp.nets.named import Named
from evgp.selection import pick
from evgp.selection.features import features_of
from evgp.selection.request import Model, affordable, asked_of_inputs, kernel_of

SUFFIX = ".evgp"
_MIN_LABELS = 10  # before they choose the network
_USUAL = {key: getattr(ReadOptions(), key) for key in READING}


@dataclass(frozen=True)
class Item:
    """A row to label: its number, its name, and its rank among all picks, from 1."""

    row: int
    name: str
    rank: int


@dataclass(frozen=True)
class Receipt:
    """An answer that is on disk; `repeated` if it had been saved before."""

    number: int
    repeated: bool


@dataclass(frozen=True)
class Submission:
    """An answer to save, with a key that makes sending it twice harmless."""

    row: int | str
    who: str
    key: str
    kind: Kind = "label"
    value: Value | None = None


class Campaign:
    """One SQLite file, and next to it the encoded pool in a file named by a hash of its content.

    Every change is an event that is added to the file before it is acknowledged. The state is
    folded from the events: the same events give the same state and the same picks. `notes` list
    what looks suspicious in the pool of a new campaign.
    """

    def __init__(self, journal: Journal, notes: Sequence[str] = ()) -> None:
        self.notes = tuple(notes)
        self._journal = journal
        self._builder = StateBuilder()
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
        budget: float | None = None,
        network: str | Mapping[str, Any] | None = None,
        kernel: str | None = None,
        choose_network: bool = False,
        features: str | None = None,
        x_test: str | Path | None = None,
        thin: int | None = None,
        show: str | Sequence[str] = (),
        scale: str | None = "auto",
        seed: int = 0,
        **reading: Any,
    ) -> "Campaign":
        """Create a campaign on a table or a folder of images, for `classes` or for a `number`.

        `network` is the name of a network, or a mapping: arguments of `evgp.mlp`, or `network` (its
        name) with `weights` (a file), `unit` and `draws`. With `choose_network` the labels so far
        choose the network in each round (EV-GP+MS). `x_test` is a file, or folder, of test points,
        and `show` are the columns that people see, all by default. `costs` is a column, and
        `budget` is the maximum cost of each round. `kernel`, by name, `features`, `scale`, `thin`
        and further arguments (`column`, `text`, `embed`, `image_size`, ...) are those of
        `evgp.pick`. `notes` of the campaign list what looks suspicious. O(rows) time and memory:
        the pool is encoded once.
        """
        file, pool_path = campaign_path(path), Path(pool)
        names = checked_classes(classes, number)
        seed_of(seed)
        model = model_of(network, kernel, choose_network)
        features_of(features)
        if file.exists():
            raise CampaignError(f"{file} exists already; choose another name for the campaign")
        digest = checksum(pool_path)
        scale = None if features == "raw" else scale_of(scale, error=CampaignError)
        asked = _asked(model, seed, features)
        how = reading_of({"id": id, "scale": scale, **reading, **asked})
        source = open_source(pool_path, how)
        drop, text = (source.checked_columns(part) for part in (how.drop, how.text))
        how = replace(how, drop=drop, text=text)
        shown = source.checked_columns(words(show, "show", error=CampaignError))
        data = encoded(source, how)
        affordable(1, None, None, (data.costs, budget), len(data))
        thin = None if thin is None else integer(thin, "thin", 1)
        weights = None if model.weights is None else checksum(Path(model.weights))
        settings = {
            "drop": list(how.drop),
            "impute": how.impute,
            "network": _moved(model, file),
            "choose_network": choose_network,
            "scale": scale,
            "scaled": data.scale,
            "seed": seed,
            **_given(how),
            **_present(show=shown, features=features, budget=budget, thin=thin, weights=weights),
            **_present(without_text=data.without_text),
        }
        pool_name = _relative(pool_path, file)
        first = Created(pool_name, digest, "", len(source), id, names, settings)
        with ExitStack() as files:
            if x_test is not None:
                test = encoded_test(data, Path(x_test))
                stored_name = files.enter_context(stored(_arrays(file), test))
                first.settings["test"] = [_relative(Path(x_test), file), stored_name, len(test)]
            array = files.enter_context(stored(_arrays(file), rows_to_store(data)))
            return cls(Journal.create(file, replace(first, array=array)), data.notes)

    @classmethod
    def open(cls, path: str | Path) -> "Campaign":
        """Open a campaign; raises if its file is damaged or newer, or if the pool has changed."""
        campaign = cls(Journal.open(campaign_path(path)))
        try:
            model_of(campaign.created.settings["network"])
            campaign.check_pool()
        except BaseException:
            campaign.close()
            raise
        return campaign

    @property
    def path(self) -> Path:
        """The campaign file."""
        return self._journal.path

    @property
    def state(self) -> State:
        """The state after all events so far, including those of other processes."""
        entries = self._journal.events()
        with self._lock:
            self._builder.add(entries[self._builder.count :])
            return self._builder.state

    @property
    def created(self) -> Created:
        """The event that created the campaign."""
        return self.state.created

    @property
    def pool_path(self) -> Path:
        """The path of the pool."""
        return self.path.resolve().parent / self.created.pool

    @property
    def source(self) -> Source:
        """The rows for people to read; opened when first needed."""
        if self._source is None:
            with warnings.catch_warnings():  # notes were shown when the campaign was created
                warnings.simplefilter("ignore", DataWarning)
                self._source = open_source(self.pool_path, self._reading, rows=self.created.rows)
        return self._source

    def check_pool(self) -> None:
        """Raise if the pool has changed since the campaign was created."""
        if checksum(self.pool_path) != self.created.checksum:
            raise UnreadableFile.of(CampaignError)(
                str(self.pool_path),
                f"the pool has changed since {self.path.name} was created, so labels may not "
                "belong to its rows",
                "restore the file, or create a new campaign",
            )
        weights, before = self._model.weights, self.created.settings.get("weights")
        if weights is not None and checksum(Path(weights)) != before:
            raise UnreadableFile.of(CampaignError)(
                str(weights), "the weights have changed since the campaign was created"
            )

    def log(self) -> Sequence[Entry]:
        """All events in order."""
        return self._journal.events()

    def next(self, k: int, *, progress: Progress = silent) -> list[Item]:
        """The next k rows to label: those that are waiting already, then new picks.

        New picks take labelled and waiting rows into account, and leave out those that were
        skipped. If rows have costs, new picks cost at most the budget together. Takes as long as
        `evgp.pick`.
        """
        if k < 1:
            raise CampaignError(f"expected at least 1 row, got {k}")
        while True:
            state = self.state
            waiting = state.pending
            missing = min(k - len(waiting), self.created.rows - len(self.used(state)))
            if missing <= 0:
                return self._items(waiting[:k])
            round = f"round {len(state.rounds) + 1}", self._pick(state, missing, progress)
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
        """Answer for a row (its number, or its name): with a label, "skip" or "unsure".

        The answer is on disk when this returns. With the same `key` the same answer is saved only
        once, however often it is sent; another answer with that key is a `Conflict`.
        """
        return self.answers([(row, kind, value)], who=who, keys=None if key is None else [key])[0]

    def answers(
        self,
        answers: Sequence[tuple[int | str, Kind, Value | None]],
        *,
        who: str = "me",
        keys: Sequence[str] | None = None,
    ) -> list[Receipt]:
        """Save several answers of one person: all of them, or none."""
        person = checked_person(who)
        events = [self.event(row, kind, value, person) for row, kind, value in answers]
        named = (
            [None] * len(events) if keys is None else [checked_name(key, "a key") for key in keys]
        )
        before = 0

        def decide(entries: Sequence[Entry]) -> list[NewEvent]:
            nonlocal before
            before = len(entries)
            return [
                (f"answer {key}" if key is not None else f"new {len(entries) + i}", event)
                for i, (key, event) in enumerate(zip(named, events, strict=True))
            ]

        added = self._journal.add(decide)
        return [Receipt(entry.number, entry.number <= before) for entry in added]

    def submit(self, submissions: Sequence[Submission]) -> list[Receipt | CampaignError]:
        """Save answers of several people in one transaction; each gets a receipt or an error.

        When this returns, all answers with a receipt are on disk. If the disk is full or the file
        fails, this raises and nothing is saved.
        """
        events: dict[int, NewEvent] = {}
        results: dict[int, Receipt | CampaignError] = {}
        for i, submission in enumerate(submissions):
            try:
                person = checked_person(submission.who)
                event = self.event(submission.row, submission.kind, submission.value, person)
                events[i] = f"answer {checked_name(submission.key, 'a key')}", event
            except CampaignError as error:
                results[i] = error
        added = self._journal.add_each(list(events.values())) if events else []
        for i, entry in zip(events, added, strict=True):
            results[i] = (
                entry if isinstance(entry, Conflict) else Receipt(entry[0].number, entry[1])
            )
        return [results[i] for i in range(len(submissions))]

    def add(self, decide: Callable[[Sequence[Entry]], Sequence[NewEvent]]) -> list[Entry]:
        """Decide what to add from all events so far, and add it, in one transaction."""
        return self._journal.add(decide)

    def undo(self, who: str = "me", *, key: str | None = None) -> Answered:
        """Undo the latest answer of a person that was not undone yet; returns it."""
        person = checked_person(who)
        undone: list[Answered] = []

        def decide(entries: Sequence[Entry]) -> list[NewEvent]:
            if key is not None:
                before = [entry for entry in entries if entry.key == f"undo {key}"]
                if before and isinstance(before[0].event, Undone):
                    number = before[0].event.of
                    original = entries[number - 1].event
                    assert isinstance(original, Answered)
                    undone.append(original)
                    return [(before[0].key, Undone(number, person))]
            standing = fold(entries).standing
            mine = [number for number, answer in standing.items() if answer.who == person]
            if not mine:
                raise CampaignError(f"{person} has no answer to undo")
            undone.append(standing[mine[-1]])
            name = f"undo {key}" if key is not None else f"new {len(entries)}"
            return [(name, Undone(mine[-1], person))]

        self._journal.add(decide)
        return undone[-1]

    def labelled(self) -> tuple[list[int], list[Value]]:
        """Labelled rows, and their labels."""
        labels = self.state.labels
        return list(labels), list(labels.values())

    def network(self) -> tuple[str, Named, Kernel | None]:
        """The network for the next picks, and the kernel that replaces its own, if any.

        The first item is its name: "given", or what the labels choose.
        """
        settings = self.created.settings
        rows, y = self.targets()
        if not settings["choose_network"] or len(rows) < _MIN_LABELS:
            return "given", *self._model.network_and_kernel(settings["seed"])
        choice = choose(candidates(), self.points(rows), y, scale=None, seed=settings["seed"])
        return choice.chosen.name, choice.network, None

    def kernel(self) -> Kernel:
        """The kernel of the next picks."""
        _, network, kernel = self.network()
        return kernel_of(network, self.created.settings["seed"], kernel)

    @property
    def _model(self) -> Model:
        model = model_of(self.created.settings["network"])
        if model.weights is None:
            return model
        return replace(model, weights=self.path.resolve().parent / model.weights)

    @property
    def costs(self) -> Float[np.ndarray, " n"] | None:
        """The cost of each row's label; None if all cost the same."""
        name, table = self._reading.costs, self.source.table
        return None if name is None or table is None else table.numbers(name)

    def targets(self) -> tuple[list[int], torch.Tensor]:
        """Labelled rows, and their labels as numbers: standardised, or class indices."""
        rows, values = self.labelled()
        classes = self.created.classes
        if classes:
            return rows, torch.tensor([classes.index(str(value)) for value in values])
        y = torch.tensor([float(value) for value in values], dtype=torch.float64)
        return rows, standardised(y) if rows else y

    def x(self) -> Shaped[np.ndarray, " n *d"]:
        """The encoded rows."""

        def encode() -> Shaped[np.ndarray, " n *d"]:
            self.check_pool()
            return rows_to_store(encoded(self.source, self._reading))

        return stored_array(_arrays(self.path), self.created.array, self.created.rows, encode)

    def x_test(self) -> Shaped[np.ndarray, " m *d"] | None:
        """The encoded test points; None for the pool itself."""
        path, array, rows = self.created.settings.get("test", (None, "", 0))
        if path is None:
            return None
        where = self.path.resolve().parent / path
        return stored_array(
            _arrays(self.path),
            array,
            rows,
            lambda: encoded_test(encoded(self.source, self._reading), where),
        )

    def card(self, row: int) -> dict[str, object]:
        """What people see of a row: the columns that were chosen, or all but the id."""
        card = self.source.card(row)
        return {name: card[name] for name in self.shown}

    @property
    def shown(self) -> list[str]:
        """The columns that people see."""
        table, id = self.source.table, self.created.id
        names = [] if table is None else [name for name in table.names if name != id]
        return self.created.settings.get("show") or names

    @property
    def _reading(self) -> ReadOptions:
        settings = self.created.settings
        own = {key: settings[key] for key in ("drop", "impute", *READING) if key in settings}
        asked = _asked(self._model, settings["seed"], settings.get("features"))
        return reading_of({"id": self.created.id, "scale": self.scale, **own, **asked})

    @property
    def scale(self) -> str | None:
        """How the pool is scaled; campaigns of version 0.1 scaled every column by itself."""
        scale: str | None = self.created.settings.get("scale", "columns")
        return scale

    def points(self, rows: Sequence[int]) -> Float[torch.Tensor, " r *d"]:
        """Encoded rows as networks see them: images are scaled by the whole pool, as in `pick`."""
        x = self.x()
        points = np.array(x[rows], dtype=np.float64)
        if self.source.images is not None and self.scale is not None:
            self._scale = self._scale or image_scaling(np.asarray(x), self._reading)
            points, _ = self._scale.encode(points, 0, str(self.source.path))
        tensor = torch.from_numpy(points)
        return tensor if self._reading.fixed else tensor.flatten(1)

    def close(self) -> None:
        """Close the file."""
        self._journal.close()

    def used(self, state: State) -> set[int]:
        """The rows that cannot be picked any more, or have no text."""
        return {*state.picked, *state.verdicts, *self.created.settings.get("without_text", ())}

    def _pick(self, state: State, k: int, progress: Progress) -> Picked:
        (name, network, kernel), x = self.network(), self.x()
        settings, rows = state.created.settings, state.created.rows
        known = sorted({*state.picked, *state.verdicts} - {*state.passed})
        selection = pick(
            np.asarray(x),
            k,
            budget=settings.get("budget"),
            costs=self.costs,
            labelled=known or None,
            candidates=np.array(sorted({*range(rows)} - self.used(state))),
            x_test=self.x_test(),
            thin=settings.get("thin"),
            network=network,
            kernel=kernel,
            features=settings.get("features"),
            scale=self.scale if self.source.images is not None else None,
            seed=settings["seed"],
            progress=progress,
        )
        return Picked(
            rows=tuple(int(row) for row in selection.indices),
            gains=tuple(float(gain) for gain in selection.gains),
            left=tuple(float(left) for left in selection.variance_left),
            start=float(selection.start_variance),
            prior=float(selection.prior_variance),
            network=name,
        )

    def _items(self, rows: Sequence[int]) -> list[Item]:
        rank = {row: number for number, row in enumerate(self.state.picked, 1)}
        return [Item(row, self.source.names[row], rank[row]) for row in rows]

    def event(self, row: int | str, kind: Kind, value: Value | None, who: str) -> Answered:
        """The event of an answer; raises `CampaignError` if the answer is invalid."""
        if kind not in KINDS:
            raise UnknownName.of(CampaignError)("a kind of answer", kind, tuple(KINDS))
        number = self.source.row_of(row) if isinstance(row, str) else row
        if not 0 <= number < self.created.rows:
            bounds = f"from 0 to {self.created.rows - 1}"
            raise BadArgument.of(CampaignError)("a row", bounds, str(number), "check the id")
        if kind != "label":
            if value is not None:
                raise CampaignError(f"expected no label with {kind}, got {value!r}")
            return Answered(number, who, kind)
        return Answered(number, who, kind, checked_value(value, self.created.classes))


def campaign_path(name: str | Path) -> Path:
    """The file of a campaign, from its name.

    >>> campaign_path("spam").name, campaign_path("spam.evgp").name
    ('spam.evgp', 'spam.evgp')
    """
    path = Path(name)
    if not path.name or path.name == "..":
        raise CampaignError(f"expected a campaign name such as spam, got {str(name)!r}")
    return path if path.suffix == SUFFIX else path.with_name(path.name + SUFFIX)


def reading_of(options: Mapping[str, Any]) -> ReadOptions:
    """How a pool is read, from the arguments of `evgp.pick`."""
    try:
        return ReadOptions(**options)
    except TypeError as error:
        raise CampaignError(f"expected arguments of evgp.read_pool, got {error}") from error


def _asked(model: Model, seed: int, features: str | None) -> dict[str, Any]:
    """What the network requires of its inputs, as options for reading."""
    network, kernel = model.network_and_kernel(seed)
    return asked_of_inputs(network, kernel_of(network, seed, kernel), features)


def _given(how: ReadOptions) -> dict[str, Any]:
    """The options that differ from the defaults, for JSON."""
    more = {key: getattr(how, key) for key in READING if getattr(how, key) != _USUAL[key]}
    return {key: list(value) if key == "text" else value for key, value in more.items()}


def _present(**settings: Any) -> dict[str, Any]:
    """Settings that were given, for JSON."""
    lists = {
        key: [*value] if isinstance(value, tuple) else value for key, value in settings.items()
    }
    return {key: value for key, value in lists.items() if value not in (None, [])}


def _moved(model: Model, file: Path) -> dict[str, Any]:
    """The settings of a network, with the path of its weights relative to the campaign."""
    weights = model.weights
    return model.changed() | (
        {} if weights is None else {"weights": _relative(Path(weights), file)}
    )


def _relative(path: Path, file: Path) -> str:
    return os.path.relpath(path.resolve(), file.resolve().parent)


def _only(event: NewEvent, entries: Sequence[Entry]) -> list[NewEvent]:
    return [event]


def _arrays(path: Path) -> Path:
    return path.with_name(path.name + "-arrays")
