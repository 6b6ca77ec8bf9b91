"""What is checked before a request is looked at, and what every answer carries.

In this order: the host, the announced length, where a change comes from, who sends it. Only then is
a body read, up to the limit of its door.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HOST = re.compile(
    r"(?:\[(?P<address>[0-9a-f.]*:[0-9a-f:.]*)\]|(?P<name>[^:\[\]]*))(?::[0-9]*)?", re.IGNORECASE
)
_LENGTH = re.compile(r"[0-9]{1,18}")
_TURN = 30.0  # seconds that a request waits for its turn at a door
SAFE = ("GET", "HEAD", "OPTIONS")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
Admit: TypeAlias = Callable[[HTTPConnection], Awaitable[None]]


@dataclass(frozen=True)
class Door:
    """How many bytes a body may have; how many requests are read and answered at once."""

    most: int = 65_536
    at_once: int | None = None


class Guard:
    """Known hosts only, changes from our own pages only, known people only, small bodies only.

    `admit` raises an `HTTPException` for whoever may not come in; it sees the headers alone.
    `doors` have limits of their own, by path. Without `pages`, changes come from other programs
    only: whatever a browser sends is refused.
    """

    def __init__(
        self,
        app: ASGIApp,
        hosts: Collection[str],
        admit: Admit,
        doors: Mapping[str, Door] | None = None,
        pages: bool = True,
    ) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        self._admit = admit
        self._doors = doors or {}
        self._turns = {
            path: asyncio.Semaphore(door.at_once)
            for path, door in self._doors.items()
            if door.at_once is not None
        }
        self._pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, and pass it on with its body."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        send = _marked(send)
        door = self._doors.get(scope["path"], Door())
        try:
            self._check(scope, door)
            await self._admit(HTTPConnection(scope))
            async with self._turn(scope["path"]):
                if scope["method"] not in SAFE:
                    body = await _body(receive, door.most)
                    if body is None:
                        return
                    receive = _again(body, receive)
                await self._app(scope, receive, send)
        except HTTPException as error:
            refusal = JSONResponse({"detail": error.detail}, error.status_code, error.headers)
            await refusal(scope, receive, send)

    def _check(self, scope: Scope, door: Door) -> None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if host_name(host) not in self._hosts:
            raise HTTPException(
                400, "expected the address that evgp campaign serve told, got another host"
            )
        length = headers.get("content-length", "0")
        if not _LENGTH.fullmatch(length) or int(length) > door.most:
            raise _too_large(door.most)
        if scope["method"] in SAFE:
            return
        self._check_origin(headers, host)
        if headers.get("content-encoding", "identity").lower() != "identity":
            raise HTTPException(415, "expected a body that is not compressed; send it as it is")

    def _check_origin(self, headers: Headers, host: str) -> None:
        """A browser says which page a change comes from; other programs say nothing."""
        if not self._pages:
            if "origin" in headers:
                raise HTTPException(403, "expected a request of a program, got one of a web page")
        elif not _is_of(headers.get("origin", ""), host):
            raise HTTPException(403, "expected a request of this page, got one from elsewhere")

    @asynccontextmanager
    async def _turn(self, path: str) -> AsyncIterator[None]:
        """Wait until few enough are at a door; nothing of a body is in memory until then."""
        turns = self._turns.get(path)
        if turns is None:
            yield
            return
        try:
            async with asyncio.timeout(_TURN):
                await turns.acquire()
        except TimeoutError:
            raise HTTPException(
                503, "busy with other requests; try again", {"retry-after": "10"}
            ) from None
        try:
            yield
        finally:
            turns.release()


async def _body(receive: Receive, most: int) -> bytes | None:
    """The whole body; None from somebody who has hung up; refused as soon as it is too long."""
    parts, got = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        part = message.get("body", b"")
        got += len(part)
        if got > most:
            raise _too_large(most)
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def _again(body: bytes, receive: Receive) -> Receive:
    """A body that was read, for whoever is next; then whatever else there is to hear."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Message:
        return waiting.pop() if waiting else await receive()

    return received


def host_name(host: str) -> str:
    """The name in a Host header, without the port; nothing where it is none.

    >>> host_name("localhost:8000"), host_name("[::1]:8000"), host_name("[::1")
    ('localhost', '::1', '')
    """
    found = _HOST.fullmatch(host)
    return "" if found is None else (found["address"] or found["name"]).lower()


def _is_of(origin: str, host: str) -> bool:
    """Is it a page of this host? What is no address is of none."""
    try:
        found = urlsplit(origin)
    except ValueError:
        return False
    return found.scheme in ("http", "https") and found.netloc.lower() == host.lower()


def _marked(send: Send) -> Send:
    async def marked(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            headers.setdefault("cache-control", "no-store")
        await send(message)

    return marked


def _too_large(most: int) -> HTTPException:
    return HTTPException(413, f"expected at most {most:,} bytes, got more")
