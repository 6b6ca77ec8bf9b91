"""What the server rejects, what it never reveals, and what hostile rows cannot do."""

import asyncio
import csv
import io
import json
import re
import stat
import sys
from pathlib import Path

import pytest
from fastapi import FastAPI, Request
from PIL import Image
from starlette.testclient import TestClient

from evgp.errors import CampaignError, DataWarning
from evgp.labelling.campaign import Campaign, export
from evgp.labelling.web import LabellingService, Sessions, make_app
from evgp.labelling.web.auth import Session, sessions_for
from evgp.labelling.web.middleware import PathLimits
from tests.labelling.web.conftest import HERE, person_of, running
from tests.messages import printed, refused, warned
from tests.serving import answered, connected, head, served

TOKEN = "a-token-that-is-long-enough"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "localhost.evil.example",
                                  "127.0.0.1.nip.io", "", "[::2]:8000", "[::1", "[::1:8000",
                                  "::1", "[::1]evil", "[localhost]", "localhost]",
                                  "localhost:evil", "[", "[]"])  # fmt: skip
def test_other_hosts_are_refused(ann, host) -> None:
    for path in ("/", "/api/progress", "/static/label.js", "/openapi.json", "/nowhere"):
        answer = ann.get(path, headers={"host": host})
        assert answer.status_code == 400 and "unknown host name" in answer.json()["detail"]


@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1:9", "LOCALHOST", "[::1]:8000"])
def test_our_own_names_are_known(ann, host) -> None:
    assert ann.get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "", "http://localhost:9000", "http://localhost", "file://",
     "http://localhost:8000.evil.example", "http://[", "http://]", "http://[::1", "http://[x]",
     "http://localhost:8000[", "http://localhost:8000@evil.example", "http://[::1]:8000["],
)  # fmt: skip
def test_changes_from_other_pages_are_refused(ann, service, origin) -> None:
    for path, body in (
        ("/api/answers", {"row": 1, "value": "ham", "key": "key-00000001"}),
        ("/api/session", {"name": "eve"}),
        ("/api/next", {}),
    ):
        answer = ann.post(path, json=body, headers={"origin": origin})
        assert (
            answer.status_code == 403
            and "not come from a page of this server" in answer.json()["detail"]
        )
    del ann.headers["origin"]
    assert ann.says(1).status_code == 403
    assert not service.campaign.state.verdicts


@pytest.mark.parametrize("csrf", ["", "wrong", "0" * 64])
def test_changes_without_the_csrf_token_are_refused(ann, service, csrf) -> None:
    ann.headers["x-csrf-token"] = csrf
    assert ann.says(1).status_code == 403
    assert ann.post("/api/undo", json={"key": "key-00000001"}).status_code == 403
    assert ann.post("/api/next", json={}).status_code == 403
    assert ann.delete("/api/session").status_code == 403
    assert not service.campaign.state.verdicts


def test_the_csrf_token_of_another_session_is_refused(app) -> None:
    ann, bob = person_of(app), person_of(app, "bob")
    ann.headers["x-csrf-token"] = bob.headers["x-csrf-token"]
    assert ann.says(1).status_code == 403


def test_nothing_is_shown_without_signing_in(app) -> None:
    nobody = person_of(app, None)
    for path in ("/api/campaign", "/api/progress", "/api/images/0", "/overview?part=live"):
        assert nobody.get(path).status_code == 401, path
    assert nobody.get("/overview", follow_redirects=False).headers["location"] == "/"
    assert "Who is labelling?" in nobody.get("/").text


def test_forged_cookies_are_refused(app) -> None:
    ann = person_of(app)
    (name, good), sessions = next(iter(ann.cookies.items())), app.state.sessions
    body, _, signature = good.partition(".")
    other = Sessions("another secret").cookie(sessions.read(good))
    for forged in (body, f"{body}.", f".{signature}", f"{body}x.{signature}", other, "é.é", "."):
        assert sessions.read(forged) is None, forged
    assert sessions.read(good).who == "ann" and name == sessions.cookie_name


