"""Room on the disk: asked for before it is needed, and errors that name the file."""

import errno
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evgp._errors import DatasetError, DiskFull, EvgpError

# NumPy says how much it could not write, but not why.
_NUMPY = re.compile(r"\d+ requested and \d+ written")
_WHY = {
    errno.ENOSPC: "the disk is full",
    getattr(errno, "EDQUOT", errno.ENOSPC): "your quota on this disk is used up",
    errno.EFBIG: "the file would be larger than this system allows (ulimit -f)",
}
ADVICE = "make room there, or write to a folder on another disk, and run again"
# For files of a run that goes on where it was.
KEPT = (
    "make room there, or name a folder on a larger disk (cache=), and run again: what was "
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
        code = errno.ENOSPC if _NUMPY.search(str(error)) else error.errno
        if isinstance(error, EvgpError) or code is None:
            raise
        ours = error.filename is None or error.filename in (*aliases, str(path), path)
        if code in _WHY:
            raise full(path if ours else error.filename, _WHY[code], advice) from error
        if not ours:
            raise
        raise OSError(code, os.strerror(code), str(path)) from error


def full(path: str | Path, why: str = _WHY[errno.ENOSPC], advice: str = ADVICE) -> DiskFull:
    """The error for a file that there is no room for."""
    return DiskFull(f"{path}: {why}, in the folder {Path(os.path.realpath(path)).parent}; {advice}")


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
            f"{folder}: the features need {need / 1e6:,.1f} MB, and {free / 1e6:,.1f} MB are free "
            "on this disk; name a folder on a larger one (cache=), or use fewer features"
        )
