"""Requests that would exhaust memory, time or connections, and guesses of the token."""

import asyncio
import json
import socket
import time
from contextlib import suppress

import pytest

from evgp.labelling.web import LabellingService, Sessions, auth, make_app, server
from evgp.labelling.web.auth import TokenCheck
from evgp.labelling.web.middleware import PathLimits
from tests.labelling.web.conftest import HERE, person_of, running
from tests.serving import SOON, answered, ask, connected, head, is_open, served, watched

TOKEN = "a-token-that-is-long-enough"


def asked(app, method, path, receive, **headers):
    """What an application answers to headers; `receive` gives it the body."""
    sent = []

    async def send(message):
        sent.append(message)

    shown = {"host": "localhost:8000", "origin": HERE} | headers
    shown = {name: value for name, value in shown.items() if value is not None}
    scope = {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(),
        "query_string": b"", "headers": [(n.encode(), v.encode()) for n, v in shown.items()],
        "client": ("192.0.2.1", 5), "server": ("localhost", 8000), "scheme": "http",
        "http_version": "1.1", "root_path": "",
    }  # fmt: skip
    asyncio.run(asyncio.wait_for(app(scope, receive, send), 20))
    return sent[0]["status"] if sent else None


async def unread():
    raise AssertionError("the body was read")


@pytest.mark.parametrize(
    "path", ["/api/answers", "/api/undo", "/api/next", "/api/release", "/api/nowhere"]
)
def test_nothing_that_strangers_send_is_read(app, ann, path) -> None:
    cookie = "; ".join(f"{name}={value}" for name, value in ann.cookies.items())
    assert asked(app, "POST", path, unread) == 401
    assert asked(app, "POST", path, unread, cookie=cookie) == 403
    wrong = {"cookie": cookie, "x-csrf-token": "0" * 64}
    assert asked(app, "POST", path, unread, **wrong) == 403
    assert asked(app, "DELETE", "/api/session", unread) == 401
    right = {"cookie": cookie, "x-csrf-token": ann.headers["x-csrf-token"]}
    with pytest.raises(AssertionError, match="the body was read"):
        asked(app, "POST", path, unread, **right)


def test_a_body_is_refused_as_soon_as_it_is_too_long(app) -> None:
    read = 0

    async def endless():
        nonlocal read
        read += 1
        return {"type": "http.request", "body": b"x" * 1000, "more_body": True}

    assert asked(app, "POST", "/api/session", endless) == 413
    assert read == PathLimits().max_bytes // 1000 + 1


def test_a_client_that_disconnects_is_not_an_error(app) -> None:
    parts = [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}]

    async def hangs_up():
        return parts.pop(0)

    assert asked(app, "POST", "/api/session", hangs_up) is None


def test_compressed_bodies_are_refused(ann) -> None:
    answer = ann.post("/api/next", content=b"\x1f\x8b", headers={"content-encoding": "gzip"})
    assert answer.status_code == 415 and "is compressed" in answer.json()["detail"]


@pytest.fixture
def short(monkeypatch):
    """Less patience, so that tests are quick."""
    for name, value in (
        ("HEADER_TIMEOUT", 0.6),
        ("BODY_TIMEOUT", 0.6),
        ("DISCARD_TIMEOUT", 0.6),
        ("_CHECK_INTERVAL", 0.1),
    ):
        monkeypatch.setattr(server, name, value)


HALF = {
    "nothing": b"",
    "half a line": b"GET / HT",
    "half the headers": head("GET", "/")[:-2],
    "half a body": head("POST", "/api/session", f"Origin: {HERE}", host="localhost:8000", length=99)
    + b'{"name"',
    "no end": head("POST", "/api/session", "Transfer-Encoding: chunked", f"Origin: {HERE}",
                   host="localhost:8000") + b"5\r\n{    \r\n",
    "half of what is refused": head("POST", "/api/next", length=60_000) + b"{",
}  # fmt: skip


@pytest.mark.parametrize("half", HALF.values(), ids=HALF)
def test_half_sent_requests_end_and_others_are_answered(spam, short, half) -> None:
    spam.next(3)
    with served(make_app(LabellingService(spam, k=1), Sessions("a secret"))) as port:
        held = [connected(port) for _ in range(40)]
        for stream in held:
            stream.sendall(half)
        assert is_open(held[-1])
        with watched(port, "/") as took:
            began = time.monotonic()
            while any(is_open(stream) for stream in held) and time.monotonic() - began < 10:
                time.sleep(0.1)
        assert not any(is_open(stream) for stream in held)
        assert len(took) > 2 and max(took) < SOON
        for stream in held:
            stream.close()


