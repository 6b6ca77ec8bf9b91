"""What the page's script asks for; the same is open to other programs (see /openapi.json)."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, Header, HTTPException, Request, Response
from fastapi import Path as InPath
from fastapi.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection

from evgp.campaign import Item
from evgp.web import models
from evgp.web.attempts import Attempts, address_of
from evgp.web.desk import Desk
from evgp.web.guard import SAFE
from evgp.web.sessions import SECONDS, Session, Sessions

_SERVED = "x-evgp-campaign"  # by which a page knows that its answers are for another
_REFUSALS: dict[int | str, dict[str, object]] = {
    code: {"model": models.Problem, "description": words}
    for code, words in (
        (400, "An unknown host, or a request that is none"),
        (401, "Nobody has signed in"),
        (403, "From another page, or without the session's CSRF token"),
        (413, "Too large"),
        (415, "Compressed"),
        (422, "Cannot be taken; the sentence says why"),
    )
}
_WRITES: dict[int | str, dict[str, object]] = _REFUSALS | {
    409: {"model": models.Problem, "description": "The key was used, or another campaign meant"},
    503: {"model": models.Problem, "description": "Not now; send the same again"},
    507: {"model": models.Problem, "description": "The disk is full; send the same again later"},
}
_GUESSES: dict[int | str, dict[str, object]] = {
    429: {
        "model": models.Problem,
        "description": "Too many wrong tokens; wait, as Retry-After says",
    }
}
router = APIRouter(prefix="/api")


async def desk_of(request: Request) -> Desk:
    """The desk of this server."""
    found = request.app.state.desk
    assert isinstance(found, Desk)
    return found


async def keeper_of(request: Request) -> Sessions:
    """Who knows the cookies."""
    found = request.app.state.keeper
    assert isinstance(found, Sessions)
    return found


TheDesk = Annotated[Desk, Depends(desk_of)]
TheKeeper = Annotated[Sessions, Depends(keeper_of)]


def session_of(connection: HTTPConnection, keeper: Sessions) -> Session:
    """The session that the headers of a request tell; for a change with its CSRF token."""
    session = keeper.read(connection.cookies.get(keeper.cookie))
    if session is None:
        raise HTTPException(401, "expected somebody who has signed in; open the page again")
    if connection.scope["method"] not in SAFE and not keeper.is_csrf(
        session, connection.headers.get("x-csrf-token")
    ):
        raise HTTPException(403, "expected the CSRF token of this session; open the page again")
    return session


async def admit(connection: HTTPConnection, keeper: Sessions) -> None:
    """Let nobody but people who have signed in to `/api`, before what they send is read."""
    path, method = connection.scope["path"], connection.scope["method"]
    if path.startswith("/api/") and (path, method) != ("/api/session", "POST"):
        session_of(connection, keeper)


async def signed_in(
    request: Request,
    keeper: TheKeeper,
    x_csrf_token: Annotated[str | None, Header(description="Needed for changes.")] = None,
) -> Session:
    """The session of a request, and in the schema what changes it needs."""
    return session_of(request, keeper)


Me = Annotated[Session, Depends(signed_in)]


@router.post("/session", responses=_REFUSALS | _GUESSES)
async def sign_in(
    given: models.SignIn, keeper: TheKeeper, request: Request, response: Response
) -> models.Signed:
    """Say who you are, with the token where one is asked for."""
    if keeper.token is not None:
        attempts = request.app.state.attempts
        assert isinstance(attempts, Attempts)
        if not await attempts.is_right(given.token or "", keeper.token, address_of(request)):
            raise HTTPException(401, "expected the token of this campaign, got another; ask for it")
    session = keeper.begin(given.name)
    response.set_cookie(
        keeper.cookie,
        keeper.written(session),
        max_age=SECONDS,
        httponly=True,
        samesite="strict",
    )
    return models.Signed(name=session.who, csrf=keeper.csrf(session))


@router.delete("/session", status_code=204, responses=_REFUSALS)
async def leave(me: Me, desk: TheDesk, keeper: TheKeeper, response: Response) -> None:
    """Leave; rows that were on your screen are free for others."""
    desk.leases.release_all(me.id)
    response.delete_cookie(keeper.cookie, httponly=True, samesite="strict")


@router.get("/campaign", responses=_REFUSALS)
def about(me: Me, desk: TheDesk, keeper: TheKeeper) -> models.About:
    """What is asked of you."""
    created = desk.campaign.created
    return models.About(
        name=desk.campaign.path.stem,
        campaign=desk.identity,
        rows=created.rows,
        classes=list(created.classes),
        images=desk.campaign.source.images is not None,
        person=me.who,
        csrf=keeper.csrf(me),
    )


@router.post("/next", responses=_WRITES)
def hand_out(wish: models.Wish, me: Me, desk: TheDesk) -> models.HandedOut:
    """Rows to label, yours until the lease expires; ask again to keep them."""
    _ours(desk, wish)
    handed = desk.hand_out(me, wish.count, wish.holding)
    return models.HandedOut(
        items=[_item(desk, one) for one in handed.items],
        lost=handed.lost,
        picking=handed.picking,
        done=handed.done,
        problem=handed.problem,
        progress=_progress(desk, me),
    )


@router.post("/release", status_code=204, responses=_WRITES)
async def release(given: models.LeftIn, me: Me, desk: TheDesk) -> None:
    """Let rows go that were yours, as when a page is closed."""
    _ours(desk, given)
    for row in given.rows:
        desk.leases.release(me.id, row)


@router.post("/answers", responses=_WRITES)
async def answer(given: models.AnswerIn, me: Me, desk: TheDesk) -> models.AnswerTaken:
    """Hand in an answer; it is on the disk when this answers."""
    _ours(desk, given)
    waiting = desk.submit(me, given.row, given.kind, _value(given.value), given.key)
    receipt = await asyncio.wrap_future(waiting)
    return models.AnswerTaken(number=receipt.number, repeated=receipt.repeated)


@router.post("/undo", responses=_WRITES)
def undo(given: models.UndoIn, me: Me, desk: TheDesk) -> models.UndoneOut:
    """Take your latest answer back, and have its row again."""
    _ours(desk, given)
    answer, item = desk.undo(me, given.key)
    return models.UndoneOut(item=_item(desk, item), kind=answer.kind, value=answer.value)


@router.get("/progress", responses=_REFUSALS)
def progress(me: Me, desk: TheDesk) -> models.ProgressOut:
    """How far the campaign is."""
    return _progress(desk, me)


@router.get(
    "/images/{row}",
    response_class=Response,
    responses=_REFUSALS
    | {
        200: {"content": {"image/png": {}, "image/jpeg": {}}, "description": "The picture"},
        404: {"model": models.Problem, "description": "No such picture"},
    },
)
async def image(row: Annotated[int, InPath(ge=0, le=2**53)], me: Me, desk: TheDesk) -> Response:
    """The picture of a row, decoded and encoded again, at most 1,600 pixels wide and high."""
    thumbnails = desk.thumbnails
    if thumbnails is None or row >= desk.campaign.created.rows:
        raise HTTPException(404, "expected a row that is a picture")
    making = await run_in_threadpool(thumbnails.of, row)
    made = await asyncio.shield(asyncio.wrap_future(making))  # others may wait for it too
    return Response(
        made.data,
        media_type=f"image/{made.kind}",
        headers={"cache-control": "private, max-age=3600"},
    )


def _ours(desk: Desk, given: models.PageChange) -> None:
    """Refuse what is for another campaign, which was served at this address when a page opened."""
    if given.campaign not in (None, desk.identity):
        raise HTTPException(
            409,
            "expected a request for the campaign that is served here, got one for another; serve "
            "that one and send it again, or reload the page",
            headers={_SERVED: desk.identity},
        )


def _item(desk: Desk, item: Item) -> models.ItemOut:
    return models.ItemOut(
        row=item.row,
        name=item.name.encode("utf-8", "replace").decode(),
        rank=item.rank,
        image=desk.campaign.source.images is not None,
        cells=[models.CellOut(**vars(cell)) for cell in desk.card(item.row)],
    )


def _progress(desk: Desk, me: Session) -> models.ProgressOut:
    state = desk.campaign.state
    labelled = sum(one.labelled for one in state.verdicts.values())
    return models.ProgressOut(
        rows=state.created.rows,
        labelled=labelled,
        waiting=len(state.pending),
        passed=len(state.verdicts) - labelled,
        mine=sum(one.who == me.who for one in state.standing.values()),
    )


def _value(given: str | int | float | None) -> str | float | None:
    """Whole numbers as floats, where a float can hold them."""
    return float(given) if isinstance(given, int) and abs(given) < 2**1000 else given
