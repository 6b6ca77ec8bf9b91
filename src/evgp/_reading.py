"""The one place where files are opened for reading: regular files that fit in memory.

Opening a pipe can block, a device never ends, and a small compressed file can expand to gigabytes.
Every command opens every path here, so all of them refuse the same files.
"""

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from io import BufferedReader
from pathlib import Path

from evgp._machine import available_memory
from evgp.errors import (
    DatasetError,
    DoesNotFit,
    EvgpError,
    MissingFile,
    UnreadableFile,
    WrongFormat,
)
from evgp.errors import size as size_of

# Compressed data beyond both of these limits is a decompression bomb: only constant data compresses
# so well, and a pool of constants leaves nothing to choose. (Deflate reaches at most 1032 to 1.)
_BOMB_RATIO = 900
_BOMB_BYTES = 32 * 2**20
# Bytes of memory that Python needs for a JSON value, and for each byte of its text.
_JSON_VALUE, _JSON_ASCII, _JSON_OTHER = 100, 3, 9

_allowed: ContextVar[int | None] = ContextVar("allowed", default=None)
_NONBLOCKING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@contextmanager
def reading_within(memory: int | None) -> Iterator[None]:
    """Limit what is read in this block to half of `memory` bytes; None means the free memory.

    >>> with reading_within(1000):
    ...     room()
    500
    """
    token = _allowed.set(memory)
    try:
        yield
    finally:
        _allowed.reset(token)


def room() -> int:
    """Return how many bytes may be read: half of the free memory, or of the limit if one is set.

    The other half is for what is computed from it, such as the matrix of a table.
    """
    allowed = _allowed.get()
    free = available_memory()
    return (free if allowed is None else min(free, allowed)) // 2


