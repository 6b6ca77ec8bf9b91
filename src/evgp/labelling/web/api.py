"""The HTTP API: used by the page's script, and open to other programs (see /openapi.json)."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, Header, HTTPException, Request, Response
from fastapi import Path as InPath
from fastapi.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection

from evgp.labelling.campaign import Item
from evgp.labelling.web import models
from evgp.labelling.web.auth import COOKIE_SECONDS, Session, Sessions, TokenCheck, address_of
from evgp.labelling.web.middleware import SAFE_METHODS
from evgp.labelling.web.service import LabellingService

_CAMPAIGN_HEADER = "x-evgp-campaign"  # shows a page that its answers are for another campaign
_REFUSALS: dict[int | str, dict[str, object]] = {
    code: {"model": models.Problem, "description": text}
    for code, text in (
        (400, "Unknown host, or malformed request"),
        (401, "Not signed in"),
        (403, "From another site, or without the session's CSRF token"),
        (413, "Body too large"),
        (415, "Body compressed"),
        (422, "Invalid; `detail` says why"),
    )
}
_WRITES: dict[int | str, dict[str, object]] = _REFUSALS | {
    409: {"model": models.Problem, "description": "Key used before, or another campaign meant"},
    503: {"model": models.Problem, "description": "Temporarily unavailable; send the same again"},
    507: {"model": models.Problem, "description": "The disk is full; send the same again later"},
}
_GUESSES: dict[int | str, dict[str, object]] = {
    429: {
        "model": models.Problem,
        "description": "Too many wrong tokens; wait for the time in Retry-After",
    }
}
router = APIRouter(prefix="/api")


async def service_of(request: Request) -> LabellingService:
    """The labelling service of this server."""
    service = request.app.state.service
    assert isinstance(service, LabellingService)
    return service


async def sessions_of(request: Request) -> Sessions:
    """The sessions of this server."""
    sessions = request.app.state.sessions
    assert isinstance(sessions, Sessions)
    return sessions


Service = Annotated[LabellingService, Depends(service_of)]
SessionStore = Annotated[Sessions, Depends(sessions_of)]


def session_of(connection: HTTPConnection, sessions: Sessions) -> Session:
    """The session in the headers of a request; a change must carry its CSRF token too."""
    session = sessions.read(connection.cookies.get(sessions.cookie_name))
    if session is None:
        raise HTTPException(401, "not signed in; reload the page")
    if connection.scope["method"] not in SAFE_METHODS and not sessions.is_csrf(
        session, connection.headers.get("x-csrf-token")
    ):
        raise HTTPException(403, "wrong CSRF token for this session; reload the page")
    return session


async def authorise(connection: HTTPConnection, sessions: Sessions) -> None:
    """Reject requests to `/api` from people who have not signed in, before reading the body."""
    path, method = connection.scope["path"], connection.scope["method"]
    if path.startswith("/api/") and (path, method) != ("/api/session", "POST"):
        session_of(connection, sessions)


async def signed_in(
    request: Request,
    sessions: SessionStore,
    x_csrf_token: Annotated[str | None, Header(description="Required for changes.")] = None,
) -> Session:
    """The session of a request; declares the CSRF header in the schema."""
    return session_of(request, sessions)


Me = Annotated[Session, Depends(signed_in)]


@router.post("/session", responses=_REFUSALS | _GUESSES)
async def sign_in(
    form: models.SignIn, sessions: SessionStore, request: Request, response: Response
) -> models.SignedIn:
    """Sign in with your name, and with the token if the server asks for one."""
    if sessions.token is not None:
        tokens = request.app.state.tokens
        assert isinstance(tokens, TokenCheck)
        if not await tokens.is_right(form.token or "", sessions.token, address_of(request)):
            raise HTTPException(401, "wrong token; ask whoever runs this campaign for it")
    session = sessions.begin(form.name)
    response.set_cookie(
        sessions.cookie_name,
        sessions.cookie(session),
        max_age=COOKIE_SECONDS,
        httponly=True,
        samesite="strict",
    )
    return models.SignedIn(name=session.who, csrf=sessions.csrf(session))


@router.delete("/session", status_code=204, responses=_REFUSALS)
async def leave(me: Me, service: Service, sessions: SessionStore, response: Response) -> None:
    """Sign out; the rows on your screen become free for others."""
    service.leases.release_all(me.id)
    response.delete_cookie(sessions.cookie_name, httponly=True, samesite="strict")


@router.get("/campaign", responses=_REFUSALS)
def about(me: Me, service: Service, sessions: SessionStore) -> models.About:
    """Return the task: the kind of labels, and the classes."""
    created = service.campaign.created
    return models.About(
        name=service.campaign.path.stem,
        campaign=service.identity,
        rows=created.rows,
        classes=list(created.classes),
        images=service.campaign.source.images is not None,
        person=me.who,
        csrf=sessions.csrf(me),
    )


@router.post("/next", responses=_WRITES)
def hand_out(request: models.NextIn, me: Me, service: Service) -> models.NextOut:
    """Get rows to label; they are yours until the lease expires, and longer if you ask again."""
    _check_campaign(service, request)
    assignment = service.hand_out(me, request.count, request.holding)
    return models.NextOut(
        items=[_item(service, item) for item in assignment.items],
        lost=assignment.lost,
        picking=assignment.picking,
        done=assignment.done,
        problem=assignment.problem,
        progress=_progress(service, me),
    )


@router.post("/release", status_code=204, responses=_WRITES)
async def release(request: models.ReleaseIn, me: Me, service: Service) -> None:
    """Release rows that were yours, for example when a page is closed."""
    _check_campaign(service, request)
    for row in request.rows:
        service.leases.release(me.id, row)


@router.post("/answers", responses=_WRITES)
async def answer(request: models.AnswerIn, me: Me, service: Service) -> models.AnswerOut:
    """Submit an answer; it is on disk when this returns."""
    _check_campaign(service, request)
    saving = service.submit(me, request.row, request.kind, _value(request.value), request.key)
    receipt = await asyncio.wrap_future(saving)
    return models.AnswerOut(number=receipt.number, repeated=receipt.repeated)


@router.post("/undo", responses=_WRITES)
def undo(request: models.UndoIn, me: Me, service: Service) -> models.UndoOut:
    """Undo your latest answer, and get its row again."""
    _check_campaign(service, request)
    answer, item = service.undo(me, request.key)
    return models.UndoOut(item=_item(service, item), kind=answer.kind, value=answer.value)


@router.get("/progress", responses=_REFUSALS)
def progress(me: Me, service: Service) -> models.ProgressOut:
    """Progress of the campaign."""
    return _progress(service, me)


@router.get(
    "/images/{row}",
    response_class=Response,
    responses=_REFUSALS
    | {
        200: {"content": {"image/png": {}, "image/jpeg": {}}, "description": "The image"},
        404: {"model": models.Problem, "description": "No such image"},
    },
)
async def image(row: Annotated[int, InPath(ge=0, le=2**53)], me: Me, service: Service) -> Response:
    """The image of a row, decoded and encoded again, at most 1,600 pixels wide and high."""
    thumbnails = service.thumbnails
    if thumbnails is None or row >= service.campaign.created.rows:
        raise HTTPException(404, "no image in this row")
    future = await run_in_threadpool(thumbnails.of, row)
    thumbnail = await asyncio.shield(asyncio.wrap_future(future))  # other requests may await it
    return Response(
        thumbnail.data,
        media_type=f"image/{thumbnail.kind}",
        headers={"cache-control": "private, max-age=3600"},
    )


def _check_campaign(service: LabellingService, request: models.CampaignRequest) -> None:
    """Reject requests of a page that was opened when another campaign was served here."""
    if request.campaign not in (None, service.identity):
        raise HTTPException(
            409,
            "this request is for another campaign than the one served here; serve that one and "
            "send it again, or reload the page",
            headers={_CAMPAIGN_HEADER: service.identity},
        )


def _item(service: LabellingService, item: Item) -> models.ItemOut:
    return models.ItemOut(
        row=item.row,
        name=item.name.encode("utf-8", "replace").decode(),
        rank=item.rank,
        image=service.campaign.source.images is not None,
        cells=[models.CellOut(**vars(cell)) for cell in service.card(item.row)],
    )


def _progress(service: LabellingService, me: Session) -> models.ProgressOut:
    state = service.campaign.state
    labelled = sum(verdict.labelled for verdict in state.verdicts.values())
    return models.ProgressOut(
        rows=state.created.rows,
        labelled=labelled,
        waiting=len(state.pending),
        passed=len(state.verdicts) - labelled,
        mine=sum(answer.who == me.who for answer in state.standing.values()),
    )


def _value(value: str | int | float | None) -> str | float | None:
    """Integers as floats, if a float can represent them."""
    return float(value) if isinstance(value, int) and abs(value) < 2**1000 else value
