"""The whole round trip with the real Label Studio; `make test-label-studio` runs it.

What the server sends is written down in `recorded/` with EVGP_RECORD=1; the quick tests use it.
"""

import base64
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from PIL import Image

from evgp.labelling.campaign import Campaign
from evgp.labelling.label_studio.answers import read_export, record_export
from evgp.labelling.label_studio.client import LabelStudio, LabelStudioError
from evgp.labelling.label_studio.config import Layout, label_config
from tests.conftest import QUIET, chromium
from tests.labelling.label_studio.conftest import RECORDED, photos_in, spam_in
from tests.labelling.label_studio.real import (
    ANN,
    BOB,
    LEGACY,
    PASSWORD,
    VARIABLE,
    Ear,
    annotate,
    choice,
    evgp,
    migrated,
    project_of,
    record,
    started,
    tasks_of,
)  # fmt: skip

pytestmark = pytest.mark.slow
SECRET = "a-secret-of-the-backend"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = os.environ.get(VARIABLE)
    if not path:
        pytest.skip(f"no Label Studio here; make test-label-studio installs one (${VARIABLE})")
    binary = Path(path)
    folder = tmp_path_factory.mktemp("label-studio") / "data"
    shutil.copytree(migrated(binary), folder)
    with started(binary, folder) as result:
        yield result


@pytest.fixture(scope="module")
def api(server):
    with server.api() as result:
        yield result


@pytest.fixture(scope="module")
def personal(api):
    """A personal access token of Ann's."""
    api.post("/api/jwt/settings", json={"api_tokens_enabled": True})
    answer = api.post("/api/token/")
    assert answer.status_code == 201, answer.text
    return answer.json()["token"]


@pytest.fixture(scope="module")
def bob(server, api):
    """A second person, who came by an invitation; signed in as with a browser."""
    link = api.get("/api/invite").json()["invite_url"]
    client = httpx.Client(base_url=server.url, follow_redirects=True, timeout=120)
    page = client.get(link).text
    match = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    assert match is not None
    client.post(
        link,
        data={"csrfmiddlewaretoken": match[1], "email": BOB, "password": PASSWORD},
        headers={"referer": server.url},
    )
    assert client.get("/api/current-user/whoami").json()["email"] == BOB
    client.headers["x-csrftoken"] = client.cookies["csrftoken"]
    client.headers["referer"] = server.url
    yield client
    client.close()


def test_out_and_back_with_two_people(server, api, bob, tmp_path) -> None:
    spam_in(tmp_path).close()
    result = evgp(server, tmp_path, "push", "spam", "-k", 6)
    project = project_of(result)
    assert "6 tasks sent" in result
    assert "0 tasks sent" in evgp(server, tmp_path, "push", "spam")  # nothing is doubled
    campaign = Campaign.open(tmp_path / "spam")
    order = [campaign.source.names[row] for row in campaign.state.picked]
    ids = tasks_of(api, project)
    assert list(ids) == order and list(ids.values()) == sorted(ids.values())
    following = api.get(f"/api/projects/{project}/next").json()
    assert following["data"]["evgp_rank"] == 1  # people get the best row first
    record("task", {item: following[item] for item in ("id", "data", "created_at", "project")})

    item, two, three, four, five, six = (ids[name] for name in order)
    first = annotate(api, item, choice("spam"))
    annotate(bob, item, choice("ham"))
    second = annotate(api, two, choice("ham"))
    annotate(api, three, was_cancelled=True)
    annotate(bob, four, choice("cannot tell"))
    annotate(bob, five)
    every = {"exportType": "JSON", "download_all_tasks": "true"}
    record("export", api.get(f"/api/projects/{project}/export", params=every).json())
    record("users", api.get("/api/users/").json())
    record("projects", api.get("/api/projects/", params={"page_size": 50}).json())
    short = {"project": project, "page_size": 100, "fields": "task_only", "include": "id,data"}
    record("tasks", api.get("/api/tasks/", params=short).json())

    assert "6 new answers, 0 changed" in evgp(server, tmp_path, "pull", "spam")
    before = campaign.log()
    assert "0 new answers, 0 changed, 0 undone; 6 were known" in evgp(
        server, tmp_path, "pull", "spam"
    )
    assert campaign.log() == before  # twice is harmless
    state = campaign.state
    message = {campaign.source.names[row]: item.answers for row, item in state.verdicts.items()}
    assert {who: item.value for who, item in message[order[0]].items()} == {ANN: "spam", BOB: "ham"}
    assert state.verdicts[state.picked[0]].disputed
    assert message[order[2]][ANN].kind == "skip" and message[order[3]][BOB].kind == "unsure"
    assert message[order[4]][BOB].kind == "skip" and state.pending == [state.picked[5]]

    api.patch(f"/api/annotations/{first['id']}/", json={"result": [choice("ham")]})
    assert api.delete(f"/api/annotations/{second['id']}/").status_code == 204
    assert api.delete(f"/api/tasks/{four}/").status_code == 204
    result = evgp(server, tmp_path, "pull", "spam")
    assert "0 new answers, 1 changed, 1 undone" in result
    state = campaign.state
    assert state.labels == {state.picked[0]: "ham"} and not state.verdicts[state.picked[0]].disputed
    assert state.picked[1] in state.pending  # its annotation was deleted
    assert state.picked[3] not in state.pending  # its task was deleted, which is no information
    assert "2 tasks sent" in evgp(server, tmp_path, "push", "spam", "-k", 4)
    assert six in tasks_of(api, project).values()


