"""What goes over the wire, as OpenAPI tells it."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, StrictStr

from evgp.campaign.events import Kind


class _Given(BaseModel):
    model_config = ConfigDict(extra="forbid")


class PageChange(_Given):
    """For which campaign it is, as `GET /api/campaign` tells; for another it is refused."""

    campaign: str | None = Field(None, max_length=100)


class Problem(BaseModel):
    """What was expected, what came, and what to do, in a sentence."""

    detail: str


class SignIn(_Given):
    """Who comes, and the token where one is asked for."""

    name: str = Field(min_length=1, max_length=200, examples=["Ann"])
    token: str | None = Field(None, max_length=500)


class Signed(BaseModel):
    """Who came, and what they send as `X-CSRF-Token` with each change."""

    name: str
    csrf: str


class About(BaseModel):
    """What is asked of people: one of `classes`, or a number where there are none.

    `campaign` tells this campaign from others that may stand at the same address later.
    """

    name: str
    campaign: str
    rows: int
    classes: list[str]
    images: bool
    person: str
    csrf: str


class Wish(PageChange):
    """How many rows a page wants, of which it gets at most three, and which it has already."""

    count: int = Field(3, ge=1, le=20)
    holding: list[StrictInt] = Field(default_factory=list, max_length=40)


class LeftIn(PageChange):
    """Rows that a page had at hand, and that are for others now."""

    rows: list[StrictInt] = Field(max_length=40)


class CellOut(BaseModel):
    """A column of a row, as text."""

    name: str
    text: str
    kind: Literal["number", "short", "long", "missing"]


class ItemOut(BaseModel):
    """A row to label: its rank among all picks (0 if it was not picked), and what to show of it."""

    row: int
    name: str
    rank: int
    image: bool
    cells: list[CellOut]


class ProgressOut(BaseModel):
    """Rows by what is known of them."""

    rows: int
    labelled: int
    waiting: int
    passed: int
    mine: int


class HandedOut(BaseModel):
    """Rows for this person for a while; without any, whether to wait or to stop.

    `lost` are rows of `holding` that others have, or have answered, since.
    """

    items: list[ItemOut]
    lost: list[int]
    picking: bool
    done: bool
    problem: str | None
    progress: ProgressOut


class AnswerIn(PageChange):
    """An answer; `key` is made by the sender, once for each answer, and makes repeats harmless."""

    row: StrictInt = Field(ge=0, le=2**53)
    kind: Kind = "label"
    value: StrictStr | StrictInt | StrictFloat | None = None
    key: str = Field(min_length=8, max_length=100, pattern=r"^[A-Za-z0-9_.:-]+$")


class AnswerTaken(BaseModel):
    """The number under which the answer is on the disk; `repeated` if it was there already."""

    number: int
    repeated: bool


class UndoIn(PageChange):
    """A key made by the sender, once for each undo."""

    key: str = Field(min_length=8, max_length=100, pattern=r"^[A-Za-z0-9_.:-]+$")


class UndoneOut(BaseModel):
    """What was taken back, and its row, which is this person's again."""

    item: ItemOut
    kind: Kind
    value: str | float | None
