"""Request bodies from Label Studio, parsed within limits on memory and time.

`json.loads` holds the global interpreter lock from the first byte to the last, and makes up to
thirty bytes of objects from each byte. Long strings are most of a body whose tasks carry images,
and nothing here needs them: they are removed first, and what remains is counted.
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

LONG = 4_096  # bytes from which on a string is removed
MAX_BYTES = 2**24  # without these strings
MAX_VALUES = 1_000_000
MAX_QUOTES = 2_000_000
MAX_DEPTH = 64
_NOT_BRACKETS = bytes(code for code in range(256) if code not in b"[]{}")
Model = TypeVar("Model", bound=BaseModel)


def body_of(model: type[Model], *, skim: bool) -> Callable[[Request], Awaitable[Model]]:
    """A FastAPI dependency: the body of a request as this model, parsed in a worker thread."""

    async def read(request: Request) -> Model:
        return await run_in_threadpool(parsed, await request.body(), model, skim=skim)

    return read


def parsed(body: bytes, model: type[Model], *, skim: bool = True) -> Model:
    """A body as a model, without its long strings if `skim`; or rejected with one sentence.

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
        raise _not_json() from None


def skimmed(body: bytes, long: int) -> tuple[bytes, bytes]:
    """JSON with an empty string in place of each long one, and everything outside of strings.

    One short step per quote, so that other threads can run meanwhile.
    """
    if body.count(b'"') > MAX_QUOTES:
        raise _too_many()
    kept: list[bytes] = []
    outside: list[bytes] = []
    start = after = 0  # of what is not yet copied; end of the last string
    while (opening := body.find(b'"', after)) >= 0:
        closing = _closing(body, opening)
        outside.append(body[after:opening])
        after = closing + 1
        if closing - opening > long:
            kept += [body[start:opening], b'""']
            start = after
    return b"".join([*kept, body[start:]]), b"".join([*outside, body[after:]])


def _closing(body: bytes, opening: int) -> int:
    """Where a string ends: at a quote with an even number of backslashes before it."""
    before = opening
    while (quote := body.find(b'"', before + 1)) >= 0:
        part = body[before + 1 : quote]
        if (len(part) - len(part.rstrip(b"\\"))) % 2 == 0:
            return quote
        before = quote
    raise _not_json()


def _check(kept: bytes, outside: bytes) -> None:
    if len(kept) > MAX_BYTES:
        raise HTTPException(
            413, f"expected at most {MAX_BYTES:,} bytes besides long strings, got {len(kept):,}"
        )
    if sum(outside.count(sign) for sign in (b",", b"[", b"{")) > MAX_VALUES:
        raise _too_many()
    brackets = outside.translate(None, _NOT_BRACKETS)
    if max(accumulate(1 if sign in b"[{" else -1 for sign in brackets), default=0) > MAX_DEPTH:
        raise HTTPException(422, f"the JSON is nested more than {MAX_DEPTH} levels deep")


def _not_json() -> HTTPException:
    return HTTPException(422, "the body is not valid JSON")


def _too_many() -> HTTPException:
    return HTTPException(
        413, f"the body has more than {MAX_VALUES:,} values; select fewer tasks at a time"
    )
