"""Answers that another tool keeps, and that change there: each version of them becomes an event."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from evgp._errors import CampaignError
from evgp.campaign.campaign import Campaign
from evgp.campaign.events import Answered, Kind, Undone, Value
from evgp.campaign.journal import Entry, Wanted


@dataclass(frozen=True)
class Told:
    """An answer as another tool tells it.

    `task` and `name` say for good which one it is there, `version` when it was changed last: of two
    versions the later is the greater text. None of them has a space.
    """

    task: str
    name: str
    version: str
    row: int
    who: str
    kind: Kind = "label"
    value: Value | None = None


@dataclass(frozen=True)
class Mirrored:
    """How many answers were new, were changed since, were known already, or are gone there."""

    new: int
    changed: int
    known: int
    gone: int


def mirror(
    campaign: Campaign,
    tool: str,
    told: Sequence[Told],
    tasks: Collection[tuple[str, int]] = (),
    *,
    before: int | None = None,
    until: str | None = None,
) -> Mirrored:
    """Bring what a campaign has from a tool to what the tool tells: all of it, or nothing.

    The same version twice is taken once, and an older one that comes late not at all. An answer
    keeps the name of the person that it came with first. `tasks`, with their rows, are those of
    which everything is told: what we have of them and the tool no longer has is taken back, and
    what was taken back so and is there after all comes back. What the tool may not have known yet
    stays: answers after the first `before` events, which were there when the tool was asked, and
    versions that are not older than `until`, the newest that the tool knew of.
    """
    events = {
        one: campaign.event(one.row, one.kind, one.value, one.who)
        for one in sorted(told, key=lambda one: one.version)
    }
    for one in told:
        if any(not part or " " in part for part in (tool, one.task, one.name, one.version)):
            raise CampaignError(
                f"expected names without spaces of an answer of {tool}, got "
                f"{(one.task, one.name, one.version)}"
            )
    here = {one.name for one in told}
    made = Mirrored(0, 0, 0, 0)

    def wanted(entries: Sequence[Entry]) -> list[Wanted]:
        nonlocal made
        found, undone = _of(entries, tool), _undone(entries, tool)
        counts = {"new": 0, "changed": 0, "known": 0, "gone": 0}
        added: list[Wanted] = []
        for one, event in events.items():
            had = found.setdefault(one.name, [])
            whole = (one.task, one.row) in tasks
            how, some = _taken(tool, one, event, had, undone, whole=whole)
            counts[how] += 1
            added += some
            if how != "known":
                had.append(_Had(0, one.task, one.version, event))
        for name, had in found.items():
            if name in here or any(_may_be_newer(one, before, until) for one in had):
                continue
            gone = [one for one in had if one.place in tasks and one.number not in undone]
            added += [_back(tool, name, one) for one in gone]
            counts["gone"] += max(had, key=lambda one: (one.version, one.number)) in gone
        made = Mirrored(**counts)
        return added

    campaign.add(wanted)
    return made


@dataclass(frozen=True)
class _Had:
    """A version that is in the journal: its number, its task, and what was said."""

    number: int
    task: str
    version: str
    said: Answered

    @property
    def place(self) -> tuple[str, int]:
        return self.task, self.said.row


def _of(entries: Sequence[Entry], tool: str) -> dict[str, list[_Had]]:
    """What came from a tool, by name, in the order in which it came."""
    made: dict[str, list[_Had]] = {}
    for entry in entries:
        parts = entry.key.split(" ")
        if parts[:2] != ["answer", tool] or len(parts) not in (5, 6):
            continue
        if isinstance(entry.event, Answered):
            _, _, task, name, version, *_ = parts
            made.setdefault(name, []).append(_Had(entry.number, task, version, entry.event))
    return made


def _undone(entries: Sequence[Entry], tool: str) -> dict[int, bool]:
    """The numbers of what was taken back, and whether that was because the tool had it no more."""
    made: dict[int, bool] = {}
    for entry in entries:
        if isinstance(entry.event, Undone):
            parts = entry.key.split(" ")
            made.setdefault(entry.event.of, parts[:2] == ["undo", tool] and len(parts) == 4)
    return made


def _taken(
    tool: str,
    one: Told,
    event: Answered,
    had: Sequence[_Had],
    undone: Mapping[int, bool],
    *,
    whole: bool,
) -> tuple[str, list[Wanted]]:
    """As what an answer counts, and what is added for it; `whole` if its whole task is told.

    What is known is added too: its key is there, and another content with it is a conflict.
    """
    key = f"answer {tool} {one.task} {one.name} {one.version}"
    said = replace(event, who=had[0].said.who) if had else event
    latest = max((each.version for each in had), default="")
    if one.version > latest:
        return "changed" if had else "new", [(key, said)]
    same = [each for each in had if each.version == one.version]
    if not same:
        return "known", []
    if whole and one.version == latest and undone.get(same[-1].number, False):
        return "new", [(key, said), (f"{key} {len(same)}", said)]  # it is back, the n-th time
    return "known", [(key, said)]


def _may_be_newer(one: _Had, before: int | None, until: str | None) -> bool:
    """May it have come after the tool was asked?"""
    return (before is not None and one.number > before) or (
        until is not None and one.version >= until
    )


def _back(tool: str, name: str, one: _Had) -> Wanted:
    return f"undo {tool} {name} {one.number}", Undone(one.number, one.said.who)
