"""Servers with wrong responses, over real sockets, and recorded responses of the real one."""

import json
import os
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

import pytest
from starlette.testclient import TestClient

from evgp import _extras
from evgp.labelling.campaign import Campaign
from evgp.labelling.label_studio import client as ours
from evgp.labelling.label_studio.backend import make_backend
from evgp.labelling.label_studio.client import LabelStudio, LabelStudioError, checked_url
from tests.cli.conftest import run  # noqa: F401  (a fixture)
from tests.datasets.webserver import serving
from tests.labelling.label_studio.conftest import recorded, spam_in
from tests.messages import printed, refused

TOKEN = "0123456789abcdef0123456789abcdef01234567"
PERSONAL = "eyJhbGciOiJIUzI1NiJ9.eyJ0b2tlbl90eXBlIjoicmVmcmVzaCJ9.c2lnbmF0dXJl"


@contextmanager
def answering(answer):
    """A server whose answers `answer(method, path, headers, body)` gives: status, type, body."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def _do(self):
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            asked.append((self.command, self.path, dict(self.headers), body))
            status, kind, text, *more = answer(self.command, self.path, self.headers, body)
            data = text if isinstance(text, bytes) else json.dumps(text).encode()
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data) + (more[0] if more else 0)))
            if 300 <= status < 400:
                self.send_header("location", "http://elsewhere.example/")
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _do

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()


JSON = "application/json"
WRONG = [
    (401, JSON, {"detail": f"Invalid token {TOKEN}."}),
    (403, JSON, {"detail": "no"}),
    (404, JSON, {"detail": "Not found."}),
    (302, "text/html", b""),
    (400, JSON, {"validation_errors": {"x": [f"bad\n{TOKEN}"]}}),
    (400, "text/html", b"<html>" + TOKEN.encode()),
    (413, JSON, {}),
    (500, "text/html", b"<h1>Server Error</h1>"),
    (502, JSON, {"detail": "x"}),
    (200, "text/html; charset=utf-8", b"<html>login</html>"),
    (200, JSON, b'[{"id": 1, "annot'),
    (200, JSON, b'[{"id": 1}]', 100),
    (200, JSON, b"\xff\xfe"),
    (200, JSON, b"[" * 100_000),
    (200, JSON, 7),
    (200, JSON, []),
]


@pytest.mark.parametrize("answer", WRONG, ids=lambda value: str(value)[:40])
def test_every_wrong_answer_is_reported_in_one_line_without_the_token(answer) -> None:
    with answering(lambda *_: answer) as (url, asked), LabelStudio(url, TOKEN) as client:
        with refused(LabelStudioError) as caught:
            client.project(7)
        assert TOKEN not in str(caught.value)
        assert all(TOKEN not in path for _, path, _, _ in asked)
        assert asked[0][2]["authorization"] == f"Token {TOKEN}"


@pytest.mark.parametrize("answer", WRONG, ids=lambda value: str(value)[:40])
def test_nothing_is_written_where_a_pull_fails(run, tmp_path, monkeypatch, answer) -> None:  # noqa: F811
    campaign = spam_in(tmp_path)
    before = campaign.log()
    monkeypatch.setenv(ours.TOKEN, TOKEN)
    with answering(lambda *_: answer) as (url, _):
        for command in ("pull", "push"):
            ran = run(command, campaign.path, "--project", 7, "--url", url)
            assert ran.code == 1 and TOKEN not in ran.err, ran.err
            assert len(ran.err.strip().splitlines()) == 1 and ran.err.startswith("evgp: ")
    assert campaign.log() == before


def test_a_server_that_says_nothing(monkeypatch) -> None:
    def slow(*_):
        time.sleep(1)
        return 200, JSON, {}

    with answering(slow) as (url, _), LabelStudio(url, TOKEN, timeout=0.2) as client:
        with refused(LabelStudioError):
            client.project(7)


def test_a_slow_response_times_out(monkeypatch) -> None:
    with serving(b"") as url, LabelStudio(f"{url}/drip", TOKEN, timeout=1.0) as client:
        with refused(LabelStudioError, hide=r"\d+ bytes"):
            client.export(7)


def test_json_that_would_fill_memory_is_not_parsed(monkeypatch) -> None:
    monkeypatch.setattr("evgp._reading.room", lambda: 10_000_000)
    with answering(lambda *_: (200, JSON, b"[" + b"[]," * 300_000 + b"[]]")) as (url, _):
        with LabelStudio(url, TOKEN) as client, refused(LabelStudioError):
            client.export(7)


def test_an_endless_response_is_cut_off(monkeypatch) -> None:
    monkeypatch.setattr(ours, "_MAX_BYTES", 1000)
    with answering(lambda *_: (200, JSON, b" " * 2000)) as (url, _):
        with LabelStudio(url, TOKEN) as client, refused(LabelStudioError):
            client.export(7)


def test_a_personal_token_is_exchanged_and_renewed() -> None:
    fresh = iter(["first", "second"])

    def answer(method, path, headers, body):
        if path == "/api/token/refresh/":
            assert json.loads(body) == {"refresh": PERSONAL} and "authorization" not in headers
            return 200, JSON, {"access": next(fresh)}
        if headers["authorization"] == "Bearer second":
            return 200, JSON, recorded("users")
        return 401, JSON, {"detail": "expired"}

    with answering(answer) as (url, asked), LabelStudio(url, PERSONAL) as client:
        assert 1 in client.people()
        assert 1 in client.people()
    paths = [path for _, path, *_ in asked]
    assert paths == ["/api/token/refresh/", "/api/users/"] * 2 + ["/api/users/"]


def test_a_personal_token_that_is_refused() -> None:
    with answering(lambda *_: (401, JSON, {"detail": PERSONAL})) as (url, _):
        with LabelStudio(url, PERSONAL) as client:
            with refused(LabelStudioError) as caught:
                client.people()
    assert PERSONAL not in str(caught.value)


@pytest.mark.parametrize("url", ["", "localhost:8080", "ftp://x", "http://", "http://a:b@host",
                                 "http://x:99999", "http://x?token=1", "http://[::1"])  # fmt: skip
def test_invalid_addresses(url) -> None:
    with refused(LabelStudioError) as caught:
        checked_url(url)
    assert "b@" not in str(caught.value)


@pytest.mark.parametrize("token", ["", "  ", "ä" * 40, "a\nb"])
def test_tokens_that_cannot_be_sent(token) -> None:
    with refused(LabelStudioError):
        LabelStudio("http://localhost", token)


class Replay:
    """The recorded answers of the real server, and a project to which tasks are added."""

    def __init__(self):
        self.project = next(
            result
            for result in recorded("projects")["results"]
            if result["title"].startswith("spam")
        )
        self.tasks, self.fails, self.made = [], 0, True
        self.exported, self.meanwhile = recorded("export"), lambda: None

    def __call__(self, method, path, headers, body):  # noqa: PLR0911
        path, _, asked = path.partition("?")
        if title := parse_qs(asked).get("title"):
            self.project["title"] = title[0]  # it is that of the campaign
        if path == "/api/users/":
            return 200, JSON, recorded("users")
        if path == "/api/tasks/":
            return 200, JSON, recorded("tasks") | {"tasks": self.tasks, "total": len(self.tasks)}
        if path == "/api/projects/" and method == "GET":
            return 200, JSON, recorded("projects") | {"results": [self.project][: self.made]}
        if path == "/api/projects/":
            assert json.loads(body)["label_config"] == self.project["label_config"]
            self.made = True
            return 201, JSON, self.project
        if path.endswith("/import"):
            if self.fails:
                return 500, "text/html", b"no"
            document = json.loads(body)
            self.tasks += document
            return 201, JSON, {"task_count": len(document)}
        if path.endswith("/export"):
            self.meanwhile()  # the answer is made, and on its way
            return 200, "application/.json", self.exported
        return 200, JSON, self.project


@pytest.fixture
def replay(monkeypatch):
    result = Replay()
    with answering(result) as (url, result.asked):
        monkeypatch.setenv(ours.TOKEN, TOKEN)
        monkeypatch.setenv(ours.ADDRESS, url)
        yield result


def test_push_sends_each_row_once(run, replay, tmp_path) -> None:  # noqa: F811
    spam_in(tmp_path).close()
    replay.made = False  # there is no project yet
    ran = run("push", tmp_path / "spam", "-k", 4)
    assert "4 tasks sent to project" in ran.err, ran.err
    assert [task["data"]["evgp_rank"] for task in replay.tasks] == [1, 2, 3, 4]
    assert "0 tasks sent" in run("push", tmp_path / "spam").err
    assert "2 tasks sent" in run("push", tmp_path / "spam", "-k", 6).err
    assert [task["data"]["evgp_rank"] for task in replay.tasks] == [1, 2, 3, 4, 5, 6]


def test_a_failed_push_says_what_was_sent(run, replay, tmp_path, monkeypatch) -> None:  # noqa: F811
    spam_in(tmp_path).close()
    monkeypatch.setattr(ours, "_BATCH", 2)
    replay.fails = 1
    ran = run("push", tmp_path / "spam", "-k", 5)
    assert ran.code == 1, ran.err
    printed(ran.err)
    replay.fails = 0
    assert "5 tasks sent" in run("push", tmp_path / "spam").err
    assert sum(path.endswith("/import") for _, path, *_ in replay.asked) == 4


def test_a_push_that_is_stopped_does_not_say_that_nothing_was_sent(
    run,  # noqa: F811
    replay,
    tmp_path,
    monkeypatch,
) -> None:
    spam_in(tmp_path).close()
    monkeypatch.setattr(ours, "_BATCH", 2)
    ask = LabelStudio._ask

    def stopped(self, method, path, **given):
        if path.endswith("/import") and replay.tasks:
            raise KeyboardInterrupt
        return ask(self, method, path, **given)

    monkeypatch.setattr(LabelStudio, "_ask", stopped)
    ran = run("push", tmp_path / "spam", "-k", 5)
    assert (
        ran.code == 130
        and "stopped; some tasks may have been sent; repeat evgp campaign push" in ran.err
    )
    monkeypatch.setattr(LabelStudio, "_ask", ask)
    assert "3 tasks sent" in run("push", tmp_path / "spam").err and len(replay.tasks) == 5


def test_pull_by_name_or_number_and_twice(run, replay, tmp_path) -> None:  # noqa: F811
    campaign = spam_in(tmp_path)
    campaign.next(6)
    assert "6 new answers," in run("pull", campaign.path).err
    assert "6 were known" in run("pull", campaign.path, "--project", replay.project["id"]).err
    assert len(Campaign.open(campaign.path).state.labels) == 2


def test_webhook_answers_during_a_pull_stay(run, replay, tmp_path) -> None:  # noqa: F811
    campaign = spam_in(tmp_path)
    campaign.next(6)
    whole = replay.exported
    task = next(item for item in whole if item["annotations"])
    (last, *others) = task["annotations"][::-1]
    replay.exported = [item | {"annotations": others} if item is task else item for item in whole]
    studio = TestClient(make_backend(campaign), base_url="http://localhost:9090")
    sent = {"action": "ANNOTATION_CREATED", "task": task, "annotation": last}
    replay.meanwhile = lambda: studio.post("/webhook", json=sent)
    assert "5 new answers, 0 changed, 0 undone" in run("pull", campaign.path).err
    row = campaign.source.row_of(task["data"]["evgp_row_id"])
    assert len(campaign.state.verdicts[row].answers) == 2
    replay.meanwhile = lambda: None
    assert "0 new answers, 0 changed, 1 undone" in run("pull", campaign.path).err
    replay.exported = whole  # it was there all the time
    assert "1 new answers, 0 changed, 0 undone" in run("pull", campaign.path).err
    assert len(campaign.state.verdicts[row].answers) == 2


def test_another_campaign_on_the_same_pool_is_not_mixed_in(run, replay, tmp_path) -> None:  # noqa: F811
    spam_in(tmp_path).close()
    other = spam_in(tmp_path, "other", seed=1)
    run("push", tmp_path / "spam", "-k", 3)
    before, number = len(replay.tasks), replay.project["id"]
    ran = run("push", other.path, "-k", 2, "--project", number)
    assert ran.code == 1, ran.err
    printed(ran.err)
    assert len(replay.tasks) == before and not other.state.rounds
    when = {"created_at": "2026-01-01T10:00:00Z", "annotations": []}
    replay.exported = [task | when for task in replay.tasks]
    ran = run("pull", other.path, "--project", number)
    assert ran.code == 1, ran.err
    printed(ran.err)
    assert run("pull", tmp_path / "spam").code == 0
    for task in replay.tasks:
        del task["data"]["evgp_campaign"]  # as an earlier version made them
    assert "tasks sent" in run("push", other.path, "-k", 2, "--project", number).err


def test_missing_packages_are_named_with_how_to_install_them(run, tmp_path, monkeypatch) -> None:  # noqa: F811
    spam_in(tmp_path).close()
    monkeypatch.setattr(_extras, "find_spec", lambda module: None if module == "httpx" else 1)
    for command in ("push", "pull"):
        ran = run(command, tmp_path / "spam", "--url", "http://localhost:1")
        assert ran.code == 1
        assert 'httpx, which is not installed; do `pip install "evgp[label-studio]"`' in ran.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("push", "spam"),
        ("pull", "spam", "--url", "http://localhost:1"),
        ("pull", "spam", "--file", "none.json"),
        ("pull", "spam", "--file", "mails.csv"),
        ("pull", "spam", "--file", "a.json", "--project", 3),
        ("push", "spam", "--images", "http://x/", "--url", "http://x"),
        ("export", "spam", "--label-studio", "-o", "t.json"),
        ("export", "spam", "--label-studio", "-o", "t.csv"),
        ("export", "spam", "--images", "http://x/", "-o", "t.csv"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused_in_one_line(run, tmp_path, monkeypatch, arguments) -> None:  # noqa: F811
    monkeypatch.chdir(tmp_path)
    spam_in(tmp_path).close()
    for name in (ours.TOKEN, ours.ADDRESS):
        monkeypatch.delenv(name, raising=False)
    ran = run(*arguments)
    assert ran.code == 1, ran.err
    printed(ran.err)
    assert not os.path.exists("t.json") and not os.path.exists("t.xml")


def test_tasks_as_a_file_are_what_push_sends(run, replay, tmp_path) -> None:  # noqa: F811
    spam_in(tmp_path).close()
    run("push", tmp_path / "spam", "-k", 3)
    ran = run("export", tmp_path / "spam", "--label-studio", "-o", tmp_path / "tasks.json")
    assert "3 tasks written" in ran.err, ran.err
    assert json.loads((tmp_path / "tasks.json").read_text()) == replay.tasks
    assert (tmp_path / "tasks.xml").read_text().strip() == replay.project["label_config"]
