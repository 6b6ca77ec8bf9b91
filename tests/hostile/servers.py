"""`evgp campaign serve` in its own processes, monitored, and requests that should not be sent."""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import psutil

from tests.serving import ask, head

TOKEN = "a-token-that-nobody-guesses"


class Server:
    """A server, the most memory it has used, and all it said."""

    def __init__(self, name, *given, token=TOKEN):
        self._said = tempfile.TemporaryFile("w+")
        environment = {**os.environ, "EVGP_TOKEN": token, "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "evgp", "campaign", "serve", str(name), "--port", "0", *given],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self._said,
            env=environment,
        )  # fmt: skip
        self.port = self._port()
        self._watching = psutil.Process(self.process.pid)
        self.peak = 0
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _port(self):
        until = time.monotonic() + 120
        while time.monotonic() < until and self.process.poll() is None:
            match = re.search(r"http://127\.0\.0\.1:(\d+)", self.said)
            if match and ask(int(match[1]), head("GET", "/")):
                return int(match[1])
            time.sleep(0.1)
        raise AssertionError(self.said)

    @property
    def said(self):
        return Path(f"/proc/self/fd/{self._said.fileno()}").read_text(errors="replace")

    @property
    def memory(self):
        return self._watching.memory_info().rss

    def _watch(self):
        while not self._ending.wait(0.02) and self.process.poll() is None:
            self.peak = max(self.peak, self.memory)

    def grown(self, before):
        """Megabytes by which its memory has grown."""
        return (max(self.peak, self.memory) - before) / 1e6

    def begin(self):
        """The memory from which on the peak is counted."""
        self.peak = before = self.memory
        return before

    def seconds(self, path="/"):
        """How long an honest request takes."""
        began = time.monotonic()
        actual = ask(self.port, head("GET", path, "Connection: close"))
        return time.monotonic() - began if actual and actual[0] == 200 else float("inf")

    def stop(self):
        """End it, and give all it said."""
        self._ending.set()
        self._thread.join()
        self.process.terminate()
        self.process.wait(30)
        message = self.said
        self._said.close()
        return message


def signed_in(port, name="ann", token=TOKEN):
    """The headers that somebody sends who has signed in."""
    body = json.dumps({"name": name, "token": token}).encode()
    origin = f"Origin: http://localhost:{port}"
    actual = ask(
        port,
        head("POST", "/api/session", origin, "Content-Type: application/json",
             host=f"localhost:{port}", length=len(body)) + body,
    )  # fmt: skip
    assert actual[0] == 200, actual
    cookie = actual[1]["set-cookie"].partition(";")[0]
    return [origin, f"Cookie: {cookie}", f"X-CSRF-Token: {json.loads(actual[2])['csrf']}",
            "Content-Type: application/json"]  # fmt: skip


PIECES = [
    b"\0", b"\r\n", b"\n", b"\r", b" ", b"\t", b"%", b"%00", b"%ff", b"../", b"\xff", b"\xc3\x28",
    b"\xed\xa0\x80", b"{", b"}", b"[", b"]", b'"', b"\\", b"\\ud800", b"NaN", b"-Infinity",
    b"1e999", b"-0", b"9" * 400, b"null", b"true", b"[" * 300, b'{"a":' * 300, b"x" * 5_000,
    b"?" + b"a=b&" * 3_000, b": ", b":", b",", b";", b"=", b"\xef\xbb\xbf", b"\x1f\x8b\x08\x00",
]  # fmt: skip
HEADERS = [
    b"Content-Length: 5", b"Content-Length: -1", b"Content-Length: 99999999999999999999",
    b"Content-Length: " + b"9" * 5_000, b"Content-Length: 0x10", b"Content-Length: +5",
    b"Transfer-Encoding: chunked", b"Transfer-Encoding: gzip, chunked", b"Transfer-Encoding: \x0b",
    b"Expect: 100-continue", b"Content-Encoding: gzip", b"Content-Encoding: br", b"Connection: x",
    b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", b"Upgrade: h2c", b"Host: evil.example",
    b"Host: [", b"Cookie: " + b"a=b; " * 500, b"Cookie: \xff=\xff", b"X: " + b"y" * 20_000,
    b"X-CSRF-Token: \xff", b"Authorization: Basic \xff", b"Authorization: Bearer",
    b"Authorization: Basic " + b"QQ=" * 50, b"Origin: null", b"Origin: http://[",
    b"Content-Type: text/plain", b"Content-Type: multipart/form-data; boundary=x",
    b"Content-Type: application/json; charset=utf-7", b"Content-Type: \xff/\xff", b" folded",
    b"X-Forwarded-For: 1.2.3.4, \xff", b"Forwarded: for=[", b"Range: bytes=0-", b": no name",
    b"Accept-Encoding: gzip", b"If-None-Match: *",
]  # fmt: skip
METHODS = [b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"PATCH", b"OPTIONS", b"TRACE", b"CONNECT",
           b"PRI", b"get", b"X" * 300, b"\xff", b""]  # fmt: skip