def test_cookies_are_strict_and_expire(app, monkeypatch) -> None:
    answer = person_of(app, None).enter("ann")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and "path=/" in cookie
    sessions = app.state.sessions
    value = answer.cookies[sessions.cookie_name]
    assert sessions.read(value).who == "ann"
    monkeypatch.setattr("evgp.labelling.web.auth.time.time", lambda: 1e12)
    assert sessions.read(value) is None


def test_the_token_is_required_and_never_repeated(spam, capfd) -> None:
    spam.next(3)
    with running(LabellingService(spam), Sessions(TOKEN, TOKEN)) as app:
        eve = person_of(app, None)
        for token in (None, "", "wrong", TOKEN + "x", TOKEN[:-1]):
            answer = eve.enter("eve", token)
            assert answer.status_code == 401 and TOKEN not in answer.text
        assert eve.get("/api/progress").status_code == 401
        wrong = eve.post("/api/session", json={"name": "", "token": TOKEN})
        assert wrong.status_code == 422 and TOKEN not in wrong.text
        assert eve.post(f"/api/session?token={TOKEN}", json={"name": "eve"}).status_code == 401
        ann = person_of(app, "ann", token=TOKEN)
        for path in ("/", "/overview", "/api/campaign", "/openapi.json"):
            assert TOKEN not in ann.get(path).text
        assert TOKEN not in str(dict(ann.cookies))
    message = capfd.readouterr()
    assert TOKEN not in message.out + message.err


def test_nobody_can_pretend_to_come_from_another_address() -> None:
    app = FastAPI()

    @app.get("/")
    def address(request: Request) -> str:
        assert request.client is not None
        return request.client.host

    with served(app) as port, connected(port) as stream:
        stream.sendall(head("GET", "/", "X-Forwarded-For: 10.9.8.7", "Connection: close"))
        _, _, body = answered(stream)
    assert body == b'"127.0.0.1"'


def test_the_token_is_in_a_private_file_or_the_environment(tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("EVGP_TOKEN", raising=False)
    sessions, file = sessions_for(tmp_path / "spam.evgp", ask=True)
    assert file == tmp_path / "spam.evgp-token" and sessions.token == file.read_text().strip()
    assert len(sessions.token) >= 40 and stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sessions_for(tmp_path / "spam.evgp", ask=True)[0] == sessions
    assert sessions_for(tmp_path / "spam.evgp", ask=False) == (
        Sessions(sessions.secret, None),
        None,
    )
    monkeypatch.setenv("EVGP_TOKEN", TOKEN)
    opened, nothing = sessions_for(tmp_path / "spam.evgp", ask=False)
    assert opened.token == TOKEN and nothing is None
    assert sessions_for(tmp_path / "spam.evgp", ask=False) == (opened, None)
    # Whoever guesses the token cannot check the guess with a cookie they signed themselves.
    assert opened.read(Sessions(TOKEN, TOKEN).cookie(Session("eve", "forged"))) is None
    assert opened.read(sessions.cookie(Session("ann", "of before the variable was set"))) is None
    monkeypatch.setenv("EVGP_TOKEN", "short")
    with refused(CampaignError):
        sessions_for(tmp_path / "spam.evgp", ask=False)


def test_every_answer_carries_the_policy(ann) -> None:
    for path in ("/", "/overview", "/api/progress", "/nowhere", "/static/web.css", "/api/images/1"):
        headers = ann.get(path).headers
        policy = headers["content-security-policy"]
        assert "unsafe" not in policy and "default-src 'none'" in policy and "http" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY" and "server" not in headers
    assert ann.get("/api/progress").headers["cache-control"] == "no-store"


@pytest.mark.parametrize("path", ["/", "/overview"])
def test_pages_have_no_inline_script_or_style_and_no_external_requests(ann, path) -> None:
    ann.rows()
    page = ann.get(path).text
    assert not re.search(
        r"<style|style=|\son\w+=|javascript:|<script(?![^>]*\ssrc=\"/static/)", page
    )
    assert not re.search(r"(src|href|action)=\"(?!/)", page)
    names = re.findall(r"/static/[\w.]+", page)
    assert any(name.endswith(".js") for name in names) and any(".css" in name for name in names)
    for name in names:
        text = ann.get(name).text
        assert text and not re.search(r"https?://|@import|url\((?!data)", text), name


def test_hostile_rows_are_text(ann, service) -> None:
    for row in range(10):
        ann.says(row, "ham")
    evil = person_of(ann.app, "<img src=x onerror=alert(1)>")
    evil.says(11, "spam")
    page = evil.get("/overview").text + evil.get("/").text
    assert "<img" not in page.replace('<img id="image"', "") and "&lt;img src=x" in page
    items = ann.post("/api/next", json={"count": 20})
    assert items.headers["content-type"] == "application/json"


def test_formulas_are_harmless_in_exports(spam, tmp_path) -> None:
    spam.answer(2, "label", "ham")
    with warned(DataWarning):
        export(spam, tmp_path / "out.csv")
    (row,) = csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text()))
    assert row["subject"] == "'=cmd|'/c calc'!A1"


