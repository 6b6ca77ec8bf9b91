"""Every endpoint of both servers, under attack."""

import json
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import psutil
import pytest
from PIL import Image

from evgp.labelling.campaign import Campaign
from evgp.labelling.campaign.events import Answered
from tests.datasets.test_images import bomb
from tests.hostile.servers import TOKEN, Server, mutated, signed_in
from tests.labelling.label_studio.conftest import recorded, spam_in
from tests.serving import answered, ask, connected, head, is_open, watched

AT_ONCE = 8
BEARER = f"Authorization: Bearer {TOKEN}"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    spam = spam_in(tmp_path_factory.mktemp("page"))
    spam.next(40)
    spam.close()
    yield from served(spam, "-k", "4")


@pytest.fixture(scope="module")
def backend(tmp_path_factory):
    spam = spam_in(tmp_path_factory.mktemp("backend"))
    spam.next(6)
    spam.close()
    yield from served(spam, "--label-studio")


def served(campaign, *given):
    server = Server(campaign.path, *given)
    server.path = campaign.path
    try:
        yield server
    finally:
        message = server.stop()
    assert "Traceback" not in message and "rror:" not in message and TOKEN not in message, message[
        :3000
    ]


def request(method, path, *headers, host="localhost", **body):
    text = json.dumps(body).encode() if body else b""
    return head(method, path, *headers, host=host, length=len(text) if body else None) + text


def page_doors(port):
    me, host = signed_in(port), f"localhost:{port}"
    result = [
        ("GET", "/", {}), ("GET", "/overview", {}), ("GET", "/overview?part=live", {}),
        ("GET", "/static/label.js", {}), ("GET", "/favicon.ico", {}), ("GET", "/openapi.json", {}),
        ("GET", "/api/campaign", {}), ("GET", "/api/progress", {}), ("GET", "/api/images/0", {}),
        ("POST", "/api/session", {"name": "eve"}), ("DELETE", "/api/session", {}),
        ("POST", "/api/next", {"count": 3, "holding": [1, 2]}),
        ("POST", "/api/release", {"rows": [1, 2]}),
        ("POST", "/api/answers", {"row": 1, "kind": "skip", "key": "key-00000001"}),
        ("POST", "/api/answers", {"row": 2, "value": "spam", "key": "key-00000002"}),
        ("POST", "/api/undo", {"key": "undo-0000001"}),
    ]  # fmt: skip
    return [request(method, path, *me, host=host, **body) for method, path, body in result]


def backend_doors(port):
    headers = [BEARER, "Content-Type: application/json"]
    result = [
        ("GET", "/", {}), ("GET", "/health", {}), ("POST", "/setup", recorded("setup")),
        ("POST", "/predict", recorded("predict")),
        ("POST", "/webhook", recorded("webhook_annotation_created")),
        ("POST", "/webhook", recorded("webhook_annotation_updated")),
        ("POST", "/webhook", recorded("webhook_annotations_deleted")),
    ]  # fmt: skip
    return [request(method, path, *headers, **body) for method, path, body in result]


def status(port, sent):
    """The status of the response to a request; none if it never ends, or is malformed."""
    try:
        with connected(port, 0.25) as stream:
            stream.sendall(sent)
            actual = answered(stream)
    except (ConnectionError, TimeoutError):
        return 0
    return 0 if actual is None else actual[0]


def fuzz(server, doors, rng, count, path):
    """How many requests were answered without a 500, while an honest one is within a second."""
    before = server.begin()
    sent = [mutated(rng, doors[rng.integers(len(doors))]) for _ in range(count)]
    with watched(server.port, path) as took, ThreadPoolExecutor(AT_ONCE) as pool:
        codes = list(pool.map(lambda value: status(server.port, value), sent))
    assert server.process.poll() is None and server.grown(before) < 150
    assert len([code for code in codes if 0 < code < 300]) > count / 20  # some get through
    assert len(took) > 10 and max(took) < 1.0
    return sum(code < 500 for code in codes)