def test_a_trickle_of_bytes_does_not_extend_the_timeout(spam, short) -> None:
    spam.next(3)
    with (
        served(make_app(LabellingService(spam, k=1), Sessions("a secret"))) as port,
        connected(port) as stream,
    ):
        stream.sendall(head("GET", "/")[:-2])
        began = time.monotonic()
        with pytest.raises(ConnectionError):
            while time.monotonic() - began < 5:
                stream.sendall(b"x: y\r\n")
                time.sleep(0.05)
        assert time.monotonic() - began < 2


def test_the_longest_idle_connection_makes_room(spam, monkeypatch) -> None:
    monkeypatch.setattr(server, "MAX_CONNECTIONS", 8)
    spam.next(3)
    with served(make_app(LabellingService(spam, k=1), Sessions("a secret"))) as port:
        held = []
        for _ in range(12):
            held.append(connected(port))
            held[-1].sendall(b"GET / HT")
            time.sleep(0.02)
        time.sleep(0.2)
        assert [is_open(stream) for stream in held] == [False] * 4 + [True] * 8
        assert ask(port, head("GET", "/"))[0] == 200
        for stream in held:
            stream.close()


def test_a_client_that_reads_no_response_is_disconnected(spam, short, monkeypatch) -> None:
    monkeypatch.setattr(server, "RESPONSE_TIMEOUT", 0.6)
    spam.next(3)
    with (
        served(make_app(LabellingService(spam, k=1), Sessions("a secret"))) as port,
        socket.socket() as stream,
    ):
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stream.connect(("127.0.0.1", port))
        stream.sendall(head("GET", "/static/web.css") * 2000)
        time.sleep(2)
        got = b""
        with suppress(ConnectionError):
            while part := stream.recv(2**20):
                got += part
        assert 0 < got.count(b"HTTP/1.1 200 OK") < 2000
        assert ask(port, head("GET", "/"))[0] == 200


def test_a_rejection_reaches_a_client_that_is_still_sending(spam) -> None:
    spam.next(3)
    with served(make_app(LabellingService(spam, k=1), Sessions("a secret"))) as port:
        actual = ask(port, head("POST", "/api/answers", length=60_000), b"x" * 60_000)
        assert actual[0] == 403
        with connected(port) as stream:  # and the connection is good for the next request
            stream.sendall(head("POST", "/api/answers", length=5) + b"xxxxx" + head("GET", "/"))
            assert answered(stream)[0] == 403 and answered(stream)[0] == 200


BROKEN = {
    "a chunk": b"zz\r\n",
    "a chunk after a good one": b"2\r\n{}\r\n-1\r\n",
    "a chunk after an answer": None,
}


