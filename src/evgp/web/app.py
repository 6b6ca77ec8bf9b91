"""The application: pages, what their script asks for, and what each error becomes."""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from functools import partial

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from evgp._errors import CampaignError, Conflict, EvgpError, NoRoom
from evgp.web import api, pages
from evgp.web.attempts import Attempts
from evgp.web.desk import Desk
from evgp.web.guard import Guard
from evgp.web.sessions import Sessions
from evgp.web.writer import NotNow

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def make_app(desk: Desk, keeper: Sessions, *, hosts: Collection[str] = LOOPBACK) -> FastAPI:
    """Everything behind one address; `hosts` are the names it may be called by."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        desk.start()
        yield
        desk.stop()

    app = FastAPI(
        title="evgp campaign serve",
        version="1",
        summary="Label what EV-GP picks.",
        description=(
            "Sign in with `POST /api/session`; send its cookie with every request, and its `csrf` "
            "as `X-CSRF-Token` and your `Origin` with every change. Every answer that was "
            "acknowledged is on the disk; send it again with the same key as often as you like."
        ),
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.desk, app.state.keeper, app.state.attempts = desk, keeper, Attempts()
    app.include_router(api.router)
    app.include_router(pages.router)
    app.add_middleware(Guard, hosts=hosts, admit=partial(api.admit, keeper=keeper))
    add_handlers(app)
    return app


def add_handlers(app: FastAPI) -> None:
    """Answer every error with one sentence."""
    app.add_exception_handler(EvgpError, _told)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _plain)


def status_of(error: Exception) -> int:
    """The status of an error.

    >>> [status_of(one("")) for one in (Conflict, NoRoom, NotNow, CampaignError, EvgpError)]
    [409, 507, 503, 422, 503]
    """
    for kind, status in ((Conflict, 409), (NoRoom, 507), (NotNow, 503), (CampaignError, 422)):
        if isinstance(error, kind):
            return status
    return 503


async def _told(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": " ".join(str(error).split())}, status_of(error))


async def _plain(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return JSONResponse({"detail": error.detail}, error.status_code, headers=error.headers)


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    """One sentence that never repeats what was sent, as that may be a token."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if isinstance(part, str)) or "the request"
    where = where.encode("ascii", "backslashreplace").decode()[:100]
    words = str(first["msg"]).removeprefix("Value error, ")
    return JSONResponse({"detail": f"{where}: {words}"}, 422)