class Honest(threading.Thread):
    """Somebody who labels meanwhile, and notes what was acknowledged."""

    def __init__(self, port):
        super().__init__()
        self.port, self.said, self.ending = port, {}, threading.Event()
        self.me = signed_in(port, "honest")
        self.start()

    def run(self):
        while not self.ending.wait(0.02):
            key, row = os.urandom(8).hex(), len(self.said) % 40
            answer = {"row": row, "value": ["spam", "ham"][len(self.said) % 2], "key": key}
            host = f"localhost:{self.port}"
            actual = ask(self.port, request("POST", "/api/answers", *self.me, host=host, **answer))
            if actual and actual[0] == 200:
                self.said[f"answer {key}"] = (row, answer["value"])

    def end(self):
        self.ending.set()
        self.join()
        return self.said


def test_requests_that_are_wrong_somewhere_at_the_page(page, rng, tally) -> None:
    honest = Honest(page.port)
    try:
        held = fuzz(page, page_doors(page.port), rng, 1_200, "/")
    finally:
        message = honest.end()
    kept = Campaign.open(page.path)
    actual = {event.key: event.event for event in kept.log() if isinstance(event.event, Answered)}
    kept.close()
    lost = [key for key, item in message.items() if (actual[key].row, actual[key].value) != item]
    tally("HTTP", "requests to the page, wrong somewhere, without a 500", 1_200, held)
    assert len(message) > 20
    tally("HTTP", "answers acknowledged in the meantime", len(message), len(message) - len(lost))


def test_requests_that_are_wrong_somewhere_at_the_backend(backend, rng, tally) -> None:
    held = fuzz(backend, backend_doors(backend.port), rng, 1_200, "/health")
    tally(
        "HTTP", "requests to the Label Studio backend, wrong somewhere, without a 500", 1_200, held
    )


def test_bytes_that_are_no_requests(page, backend, rng, tally) -> None:
    held = 0
    for server in (page, backend):
        sent = [rng.bytes(int(rng.integers(1, 3_000))) for _ in range(150)]
        sent += [rng.bytes(int(size)) + b"\r\n\r\n" for size in rng.integers(1, 200, 150)]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            held += sum(
                code < 500
                for code in pool.map(lambda value, at=server: status(at.port, value), sent)
            )
        assert server.seconds() < 1.0
    tally("HTTP", "random bytes at both servers", 600, held)


MB = 2**20
LARGE = {
    "lists": b'{"tasks":[' + b"[]," * (19 * MB) + b"[]]}",
    "texts": b'{"tasks":[' + b'"",' * (19 * MB) + b'""]}',
    "quotes": b'{"tasks":["' + b'\\"' * (28 * MB),
    "depth": b"[" * (57 * MB),
    "objects": b'{"tasks":[' + b'{"a":' * (11 * MB),
    "wide text": b'{"tasks":["' + "\U0001f600".encode() * (14 * MB) + b'"]}',
    "few lists": b'{"tasks":[' + b"[]," * 490_000 + b"[]]}",
}


def flood(server, body, *headers):
    """Three bodies at once: the answers to them, and the slowest of honest requests meanwhile."""
    sent = head("POST", "/predict", "Content-Type: application/json", *headers, length=len(body))
    with watched(server.port, "/health") as took, ThreadPoolExecutor(3) as pool:
        actual = list(pool.map(lambda _: ask(server.port, sent, body, timeout=60), range(3)))
    return (
        [item and item[0] for item in actual],
        [len(item[2]) for item in actual if item],
        max(took),
    )


def test_floods_without_the_token(backend, tally) -> None:
    held, before = 0, backend.begin()
    for body in LARGE.values():
        began = time.monotonic()
        codes, sizes, slowest = flood(backend, body)
        assert slowest < 1.0 and time.monotonic() - began < 15 and max(sizes, default=0) < 500
        held += sum(code in (401, None) for code in codes)
    assert backend.grown(before) < 100
    tally("HTTP", "bodies of up to 57 MB without the token, refused unread", 3 * len(LARGE), held)


