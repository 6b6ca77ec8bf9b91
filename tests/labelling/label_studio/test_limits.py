"""Bodies that would exhaust memory or time of the ML backend, with and without its token."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evgp.labelling.label_studio import bodies
from evgp.labelling.label_studio.backend import LIMITS, MAX_TASKS, make_backend
from evgp.labelling.label_studio.bodies import LONG, skimmed
from tests.conftest import examples
from tests.labelling.label_studio.conftest import recorded
from tests.labelling.label_studio.test_backend import BEARER, SECRET, answers, hooked, talking
from tests.labelling.web.test_limits import asked, unread
from tests.serving import SOON, ask, head, served, watched

AUTHORISED = f"Authorization: {BEARER['authorization']}"
MANY = 400_000  # empty lists: each is a few bytes here, and seventy in memory


def large(count, item=b"[],"):
    return b'{"tasks":[' + item * count + item[:-1] + b"]}"


@pytest.mark.parametrize("path", ["/setup", "/predict", "/webhook", "/nowhere", "/health"])
def test_nothing_that_strangers_send_is_read(spam, path) -> None:
    backend = make_backend(spam, token=SECRET)
    for header in ({}, {"authorization": f"Bearer {SECRET}x"}):
        # An origin is what browsers send: this is no browser.
        assert asked(backend, "POST", path, unread, origin=None, **header) == 401
    with pytest.raises(AssertionError, match="the body was read"):
        asked(backend, "POST", path, unread, origin=None, **BEARER)


def test_unauthorised_requests_cost_nothing_and_delay_nobody(spam) -> None:
    body = large(4_000_000)
    with served(make_backend(spam, token=SECRET)) as port:
        with watched(port, "/health") as took, ThreadPoolExecutor(3) as pool:
            began = time.monotonic()
            sent = head("POST", "/predict", "Content-Type: application/json", length=len(body))
            actual = list(pool.map(lambda _: ask(port, sent, body), range(3)))
            assert time.monotonic() - began < 5
        assert [item[0] for item in actual if item is not None] == [401] * 3
        assert max(took) < SOON


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (large(MANY), 422, f"expected at most {MAX_TASKS:,} in one request, got {MANY + 1:,}"),
        (large(1_500_000), 413, "more than 1,000,000 values"),
        (large(9_999), 422, "body.tasks: Input should be a valid dictionary"),
        (large(1_100_000, b'"",'), 413, "more than 1,000,000 values"),
        (large(9_999, b"1e99999,"), 422, "body.tasks"),
        (b"[" * 65 + b"]" * 65, 422, "64 levels deep"),
        (b"[" * 900_000, 422, "64 levels deep"),
        (b'{"tasks":' + b"[" * 500 + b"]" * 500 + b"}", 422, "64 levels deep"),
        (b'{"tasks":["' + b'\\"' * 9_000_000, 413, "more than 1,000,000 values"),
        (b'{"tasks":["' + b"\\" * 9_000_000, 422, "not valid JSON"),
        (b" " * 17_000_000, 413, "at most 16,777,216 bytes besides long strings"),
        (b'{"tasks":' + b"1" * 5_000 + b"}", 422, "not valid JSON"),
        (b'{"tasks":["\xff"]}', 422, "not valid JSON"),
        (b'{"tasks":[{}], "tasks":NaN}', 422, "body.tasks"),
    ],
)
def test_bodies_over_a_limit_are_refused_in_one_line(spam, body, status, words) -> None:
    began = time.monotonic()
    answer = talking(spam).post("/predict", content=body)
    assert answer.status_code == status and words in answer.json()["detail"]
    assert len(answer.content) < 300 and time.monotonic() - began < 15


def test_others_are_answered_while_much_is_read(spam, monkeypatch) -> None:
    """Not even the secret lets one request keep others waiting, or many fill the memory."""
    at_once, most = 0, 0

    def counted(*given, **more):
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        time.sleep(0.3)
        at_once -= 1
        return read(*given, **more)

    read = bodies.parsed
    monkeypatch.setattr(bodies, "parsed", counted)
    picture = json.dumps({"tasks": [{"data": {"image": "x" * 2_000_000}}] * 10}).encode()
    with served(make_backend(spam, token=SECRET)) as port:
        sent = head("POST", "/predict", AUTHORISED, length=len(picture))
        with watched(port, "/health") as took, ThreadPoolExecutor(4) as pool:
            actual = list(pool.map(lambda _: ask(port, sent, picture), range(4)))
    assert [item[0] for item in actual] == [200] * 4 and most == LIMITS[
        "/predict"
    ].max_concurrent == 1
    assert len(took) > 10 and max(took) < SOON


def test_pictures_are_as_large_as_they_are(spam) -> None:
    """Two hundred tasks with pictures, as Label Studio sends them, all at once."""
    tasks = recorded("predict")["tasks"][:1] * 200
    for i, task in enumerate(tasks):
        tasks[i] = task | {
            "data": task["data"] | {"image": "data:image/jpeg;base64," + "Q" * 300_000}
        }
    answer = talking(spam).post("/predict", json={"tasks": tasks})
    scores = {result["score"] for result in answer.json()["results"]}
    assert len(answer.json()["results"]) == 200 and len(scores) == 1 and scores.pop() > 0


def test_long_texts_of_an_event_are_removed_and_its_label_is_recorded(spam) -> None:
    created = recorded("webhook_annotation_created")
    created["task"]["data"]["text_1"] = 'a "quoted" \\ text ' * 9_000
    assert hooked(talking(spam), created).status_code == 201 and len(answers(spam)) == 1


def shortened(value, long):
    """What skimming should leave of a value."""
    if isinstance(value, str):
        return "" if len(json.dumps(value)) - 1 > long else value
    if isinstance(value, list):
        return [shortened(item, long) for item in value]
    if isinstance(value, dict):
        return {shortened(key, long): shortened(item, long) for key, item in value.items()}
    return value


TEXTS = st.text(st.sampled_from('ab"\\/[]{},:\n\u00e9\U0001f600'), max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=examples(300), deadline=None)
@given(VALUES, st.integers(1, 20))
def test_skimming_changes_nothing_but_long_texts(value, long) -> None:
    body = json.dumps(value).encode()
    kept, outside = skimmed(body, long)
    assert json.loads(kept) == shortened(value, long)
    assert json.loads(skimmed(body, LONG)[0]) == value
    bare = json.dumps(
        json.loads(body, object_pairs_hook=lambda pairs: [[0, item] for _, item in pairs])
    )
    assert b'"' not in outside and outside.count(b"[") <= bare.count("[")


@settings(max_examples=examples(300), deadline=None)
@given(st.text('"\\ab[]', max_size=30).map(str.encode))
def test_skimming_takes_any_bytes(body) -> None:
    try:
        kept, _ = skimmed(body, 3)
    except bodies.HTTPException as error:
        assert error.status_code == 422
    else:
        assert len(kept) <= len(body) + 2


def test_wrong_secrets_are_slowed_and_the_right_one_gets_in(spam) -> None:
    studio, began = talking(spam, token=SECRET), time.monotonic()
    codes = [
        studio.post("/predict", json={}, headers={"authorization": f"Bearer {i}"}).status_code
        for i in range(6)
    ]
    assert codes == [401] * 6 and time.monotonic() - began >= 1.5
    assert studio.get("/health").status_code == 200
    assert studio.post("/predict", json=recorded("predict"), headers=BEARER).status_code == 200


def test_a_webhook_without_its_secret_keeps_nobody_out(spam) -> None:
    """Label Studio makes one by itself, and sends every event to it."""
    studio, began = talking(spam, token=SECRET), time.monotonic()
    created = recorded("webhook_annotation_created")
    for header in ({}, {"authorization": "Bearer of-last-year"}):
        for _ in range(20):
            assert studio.post("/webhook", json=created, headers=header).status_code == 401
    assert studio.post("/webhook", json=created, headers=BEARER).status_code == 201
    assert time.monotonic() - began < 5
