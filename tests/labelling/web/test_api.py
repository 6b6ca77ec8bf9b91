"""The HTTP API."""

import threading
import time

import pytest
from starlette.testclient import TestClient

from evgp.labelling.campaign import Campaign
from evgp.labelling.campaign.events import Answered
from evgp.labelling.web import LabellingService, Sessions, make_app
from evgp.labelling.web.service import Leases
from tests.labelling.web.conftest import HERE, person_of, running


def answers(campaign):
    return [event.event for event in campaign.log() if isinstance(event.event, Answered)]


def test_from_signing_in_to_a_label_on_the_disk(ann, service) -> None:
    about = ann.get("/api/campaign").json()
    assert (about["name"], about["classes"], about["person"]) == ("spam", ["spam", "ham"], "ann")
    body = ann.post("/api/next", json={"count": 2}).json()
    first = body["items"][0]
    assert [item["rank"] for item in body["items"]] == [1, 2] and not body["done"]
    assert {cell["name"] for cell in first["cells"]} == {"length", "links", "subject"}
    answer = ann.says(first["row"], "ham")
    assert answer.status_code == 200 and not answer.json()["repeated"]
    assert Campaign.open(service.campaign.path).state.labels == {first["row"]: "ham"}
    assert ann.rows()[0] != first["row"]
    assert ann.get("/api/progress").json() | {"waiting": 0} == {
        "rows": 60, "labelled": 1, "waiting": 0, "passed": 0, "mine": 1,
    }  # fmt: skip


def test_the_same_key_is_harmless_and_another_body_is_refused(ann, service) -> None:
    row = ann.rows()[0]
    first = ann.says(row, "ham", key="key-00000001").json()
    again = ann.says(row, "ham", key="key-00000001").json()
    assert again == {"number": first["number"], "repeated": True}
    refused = ann.says(row, "spam", key="key-00000001")
    assert refused.status_code == 409 and "use a new key" in refused.json()["detail"]
    assert len(answers(service.campaign)) == 1


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"value": "eggs"}, "expected a label among spam, ham; got 'eggs'"),
        ({"row": 999}, "expected a row from 0 to 59"),
        ({"kind": "skip"}, "expected no label with skip"),
        ({"kind": "maybe"}, "body.kind"),
        ({"row": "1; DROP TABLE event"}, "body.row"),
        ({"row": -1}, "body.row"),
        ({"key": "short"}, "body.key"),
        ({"key": "with spaces in it"}, "body.key"),
        ({"more": 1}, "body.more"),
        ({"value": 10**400}, "expected a label among"),
    ],
)
def test_invalid_answers_are_refused_in_one_line(ann, service, body, words) -> None:
    answered = {"row": 1, "value": "ham", "key": "key-00000001"} | body
    answer = ann.post("/api/answers", json=answered)
    assert answer.status_code == 422 and words in answer.json()["detail"], answer.text
    assert not answers(service.campaign)


def test_numbers(mails, tmp_path) -> None:
    campaign = Campaign.create(tmp_path / "n", mails, id="key", number=True, drop=["subject"])
    campaign.next(4)
    with running(LabellingService(campaign, k=2)) as app:
        ann = person_of(app)
        assert ann.says(1, 2).status_code == ann.says(2, "2.5").status_code == 200
        assert campaign.state.labels == {1: 2.0, 2: 2.5}
        for value in (10**400, "two", None, "nan", 10**101, -1.7e308):
            assert ann.says(3, value).status_code == 422, value
        assert "from -1e+100 to 1e+100, got 1e+200; check" in ann.says(3, 1e200).text
        assert ann.says(4, -1e100).status_code == 200
        raw = '{"row": 3, "value": NaN, "key": "key-00000001"}'
        headers = {"content-type": "application/json"}
        assert ann.post("/api/answers", content=raw, headers=headers).status_code == 422


