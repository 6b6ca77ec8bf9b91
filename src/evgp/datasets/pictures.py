"""Pictures to look at, out of arrays of images."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Shaped, UInt8
from PIL import Image

from evgp._errors import DatasetError

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
