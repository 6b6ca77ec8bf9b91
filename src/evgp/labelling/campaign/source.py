"""The pool of a campaign: rows for people to read, its checksum, and its encoded rows."""

import hashlib
import os
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from math import isnan
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from jaxtyping import Shaped

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
    read_images,
    read_table,
)
from evgp.datasets.arrays import npy_header
from evgp.datasets.folders import ImageData, folder_images, from_images
from evgp.datasets.images import image_files
from evgp.datasets.options import split, split_all
from evgp.datasets.photographs import embedded_images
from evgp.datasets.pool_data import TableData
from evgp.datasets.read import no_columns
from evgp.errors import (
    CampaignError,
    DamageWarning,
    DatasetError,
    UnreadableFile,
    WrongFormat,
    quoted,
)

_ROW_BYTES = 250  # Python's memory for the name of a row and its place in sets of rows


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
        """What to show of a row: its columns, or the name of its image."""
        if self.table is None:
            return {"image": self.names[row]}
        return {name: self.table.cells(name)[row] for name in self.table.names}

    def checked_columns(self, names: Sequence[str]) -> tuple[str, ...]:
        """Names of columns, several of which may be separated by commas; raises if one is new."""
        if names and self.table is None:
            raise CampaignError(f"{self.path}: a folder of images has no columns {quoted(names)}")
        columns = split(names, () if self.table is None else self.table.names)
        for name in columns:
            assert self.table is not None
            self.table.column(name)
        return columns

    def row_of(self, name: str) -> int:
        """The row with this name; O(1) after the first call."""
        row = self._rows.get(name)
        if row is None:
            raise CampaignError(f"{self.path.name} has no row with the id {name!r}; check it")
        return row

    @cached_property
    def _rows(self) -> Mapping[str, int]:
        return {name: row for row, name in enumerate(self.names)}


def open_source(path: Path, how: ReadOptions, *, rows: int | None = None) -> Source:
    """Read a table, or a folder of images, for people; raises if it does not have `rows` rows."""
    id = how.id
    if path.is_dir():
        if of_columns := how.of_columns():
            raise no_columns(f"{path}: a folder of images", of_columns)
        images = folder_images(path, how)
        source = Source(path, images.names, images=images)
    else:
        text = (*(() if id is None else (id,)), *split_all(how.text))
        table = read_table(path, **how.dialect, array=how.array, text=text)
        check_memory(_ROW_BYTES * len(table), str(path))
        names = range(len(table)) if id is None else ids(table, id)
        source = Source(path, tuple(str(name) for name in names), table=table)
    if rows is not None and len(source) != rows:
        raise WrongFormat.of(CampaignError)(
            str(path), f"the {rows:,} rows of the campaign", f"{len(source):,}", "restore it"
        )
    return source


def encoded(source: Source, options: ReadOptions) -> ImageData | TableData:
    """The rows as numbers."""
    if source.images is not None:
        return from_images(source.images, options)
    assert source.table is not None
    return from_table(source.table, options)


def rows_to_store(data: ImageData | TableData) -> Shaped[np.ndarray, " n *d"]:
    """The rows as numbers: scaled for a table, as they are for images, or their vectors."""
    if isinstance(data, TableData):
        return data.in_memory.numpy()
    return data.original if data.embedder is None else np.asarray(data.given, np.float32)


def encoded_test(data: ImageData | TableData, path: Path) -> Shaped[np.ndarray, " m *d"]:
    """Test points as numbers, encoded as the rows of the pool are."""
    if isinstance(data, TableData):
        return data.tensor_like(path).numpy()
    if not path.is_dir():
        raise DatasetError(f"{path}: expected a folder of images, like the pool")
    images = read_images(path, like=data.pictures)
    return images.x if data.embedder is None else embedded_images(images, data.embedder)


def image_scaling(images: Shaped[np.ndarray, " n *d"], how: ReadOptions) -> ArrayCode:
    """The scaling of images, as in `evgp.pick`."""
    points = torch.tensor(images, dtype=torch.float64)
    code = from_array(points, how, "images").code
    assert code is not None
    return code


def checksum(path: Path) -> str:
    """Checksum of a file, or of the names and contents of all images in a folder."""
    if not path.exists():
        raise DatasetError(f"{path}: the pool of the campaign is missing")
    digest = hashlib.sha256()
    if path.is_dir():
        for name in image_files(path):
            digest.update(os.fsencode(name) + b"\0")
            digest.update(_file_digest(path / name).digest())
    else:
        digest = _file_digest(path)
    return digest.hexdigest()


def _file_digest(path: Path) -> "hashlib._Hash":
    with opened(path) as stream:
        return hashlib.file_digest(stream, "sha256")


