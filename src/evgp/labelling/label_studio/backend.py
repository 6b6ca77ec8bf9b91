"""An ML backend for Label Studio: scores tasks by their gain, and records annotations."""

import base64
import binascii
import threading
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated, Any

from evgp._extras import lacking
from evgp.errors import CampaignError, EvgpError
from evgp.labelling.campaign import Campaign
from evgp.labelling.campaign.estimates import scores
from evgp.labelling.campaign.sync import ExternalAnswer, sync
from evgp.labelling.label_studio.answers import TOOL, answer_of, row_of, shown
from evgp.labelling.label_studio.config import check_config

try:
    from fastapi import Depends, FastAPI, HTTPException
    from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
    from starlette.requests import HTTPConnection

    from evgp.labelling.label_studio.bodies import body_of
    from evgp.labelling.web.app import LOOPBACK, add_handlers
    from evgp.labelling.web.auth import TokenCheck, address_of
    from evgp.labelling.web.middleware import SAFE_METHODS, Guard, PathLimits
except ImportError as error:
    raise ImportError(lacking("label-studio")) from error

# Label Studio sends all selected tasks in one body, with their images; an event has one task or a
# few; a project has its label config.
LIMITS = {
    "/predict": PathLimits(2**26, 1),
    "/webhook": PathLimits(2**24, 2),
    "/setup": PathLimits(2**20, 2),
}
MAX_TASKS = 10_000
PUBLIC_PATHS = ("/", "/health")
_RECORDED = ("ANNOTATION_CREATED", "ANNOTATIONS_CREATED", "ANNOTATION_UPDATED")
People = Callable[[], Mapping[int, str]]


def _check_count(value: object) -> object:
    """Reject a list that is too long before its items are validated."""
    if isinstance(value, list) and len(value) > MAX_TASKS:
        raise ValueError(f"expected at most {MAX_TASKS:,} in one request, got {len(value):,}")
    return value


_Objects = Annotated[list[dict[str, Any]], BeforeValidator(_check_count)]


class Setup(BaseModel):
    """A project is connected; the token in the request is neither stored nor shown."""

    model_config = ConfigDict(extra="ignore")
    config: str | None = Field(None, alias="schema")


class Tasks(BaseModel):
    """Tasks to score."""

    model_config = ConfigDict(extra="ignore")
    tasks: _Objects


class WebhookEvent(BaseModel):
    """An event in a project: one annotation with its task, or several with theirs."""

    model_config = ConfigDict(extra="ignore")
    action: str
    annotation: dict[str, Any] | _Objects | None = None
    task: dict[str, Any] | _Objects | None = None


class UserNames:
    """Names of Label Studio's users, requested again when an unknown one appears."""

    def __init__(self, people: People | None) -> None:
        self._people = people
        self._known: dict[int, str] = {}
        self._missing: set[int] = set()
        self._lock = threading.Lock()

    def of(self, number: object) -> Mapping[int, str]:
        """All known names, including that of this user if Label Studio knows it."""
        with self._lock:
            known = {*self._known, *self._missing}
            if self._people is not None and isinstance(number, int) and number not in known:
                try:
                    self._known.update(self._people())
                except EvgpError:
                    return dict(self._known)  # Label Studio may be busy: try again next time
                if number not in self._known:
                    self._missing.add(number)
            return dict(self._known)


