"""Annotations as the real server exported them, and damaged exports."""

import copy

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from evgp.errors import CampaignError
from evgp.labelling.label_studio.answers import read_export, record_export
from evgp.labelling.label_studio.tasks import campaign_mark
from tests.conftest import examples
from tests.labelling.label_studio.conftest import recorded
from tests.labelling.label_studio.real import ANN, BOB
from tests.messages import refused

NAMES = {1: ANN, 2: BOB}


@pytest.fixture
def export():
    return recorded("export")


def answers_of(campaign):
    return {
        campaign.source.names[row]: {who: (a.kind, a.value) for who, a in item.answers.items()}
        for row, item in campaign.state.verdicts.items()
    }


def names_of(export):
    ordered = sorted(export, key=lambda task: task["data"]["evgp_rank"])
    return [task["data"]["evgp_row_id"] for task in ordered]


def users():
    return {item["id"]: item["email"] for item in recorded("users")}


def test_labels_skips_and_doubts_of_two_people(spam, export) -> None:
    actual = read_export(spam, export, users())
    assert len(actual.answers) == 6 and len(actual.tasks) == 6 and actual.others == 0
    result = record_export(spam, actual)
    assert (result.new, result.changed, result.known, result.gone) == (6, 0, 0, 0)
    first, two, three, four, five, six = names_of(export)
    assert answers_of(spam) == {
        first: {ANN: ("label", "spam"), BOB: ("label", "ham")},
        two: {ANN: ("label", "ham")},
        three: {ANN: ("skip", None)},
        four: {BOB: ("unsure", None)},
        five: {BOB: ("skip", None)},  # sent without an answer
    }
    assert [spam.source.names[row] for row in spam.state.pending] == [six]
    before = spam.log()
    assert record_export(spam, actual).known == 6 and spam.log() == before


def test_numbers_and_doubts(prices) -> None:
    record_export(prices, read_export(prices, recorded("export_numbers"), NAMES))
    first, second = prices.state.picked[:2]
    assert prices.state.labels == {first: 2.5} and prices.state.passed == [second]


def test_the_order_of_tasks_and_annotations_does_not_matter(spam, export) -> None:
    turned = [task | {"annotations": task["annotations"][::-1]} for task in export[::-1]]
    record_export(spam, read_export(spam, turned, users()))
    first = answers_of(spam)
    assert record_export(spam, read_export(spam, export, users())).known == 6
    assert answers_of(spam) == first


def test_without_names_people_are_numbers(spam, export) -> None:
    record_export(spam, read_export(spam, export))
    who = {person for item in answers_of(spam).values() for person in item}
    assert who == {f"user {number}" for number in users()}


def test_snapshots_with_people_as_objects(spam, export) -> None:
    for task in export:
        for annotation in task["annotations"]:
            annotation["completed_by"] = {
                "id": annotation["completed_by"],
                "email": f"{annotation['id']}@example.org",
            }
    reported = read_export(spam, export).answers
    expected = {
        f"{annotation['id']}@example.org" for task in export for annotation in task["annotations"]
    }
    assert {item.who for item in reported} == expected and len(reported) == len(expected) == 6


def test_drafts_and_predictions_are_not_answers(spam, export) -> None:
    for task in export:
        task["drafts"], task["annotations"] = task["annotations"], []
        task["predictions"] = task["drafts"]
    assert read_export(spam, export).answers == ()


def test_tasks_from_elsewhere_are_counted(spam, export) -> None:
    export[0]["data"] = {"text": "of somebody else"}
    export[1]["data"] = {}
    actual = read_export(spam, export)
    assert actual.others == 2 and len(actual.tasks) == 4


def changed(export, *path, to):
    result = copy.deepcopy(export)
    place = result
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = to
    return result


FIRST = (0, "annotations", 0)
CHOICES = (*FIRST, "result", 0, "value", "choices")


