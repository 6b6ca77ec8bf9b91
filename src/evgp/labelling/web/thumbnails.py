"""Images of rows as the page shows them: made one at a time, and cached."""

import threading
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from io import BytesIO
from typing import TypeAlias

from evgp.datasets import Images
from evgp.report.pictures import without_metadata

MAX_SIDE = 1_600  # pixels of the longest side
MAX_BYTES = 2**26  # of the whole cache
_LOSSLESS_SIDE = 256  # pixels
Key: TypeAlias = tuple[object, ...]


@dataclass(frozen=True)
class Thumbnail:
    """An image that was decoded and encoded again."""

    data: bytes
    kind: str


class Thumbnails:
    """Thumbnails by row, made again only when the file has changed.

    Requests for a thumbnail that is being made share it. A single thread makes them, so that the
    time and memory of other requests do not depend on the size of the files.
    """

    def __init__(self, images: Images, max_bytes: int = MAX_BYTES) -> None:
        self._images = images
        self._max_bytes = max_bytes
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="evgp-pictures")
        self._lock = threading.Lock()
        self._making: dict[Key, Future[Thumbnail]] = {}
        self._cache: OrderedDict[Key, Thumbnail] = OrderedDict()
        self._bytes = 0

    def of(self, row: int) -> "Future[Thumbnail]":
        """A future for the thumbnail of a row."""
        key = row, *self._images.identity(row)
        with self._lock:
            if key in self._cache:
                self._cache.move_to_end(key)
                done: Future[Thumbnail] = Future()
                done.set_result(self._cache[key])
                return done
            if key not in self._making:
                self._making[key] = self._worker.submit(self._make, key, row)
            return self._making[key]

    def stop(self) -> None:
        """Stop making thumbnails."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _make(self, key: Key, row: int) -> Thumbnail:
        try:
            thumbnail = encoded(self._images, row)
        except BaseException:
            with self._lock:
                del self._making[key]
            raise
        with self._lock:
            del self._making[key]
            self._cache[key] = thumbnail
            self._bytes += len(thumbnail.data)
            while self._bytes > self._max_bytes:
                _, old = self._cache.popitem(last=False)
                self._bytes -= len(old.data)
        return thumbnail


def encoded(images: Images, row: int) -> Thumbnail:
    """An image within 1,600 pixels, without metadata: a PNG if it is small, else a JPEG."""
    image = without_metadata(images.thumbnail(row, MAX_SIDE))
    stream = BytesIO()
    kind = "PNG" if max(image.size) <= _LOSSLESS_SIDE else "JPEG"
    image.save(stream, kind, **({} if kind == "PNG" else {"quality": 90}))
    return Thumbnail(stream.getvalue(), kind.lower())