def test_large_requests_are_refused(ann, app) -> None:
    body = b'{"row": 1, "value": "' + b"x" * PathLimits().max_bytes + b'", "key": "key-00000001"}'
    headers = {"content-type": "application/json"}
    assert ann.post("/api/answers", content=body, headers=headers).status_code == 413
    chunks = (body[i : i + 1000] for i in range(0, len(body), 1000))  # no length is announced
    assert ann.post("/api/answers", content=chunks, headers=headers).status_code == 413
    for length in ("none", "-1", "9" * 5000, b"\xb2"):
        assert ann.get("/", headers={"content-length": length}).status_code == 413


def test_bad_json_is_refused(ann) -> None:
    for body in (b"", b"{", b"[]", b"\xff\xfe", b'"\\ud800"', b"1" * 5000, b"[" * 20_000):
        answer = ann.post(
            "/api/answers", content=body, headers={"content-type": "application/json"}
        )
        assert answer.status_code in (400, 422) and "detail" in answer.json(), body[:9]


def test_form_posts_are_refused(ann) -> None:
    answer = ann.post("/api/answers", data={"row": 1, "value": "ham", "key": "key-00000001"})
    assert answer.status_code == 422


def test_names_of_people_are_checked(app) -> None:
    nobody = person_of(app, None)
    for name in ("", " ", "a\x00b", "a\nb\x1b", "\ud800", "x" * 201):
        raw = json.dumps({"name": name})
        answer = nobody.post(
            "/api/session", content=raw, headers={"content-type": "application/json"}
        )
        assert answer.status_code == 422, name
    assert nobody.enter("  Ann   Lee ").json()["name"] == "Ann Lee"


def test_two_spellings_of_a_name_are_one_person(app) -> None:
    first, two = person_of(app, "Zo\u00eb"), person_of(app, "Zoe\u0308")
    assert first.says(1, "ham").status_code == two.says(1, "spam").status_code == 200
    assert set(app.state.service.campaign.state.verdicts[1].answers) == {"Zo\u00eb"}
    sessions = app.state.sessions
    old = sessions.cookie(Session("Zoe\u0308", "a cookie of an earlier version"))
    assert sessions.read(old).who == "Zo\u00eb"


@pytest.mark.parametrize(
    "row",
    ["../secret.png", "..%2fsecret.png", "%2e%2e/secret", "8", "-1", "1e3", "0.png", "9" * 40],
)
def test_pictures_are_requested_by_row_only(photos, tmp_path, row) -> None:
    Image.new("RGB", (9, 9)).save(tmp_path / "secret.png")
    birds = Campaign.create(tmp_path / "birds", photos, classes=["finch", "other"])
    app = make_app(LabellingService(birds), Sessions("a secret for tests"))
    ann = person_of(app)
    for name in range(8):
        answer = ann.get(f"/api/images/{name}")
        assert answer.headers["content-type"] == "image/png"
        assert Image.open(io.BytesIO(answer.content)).size == (60, 40)
    assert ann.get(f"/api/images/{row}").status_code in (404, 422)
    birds.close()


