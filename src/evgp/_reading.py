"""The one place where files are opened to be read: plain files only, and no more than fits.

A pipe would be waited for, a device never ends, and a small file may stand for gigabytes. Every
command comes through here with every path, so that what one of them refuses, all of them refuse.
"""

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from io import BufferedReader
from pathlib import Path

from evgp._errors import DatasetError, EvgpError
from evgp._machine import available_memory

# Compressed data beyond both of these are a bomb: only a constant shrinks so far, and a pool of
# constants leaves nothing to choose. (Deflate packs at most 1032 to 1.)
_BOMB_RATIO = 900
_BOMB_BYTES = 32 * 2**20
# Bytes that Python takes for a value of JSON, and for each byte of its text.
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
    """Let what is read in this block take half of so many bytes at most; None allows what is free.

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
    """Bytes that something read may take: half of what is free, or of what was allowed.

    The other half is for what is made of it, such as the matrix of a table.
    """
    allowed = _allowed.get()
    free = available_memory()
    return (free if allowed is None else min(free, allowed)) // 2


def check_memory(need: int, source: str) -> None:
    """Refuse what would take more than `room()`."""
    if need <= room():
        return
    free, allowed = available_memory(), _allowed.get()
    if allowed is not None and allowed < free:
        raise DatasetError(
            f"{source}: reading it takes {_size(need)}, and half of the {_size(allowed)} that "
            "memory= allows is for that; allow more, or take fewer rows or columns"
        )
    raise DatasetError(
        f"{source}: it needs {_size(need)}, and {_size(free)} of memory are free; take fewer rows "
        "or columns"
    )


def check_bomb(need: int, held: int, source: str, most: int = _BOMB_BYTES) -> None:
    """Refuse `held` bytes that unpack to `need`, above `most`, where no real data shrink so far."""
    if need > most and need > _BOMB_RATIO * max(held, 1):
        raise DatasetError(
            f"{source}: {held:,} bytes would unpack to {need:,}, which no real data do; if they "
            "are real, save them uncompressed, as .npy or .arrow"
        )


def check_plain(path: str | Path, error: type[EvgpError] = DatasetError) -> int:
    """The size of a plain, readable file; anything else is refused without being opened."""
    try:
        found = os.stat(path)
    except (OSError, ValueError) as cause:
        raise _unreadable(path, cause, error) from cause
    _check_kind(path, found.st_mode, error)
    if not os.access(path, os.R_OK):
        raise error(f"{path}: this file may not be read; change its permissions")
    return found.st_size


@contextmanager
def opened(path: str | Path, error: type[EvgpError] = DatasetError) -> Iterator[BufferedReader]:
    """A plain file, open to be read; a pipe that takes its name meanwhile is not waited for.

    Errors while it is read are reported in one sentence, too.
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
    r"""Whether the name of a file is UTF-8; where it is not, Python has surrogates in it.

    >>> is_utf8("caf\u00e9.csv"), is_utf8("caf\udce9.csv")
    (True, False)
    """
    return not any("\ud800" <= sign <= "\udfff" for sign in str(path))


def unwaiting(path: str, flags: int) -> int:
    """An `opener` for `open`, where the file is one of ours: a pipe in its place fails to seek."""
    return os.open(path, flags | _NONBLOCKING)


def read_bytes(
    path: str | Path, error: type[EvgpError] = DatasetError, *, most: int | None = None
) -> bytes:
    """All of a small file: at most `most` bytes, and no more than fits in memory."""
    size = check_plain(path, error)
    if most is not None and size > most:
        raise error(f"{path}: expected at most {_size(most)}, got {_size(size)}; check the path")
    _fits(size, path, error)
    with opened(path, error) as stream:
        # One byte more than it had tells a file that grows from one that is whole.
        data = stream.read(size + 1)
    if len(data) > size:
        raise error(f"{path}: the file grew while it was read; try again")
    return data


def read_text(
    path: str | Path, error: type[EvgpError] = DatasetError, *, most: int | None = None
) -> str:
    """All of a small file of UTF-8 text, with or without a mark at its start."""
    data = read_bytes(path, error, most=most)
    _fits(len(data) * (2 if data.isascii() else 5), path, error)
    return _decoded(data, path, error)


def read_json(path: str | Path, expected: str, error: type[EvgpError] = DatasetError) -> object:
    """The value in a JSON file; `expected` says in errors what it should have been."""
    text = read_json_text(path, error)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as cause:
        raise error(f"{path}: expected {expected}, got no JSON; write it again") from cause


def read_json_text(path: str | Path, error: type[EvgpError] = DatasetError) -> str:
    """The text of a file with JSON in it, refused where its values would not fit in memory."""
    return _decoded(read_json_bytes(path, error), path, error)


def read_json_bytes(path: str | Path, error: type[EvgpError] = DatasetError) -> bytes:
    """The same, not yet decoded."""
    data = read_bytes(path, error)
    check_json(data, path, error)
    return data


def check_json(data: bytes, source: str | Path, error: type[EvgpError] = DatasetError) -> None:
    """Refuse JSON whose values would not fit in memory."""
    marks = sum(data.count(mark) for mark in (b",", b"[", b"{"))
    letters = len(data) * (_JSON_ASCII if data.isascii() else _JSON_OTHER)
    _fits(letters + _JSON_VALUE * marks, source, error)


def _decoded(data: bytes, path: str | Path, error: type[EvgpError]) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as cause:
        raise error(f"{path}: expected text in UTF-8, got other bytes") from cause


def _fits(need: int, path: str | Path, error: type[EvgpError]) -> None:
    try:
        check_memory(need, str(path))
    except DatasetError as cause:
        raise error(str(cause)) from cause


def _check_kind(path: str | Path, mode: int, error: type[EvgpError]) -> None:
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise error(f"{path}: expected a file, got a directory; name one file in it")
    kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "something else")
    raise error(f"{path}: expected a plain file, got {kind}; save its content to a file first")


def _unreadable(path: str | Path, cause: OSError | ValueError, error: type[EvgpError]) -> EvgpError:
    if isinstance(cause, ValueError):  # a null byte
        return error(f"{str(path)!r}: no file can have this name; check the path")
    if isinstance(cause, FileNotFoundError | NotADirectoryError):
        return error(f"{path}: no such file; check the path")
    if isinstance(cause, PermissionError):
        return error(f"{path}: this file may not be read; change its permissions")
    said = os.strerror(cause.errno).lower() if cause.errno else str(cause)
    return error(f"{path}: cannot be read: {said}")


def _size(count: int) -> str:
    """Bytes for a person.

    >>> _size(1_500_000_000), _size(2_000_000)
    ('1.5 GB', '2.0 MB')
    """
    return f"{count / 1e9:,.1f} GB" if count >= 1e8 else f"{count / 1e6:,.1f} MB"
