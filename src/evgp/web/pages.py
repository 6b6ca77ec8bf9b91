"""The pages, and the files they are made of."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment

from evgp.campaign import State
from evgp.campaign.hint import promised
from evgp.report.render import asset, environment
from evgp.web import drawn, tally
from evgp.web.api import TheDesk, TheKeeper
from evgp.web.desk import Desk

# Letters that choose classes after the ten digits; u, s, c and z mean something else.
_KEYS = "1234567890qwertyiopadfghjklvbnmx"
_STATIC = {
    "web.css": "text/css",
    "label.js": "text/javascript",
    "enter.js": "text/javascript",
    "live.js": "text/javascript",
}
router = APIRouter(include_in_schema=False)


@router.get("/")
def front(request: Request, desk: TheDesk, keeper: TheKeeper) -> HTMLResponse:
    """The page to label on; for those who have not said who they are, that question."""
    session = keeper.read(request.cookies.get(keeper.cookie))
    campaign = desk.campaign
    if session is None:
        return _page("enter.html", name=campaign.path.stem, asks=keeper.token is not None)
    classes = campaign.created.classes
    return _page(
        "label.html",
        name=campaign.path.stem,
        who=session.who,
        csrf=keeper.csrf(session),
        campaign=desk.identity,
        classes=list(zip(keys_of(classes), classes, strict=True)),
        coloured=drawn.COLOURS,
        tab="label",
    )


def keys_of(classes: Sequence[str]) -> list[str]:
    """The key of each class: its own name where that is one, else the next that is free.

    >>> keys_of(["0", "1", "cat"])
    ['0', '1', '2']
    """
    own = {one.lower(): one for one in reversed(classes) if one.lower() in _KEYS and len(one) == 1}
    named = {one: key for key, one in own.items()}
    free = iter([key for key in _KEYS if key not in own])
    return [named[one] if one in named else next(free, "") for one in classes]


@router.get("/overview")
def overview(request: Request, desk: TheDesk, keeper: TheKeeper) -> Response:
    """How far everybody is; with `?part=live` only what changes."""
    session = keeper.read(request.cookies.get(keeper.cookie))
    part = request.query_params.get("part") == "live"
    if session is None:
        if part:
            raise HTTPException(401, "expected somebody who has signed in; open the page again")
        return RedirectResponse("/", 303)
    return _page(
        "live.html" if part else "overview.html",
        name=desk.campaign.path.stem,
        who=session.who,
        csrf=keeper.csrf(session),
        tab="overview",
        **_live(desk),
    )


@router.get("/static/{name}")
def static(name: str) -> Response:
    """A file of the page; there are no others."""
    if name not in _STATIC:
        raise HTTPException(404, "expected a file of the page")
    text = asset("web", name)
    if name == "web.css":
        text = asset("report", "page.css") + text
    return Response(text, media_type=_STATIC[name], headers={"cache-control": "max-age=3600"})


@router.get("/favicon.ico", status_code=204)
def icon() -> None:
    """None; browsers ask anyway."""


def _hint(desk: Desk, state: State) -> str:
    """What the picks promise now, and what the labels showed when they were looked at."""
    if not state.rounds:
        return ""
    left, last = promised(state)
    return replace(desk.ahead.hint, left=left, last=last).words


def _live(desk: Desk) -> dict[str, object]:
    state, source = desk.campaign.state, desk.campaign.source
    return {
        "t": tally.tally(state, desk.campaign.log()),
        "hint": _hint(desk, state),
        "picking": desk.ahead.busy,
        "problem": desk.ahead.problem,
        "budget": drawn.budget(state),
        "map": desk.chart.figure(state),
        "names": source.names,
        "twice": desk.twice,
        "network": state.rounds[-1].network if state.rounds else "given",
    }


def _page(template: str, **known: object) -> HTMLResponse:
    return HTMLResponse(_templates().get_template(template).render(**known))


@cache
def _templates() -> Environment:
    return environment("web", ago=ago, versioned=_versioned)


@cache
def _versioned(name: str) -> str:
    """The address of a file, which changes when the file does."""
    text = asset("web", name) + (asset("report", "page.css") if name == "web.css" else "")
    return f"/static/{name}?v={sha256(text.encode()).hexdigest()[:10]}"


def ago(at: str, now: datetime | None = None) -> str:
    """How long ago something was, in a word or two.

    >>> ago("2024-05-01T10:00:00.000+00:00", datetime(2024, 5, 1, 12, 5, tzinfo=UTC))
    '2 h ago'
    """
    seconds = ((now or datetime.now(UTC)) - datetime.fromisoformat(at)).total_seconds()
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length:.0f} {unit} ago"
    return "just now"
