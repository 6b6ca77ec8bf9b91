"""Folders and arrays of images, as pixels or as vectors from an embedder."""

import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Shaped

from evgp._executor import Progress, silent
from evgp.datasets.images import Images, pictures_of, read_images
from evgp.datasets.labelled import Labelled, read_labelled
from evgp.datasets.options import ReadOptions
from evgp.datasets.photographs import as_bytes, embedded_images, embedded_pixels, photographs_noted
from evgp.datasets.pool_data import ArrayData, Points, from_array, vectors_as_points
from evgp.embedders import Embedder, Tfidf, embedder_of
from evgp.errors import DatasetError, DataWarning


@dataclass(frozen=True, eq=False, repr=False)
class ImageData(ArrayData):
    """A folder of images; their ids are the file names."""

    pictures: Images = field(kw_only=True)

    @property
    def original(self) -> Shaped[np.ndarray, " n *d"]:
        """The pixels."""
        return self.pictures.x

    def again(self, options: ReadOptions) -> "ImageData":
        """Scale the pixels again, with other options."""
        read = super().again(options)
        return replace(self, x=read.x, options=options, code=read.code)

    def like(self, other: Any, name: str = "x_test", progress: Progress = silent) -> Points:
        """Read another folder of images, or take an array of pixels."""
        if not isinstance(other, str | Path):
            return super().like(other, name)
        folder = Path(other)
        if not folder.is_dir():
            raise DatasetError(f"{folder}: expected a folder of images, like the pool")
        raw = self.embedder is None
        images = read_images(folder, like=self.pictures, note_size=raw, progress=progress)
        for note in images.notes:
            warnings.warn(f"{folder}: {note}", DataWarning, stacklevel=3)
        if self.embedder is not None:
            vectors = embedded_images(images, self.embedder, progress)
            return self.coded(vectors_as_points(vectors), str(folder))
        return self.coded(torch.from_numpy(images.x).double(), str(folder))

    def labelled(self, path: str | Path) -> Labelled:
        """Read a folder of further images, or a list of file names of this folder."""
        if Path(path).is_dir():
            x = self.like(path)
            return Labelled(x=x, note=f"{path}: {len(x):,} labelled images")
        return read_labelled(path, None, self.names(), id="id", **self.options.dialect)


def folder_images(path: Path, options: ReadOptions, progress: Progress = silent) -> Images:
    """Read the images of a folder; those that are embedded keep their size."""
    raw = options.embed is None
    size = options.image_size if raw else None
    return read_images(path, size=size, note_size=raw, progress=progress)


def from_images(images: Images, options: ReadOptions, progress: Progress = silent) -> ImageData:
    """Return a folder of images as numbers: their pixels, or with an embedder their vectors."""
    path = images.folder
    if options.embed is None:
        data = from_array(torch.from_numpy(images.x).double(), options, str(path))
        # A user's network expects pixels in its own size.
        raw = [] if options.fixed else photographs_noted(images)
        notes_of_folder, embedder = (*images.notes, *raw), None
    else:
        embedder = image_embedder(options)
        vectors = embedded_images(images, embedder, progress)
        data = from_array(vectors_as_points(vectors), options, str(path))
        notes_of_folder = (*images.notes, _embedding_noted(embedder, vectors))
    notes = tuple(f"{path}: {note}" for note in notes_of_folder)
    return ImageData(
        str(path), data.x, options, images.names, None, notes, code=data.code, pictures=images,
        given=data.given, embedder=embedder,
    )  # fmt: skip


def from_pixels(
    raw: Shaped[np.ndarray, " n *d"], options: ReadOptions, name: str, progress: Progress
) -> ArrayData:
    """Return the vectors of an array of images."""
    embedder = image_embedder(options)
    vectors = embedded_pixels(raw, embedder, name, progress)
    data = from_array(vectors_as_points(vectors), options, name)
    notes = (f"{name}: {_embedding_noted(embedder, vectors)}", *data.notes)
    return replace(data, notes=notes, pictures=pictures_of(as_bytes(raw, name)), embedder=embedder)


def image_embedder(options: ReadOptions) -> Embedder:
    """Return the embedder of images that the options name."""
    embedder = embedder_of(options.embed, "images", options.image_size)
    assert not isinstance(embedder, Tfidf)  # it reads text
    return embedder


def _embedding_noted(embedder: Embedder, vectors: Float[np.ndarray, "n d"]) -> str:
    return (
        f"images embedded by {embedder.name} at {embedder.side} x {embedder.side} pixels "
        f"({vectors.shape[1]:,} numbers each)"
    )