def make_backend(
    campaign: Campaign,
    *,
    token: str | None = None,
    hosts: Collection[str] = LOOPBACK,
    people: People | None = None,
    report: Callable[[str], None] = lambda text: None,
) -> FastAPI:
    """The backend of a campaign; with a `token`, requests without it are rejected.

    The token is the password of basic authentication, as Label Studio sends it to ML backends, or a
    header `Authorization: Bearer ...`, as its webhooks can. `people` returns the names of users.
    `report` is called with errors, because Label Studio does not show them to anybody.
    """
    names = UserNames(people)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        campaign.close()

    app = FastAPI(title="evgp", version="1", openapi_url=None, lifespan=lifespan)

    @app.get("/")
    @app.get("/health")
    async def health() -> dict[str, str]:
        """Report that the server is up, even when all its threads are busy."""
        return {"status": "UP", "model_class": "evgp"}

    @app.post("/setup")
    def setup(project: Annotated[Setup, Depends(body_of(Setup, skim=False))]) -> dict[str, str]:
        """Check the label config of a project that is connected."""
        if project.config is not None:
            check_config(project.config, campaign.created.classes, "this project")
        return {"model_version": _version(campaign)}

    @app.post("/predict")
    def predict(request: Annotated[Tasks, Depends(body_of(Tasks, skim=True))]) -> dict[str, Any]:
        """Score each task by its gain; 0 for tasks of other pools."""
        return _predictions(campaign, [_row(campaign, task) for task in request.tasks])

    @app.post("/webhook", status_code=201)
    def webhook(
        event: Annotated[WebhookEvent, Depends(body_of(WebhookEvent, skim=True))],
    ) -> dict[str, Any]:
        """Record an annotation that was created or changed; it is on disk when this returns."""
        if event.action not in _RECORDED:
            return {"taken": 0, "ignored": shown(event.action)}
        try:
            answers = _answers(campaign, names, _as_list(event.task), _as_list(event.annotation))
            result = sync(campaign, TOOL, answers)
        except EvgpError as error:
            report(f"rejected: {error}")
            raise
        return {"taken": result.new + result.changed, "known": result.known}

    add_handlers(app)
    guard = partial(_authorise, token, TokenCheck())
    app.add_middleware(Guard, hosts=hosts, authorise=guard, limits=LIMITS, pages=False)
    return app


async def _authorise(token: str | None, tokens: TokenCheck, connection: HTTPConnection) -> None:
    """Reject a request without the token, unless it needs none."""
    method, path = connection.scope["method"], connection.scope["path"]
    if token is None or (method in SAFE_METHODS and path in PUBLIC_PATHS):
        return
    sent = _token_in(connection.headers.get("authorization", ""))
    if not await tokens.is_right(sent, token, address_of(connection)):
        raise HTTPException(
            401, "missing or wrong token of this campaign", {"www-authenticate": "Basic"}
        )


def _predictions(campaign: Campaign, rows: Sequence[int | None]) -> dict[str, Any]:
    known = sorted({row for row in rows if row is not None})
    gains = dict(zip(known, scores(campaign, known), strict=True))
    version: dict[str, Any] = {"model_version": _version(campaign)}
    results = [
        {"result": [], "score": 0.0 if row is None else gains[row], **version} for row in rows
    ]
    return {"results": results, **version}


def _answers(
    campaign: Campaign,
    names: UserNames,
    tasks: Sequence[dict[str, Any]],
    annotations: Sequence[dict[str, Any]],
) -> list[ExternalAnswer]:
    by_id = {_id(task.get("id")): task for task in tasks}
    answers = []
    for annotation in annotations:
        task = by_id.get(_id(annotation.get("task")), tasks[0] if len(tasks) == 1 else None)
        if task is None:
            raise CampaignError(
                "an annotation came without its task; turn on the payload of the webhook"
            )
        row = row_of(campaign, task)
        if row is not None:
            who = annotation.get("completed_by")
            answers.append(answer_of(campaign, task, row, annotation, names.of(who)))
    return answers


def _id(value: object) -> int | str | None:
    """The id of a task in Label Studio."""
    if value is not None and not isinstance(value, int | str):
        raise CampaignError(
            f"expected the id of a task, got {type(value).__name__}; turn on the payload of the "
            "webhook"
        )
    return value


def _row(campaign: Campaign, task: Mapping[str, Any]) -> int | None:
    try:
        return row_of(campaign, task)
    except CampaignError:
        return None


def _version(campaign: Campaign) -> str:
    """A version that changes with each round, so that Label Studio requests new scores."""
    return f"evgp-round-{len(campaign.state.rounds)}"


def _as_list(value: dict[str, Any] | list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _token_in(header: str) -> str:
    """The token in an Authorization header: a bearer token, or the password.

    >>> _token_in("Bearer abc"), _token_in("Basic " + base64.b64encode(b"evgp:abc").decode())
    ('abc', 'abc')
    """
    kind, _, rest = header.strip().partition(" ")
    if kind.lower() in ("bearer", "token"):
        return rest.strip()
    if kind.lower() == "basic":
        try:
            return base64.b64decode(rest, validate=True).decode().partition(":")[2]
        except (binascii.Error, ValueError):
            return ""
    return ""
