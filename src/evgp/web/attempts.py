"""Wrong tokens: each further one from the same address has to wait longer."""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from math import ceil
from time import monotonic
from typing import TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from evgp.web.sessions import same

PATIENCE = 10.0  # seconds that a request is kept waiting at most; else it is refused at once
WAITING = 32  # requests that are kept waiting at once
ADDRESSES = 1_024  # that are remembered
FORGOTTEN = 600.0  # seconds after the last wrong token
V = TypeVar("V")


@dataclass
class _Record:
    """Wrong tokens of one address, or of all addresses together.

    The first `free` cost nothing, the next one `first` seconds, each further one twice as much, up
    to `longest`.
    """

    free: int
    first: float
    longest: float
    count: int = 0
    until: float = 0.0  # when the next token is looked at
    at: float = 0.0
    seen: bytes = b""
    waiting: int = 0  # tokens that have their turn, and were not looked at yet

    def book(self, turn: float, seen: bytes) -> None:
        """Give a token its turn; the next one waits as if this and all that wait were wrong."""
        self.waiting += 1
        self.until = max(self.until, turn + self._pause(self.waiting - (seen == self.seen)))

    def add(self, now: float, seen: bytes) -> None:
        """Count a wrong token; the same one again is not a further guess."""
        self.count += seen != self.seen
        self.at, self.seen = now, seen
        self.until = max(self.until, now + self._pause())

    def _pause(self, more: int = 0) -> float:
        further = self.count + more - self.free
        return min(self.longest, self.first * 2.0 ** min(further - 1, 60)) if further > 0 else 0.0


class Attempts:
    """Compares tokens, no faster than a person who mistypes would need.

    One address may be wrong three times; from then on a token from there is looked at after 0.5, 1,
    2, ... 30 seconds. After 50 wrong ones from anywhere, tokens from addresses that never gave the
    right one are looked at once a second at most. Who comes too early waits, or is refused (429)
    where that would take more than ten seconds or too many wait already.
    """

    def __init__(
        self,
        clock: Callable[[], float] = monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._all = _Record(50, 0.05, 1.0)
        self._wrong: OrderedDict[str, _Record] = OrderedDict()
        self._right: OrderedDict[str, None] = OrderedDict()
        self._waiting = 0

    async def is_right(self, given: str, token: str, address: str) -> bool:
        """Is it the token? A request without any is no guess, and never waits."""
        if not given:
            return False
        place = _network(address)
        now = self._clock()
        self._forget(place, now)
        known = [self._wrong[place]] if place in self._wrong else []
        records = known if place in self._right else [*known, self._all]
        turn = max([now, *(one.until for one in records)])
        if turn - now > PATIENCE or (turn > now and self._waiting >= WAITING):
            raise _too_many(turn - now)
        seen = hashlib.sha256(given.encode("utf-8", "replace")).digest()
        for one in records:
            one.book(turn, seen)  # whoever comes meanwhile is after us
        self._waiting += turn > now
        try:
            if turn > now:
                await self._sleep(turn - now)
        finally:
            self._waiting -= turn > now
            for one in records:
                one.waiting -= 1
        if same(given, token):
            self._wrong.pop(place, None)
            _remember(self._right, place, None)
            return True
        self._note(place, seen)
        return False

    def _forget(self, place: str, now: float) -> None:
        """Begin again where the last wrong token was long ago."""
        if place in self._wrong and now - self._wrong[place].at > FORGOTTEN:
            del self._wrong[place]
        if now - self._all.at > FORGOTTEN:
            self._all.count = 0

    def _note(self, place: str, seen: bytes) -> None:
        one = self._wrong.get(place) or _Record(3, 0.5, 30.0)
        _remember(self._wrong, place, one)
        for record in (one, self._all):
            record.add(self._clock(), seen)


def address_of(connection: HTTPConnection) -> str:
    """Where a request comes from."""
    return "" if connection.client is None else connection.client.host


def _remember(kept: "OrderedDict[str, V]", place: str, value: V) -> None:
    kept[place] = value
    kept.move_to_end(place)
    while len(kept) > ADDRESSES:
        kept.popitem(last=False)


def _network(address: str) -> str:
    """What counts as one address: of IPv6 the first half, as the other is free to choose.

    >>> _network("2001:db8::1:2") == _network("2001:db8::3"), _network("::ffff:10.0.0.1")
    (True, '10.0.0.1')
    """
    with suppress(ValueError):
        found = ip_address(address.partition("%")[0])
        if isinstance(found, IPv6Address):
            if found.ipv4_mapped is not None:
                return str(found.ipv4_mapped)
            return f"{IPv6Address(int(found) >> 64 << 64)}/64"
    return address


def _too_many(seconds: float) -> HTTPException:
    wait = ceil(max(1.0, seconds))
    return HTTPException(
        429,
        f"too many wrong tokens; wait {wait} s and try again",
        {"retry-after": str(wait)},
    )
