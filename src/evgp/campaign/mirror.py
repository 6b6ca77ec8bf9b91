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
    campaign: Campaign, tool: str, told: Sequence[Told], tasks: Collection[tuple[str, int]] = ()
) -> Mirrored:
    """Bring what a campaign has from a tool to what the tool tells: all of it, or nothing.

    The same version twice is taken once, and an older one that comes late not at all. An answer
    keeps the name of the person that it came with first. `tasks`, with their rows, are those of
    which everything is told: what we have of them and the tool no longer has is taken back.
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
    counts = {"new": 0, "changed": 0, "known": 0, "gone": 0}

    def wanted(entries: Sequence[Entry]) -> list[Wanted]:
        found = _of(entries, tool)
        taken = {entry.event.of for entry in entries if isinstance(entry.event, Undone)}
        counts.update(new=0, changed=0, known=0, gone=0)
        made: list[Wanted] = []
        for one, event in events.items():
            before = found.setdefault(one.name, {})
            later = one.version > max(before, default="")
            said = replace(event, who=_first(before).who) if before else event
            if later or one.version in before:
                made.append((f"answer {tool} {one.task} {one.name} {one.version}", said))
            counts["known" if not later else "changed" if before else "new"] += 1
            if later:
                before[one.version] = (0, one.task, said)
        here = {one.name for one in told}
        for name, versions in found.items():
            for number, task, answer in versions.values():
                if name not in here and (task, answer.row) in tasks and number not in taken:
                    made.append((f"undo {tool} {name} {number}", Undone(number, answer.who)))
            number, task, answer = versions[max(versions)]
            counts["gone"] += (
                name not in here and (task, answer.row) in tasks and number not in taken
            )
        return made

    campaign.add(wanted)
    return Mirrored(**counts)


_Versions = dict[str, tuple[int, str, Answered]]  # by version: number, task, what was said


def _of(entries: Sequence[Entry], tool: str) -> dict[str, _Versions]:
    """What came from a tool, by name."""
    made: dict[str, _Versions] = {}
    for entry in entries:
        parts = entry.key.split(" ")
        if parts[:2] == ["answer", tool] and len(parts) == 5 and isinstance(entry.event, Answered):
            _, _, task, name, version = parts
            made.setdefault(name, {})[version] = (entry.number, task, entry.event)
    return made


def _first(versions: Mapping[str, tuple[int, str, Answered]]) -> Answered:
    return next(iter(versions.values()))[2]
