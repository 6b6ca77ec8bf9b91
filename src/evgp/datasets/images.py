"""Folders and arrays of images, with a word on every file that was left out.

A file is read without trust: plain files and known formats only, and never a bomb. Pillow decodes
at most `MOST_PIXELS`, counted in the header before anything is unpacked. Its own settings and its
warnings are left to whoever calls.
"""

import logging
import os
import stat
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import Any, BinaryIO

import numpy as np
from jaxtyping import Shaped, UInt8
from PIL import Image, UnidentifiedImageError

from evgp._errors import DatasetError
from evgp._executor import Progress, silent
from evgp._reading import check_memory

FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF")
MOST_PIXELS = 100_000_000
_LARGE_PIXELS = 16_000_000
_STRIP_PIXELS = 1_000_000
_GAP = 3.0  # how much larger than asked for an image still is when the fine filter takes over
_SUFFIXES = {".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".bmp", ".gif", ".webp", ".tif", ".tiff"}

NO_IMAGE = "not images"
MISNAMED = "named like images, but damaged or something else"
DAMAGED = "damaged or cut short"
TOO_LARGE = f"of more than {MOST_PIXELS // 1_000_000} megapixels"
UNREADABLE = "not readable"
NOT_PLAIN = "not plain files"
DEEP = "of 32-bit greys, whose white is unknown"

_ORIENTATION = 0x0112
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
# Several photographs at once are quick; several of the largest at once would fill the memory. Of
# those there is one at a time, and one copy of it: four bytes a pixel, at most 0.4 GB.
_one_large = Lock()
Size = tuple[int, int]


class Unusable(Exception):
    """Why a file is left out, in words that follow a list of names."""


@dataclass(frozen=True)
class ImageHeader:
    """What an image file says of itself: its size once upright, and whether it is grey."""

    width: int
    height: int
    grey: bool


def read_header(path: Path) -> ImageHeader:
    """Size and kind of an image, without decoding it."""
    with _opened(path) as image:
        (width, height), lies = image.size, _orientation(image) >= 5
        # A TIFF of Pillow is upright by itself.
        if lies and image.format != "TIFF":
            width, height = height, width
        return ImageHeader(width, height, image.mode in ("1", "L", "LA", "La") or _is_deep(image))


def read_pixels(path: Path, width: int, height: int, *, grey: bool) -> UInt8[np.ndarray, "c h w"]:
    """The upright image on white, in one channel or three, brought to this size.

    A JPEG is decoded at an eighth, a quarter or a half where that is still twice as large as
    asked for; what remains is averaged down with Lanczos' window.
    """
    with _opened(path) as image:
        image.draft(None, (2 * width, 2 * height))
        upright = _upright(image, lambda size: (width, height), grey=grey)
    pixels = np.asarray(upright)
    return pixels[None] if grey else np.ascontiguousarray(pixels.transpose(2, 0, 1))


def read_thumbnail(path: Path, side: int) -> Image.Image:
    """The upright image on white within a square of that side, in its proportions, never larger."""
    with _opened(path) as image:
        image.draft(None, (2 * side, 2 * side))
        return _upright(image, lambda size: within(size, side), grey=False)


def within(size: Size, side: int) -> Size:
    """A size in the same proportions within a square of that side, never larger.

    >>> within((640, 480), 64), within((40, 30), 64), within((9000, 1), 64)
    ((64, 48), (40, 30), (64, 1))
    """
    scale = min(1.0, side / max(size))
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


@contextmanager
def _opened(path: Path) -> Iterator[Image.Image]:
    try:
        with _plain_file(path) as stream, Image.open(stream, formats=FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                raise Unusable(TOO_LARGE)
            yield image
    except (Unusable, MemoryError):
        raise
    except Image.DecompressionBombError as error:
        raise Unusable(TOO_LARGE) from error
    except UnidentifiedImageError as error:
        raise Unusable(MISNAMED if path.suffix.lower() in _SUFFIXES else NO_IMAGE) from error
    except Exception as error:  # a broken file makes a decoder raise anything
        given = isinstance(error, OSError) and error.errno is not None
        raise Unusable(UNREADABLE if given else DAMAGED) from error


@contextmanager
def _plain_file(path: Path) -> Iterator[BinaryIO]:
    """The file open to read; a pipe that took its name since is neither waited for nor read."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise Unusable(NOT_PLAIN)
        yield stream


def _upright(image: Image.Image, fit: Callable[[Size], Size], *, grey: bool) -> Image.Image:
    """The image upright and on white, in the size that `fit` makes of its own."""
    if image.width * image.height > _LARGE_PIXELS:
        with _one_large:
            made = _large(image, fit, grey=grey)
            image.close()  # before the next one is read
            return made
    image.load()
    turn = _TURNS.get(_orientation(image))
    made = _flat(image if turn is None else image.transpose(turn), grey=grey)
    size = fit(made.size)
    if made.size == size:
        return made
    return made.resize(size, Image.Resampling.LANCZOS, reducing_gap=_GAP)


def _large(image: Image.Image, fit: Callable[[Size], Size], *, grey: bool) -> Image.Image:
    """The same, flattened and averaged down strip by strip: the image is in memory once."""
    image.load()
    orientation = _orientation(image)
    lies = orientation >= 5
    size = fit(image.size[::-1] if lies else image.size)
    size = size[::-1] if lies else size
    across, down = (
        max(1, int(own / wanted / _GAP)) for own, wanted in zip(image.size, size, strict=True)
    )
    reduced = Image.new(
        "L" if grey else "RGB", (ceil(image.width / across), ceil(image.height / down))
    )
    rows = down * max(1, _STRIP_PIXELS // (down * image.width))
    for top in range(0, image.height, rows):
        strip = image.crop((0, top, image.width, min(top + rows, image.height)))
        reduced.paste(_flat(strip, grey=grey).reduce((across, down)), (0, top // down))
    box = (0, 0, image.width / across, image.height / down)
    made = reduced.resize(size, Image.Resampling.LANCZOS, box=box)
    turn = _TURNS.get(orientation)
    return made if turn is None else made.transpose(turn)


def _flat(image: Image.Image, *, grey: bool) -> Image.Image:
    """The image in 8 bits without transparency: what shines through is white."""
    if _is_deep(image):
        image = _eight_bits(image)
    if image.mode in ("LA", "La", "PA", "RGBA", "RGBa") or "transparency" in image.info:
        above = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", above.size, "white"), above)
    return image.convert("L" if grey else "RGB")


def _is_deep(image: Image.Image) -> bool:
    return image.mode in ("I", "F") or image.mode.startswith("I;16")


def _eight_bits(image: Image.Image) -> Image.Image:
    values = np.asarray(image)
    if image.mode == "F" or values.min() < 0 or values.max() > 65_535:
        raise Unusable(DEEP)
    # 65,535 is 257 times 255: white stays white, and each grey goes to the nearest.
    return Image.fromarray(((values.astype(np.uint32) + 128) // 257).astype(np.uint8))


def _orientation(image: Image.Image) -> int:
    try:
        # PNG's own `getexif` decodes the whole image to look behind it.
        found = Image.Image.getexif(image).get(_ORIENTATION, 1)
        return int(found)
    except Exception:  # an image whose notes are broken is shown as it lies
        return 1


LINKED = "linked folders are not followed"
_NAMED = 5


@dataclass(frozen=True)
class LeftOut:
    """Names by the reason why they cannot be used.

    >>> left_out = LeftOut()
    >>> left_out.add("not images", "b.csv")
    >>> left_out.add("not images", "a.txt")
    >>> left_out.lines()
    ['2 files left out, not images: a.txt, b.csv']
    """

    names: dict[str, list[str]] = field(default_factory=dict)

    def add(self, reason: str, name: str) -> None:
        """Note one more."""
        self.names.setdefault(reason, []).append(name)

    def lines(self) -> list[str]:
        """A line for each reason, with the first few names."""
        return [_line(reason, sorted(names)) for reason, names in sorted(self.names.items())]


def _line(reason: str, names: list[str]) -> str:
    count = "1 file" if len(names) == 1 else f"{len(names):,} files"
    shown = ", ".join(map(readable, names[:_NAMED]))
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"{count} left out, {reason}: {shown}{more}"


def readable(name: str) -> str:
    """A name as UTF-8 can hold it."""
    return name.encode("utf-8", "replace").decode()


def walk(folder: Path) -> tuple[list[str], LeftOut]:
    """Names of the plain files below a folder, sorted, and an account of all else not hidden."""
    names: list[str] = []
    left_out = LeftOut()
    ahead = [PurePosixPath()]
    while ahead:
        here = ahead.pop()
        try:
            with os.scandir(folder / here) as entries:
                visible = [entry for entry in entries if not entry.name.startswith(".")]
        except OSError:
            left_out.add(UNREADABLE, f"{here}/")
            continue
        for entry in visible:
            name = here / entry.name
            try:
                if entry.is_dir(follow_symlinks=False):
                    ahead.append(name)
                elif entry.is_symlink() and entry.is_dir():
                    left_out.add(LINKED, str(name))
                elif entry.is_file() or entry.is_symlink():  # a broken link fails when it is read
                    names.append(str(name))
                else:
                    left_out.add(NOT_PLAIN, str(name))
            except OSError:  # a link to itself
                left_out.add(UNREADABLE, str(name))
    return sorted(names), left_out


_LOOKED_AT = 4_000_000


@dataclass(frozen=True, eq=False)
class ArrayPictures:
    """Thumbnails of an array of images, whose numbers are black at `low` and white at `high`."""

    x: Shaped[np.ndarray, "n c h w"]
    low: float
    high: float

    def __len__(self) -> int:
        return len(self.x)

    def thumbnail(self, row: int, side: int) -> Image.Image:
        """One image within a square of that side, never larger than it is."""
        _, height, width = self.x.shape[1:]
        return shrunk(self._pixels(row), width, height, side)

    def _pixels(self, row: int) -> UInt8[np.ndarray, "c h w"]:
        values = np.nan_to_num(
            self.x[row].astype(np.float64), nan=self.low, posinf=self.high, neginf=self.low
        )
        scaled = 255 * (values - self.low) / (self.high - self.low)
        return np.rint(scaled.clip(0, 255)).astype(np.uint8)


def pictures_of(x: Shaped[np.ndarray, "n c h w"]) -> ArrayPictures:
    """Pictures of a pool of images in one channel or three, whatever numbers they are made of.

    Bytes that reach beyond half of their range are shown as they are. Others are stretched over
    the pool: from black at their 0.1 % quantile to white at their 99.9 %, so that one odd pixel
    does not darken all; the quantiles are of at most four million values.

    >>> pictures = pictures_of(np.linspace(-1, 1, 32).reshape(2, 1, 4, 4))
    >>> [pictures.thumbnail(1, 64).getpixel(at) for at in [(0, 0), (3, 3)]]
    [132, 255]
    """
    n, channels, height, width = x.shape
    if channels not in (1, 3) or x.dtype.kind not in "fiub" or 0 in x.shape:
        shape = " x ".join(map(str, x.shape))
        raise DatasetError(
            f"expected images as n x channels x height x width real numbers with 1 or 3 channels, "
            f"got {shape} of {x.dtype}; move the axis of channels to second place"
        )
    rows = max(1, min(n, _LOOKED_AT // (channels * height * width)))
    low, high = _range(x[np.linspace(0, n - 1, rows).astype(int)])
    return ArrayPictures(x, low, high)


def _range(seen: Shaped[np.ndarray, "n c h w"]) -> tuple[float, float]:
    if seen.dtype == np.uint8 and seen.max() > 127:
        return 0.0, 255.0
    values = seen.astype(np.float64).ravel()
    values = values[np.isfinite(values)]
    if not len(values):
        return 0.0, 1.0
    low, high = np.quantile(values, [0.001, 0.999]).tolist()
    if low == high:  # a few bright pixels on black, say
        low, high = float(values.min()), float(values.max())
    return (low, high) if low < high else (low, low + 1.0)


def shrunk(pixels: UInt8[np.ndarray, "c h w"], width: int, height: int, side: int) -> Image.Image:
    """Pixels as a picture in the proportions width : height, no larger than they are or `side`.

    >>> shrunk(np.zeros((3, 32, 32), np.uint8), 640, 480, 64).size
    (32, 24)
    """
    flat = pixels[0] if len(pixels) == 1 else np.ascontiguousarray(pixels.transpose(1, 2, 0))
    picture = Image.fromarray(flat)
    longest = min(side, max(pixels.shape[1:])) / max(width, height)
    size = (max(1, round(width * longest)), max(1, round(height * longest)))
    return picture if picture.size == size else picture.resize(size, Image.Resampling.LANCZOS)


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

    def headers(self, names: Sequence[str]) -> dict[str, ImageHeader]:
        """What the usable files say of themselves, by name."""
        return dict(self._each("looking", names, lambda row, name: read_header(self.folder / name)))

    def decode(
        self, found: dict[str, ImageHeader], shape: Shape
    ) -> tuple[UInt8[np.ndarray, "n c h w"], dict[str, ImageHeader]]:
        """The images that can be decoded, in this shape, and their headers."""
        channels, height, width = shape
        check_memory(len(found) * channels * height * width, str(self.folder))
        x = np.empty((len(found), *shape), dtype=np.uint8)

        def fill(row: int, name: str) -> int:
            x[row] = read_pixels(self.folder / name, width, height, grey=channels == 1)
            return row

        kept: dict[str, ImageHeader] = {}
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

    def check_enough(self, found: dict[str, ImageHeader], least: int) -> None:
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


def _shape(headers: Collection[ImageHeader], size: int | None) -> Shape:
    """Channels, height and width that all will have."""
    channels = 1 if all(header.grey for header in headers) else 3
    sizes = {(header.height, header.width) for header in headers}
    height, width = next(iter(sizes))
    if size is None and len(sizes) == 1 and max(height, width) <= KEPT:
        return channels, height, width
    return channels, size or RESIZED, size or RESIZED


def _resized(headers: Collection[ImageHeader], shape: Shape, size: int | None) -> Iterator[str]:
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