def test_a_personal_access_token_does_too(server, personal, tmp_path) -> None:
    spam_in(tmp_path, "personal").close()
    assert "3 tasks sent" in evgp(server, tmp_path, "push", "personal", "-k", 3, token=personal)
    assert "0 new" in evgp(server, tmp_path, "pull", "personal", token=personal)
    with LabelStudio(server.url, personal) as client:
        client._access = "expired"  # as after five minutes
        assert client.people()[1] == ANN


def test_wrong_tokens_numbers_and_configs_are_reported_in_one_line(server, api, tmp_path) -> None:
    spam_in(tmp_path).close()
    for token in ("f" * 40, "eyJhbGciOiJIUzI1NiJ9.eyJ0b2tlbl90eXBlIjoicmVmcmVzaCJ9.c2ln"):
        assert "(401)" in evgp(server, tmp_path, "push", "spam", token=token, code=1)
    assert "(404)" in evgp(server, tmp_path, "pull", "spam", "--project", 99999, code=1)
    assert "create it with evgp campaign push" in evgp(server, tmp_path, "pull", "spam", code=1)
    other = api.post("/api/projects/", json={
        "title": "another", "label_config": label_config(["cat", "dog"], Layout()),
    }).json()["id"]  # fmt: skip
    for command in ("push", "pull"):
        result = evgp(server, tmp_path, command, "spam", "--project", other, code=1)
        assert "expected the classes spam, ham" in result and len(result.strip().splitlines()) == 1
    assert Campaign.open(tmp_path / "spam").log()[-1].number == 1  # nothing was written


def test_invalid_numbers_and_labels(server, api, tmp_path) -> None:
    spam_in(tmp_path, "prices", classes=(), number=True).close()
    project = project_of(evgp(server, tmp_path, "push", "prices", "-k", 3))
    item, two, three = tasks_of(api, project).values()
    number = {"from_name": "label", "to_name": "row", "type": "number", "value": {"number": 2.5}}
    annotate(api, item, number)
    annotate(api, two, choice("cannot tell", "doubt"))
    record("export_numbers", api.get(f"/api/projects/{project}/export?exportType=JSON").json())
    evgp(server, tmp_path, "pull", "prices")
    campaign = Campaign.open(tmp_path / "prices")
    first, second, _ = campaign.state.picked
    assert campaign.state.labels == {first: 2.5} and campaign.state.passed == [second]
    before = campaign.log()
    annotate(api, three, number | {"value": {"number": "many"}})
    result = evgp(server, tmp_path, "pull", "prices", code=1)
    assert f"task {three} of Label Studio: expected a number as label" in result
    assert campaign.log() == before


ODD = [
    "a&b",
    '"quoted"',
    "<b>bold</b>",
    "it's",
    "ünïcode 漢字",
    "$price",
    "0",
    "null",
    "a  b"[:1] * 60,
]


def test_odd_classes_survive(server, api, tmp_path) -> None:
    spam_in(tmp_path, "odd", classes=ODD).close()
    project = project_of(evgp(server, tmp_path, "push", "odd", "-k", len(ODD)))
    for task, value in zip(tasks_of(api, project).values(), ODD, strict=True):
        annotate(api, task, choice(value))
    evgp(server, tmp_path, "pull", "odd")
    assert list(Campaign.open(tmp_path / "odd").state.labels.values()) == ODD


