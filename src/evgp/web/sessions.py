"""Who somebody is, in a signed cookie, and the token that lets them in."""

import base64
import hashlib
import hmac
import json
import os
import secrets
import time
from dataclasses import dataclass
from pathlib import Path

from evgp._errors import CampaignError
from evgp._reading import read_bytes
from evgp.campaign.checks import checked_person
from evgp.datasets import naming

SECONDS = 30 * 86_400  # that a cookie is good for
_SHORTEST, _LONGEST = 16, 4096  # letters of a token
VARIABLE = "EVGP_TOKEN"


@dataclass(frozen=True)
class Session:
    """A person at one browser."""

    who: str
    id: str


@dataclass(frozen=True)
class Sessions:
    """Signs and reads cookies; they stay good when the server is started again.

    `secret` signs; `token`, where there is one, is what people must know to come in. The secret is
    more than the token: else a forged cookie would be a way to try tokens.

    >>> keeper = Sessions("a secret of some length")
    >>> session = keeper.begin("Ann")
    >>> keeper.read(keeper.written(session)) == session, keeper.read("forged.cookie")
    (True, None)
    """

    secret: str
    token: str | None = None

    @property
    def cookie(self) -> str:
        """The cookie's name, of its own for each campaign, as browsers do not part ports."""
        return f"evgp_{self._signed('cookie', '')[:8]}"

    def begin(self, name: str) -> Session:
        """A new session of a person."""
        return Session(checked_person(name), secrets.token_urlsafe(12))

    def written(self, session: Session) -> str:
        """The cookie of a session."""
        told = json.dumps([session.who, session.id, int(time.time())])
        body = base64.urlsafe_b64encode(told.encode()).decode()
        return f"{body}.{self._signed('session', body)}"

    def read(self, cookie: str | None) -> Session | None:
        """The session of a cookie that we signed in the last thirty days."""
        body, _, signature = (cookie or "").partition(".")
        if not same(signature, self._signed("session", body)):
            return None
        who, id, at = json.loads(base64.urlsafe_b64decode(body))
        return Session(checked_person(who), id) if time.time() - at < SECONDS else None

    def csrf(self, session: Session) -> str:
        """What a page of this session sends with each change, and no other page can know."""
        return self._signed("csrf", session.id)

    def is_csrf(self, session: Session, given: str | None) -> bool:
        """Is it that?"""
        return same(given or "", self.csrf(session))

    def _signed(self, purpose: str, text: str) -> str:
        key = hashlib.sha256(f"evgp {purpose} {self.secret}".encode()).digest()
        return hmac.new(key, text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def same(one: str, two: str) -> bool:
    """Are they equal, in a time that does not tell where they differ?"""
    pair = (hashlib.sha256(text.encode("utf-8", "replace")).digest() for text in (one, two))
    return hmac.compare_digest(*pair)


def keeper_of(campaign: Path, *, asks: bool) -> tuple[Sessions, Path | None]:
    """The keeper of a campaign, and the file that holds its token if we made that up.

    The token is $EVGP_TOKEN; or a random one in a file next to the campaign that its owner alone
    can read. With `asks`, or where the variable is set, people are asked for it. Cookies are signed
    with what is in the file in both cases, as a token that a person made up can be guessed.
    """
    given = os.environ.get(VARIABLE)
    if given is not None and len(given) < _SHORTEST:
        raise CampaignError(
            f"expected {_SHORTEST} letters at least in ${VARIABLE}, got {len(given)}; take a "
            "longer one, or unset it and evgp makes one up"
        )
    place = campaign.with_name(campaign.name + "-token")
    found = _token(place)
    if given is not None:
        return Sessions(f"{found} {given}", given), None
    return Sessions(found, found if asks else None), place if asks else None


def _token(place: Path) -> str:
    """The token in a file, which is made if it is not there; its owner alone can read it."""
    try:
        with naming(place):
            handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        pass
    else:
        try:
            with naming(place), os.fdopen(handle, "w") as stream:
                stream.write(secrets.token_urlsafe(32) + "\n")
        except BaseException:
            place.unlink()
            raise
    found = read_bytes(place, CampaignError, most=_LONGEST).decode(errors="replace").strip()
    if len(found) < _SHORTEST or not found.isprintable() or "\ufffd" in found:
        got = f"{len(found)} letters" if len(found) < _SHORTEST else "a damaged file"
        raise CampaignError(
            f"{place}: expected a token, got {got}; remove the file, and evgp makes another one up"
        )
    return found
