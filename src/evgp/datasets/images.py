"""A folder of images as one array, with a word on every file that was left out."""

import logging
import os
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from evgp._errors import DatasetError
from evgp._executor import Progress, silent
from evgp.datasets._folder import LeftOut, readable, walk
from evgp.datasets._photos import Header, Unusable, read_header, read_pixels, read_thumbnail
from evgp.datasets.arrays import check_memory
from evgp.datasets.pictures import shrunk

Shape = tuple[int, int, int]

KEPT = 64
RESIZED = 32
_BATCH = 128
_WORKERS = min(4, os.cpu_count() or 1)


@dataclass(frozen=True, eq=False)
class Images:
    """Images of one size, their names below the folder, and what there is to know about them.

    `sizes` are the width and height that each has in its file.
    """

    x: UInt8[np.ndarray, "n c h w"]
    names: tuple[str, ...]
    folder: Path
    notes: tuple[str, ...] = ()
    sizes: tuple[tuple[int, int], ...] = ()

    def __len__(self) -> int:
        return len(self.x)

    def thumbnail(self, row: int, side: int) -> Image.Image:
        """One image within a square of that side, in its own proportions, never enlarged.

        It is read from its file; or made from the array, at next to no cost, where that is large
        enough or the file is gone.
        """
        width, height = self._size(row)
        if min(side, max(width, height)) > max(self.x.shape[2:]):
            try:
                with _quiet:
                    return read_thumbnail(self.folder / self.names[row], side)
            except Unusable:
                pass  # moved or changed since: the array is still what was picked from
        return shrunk(self.x[row], width, height, side)

    def problem(self, row: int) -> str | None:
        """Why thumbnails of an image are smaller than asked for, judged by its file's header."""
        if max(self._size(row)) <= max(self.x.shape[2:]):
            return None
        try:
            with _quiet:
                read_header(self.folder / self.names[row])
        except Unusable as reason:
            return (
                f"The file can no longer be shown ({reason}); this is the small copy that picks "
                "are made from."
            )
        return None

    def identity(self, row: int) -> tuple[int, ...]:
        """What changes when the file of an image does; nothing where it is gone."""
        try:
            found = (self.folder / self.names[row]).stat()
        except (OSError, ValueError):
            return ()
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _size(self, row: int) -> tuple[int, int]:
        return self.sizes[row] if self.sizes else (self.x.shape[3], self.x.shape[2])


def read_images(
    folder: str | Path,
    *,
    size: int | None = None,
    like: Images | None = None,
    progress: Progress = silent,
) -> Images:
    """Every image in a folder and the folders in it, in the order of their names.

    PNG, JPEG, BMP, GIF (the first frame), WebP and TIFF are told by what they hold. They are
    turned upright, put on white where transparent, and have one channel if all are grey, else
    three. Images of one size up to 64 x 64 stay as they are; others become 32 x 32, or squares of
    `size`, stretched where they are not square. What cannot be used is left out and named in
    `notes`; hidden files and linked folders are left out too. With `like` they get the channels,
    height and width of those images, and one is enough.

    Costs two openings and one decoding of each file, on up to four threads: about 0.6 ms for a
    small one, 20 ms for a JPEG of 12 megapixels. Memory: the array, and one large image at a time.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for colour in ("red", "blue"):
    ...         Image.new("RGB", (8, 8), colour).save(Path(folder, f"{colour}.png"))
    ...     images = read_images(folder)
    >>> images.names, images.x.shape, images.x[1, :, 0, 0].tolist()
    (('blue.png', 'red.png'), (2, 3, 8, 8), [255, 0, 0])
    """
    folder = Path(folder)
    _check(folder, size)
    least = 2 if like is None else 1
    given = (0, 0, 0) if like is None else like.x.shape[1:]
    names, left_out = walk(folder)
    with _quiet, ThreadPoolExecutor(_WORKERS) as workers:
        Image.init()  # once, before threads could race to it
        reading = _Reading(folder, left_out, workers, progress)
        found = reading.headers(names)
        while True:
            reading.check_enough(found, least)
            shape = _shape(found.values(), size) if like is None else given
            x, kept = reading.decode(found, shape)
            # The one that set the size may turn out to be damaged.
            same = like is not None or (kept and _shape(kept.values(), size) == shape)
            if len(kept) == len(found) or same:
                break
            found = kept
        reading.check_enough(kept, least)
    return Images(
        x=x,
        names=tuple(map(readable, kept)),
        folder=folder,
        notes=(*_resized(kept.values(), shape, size), *left_out.lines()),
        sizes=tuple((header.width, header.height) for header in kept.values()),
    )


