"""The ML backend, with recorded messages of the real Label Studio."""

import base64
import copy
import json

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from evgp.labelling.campaign import Campaign
from evgp.labelling.label_studio import backend as ours
from evgp.labelling.label_studio.backend import make_backend
from evgp.labelling.label_studio.client import LabelStudioError
from tests.conftest import examples
from tests.labelling.label_studio.conftest import recorded
from tests.labelling.label_studio.real import ANN
from tests.labelling.label_studio.test_answers import changed, paths

SECRET = "a-secret-of-some-length"
BASIC = {"authorization": "Basic " + base64.b64encode(f"evgp:{SECRET}".encode()).decode()}
BEARER = {"authorization": f"Bearer {SECRET}"}
HERE = "http://localhost:9090"


def talking(campaign, **more):
    return TestClient(make_backend(campaign, **more), base_url=HERE, raise_server_exceptions=False)


def hooked(studio, payload):
    """A message as Python writes it, whatever is in it."""
    headers = {"content-type": "application/json"}
    return studio.post("/webhook", content=json.dumps(payload), headers=headers)


@pytest.fixture
def studio(spam):
    return talking(spam)


def answers(campaign):
    return [event for event in campaign.log() if event.event.name == "answered"]


@pytest.fixture
def created():
    return recorded("webhook_annotation_created")


@pytest.fixture
def updated():
    return recorded("webhook_annotation_updated")


def test_health_and_repeated_setup(studio) -> None:
    assert studio.get("/health").json()["status"] == "UP"
    for _ in range(2):
        answer = studio.post("/setup", json=recorded("setup"))
        assert answer.status_code == 200 and answer.json() == {"model_version": "evgp-round-1"}


def test_another_project_is_refused(studio) -> None:
    body_sent = recorded("setup")
    body_sent["schema"] = body_sent["schema"].replace('"spam"', '"eggs"')
    answer = studio.post("/setup", json=body_sent)
    assert answer.status_code == 422 and "got 'eggs' too" in answer.json()["detail"]


def test_each_task_gets_its_gain(studio, spam) -> None:
    body_sent = recorded("predict")
    ours = body_sent["tasks"][0]["data"]
    strange = [{"id": 1, "data": {}}, {"data": ours | {"evgp_pool": "x"}},
               {"id": 2, "data": ours | {"evgp_campaign": "x"}}]  # fmt: skip
    body = studio.post("/predict", json=body_sent | {"tasks": body_sent["tasks"] + strange}).json()
    round = spam.state.rounds[0]
    gains = dict(zip(round.rows, round.gains, strict=True))
    rows = [spam.source.row_of(task["data"]["evgp_row_id"]) for task in body_sent["tasks"]]
    scores = [result["score"] for result in body["results"]]
    assert scores == pytest.approx([gains[row] / round.prior for row in rows] + [0, 0, 0])
    assert all(result["result"] == [] for result in body["results"])
    assert studio.post("/predict", json=body_sent | {"tasks": []}).json()["results"] == []


def test_rows_that_were_not_picked_have_a_gain_too(studio, spam) -> None:
    task = copy.deepcopy(recorded("predict")["tasks"][0])
    free = next(row for row in range(40) if row not in spam.state.picked)
    task["data"]["evgp_row_id"] = spam.source.names[free]
    (body,) = studio.post("/predict", json={"tasks": [task]}).json()["results"]
    assert 0 < body["score"] < 1


def test_an_annotation_is_on_the_disk_once_however_often_it_comes(studio, spam, created) -> None:
    first = studio.post("/webhook", json=created)
    assert (first.status_code, first.json()) == (201, {"taken": 1, "known": 0})
    assert studio.post("/webhook", json=created).json() == {"taken": 0, "known": 1}
    row = spam.source.row_of(created["task"]["data"]["evgp_row_id"])
    assert Campaign.open(spam.path).state.labels == {row: "spam"}
    assert len(answers(spam)) == 1


def test_edits_count_and_late_old_versions_do_not(studio, spam, created, updated) -> None:
    for payload in (created, updated, created, updated):
        assert studio.post("/webhook", json=payload).status_code == 201
    assert list(spam.state.labels.values()) == ["ham"] and len(answers(spam)) == 2


def test_a_late_version_is_recorded_in_order(studio, spam, created, updated) -> None:
    for payload in (updated, created):
        assert studio.post("/webhook", json=payload).status_code == 201
    assert list(spam.state.labels.values()) == ["ham"] and len(answers(spam)) == 1


def test_several_at_once(studio, spam, created) -> None:
    two = copy.deepcopy(created)
    two["action"] = "ANNOTATIONS_CREATED"
    other = copy.deepcopy(created["annotation"])
    other |= {"unique_id": "another", "completed_by": 2}
    two["annotation"], two["task"] = [created["annotation"], other], [created["task"]] * 2
    assert studio.post("/webhook", json=two).json() == {"taken": 2, "known": 0}
    (verdict,) = spam.state.verdicts.values()
    assert set(verdict.answers) == {f"user {created['annotation']['completed_by']}", "user 2"}


def test_other_events_are_ignored(studio, spam) -> None:
    for payload in (
        recorded("webhook_annotations_deleted"),
        {"action": "START_TRAINING", "project": {}},
        {"action": "TASKS_CREATED", "tasks": [1, 2]},
    ):
        answer = studio.post("/webhook", json=payload)
        assert answer.status_code == 201 and answer.json()["taken"] == 0
    assert not answers(spam)