VALUES = ["NaN", "Infinity", "1e999", "-1", "1" * 5_000, '"\\ud800"', '"' + "x" * 9_000 + '"', "{}",
          "[]", "[[]]", "true", "null", '""', "9007199254740993", "0.1", "[" * 80 + "]" * 80,
          '{"a":1,"a":2}']  # fmt: skip


def mutated(rng: np.random.Generator, request: bytes) -> bytes:
    """A request with something wrong, somewhere."""
    start, _, body = request.partition(b"\r\n\r\n")
    line, *headers = start.split(b"\r\n")
    for _ in range(int(rng.integers(1, 4))):
        kind = int(rng.integers(9))
        if kind == 0:
            line = METHODS[rng.integers(len(METHODS))] + b" " + line.partition(b" ")[2]
        elif kind == 1:
            line = _spliced(rng, line)
        elif kind == 2:
            headers.insert(int(rng.integers(len(headers) + 1)), HEADERS[rng.integers(len(HEADERS))])
        elif kind == 3 and headers:
            del headers[rng.integers(len(headers))]
        elif kind == 4 and headers:
            i = int(rng.integers(len(headers)))
            headers[i] = _spliced(rng, headers[i])
        elif kind == 5:
            body = _spliced(rng, body)
        elif kind in (6, 7):
            body, headers = _valued(rng, body), _without_length(headers)
            headers.append(b"Content-Length: %d" % len(body))
        else:
            headers = [*_without_length(headers), b"Transfer-Encoding: chunked"]
            body = b"".join(
                b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:9], body[9:]) if part
            )
            body += [
                b"0\r\n\r\n",
                b"0\r\n",
                b"",
                b"fffffffff\r\n",
                b"-1\r\n",
                b"0\r\nX: y\r\n\r\n",
            ][rng.integers(6)]
    result = b"\r\n".join([line, *headers]) + b"\r\n\r\n" + body
    return result if rng.random() < 0.9 else result[: rng.integers(1, len(result) + 1)]


def _spliced(rng, text):
    """Text with a piece put in, or taken out, or its bytes changed."""
    at = int(rng.integers(len(text) + 1))
    kind = int(rng.integers(3))
    if kind == 0:
        return text[:at] + PIECES[rng.integers(len(PIECES))] + text[at:]
    if kind == 1:
        return text[:at] + text[at + int(rng.integers(1, 9)) :]
    return text[:at] + rng.bytes(int(rng.integers(1, 9))) + text[at + 4 :]


def _valued(rng, body):
    """JSON in which one value is another."""
    places = list(re.finditer(rb'(?<=[:\[,])\s*("(?:[^"\\]|\\.)*"|[-\w.]+)', body))
    if not places:
        return body
    first = places[rng.integers(len(places))]
    value = VALUES[rng.integers(len(VALUES))].encode()
    return body[: first.start()] + value + body[first.end() :]


def _without_length(headers):
    return [header for header in headers if not header.lower().startswith(b"content-length")]