@pytest.mark.parametrize("kind", LARGE)
def test_floods_with_the_token(backend, tally, kind) -> None:
    before = backend.begin()
    codes, sizes, slowest = flood(backend, LARGE[kind], BEARER)
    assert slowest < 1.0 and max(sizes) < 500 and backend.grown(before) < 500
    held = sum(code in (200, 413, 422) for code in codes)
    tally("HTTP", "bodies of up to 57 MB with the token, within 0.5 GB", 3, held)


def test_half_sent_requests_are_ended_and_keep_nobody_out(page, backend, tally) -> None:
    origin = f"Origin: http://localhost:{page.port}"
    halves = {
        page: [b"GET / HTTP/1.1\r\nHost: loc", b"", request("GET", "/")[:-2],
               head("POST", "/api/session", origin, host=f"localhost:{page.port}", length=99)],
        backend: [b"POST /predict HT", head("POST", "/predict", length=9_999) + b"{",
                  head("POST", "/setup", BEARER, length=9_999) + b"{",
                  head("POST", "/nowhere", BEARER, "Transfer-Encoding: chunked") + b"1\r\nx\r\n"],
    }  # fmt: skip
    for server, kinds in halves.items():
        streams = [connected(server.port) for _ in range(300)]
        began = time.monotonic()
        with watched(server.port, "/") as took:
            for i, stream in enumerate(streams):
                try:
                    stream.sendall(kinds[i % len(kinds)])
                except ConnectionError:
                    pass  # it had to make room
            while any(map(is_open, streams)) and time.monotonic() - began < 20:
                time.sleep(0.25)
        held = sum(not is_open(stream) for stream in streams)
        assert time.monotonic() - began < 15 and max(took) < 1.0
        for stream in streams:
            stream.close()
        tally("HTTP", "half-sent requests, ended within 15 s", 300, held)


def guess(server, token, source):
    """The status that a token meets, and how long to wait."""
    if server.kind == "page":
        body = {"name": "eve", "token": token}
        origin = f"Origin: http://localhost:{server.port}"
        sent = request("POST", "/api/session", origin, "Content-Type: application/json",
                       host=f"localhost:{server.port}", **body)  # fmt: skip
    else:
        sent = request("POST", "/setup", f"Authorization: Bearer {token}", **recorded("setup"))
    actual = ask(server.port, sent, source=source)
    return actual[0], int(actual[1].get("retry-after", 0))


def guesses(server, seconds, sources):
    """As many guesses as go into some seconds: how many were looked at, and how many not."""
    until, count = time.monotonic() + seconds, [0, 0]

    def run(j):
        i = 0
        while time.monotonic() < until:
            code, _ = guess(server, f"{j}-{i}", sources[(j + AT_ONCE * i) % len(sources)])
            assert code in (401, 429), code
            count[code == 429] += 1
            i += 1
            time.sleep(0.005)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(run, range(AT_ONCE)))
    return count


@pytest.mark.parametrize("which", ["page", "backend"])
def test_guesses_of_the_token(which, tally, request) -> None:
    server = request.getfixturevalue(which)
    server.kind = which
    assert guess(server, TOKEN, "127.0.0.1")[0] == 200
    with watched(server.port, "/") as took:
        looked, refused = guesses(server, 5, ["127.0.0.9"])
    assert 3 <= looked <= 9 and max(took) < 1.0  # at 0, 0, 0, 0, 0.5, 1.5, 3.5, 7.5 s
    many, more = guesses(server, 5, [f"127.0.{i}.{j}" for i in (1, 2) for j in range(1, 251)])
    assert many <= 50 + 20  # fifty at once, then one a second
    tried = looked + refused + many + more
    assert tried > 200  # so that what was looked at is a small part
    tally("HTTP", f"wrong tokens at the {which}, at most nine and seventy checked", tried, tried)
    began = time.monotonic()
    assert guess(server, TOKEN, "127.0.0.1")[0] == 200 and time.monotonic() - began < 1
    for _ in range(3):  # the address of the guesses too, once it has waited
        code, wait = guess(server, TOKEN, "127.0.0.9")
        time.sleep(wait)
        if code == 200:
            break
    assert code == 200