def check_memory(need: int, source: str, error: type[EvgpError] = DatasetError) -> None:
    """Refuse data that would take more than `room()`."""
    if need <= room():
        return
    free, allowed = available_memory(), _allowed.get()
    if allowed is not None and allowed < free:
        where, advice = "of what memory= allows may be used", "allow more, or take fewer rows"
        raise DoesNotFit.of(error)(source, need, allowed // 2, where, advice)
    raise DoesNotFit.of(error)(source, need, free)


def check_bomb(need: int, held: int, source: str, most: int = _BOMB_BYTES) -> None:
    """Refuse `held` bytes that unpack to `need` > `most` if no real data compresses that well."""
    if need > most and need > _BOMB_RATIO * max(held, 1):
        raise UnreadableFile.of(DatasetError)(
            source,
            f"{held:,} bytes would unpack to {need:,} bytes, which looks like a decompression bomb",
            "if it is real data, save it uncompressed, as .npy or .arrow",
        )


def check_plain(path: str | Path, error: type[EvgpError] = DatasetError) -> int:
    """Return the size of a regular, readable file; refuse anything else without opening it."""
    try:
        status = os.stat(path)
    except (OSError, ValueError) as cause:
        raise _unreadable(path, cause, error) from cause
    _check_kind(path, status.st_mode, error)
    if not os.access(path, os.R_OK):
        raise _forbidden(path, error)
    return status.st_size


@contextmanager
def opened(path: str | Path, error: type[EvgpError] = DatasetError) -> Iterator[BufferedReader]:
    """Open a regular file for reading, without blocking if a pipe has replaced it meanwhile.

    Errors while the file is read are reported in one sentence, too.
    """
    check_plain(path, error)
    try:
        with open(os.open(path, os.O_RDONLY | _NONBLOCKING), "rb") as stream:
            _check_kind(path, os.fstat(stream.fileno()).st_mode, error)
            yield stream
    except OSError as cause:
        if cause.errno is None or cause.filename not in (None, path, str(path)):
            raise
        raise _unreadable(path, cause, error) from cause


def is_utf8(path: str | Path) -> bool:
    r"""Whether a file name is valid UTF-8; Python represents other bytes by surrogates.

    >>> is_utf8("caf\u00e9.csv"), is_utf8("caf\udce9.csv")
    (True, False)
    """
    return not any("\ud800" <= char <= "\udfff" for char in str(path))


def unwaiting(path: str, flags: int) -> int:
    """An `opener` for `open` that never blocks: a pipe in place of the file fails to seek."""
    return os.open(path, flags | _NONBLOCKING)


def read_bytes(
    path: str | Path, error: type[EvgpError] = DatasetError, *, most: int | None = None
) -> bytes:
    """Read all of a small file: at most `most` bytes, and no more than fits in memory."""
    size = check_plain(path, error)
    if most is not None and size > most:
        raise WrongFormat.of(error)(
            str(path), f"at most {size_of(most)}", size_of(size), "check the path"
        )
    _fits(size, path, error)
    with opened(path, error) as stream:
        # Ask for one byte more than the size, to notice a file that is still growing.
        data = stream.read(size + 1)
    if len(data) > size:
        raise UnreadableFile.of(error)(str(path), "the file grew while it was read", "try again")
    return data


def read_text(
    path: str | Path, error: type[EvgpError] = DatasetError, *, most: int | None = None
) -> str:
    """Read all of a small UTF-8 text file, with or without a byte order mark."""
    data = read_bytes(path, error, most=most)
    _fits(len(data) * (2 if data.isascii() else 5), path, error)
    return _decoded(data, path, error)


def read_json(path: str | Path, expected: str, error: type[EvgpError] = DatasetError) -> object:
    """Read the value in a JSON file; `expected` describes it in error messages."""
    text = read_json_text(path, error)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as cause:
        raise WrongFormat.of(error)(str(path), expected, "no JSON", "write it again") from cause


def read_json_text(path: str | Path, error: type[EvgpError] = DatasetError) -> str:
    """Read the text of a JSON file; refuse it if its values would not fit in memory."""
    return _decoded(read_json_bytes(path, error), path, error)


def read_json_bytes(path: str | Path, error: type[EvgpError] = DatasetError) -> bytes:
    """Read the bytes of a JSON file; refuse it if its values would not fit in memory."""
    data = read_bytes(path, error)
    check_json(data, path, error)
    return data


def check_json(data: bytes, source: str | Path, error: type[EvgpError] = DatasetError) -> None:
    """Refuse JSON whose values would not fit in memory."""
    marks = sum(data.count(mark) for mark in (b",", b"[", b"{"))
    text = len(data) * (_JSON_ASCII if data.isascii() else _JSON_OTHER)
    _fits(text + _JSON_VALUE * marks, source, error)


def _decoded(data: bytes, path: str | Path, error: type[EvgpError]) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as cause:
        raise WrongFormat.of(error)(str(path), "text in UTF-8", "other bytes") from cause


def _fits(need: int, path: str | Path, error: type[EvgpError]) -> None:
    check_memory(need, str(path), error)


def _check_kind(path: str | Path, mode: int, error: type[EvgpError]) -> None:
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise WrongFormat.of(error)(str(path), "a file", "a directory", "name one file in it")
    kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "something else")
    advice = "save its content to a file first"
    raise WrongFormat.of(error)(str(path), "a plain file", kind, advice)


def _unreadable(path: str | Path, cause: OSError | ValueError, error: type[EvgpError]) -> EvgpError:
    if isinstance(cause, ValueError):  # the path contains a null byte
        why = "no file can have this name"
        return UnreadableFile.of(error)(repr(str(path)), why, "check the path")
    if isinstance(cause, FileNotFoundError | NotADirectoryError):
        return MissingFile.of(error)(str(path))
    if isinstance(cause, PermissionError):
        return _forbidden(path, error)
    reason = os.strerror(cause.errno).lower() if cause.errno else str(cause)
    return UnreadableFile.of(error)(str(path), f"cannot be read: {reason}")


def _forbidden(path: str | Path, error: type[EvgpError]) -> EvgpError:
    why = "this file may not be read"
    return UnreadableFile.of(error)(str(path), why, "change its permissions")
