"""The file of a named dataset: found, compared with its checksum, and read without trust."""

import hashlib
import os
import zipfile
from io import BufferedReader
from pathlib import Path

import numpy as np
from jaxtyping import Shaped

from evgp._errors import DatasetError
from evgp._reading import check_memory
from evgp._reading import opened as plain_file
from evgp.datasets._unpack import opened
from evgp.datasets.arrays import DAMAGED, Header, read_header
from evgp.datasets.kept import cache_folder
from evgp.datasets.known import Known
from evgp.datasets.tables import check_file

_PARTS = ("train", "test")
# More letters in the names of classes than anybody reads.
_LONGEST = 2**20


def read_known(known: Known, *, verify: bool) -> dict[str, Shaped[np.ndarray, "..."]]:
    """The arrays of its file: `X` and `y`, or those of a train and a test part.

    The checksum is taken of the very bytes that are read. Without `verify` the file need only have
    the right layout.
    """
    path = find(known)
    check_file(path)
    try:
        with plain_file(path) as stream:
            if verify:
                _verify(stream, known, path)
            with zipfile.ZipFile(stream) as archive:
                arrays = _read(archive, known, path)
    except DatasetError:
        raise
    except (*DAMAGED, OSError) as error:  # bzip2 reports damage as an OSError
        raise _foreign(path, known, f"a damaged or foreign file ({error})") from error
    _check(arrays, known, path)
    return arrays


def find(known: Known) -> Path:
    """Its file in `$EVGP_DATA`, or else in the user's cache."""
    given = os.environ.get("EVGP_DATA")
    places = [Path(given)] if given else []
    places.append(cache_folder() / "data")
    for place in places:
        if (place / known.file).exists():
            return place / known.file
    shown = " or ".join(map(str, places)) + ("" if given else " ($EVGP_DATA is not set)")
    raise DatasetError(
        f"{known.name}: expected {known.file} in {shown}, got no such file; put it there, or make "
        f"one with numpy.savez from {known.source}, with {known.layout}, and load it with "
        "verify=False"
    )


def _verify(stream: BufferedReader, known: Known, path: Path) -> None:
    found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != known.sha256:
        raise DatasetError(
            f"{path}: expected SHA-256 {known.sha256[:12]}..., got {found[:12]}...; copy the file "
            "again, or load it with verify=False if you made it yourself"
        )
    stream.seek(0)


def _read(
    archive: zipfile.ZipFile, known: Known, path: Path
) -> dict[str, Shaped[np.ndarray, "..."]]:
    members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
    suffixes = [f"_{part}" for part in _PARTS] if known.classes else [""]
    wanted = [f"{letter}{suffix}" for letter in "Xy" for suffix in suffixes]
    if absent := [name for name in wanted if name not in members]:
        raise _foreign(path, known, f"none named {', '.join(absent)}")
    if known.classes and "class_names" in members:
        wanted.append("class_names")
    arrays = {}
    for name in wanted:
        with opened(archive, members[name], str(path)) as stream:
            header = read_header(stream, f"{path}[{name}]")
            _check_header(header, name, known, path)
            check_memory(header.nbytes(), f"{path}[{name}]")
            data = stream.read(header.nbytes())
            if len(data) < header.nbytes():
                raise _foreign(path, known, f"{name} cut short")
            order = "F" if header.columns_first else "C"
            flat = np.frombuffer(data, dtype=header.dtype)
            arrays[name] = flat.reshape(header.shape, order=order)  # type: ignore[call-overload]
    return arrays


def _check_header(header: Header, name: str, known: Known, path: Path) -> None:
    """Refuse an array before it is read: objects, and any kind or shape but that of the layout."""
    if header.dtype.hasobject:
        raise _foreign(path, known, f"Python objects in {name}, which are never unpickled here")
    if name == "class_names":
        good = header.dtype.kind == "U" and header.shape == (known.classes,)
        good = good and header.nbytes() <= _LONGEST
    elif name.startswith("y"):
        good = header.dtype.kind in ("iu" if known.classes else "fiu") and len(header.shape) == 1
    else:
        images = len(known.shape) > 1
        good = header.dtype == np.uint8 if images else header.dtype.kind in "fiu"
        good = good and header.shape[1:] == known.shape
    if not good or any(size < 1 for size in header.shape):
        shape = " x ".join(map(str, header.shape)) or "a scalar"
        raise _foreign(path, known, f"{name} ({shape}) in {header.dtype}")


def _check(arrays: dict[str, Shaped[np.ndarray, "..."]], known: Known, path: Path) -> None:
    """Refuse arrays that do not belong together, or whose values cannot be used."""
    for name in [name for name in arrays if name.startswith("X")]:
        x, y = arrays[name], arrays["y" + name[1:]]
        if len(x) != len(y):
            raise _foreign(path, known, f"{len(x):,} rows of {name} and {len(y):,} labels")
        if len(x) < 4:
            raise _foreign(path, known, f"{len(x)} rows of {name}, too few to split")
        if not all(np.isfinite(part).all() for part in (x, y) if part.dtype.kind == "f"):
            raise _foreign(path, known, f"missing or infinite numbers in {name} or its labels")
        if known.classes and not (0 <= int(y.min()) and int(y.max()) < known.classes):
            raise _foreign(path, known, f"labels from {y.min()} to {y.max()}")


def _foreign(path: Path, known: Known, got: str) -> DatasetError:
    return DatasetError(
        f"{path}: expected an npz archive with {known.layout}, got {got}; save it again with "
        "numpy.savez"
    )
