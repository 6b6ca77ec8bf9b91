"""The server: its socket, the host names it answers to, and connections that time out."""

import asyncio
import gc
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import h11
import psutil
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from evgp.errors import CampaignError
from evgp.labelling.web.app import LOOPBACK

MAX_CONNECTIONS = 256
HEADER_TIMEOUT = 10.0  # seconds for the headers of a request
BODY_TIMEOUT = 10.0  # seconds for its body, plus one for each megabyte received
RESPONSE_TIMEOUT = 60.0  # seconds for the client to read a response
DISCARD_TIMEOUT = 3.0  # seconds in which the rest of a rejected body is discarded
_RATE = 1e6  # bytes a second
_CHECK_INTERVAL = 0.5  # seconds
_WILDCARDS = ("0.0.0.0", "::")


class Connection(H11Protocol):
    """A connection that is closed when its client keeps the server waiting.

    uvicorn leaves this to a proxy: its own time-out covers only the time between two requests and
    restarts with every byte, and its limit on connections rejects new ones however idle the others
    are. Here, when there are too many, the one whose client has been silent longest is closed, so
    that idle connections keep nobody out.
    """

    _phase: tuple[object, ...] = ()
    _since = 0.0
    _received = 0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, and close another if there are too many."""
        super().connection_made(transport)
        self._phase, self._since = self._expected(), self.loop.time()
        self._timer = self.loop.call_later(_CHECK_INTERVAL, self._check)
        self._make_room()

    def data_received(self, data: bytes) -> None:
        """Count the bytes, and process them."""
        self._received += len(data)
        super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop checking."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Reject malformed HTTP, even if a response is under way.

        A body may turn out to be malformed after its request was passed on: the application then
        sees a client that has disconnected, instead of failing.
        """
        cycle: Any = self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
        with suppress(h11.LocalProtocolError):  # already answered, or a HEAD without a body
            super().send_400_response(msg)
        self.transport.close()

    def _make_room(self) -> None:
        """Close the connection that was silent longest, or this one if no client is silent."""
        connections = [
            other
            for other in self.connections
            if isinstance(other, Connection) and not other.transport.is_closing()
        ]
        if len(connections) > MAX_CONNECTIONS:
            idle = [other for other in connections if other is not self and other._waited() > 0]
            max(idle, key=Connection._waited, default=self).transport.abort()

    def _check(self) -> None:
        """Close the connection if its time is over, else check again soon."""
        self._timer = self.loop.call_later(_CHECK_INTERVAL, self._check)
        if self._waited() > 0 and self._waited() > self._timeout():
            self.transport.abort()

    def _waited(self) -> float:
        """Seconds that we have waited for the client; 0 while it waits for us."""
        phase = self._expected()
        if phase != self._phase:
            self._phase, self._since, self._received = phase, self.loop.time(), 0
        return self.loop.time() - self._since if phase else 0.0

    def _expected(self) -> tuple[object, ...]:
        """The phase of a connection, and its request."""
        cycle: Any = self.cycle
        if self.transport.get_write_buffer_size():
            return "reading the response", cycle
        if self.conn.their_state is h11.IDLE:
            return "headers", cycle
        if self.conn.their_state is h11.SEND_BODY and not self.flow.read_paused:
            responded = cycle is not None and cycle.response_complete
            return "rest of the body" if responded else "body", cycle
        return ()

    def _timeout(self) -> float:
        phase = str(self._phase[0])
        if phase == "body":
            return BODY_TIMEOUT + self._received / _RATE
        return {"headers": HEADER_TIMEOUT, "rest of the body": DISCARD_TIMEOUT}.get(
            phase, RESPONSE_TIMEOUT
        )


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens at an address."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen()  # early clients wait until the server is up
        except BaseException:
            listening.close()
            raise
    except (OSError, UnicodeError) as error:
        raise CampaignError(
            f"cannot listen on {host} port {port}: "
            f"{getattr(error, 'strerror', None) or error}; choose another port= or host="
        ) from error
    return listening


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    return host in LOOPBACK or (host.startswith("127.") and host.count(".") == 3)


def host_names(host: str, extra: Sequence[str] = ()) -> set[str]:
    """Names that a server at this address answers to: its own, this machine's, and extra ones."""
    names = {host, *LOOPBACK, *extra}
    if host in _WILDCARDS:
        names |= {socket.gethostname(), socket.getfqdn()}
        names |= {
            interface.address.partition("%")[0]
            for interfaces in psutil.net_if_addrs().values()
            for interface in interfaces
            if interface.family in (socket.AF_INET, socket.AF_INET6)
        }
    return {name.lower() for name in names} - {*_WILDCARDS}


def make_server(app: FastAPI) -> uvicorn.Server:
    """A server that never logs a request, not even a malformed one."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=Connection,
            backlog=128,  # connections accepted at a time, before idle ones are closed
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,  # otherwise X-Forwarded-For would hide who guesses tokens
            timeout_graceful_shutdown=3,
            ws="none",
        )
    )


def serve(listening: socket.socket, app: FastAPI) -> None:
    """Serve until Ctrl-C or SIGTERM."""
    # Everything loaded so far stays. Large requests make the garbage collector scan all of it again
    # and again, and every other request waits meanwhile.
    gc.collect()
    gc.freeze()
    make_server(app).run(sockets=[listening])