@pytest.mark.parametrize(
    ("part", "to", "words"),
    [
        (("annotation", "result", 0, "value", "choices"), ["eggs"], "got 'eggs'"),
        (("annotation", "unique_id"), None, "without unique_id"),
        (("task", "data", "evgp_pool"), "x", "another pool"),
        (("task", "data", "evgp_campaign"), "x", "another campaign"),
        (("task", "id"), [1], "expected the id of a task, got list"),
        (("annotation", "task"), {"a": 1}, "expected the id of a task, got dict"),
        (("annotation", "result"), {"a": 1}, "an annotation without result"),
        (("annotation", "result", 0, "from_name"), "\ud800", "the control 'label', got \ufffd"),
        (("task",), None, "came without its task"),
        (("annotation",), "x", "body.annotation"),
        (("action",), None, "body.action"),
    ],
)
def test_invalid_annotations_are_reported_to_both_sides(spam, created, part, to, words) -> None:
    heard = []
    place = created
    for item in part[:-1]:
        place = place[item]
    place[part[-1]] = to
    answer = hooked(talking(spam, report=heard.append), created)
    assert answer.status_code == 422 and words in answer.json()["detail"], answer.text
    assert not answers(spam)
    assert words.startswith("body") or any(words in item for item in heard)


ODD = [None, True, -1, 1.5, 10**400, float("nan"), "", "\ud800", "a\nb", [], [1], [[]], {},
       {"a": 1}, [{"id": [1]}], {"id": {"a": 1}}]  # fmt: skip
EVERY = [
    path
    for path in paths(recorded("webhook_annotation_created"))
    if path and path[0] in ("action", "annotation", "task")
]


@settings(
    max_examples=examples(150),
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@example(path=("action",), to="\ud800")
@example(path=("annotation", "completed_by"), to={"id": {"a": 1}})
@given(path=st.sampled_from(EVERY), to=st.sampled_from(ODD))
def test_any_field_of_a_message_may_hold_anything(studio, path, to) -> None:
    """It is taken, or refused in a sentence; 409 where the same version says something else."""
    payload = changed(recorded("webhook_annotation_created"), *path, to=to)
    answer = hooked(studio, payload)
    assert answer.status_code in (201, 409, 422), answer.text


def test_people_are_called_by_name_where_names_can_be_had(spam, created, updated) -> None:
    asked = []

    def people():
        asked.append(1)
        if len(asked) == 1:
            raise LabelStudioError("not now")
        return {created["annotation"]["completed_by"]: ANN}

    studio = talking(spam, people=people)
    studio.post("/webhook", json=created)  # no one could be asked
    other = copy.deepcopy(created)
    other["annotation"]["unique_id"] = "another"
    studio.post("/webhook", json=other)
    studio.post("/webhook", json=updated)
    who = [answer.event.who for answer in answers(spam)]
    number = created["annotation"]["completed_by"]
    assert who == [f"user {number}", ANN, f"user {number}"] and len(asked) == 2


def test_two_spellings_of_a_user_are_one_person(spam, created) -> None:
    names = iter(["Zoe\u0308", "Zo\u00eb"])
    for user in (1, 2):
        created["annotation"] |= {"unique_id": f"a{user}", "completed_by": user}
        answer = talking(spam, people=lambda user=user: {user: next(names)}).post(
            "/webhook", json=created
        )
        assert answer.status_code == 201
    assert [answer.event.who for answer in answers(spam)] == ["Zo\u00eb"] * 2


@pytest.mark.parametrize("path", ["/setup", "/predict", "/webhook"])
def test_the_secret_is_required(spam, created, path, capfd) -> None:
    studio = talking(spam, token=SECRET)
    body = {"/setup": recorded("setup"), "/predict": recorded("predict"), "/webhook": created}[path]
    wrong = (
        "", f"Bearer {SECRET}x", "Bearer", f"Basic {SECRET}", "Basic !!!", f"Digest {SECRET}",
        "Basic " + base64.b64encode(f"{SECRET}:".encode()).decode(),
        "Basic " + base64.b64encode(b"\xff:\xff").decode(),
    )  # fmt: skip
    for header in wrong:
        answer = studio.post(path, json=body, headers={"authorization": header})
        assert answer.status_code == 401 and SECRET not in answer.text, header
    assert studio.post(f"{path}?token={SECRET}", json=body).status_code == 401
    assert not answers(spam)
    for good in (BASIC, BEARER):
        assert studio.post(path, json=body, headers=good).status_code in (200, 201)
    message = capfd.readouterr()
    assert SECRET not in message.out + message.err


def test_the_token_of_the_owner_is_never_repeated(studio, capfd) -> None:
    body_sent = recorded("setup") | {"access_token": "the-token-of-the-owner"}
    for body in (body_sent, body_sent | {"schema": 7}, body_sent | {"schema": "<View/>"}):
        assert "the-token-of-the-owner" not in studio.post("/setup", json=body).text
    message = capfd.readouterr()
    assert "the-token-of-the-owner" not in message.out + message.err


def test_web_pages_and_other_hosts_are_refused(studio, spam, created) -> None:
    for origin in ("https://evil.example", "null", HERE):
        answer = studio.post("/webhook", json=created, headers={"origin": origin})
        assert answer.status_code == 403
    answer = studio.post("/webhook", json=created, headers={"host": "evil.example"})
    assert answer.status_code == 400
    assert not answers(spam)


def test_large_bodies_are_refused(studio, monkeypatch) -> None:
    large = b'{"tasks": [' + b" " * ours.LIMITS["/predict"].max_bytes + b"]}"
    answer = studio.post("/predict", content=large)
    assert answer.status_code == 413


def test_bodies_that_are_not_json(studio) -> None:
    for body in (b"", b"{", b"[1]", b"\xff", b"[" * 50_000):
        for path in ("/setup", "/predict", "/webhook"):
            answer = studio.post(path, content=body, headers={"content-type": "application/json"})
            assert 400 <= answer.status_code < 500, (path, body[:10])
