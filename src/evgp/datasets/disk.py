"""Room on the disk: asked for before it is needed, and errors that name the file."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evgp._errors import DatasetError, DiskFull, EvgpError

_WHY = {
    errno.ENOSPC: "the disk is full",
    getattr(errno, "EDQUOT", errno.ENOSPC): "your quota on this disk is used up",
    errno.EFBIG: "the file would be larger than this system allows (ulimit -f)",
}
ADVICE = "make room there, or write to a folder on another disk, and run again"
# For files of a run that goes on where it was.
KEPT = (
    "make room there, or name a folder on a larger disk (--cache), and run again: what was "
    "finished is kept"
)


@contextmanager
def naming(path: str | Path, *aliases: object, advice: str = ADVICE) -> Iterator[None]:
    """What goes wrong while a file is written, as an error that names it.

    A write to an open file says neither which file it was nor what to do. `aliases` are other names
    of the file, such as that of the part that will replace it.
    """
    try:
        yield
    except OSError as error:
        if isinstance(error, EvgpError) or error.errno is None:
            raise
        if error.filename is not None and error.filename not in (*aliases, str(path), path):
            raise
        if error.errno in _WHY:
            folder = Path(os.path.realpath(path)).parent
            raise DiskFull(
                f"{path}: {_WHY[error.errno]}, in the folder {folder}; {advice}"
            ) from error
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error


def reserve(path: str | Path, name: str | Path | None = None) -> None:
    """Have the disk set aside all of a sparse file: writing to a map has no way to say no.

    `name` is what the file will be called, for errors.
    """
    handle = os.open(path, os.O_RDWR)
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(handle, 0, os.fstat(handle).st_size)
    except OSError as error:
        if error.errno in _WHY:
            with naming(path if name is None else name, advice=KEPT):
                raise
        # Some file systems cannot.
    finally:
        os.close(handle)


def check_room(folder: str | Path, need: int) -> None:
    """Refuse a run whose files would not fit on the disk."""
    place = Path(folder)
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if need > free:
        raise DatasetError(
            f"{folder}: the features need {need / 1e6:,.0f} MB, and {free / 1e6:,.0f} MB are free "
            "on this disk; name a folder on a larger one (--cache), or use fewer features"
        )
