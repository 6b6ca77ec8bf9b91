"""What is checked before a request is looked at, and what every answer carries."""

import re
from collections.abc import Collection
from contextlib import suppress
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES = 65_536
_HOST = re.compile(
    r"(?:\[(?P<address>[0-9a-f.]*:[0-9a-f:.]*)\]|(?P<name>[^:\[\]]*))(?::[0-9]*)?", re.IGNORECASE
)
_LENGTH = re.compile(r"[0-9]{1,18}")
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


class _TooLarge(Exception):
    """More came than was announced, or than is taken."""


class Guard:
    """Known hosts only, changes from our own pages only, small bodies only, strict headers.

    Without `pages`, changes come from other programs only: whatever a browser sends is refused.
    """

    def __init__(
        self, app: ASGIApp, hosts: Collection[str], most: int = MOST_BYTES, pages: bool = True
    ) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        self._most = most
        self._pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, and pass it on."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refused(scope)
        if refusal is not None:
            await refusal(scope, receive, _marked(send))
            return
        got, began, over = 0, False, False

        async def counted() -> Message:
            nonlocal got, over
            message = await receive()
            got += len(message.get("body", b""))
            if got > self._most:
                over = True
                raise _TooLarge
            return message

        async def sending(message: Message) -> None:
            nonlocal began
            if over and not began:
                return  # what the application makes of it is of no interest
            began = True
            await _marked(send)(message)

        with suppress(_TooLarge):
            await self._app(scope, counted, sending)
        if over and not began:
            await _too_large(self._most)(scope, receive, _marked(send))

    def _refused(self, scope: Scope) -> JSONResponse | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if host_name(host) not in self._hosts:
            return _problem(400, "expected the address that evgp serve told, got another host")
        length = headers.get("content-length", "0")
        if not _LENGTH.fullmatch(length) or int(length) > self._most:
            return _too_large(self._most)
        if scope["method"] in SAFE:
            return None
        return self._foreign(headers, host)

    def _foreign(self, headers: Headers, host: str) -> JSONResponse | None:
        """A browser says which page a change comes from; other programs say nothing."""
        if not self._pages:
            if "origin" not in headers:
                return None
            return _problem(403, "expected a request of a program, got one of a web page")
        if not _is_of(headers.get("origin", ""), host):
            return _problem(403, "expected a request of this page, got one from elsewhere")
        return None


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


def _problem(status: int, words: str) -> JSONResponse:
    return JSONResponse({"detail": words}, status)


def _too_large(most: int) -> JSONResponse:
    return _problem(413, f"expected at most {most:,} bytes, got more")