@pytest.mark.parametrize("chunk", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("door", ["GET /", "HEAD /", "POST /api/session", "POST /api/next"])
def test_a_body_that_breaks_is_refused_and_nothing_fails(spam, capfd, door, chunk) -> None:
    spam.next(3)
    with served(make_app(LabellingService(spam, k=1), Sessions("a secret"))) as port:
        sent = head(*door.split(), "Transfer-Encoding: chunked", f"Origin: http://localhost:{port}",
                    "Content-Type: application/json", host=f"localhost:{port}")  # fmt: skip
        for _ in range(5):
            with connected(port) as stream:
                stream.sendall(sent + (chunk or b""))
                if chunk is None:
                    time.sleep(0.1)
                    stream.sendall(b"zz\r\n")
                assert answered(stream)[0] in (200, 400, 401, 405, 422)
        assert ask(port, head("GET", "/"))[0] == 200
    message = capfd.readouterr()
    assert "Traceback" not in message.out + message.err and "Error" not in message.err


def guessing(pairs, **more):
    """TokenCheck at a clock that moves by waiting alone: what was found, and the time of each."""
    now = [0.0]

    async def sleep(seconds):
        now[0] += seconds

    token_check = TokenCheck(clock=lambda: now[0], sleep=sleep)

    async def run():
        results = []
        for token, address in pairs:
            try:
                results.append((await token_check.is_right(token, TOKEN, address), now[0]))
            except auth.HTTPException as error:
                results.append((error.status_code, int(error.headers["retry-after"])))
                now[0] += int(error.headers["retry-after"])
        return results

    return asyncio.run(run()), token_check


def test_each_wrong_token_waits_longer_and_the_right_one_gets_in() -> None:
    pairs = [(f"guess {i}", "192.0.2.7") for i in range(9)]
    right = [(TOKEN, "192.0.2.7")] * 2
    actual, result = guessing([*pairs, *right, ("guess", "192.0.2.7"), ("more", "192.0.2.7")])
    times = [0, 0, 0, 0, 0.5, 1.5, 3.5, 7.5, 15.5]
    assert actual[:9] == [(False, at) for at in times]
    assert actual[9:] == [(429, 16), (True, 31.5), (False, 31.5), (False, 31.5)]  # all is forgiven
    assert result._delayed == 0


def test_the_same_wrong_token_is_one_guess() -> None:
    actual, _ = guessing([("stale", "192.0.2.7")] * 50 + [(TOKEN, "192.0.2.7")])
    assert actual == [(False, 0.0)] * 50 + [(True, 0.0)]


def test_a_request_without_a_token_does_not_count_as_a_guess() -> None:
    actual, _ = guessing([("", "192.0.2.7")] * 50 + [(TOKEN, "192.0.2.7")])
    assert actual == [(False, 0.0)] * 50 + [(True, 0.0)]


def test_many_addresses_together_are_slow_too_and_those_we_know_are_not() -> None:
    good = [(TOKEN, "192.0.2.7")]
    pairs = [(f"guess {i}", f"2001:db8:{i % 5000:x}::1") for i in range(3000)]
    actual, result = guessing([*good, *pairs, *good])
    tries = [item for item in actual if item[0] is False]
    assert actual[-1][0] is True
    assert actual[-1][1] - actual[100][1] >= 0.9 * (len(tries) - 100)  # one a second
    assert len(result._wrong) <= auth.MAX_ADDRESSES >= len(result._right)


def test_guesses_at_once_wait_as_long_as_one_after_the_other() -> None:
    turns = []

    async def sleep(seconds):
        turns.append(seconds)
        await asyncio.Event().wait()

    token_check = TokenCheck(clock=lambda: 0.0, sleep=sleep)

    async def run():
        expected = [token_check.is_right(f"guess {i}", TOKEN, "192.0.2.7") for i in range(20)]
        tasks = [asyncio.create_task(item) for item in expected]
        for _ in range(5):
            await asyncio.sleep(0)
        refused = [task for task in tasks if task.done() and task.exception() is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return len(refused)

    refused = asyncio.run(run())
    assert turns == [0.5, 1.5, 3.5, 7.5] and refused == 12
    assert (
        token_check._wrong["192.0.2.7"].waiting
        == token_check._overall.waiting
        == token_check._delayed
        == 0
    )


def test_guesses_at_once_do_not_pass_each_other() -> None:
    now, slept = [0.0], []

    async def sleep(seconds):
        slept.append(seconds)
        await asyncio.Event().wait()

    token_check = TokenCheck(clock=lambda: now[0], sleep=sleep)

    async def run():
        for i in range(4):
            assert not await token_check.is_right(f"guess {i}", TOKEN, "192.0.2.7")
        tasks = [
            asyncio.create_task(token_check.is_right(f"more {i}", TOKEN, "192.0.2.7"))
            for i in range(200)
        ]
        done, waiting = await asyncio.wait(tasks, timeout=0.5)
        codes = {task.exception().status_code for task in done}
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
        return codes, len(waiting)

    codes, waiting = asyncio.run(run())
    assert codes == {429} and waiting == len(slept) <= auth.MAX_DELAYED
    assert slept == sorted(slept) and len(set(slept)) == len(slept) and max(slept) <= 10
    assert token_check._delayed == 0


def test_wrong_tokens_on_the_page_are_slowed_and_nobody_else_is(spam) -> None:
    spam.next(3)
    with running(LabellingService(spam, k=1), Sessions("a secret", TOKEN)) as app:
        eve, began = person_of(app, None), time.monotonic()
        codes = [eve.enter("eve", f"guess {i}").status_code for i in range(6)]
        assert codes == [401] * 6 and time.monotonic() - began >= 1.5
        assert eve.enter("ann", TOKEN).status_code == 200
        for i in range(5):
            eve.enter("eve", f"more {i}")
        eve.app.state.tokens._wrong["testclient"].until += 60
        answer = eve.enter("eve", "again")
        assert answer.status_code == 429 and int(answer.headers["retry-after"]) > 10
        assert "wait" in answer.json()["detail"]


def test_pages_are_answered_while_guesses_wait(spam) -> None:
    spam.next(3)
    body = [json.dumps({"name": "eve", "token": f"guess {i}"}).encode() for i in range(60)]
    with served(make_app(LabellingService(spam, k=1), Sessions("a secret", TOKEN))) as port:
        held = []
        with watched(port, "/") as took:
            for item in body:
                held.append(connected(port))
                held[-1].sendall(
                    head("POST", "/api/session", f"Origin: http://localhost:{port}",
                         "Content-Type: application/json", host=f"localhost:{port}",
                         length=len(item)) + item
                )  # fmt: skip
            time.sleep(1.5)
        codes = [answered(stream)[0] for stream in held[:4] + held[-10:]]
        assert codes == [401] * 4 + [429] * 10
        assert max(took) < SOON
        for stream in held:
            stream.close()
