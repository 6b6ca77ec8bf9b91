"""The application: its pages, its API, and the HTTP status of each error."""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from functools import partial

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from evgp.errors import CampaignError, Conflict, EvgpError, NoRoom
from evgp.labelling.web import api, pages
from evgp.labelling.web.auth import Sessions, TokenCheck
from evgp.labelling.web.middleware import Guard
from evgp.labelling.web.service import LabellingService, WriteUnavailable

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_STATUS = ((Conflict, 409), (NoRoom, 507), (WriteUnavailable, 503), (CampaignError, 422))


def make_app(
    service: LabellingService, sessions: Sessions, *, hosts: Collection[str] = LOOPBACK
) -> FastAPI:
    """The application for one campaign; `hosts` are the names under which it may be reached."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield
        service.stop()

    app = FastAPI(
        title="evgp campaign serve",
        version="1",
        summary="Label what EV-GP picks.",
        description=(
            "Sign in with `POST /api/session`. Send its cookie with every request; with every "
            "change also its `csrf` as `X-CSRF-Token`, and your `Origin`. An answer that was "
            "acknowledged is on disk; you can safely send it again with the same key."
        ),
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.service, app.state.sessions, app.state.tokens = service, sessions, TokenCheck()
    app.include_router(api.router)
    app.include_router(pages.router)
    app.add_middleware(Guard, hosts=hosts, authorise=partial(api.authorise, sessions=sessions))
    add_handlers(app)
    return app


def add_handlers(app: FastAPI) -> None:
    """Respond to every error with one sentence."""
    app.add_exception_handler(EvgpError, _evgp_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_error)


def status_of(error: Exception) -> int:
    """The HTTP status of an error.

    >>> [status_of(kind("")) for kind in (Conflict, NoRoom, WriteUnavailable)]
    [409, 507, 503]
    >>> status_of(CampaignError("")), status_of(EvgpError(""))
    (422, 503)
    """
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 503)


async def _evgp_error(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": " ".join(str(error).split())}, status_of(error))


async def _http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return JSONResponse({"detail": error.detail}, error.status_code, headers=error.headers)


async def _validation_error(request: Request, error: Exception) -> JSONResponse:
    """One sentence that never repeats what was sent, because that may be a token."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if isinstance(part, str)) or "the request"
    where = where.encode("ascii", "backslashreplace").decode()[:100]
    problem = str(first["msg"]).removeprefix("Value error, ")
    return JSONResponse({"detail": f"{where}: {problem}"}, 422)
