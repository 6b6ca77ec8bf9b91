"""The pool of a campaign: a table or a folder of images, its checksum, and its encoded rows."""

import hashlib
import io
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Shaped

from evgp._errors import CampaignError, DamageWarning, DatasetError
from evgp.datasets import Encoder, Images, Table, atomic, ids, plain, read_images, read_table
from evgp.datasets.images import image_files


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


def open_source(path: Path, *, id: str | None = None) -> Source:
    """Read a table, or a folder of images, for people to look at."""
    if path.is_dir():
        images = read_images(path)
        return Source(path, images.names, images=images)
    table = read_table(path, text=() if id is None else (id,))
    names = range(len(table)) if id is None else ids(table, id)
    return Source(path, tuple(str(name) for name in names), table=table)


def encoded(
    source: Source, *, id: str | None, drop: Sequence[str], impute: bool
) -> Shaped[np.ndarray, " n *d"]:
    """The rows as numbers: those of a table scaled, images as they are."""
    if source.images is not None:
        return source.images.x
    assert source.table is not None
    encoder = Encoder.fit(source.table, id=id, drop=tuple(drop), impute=impute)
    return encoder.transform(source.table)


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
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256")


def keep_array(folder: Path, array: Shaped[np.ndarray, "..."]) -> str:
    """Write an array to a file that is named by its content; give the name."""
    content, name = _as_file(array)
    folder.mkdir(parents=True, exist_ok=True)
    with atomic(folder / name) as part:
        part.write_bytes(content)
    return name


def kept_array(
    folder: Path, name: str, again: Callable[[], Shaped[np.ndarray, "..."]]
) -> Shaped[np.ndarray, "..."]:
    """The array of a name, mapped; made again where the file is not what its name says.

    Refused where `again` gives another array than the one that was named. O(bytes).
    """
    path, why = folder / name, "missing"
    if path.exists():
        if _of_file(path).hexdigest()[:32] == path.stem:
            return np.load(path, mmap_mode="r", allow_pickle=False)
        why = "damaged"
    array = again()
    if _as_file(array)[1] != name:
        raise CampaignError(
            f"{path}: expected the encoded pool, got a file that is {why}, and the pool gives "
            "other numbers now (was it made by another version?); restore the file from a copy"
        )
    keep_array(folder, array)
    warnings.warn(f"{path} was {why} and was made again from the pool", DamageWarning, stacklevel=2)
    return np.load(path, mmap_mode="r", allow_pickle=False)


def _as_file(array: Shaped[np.ndarray, "..."]) -> tuple[memoryview, str]:
    """The bytes of an npy file, and its name."""
    buffer = io.BytesIO()
    np.save(buffer, np.ascontiguousarray(array), allow_pickle=False)
    content = buffer.getbuffer()
    return content, f"{hashlib.sha256(content).hexdigest()[:32]}.npy"
