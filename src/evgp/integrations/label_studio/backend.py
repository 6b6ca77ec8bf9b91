"""An ML backend for Label Studio: tasks scored by their gain, annotations recorded as they come."""

import base64
import binascii
import threading
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any

from evgp._errors import CampaignError, EvgpError
from evgp._extras import lacking
from evgp.campaign import Campaign
from evgp.campaign.mirror import Told, mirror
from evgp.campaign.scores import scores
from evgp.integrations.label_studio.answers import TOOL, row_of, shown, told_of
from evgp.integrations.label_studio.config import check_config

try:
    from fastapi import Depends, FastAPI, HTTPException
    from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
    from starlette.requests import HTTPConnection

    from evgp.integrations.label_studio.bodies import body_of
    from evgp.web.app import LOOPBACK, add_handlers
    from evgp.web.attempts import Attempts, address_of
    from evgp.web.guard import SAFE, Door, Guard
except ImportError as error:
    raise ImportError(lacking("label-studio")) from error

# Label Studio sends all tasks that were chosen in one body, with their pictures; an event has one
# task or a few; and a project its label config.
DOORS = {"/predict": Door(2**26, 1), "/webhook": Door(2**24, 2), "/setup": Door(2**20, 2)}
MOST_TASKS = 10_000
OPEN = ("/", "/health")
_TAKEN = ("ANNOTATION_CREATED", "ANNOTATIONS_CREATED", "ANNOTATION_UPDATED")
People = Callable[[], Mapping[int, str]]


def _few(given: object) -> object:
    """Refuse too many at once, before each of them is looked at."""
    if isinstance(given, list) and len(given) > MOST_TASKS:
        raise ValueError(f"expected at most {MOST_TASKS:,} at once, got {len(given):,}")
    return given


_Several = Annotated[list[dict[str, Any]], BeforeValidator(_few)]


class Setup(BaseModel):
    """A project is connected; the token that comes along is neither kept nor told."""

    model_config = ConfigDict(extra="ignore")
    config: str | None = Field(None, alias="schema")


class Tasks(BaseModel):
    """Tasks to score."""

    model_config = ConfigDict(extra="ignore")
    tasks: _Several


class Happened(BaseModel):
    """What happened in a project: one annotation with its task, or several with theirs."""

    model_config = ConfigDict(extra="ignore")
    action: str
    annotation: dict[str, Any] | _Several | None = None
    task: dict[str, Any] | _Several | None = None


class Names:
    """Who the users of Label Studio are; asked for again when a new one comes."""

    def __init__(self, people: People | None) -> None:
        self._people = people
        self._known: dict[int, str] = {}
        self._missing: set[int] = set()
        self._lock = threading.Lock()

    def of(self, number: object) -> Mapping[int, str]:
        """All names that are known, that of this user among them if it can be had."""
        with self._lock:
            known = {*self._known, *self._missing}
            if self._people is not None and isinstance(number, int) and number not in known:
                try:
                    self._known.update(self._people())
                except EvgpError:
                    return dict(self._known)  # Label Studio may be busy: ask next time
                if number not in self._known:
                    self._missing.add(number)
            return dict(self._known)


