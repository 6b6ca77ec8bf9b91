"""Pools without columns: folders of images, and arrays with the axes that a network wants."""

from pathlib import Path

import numpy as np
from jaxtyping import Shaped

from evgp._errors import DatasetError
from evgp._executor import Progress
from evgp.cli._inputs import Asked, Inputs, load_table
from evgp.datasets import (
    Images,
    Labelled,
    pictures_of,
    read_array,
    read_images,
    read_labelled,
    read_table,
)
from evgp.nets import Finite, Network
from evgp.nets.named import Named

_ARRAYS = (".npy", ".npz")


def load(asked: Asked, network: Named, progress: Progress) -> Inputs:
    """Read the pool as what it is: a folder of images, an array for a network, or a table."""
    if asked.pool.is_dir():
        _refuse_columns(asked, "a folder of images")
        return _load_images(asked, progress)
    if asked.image_size is not None:
        raise DatasetError(
            f"{asked.pool}: --image-size is for a folder of images; leave it out for a file"
        )
    finite = not isinstance(network, Network)
    if finite and asked.pool.suffix.lower() in _ARRAYS and asked.pool.is_file():
        _refuse_columns(asked, "an array for a network of its own")
        return _load_array(asked, network)
    return load_table(asked)


def _load_images(asked: Asked, progress: Progress) -> Inputs:
    images = read_images(asked.pool, size=asked.image_size, progress=progress)
    notes = [f"{asked.pool}: {note}" for note in images.notes]

    def more(folder: Path) -> Images:
        made = read_images(folder, like=images, progress=progress)
        notes.extend(f"{folder}: {note}" for note in made.notes)
        return made

    known, x_test = Labelled(), None
    if (labelled := asked.labelled) is not None:
        if labelled.is_dir():
            outside = more(labelled).x
            known = Labelled(x=outside, note=f"{labelled}: {len(outside):,} labelled images")
        else:
            known = read_labelled(labelled, None, images.names, id="id", delimiter=asked.delimiter)
        notes.append(known.note)
    if asked.test is not None:
        if not asked.test.is_dir():
            raise DatasetError(f"{asked.test}: expected a folder of images, as the pool is one")
        x_test = more(asked.test).x
    return Inputs(
        source=str(asked.pool),
        x=images.x,
        names=images.names,
        x_test=x_test,
        labelled=known,
        pictures=images,
        raw=True,
        notes=tuple(notes),
    )


def _load_array(asked: Asked, network: Named) -> Inputs:
    def read(path: Path, other: Path | None) -> Shaped[np.ndarray, " n *d"]:
        if path.suffix.lower() not in _ARRAYS:
            raise DatasetError(f"{path}: expected an .npy or .npz file, as the pool is one")
        if path.is_dir() or not path.exists():
            read_table(path)  # it says what is wrong
        return read_array(path, asked.array_of(path, other))

    notes: list[str] = []
    x = _as_images(read(asked.pool, asked.test), network, notes)
    known = Labelled()
    if asked.labelled is not None:
        known = read_labelled(asked.labelled, None, range(len(x)), delimiter=asked.delimiter)
        notes.append(known.note)
    x_test = None if asked.test is None else _as_images(read(asked.test, asked.pool), network, [])
    return Inputs(
        source=str(asked.pool),
        x=x,
        x_test=x_test,
        labelled=known,
        pictures=pictures_of(x) if x.ndim == 4 and x.shape[1] in (1, 3) else None,
        raw=True,
        notes=tuple(notes),
    )


def _as_images(
    x: Shaped[np.ndarray, " n *d"], network: Named, notes: list[str]
) -> Shaped[np.ndarray, " n *e"]:
    """For the networks here, which want channels first, what is surely meant as such."""
    if not isinstance(network, Finite):
        return x
    was = "x".join(map(str, x.shape))
    if x.ndim == 3:
        x = x[:, None]
    elif x.ndim == 4 and x.shape[1] not in (1, 3) and x.shape[3] in (1, 3):
        x = np.ascontiguousarray(np.moveaxis(x, 3, 1))
    else:
        return x
    notes.append(f"{was} numbers, taken as images of {'x'.join(map(str, x.shape[1:]))}")
    return x


def _refuse_columns(asked: Asked, what: str) -> None:
    given = {
        "--id": asked.id,
        "--drop": asked.drop,
        "--costs": asked.costs,
        "--impute": asked.impute,
        "--array": None if asked.pool.suffix.lower() == ".npz" else asked.array,
    }
    used = [name for name, value in given.items() if value]
    if used:
        raise DatasetError(
            f"{asked.pool}: {what} has no columns, so {', '.join(used)} cannot apply; leave it out"
        )
