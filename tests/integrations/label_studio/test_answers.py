"""Annotations as the real server exported them, and whatever else may be called an export."""

import copy

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from evgp._errors import CampaignError
from evgp.integrations.label_studio.answers import read_export, take
from evgp.integrations.label_studio.tasks import campaign_mark
from tests.integrations.label_studio.conftest import recorded
from tests.integrations.label_studio.real import ANN, BOB

NAMES = {1: ANN, 2: BOB}


@pytest.fixture
def export():
    return recorded("export")


def said(campaign):
    return {
        campaign.source.names[row]: {who: (a.kind, a.value) for who, a in one.answers.items()}
        for row, one in campaign.state.verdicts.items()
    }


def names_of(export):
    ordered = sorted(export, key=lambda task: task["data"]["evgp_rank"])
    return [task["data"]["evgp_row_id"] for task in ordered]


def users():
    return {one["id"]: one["email"] for one in recorded("users")}


def test_labels_skips_and_doubts_of_two_people(spam, export) -> None:
    found = read_export(spam, export, users())
    assert len(found.told) == 6 and len(found.tasks) == 6 and found.others == 0
    made = take(spam, found)
    assert (made.new, made.changed, made.known, made.gone) == (6, 0, 0, 0)
    one, two, three, four, five, six = names_of(export)
    assert said(spam) == {
        one: {ANN: ("label", "spam"), BOB: ("label", "ham")},
        two: {ANN: ("label", "ham")},
        three: {ANN: ("skip", None)},
        four: {BOB: ("unsure", None)},
        five: {BOB: ("skip", None)},  # sent without an answer
    }
    assert [spam.source.names[row] for row in spam.state.pending] == [six]
    before = spam.log()
    assert take(spam, found).known == 6 and spam.log() == before


def test_numbers_and_doubts(prices) -> None:
    take(prices, read_export(prices, recorded("export_numbers"), NAMES))
    first, second = prices.state.picked[:2]
    assert prices.state.labels == {first: 2.5} and prices.state.passed == [second]


def test_the_order_of_tasks_and_annotations_is_of_no_matter(spam, export) -> None:
    turned = [task | {"annotations": task["annotations"][::-1]} for task in export[::-1]]
    take(spam, read_export(spam, turned, users()))
    first = said(spam)
    assert take(spam, read_export(spam, export, users())).known == 6
    assert said(spam) == first


def test_without_names_people_are_numbers(spam, export) -> None:
    take(spam, read_export(spam, export))
    who = {person for one in said(spam).values() for person in one}
    assert who == {f"user {number}" for number in users()}


def test_snapshots_tell_people_as_objects(spam, export) -> None:
    for task in export:
        for one in task["annotations"]:
            one["completed_by"] = {"id": one["completed_by"], "email": f"{one['id']}@example.org"}
    told = read_export(spam, export).told
    wanted = {f"{one['id']}@example.org" for task in export for one in task["annotations"]}
    assert {one.who for one in told} == wanted and len(told) == len(wanted) == 6


def test_drafts_and_predictions_are_no_answers(spam, export) -> None:
    for task in export:
        task["drafts"], task["annotations"] = task["annotations"], []
        task["predictions"] = task["drafts"]
    assert read_export(spam, export).told == ()


def test_tasks_that_are_none_of_ours_are_counted(spam, export) -> None:
    export[0]["data"] = {"text": "of somebody else"}
    export[1]["data"] = {}
    found = read_export(spam, export)
    assert found.others == 2 and len(found.tasks) == 4


def changed(export, *path, to):
    made = copy.deepcopy(export)
    place = made
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = to
    return made


FIRST = (0, "annotations", 0)
CHOICES = (*FIRST, "result", 0, "value", "choices")