def test_numbers_too_large_in_an_old_campaign_are_shown(mails, tmp_path) -> None:
    campaign = Campaign.create(tmp_path / "n", mails, id="key", number=True, drop=["subject"])
    rows = [item.row for item in campaign.next(6)]
    message = [("ann", 1.7e308), ("bob", 1.7e308)], [("ann", 1e200), ("bob", -1e200)]
    message += [("ann", -1.7e308)], [("ann", 2.0), ("bob", 3.0)]
    events = [
        Answered(row, *item)
        for row, pair in zip(rows, message, strict=False)
        for item in ((who, "label", value) for who, value in pair)
    ]
    campaign.add(lambda entries: [(f"old {i}", item) for i, item in enumerate(events)])
    campaign.close()
    with running(LabellingService(Campaign.open(campaign.path), k=2)) as app:
        page = person_of(app).get("/overview")
        assert page.status_code == 200 and "of 3 rows with several labels; α" in page.text


def test_requests_for_another_campaign_are_refused(ann, service, mails, tmp_path) -> None:
    other = Campaign.create(tmp_path / "other", mails, id="key", number=True, drop=["subject"])
    theirs, ours = LabellingService(other).identity, ann.get("/api/campaign").json()["campaign"]
    other.close()
    assert (
        ours != theirs and ours == LabellingService(Campaign.open(service.campaign.path)).identity
    )
    assert f'<meta name="campaign" content="{ours}">' in ann.get("/").text
    row = ann.rows()[0]
    assert ann.says(row, "ham", campaign=ours).status_code == 200
    for path, body in (
        ("/api/answers", {"row": row, "value": "spam", "key": "key-00000001"}),
        ("/api/undo", {"key": "key-00000002"}),
        ("/api/next", {}),
    ):
        refused = ann.post(path, json=body | {"campaign": theirs})
        assert refused.status_code == 409 and refused.headers["x-evgp-campaign"] == ours
        assert (
            "for another campaign than the one served here; serve that one"
            in refused.json()["detail"]
        )
    assert service.campaign.state.labels == {row: "ham"} and len(answers(service.campaign)) == 1
    assert ann.says(row, "spam", key="key-00000001", campaign=ours).status_code == 200


def test_skips_and_unsure_answers_are_not_labels(ann, service) -> None:
    first, two = ann.rows(2)
    assert ann.says(first, None, kind="skip").status_code == 200
    assert ann.says(two, None, kind="unsure").status_code == 200
    assert service.campaign.state.passed == [first, two]
    assert not {first, two} & set(ann.rows(20))


def test_undo_returns_the_row_and_happens_once(ann, service) -> None:
    item, two = ann.rows(2)
    ann.says(item, "ham")
    ann.says(two, "spam")
    first = ann.post("/api/undo", json={"key": "undo-0001"})
    assert first.json()["item"]["row"] == two and first.json()["value"] == "spam"
    assert ann.post("/api/undo", json={"key": "undo-0001"}).json() == first.json()
    assert service.campaign.state.labels == {item: "ham"}
    assert two in ann.rows()
    ann.post("/api/undo", json={"key": "undo-0002"})
    refused = ann.post("/api/undo", json={"key": "undo-0003"})
    assert refused.status_code == 422 and "has no answer to undo" in refused.json()["detail"]


def test_undo_keeps_to_three_rows_and_calls_none_of_them_lost(spam) -> None:
    spam.next(20)
    with running(LabellingService(spam, k=20)) as app:
        ann, done = person_of(app), []
        for _ in range(8):
            done += ann.rows(1)
            ann.says(done[-1], "ham")
        ann.rows()
        for at in range(6):
            ann.post("/api/undo", json={"key": f"undo-000{at}"})
        held = app.state.service.leases.held()
        assert len(held) <= 3 and done[2] in held
        handed = ann.post("/api/next", json={"count": 9, "holding": done[2:]}).json()
        rows = [item["row"] for item in handed["items"]]
        assert rows[0] == done[2] and len(rows) == 3 and not set(rows) & set(handed["lost"])
        assert len(app.state.service.leases.held()) == 3


def test_two_people_get_different_rows_until_the_lease_expires(service) -> None:
    now = [0.0]
    service.leases = Leases(60, clock=lambda: now[0])
    with running(service) as app:
        ann, bob = person_of(app), person_of(app, "bob")
        mine, theirs = ann.rows(3), bob.rows(3)
        assert not set(mine) & set(theirs)
        assert ann.rows(3) == mine  # asking again keeps them
        now[0] = 61
        assert bob.rows(3)[:1] == mine[:1]  # they are free
        assert ann.says(mine[0], "ham").status_code == 200  # late, and taken all the same
        assert bob.says(mine[0], "spam").status_code == 200
    state = Campaign.open(service.campaign.path).state
    assert set(state.verdicts[mine[0]].answers) == {"ann", "bob"}
    assert state.verdicts[mine[0]].disputed and state.labels[mine[0]] == "ham"