def make_backend(
    campaign: Campaign,
    *,
    token: str | None = None,
    hosts: Collection[str] = LOOPBACK,
    people: People | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> FastAPI:
    """The backend of a campaign; with a `token`, whoever does not know it is refused.

    The token is the password of basic authentication, as Label Studio sends it to ML backends, or a
    header `Authorization: Bearer ...`, as its webhooks can. `people` gives the names of users.
    `tell` hears what was refused, as Label Studio itself tells nobody.
    """
    names, attempts = Names(people), Attempts()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        campaign.close()

    async def admit(connection: HTTPConnection) -> None:
        is_open = connection.scope["method"] in SAFE and connection.scope["path"] in OPEN
        if token is None or is_open:
            return
        given = _given(connection.headers.get("authorization", ""))
        if not await attempts.is_right(given, token, address_of(connection)):
            raise HTTPException(
                401, "expected the token of this campaign", {"www-authenticate": "Basic"}
            )

    app = FastAPI(title="evgp", version="1", openapi_url=None, lifespan=lifespan)

    @app.get("/")
    @app.get("/health")
    async def health() -> dict[str, str]:
        """It is there, however busy its threads are."""
        return {"status": "UP", "model_class": "evgp"}

    @app.post("/setup")
    def setup(given: Annotated[Setup, Depends(body_of(Setup, skim=False))]) -> dict[str, str]:
        """A project is connected, or connected again."""
        if given.config is not None:
            check_config(given.config, campaign.created.classes, "this project")
        return {"model_version": _version(campaign)}

    @app.post("/predict")
    def predict(asked: Annotated[Tasks, Depends(body_of(Tasks, skim=True))]) -> dict[str, Any]:
        """The gain of each task as its score; 0 for those that are none of ours."""
        return _predicted(campaign, [_row(campaign, task) for task in asked.tasks])

    @app.post("/webhook", status_code=201)
    def webhook(
        happened: Annotated[Happened, Depends(body_of(Happened, skim=True))],
    ) -> dict[str, Any]:
        """An annotation was made or changed: it is on the disk when this answers."""
        if happened.action not in _TAKEN:
            return {"taken": 0, "ignored": shown(happened.action)}
        try:
            told = _told(campaign, names, _many(happened.task), _many(happened.annotation))
            made = mirror(campaign, TOOL, told)
        except EvgpError as error:
            tell(f"refused: {error}")
            raise
        return {"taken": made.new + made.changed, "known": made.known}

    add_handlers(app)
    app.add_middleware(Guard, hosts=hosts, admit=admit, doors=DOORS, pages=False)
    return app


def _predicted(campaign: Campaign, rows: Sequence[int | None]) -> dict[str, Any]:
    ours = sorted({row for row in rows if row is not None})
    gains = dict(zip(ours, scores(campaign, ours), strict=True))
    same: dict[str, Any] = {"model_version": _version(campaign)}
    found = [{"result": [], "score": 0.0 if row is None else gains[row], **same} for row in rows]
    return {"results": found, **same}


def _told(
    campaign: Campaign,
    names: Names,
    tasks: Sequence[dict[str, Any]],
    annotations: Sequence[dict[str, Any]],
) -> list[Told]:
    by_id = {_id(one.get("id")): one for one in tasks}
    made = []
    for one in annotations:
        task = by_id.get(_id(one.get("task")), tasks[0] if len(tasks) == 1 else None)
        if task is None:
            raise CampaignError(
                "expected the task of each annotation, got none; let the webhook send its payload"
            )
        row = row_of(campaign, task)
        if row is not None:
            who = one.get("completed_by")
            made.append(told_of(campaign, task, row, one, names.of(who)))
    return made


def _id(given: object) -> int | str | None:
    """The id of a task, as Label Studio gives it."""
    if given is not None and not isinstance(given, int | str):
        raise CampaignError(
            f"expected the id of a task, got {type(given).__name__}; let the webhook send its "
            "payload"
        )
    return given


def _row(campaign: Campaign, task: Mapping[str, Any]) -> int | None:
    try:
        return row_of(campaign, task)
    except CampaignError:
        return None


def _version(campaign: Campaign) -> str:
    """Changes with each round, so that Label Studio asks for scores anew."""
    return f"evgp-round-{len(campaign.state.rounds)}"


def _many(given: dict[str, Any] | list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    return given if isinstance(given, list) else [] if given is None else [given]


def _given(header: str) -> str:
    """The token in a header: the password, or what bears it.

    >>> _given("Bearer abc"), _given("Basic " + base64.b64encode(b"evgp:abc").decode())
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
