"""A real Label Studio on SQLite, from a copy of a migrated folder."""

import json
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from typer.testing import CliRunner

from evgp.cli.main import app
from tests.labelling.label_studio.conftest import RECORDED

VARIABLE = "EVGP_LABEL_STUDIO"
LEGACY = "0123456789abcdef0123456789abcdef01234567"
ANN, BOB, PASSWORD = "ann@example.org", "bob@example.org", "a-password-for-tests"
_STARTS = 900.0  # seconds; the first start migrates


@dataclass(frozen=True)
class Server:
    url: str
    log: Path

    def api(self, token: str = LEGACY) -> httpx.Client:
        headers = {"authorization": f"Token {token}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=120)


def migrated(binary: Path) -> Path:
    """A folder whose database is made; making it takes minutes, once."""
    folder = binary.parents[1] / "migrated"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        with started(binary, folder):
            pass
        (folder / "complete").touch()
    return folder


@contextmanager
def started(binary: Path, folder: Path) -> Iterator[Server]:
    """Label Studio on a folder, at a free port of this machine."""
    folder.mkdir(parents=True, exist_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = folder / "server.log"
    environment = os.environ | {
        "LABEL_STUDIO_BASE_DATA_DIR": str(folder),
        "LABEL_STUDIO_USERNAME": ANN,
        "LABEL_STUDIO_PASSWORD": PASSWORD,
        "LABEL_STUDIO_USER_TOKEN": LEGACY,
        "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
        "LABEL_STUDIO_COLLECT_ANALYTICS": "false",
        "COLLECT_ANALYTICS": "false",
        "LATEST_VERSION_CHECK": "false",
        # A backend on this machine is refused otherwise.
        "ML_BLOCK_LOCAL_IP": "false",
        "SSRF_PROTECTION_ENABLED": "false",
    }
    command = [str(binary), "start", "--no-browser", "--internal-host", "127.0.0.1"]
    with log.open("wb") as stream:
        running = subprocess.Popen(
            [*command, "--port", str(port), "--data-dir", str(folder)],
            stdout=stream, stderr=stream, env=environment, start_new_session=True,
        )  # fmt: skip
    server = Server(f"http://127.0.0.1:{port}", log)
    try:
        _wait(server, running)
        yield server
    finally:
        running.terminate()
        try:
            running.wait(30)
        except subprocess.TimeoutExpired:
            running.kill()


def _wait(server: Server, running: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + _STARTS
    while time.monotonic() < until:
        assert running.poll() is None, server.log.read_text()[-2000:]
        try:
            if httpx.get(f"{server.url}/health", timeout=5).status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(0.5)
    raise AssertionError(f"Label Studio did not start: {server.log.read_text()[-2000:]}")


def evgp(server, folder, *arguments, token=LEGACY, code=0):
    """A command on a campaign in a folder; what it says."""
    command, name, *rest = (str(argument) for argument in arguments)
    result = CliRunner().invoke(
        app,
        ["campaign", command, str(folder / name), *rest],
        prog_name="evgp",
        env={"LABEL_STUDIO_URL": server.url, "LABEL_STUDIO_API_KEY": token},
    )
    assert result.exit_code == code, result.stderr
    assert LEGACY not in result.output and token not in result.output
    return result.stderr


def choice(value, name="label"):
    return {"from_name": name, "to_name": "row", "type": "choices", "value": {"choices": [value]}}


def annotate(client, task, *results, **more):
    answer = client.post(f"/api/tasks/{task}/annotations/", json={"result": list(results), **more})
    assert answer.status_code == 201, answer.text
    return answer.json()


def scrubbed(payload):
    """Without the tokens of projects and people, and the mark of a campaign that is gone."""
    if isinstance(payload, dict):
        return {
            key: "scrubbed" if "token" in key and value else scrubbed(value)
            for key, value in payload.items()
            if key != "evgp_campaign"
        }
    return [scrubbed(item) for item in payload] if isinstance(payload, list) else payload


def record(name, payload):
    if os.environ.get("EVGP_RECORD"):
        RECORDED.mkdir(exist_ok=True)
        text = json.dumps(scrubbed(payload), indent=1, ensure_ascii=False, sort_keys=True)
        (RECORDED / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def project_of(told):
    match = re.search(r"project (\d+)", told)
    assert match is not None, told
    return int(match[1])


def tasks_of(api, project):
    body = api.get("/api/tasks/", params={"project": project, "page_size": 100}).json()
    return {task["data"]["evgp_row_id"]: task["id"] for task in body["tasks"]}


class Ear:
    """Writes down what Label Studio sends to an ML backend."""

    def __init__(self):
        import threading
        from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

        heard = self.heard = []

        class Handler(BaseHTTPRequestHandler):
            def _answer(self):
                length = int(self.headers.get("content-length", 0))
                body = json.loads(self.rfile.read(length) or b"{}")
                heard.append((self.command, self.path, dict(self.headers), body))
                reported = {"status": "UP", "model_version": "1"}
                reported |= {"results": [{"result": [], "score": 0.5}] * len(body.get("tasks", []))}
                text = json.dumps(reported).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = _answer

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def body(self, path, action=None):
        actual = [body for _, where, _, body in self.heard if where == path]
        return next(item for item in actual if action is None or item.get("action") == action)