def test_nobody_holds_more_than_three_rows_however_they_ask(spam) -> None:
    spam.next(20)
    with running(LabellingService(spam, k=20)) as app:
        ann, best = person_of(app), spam.state.pending
        assert ann.rows(20) == best[:3]
        for holding in ([], best[3:12], [*best[:3], *best[10:20]]):
            ann.post("/api/next", json={"count": 20, "holding": holding})
            assert len(app.state.service.leases.held()) <= 3
        assert person_of(app, "bob").rows(20) == best[3:6]


def test_signing_out_releases_the_rows(app) -> None:
    ann, bob = person_of(app), person_of(app, "bob")
    mine = ann.rows(3)
    assert ann.delete("/api/session").status_code == 204
    assert ann.post("/api/next", json={}).status_code == 401
    assert bob.rows(3) == mine


def test_released_rows_go_to_others(app, service) -> None:
    ann, bob = person_of(app), person_of(app, "bob")
    mine, theirs = ann.rows(3), bob.rows(3)
    assert ann.post("/api/release", json={"rows": [*mine[:2], theirs[0]]}).status_code == 204
    assert service.leases.held() == {mine[2], *theirs}  # no one releases the rows of others
    for row in theirs:
        bob.says(row, "ham")
    assert set(mine[:2]) < set(bob.rows())
    other = ann.post("/api/release", json={"rows": mine, "campaign": "another"})
    assert other.status_code == 409 and mine[2] in service.leases.held()
    for rows in ([1] * 41, ["1"], None, 3):
        assert ann.post("/api/release", json={"rows": rows}).status_code == 422


def test_a_second_person_labels_some_rows_too_and_agreement_is_shown(spam) -> None:
    spam.next(12)
    with running(LabellingService(spam, k=4, twice=100)) as app:
        ann, bob = person_of(app), person_of(app, "bob")
        rows = []
        for _ in range(4):
            rows += ann.rows(1)
            ann.says(rows[-1], "ham")
        assert not set(rows) & set(ann.rows())
        ann.delete("/api/session")
        for row, value in zip(rows, ["ham", "ham", "spam", "ham"], strict=True):
            assert bob.rows()[0] == row
            bob.says(row, value)
        page = bob.get("/overview").text
        assert "<b>75 %</b> of 4 rows with several labels" in page and "75 % of 4" in page


def test_a_full_disk_is_507_and_loses_nothing(ann, service) -> None:
    connection = service.campaign._journal._connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count={pages}")
    taken = 0
    while (answer := ann.says(taken % 60, "ham")).status_code == 200:
        taken += 1
    assert answer.status_code == 507 and "no acknowledged answer is lost" in answer.json()["detail"]
    assert ann.says(3, "ham", key="key-when-full").status_code == 507
    assert len(answers(Campaign.open(service.campaign.path))) == taken > 0
    connection.execute("PRAGMA max_page_count=100000")
    assert ann.says(3, "ham", key="key-when-full").json()["repeated"] is False
    assert len(answers(Campaign.open(service.campaign.path))) == taken + 1


def test_a_file_that_fails_for_a_while_is_503(ann, service, monkeypatch) -> None:
    def fails(given):
        raise RuntimeError("the disk failed")

    with monkeypatch.context() as patched:
        patched.setattr(service.campaign, "submit", fails)
        answer = ann.says(1, "ham", key="key-00000001")
    assert answer.status_code == 503 and answer.json()["detail"] == "the disk failed"
    assert ann.says(1, "ham", key="key-00000001").json()["repeated"] is False


