"""One image file, read without trust: plain files and known formats only, and never a bomb.

Pillow decodes at most `MOST_PIXELS`, counted in the header before anything is unpacked. Its own
settings and its warnings are left to whoever calls.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from threading import Lock
from typing import BinaryIO

import numpy as np
from jaxtyping import UInt8
from PIL import Image, UnidentifiedImageError

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
class Header:
    """What an image file says of itself: its size once upright, and whether it is grey."""

    width: int
    height: int
    grey: bool


def read_header(path: Path) -> Header:
    """Size and kind of an image, without decoding it."""
    with _opened(path) as image:
        (width, height), lies = image.size, _orientation(image) >= 5
        # A TIFF of Pillow is upright by itself.
        if lies and image.format != "TIFF":
            width, height = height, width
        return Header(width, height, image.mode in ("1", "L", "LA", "La") or _is_deep(image))


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
