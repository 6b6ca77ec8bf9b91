"""Sign-in: signed session cookies, the access token, and delays after wrong tokens."""

import asyncio
import base64
import hashlib
import hmac
import json
import os
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from math import ceil
from pathlib import Path
from time import monotonic
from typing import TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from evgp._reading import read_bytes
from evgp.datasets import naming
from evgp.errors import CampaignError, WrongFormat
from evgp.labelling.campaign.checks import checked_person

COOKIE_SECONDS = 30 * 86_400
_MIN_TOKEN, _MAX_TOKEN = 16, 4096  # characters
VARIABLE = "EVGP_TOKEN"
MAX_DELAY = 10.0  # seconds that a sign-in is delayed at most; beyond that it is rejected
MAX_DELAYED = 32  # sign-ins that are delayed at the same time
MAX_ADDRESSES = 1_024  # addresses that are remembered
RESET_SECONDS = 600.0  # after the last wrong token
V = TypeVar("V")


@dataclass(frozen=True)
class Session:
    """A person at one browser."""

    who: str
    id: str


@dataclass(frozen=True)
class Sessions:
    """Signs and reads session cookies; they stay valid when the server restarts.

    `secret` signs them. `token`, if set, is what people must enter to sign in. The secret contains
    more than the token: otherwise tokens could be guessed offline from a cookie's signature.

    >>> sessions = Sessions("a secret of some length")
    >>> session = sessions.begin("Ann")
    >>> sessions.read(sessions.cookie(session)) == session, sessions.read("forged.cookie")
    (True, None)
    """

    secret: str
    token: str | None = None

    @property
    def cookie_name(self) -> str:
        """The name of the cookie: one per campaign, as browsers share cookies between ports."""
        return f"evgp_{self._signature('cookie', '')[:8]}"

    def begin(self, name: str) -> Session:
        """A new session for a person."""
        return Session(checked_person(name), secrets.token_urlsafe(12))

    def cookie(self, session: Session) -> str:
        """The cookie of a session."""
        text = json.dumps([session.who, session.id, int(time.time())])
        body = base64.urlsafe_b64encode(text.encode()).decode()
        return f"{body}.{self._signature('session', body)}"

    def read(self, cookie: str | None) -> Session | None:
        """The session of a cookie that we signed in the last thirty days, or None."""
        body, _, signature = (cookie or "").partition(".")
        if not equal(signature, self._signature("session", body)):
            return None
        who, id, at = json.loads(base64.urlsafe_b64decode(body))
        return Session(checked_person(who), id) if time.time() - at < COOKIE_SECONDS else None

    def csrf(self, session: Session) -> str:
        """The CSRF token of a session: its pages send it with every change; others cannot know it.

        It is derived from the session, so there is nothing to store.
        """
        return self._signature("csrf", session.id)

    def is_csrf(self, session: Session, token: str | None) -> bool:
        """Whether `token` is this session's CSRF token."""
        return equal(token or "", self.csrf(session))

    def _signature(self, purpose: str, text: str) -> str:
        key = hashlib.sha256(f"evgp {purpose} {self.secret}".encode()).digest()
        return hmac.new(key, text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def equal(a: str, b: str) -> bool:
    """Whether two texts are equal, in a time that does not depend on where they differ."""
    digests = (hashlib.sha256(text.encode("utf-8", "replace")).digest() for text in (a, b))
    return hmac.compare_digest(*digests)


def sessions_for(campaign: Path, *, ask: bool) -> tuple[Sessions, Path | None]:
    """The sessions of a campaign, and the file that holds its token if we generated one.

    The token is $EVGP_TOKEN, or a random one in a file next to the campaign that only its owner can
    read. People must enter it with `ask`, or if the variable is set. Cookies are always signed with
    the content of the file, because a token that a person chose can be guessed.
    """
    chosen = os.environ.get(VARIABLE)
    if chosen is not None and len(chosen) < _MIN_TOKEN:
        raise CampaignError(
            f"${VARIABLE} has {len(chosen)} characters, expected at least {_MIN_TOKEN}; use a "
            "longer token, or unset the variable and evgp generates one"
        )
    path = campaign.with_name(campaign.name + "-token")
    generated = _generated_token(path)
    if chosen is not None:
        return Sessions(f"{generated} {chosen}", chosen), None
    return Sessions(generated, generated if ask else None), path if ask else None


def _generated_token(path: Path) -> str:
    """The token in a file that only its owner can read; the file is made if it is missing."""
    try:
        with naming(path):
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        pass
    else:
        try:
            with naming(path), os.fdopen(handle, "w") as stream:
                stream.write(secrets.token_urlsafe(32) + "\n")
        except BaseException:
            path.unlink()
            raise
    token = read_bytes(path, CampaignError, most=_MAX_TOKEN).decode(errors="replace").strip()
    if len(token) < _MIN_TOKEN or not token.isprintable() or "\ufffd" in token:
        got = f"{len(token)} characters" if len(token) < _MIN_TOKEN else "a damaged file"
        raise WrongFormat.of(CampaignError)(
            str(path), "a token", got, "delete the file, and evgp generates a new one"
        )
    return token


@dataclass
class _Backoff:
    """Wrong tokens from one address, or from all addresses together.

    The first `free` are not delayed, the next one `first` seconds, each further one twice as long,
    up to `longest`.
    """

    free: int
    first: float
    longest: float
    count: int = 0
    until: float = 0.0  # when the next token is compared
    at: float = 0.0
    last: bytes = b""
    waiting: int = 0  # tokens that have their turn, and are not compared yet

    def book(self, turn: float, digest: bytes) -> None:
        """Give a token its turn; the next one waits as if this and all waiting ones were wrong."""
        self.waiting += 1
        self.until = max(self.until, turn + self._delay(self.waiting - (digest == self.last)))

    def add(self, now: float, digest: bytes) -> None:
        """Count a wrong token; the same one again is not a further guess."""
        self.count += digest != self.last
        self.at, self.last = now, digest
        self.until = max(self.until, now + self._delay())

    def _delay(self, more: int = 0) -> float:
        extra = self.count + more - self.free
        return min(self.longest, self.first * 2.0 ** min(extra - 1, 60)) if extra > 0 else 0.0


class TokenCheck:
    """Compares tokens, no faster than people who mistype need.

    One address may be wrong three times; from then on its tokens are compared after 0.5, 1, 2, ...
    30 seconds. After 50 wrong ones from anywhere, tokens from addresses that never sent the right
    one are compared once a second at most. Whoever comes too early waits, or is rejected (429) if
    that would take more than ten seconds or too many wait already.
    """

    def __init__(
        self,
        clock: Callable[[], float] = monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._overall = _Backoff(50, 0.05, 1.0)
        self._wrong: OrderedDict[str, _Backoff] = OrderedDict()
        self._right: OrderedDict[str, None] = OrderedDict()
        self._delayed = 0

    async def is_right(self, token: str, expected: str, address: str) -> bool:
        """Whether `token` is right. An empty one is not a guess, and never waits."""
        if not token:
            return False
        network = _network(address)
        now = self._clock()
        self._reset(network, now)
        own = [self._wrong[network]] if network in self._wrong else []
        backoffs = own if network in self._right else [*own, self._overall]
        turn = max([now, *(backoff.until for backoff in backoffs)])
        if turn - now > MAX_DELAY or (turn > now and self._delayed >= MAX_DELAYED):
            raise _too_many(turn - now)
        digest = hashlib.sha256(token.encode("utf-8", "replace")).digest()
        for backoff in backoffs:
            backoff.book(turn, digest)  # requests that arrive meanwhile come after this one
        self._delayed += turn > now
        try:
            if turn > now:
                await self._sleep(turn - now)
        finally:
            self._delayed -= turn > now
            for backoff in backoffs:
                backoff.waiting -= 1
        if equal(token, expected):
            self._wrong.pop(network, None)
            _remember(self._right, network, None)
            return True
        self._count_wrong(network, digest)
        return False

    def _reset(self, network: str, now: float) -> None:
        """Start from zero if the last wrong token was long ago."""
        if network in self._wrong and now - self._wrong[network].at > RESET_SECONDS:
            del self._wrong[network]
        if now - self._overall.at > RESET_SECONDS:
            self._overall.count = 0

    def _count_wrong(self, network: str, digest: bytes) -> None:
        own = self._wrong.get(network) or _Backoff(3, 0.5, 30.0)
        _remember(self._wrong, network, own)
        for backoff in (own, self._overall):
            backoff.add(self._clock(), digest)


def address_of(connection: HTTPConnection) -> str:
    """The address that a request comes from."""
    return "" if connection.client is None else connection.client.host


def _remember(entries: "OrderedDict[str, V]", network: str, value: V) -> None:
    entries[network] = value
    entries.move_to_end(network)
    while len(entries) > MAX_ADDRESSES:
        entries.popitem(last=False)


def _network(address: str) -> str:
    """The address of a client; of IPv6 the first half, as clients choose the other freely.

    >>> _network("2001:db8::1:2") == _network("2001:db8::3"), _network("::ffff:10.0.0.1")
    (True, '10.0.0.1')
    """
    with suppress(ValueError):
        parsed = ip_address(address.partition("%")[0])
        if isinstance(parsed, IPv6Address):
            if parsed.ipv4_mapped is not None:
                return str(parsed.ipv4_mapped)
            return f"{IPv6Address(int(parsed) >> 64 << 64)}/64"
    return address


def _too_many(seconds: float) -> HTTPException:
    wait = ceil(max(1.0, seconds))
    return HTTPException(
        429,
        f"too many wrong tokens; wait {wait} s and try again",
        {"retry-after": str(wait)},
    )