@pytest.mark.parametrize(
    ("path", "to"),
    [
        (CHOICES, ["eggs"]),
        (CHOICES, ["spam", "ham"]),
        (CHOICES, []),
        (CHOICES, "spam"),
        ((*FIRST, "result", 0, "value"), None),
        ((*FIRST, "result", 0, "from_name"), "mood"),
        ((*FIRST, "result"), None),
        ((*FIRST, "result"), ["x"]),
        ((*FIRST, "unique_id"), None),
        ((*FIRST, "unique_id"), "a b"),
        ((*FIRST, "updated_at"), "yesterday"),
        ((*FIRST, "updated_at"), None),
        (FIRST, 7),
        ((0, "created_at"), "9999-12-31T23:59:59-23:59"),
        ((0, "annotations"), None),
        ((0, "data", "evgp_row_id"), "m999"),
        ((0, "data", "evgp_row_id"), None),
        ((0, "data", "evgp_pool"), "0" * 16),
        ((0, "data", "evgp_campaign"), "0" * 16),
        ((0, "data", "evgp_campaign"), [1]),
        ((0,), "half"),
    ],
)  # fmt: skip
def test_invalid_exports_are_refused_and_nothing_is_recorded(spam, export, path, to) -> None:
    before = spam.log()
    with refused(CampaignError):
        record_export(spam, read_export(spam, changed(export, *path, to=to), NAMES))
    assert spam.log() == before


def test_tasks_with_the_mark_of_the_campaign_are_accepted(spam, export) -> None:
    for task in export[::2]:
        task["data"]["evgp_campaign"] = campaign_mark(spam)
    assert record_export(spam, read_export(spam, export)).new == 6


def without(export, name):
    """An export from before an annotation was made, or from after it was deleted."""
    result = copy.deepcopy(export)
    for task in result:
        task["annotations"] = [
            annotation for annotation in task["annotations"] if annotation["unique_id"] != name
        ]
    return result


def test_an_old_export_does_not_undo_newer_answers(spam, export) -> None:
    last = max(
        (annotation for task in export for annotation in task["annotations"]), key=lambda a: a["id"]
    )
    old = without(export, last["unique_id"])
    for task in old:
        task["updated_at"] = task["created_at"]
    for known in (old, export, old, export):
        assert record_export(spam, read_export(spam, known)).gone == 0
    assert len(answers_of(spam)) == 5
    later = without(export, last["unique_id"])  # its task shows that something happened since
    assert read_export(spam, later).newest > read_export(spam, old).newest
    assert record_export(spam, read_export(spam, later)).gone == 1 and len(answers_of(spam)) == 4
    assert record_export(spam, read_export(spam, export)).new == 1 and len(answers_of(spam)) == 5


@pytest.mark.parametrize("other", [{}, {"detail": "no"}, None, 3, "text", [[]]])
def test_files_that_are_not_exports_are_refused(spam, other) -> None:
    with refused(CampaignError):
        read_export(spam, other)


def test_the_short_export_is_refused(spam) -> None:
    with refused(CampaignError):
        read_export(spam, recorded("export_min"))


@pytest.mark.parametrize("number", [True, "many", None, {}, float("nan"), float("inf"), 10**400])
def test_invalid_numbers_are_refused(prices, number) -> None:
    export = changed(
        recorded("export_numbers"), 0, "annotations", 0, "result", 0, "value", "number", to=number
    )
    with refused(CampaignError):
        read_export(prices, export)


def paths(value, at=()):
    yield at
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from paths(item, (*at, key))


EVERY = [path for path in paths(recorded("export")[:2]) if path]
scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats()


@settings(
    max_examples=examples(60),
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(path=st.sampled_from(EVERY), to=scalars | st.lists(scalars, max_size=2) | st.just({}))
def test_any_field_may_hold_anything(spam, path, to) -> None:
    """Every damaged export is read, or refused in a sentence; nothing else is raised."""
    try:
        read_export(spam, changed(recorded("export")[:2], *path, to=to), NAMES)
    except CampaignError as error:
        assert "\n" not in str(error) and 20 < len(str(error)) < 400
