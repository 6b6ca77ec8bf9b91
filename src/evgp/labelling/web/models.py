"""Requests and responses of the HTTP API, as the OpenAPI schema describes them."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, StrictStr

from evgp.labelling.campaign.events import Kind


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


class CampaignRequest(_Request):
    """A request for a campaign, as named by `GET /api/campaign`; another one is rejected."""

    campaign: str | None = Field(None, max_length=100)


class Problem(BaseModel):
    """An error in one sentence: what was expected, what came, and what to do."""

    detail: str


class SignIn(_Request):
    """Your name, and the token if the server asks for one."""

    name: str = Field(min_length=1, max_length=200, examples=["Ann"])
    token: str | None = Field(None, max_length=500)


class SignedIn(BaseModel):
    """Your name, and what to send as `X-CSRF-Token` with each change."""

    name: str
    csrf: str


class About(BaseModel):
    """The task: labels are one of `classes`, or a number if there are none.

    `campaign` identifies this campaign: another one may be served at the same address later.
    """

    name: str
    campaign: str
    rows: int
    classes: list[str]
    images: bool
    person: str
    csrf: str


class NextIn(CampaignRequest):
    """How many rows a page wants (it gets at most three), and which ones it holds already."""

    count: int = Field(3, ge=1, le=20)
    holding: list[StrictInt] = Field(default_factory=list, max_length=40)


class ReleaseIn(CampaignRequest):
    """Rows that a page held, and that others may have now."""

    rows: list[StrictInt] = Field(max_length=40)


class CellOut(BaseModel):
    """One column of a row, as text."""

    name: str
    text: str
    kind: Literal["number", "short", "long", "missing"]


class ItemOut(BaseModel):
    """A row to label: its rank among all picks (0 if it was not picked), and what to show."""

    row: int
    name: str
    rank: int
    image: bool
    cells: list[CellOut]


class ProgressOut(BaseModel):
    """Numbers of rows by status; `passed` were skipped or marked unsure, `mine` answered by you."""

    rows: int
    labelled: int
    waiting: int
    passed: int
    mine: int


class NextOut(BaseModel):
    """Rows leased to this person; if there are none, whether to wait or to stop.

    `lost` are rows of `holding` that others hold, or have answered, since.
    """

    items: list[ItemOut]
    lost: list[int]
    picking: bool
    done: bool
    problem: str | None
    progress: ProgressOut


class AnswerIn(CampaignRequest):
    """An answer; the sender makes a new `key` for each one, which makes repeats harmless."""

    row: StrictInt = Field(ge=0, le=2**53)
    kind: Kind = "label"
    value: StrictStr | StrictInt | StrictFloat | None = None
    key: str = Field(min_length=8, max_length=100, pattern=r"^[A-Za-z0-9_.:-]+$")


class AnswerOut(BaseModel):
    """The number of the saved answer; `repeated` if it had been saved before."""

    number: int
    repeated: bool


class UndoIn(CampaignRequest):
    """A key that the sender makes, a new one for each undo."""

    key: str = Field(min_length=8, max_length=100, pattern=r"^[A-Za-z0-9_.:-]+$")


class UndoOut(BaseModel):
    """The answer that was undone, and its row, which is leased to this person again."""

    item: ItemOut
    kind: Kind
    value: str | float | None
