"""Connections that do not wait for ever: what uvicorn leaves to a proxy in front of it.

Its own time-out is for connections between two requests, and every byte resets it; and it refuses
new requests where there are many connections, however idle those are.
"""

import asyncio
from contextlib import suppress
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST = 256  # connections at once
HEADERS = 10.0  # seconds for the headers of a request
BODY = 10.0  # seconds for its body, and one more for each megabyte that has come
ANSWER = 60.0  # seconds for the client to take an answer
LINGER = 3.0  # seconds in which the rest of a body that was refused is thrown away
_RATE = 1e6  # bytes a second
_LOOK = 0.5  # seconds


class Connection(H11Protocol):
    """A connection that ends where its client keeps us waiting.

    Where there are too many, the one that has kept us waiting longest makes room for a new one, so
    that idle connections keep nobody out.
    """

    _phase: tuple[object, ...] = ()
    _since = 0.0
    _got = 0
    _looking: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, and make room for it."""
        super().connection_made(transport)
        self._phase, self._since = self._owed(), self.loop.time()
        self._looking = self.loop.call_later(_LOOK, self._look)
        self._make_room()

    def data_received(self, data: bytes) -> None:
        """Count, and go on."""
        self._got += len(data)
        super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Look no more."""
        if self._looking is not None:
            self._looking.cancel()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, in the place of an answer that may be under way.

        The body may turn out to be broken after its request was passed on: whoever answers that
        talks to nobody, instead of failing.
        """
        cycle: Any = self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
        with suppress(h11.LocalProtocolError):  # it was answered already, or a HEAD wants no body
            super().send_400_response(msg)
        self.transport.close()

    def _make_room(self) -> None:
        """End the one that has kept us waiting longest; or this one, where none does."""
        held = [one for one in self.connections if isinstance(one, Connection)]
        held = [one for one in held if not one.transport.is_closing()]
        if len(held) > MOST:
            idle = [one for one in held if one is not self and one._waited() > 0]
            max(idle, key=Connection._waited, default=self).transport.abort()

    def _look(self) -> None:
        """End it where its time is over; else look again soon."""
        self._looking = self.loop.call_later(_LOOK, self._look)
        if self._waited() > 0 and self._waited() > self._allowed():
            self.transport.abort()

    def _waited(self) -> float:
        """Seconds for which the client has owed us something; none where we owe it an answer."""
        phase = self._owed()
        if phase != self._phase:
            self._phase, self._since, self._got = phase, self.loop.time(), 0
        return self.loop.time() - self._since if phase else 0.0

    def _owed(self) -> tuple[object, ...]:
        """What we wait for, of which request."""
        cycle: Any = self.cycle
        if self.transport.get_write_buffer_size():
            return "to take the answer", cycle
        if self.conn.their_state is h11.IDLE:
            return "headers", cycle
        if self.conn.their_state is h11.SEND_BODY and not self.flow.read_paused:
            over = cycle is not None and cycle.response_complete
            return "the rest" if over else "body", cycle
        return ()

    def _allowed(self) -> float:
        what = self._phase[0]
        if what == "body":
            return BODY + self._got / _RATE
        return {"headers": HEADERS, "the rest": LINGER}.get(str(what), ANSWER)
