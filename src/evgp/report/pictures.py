"""What rows look like, small enough to travel inside the page."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from math import ceil, sqrt
from typing import Any, Protocol, runtime_checkable

from PIL import Image, features

from evgp.report.summary import Picture, Sheet

# Longest side of a picture, by how many picks there are: sharper where there are few.
SIDES = ((60, 320), (250, 192), (1_000, 112))
LEAST = 80
TILE = 48
FEW_POINTS = 1_000
CELLS = (64, 32)
TRIED = 64
BLOCK = 16


@runtime_checkable
class Pictures(Protocol):
    """A picture for each row of the pool, within a square of a given side and never enlarged."""

    def __len__(self) -> int: ...
    def thumbnail(self, row: int, side: int) -> Image.Image: ...


@dataclass(frozen=True)
class _Code:
    """A way to write a picture down."""

    kind: str
    options: dict[str, Any]

    def write(self, image: Image.Image) -> bytes:
        stream = BytesIO()
        image.save(stream, self.kind, **self.options)
        return stream.getvalue()


def picture(pictures: Pictures, row: int, picks: int) -> Picture:
    """One pick, large and as a tile for the table; it is read once."""
    side = next((side for most, side in SIDES if picks <= most), LEAST)
    large = bare(pictures.thumbnail(row, side))
    tile = large.copy()
    tile.thumbnail((TILE, TILE), Image.Resampling.LANCZOS)
    return Picture(uri(large, quality=80), uri(tile, quality=75), large.width, large.height)


def sheet(pictures: Pictures, rows: Sequence[int], names: Sequence[str]) -> Sheet | None:
    """All these rows in one image, tile by tile; None where there are none.

    A tile is at most 32 pixels wide and high, or 64 for up to 1,000 rows.
    """
    if not rows:
        return None
    side = CELLS[0] if len(rows) <= FEW_POINTS else CELLS[1]
    tiles = [bare(pictures.thumbnail(row, side)) for row in rows]
    longest = max(max(tile.size) for tile in tiles)
    # A lossy code works in blocks: a cell of whole blocks keeps its neighbours out.
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
    """An image as a data URI; a small one without loss if that is no longer.

    >>> uri(Image.new("RGB", (8, 8), "red"), quality=80)[:11]
    'data:image/'
    """
    lossy, lossless = _codes(quality)
    if exact:
        tried = [lossless]
    else:
        tried = [lossy, lossless] if max(image.size) <= TRIED else [lossy]
    kind, data = min(
        ((code.kind, code.write(image)) for code in tried), key=lambda made: len(made[1])
    )
    return f"data:image/{kind.lower()};base64,{base64.b64encode(data).decode()}"


def _codes(quality: int) -> tuple[_Code, _Code]:
    if _has_webp():
        return _Code("WEBP", {"quality": quality}), _Code("WEBP", {"lossless": True})
    return _Code("JPEG", {"quality": quality, "optimize": True}), _Code("PNG", {"optimize": True})


@cache
def _has_webp() -> bool:
    return bool(features.check("webp"))


def bare(image: Image.Image) -> Image.Image:
    """The pixels alone: what a camera noted about place and time stays out of the page."""
    made = image.copy() if image.mode in ("L", "RGB") else image.convert("RGB")
    made.info = {}
    return made