@contextmanager
def backend(server, folder, name):
    """`evgp campaign serve --label-studio` in a process of its own."""
    environment = os.environ | {
        "LABEL_STUDIO_URL": server.url, "LABEL_STUDIO_API_KEY": LEGACY, "EVGP_TOKEN": SECRET,
    }  # fmt: skip
    running = subprocess.Popen(
        [sys.executable, "-m", "evgp", "campaign", "serve", name, "--label-studio", "--port", "0"],
        cwd=folder, env=environment, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert running.stderr is not None
    match = re.search(r"http://[\d.:]+", running.stderr.readline())
    assert match is not None
    try:
        yield match[0], running
    finally:
        running.kill()
        running.wait()
        running.stderr.close()


def test_the_backend_scores_and_records_and_survives_kill(server, api, tmp_path) -> None:
    spam_in(tmp_path).close()
    project = project_of(evgp(server, tmp_path, "push", "spam", "-k", 4))
    tasks = list(tasks_of(api, project).values())
    campaign = Campaign.open(tmp_path / "spam")
    with backend(server, tmp_path, "spam") as (url, running):
        arguments = {"url": url, "project": project, "title": "evgp", "auth_method": "BASIC_AUTH"}
        wrong = {"basic_auth_user": "evgp", "basic_auth_pass": "another-secret"}
        assert api.post("/api/ml/", json=arguments | wrong).status_code == 400
        answer = api.post("/api/ml/", json=arguments | wrong | {"basic_auth_pass": SECRET})
        assert answer.status_code == 201 and answer.json()["readable_state"] == "Connected"
        assert answer.json()["model_version"] == "evgp-round-1"
        (hook,) = api.get("/api/webhooks/", params={"project": project}).json()
        assert hook["url"] == f"{url}/webhook" and hook["headers"] == {}
        annotate(api, tasks[0], choice("ham"))  # the webhook has no secret yet
        assert not campaign.state.labels
        changed = {"headers": {"Authorization": f"Bearer {SECRET}"}}
        assert api.patch(f"/api/webhooks/{hook['id']}/", json=changed).status_code == 200

        asked = {"selectedItems": {"all": True, "excluded": []}}
        api.post(
            "/api/dm/actions", params={"id": "retrieve_tasks_predictions", "project": project},
            json=asked,
        )  # fmt: skip
        body = api.get("/api/predictions/", params={"project": project}).json()
        scores = {item["task"]: item["score"] for item in body}
        round = campaign.state.rounds[0]
        assert [scores[task] for task in tasks] == pytest.approx(
            [gain / round.prior for gain in round.gains]
        )

        result = annotate(api, tasks[1], choice("spam"))
        assert campaign.state.labels == {round.rows[1]: "spam"}  # it is there when the answer is
        assert set(campaign.state.verdicts[round.rows[1]].answers) == {ANN}
        running.send_signal(signal.SIGKILL)
        running.wait()
    assert Campaign.open(tmp_path / "spam").state.labels == {round.rows[1]: "spam"}
    api.patch(
        f"/api/annotations/{result['id']}/", json={"result": [choice("ham")]}
    )  # nothing listens
    outcome = evgp(server, tmp_path, "pull", "spam")
    assert "1 new answers, 1 changed, 0 undone" in outcome
    assert campaign.state.labels == {round.rows[1]: "ham", round.rows[0]: "ham"}


def test_what_it_sends_to_backends_is_as_recorded(server, api, tmp_path) -> None:
    """The shapes that the quick tests rely on are those of today's server."""
    spam_in(tmp_path).close()
    project = project_of(evgp(server, tmp_path, "push", "spam", "-k", 6))
    tasks = list(tasks_of(api, project).values())
    ear = Ear()
    api.post("/api/ml/", json={"url": ear.url, "project": project, "title": "ear"})
    result = annotate(api, tasks[0], choice("spam"))
    annotate(api, tasks[1], was_cancelled=True)
    api.patch(f"/api/annotations/{result['id']}/", json={"result": [choice("ham")]})
    api.delete(f"/api/annotations/{result['id']}/")
    api.post(
        "/api/dm/actions", params={"id": "retrieve_tasks_predictions", "project": project},
        json={"selectedItems": {"all": True, "excluded": []}},
    )  # fmt: skip
    ear.server.shutdown()
    ear.server.server_close()
    setup = ear.body("/setup")
    assert setup["access_token"] == LEGACY  # the token of the owner, which must stay secret
    record("setup", setup)
    record("predict", ear.body("/predict"))
    assert not any("Authorization" in headers for *_, headers, _ in ear.heard)
    for action in ("ANNOTATION_CREATED", "ANNOTATION_UPDATED", "ANNOTATIONS_DELETED"):
        body = ear.body("/webhook", action)
        record(f"webhook_{action.lower()}", body)
        shape = json.loads((RECORDED / f"webhook_{action.lower()}.json").read_text())
        assert set(body) == set(shape)
        if action != "ANNOTATIONS_DELETED":
            assert set(body["annotation"]) == set(shape["annotation"])
            assert set(body["task"]) == set(shape["task"])
    assert ear.body("/webhook", "ANNOTATION_CREATED")["annotation"]["unique_id"]


def seen(server, project, tmp_path, script):
    """What a person sees: the page of a project's first task in a real browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=QUIET.split())
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.goto(f"{server.url}/user/login/")
        page.fill("input[name=email]", ANN)
        page.fill("input[name=password]", PASSWORD)
        page.click("button[type=submit]")
        page.goto(f"{server.url}/projects/{project}/data?labeling=1")
        result = script(page)
        page.screenshot(path=tmp_path / "seen.png")
        browser.close()
    return result


def test_a_person_labels_in_the_browser(server, api, tmp_path) -> None:
    spam_in(tmp_path).close()
    project = project_of(evgp(server, tmp_path, "push", "spam", "-k", 2))

    def label(page):
        page.get_by_text("which is long enough").first.wait_for(timeout=120_000)
        text = page.locator("body").inner_text()
        page.get_by_text("ham[2]").first.click()  # with its key
        with page.expect_response(lambda value: "/annotations" in value.url and value.ok):
            page.get_by_role("button", name="Submit").first.click()
        return text

    text = seen(server, project, tmp_path, label)
    assert "length" in text and "cannot tell" in text
    evgp(server, tmp_path, "pull", "spam")
    state = Campaign.open(tmp_path / "spam").state
    assert state.labels == {state.picked[0]: "ham"}


def test_pictures_travel_in_their_tasks(server, api, tmp_path) -> None:
    Campaign.create(tmp_path / "birds", photos_in(tmp_path), classes=["finch", "sparrow"]).close()
    project = project_of(evgp(server, tmp_path, "push", "birds", "-k", 6))
    assert len(tasks_of(api, project)) == 6

    with LabelStudio(server.url, LEGACY) as client:
        export = client.export(project)
    first = min(export, key=lambda value: value["data"]["evgp_rank"])["data"]
    with Image.open(io.BytesIO(base64.b64decode(first["image"].partition(",")[2]))) as picture:
        size = list(picture.size)
    actual = """size => [...document.images].find(
        one => one.naturalWidth === size[0] && one.naturalHeight === size[1] && one.width > 0
    )"""

    def look(page):
        shown = page.wait_for_function(actual, arg=size, timeout=120_000)
        return shown.evaluate("one => one.src.slice(0, 5)")

    assert seen(server, project, tmp_path, look) in ("data:", "blob:")


def test_a_downloaded_export_does_too(server, api, tmp_path) -> None:
    spam_in(tmp_path).close()
    project = project_of(evgp(server, tmp_path, "push", "spam", "-k", 2))
    annotate(api, next(iter(tasks_of(api, project).values())), choice("spam"))
    full = api.get(f"/api/projects/{project}/export", params={"exportType": "JSON"})
    (tmp_path / "full.json").write_bytes(full.content)
    assert "1 new answers" in evgp(
        server, tmp_path, "pull", "spam", "--file", tmp_path / "full.json"
    )
    assert "1 were known" in evgp(server, tmp_path, "pull", "spam")  # the same by the other way
    least = api.get(f"/api/projects/{project}/export", params={"exportType": "JSON_MIN"})
    record("export_min", least.json())
    (tmp_path / "min.json").write_bytes(least.content)
    result = evgp(server, tmp_path, "pull", "spam", "--file", tmp_path / "min.json", code=1)
    assert "not JSON-MIN" in result


def test_a_server_that_is_gone_is_refused_in_one_line(server, tmp_path) -> None:
    campaign = spam_in(tmp_path)
    with (
        LabelStudio("http://127.0.0.1:9", LEGACY) as client,
        pytest.raises(LabelStudioError, match="no complete response"),
    ):
        client.projects("spam")
    with (
        LabelStudio(server.url, LEGACY, timeout=0.001) as client,
        pytest.raises(LabelStudioError, match=r"within 0 s"),
    ):
        client.projects("spam")
    assert record_export(campaign, read_export(campaign, [])).new == 0