@pytest.mark.parametrize(
    ("path", "to", "words"),
    [
        (CHOICES, ["eggs"], "task .* of Label Studio: expected a label among spam, ham; got"),
        (CHOICES, ["spam", "ham"], "got 'spam, ham'"),
        (CHOICES, [], "expected a label among spam, ham"),
        (CHOICES, "spam", "expected a label among spam, ham"),
        ((*FIRST, "result", 0, "value"), None, "expected a label among"),
        ((*FIRST, "result", 0, "from_name"), "mood", "the control 'label', got mood"),
        ((*FIRST, "result"), None, "an annotation without result"),
        ((*FIRST, "result"), ["x"], "an annotation without result"),
        ((*FIRST, "unique_id"), None, "without unique_id"),
        ((*FIRST, "unique_id"), "a b", "without unique_id"),
        ((*FIRST, "updated_at"), "yesterday", "updated_at 'yesterday' in task"),
        ((*FIRST, "updated_at"), None, "updated_at 'None'"),
        (FIRST, 7, "an annotation that is no object"),
        ((0, "created_at"), "9999-12-31T23:59:59-23:59", "created_at"),
        ((0, "annotations"), None, "without data or annotations"),
        ((0, "data", "evgp_row_id"), "m999", "expected the id of a row"),
        ((0, "data", "evgp_row_id"), None, "expected the id of a row"),
        ((0, "data", "evgp_pool"), "0" * 16, "made from another pool"),
        ((0, "data", "evgp_campaign"), "0" * 16, "for another campaign on the same pool"),
        ((0, "data", "evgp_campaign"), [1], "for another campaign on the same pool"),
        ((0,), "half", "got list"),
    ],
)  # fmt: skip
def test_whatever_is_wrong_is_refused_and_nothing_is_taken(spam, export, path, to, words) -> None:
    before = spam.log()
    with pytest.raises(CampaignError, match=words):
        take(spam, read_export(spam, changed(export, *path, to=to), NAMES))
    assert spam.log() == before


def test_tasks_with_the_mark_of_the_campaign_are_taken(spam, export) -> None:
    for task in export[::2]:
        task["data"]["evgp_campaign"] = campaign_mark(spam)
    assert take(spam, read_export(spam, export)).new == 6


def without(export, name):
    """An export from before an annotation was made, or from after it was deleted."""
    made = copy.deepcopy(export)
    for task in made:
        task["annotations"] = [one for one in task["annotations"] if one["unique_id"] != name]
    return made


def test_an_old_file_takes_nothing_back_that_came_later(spam, export) -> None:
    last = max((one for task in export for one in task["annotations"]), key=lambda a: a["id"])
    old = without(export, last["unique_id"])
    for task in old:
        task["updated_at"] = task["created_at"]
    for known in (old, export, old, export):
        assert take(spam, read_export(spam, known)).gone == 0
    assert len(said(spam)) == 5
    later = without(export, last["unique_id"])  # its task tells that something happened since
    assert read_export(spam, later).newest > read_export(spam, old).newest
    assert take(spam, read_export(spam, later)).gone == 1 and len(said(spam)) == 4
    assert take(spam, read_export(spam, export)).new == 1 and len(said(spam)) == 5


@pytest.mark.parametrize("other", [{}, {"detail": "no"}, None, 3, "text", [[]]])
def test_what_is_no_export_is_refused(spam, other) -> None:
    with pytest.raises(CampaignError, match="expected the full JSON export of Label Studio"):
        read_export(spam, other)


def test_the_short_export_is_refused(spam) -> None:
    with pytest.raises(CampaignError, match="not JSON-MIN"):
        read_export(spam, recorded("export_min"))


@pytest.mark.parametrize("number", [True, "many", None, {}, float("nan"), float("inf"), 10**400])
def test_numbers_that_are_none_are_refused(prices, number) -> None:
    export = changed(
        recorded("export_numbers"), 0, "annotations", 0, "result", 0, "value", "number", to=number
    )
    with pytest.raises(CampaignError, match="number as label"):
        read_export(prices, export)


def paths(value, at=()):
    yield at
    if isinstance(value, dict | list):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from paths(one, (*at, key))


EVERY = [path for path in paths(recorded("export")[:2]) if path]
scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats()


@settings(
    max_examples=60,
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
        assert "\n" not in str(error) and "expected" in str(error)
