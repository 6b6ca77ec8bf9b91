"""The HTML pages and their static files."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment

from evgp.labelling.campaign import State
from evgp.labelling.campaign.estimates import variance_left
from evgp.labelling.web.api import Service, SessionStore
from evgp.labelling.web.overview import COLOURS, statistics, variance_curve
from evgp.labelling.web.service import LabellingService
from evgp.report.render import asset, environment

# Keys for classes: the digits, then letters; u, s, c and z are commands.
_KEYS = "1234567890qwertyiopadfghjklvbnmx"
_STATIC = {
    "web.css": "text/css",
    "label.js": "text/javascript",
    "sign_in.js": "text/javascript",
    "overview.js": "text/javascript",
}
router = APIRouter(include_in_schema=False)


@router.get("/")
def front(request: Request, service: Service, sessions: SessionStore) -> HTMLResponse:
    """The labelling page, or the sign-in page for those who have not signed in."""
    session = sessions.read(request.cookies.get(sessions.cookie_name))
    campaign = service.campaign
    if session is None:
        return _page("sign_in.html", name=campaign.path.stem, asks=sessions.token is not None)
    classes = campaign.created.classes
    return _page(
        "label.html",
        name=campaign.path.stem,
        who=session.who,
        csrf=sessions.csrf(session),
        campaign=service.identity,
        classes=list(zip(keys_of(classes), classes, strict=True)),
        coloured=COLOURS,
        tab="label",
    )


def keys_of(classes: Sequence[str]) -> list[str]:
    """The keyboard key of each class: its name if that is a key, else the next free key.

    >>> keys_of(["0", "1", "cat"])
    ['0', '1', '2']
    """
    own = {
        name.lower(): name for name in reversed(classes) if len(name) == 1 and name.lower() in _KEYS
    }
    keys = {name: key for key, name in own.items()}
    free = iter([key for key in _KEYS if key not in own])
    return [keys[name] if name in keys else next(free, "") for name in classes]


@router.get("/overview")
def overview(request: Request, service: Service, sessions: SessionStore) -> Response:
    """The overview page; with `?part=live` only the part that changes."""
    session = sessions.read(request.cookies.get(sessions.cookie_name))
    part = request.query_params.get("part") == "live"
    if session is None:
        if part:
            raise HTTPException(401, "not signed in; reload the page")
        return RedirectResponse("/", 303)
    return _page(
        "overview_live.html" if part else "overview.html",
        name=service.campaign.path.stem,
        who=session.who,
        csrf=sessions.csrf(session),
        tab="overview",
        **_live(service),
    )


@router.get("/static/{name}")
def static(name: str) -> Response:
    """A style sheet or script of the pages."""
    if name not in _STATIC:
        raise HTTPException(404, "no such file")
    text = asset("labelling/web", name)
    if name == "web.css":
        text = asset("report", "page.css") + text
    return Response(text, media_type=_STATIC[name], headers={"cache-control": "max-age=3600"})


@router.get("/favicon.ico", status_code=204)
def icon() -> None:
    """There is no icon, but browsers request it anyway."""


def _hint(service: LabellingService, state: State) -> str:
    """The latest hint, with the variance as it is now."""
    if not state.rounds:
        return ""
    left, last = variance_left(state)
    return replace(service.prefetcher.hint, left=left, last=last).words


def _live(service: LabellingService) -> dict[str, object]:
    state, source = service.campaign.state, service.campaign.source
    return {
        "stats": statistics(state, service.campaign.log()),
        "hint": _hint(service, state),
        "picking": service.prefetcher.busy,
        "problem": service.prefetcher.problem,
        "curve": variance_curve(state),
        "map": service.map.figure(state),
        "names": source.names,
        "twice": service.twice,
        "network": state.rounds[-1].network if state.rounds else "given",
    }


def _page(template: str, **values: object) -> HTMLResponse:
    return HTMLResponse(_templates().get_template(template).render(**values))


@cache
def _templates() -> Environment:
    return environment("labelling/web", ago=ago, versioned=_versioned)


@cache
def _versioned(name: str) -> str:
    """The URL of a static file, which changes when the file does."""
    text = asset("labelling/web", name) + (asset("report", "page.css") if name == "web.css" else "")
    return f"/static/{name}?v={sha256(text.encode()).hexdigest()[:10]}"


def ago(at: str, now: datetime | None = None) -> str:
    """How long ago a time was, in a word or two.

    >>> ago("2024-05-01T10:00:00.000+00:00", datetime(2024, 5, 1, 12, 5, tzinfo=UTC))
    '2 h ago'
    """
    seconds = ((now or datetime.now(UTC)) - datetime.fromisoformat(at)).total_seconds()
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length:.0f} {unit} ago"
    return "just now"
