"""The pool of a campaign: a table or a folder of images, its checksum, and its encoded rows."""

import hashlib
import os
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Shaped

from evgp._errors import CampaignError, DamageWarning, DatasetError
from evgp._reading import check_memory, opened
from evgp.datasets import (
    ArrayCode,
    Images,
    ReadOptions,
    Table,
    atomic,
    from_array,
    from_table,
    ids,
    plain,
    read_images,
    read_table,
)
from evgp.datasets.arrays import npy_header
from evgp.datasets.images import image_files

# Bytes that Python takes for the name of a row, and for the row in the sets of rows.
_ROW = 250


@dataclass(frozen=True)
class Source:
    """Rows that people can read, with a name for each."""

    path: Path
    names: tuple[str, ...]
    table: Table | None = None
    images: Images | None = None

    def __len__(self) -> int:
        return len(self.names)

    def card(self, row: int) -> dict[str, object]:
        """What a person is shown of a row: its columns, or the name of its image."""
        if self.table is None:
            return {"image": self.names[row]}
        table = self.table
        return {name: plain(table.column(name).slice(row, 1))[0].as_py() for name in table.names}

    def row_of(self, name: str) -> int:
        """The row of a name; O(1) after the first."""
        found = self._rows.get(name)
        if found is None:
            raise CampaignError(
                f"expected the id of a row in {self.path.name}, got {name!r}; check it"
            )
        return found

    @cached_property
    def _rows(self) -> Mapping[str, int]:
        return {name: row for row, name in enumerate(self.names)}


def open_source(path: Path, *, id: str | None = None, rows: int | None = None) -> Source:
    """Read a table, or a folder of images, for people to look at; refused with other `rows`."""
    if path.is_dir():
        images = read_images(path)
        made = Source(path, images.names, images=images)
    else:
        table = read_table(path, text=() if id is None else (id,))
        check_memory(_ROW * len(table), str(path))
        names = range(len(table)) if id is None else ids(table, id)
        made = Source(path, tuple(str(name) for name in names), table=table)
    if rows is not None and len(made) != rows:
        raise CampaignError(
            f"{path}: expected the {rows:,} rows of the campaign, got {len(made):,}; restore it"
        )
    return made


def encoded(
    source: Source, *, id: str | None, drop: Sequence[str], impute: bool
) -> Shaped[np.ndarray, " n *d"]:
    """The rows as numbers: those of a table scaled, images as they are."""
    if source.images is not None:
        return source.images.x
    options = ReadOptions(id=id, drop=tuple(drop), impute=impute)
    assert source.table is not None
    return from_table(source.table, options).in_memory.numpy()


def scale_of(images: Shaped[np.ndarray, " n *d"]) -> ArrayCode:
    """The scale of images, channel by channel, as `evgp.pick` has it."""
    made = from_array(torch.tensor(images, dtype=torch.float64), ReadOptions(), "images").code
    assert made is not None
    return made


def checksum(path: Path) -> str:
    """Of a file's content; of a folder, of the names and contents of all images in it."""
    if not path.exists():
        raise DatasetError(f"{path}: expected the pool of the campaign, got no such file")
    total = hashlib.sha256()
    if path.is_dir():
        for name in image_files(path):
            total.update(os.fsencode(name) + b"\0")
            total.update(_of_file(path / name).digest())
    else:
        total = _of_file(path)
    return total.hexdigest()


def _of_file(path: Path) -> "hashlib._Hash":
    with opened(path) as stream:
        return hashlib.file_digest(stream, "sha256")


@contextmanager
def kept(folder: Path, array: Shaped[np.ndarray, "..."]) -> Iterator[str]:
    """Keep an array in a file that is named by its content, and give the name.

    Where what follows fails, a new folder is not left behind.
    """
    there = folder.exists()
    try:
        yield _keep_array(folder, array)
    except BaseException:
        if not there:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def _keep_array(folder: Path, array: Shaped[np.ndarray, "..."]) -> str:
    """Write an array to a file that is named by its content; give the name."""
    array = np.ascontiguousarray(array)
    name = _name_of(array)
    folder.mkdir(parents=True, exist_ok=True)
    with atomic(folder / name) as part, part.open("wb") as stream:
        np.lib.format.write_array(stream, array, allow_pickle=False)
    return name


class _Total:
    """A file of which only the checksum is kept, so that an array is not held twice."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()

    def write(self, data: bytes) -> None:
        """Take a part of the content."""
        self.hash.update(data)


def kept_array(
    folder: Path, name: str, rows: int, again: Callable[[], Shaped[np.ndarray, "..."]]
) -> Shaped[np.ndarray, "..."]:
    """The array of a name, mapped; made again where the file is not what its name says.

    Refused where it has other rows, or `again` gives another array than was named. O(bytes).
    """
    path, why = folder / name, "missing"
    if path.exists():
        if _of_file(path).hexdigest()[:32] == path.stem:
            _check_rows(path, rows)
            return np.load(path, mmap_mode="r", allow_pickle=False)
        why = "damaged"
    array = again()
    if _name_of(array) != name:
        raise CampaignError(
            f"{path}: expected the encoded pool, got a file that is {why}, and the pool gives "
            "other numbers now (was it made by another version?); restore the file from a copy"
        )
    _keep_array(folder, array)
    warnings.warn(f"{path} was {why} and was made again from the pool", DamageWarning, stacklevel=2)
    return np.load(path, mmap_mode="r", allow_pickle=False)


def _name_of(array: Shaped[np.ndarray, "..."]) -> str:
    """The name of the file of an array: a checksum of its content."""
    total = _Total()
    np.lib.format.write_array(total, np.ascontiguousarray(array), allow_pickle=False)
    return f"{total.hash.hexdigest()[:32]}.npy"


def _check_rows(path: Path, rows: int) -> None:
    with opened(path, CampaignError) as stream:
        found = npy_header(stream, str(path)).shape[0]
    if found != rows:
        raise CampaignError(
            f"{path}: expected the {rows:,} rows of the campaign, got {found:,}; restore both files"
        )
