"""Pictures of rows, as the page shows them: made one at a time, once, and kept for a while."""

import threading
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from io import BytesIO
from typing import TypeAlias

from evgp.datasets import Images
from evgp.report.pictures import bare

SIDE = 1_600  # pixels of a picture's longest side
MOST_BYTES = 2**26  # of all that are kept
_LOSSLESS = 256
Key: TypeAlias = tuple[object, ...]


@dataclass(frozen=True)
class Thumbnail:
    """A picture that was decoded and encoded again."""

    data: bytes
    kind: str


class Thumbnails:
    """Pictures by row, each made again only when its file has changed.

    Whoever asks for one that is being made gets that one. A thread of their own makes them, so that
    neither time nor memory of other requests depends on how large the files are.
    """

    def __init__(self, images: Images, most: int = MOST_BYTES) -> None:
        self._images = images
        self._most = most
        self._maker = ThreadPoolExecutor(1, thread_name_prefix="evgp-pictures")
        self._lock = threading.Lock()
        self._making: dict[Key, Future[Thumbnail]] = {}
        self._kept: OrderedDict[Key, Thumbnail] = OrderedDict()
        self._bytes = 0

    def of(self, row: int) -> "Future[Thumbnail]":
        """The picture of a row, when it is made."""
        key = row, *self._images.identity(row)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                found: Future[Thumbnail] = Future()
                found.set_result(self._kept[key])
                return found
            if key not in self._making:
                self._making[key] = self._maker.submit(self._make, key, row)
            return self._making[key]

    def stop(self) -> None:
        """Make no more."""
        self._maker.shutdown(wait=False, cancel_futures=True)

    def _make(self, key: Key, row: int) -> Thumbnail:
        try:
            made = encoded(self._images, row)
        except BaseException:
            with self._lock:
                del self._making[key]
            raise
        with self._lock:
            del self._making[key]
            self._kept[key] = made
            self._bytes += len(made.data)
            while self._bytes > self._most:
                _, old = self._kept.popitem(last=False)
                self._bytes -= len(old.data)
        return made


def encoded(images: Images, row: int) -> Thumbnail:
    """A picture within 1,600 pixels, without what a camera noted: a PNG if small, else a JPEG."""
    made = bare(images.thumbnail(row, SIDE))
    stream = BytesIO()
    kind = "PNG" if max(made.size) <= _LOSSLESS else "JPEG"
    made.save(stream, kind, **({} if kind == "PNG" else {"quality": 90}))
    return Thumbnail(stream.getvalue(), kind.lower())
