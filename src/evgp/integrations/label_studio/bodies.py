"""What Label Studio sends, read within bounds of memory and time.

`json.loads` holds the interpreter's lock from its first byte to its last, and makes up to thirty
bytes of objects from each byte. So long texts, which most of a body is where tasks carry pictures,
and which nothing here needs, are left out first; what remains is counted.
"""

import json
from collections.abc import Awaitable, Callable
from itertools import accumulate
from sys import maxsize
from typing import TypeVar

from fastapi import HTTPException, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError

LONG = 4_096  # bytes of a text that is left out
MOST_BYTES = 2**24  # besides such texts
MOST_VALUES = 1_000_000
MOST_QUOTES = 2_000_000
DEEPEST = 64
_NOT_BRACKETS = bytes(one for one in range(256) if one not in b"[]{}")
Model = TypeVar("Model", bound=BaseModel)


def body_of(model: type[Model], *, skim: bool) -> Callable[[Request], Awaitable[Model]]:
    """A dependency: the body of a request as this model, read in a thread of its own."""

    async def read(request: Request) -> Model:
        return await run_in_threadpool(parsed, await request.body(), model, skim=skim)

    return read


def parsed(body: bytes, model: type[Model], *, skim: bool = True) -> Model:
    """A body as a model, without its long texts if `skim`; or refused in one sentence.

    >>> class Named(BaseModel):
    ...     name: str
    >>> parsed(b'{"name": "Ann", "picture": "' + b"x" * 9999 + b'"}', Named)
    Named(name='Ann')
    """
    kept, outside = skimmed(body, LONG if skim else maxsize)
    _check(kept, outside)
    try:
        return model.model_validate(json.loads(kept))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        first["loc"] = ("body", *first["loc"])
        raise RequestValidationError([first]) from None
    except (ValueError, RecursionError):
        raise _no_json() from None


def skimmed(body: bytes, long: int) -> tuple[bytes, bytes]:
    """JSON with an empty text in the place of each long one; and what is outside of all texts.

    One step a quote, each of them short, so that other threads go on meanwhile.
    """
    if body.count(b'"') > MOST_QUOTES:
        raise _too_many()
    kept: list[bytes] = []
    outside: list[bytes] = []
    begun = after = 0  # what is not yet kept; what is behind the last text
    while (opening := body.find(b'"', after)) >= 0:
        closing = _closing(body, opening)
        outside.append(body[after:opening])
        after = closing + 1
        if closing - opening > long:
            kept += [body[begun:opening], b'""']
            begun = after
    return b"".join([*kept, body[begun:]]), b"".join([*outside, body[after:]])


def _closing(body: bytes, opening: int) -> int:
    """Where a text ends: at a quote with an even number of backslashes before it."""
    before = opening
    while (found := body.find(b'"', before + 1)) >= 0:
        part = body[before + 1 : found]
        if (len(part) - len(part.rstrip(b"\\"))) % 2 == 0:
            return found
        before = found
    raise _no_json()


def _check(kept: bytes, outside: bytes) -> None:
    if len(kept) > MOST_BYTES:
        raise HTTPException(
            413, f"expected at most {MOST_BYTES:,} bytes besides long texts, got {len(kept):,}"
        )
    if sum(outside.count(sign) for sign in (b",", b"[", b"{")) > MOST_VALUES:
        raise _too_many()
    brackets = outside.translate(None, _NOT_BRACKETS)
    if max(accumulate(1 if one in b"[{" else -1 for one in brackets), default=0) > DEEPEST:
        raise HTTPException(422, f"expected JSON nested {DEEPEST} levels deep at most, got more")


def _no_json() -> HTTPException:
    return HTTPException(422, "expected JSON, got something else")


def _too_many() -> HTTPException:
    return HTTPException(
        413, f"expected at most {MOST_VALUES:,} values, got more; choose fewer tasks at once"
    )
