"""Synchronise answers from another tool: each version of an answer there becomes an event."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from evgp.errors import CampaignError
from evgp.labelling.campaign.campaign import Campaign
from evgp.labelling.campaign.events import Answered, Kind, Undone, Value
from evgp.labelling.campaign.journal import Entry, NewEvent


@dataclass(frozen=True)
class ExternalAnswer:
    """An answer in another tool.

    `task` and `name` identify the answer permanently; `version` increases (as text) with every
    edit. None of them contains a space.
    """

    task: str
    name: str
    version: str
    row: int
    who: str
    kind: Kind = "label"
    value: Value | None = None


@dataclass(frozen=True)
class SyncResult:
    """How many answers were new, changed, known already, or deleted in the tool."""

    new: int
    changed: int
    known: int
    gone: int


def sync(
    campaign: Campaign,
    tool: str,
    answers: Sequence[ExternalAnswer],
    tasks: Collection[tuple[str, int]] = (),
    *,
    before: int | None = None,
    until: str | None = None,
) -> SyncResult:
    """Bring a campaign up to date with the answers in another tool, in one transaction.

    A version that was recorded before is not recorded again, and an older one that arrives late is
    ignored. An answer keeps the name of the person with which it first came.

    `tasks`, with their rows, are those whose answers are complete in `answers`: recorded answers
    that the tool no longer has are undone, and come back if it has them again. What the tool may
    not have known yet stays: answers after the first `before` events, which existed when the tool
    was asked, and versions not older than `until`, the newest that the tool knew.
    """
    events = {
        answer: campaign.event(answer.row, answer.kind, answer.value, answer.who)
        for answer in sorted(answers, key=lambda answer: answer.version)
    }
    for answer in answers:
        parts = (answer.task, answer.name, answer.version)
        if any(not part or " " in part for part in (tool, *parts)):
            raise CampaignError(
                f"expected an answer of {tool} with names that have no spaces, got {parts}"
            )
    present = {answer.name for answer in answers}
    result = SyncResult(0, 0, 0, 0)

    def decide(entries: Sequence[Entry]) -> list[NewEvent]:
        nonlocal result
        recorded, undone = _recorded(entries, tool), _undone(entries, tool)
        counts = {"new": 0, "changed": 0, "known": 0, "gone": 0}
        added: list[NewEvent] = []
        for answer, event in events.items():
            versions = recorded.setdefault(answer.name, [])
            complete = (answer.task, answer.row) in tasks
            status, new = _compared(tool, answer, event, versions, undone, complete=complete)
            counts[status] += 1
            added += new
            if status != "known":
                versions.append(_Version(0, answer.task, answer.version, event))
        for name, versions in recorded.items():
            if name in present or any(_may_be_newer(each, before, until) for each in versions):
                continue
            gone = [each for each in versions if each.place in tasks and each.number not in undone]
            added += [_undo(tool, name, each) for each in gone]
            counts["gone"] += max(versions, key=lambda each: (each.version, each.number)) in gone
        result = SyncResult(**counts)
        return added

    campaign.add(decide)
    return result


@dataclass(frozen=True)
class _Version:
    """A version of an answer that is in the journal."""

    number: int
    task: str
    version: str
    answer: Answered

    @property
    def place(self) -> tuple[str, int]:
        return self.task, self.answer.row


def _recorded(entries: Sequence[Entry], tool: str) -> dict[str, list[_Version]]:
    """The versions that came from a tool, by name of the answer, in the order of the journal."""
    versions: dict[str, list[_Version]] = {}
    for entry in entries:
        parts = entry.key.split(" ")
        if parts[:2] != ["answer", tool] or len(parts) not in (5, 6):
            continue
        if isinstance(entry.event, Answered):
            _, _, task, name, version, *_ = parts
            versions.setdefault(name, []).append(_Version(entry.number, task, version, entry.event))
    return versions


def _undone(entries: Sequence[Entry], tool: str) -> dict[int, bool]:
    """Numbers of undone answers, and whether the tool had deleted them."""
    undone: dict[int, bool] = {}
    for entry in entries:
        if isinstance(entry.event, Undone):
            parts = entry.key.split(" ")
            undone.setdefault(entry.event.of, parts[:2] == ["undo", tool] and len(parts) == 4)
    return undone


def _compared(
    tool: str,
    answer: ExternalAnswer,
    event: Answered,
    versions: Sequence[_Version],
    undone: Mapping[int, bool],
    *,
    complete: bool,
) -> tuple[str, list[NewEvent]]:
    """Whether an answer is new, changed or known, and the events to add for it.

    A known one is added too: its key exists, so that other content with it is a conflict.
    """
    key = f"answer {tool} {answer.task} {answer.name} {answer.version}"
    event = replace(event, who=versions[0].answer.who) if versions else event
    latest = max((each.version for each in versions), default="")
    if answer.version > latest:
        return "changed" if versions else "new", [(key, event)]
    same = [each for each in versions if each.version == answer.version]
    if not same:
        return "known", []
    if complete and answer.version == latest and undone.get(same[-1].number, False):
        return "new", [(key, event), (f"{key} {len(same)}", event)]  # restored for the nth time
    return "known", [(key, event)]


def _may_be_newer(recorded: _Version, before: int | None, until: str | None) -> bool:
    """Whether a version may have been recorded after the tool was asked."""
    return (before is not None and recorded.number > before) or (
        until is not None and recorded.version >= until
    )


def _undo(tool: str, name: str, recorded: _Version) -> NewEvent:
    return f"undo {tool} {name} {recorded.number}", Undone(recorded.number, recorded.answer.who)
