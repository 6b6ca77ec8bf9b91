"""Annotations in Label Studio as answers of people."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from evgp.errors import CampaignError
from evgp.labelling.campaign import Campaign
from evgp.labelling.campaign.checks import checked_person
from evgp.labelling.campaign.events import Kind, Value
from evgp.labelling.campaign.sync import ExternalAnswer, SyncResult, sync
from evgp.labelling.label_studio.config import CANNOT_TELL, CONTROL, DOUBT, printable
from evgp.labelling.label_studio.tasks import CAMPAIGN, POOL, ROW, foreign_origin

TOOL = "label-studio"


@dataclass(frozen=True)
class Export:
    """The answers and tasks of a full JSON export, and how many tasks are not from evgp.

    `newest` is the newest time in it: it does not know what happened later.
    """

    answers: tuple[ExternalAnswer, ...]
    tasks: frozenset[tuple[str, int]]
    others: int
    newest: str


def read_export(
    campaign: Campaign, export: object, names: Mapping[int, str] | None = None
) -> Export:
    """Read Label Studio's full JSON export, including skipped tasks; raises if anything is wrong.

    `names` are the users' names by number; a user without a name is called "user 7".
    """
    if not isinstance(export, list) or not all(isinstance(task, dict) for task in export):
        raise _invalid(f"{type(export).__name__}")
    answers: list[ExternalAnswer] = []
    tasks: set[tuple[str, int]] = set()
    others, newest = 0, ""
    for task in export:
        if "data" not in task or not isinstance(task.get("annotations"), list):
            raise _invalid("a task without data or annotations")
        row = row_of(campaign, task)
        if row is None:
            others += 1
            continue
        tasks.add((created_at(task), row))
        newest = max(newest, created_at(task), _updated_at(task))
        for annotation in task["annotations"]:
            answers.append(answer_of(campaign, task, row, annotation, names or {}))
            newest = max(newest, answers[-1].version)
    return Export(tuple(answers), frozenset(tasks), others, newest)


def record_export(campaign: Campaign, export: Export, before: int | None = None) -> SyncResult:
    """Record all of an export, or nothing of it; repeating it is harmless.

    An answer that the export lacks is undone if it is among the first `before` events, those that
    existed when the export was requested; without that number, if it is older than the newest time
    in the export.
    """
    until = export.newest if before is None else None
    return sync(campaign, TOOL, export.answers, export.tasks, before=before, until=until)


def row_of(campaign: Campaign, task: Mapping[str, Any]) -> int | None:
    """The row of a task, or None if the task is not from evgp."""
    data = task.get("data")
    if not isinstance(data, dict) or ROW not in data:
        return None
    origin = foreign_origin(campaign, data.get(POOL), data.get(CAMPAIGN))
    if origin is not None:
        raise CampaignError(
            f"task {shown(task.get('id'))}: expected a row of {campaign.pool_path.name} for "
            f"{campaign.path.stem}, got a task made {origin}; use the project of this campaign"
        )
    return campaign.source.row_of(str(data[ROW]))


def created_at(task: Mapping[str, Any]) -> str:
    """When a task was created, which identifies it permanently."""
    return _time(task.get("created_at"), task, "created_at")


def shown(value: object) -> str:
    """The beginning of a value, safe to show in a message.

    >>> shown("a" * 100 + "b") == "a" * 80, shown("line\\nline")
    (True, 'line\ufffdline')
    """
    return printable(str(value)[:80])


def _updated_at(task: Mapping[str, Any]) -> str:
    """When a task was last changed or lost an annotation; empty if the task does not say."""
    with suppress(CampaignError):
        return _time(task.get("updated_at"), task, "updated_at")
    return ""


def answer_of(
    campaign: Campaign,
    task: Mapping[str, Any],
    row: int,
    annotation: object,
    names: Mapping[int, str],
) -> ExternalAnswer:
    """An annotation as an answer; if it is invalid, the error names its task."""
    if not isinstance(annotation, dict):
        raise _invalid("an annotation that is not an object")
    name = str(annotation.get("unique_id") or "")
    if not name or not name.isprintable() or " " in name:
        raise _invalid("an annotation without unique_id")
    kind, value = _kind_and_value(campaign, task, annotation)
    who = _person(annotation.get("completed_by"), names)
    try:
        campaign.event(row, kind, value, who)
    except CampaignError as error:
        raise CampaignError(f"task {shown(task.get('id'))} of Label Studio: {error}") from error
    version = _time(annotation.get("updated_at"), task, "updated_at")
    return ExternalAnswer(created_at(task), name, version, row, who, kind, value)


def _kind_and_value(
    campaign: Campaign, task: Mapping[str, Any], annotation: Mapping[str, Any]
) -> tuple[Kind, Value | None]:
    """A label; or "skip" if the task was skipped or sent empty; or "unsure"."""
    results = annotation.get("result")
    if not isinstance(results, list) or not all(isinstance(part, dict) for part in results):
        raise _invalid("an annotation without result")
    if annotation.get("was_cancelled") or not results:
        return "skip", None
    values = {str(part.get("from_name")): part.get("value") for part in results}
    if CANNOT_TELL in _choices(values.get(DOUBT)):
        return "unsure", None
    if CONTROL not in values:
        raise CampaignError(
            f"task {shown(task.get('id'))} of Label Studio: expected an answer of the control "
            f"{CONTROL!r}, got {shown(', '.join(sorted(values)))}; the project has another label "
            "config"
        )
    classes, value = campaign.created.classes, values[CONTROL]
    if not classes:
        number = value.get("number") if isinstance(value, dict) else None
        valid = isinstance(number, int | float) and not isinstance(number, bool)
        return "label", number if valid else str(value)
    chosen = _choices(value)
    if len(chosen) != 1:
        return "label", ", ".join(chosen) or str(value)
    if chosen[0] == CANNOT_TELL and CANNOT_TELL not in classes:
        return "unsure", None
    return "label", chosen[0]


def _choices(value: object) -> Sequence[str]:
    choices = value.get("choices") if isinstance(value, dict) else None
    return [str(choice) for choice in choices] if isinstance(choices, list) else []


def _person(user: object, names: Mapping[int, str]) -> str:
    number = user.get("id") if isinstance(user, dict) else user
    name = user.get("email") if isinstance(user, dict) else None
    if isinstance(number, int):
        name = names.get(number, name)
    with suppress(CampaignError):
        if name:
            return checked_person(str(name))
    return f"user {number}" if isinstance(number, int) else "user unknown"


def _time(value: object, task: Mapping[str, Any], field: str) -> str:
    """A time as text that sorts: in UTC, with microseconds.

    >>> _time("2026-03-01T10:00:00.5Z", {}, "updated_at")
    '2026-03-01T10:00:00.500000+00:00'
    """
    try:
        time = datetime.fromisoformat(str(value))
        time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise _invalid(f"{field} {str(value)[:40]!r} in task {shown(task.get('id'))}") from error
    return time.isoformat(timespec="microseconds")


def _invalid(got: str) -> CampaignError:
    return CampaignError(
        f"expected the full JSON export of Label Studio, got {got}; export as JSON (not JSON-MIN "
        "or CSV)"
    )
