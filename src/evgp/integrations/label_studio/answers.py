"""Annotations of Label Studio as answers of people."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from evgp._errors import CampaignError
from evgp.campaign import Campaign
from evgp.campaign.checks import checked_person
from evgp.campaign.events import Kind, Value
from evgp.campaign.mirror import Mirrored, Told, mirror
from evgp.integrations.label_studio.config import CANNOT_TELL, CONTROL, DOUBT, printable
from evgp.integrations.label_studio.tasks import CAMPAIGN, POOL, ROW, stranger

TOOL = "label-studio"


@dataclass(frozen=True)
class Export:
    """What a full JSON export says: answers, the tasks it has, and how many are none of ours.

    `newest` is the newest time in it: it knows nothing of what happened later.
    """

    told: tuple[Told, ...]
    tasks: frozenset[tuple[str, int]]
    others: int
    newest: str


def read_export(
    campaign: Campaign, export: object, names: Mapping[int, str] | None = None
) -> Export:
    """Read Label Studio's full JSON export, skipped tasks included; whatever is wrong is refused.

    `names` tells who the users are, by their number; without it they are "user 7".
    """
    if not isinstance(export, list) or not all(isinstance(one, dict) for one in export):
        raise _no_export(f"{type(export).__name__}")
    told: list[Told] = []
    tasks: set[tuple[str, int]] = set()
    others, newest = 0, ""
    for task in export:
        if "data" not in task or not isinstance(task.get("annotations"), list):
            raise _no_export("a task without data or annotations")
        found = row_of(campaign, task)
        if found is None:
            others += 1
            continue
        tasks.add((stamp_of(task), found))
        newest = max(newest, stamp_of(task), _touched(task))
        for annotation in task["annotations"]:
            told.append(told_of(campaign, task, found, annotation, names or {}))
            newest = max(newest, told[-1].version)
    return Export(tuple(told), frozenset(tasks), others, newest)


def take(campaign: Campaign, export: Export, before: int | None = None) -> Mirrored:
    """Take all of an export, or nothing of it; twice is harmless.

    What it lacks is taken back if it is among the first `before` events, those which were there
    when the export was asked for; without that number, if it is older than the newest in it.
    """
    until = export.newest if before is None else None
    return mirror(campaign, TOOL, export.told, export.tasks, before=before, until=until)


def row_of(campaign: Campaign, task: Mapping[str, Any]) -> int | None:
    """The row of a task; None for a task that is not from `evgp`."""
    data = task.get("data")
    if not isinstance(data, dict) or ROW not in data:
        return None
    strange = stranger(campaign, data.get(POOL), data.get(CAMPAIGN))
    if strange is not None:
        raise CampaignError(
            f"task {shown(task.get('id'))}: expected a row of {campaign.pool_path.name} for "
            f"{campaign.path.stem}, got a task made {strange}; take the project of this campaign"
        )
    return campaign.source.row_of(str(data[ROW]))


def stamp_of(task: Mapping[str, Any]) -> str:
    """What a task is known by for good: when it was made."""
    return _time(task.get("created_at"), task, "created_at")


def shown(given: object) -> str:
    """Some of what was sent, fit for a sentence.

    >>> shown("a" * 100 + "b") == "a" * 80, shown("line\\nline")
    (True, 'line\ufffdline')
    """
    return printable(str(given)[:80])


def _touched(task: Mapping[str, Any]) -> str:
    """When a task was changed last, or lost an annotation; nothing where it does not say."""
    with suppress(CampaignError):
        return _time(task.get("updated_at"), task, "updated_at")
    return ""


def told_of(
    campaign: Campaign,
    task: Mapping[str, Any],
    row: int,
    annotation: object,
    names: Mapping[int, str],
) -> Told:
    """An annotation as an answer; one that cannot be taken is refused, with its task."""
    if not isinstance(annotation, dict):
        raise _no_export("an annotation that is no object")
    name = str(annotation.get("unique_id") or "")
    if not name or not name.isprintable() or " " in name:
        raise _no_export("an annotation without unique_id")
    kind, value = _said(campaign, task, annotation)
    who = _person(annotation.get("completed_by"), names)
    try:
        campaign.event(row, kind, value, who)
    except CampaignError as error:
        raise CampaignError(f"task {shown(task.get('id'))} of Label Studio: {error}") from error
    version = _time(annotation.get("updated_at"), task, "updated_at")
    return Told(stamp_of(task), name, version, row, who, kind, value)


def _said(
    campaign: Campaign, task: Mapping[str, Any], annotation: Mapping[str, Any]
) -> tuple[Kind, Value | None]:
    """A label; or that the task was skipped, or sent without an answer; or that they can't tell."""
    results = annotation.get("result")
    if not isinstance(results, list) or not all(isinstance(one, dict) for one in results):
        raise _no_export("an annotation without result")
    if annotation.get("was_cancelled") or not results:
        return "skip", None
    given = {str(one.get("from_name")): one.get("value") for one in results}
    if CANNOT_TELL in _choices(given.get(DOUBT)):
        return "unsure", None
    if CONTROL not in given:
        raise CampaignError(
            f"task {shown(task.get('id'))} of Label Studio: expected an answer of the control "
            f"{CONTROL!r}, got {shown(', '.join(sorted(given)))}; the project has another label "
            "config"
        )
    classes, value = campaign.created.classes, given[CONTROL]
    if not classes:
        number = value.get("number") if isinstance(value, dict) else None
        fits = isinstance(number, int | float) and not isinstance(number, bool)
        return "label", number if fits else str(value)
    chosen = _choices(value)
    if len(chosen) != 1:
        return "label", ", ".join(chosen) or str(value)
    if chosen[0] == CANNOT_TELL and CANNOT_TELL not in classes:
        return "unsure", None
    return "label", chosen[0]


def _choices(value: object) -> Sequence[str]:
    found = value.get("choices") if isinstance(value, dict) else None
    return [str(one) for one in found] if isinstance(found, list) else []


def _person(given: object, names: Mapping[int, str]) -> str:
    number = given.get("id") if isinstance(given, dict) else given
    known = given.get("email") if isinstance(given, dict) else None
    if isinstance(number, int):
        known = names.get(number, known)
    with suppress(CampaignError):
        if known:
            return checked_person(str(known))
    return f"user {number}" if isinstance(number, int) else "user unknown"


def _time(given: object, task: Mapping[str, Any], what: str) -> str:
    """A moment as text that sorts, always in UTC and with all its digits.

    >>> _time("2026-03-01T10:00:00.5Z", {}, "updated_at")
    '2026-03-01T10:00:00.500000+00:00'
    """
    try:
        made = datetime.fromisoformat(str(given))
        made = made.replace(tzinfo=UTC) if made.tzinfo is None else made.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise _no_export(f"{what} {str(given)[:40]!r} in task {shown(task.get('id'))}") from error
    return made.isoformat(timespec="microseconds")


def _no_export(got: str) -> CampaignError:
    return CampaignError(
        f"expected the full JSON export of Label Studio, got {got}; export as JSON (not JSON-MIN "
        "or CSV)"
    )