def image_files(folder: Path) -> list[str]:
    """Names of the files below a folder that begin as an image does, sorted.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("L", (8, 8)).save(Path(folder, "a.png"))
    ...     _ = Path(folder, "notes.txt").write_text("no image")
    ...     image_files(Path(folder))
    ['a.png']
    """
    names, left_out = walk(folder)
    with _quiet, ThreadPoolExecutor(_WORKERS) as workers:
        Image.init()
        reading = _Reading(folder, left_out, workers, silent)
        return sorted(reading.headers(names))


@dataclass(frozen=True)
class _Reading:
    """One run over a folder; what fails is written down in `left_out`."""

    folder: Path
    left_out: LeftOut
    workers: ThreadPoolExecutor
    progress: Progress

    def headers(self, names: Sequence[str]) -> dict[str, Header]:
        """What the usable files say of themselves, by name."""
        return dict(self._each("looking", names, lambda row, name: read_header(self.folder / name)))

    def decode(
        self, found: dict[str, Header], shape: Shape
    ) -> tuple[UInt8[np.ndarray, "n c h w"], dict[str, Header]]:
        """The images that can be decoded, in this shape, and their headers."""
        channels, height, width = shape
        check_memory(len(found) * channels * height * width, str(self.folder))
        x = np.empty((len(found), *shape), dtype=np.uint8)

        def fill(row: int, name: str) -> int:
            x[row] = read_pixels(self.folder / name, width, height, grey=channels == 1)
            return row

        kept: dict[str, Header] = {}
        for name, row in self._each("reading", list(found), fill):
            x[len(kept)] = x[row]  # rows close up in place, so that there is no second array
            kept[name] = found[name]
        return x[: len(kept)], kept

    def _each(
        self, stage: str, names: Sequence[str], read: Callable[[int, str], Any]
    ) -> list[tuple[str, Any]]:
        """What `read` makes of each, in order; in batches, so that a run can be stopped."""

        def attempt(row: int) -> Any:
            try:
                return read(row, names[row])
            except Unusable as reason:
                return reason

        made: list[tuple[str, Any]] = []
        for start in range(0, len(names), _BATCH):
            rows = range(start, min(start + _BATCH, len(names)))
            for row, result in zip(rows, self.workers.map(attempt, rows), strict=True):
                if isinstance(result, Unusable):
                    self.left_out.add(str(result), names[row])
                else:
                    made.append((names[row], result))
            self.progress(stage, rows.stop, len(names))
        return made

    def check_enough(self, found: dict[str, Header], least: int) -> None:
        """Refuse a folder in which there is nothing to choose."""
        if len(found) >= least:
            return
        got = f"only {readable(next(iter(found)))}" if found else "none"
        why = "; ".join(self.left_out.lines()) or "it holds nothing else"
        wanted = "an image" if least == 1 else f"at least {least} images to choose from"
        raise DatasetError(
            f"{self.folder}: expected {wanted}, got {got} ({why}); name a folder of PNG, JPEG, "
            "BMP, GIF, WebP or TIFF files, or one table"
        )


def _check(folder: Path, size: int | None) -> None:
    if size is not None and size < 1:
        raise DatasetError(f"expected images of at least 1 pixel, got size={size}; try size=32")
    if not folder.is_dir():
        got = "a file" if folder.exists() else "nothing of that name"
        raise DatasetError(f"{folder}: expected a folder of images, got {got}")


def _shape(headers: Collection[Header], size: int | None) -> Shape:
    """Channels, height and width that all will have."""
    channels = 1 if all(header.grey for header in headers) else 3
    sizes = {(header.height, header.width) for header in headers}
    height, width = next(iter(sizes))
    if size is None and len(sizes) == 1 and max(height, width) <= KEPT:
        return channels, height, width
    return channels, size or RESIZED, size or RESIZED


def _resized(headers: Collection[Header], shape: Shape, size: int | None) -> Iterator[str]:
    sizes = sorted((h.width * h.height, h.width, h.height) for h in headers)
    (_, *small), (_, *large) = sizes[0], sizes[-1]
    _, height, width = shape
    if small == large == [width, height]:
        return
    were = f"{small[0]} x {small[1]}"
    if small != large:
        were = f"{were} to {large[0]} x {large[1]}"
    odd = any(w != h for _, w, h in sizes)
    yield (
        f"{len(sizes):,} images of {were} pixels were resized to {width} x {height}"
        + (", stretched where they are not square" if odd else "")
        + ("" if size else "; another size may be asked for")
    )


class _Quiet:
    """Without Pillow's warnings and its words on stderr.

    Warnings belong to the whole process: of several threads the first one switches them off, and
    the last one puts them back as they were.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._after = ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                said, nowhere = logging.getLogger("PIL"), logging.NullHandler()
                said.addHandler(nowhere)
                self._after.callback(said.removeHandler, nowhere)
                self._after.enter_context(warnings.catch_warnings())
                warnings.simplefilter("ignore")

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._after.close()


_quiet = _Quiet()
