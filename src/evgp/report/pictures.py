"""Thumbnails of rows, small enough to be part of the page."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from math import ceil, sqrt
from typing import Any, Protocol, runtime_checkable

from PIL import Image, features

# Longest side of an image in pixels, by the number of picks: sharper if there are few.
SIDES = ((60, 320), (250, 192), (1_000, 112))
SMALLEST_SIDE = 80
TILE = 48
FEW_POINTS = 1_000
CELLS = (64, 32)
TRIED = 64
BLOCK = 16


@dataclass(frozen=True)
class Picture:
    """The image of a pick: data URIs, large and as a tile, and the size of the large one."""

    large: str
    tile: str
    width: int
    height: int


@dataclass(frozen=True)
class Sheet:
    """Tiles of many rows in one image (a data URI), row by row in square cells of `cell` pixels.

    `sizes` are the widths and heights of the tiles, each in the upper left of its cell; `names`
    are those of the rows.
    """

    image: str
    cell: int
    columns: int
    sizes: tuple[tuple[int, int], ...]
    names: tuple[str, ...]


@runtime_checkable
class Pictures(Protocol):
    """An image for each row of the pool, fitted into a square of a given side, never enlarged."""

    def __len__(self) -> int: ...
    def thumbnail(self, row: int, side: int) -> Image.Image: ...


@dataclass(frozen=True)
class _Format:
    """An image format with its options."""

    kind: str
    options: dict[str, Any]

    def write(self, image: Image.Image) -> bytes:
        stream = BytesIO()
        image.save(stream, self.kind, **self.options)
        return stream.getvalue()


def picture(pictures: Pictures, row: int, picks: int) -> Picture:
    """The image of one pick, large and as a tile for the table; it is read once."""
    side = next((side for most, side in SIDES if picks <= most), SMALLEST_SIDE)
    large = without_metadata(pictures.thumbnail(row, side))
    tile = large.copy()
    tile.thumbnail((TILE, TILE), Image.Resampling.LANCZOS)
    return Picture(uri(large, quality=80), uri(tile, quality=75), large.width, large.height)


def sheet(pictures: Pictures, rows: Sequence[int], names: Sequence[str]) -> Sheet | None:
    """The images of these rows in one large image, tile by tile; None if there are none.

    A tile is at most 32 pixels wide and high, or 64 for up to 1,000 rows.
    """
    if not rows:
        return None
    side = CELLS[0] if len(rows) <= FEW_POINTS else CELLS[1]
    tiles = [without_metadata(pictures.thumbnail(row, side)) for row in rows]
    longest = max(max(tile.size) for tile in tiles)
    # Lossy formats work in blocks: in cells of whole blocks, neighbours do not mix.
    cell = longest if longest <= BLOCK else BLOCK * ceil(longest / BLOCK)
    columns = ceil(sqrt(len(tiles)))
    grey = all(tile.mode == "L" for tile in tiles)
    size = (cell * columns, cell * ceil(len(tiles) / columns))
    whole = Image.new("L" if grey else "RGB", size, "grey")
    for j, tile in enumerate(tiles):
        whole.paste(tile, (cell * (j % columns), cell * (j // columns)))
    sizes = tuple((tile.width, tile.height) for tile in tiles)
    exact = cell <= BLOCK
    return Sheet(uri(whole, quality=60, exact=exact), cell, columns, sizes, tuple(names))


def uri(image: Image.Image, *, quality: int, exact: bool = False) -> str:
    """An image as a data URI; a small one is lossless if that is not larger.

    >>> uri(Image.new("RGB", (8, 8), "red"), quality=80)[:11]
    'data:image/'
    """
    lossy, lossless = _formats(quality)
    if exact:
        tried = [lossless]
    else:
        tried = [lossy, lossless] if max(image.size) <= TRIED else [lossy]
    kind, data = min(
        ((format.kind, format.write(image)) for format in tried), key=lambda pair: len(pair[1])
    )
    return f"data:image/{kind.lower()};base64,{base64.b64encode(data).decode()}"


def _formats(quality: int) -> tuple[_Format, _Format]:
    if _has_webp():
        return _Format("WEBP", {"quality": quality}), _Format("WEBP", {"lossless": True})
    return (
        _Format("JPEG", {"quality": quality, "optimize": True}),
        _Format("PNG", {"optimize": True}),
    )


@cache
def _has_webp() -> bool:
    return bool(features.check("webp"))


def without_metadata(image: Image.Image) -> Image.Image:
    """A copy with only the pixels: without the place and time that a camera recorded."""
    copy = image.copy() if image.mode in ("L", "RGB") else image.convert("RGB")
    copy.info = {}
    return copy
