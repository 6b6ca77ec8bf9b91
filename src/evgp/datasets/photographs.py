"""Turn images into vectors with an embedder: the files of a folder, or arrays of pixels."""

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np
from jaxtyping import Float, Shaped, UInt8
from PIL import Image

from evgp._executor import Progress, silent
from evgp._reading import opened
from evgp.datasets.embedding import embedded, key_of
from evgp.datasets.images import KEPT, Images, Unusable, quiet, read_pixels
from evgp.embedders import Embedder
from evgp.errors import DatasetError, UnreadableFile

_CHUNK = 2**22


def embedded_images(
    images: Images, embedder: Embedder, progress: Progress = silent
) -> Float[np.ndarray, "n d"]:
    """Return a vector for each image of a folder, read from its file in the embedder's size."""
    paths = [images.folder / name for name in images.names]

    def load(rows: Sequence[int]) -> UInt8[np.ndarray, "b 3 h w"]:
        with quiet:
            return np.stack([_pixels(paths[row], embedder.side) for row in rows])

    keys = [_hash_of(path) for path in paths]
    return embedded(embedder, keys, load, progress=progress, source=str(images.folder)).x


def embedded_pixels(
    x: Shaped[np.ndarray, " n *d"], embedder: Embedder, name: str, progress: Progress = silent
) -> Float[np.ndarray, "n d"]:
    """Return a vector for each image of an array, resized to the embedder's size."""
    pixels, side = as_bytes(x, name), embedder.side

    def load(rows: Sequence[int]) -> UInt8[np.ndarray, "b 3 h w"]:
        return np.stack([_resized(pixels[row], side) for row in rows])

    shape = repr(pixels.shape[1:]).encode()
    keys = [key_of(shape + pixels[row].tobytes()) for row in range(len(pixels))]
    return embedded(embedder, keys, load, progress=progress, source=name).x


def as_bytes(x: Shaped[np.ndarray, " n *d"], name: str) -> UInt8[np.ndarray, "n 3 h w"]:
    """Return images as bytes, in three channels; numbers are from 0 to 1, or from 0 to 255.

    >>> as_bytes(np.ones((2, 4, 4)), "x").shape, int(as_bytes(np.ones((2, 4, 4)), "x").max())
    ((2, 3, 4, 4), 255)
    """
    if x.ndim == 3:
        x = x[:, None]
    if x.ndim == 4 and x.shape[1] not in (1, 3) and x.shape[3] in (1, 3):
        x = x.transpose(0, 3, 1, 2)
    if x.ndim != 4 or x.shape[1] not in (1, 3) or x.dtype.kind not in "fiub" or 0 in x.shape:
        shape = " x ".join(map(str, x.shape))
        raise DatasetError(
            f"expected images in {name} for embed=, as n x channels x height x width numbers with "
            f"1 or 3 channels; got {shape} of {x.dtype}; leave out embed="
        )
    if x.dtype != np.uint8:
        low, high = float(x.min()), float(x.max())
        if not 0 <= low <= high <= 255:
            raise DatasetError(
                f"expected pixels from 0 to 1 or from 0 to 255 in {name}, got numbers from {low:g} "
                f"to {high:g}; scale them"
            )
        x = np.rint(x * (255 if high <= 1 else 1)).astype(np.uint8)
    return np.broadcast_to(x, (len(x), 3, *x.shape[2:])) if x.shape[1] == 1 else x


def photographs_noted(images: Images) -> list[str]:
    """Return a note if images were much larger than the pixels that represent them.

    >>> photographs_noted(Images(np.zeros((2, 3, 32, 32), np.uint8), ("a", "b"), Path()))
    []
    """
    large = sum(max(size) > KEPT for size in images.sizes)
    if not large:
        return []
    _, _, height, width = images.x.shape
    return [
        f"{large:,} of {len(images):,} images are larger than {KEPT} pixels a side, as photographs "
        f"are, and are compared by the colours of {width} x {height} pixels, not by what they "
        "show; embed= compares them by a trained network (docs/images.md)"
    ]


def _pixels(path: Path, side: int) -> UInt8[np.ndarray, "3 h w"]:
    try:
        return read_pixels(path, side, side, grey=False)
    except Unusable as reason:
        raise UnreadableFile.of(DatasetError)(
            str(path), f"cannot be read at {side} x {side} pixels ({reason})", "remove the file"
        ) from reason


def _resized(pixels: UInt8[np.ndarray, "3 h w"], side: int) -> UInt8[np.ndarray, "3 s s"]:
    if pixels.shape[1:] == (side, side):
        return pixels
    picture = Image.fromarray(np.ascontiguousarray(pixels.transpose(1, 2, 0)))
    small = picture.resize((side, side), Image.Resampling.LANCZOS)
    return np.asarray(small).transpose(2, 0, 1)


def _hash_of(path: Path) -> bytes:
    state = blake2b(digest_size=16)
    with opened(path) as stream:
        while chunk := stream.read(_CHUNK):
            state.update(chunk)
    return state.digest()