def test_pictures_are_encoded_again_without_metadata(tmp_path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    for i in range(3):
        large = Image.effect_noise((900, 500), 40 + i).convert("RGB")
        exif = Image.Exif()
        exif[0x010E] = "taken at home"
        large.save(folder / f"{i}.jpg", exif=exif)
    (folder / "evil.svg").write_text("<svg onload='alert(1)' xmlns='http://www.w3.org/2000/svg'/>")
    (folder / "evil.png").write_text("<svg onload='alert(1)' xmlns='http://www.w3.org/2000/svg'/>")
    birds = Campaign.create(tmp_path / "birds", folder, classes=["finch", "other"])
    assert birds.source.names == ("0.jpg", "1.jpg", "2.jpg")  # other files are no rows
    ann = person_of(make_app(LabellingService(birds), Sessions("a secret for tests")))
    answer = ann.get("/api/images/1")
    assert answer.headers["content-type"] == "image/jpeg" and b"at home" not in answer.content
    assert b"at home" in (folder / "1.jpg").read_bytes()
    birds.close()


@pytest.mark.parametrize("path", ["/static/../api.py", "/static/%2e%2e%2fapi.py", "/docs", "/redoc",
                                  "/static/..%5capi.py", "/static/page.html"])  # fmt: skip
def test_no_other_files_are_served(ann, path) -> None:
    assert ann.get(path).status_code == 404


def test_websockets_are_refused(app) -> None:
    sent = []

    async def send(message):
        sent.append(message)

    asyncio.run(app({"type": "websocket", "path": "/", "headers": []}, None, send))
    assert sent[0]["type"] == "websocket.close"


def test_missing_parts_are_named(run_serve, monkeypatch) -> None:
    monkeypatch.setattr("evgp._extras.find_spec", lambda name: None)
    result = run_serve("spam")
    assert result.exit_code == 1, result.stderr
    printed(result.stderr)


def test_another_host_needs_the_flag(run_serve, spam) -> None:
    for host in ("0.0.0.0", "192.168.0.7", "example.org"):
        result = run_serve(str(spam.path), "--host", host)
        assert result.exit_code == 1, result.stderr
        printed(result.stderr)
    assert not Path(f"{spam.path}-token").exists()


@pytest.fixture
def run_serve():
    from typer.testing import CliRunner

    from evgp.cli.main import app

    return lambda *given: CliRunner().invoke(app, ["campaign", "serve", *given], prog_name="evgp")


def test_an_address_in_use_is_an_error(run_serve, spam) -> None:
    import socket

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        result = run_serve(str(spam.path), "--port", str(other.getsockname()[1]))
    assert result.exit_code == 1, result.stderr
    printed(result.stderr)


@pytest.mark.parametrize("lease", ["inf", "nan", "1e308", "0", "86401"])
def test_a_lease_ends(run_serve, spam, lease) -> None:
    result = run_serve(str(spam.path), "--port", "0", "--lease", lease)
    assert result.exit_code == 2 and "--lease" in result.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="addresses as Linux gives them")
def test_a_server_for_all_knows_its_own_names() -> None:
    from evgp.labelling.web.server import host_names

    names = host_names("0.0.0.0", ["Label.Example"])
    assert {"localhost", "127.0.0.1", "label.example"} <= names and "0.0.0.0" not in names
    assert host_names("192.168.0.7") == {"192.168.0.7", "127.0.0.1", "localhost", "::1"}


def test_the_schema_is_served(app) -> None:
    body = TestClient(app, base_url=HERE).get("/openapi.json").json()
    assert set(body["paths"]) == {
        "/api/session", "/api/campaign", "/api/next", "/api/answers", "/api/undo", "/api/progress",
        "/api/release", "/api/images/{row}",
    }  # fmt: skip
    assert {"409", "507", "503", "401", "403"} <= set(
        body["paths"]["/api/answers"]["post"]["responses"]
    )
    for methods in body["paths"].values():
        assert all(method["description"] for method in methods.values())
