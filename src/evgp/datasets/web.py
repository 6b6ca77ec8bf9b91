"""A file on a web server, read part by part: never more than was asked for, and never for ever."""

import re
from io import RawIOBase
from queue import Empty, SimpleQueue
from threading import Thread
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from evgp._errors import DatasetError

# Seconds until a part must be there, and bytes a second that a large one may count on besides.
WAIT, PACE = 60.0, 100_000


class WebFile(RawIOBase):
    """The bytes at an http address. One request a read, so wrap it in a `BufferedReader`."""

    def __init__(self, where: str) -> None:
        self._where, self._at = where, 0
        _, self._size = _part(where, 0, 0)

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Where the next read begins."""
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move to a place, counted from the start, from here or from the end."""
        self._at = max(0, offset + (0, self._at, self._size)[whence])
        return self._at

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fill as much of a buffer as there is."""
        count = max(0, min(len(buffer), self._size - self._at))
        if count:
            content, size = _part(self._where, self._at, self._at + count - 1)
            if size != self._size:
                raise DatasetError(f"{self._where}: the file on the server changed; run again")
            buffer[:count] = content
            self._at += count
        return count


def _part(where: str, first: int, last: int) -> tuple[bytes, int]:
    """Bytes from first to last, and how many the file has.

    The request runs in a thread of its own, which is left alone when it takes too long: a server
    that sends a byte now and then would be waited for without end by time-outs of the socket.
    """
    answers: SimpleQueue[tuple[bytes, int] | Exception] = SimpleQueue()

    def ask() -> None:
        try:
            answers.put(_asked(where, first, last))
        except Exception as error:
            answers.put(error)

    Thread(target=ask, daemon=True).start()
    try:
        answer = answers.get(timeout=WAIT + (last - first) / PACE)
    except Empty:
        raise _silent(where) from None
    if isinstance(answer, TimeoutError) or isinstance(
        getattr(answer, "reason", None), TimeoutError
    ):
        raise _silent(where) from answer  # type: ignore[misc]
    if isinstance(answer, DatasetError):
        raise answer
    if isinstance(answer, HTTPError):
        what = "no such file" if answer.code == 404 else f"the server says {answer.code}"
        raise DatasetError(f"{where}: {what} ({answer.reason}); check the address") from answer
    if isinstance(answer, Exception):
        said = " ".join(str(answer).split())[:300] or type(answer).__name__
        raise DatasetError(f"{where}: this address cannot be opened: {said}") from answer
    return answer


def _asked(where: str, first: int, last: int) -> tuple[bytes, int]:
    headers = {"Range": f"bytes={first}-{last}", "Accept-Encoding": "identity"}
    with urlopen(Request(where, headers=headers), timeout=WAIT) as answer:
        size = re.fullmatch(
            rf"bytes {first}-{last}/(\d{{1,18}})", answer.headers.get("Content-Range") or ""
        )
        if answer.status != 206 or size is None:
            raise DatasetError(
                f"{where}: expected a web server that sends parts of a file, got one that does "
                "not; download the file first"
            )
        content, wanted = answer.read(last - first + 1), last - first + 1
    if len(content) != wanted:
        raise DatasetError(
            f"{where}: the server sent {len(content)} of {wanted} bytes; try again later"
        )
    return content, int(size[1])


def _silent(where: str) -> DatasetError:
    return DatasetError(f"{where}: the server does not answer; try again later")
