"""Read folders and arrays of images, with a note on every file that is left out.

Files are not trusted: only regular files in known formats are read, and no decompression bombs.
Images of more than `MOST_PIXELS`, according to their headers, are refused before anything is
decoded. Pillow's global settings are not changed.
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

from evgp._executor import Progress, silent
from evgp._reading import check_memory
from evgp.errors import DatasetError, WrongFormat

FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF")
MOST_PIXELS = 100_000_000
_LARGE_PIXELS = 16_000_000
_STRIP_PIXELS = 1_000_000
_GAP = 3.0  # a coarse filter shrinks an image to this many times its final size, then a fine one
SUFFIXES = {".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".bmp", ".gif", ".webp", ".tif", ".tiff"}

NO_IMAGE = "not images"
FOREIGN = "of a format that is not read; save as JPEG or PNG"
_FOREIGN = (".heic", ".heif", ".jxl", ".svg", ".cr2", ".nef", ".arw", ".dng")
MISNAMED = "named like images, but damaged or something else"
DAMAGED = "damaged or cut short"
TOO_LARGE = f"of more than {MOST_PIXELS // 1_000_000} megapixels"
UNREADABLE = "not readable"
NOT_PLAIN = "not plain files"
DEEP = "of 32-bit greys, where the value of white is unknown"

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
# Several photographs are decoded in parallel, but several of the largest would fill the memory. So
# those are decoded one at a time, in a single copy: four bytes per pixel, at most 0.4 GB.
_one_large = Lock()
Size = tuple[int, int]


class Unusable(Exception):
    """A file must be left out; the text of the error is the reason, as used in notes."""


@dataclass(frozen=True)
class ImageHeader:
    """The header of an image file: its size when upright, and whether it is grey."""

    width: int
    height: int
    grey: bool


def read_header(path: Path) -> ImageHeader:
    """Read the size and mode of an image without decoding it."""
    with _opened(path) as image:
        (width, height), sideways = image.size, _orientation(image) >= 5
        # Pillow turns TIFF images upright itself.
        if sideways and image.format != "TIFF":
            width, height = height, width
        return ImageHeader(width, height, image.mode in ("1", "L", "LA", "La") or _is_deep(image))


def read_pixels(path: Path, width: int, height: int, *, grey: bool) -> UInt8[np.ndarray, "c h w"]:
    """Read an image upright, on white, in one or three channels, resized to this size.

    A JPEG is decoded at an eighth, a quarter or half of its size if that is still at least twice
    the requested size; then it is resized with a Lanczos filter.
    """
    with _opened(path) as image:
        image.draft(None, (2 * width, 2 * height))
        upright = _upright(image, lambda size: (width, height), grey=grey)
    pixels = np.asarray(upright)
    return pixels[None] if grey else np.ascontiguousarray(pixels.transpose(2, 0, 1))


def read_thumbnail(path: Path, side: int) -> Image.Image:
    """Read an image upright, on white, shrunk to fit a square of this side, never enlarged."""
    with _opened(path) as image:
        image.draft(None, (2 * side, 2 * side))
        return _upright(image, lambda size: within(size, side), grey=False)


def within(size: Size, side: int) -> Size:
    """Return a size of the same proportions that fits a square of this side, never enlarged.

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
        suffix = path.suffix.lower()
        reason = FOREIGN if suffix in _FOREIGN else NO_IMAGE
        raise Unusable(MISNAMED if suffix in SUFFIXES else reason) from error
    except Exception as error:  # a broken file makes a decoder raise anything
        has_errno = isinstance(error, OSError) and error.errno is not None
        raise Unusable(UNREADABLE if has_errno else DAMAGED) from error