@pytest.fixture(scope="module")
def bombs(tmp_path_factory):
    """Pictures of 88 megapixels in a few hundred kilobytes, among others."""
    folder = tmp_path_factory.mktemp("bombs") / "photos"
    folder.mkdir()
    for mode in ("RGB", "RGBA", "P"):
        Image.new(mode, (11_000, 8_000), 7).save(folder / f"{mode}.png")
    for i in range(3):
        Image.effect_noise((60, 40), 40 + i).save(folder / f"{i}.png")
    (folder / "huge.png").write_bytes(bomb(60_000, 60_000))
    return folder


def test_pictures_that_are_bombs_on_the_page(bombs, tally) -> None:
    birds = Campaign.create(bombs.with_name("birds"), bombs, classes=["finch", "other"])
    names = birds.source.names
    birds.next(6)
    birds.close()
    server = Server(birds.path)
    try:
        me = signed_in(server.port)
        before = server.begin()
        rows = [names.index(f"{mode}.png") for mode in ("RGB", "RGBA", "P")]
        sent = [request("GET", f"/api/images/{rows[i // 12]}", *me[:2]) for i in range(36)]
        with watched(server.port, "/") as took, ThreadPoolExecutor(36) as pool:
            waiting = [pool.submit(ask, server.port, message, timeout=120) for message in sent]
            assert ask(server.port, request("GET", "/api/progress", *me[:2]))[0] == 200
            actual = [item.result() for item in waiting]
        assert server.grown(before) < 700 and max(took) < 1.0
        (bombs / "RGB.png").write_bytes(bomb(60_000, 60_000))
        again = [ask(server.port, sent[0]) for _ in range(12)]
        assert server.grown(before) < 700
    finally:
        message = server.stop()
    assert "Traceback" not in message
    held = sum(item is not None and item[0] == 200 for item in actual + again)
    tally("HTTP", "requests for pictures of 88 megapixels, within 0.7 GB", 48, held)


def test_pictures_that_are_bombs_in_a_pool(bombs, tmp_path, tally) -> None:
    for i in range(3):
        (bombs / f"more{i}.png").write_bytes((bombs / "RGBA.png").read_bytes())
    process = subprocess.Popen(
        [sys.executable, "-m", "evgp", "pick", str(bombs), "-k", "3", "--output",
         str(tmp_path / "picks.csv"), "--report", str(tmp_path / "report.html")],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    watched, peak = psutil.Process(process.pid), 0
    while process.poll() is None:
        try:
            peak = max(peak, watched.memory_info().rss)
        except psutil.NoSuchProcess:
            break
        time.sleep(0.02)
    message = process.communicate()[1]
    assert process.returncode == 0, message
    assert (
        "of more than 100 megapixels" in message
        and (tmp_path / "report.html").stat().st_size < 5 * MB
    )
    tally("HTTP", "folders of such pictures, picked within 1.2 GB", 1, int(peak < 1.2e9))


def test_tokens_of_people_are_not_in_the_way_of_their_names(page, rng, tally) -> None:
    """Names of any letters, in any spelling: each is taken as one person, or refused."""
    held, tried = 0, 60
    for _ in range(tried):
        letters = [
            chr(int(integer)) for integer in rng.integers(1, 0x2FFF, int(rng.integers(1, 12)))
        ]
        body = {"name": "".join(letters), "token": TOKEN}
        host = f"localhost:{page.port}"
        headers = [f"Origin: http://{host}", "Content-Type: application/json"]
        sent = request("POST", "/api/session", *headers, host=host, **body)
        held += ask(page.port, sent)[0] in (200, 422)
    tally("HTTP", "names of random characters", tried, held)
    assert np.isfinite(page.seconds())