def test_queued_answers_are_committed_together_and_fail_alone(app, service, monkeypatch) -> None:
    sizes, gate, submit = [], threading.Event(), service.campaign.submit

    def slowly(given):
        sizes.append(len(given))
        gate.wait(10)
        return submit(given)

    monkeypatch.setattr(service.campaign, "submit", slowly)
    people = [person_of(app, f"p{i}") for i in range(6)]
    entries = {}

    def sends(i):
        value = "eggs" if i == 4 else "ham"
        entries[i] = people[i].says(i, value, key="the-same-key" if i in (2, 3) else None)

    threads = [threading.Thread(target=sends, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
        time.sleep(0.05)
    time.sleep(0.3)
    gate.set()
    for thread in threads:
        thread.join()
    assert sizes == [1, 5]
    codes = [entries[i].status_code for i in range(6)]
    assert codes == [200, 200, 200, 409, 422, 200]
    assert set(service.campaign.state.labels) == {0, 1, 2, 5}


def test_picking_ahead_never_blocks_an_answer(spam, monkeypatch) -> None:
    spam.next(3)
    begun, gate, pick = threading.Event(), threading.Event(), spam._pick

    def slowly(*given):
        begun.set()
        assert gate.wait(20)
        return pick(*given)

    monkeypatch.setattr(spam, "_pick", slowly)
    with running(LabellingService(spam, k=8)) as app:
        assert begun.wait(10)
        ann = person_of(app)
        rows = ann.rows(3)
        assert [ann.says(row, "ham").status_code for row in rows] == [200] * 3
        body = ann.post("/api/next", json={}).json()
        assert body["items"] == [] and body["picking"] and not body["done"]
        gate.set()
        until = time.monotonic() + 20
        while not (more := ann.rows(6)) and time.monotonic() < until:
            time.sleep(0.05)
        assert more and not set(more) & set(rows)


def test_a_failed_pick_is_shown(spam, monkeypatch) -> None:
    def fails(*given):
        raise ValueError("no\nluck")

    monkeypatch.setattr(spam, "_pick", fails)
    with running(LabellingService(spam, k=6)) as app:
        ann = person_of(app)
        until = time.monotonic() + 10
        while not (body := ann.post("/api/next", json={}).json())["problem"]:
            assert time.monotonic() < until
            time.sleep(0.05)
        assert body["problem"] == "no luck"
        assert "no luck" in ann.get("/overview").text


def test_it_ends_when_every_row_is_answered(ann, service) -> None:
    for row in range(60):
        ann.says(row, None, kind="skip")
    body = ann.post("/api/next", json={}).json()
    assert body["done"] and not body["items"]


def test_a_session_outlives_the_server(spam) -> None:
    spam.next(4)
    with running(LabellingService(spam, k=2)) as app:
        ann = person_of(app)
    with running(LabellingService(Campaign.open(spam.path), k=2)) as app:
        later = TestClient(app, base_url=HERE, headers=ann.headers, cookies=ann.cookies)
        assert later.get("/api/progress").status_code == 200
    other = make_app(LabellingService(Campaign.open(spam.path)), Sessions("another secret"))
    assert TestClient(other, base_url=HERE, cookies=ann.cookies).get("/api/progress").is_error


def test_people_keep_their_rows_when_the_server_starts_again(spam, monkeypatch) -> None:
    spam.next(20)
    with running(LabellingService(spam, k=2)) as app:
        ann, bob = person_of(app), person_of(app, "bob")
        mine, theirs = ann.rows(3), bob.rows(3)
        bob.says(theirs.pop(), "ham")
    with running(LabellingService(Campaign.open(spam.path), k=2)) as app:
        again = [person_of(app), person_of(app, "bob")]
        held = again[1].post("/api/next", json={"count": 9, "holding": theirs}).json()
        assert [item["row"] for item in held["items"]] == theirs and held["picking"]
        asked = {"count": 9, "holding": [theirs[0], 59, *mine]}
        body = again[0].post("/api/next", json=asked).json()
        assert [item["row"] for item in body["items"]] == mine
        assert set(body["lost"]) >= {theirs[0]}
        monkeypatch.setattr(app.state.service, "_recovers", 0.0)
        again[0].says(mine.pop(0), "ham")
        more = again[0].post("/api/next", json={"count": 9, "holding": mine}).json()
        rows = [item["row"] for item in more["items"]]
        assert rows[:2] == mine and len(rows) == 3 and not set(rows) & set(theirs)
