"""Checks before a request reaches the application, and the headers of every response.

In this order: the host, the announced length, the origin of a change, the sender. The body is
read only then, up to the limit of its path.
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
_MAX_WAIT = 30.0  # seconds that a request waits for others on its path
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
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
Authorise: TypeAlias = Callable[[HTTPConnection], Awaitable[None]]


@dataclass(frozen=True)
class PathLimits:
    """The largest body of a path in bytes, and how many requests to it run at the same time."""

    max_bytes: int = 65_536
    max_concurrent: int | None = None


class Guard:
    """Admits known hosts, changes from our own pages, people who have signed in, and small bodies.

    `authorise` sees only the headers, and raises an `HTTPException` to reject a request. `limits`
    are by path. Without `pages`, changes may come from other programs only, and whatever a browser
    sends from a page is rejected.
    """

    def __init__(
        self,
        app: ASGIApp,
        hosts: Collection[str],
        authorise: Authorise,
        limits: Mapping[str, PathLimits] | None = None,
        pages: bool = True,
    ) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        self._authorise = authorise
        self._limits = limits or {}
        self._semaphores = {
            path: asyncio.Semaphore(limit.max_concurrent)
            for path, limit in self._limits.items()
            if limit.max_concurrent is not None
        }
        self._pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, and pass it on."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        send = _with_headers(send)
        max_bytes = self._limits.get(scope["path"], PathLimits()).max_bytes
        try:
            self._check(scope, max_bytes)
            await self._authorise(HTTPConnection(scope))
            async with self._slot(scope["path"]):
                if scope["method"] not in SAFE_METHODS:
                    body = await _body(receive, max_bytes)
                    if body is None:
                        return
                    receive = _replay(body, receive)
                await self._app(scope, receive, send)
        except HTTPException as error:
            response = JSONResponse({"detail": error.detail}, error.status_code, error.headers)
            await response(scope, receive, send)

    def _check(self, scope: Scope, max_bytes: int) -> None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if host_name(host) not in self._hosts:
            raise HTTPException(
                400, "unknown host name; open the address that evgp campaign serve printed"
            )
        length = headers.get("content-length", "0")
        if not _LENGTH.fullmatch(length) or int(length) > max_bytes:
            raise _too_large(max_bytes)
        if scope["method"] in SAFE_METHODS:
            return
        self._check_origin(headers, host)
        if headers.get("content-encoding", "identity").lower() != "identity":
            raise HTTPException(415, "the body is compressed; send it uncompressed")

    def _check_origin(self, headers: Headers, host: str) -> None:
        """Browsers name the page that a change comes from; other programs do not."""
        if not self._pages:
            if "origin" in headers:
                raise HTTPException(403, "requests from web pages are not accepted here")
        elif not _same_origin(headers.get("origin", ""), host):
            raise HTTPException(403, "the request does not come from a page of this server")

    @asynccontextmanager
    async def _slot(self, path: str) -> AsyncIterator[None]:
        """Wait until fewer requests use this path; nothing of the body is in memory before that."""
        semaphore = self._semaphores.get(path)
        if semaphore is None:
            yield
            return
        try:
            async with asyncio.timeout(_MAX_WAIT):
                await semaphore.acquire()
        except TimeoutError:
            raise HTTPException(
                503, "busy with other requests; try again", {"retry-after": "10"}
            ) from None
        try:
            yield
        finally:
            semaphore.release()


async def _body(receive: Receive, max_bytes: int) -> bytes | None:
    """The whole body, or None if the client has disconnected; rejected as soon as it is too long.

    Starlette's own limit (since 1.0) cannot reply in JSON, and counts only what a route reads.
    """
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        part = message.get("body", b"")
        size += len(part)
        if size > max_bytes:
            raise _too_large(max_bytes)
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Deliver a body that was read already, then whatever else arrives."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return messages.pop() if messages else await receive()

    return replayed


def host_name(host: str) -> str:
    """The name in a Host header without its port, or an empty string if the header is malformed.

    >>> host_name("localhost:8000"), host_name("[::1]:8000"), host_name("[::1")
    ('localhost', '::1', '')
    """
    match = _HOST.fullmatch(host)
    return "" if match is None else (match["address"] or match["name"]).lower()


def _same_origin(origin: str, host: str) -> bool:
    """Whether `origin` is this host; a malformed origin is not."""
    try:
        url = urlsplit(origin)
    except ValueError:
        return False
    return url.scheme in ("http", "https") and url.netloc.lower() == host.lower()


def _with_headers(send: Send) -> Send:
    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            headers.setdefault("cache-control", "no-store")
        await send(message)

    return wrapped


def _too_large(max_bytes: int) -> HTTPException:
    return HTTPException(413, f"the body is larger than {max_bytes:,} bytes")
