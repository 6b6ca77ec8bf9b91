"""A web server that sends a file as it should, and others that do not."""

import re
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

# What each of them does in place of an honest answer.
BAD = (
    "whole", "endless", "huge", "huge-part", "gzip", "half", "drip", "drip-headers", "silent",
    "missing", "denied", "error", "loop", "to-file", "other-part", "no-total", "grows", "garbage",
    "headers", "not-http",
)  # fmt: skip


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    content = b""
    asked = 0

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        kind = self.path.split("/")[1]
        type(self).asked += 1
        actual = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        first, last = (int(actual[1]), int(actual[2])) if actual else (0, len(self.content) - 1)
        part = self.content[first : last + 1]
        try:
            getattr(self, "_" + kind.replace("-", "_"))(first, last, part)
        except OSError:
            pass  # the requester has gone
        self.close_connection = True

    def _head(self, code: int, **headers: object) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()

    def _range(self, first: int, last: int, size: object = None, length: object = None) -> None:
        count = last - first + 1 if length is None else length
        of = len(self.content) if size is None else size
        self._head(206, Content_Range=f"bytes {first}-{last}/{of}", Content_Length=count)

    def _forever(self, text: bytes, pause: float = 0.0, seconds: float = 30.0) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.wfile.write(text)
            self.wfile.flush()
            time.sleep(pause)

    def _good(self, first: int, last: int, part: bytes) -> None:
        self._range(first, last)
        self.wfile.write(part)

    def _whole(self, first: int, last: int, part: bytes) -> None:
        self._head(200, Content_Length=len(self.content))
        self.wfile.write(self.content)

    def _endless(self, first: int, last: int, part: bytes) -> None:
        self._head(206, Content_Range=f"bytes {first}-{last}/{10**9}", Transfer_Encoding="chunked")
        self._forever(b"10000\r\n" + bytes(1 << 16) + b"\r\n")

    def _huge(self, first: int, last: int, part: bytes) -> None:
        self._head(200, Content_Length=10**15)
        self._forever(bytes(1 << 16))

    def _huge_part(self, first: int, last: int, part: bytes) -> None:
        self._range(first, last, size=10**15, length=10**15)
        self._forever(bytes(1 << 16))

    def _gzip(self, first: int, last: int, part: bytes) -> None:
        size = len(self.content)
        self._head(
            206, Content_Range=f"bytes {first}-{last}/{size}", Content_Encoding="gzip",
            Content_Length=8,
        )  # fmt: skip
        self.wfile.write(b"\x1f\x8b" + bytes(6))

    def _half(self, first: int, last: int, part: bytes) -> None:
        self._range(first, last)
        self.wfile.write(part[: len(part) // 2])

    def _drip(self, first: int, last: int, part: bytes) -> None:
        self._range(first, last, size=10**6, length=10**6)
        self._forever(b"x", 0.1)

    def _drip_headers(self, first: int, last: int, part: bytes) -> None:
        self.wfile.write(b"HTTP/1.1 206 OK\r\nX-Slow: ")
        self._forever(b"x", 0.1)

    def _silent(self, first: int, last: int, part: bytes) -> None:
        time.sleep(10)

    def _missing(self, first: int, last: int, part: bytes) -> None:
        self._head(404, Content_Length=0)

    def _denied(self, first: int, last: int, part: bytes) -> None:
        self._head(401, Content_Length=0)

    def _error(self, first: int, last: int, part: bytes) -> None:
        self._head(500, Content_Length=0)

    def _loop(self, first: int, last: int, part: bytes) -> None:
        self._head(302, Location=self.path, Content_Length=0)

    def _to_file(self, first: int, last: int, part: bytes) -> None:
        self._head(302, Location="file:///etc/passwd", Content_Length=0)

    def _other_part(self, first: int, last: int, part: bytes) -> None:
        self._range(first + 1, last + 1)
        self.wfile.write(part)

    def _no_total(self, first: int, last: int, part: bytes) -> None:
        self._range(first, last, size="*")
        self.wfile.write(part)

    def _grows(self, first: int, last: int, part: bytes) -> None:
        self._range(first, last, size=len(self.content) + self.asked)
        self.wfile.write(part.ljust(last - first + 1, b"x"))

    def _garbage(self, first: int, last: int, part: bytes) -> None:
        self._range(first, last)
        self.wfile.write(bytes(len(part)))

    def _headers(self, first: int, last: int, part: bytes) -> None:
        self.wfile.write(b"HTTP/1.1 206 OK\r\n")
        self._forever(b"X-More: more\r\n")

    def _not_http(self, first: int, last: int, part: bytes) -> None:
        self.wfile.write(b"SSH-2.0-server\r\n")


@contextmanager
def serving(content: bytes):
    """The address of a server; the first part of the path says how it behaves."""
    handler = type("Handler", (_Handler,), {"content": content})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