@contextmanager
def _plain_file(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file for reading, without blocking if a pipe has replaced it meanwhile."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise Unusable(NOT_PLAIN)
        yield stream


def _upright(image: Image.Image, fit: Callable[[Size], Size], *, grey: bool) -> Image.Image:
    """Return the image upright and on white, resized to what `fit` returns for its size."""
    if image.width * image.height > _LARGE_PIXELS:
        with _one_large:
            small = _large(image, fit, grey=grey)
            image.close()  # before the next one is read
            return small
    image.load()
    turn = _TURNS.get(_orientation(image))
    flat = _flat(image if turn is None else image.transpose(turn), grey=grey)
    size = fit(flat.size)
    if flat.size == size:
        return flat
    return flat.resize(size, Image.Resampling.LANCZOS, reducing_gap=_GAP)


def _large(image: Image.Image, fit: Callable[[Size], Size], *, grey: bool) -> Image.Image:
    """Do the same as `_upright` strip by strip, so that the image is in memory only once."""
    image.load()
    orientation = _orientation(image)
    sideways = orientation >= 5
    size = fit(image.size[::-1] if sideways else image.size)
    size = size[::-1] if sideways else size
    across, down = (
        max(1, int(old / new / _GAP)) for old, new in zip(image.size, size, strict=True)
    )
    reduced = Image.new(
        "L" if grey else "RGB", (ceil(image.width / across), ceil(image.height / down))
    )
    rows = down * max(1, _STRIP_PIXELS // (down * image.width))
    for top in range(0, image.height, rows):
        strip = image.crop((0, top, image.width, min(top + rows, image.height)))
        reduced.paste(_flat(strip, grey=grey).reduce((across, down)), (0, top // down))
    box = (0, 0, image.width / across, image.height / down)
    small = reduced.resize(size, Image.Resampling.LANCZOS, box=box)
    turn = _TURNS.get(orientation)
    return small if turn is None else small.transpose(turn)


def _flat(image: Image.Image, *, grey: bool) -> Image.Image:
    """Convert an image to 8 bits without transparency, on a white background."""
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
    # 65,535 is 257 times 255: white stays white, and each grey is rounded to the nearest.
    return Image.fromarray(((values.astype(np.uint32) + 128) // 257).astype(np.uint8))


def _orientation(image: Image.Image) -> int:
    try:
        # The `getexif` of PNG images would decode the whole image to find data at its end.
        return int(Image.Image.getexif(image).get(_ORIENTATION, 1))
    except Exception:  # broken EXIF data are ignored
        return 1


LINKED = "linked folders are not followed"
_NAMED = 5


@dataclass(frozen=True)
class LeftOut:
    """Names of the files that are left out, by reason.

    >>> left_out = LeftOut()
    >>> left_out.add("not images", "b.csv")
    >>> left_out.add("not images", "a.txt")
    >>> left_out.lines()
    ['2 files left out, not images: a.txt, b.csv']
    """

    names: dict[str, list[str]] = field(default_factory=dict)

    def add(self, reason: str, name: str) -> None:
        """Add a file."""
        self.names.setdefault(reason, []).append(name)

    def lines(self) -> list[str]:
        """Return a line for each reason, with the first few names."""
        return [_line(reason, sorted(names)) for reason, names in sorted(self.names.items())]


def _line(reason: str, names: list[str]) -> str:
    count = "1 file" if len(names) == 1 else f"{len(names):,} files"
    shown = ", ".join(map(readable, names[:_NAMED]))
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"{count} left out, {reason}: {shown}{more}"


def readable(name: str) -> str:
    """Return a file name as valid UTF-8."""
    return name.encode("utf-8", "replace").decode()


def walk(folder: Path) -> tuple[list[str], LeftOut]:
    """Return the sorted names of the regular files below a folder, and what is left out."""
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
    """Thumbnails of an array of images, with `low` shown as black and `high` as white."""

    x: Shaped[np.ndarray, "n c h w"]
    low: float
    high: float

    def __len__(self) -> int:
        return len(self.x)

    def thumbnail(self, row: int, side: int) -> Image.Image:
        """Return an image shrunk to fit a square of this side, never enlarged."""
        _, height, width = self.x.shape[1:]
        return shrunk(self._pixels(row), width, height, side)

    def _pixels(self, row: int) -> UInt8[np.ndarray, "c h w"]:
        values = np.nan_to_num(
            self.x[row].astype(np.float64), nan=self.low, posinf=self.high, neginf=self.low
        )
        scaled = 255 * (values - self.low) / (self.high - self.low)
        return np.rint(scaled.clip(0, 255)).astype(np.uint8)


def pictures_of(x: Shaped[np.ndarray, "n c h w"]) -> ArrayPictures:
    """Return pictures of an array of images with one or three channels and any range of values.

    Bytes that use more than half of their range are shown unchanged. Other values are stretched
    from black at the pool's 0.1 % quantile to white at its 99.9 % quantile, so that an extreme
    pixel does not darken all images. The quantiles are those of at most four million values.

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
    if low == high:  # for example, a few bright pixels on black
        low, high = float(values.min()), float(values.max())
    return (low, high) if low < high else (low, low + 1.0)


def shrunk(pixels: UInt8[np.ndarray, "c h w"], width: int, height: int, side: int) -> Image.Image:
    """Return pixels as an image of proportions width : height, no larger than `side`.

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
    """Images of one size, their file names relative to the folder, and notes on the folder.

    `sizes` are the original width and height of each image.
    """

    x: UInt8[np.ndarray, "n c h w"]
    names: tuple[str, ...]
    folder: Path
    notes: tuple[str, ...] = ()
    sizes: tuple[tuple[int, int], ...] = ()

    def __len__(self) -> int:
        return len(self.x)

    def thumbnail(self, row: int, side: int) -> Image.Image:
        """Return an image shrunk to fit a square of this side, in its own proportions.

        It is made from the array, at almost no cost, if that is large enough or the file is gone;
        otherwise it is read from its file.
        """
        width, height = self._size(row)
        if min(side, max(width, height)) > max(self.x.shape[2:]):
            try:
                with quiet:
                    return read_thumbnail(self.folder / self.names[row], side)
            except Unusable:
                pass  # moved or changed since; the array still has the image
        return shrunk(self.x[row], width, height, side)

    def problem(self, row: int) -> str | None:
        """Return why thumbnails of an image are smaller than requested, judged by its header."""
        if max(self._size(row)) <= max(self.x.shape[2:]):
            return None
        try:
            with quiet:
                read_header(self.folder / self.names[row])
        except Unusable as reason:
            return (
                f"The file can no longer be shown ({reason}); this is the small copy that picks "
                "are made from."
            )
        return None

    def identity(self, row: int) -> tuple[int, ...]:
        """Return values that change when the image's file changes; empty if it is gone."""
        try:
            status = (self.folder / self.names[row]).stat()
        except (OSError, ValueError):
            return ()
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _size(self, row: int) -> tuple[int, int]:
        return self.sizes[row] if self.sizes else (self.x.shape[3], self.x.shape[2])


def read_images(
    folder: str | Path,
    *,
    size: int | None = None,
    like: Images | None = None,
    note_size: bool = True,
    progress: Progress = silent,
) -> Images:
    """Read all images in a folder and its subfolders, sorted by name.

    PNG, JPEG, BMP, GIF (the first frame), WebP and TIFF files are recognised by their content.
    Images are turned upright, put on white if transparent, and have one channel if all are grey,
    else three. Images of the same size up to 64 x 64 keep their size; others become 32 x 32, or
    squares of `size`, stretched if they are not square. Files that cannot be used are left out and
    named in `notes`, and so is a change of size with `note_size`; hidden files and linked folders
    are left out too. With `like`, images get the channels, height and width of those images, and a
    single image is enough.

    Each file is opened twice and decoded once, on up to four threads: about 0.6 ms for a small
    one, 20 ms for a JPEG of 12 megapixels. Memory: the array, and one large image at a time.

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
    like_shape = (0, 0, 0) if like is None else like.x.shape[1:]
    names, left_out = walk(folder)
    with quiet, ThreadPoolExecutor(_WORKERS) as workers:
        Image.init()  # once, before several threads do it at the same time
        reading = _Reading(folder, left_out, workers, progress)
        headers = reading.headers(names)
        while True:
            reading.check_enough(headers, least)
            shape = _shape(headers.values(), size) if like is None else like_shape
            x, kept = reading.decode(headers, shape)
            # If damaged images were dropped, the others may have another common size.
            same = like is not None or (kept and _shape(kept.values(), size) == shape)
            if len(kept) == len(headers) or same:
                break
            headers = kept
        reading.check_enough(kept, least)
    return Images(
        x=x,
        names=tuple(map(readable, kept)),
        folder=folder,
        notes=(*(_resized(kept.values(), shape, size) if note_size else ()), *left_out.lines()),
        sizes=tuple((header.width, header.height) for header in kept.values()),
    )


def image_files(folder: Path) -> list[str]:
    """Return the sorted names of the files below a folder that have the header of an image.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("L", (8, 8)).save(Path(folder, "a.png"))
    ...     _ = Path(folder, "notes.txt").write_text("no image")
    ...     image_files(Path(folder))
    ['a.png']
    """
    names, left_out = walk(folder)
    with quiet, ThreadPoolExecutor(_WORKERS) as workers:
        Image.init()
        reading = _Reading(folder, left_out, workers, silent)
        return sorted(reading.headers(names))


@dataclass(frozen=True)
class _Reading:
    """One pass over a folder; files that fail are added to `left_out`."""

    folder: Path
    left_out: LeftOut
    workers: ThreadPoolExecutor
    progress: Progress

    def headers(self, names: Sequence[str]) -> dict[str, ImageHeader]:
        """Return the headers of the usable files, by name."""
        return dict(self._each("looking", names, lambda row, name: read_header(self.folder / name)))

    def decode(
        self, headers: dict[str, ImageHeader], shape: Shape
    ) -> tuple[UInt8[np.ndarray, "n c h w"], dict[str, ImageHeader]]:
        """Decode the images in this shape; return them with the headers of those that succeeded."""
        channels, height, width = shape
        check_memory(len(headers) * channels * height * width, str(self.folder))
        x = np.empty((len(headers), *shape), dtype=np.uint8)

        def fill(row: int, name: str) -> int:
            x[row] = read_pixels(self.folder / name, width, height, grey=channels == 1)
            return row

        kept: dict[str, ImageHeader] = {}
        for name, row in self._each("reading", list(headers), fill):
            x[len(kept)] = x[row]  # move rows up in place, so that no second array is needed
            kept[name] = headers[name]
        return x[: len(kept)], kept

    def _each(
        self, stage: str, names: Sequence[str], read: Callable[[int, str], Any]
    ) -> list[tuple[str, Any]]:
        """Call `read` for each file, in order; in batches, so that a run can be interrupted."""

        def attempt(row: int) -> Any:
            try:
                return read(row, names[row])
            except Unusable as reason:
                return reason

        results: list[tuple[str, Any]] = []
        for start in range(0, len(names), _BATCH):
            rows = range(start, min(start + _BATCH, len(names)))
            for row, result in zip(rows, self.workers.map(attempt, rows), strict=True):
                if isinstance(result, Unusable):
                    self.left_out.add(str(result), names[row])
                else:
                    results.append((names[row], result))
            self.progress(stage, rows.stop, len(names))
        return results

    def check_enough(self, headers: dict[str, ImageHeader], least: int) -> None:
        """Refuse a folder with too few images to choose from."""
        if len(headers) >= least:
            return
        got = f"only {readable(next(iter(headers)))}" if headers else "none"
        why = "; ".join(self.left_out.lines()) or "it holds nothing else"
        expected = "an image" if least == 1 else f"at least {least} images to choose from"
        raise WrongFormat.of(DatasetError)(
            str(self.folder),
            str(expected),
            f"{got} ({why})",
            "name a folder of PNG, JPEG, BMP, GIF, WebP or TIFF files, or one table",
        )


def _check(folder: Path, size: int | None) -> None:
    if size is not None and size < 1:
        raise DatasetError(f"expected images of at least 1 pixel, got size={size}; try size=32")
    if not folder.is_dir():
        got = "a file" if folder.exists() else "nothing of that name"
        raise WrongFormat.of(DatasetError)(str(folder), "a folder of images", str(got))


def _shape(headers: Collection[ImageHeader], size: int | None) -> Shape:
    """Return the channels, height and width that all images will have."""
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
        + ("" if size else "; image_size= chooses another size")
    )


class _Quiet:
    """A context without Pillow's warnings and log messages.

    Warnings are global to the process: the first of several threads switches them off, and the
    last one restores them.
    """

    _lock, _inside, _after = Lock(), 0, ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                logger, handler = logging.getLogger("PIL"), logging.NullHandler()
                logger.addHandler(handler)
                self._after.callback(logger.removeHandler, handler)
                self._after.enter_context(warnings.catch_warnings())
                warnings.simplefilter("ignore")

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._after.close()


quiet = _Quiet()