@contextmanager
def stored(folder: Path, array: Shaped[np.ndarray, "..."]) -> Iterator[str]:
    """Store an array in a file named by a hash of its content; yields the name.

    If the block fails, a folder that was new is removed.
    """
    existed = folder.exists()
    try:
        yield _store_array(folder, array)
    except BaseException:
        if not existed:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def _store_array(folder: Path, array: Shaped[np.ndarray, "..."]) -> str:
    """Write an array to a file named by a hash of its content; returns the name."""
    array = np.ascontiguousarray(array)
    name = _name_of(array)
    folder.mkdir(parents=True, exist_ok=True)
    with atomic(folder / name) as part, part.open("wb") as stream:
        np.lib.format.write_array(stream, array, allow_pickle=False)
    return name


class _HashFile:
    """A file that only computes a hash of what is written, so that there is no second copy."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()

    def write(self, data: bytes) -> None:
        """Add to the hash."""
        self.hash.update(data)


def stored_array(
    folder: Path, name: str, rows: int, encode: Callable[[], Shaped[np.ndarray, "..."]]
) -> Shaped[np.ndarray, "..."]:
    """The array with this name, memory-mapped; encoded again if its file is missing or damaged.

    Raises if it does not have `rows` rows, or if `encode` gives another array. O(bytes).
    """
    path, why = folder / name, "missing"
    if path.exists():
        if _file_digest(path).hexdigest()[:32] == path.stem:
            _check_rows(path, rows)
            return np.load(path, mmap_mode="r", allow_pickle=False)
        why = "damaged"
    array = encode()
    if _name_of(array) != name:
        raise UnreadableFile.of(CampaignError)(
            str(path),
            f"the file is {why}, and encoding the pool gives other numbers now (perhaps another "
            "version of evgp made it)",
            "restore the file from a backup",
        )
    _store_array(folder, array)
    warnings.warn(
        f"{path} was {why}; it was written again from the pool", DamageWarning, stacklevel=2
    )
    return np.load(path, mmap_mode="r", allow_pickle=False)


def _name_of(array: Shaped[np.ndarray, "..."]) -> str:
    """The file name of an array: a hash of its content."""
    target = _HashFile()
    np.lib.format.write_array(target, np.ascontiguousarray(array), allow_pickle=False)
    return f"{target.hash.hexdigest()[:32]}.npy"


def _check_rows(path: Path, rows: int) -> None:
    with opened(path, CampaignError) as stream:
        count = npy_header(stream, str(path)).shape[0]
    if count != rows:
        raise WrongFormat.of(CampaignError)(
            str(path), f"the {rows:,} rows of the campaign", f"{count:,}", "restore both files"
        )


LONG = 60  # characters from which on a text gets the whole width
_MAX_CHARACTERS = 20_000
_MAX_CELLS = 300


@dataclass(frozen=True)
class CardCell:
    """One column of a row, as text for people."""

    name: str
    text: str
    kind: Literal["number", "short", "long", "missing"]


def cells(card: Mapping[str, object], texts: Sequence[str] = ()) -> list[CardCell]:
    """The columns of a row as text, long ones first, at most 300; `texts` are always long.

    >>> [(cell.text, cell.kind) for cell in cells({"a": 0.1 + 0.2, "b": None, "c": "=1+2"})]
    [('0.3', 'number'), ('', 'missing'), ('=1+2', 'short')]
    """
    shown = [_cell(str(name), value) for name, value in list(card.items())[:_MAX_CELLS]]
    shown = [replace(c, kind="long") if c.name in texts and c.text else c for c in shown]
    ordered = sorted(shown, key=lambda cell: cell.kind != "long")
    left = len(card) - len(shown)
    return ordered + ([CardCell("…", f"and {left:,} more columns", "short")] if left > 0 else [])


def _cell(name: str, value: object) -> CardCell:
    if value is None or (isinstance(value, float) and isnan(value)):
        return CardCell(name, "", "missing")
    if isinstance(value, bool):
        return CardCell(name, "yes" if value else "no", "short")
    if isinstance(value, int):
        return CardCell(name, str(value), "number")
    if isinstance(value, float):
        return CardCell(name, f"{value:.7g}", "number")
    if isinstance(value, bytes):
        return CardCell(name, f"{len(value):,} bytes", "short")
    text = str(value).encode("utf-8", "replace").decode()
    if len(text) > _MAX_CHARACTERS:
        text = f"{text[:_MAX_CHARACTERS]} … ({len(text) - _MAX_CHARACTERS:,} more characters)"
    return CardCell(name, text, "long" if len(text) > LONG or "\n" in text else "short")
