"""A labelling service with a campaign, and clients for it."""

import os
from contextlib import contextmanager

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import sync_playwright
from starlette.testclient import TestClient

from evgp.labelling.campaign import Campaign
from evgp.labelling.web import LabellingService, Sessions, make_app
from tests.conftest import chromium

HERE = "http://localhost:8000"


class Person(TestClient):
    """Somebody who has signed in, and sends what a browser would."""

    csrf = ""

    def enter(self, name="ann", token=None):
        credentials = {"name": name} | ({} if token is None else {"token": token})
        answer = self.post("/api/session", json=credentials)
        if answer.status_code == 200:
            self.headers["x-csrf-token"] = answer.json()["csrf"]
        return answer

    def rows(self, count=3):
        return [
            item["row"] for item in self.post("/api/next", json={"count": count}).json()["items"]
        ]

    def says(self, row, value="spam", key=None, **more):
        key = key or os.urandom(8).hex()
        return self.post("/api/answers", json={"row": row, "value": value, "key": key, **more})


def person_of(app, name="ann", **more):
    person = Person(app, base_url=HERE, headers={"origin": HERE}, raise_server_exceptions=False)
    if name is not None:
        assert person.enter(name, **more).status_code == 200
    return person


@pytest.fixture
def mails(tmp_path):
    """Sixty rows with names, some of them hostile."""
    random = np.random.default_rng(0)
    hostile = ["<script>document.title='ran'</script>", "<img src=x onerror=document.title='ran'>",
               "=cmd|'/c calc'!A1", "\u202etxt.exe", "../../../../etc/passwd"]  # fmt: skip
    lines = ["key,length,links,subject"]
    for i in range(60):
        subject = hostile[i % 5].replace('"', '""') if i < 10 else f"hello {i}"
        lines.append(f'm{i},{random.normal():.4f},{random.integers(9)},"{subject}"')
    path = tmp_path / "mails.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def spam(mails, tmp_path):
    return Campaign.create(
        tmp_path / "spam", mails, id="key", classes=["spam", "ham"], drop=["subject"]
    )


@contextmanager
def running(service, sessions=None, **more):
    app = make_app(service, sessions or Sessions("a secret for tests"), **more)
    with TestClient(app, base_url=HERE):  # runs the lifespan
        yield app


@pytest.fixture
def service(spam):
    spam.next(12)  # so that no one waits
    return LabellingService(spam, k=4)


@pytest.fixture
def app(service):
    with running(service) as result:
        yield result


@pytest.fixture
def ann(app):
    return person_of(app)


@pytest.fixture
def photos(tmp_path):
    """A folder of pictures, one of them with a name that is markup."""
    folder = tmp_path / "photos"
    folder.mkdir()
    random = np.random.default_rng(0)
    for i in range(8):
        name = "<b onload=alert(1)>.png" if i == 3 else f"{i}.png"
        pixels = random.integers(0, 255, (40, 60, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / name)
    return folder


@pytest.fixture(scope="module")
def browsers():
    """A function that lends browsers; they start once, and their pages close after each use."""
    flags = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    path = chromium()
    with sync_playwright() as play:
        started = []

        @contextmanager
        def lend(count=1):
            while len(started) < count:
                started.append(play.chromium.launch(executable_path=path, args=flags))
            try:
                yield started[:count]
            finally:
                for context in [context for browser in started for context in browser.contexts]:
                    context.close()

        yield lend
        for browser in started:
            browser.close()
