"""Read a file on a web server in parts, with limits on size and time."""

import re
from io import RawIOBase
from queue import Empty, SimpleQueue
from threading import Thread
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from evgp.errors import DatasetError, WrongFormat

# Seconds to wait for a part, plus one second for each `PACE` bytes of it.
WAIT, PACE = 60.0, 100_000


class WebFile(RawIOBase):
    """The bytes at a URL. Each read is a request, so wrap it in a `BufferedReader`."""

    def __init__(self, where: str) -> None:
        self._where, self._at = where, 0
        _, self._size = _part(where, 0, 0)

    def readable(self) -> bool:
        """Return True: the file can be read."""
        return True

    def seekable(self) -> bool:
        """Return True: reading can start anywhere."""
        return True

    def tell(self) -> int:
        """Return the position of the next read."""
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move to a position relative to the start, the current position or the end."""
        self._at = max(0, offset + (0, self._at, self._size)[whence])
        return self._at

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fill a buffer, or as much of it as the rest of the file allows."""
        count = max(0, min(len(buffer), self._size - self._at))
        if count:
            content, size = _part(self._where, self._at, self._at + count - 1)
            if size != self._size:
                raise DatasetError(f"{self._where}: the file on the server changed; run again")
            buffer[:count] = content
            self._at += count
        return count


def _part(where: str, first: int, last: int) -> tuple[bytes, int]:
    """Return the bytes from first to last, and the size of the file.

    The request runs in its own thread, which is abandoned if it takes too long: with only a socket
    time-out, a server that sends a byte now and then could keep us waiting forever.
    """
    answers: SimpleQueue[tuple[bytes, int] | Exception] = SimpleQueue()

    def fetch() -> None:
        try:
            answers.put(_fetched(where, first, last))
        except Exception as error:
            answers.put(error)

    Thread(target=fetch, daemon=True).start()
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
        answer.close()
        problem = (
            "no such file" if answer.code == 404 else f"the server returned status {answer.code}"
        )
        reason = " ".join(answer.reason.split())[:300]
        raise DatasetError(f"{where}: {problem} ({reason}); check the address") from answer
    if isinstance(answer, Exception):
        reason = " ".join(str(answer).split())[:300] or type(answer).__name__
        raise DatasetError(f"{where}: this address cannot be opened: {reason}") from answer
    return answer


def _fetched(where: str, first: int, last: int) -> tuple[bytes, int]:
    headers = {"Range": f"bytes={first}-{last}", "Accept-Encoding": "identity"}
    with urlopen(Request(where, headers=headers), timeout=WAIT) as answer:
        size = re.fullmatch(
            rf"bytes {first}-{last}/(\d{{1,18}})", answer.headers.get("Content-Range") or ""
        )
        if answer.status != 206 or size is None:
            raise WrongFormat.of(DatasetError)(
                str(where),
                "a web server that sends parts of a file",
                "one that does not",
                "download the file first",
            )
        content, length = answer.read(last - first + 1), last - first + 1
    if len(content) != length:
        raise DatasetError(
            f"{where}: the download stopped after {len(content)} of {length} bytes; try again later"
        )
    return content, int(size[1])


def _silent(where: str) -> DatasetError:
    return DatasetError(f"{where}: the server does not answer; try again later")
