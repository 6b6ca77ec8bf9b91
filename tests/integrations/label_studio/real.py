"""A real Label Studio of its own, on SQLite, from a copy of a migrated folder."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

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
    made = Server(f"http://127.0.0.1:{port}", log)
    try:
        _wait(made, running)
        yield made
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
