"""Files that are whole or not there: every output of this package is written through here."""

import csv
import errno
import json
import os
import re
import secrets
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Protocol, runtime_checkable

from evgp._checks import path_of
from evgp._errors import DatasetError, DataWarning, DiskFull, EvgpError

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


Columns = Mapping[str, Sequence[object]]
# What a spreadsheet takes a formula by.
FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


@runtime_checkable
class Writes(Protocol):
    """What takes text."""

    def write(self, text: str, /) -> object: ...


@dataclass(frozen=True)
class _Lines:
    """Rows that end in a line feed; `csv` quotes a carriage return only if rows end in one."""

    stream: Writes

    def write(self, row: str, /) -> object:
        return self.stream.write(row.removesuffix("\r\n") + "\n")


@contextmanager
def atomic(path: str | Path, *, advice: str = ADVICE) -> Iterator[Path]:
    """A temporary sibling to write to; it becomes `path` on success and vanishes on any failure.

    Errors of the disk name `path`; `advice` is what to do where it is full.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic(Path(folder, "note.txt")) as part:
    ...         _ = part.write_text("whole")
    ...     [(file.name, file.read_text()) for file in Path(folder).iterdir()]
    [('note.txt', 'whole')]
    """
    # A link stays a link: what it points to is replaced.
    target = Path(os.path.realpath(path))
    if target.exists() and not (target.is_file() or target.is_dir()):
        raise DatasetError(f"{path}: expected a plain file, or none yet, got another kind of file")
    part = target.with_name(f".evgp-{secrets.token_hex(8)}.part")
    with naming(path, str(part), part, advice=advice):
        try:
            yield part
            _flush(part)
            part.replace(target)
        except BaseException:
            with suppress(OSError):
                part.unlink()
            raise
        _flush(target.parent)


def write_rows(path: str | Path, columns: Columns) -> None:
    """Write named columns as CSV, TSV, JSON lines or Parquet, by the end of the file's name.

    In CSV and TSV, text like a formula gets a single quote in front, with a `DataWarning`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_rows(Path(folder, "picks.jsonl"), {"rank": [1, 2], "gain": [0.5, 0.25]})
    ...     print(Path(folder, "picks.jsonl").read_text(), end="")
    {"rank": 1, "gain": 0.5}
    {"rank": 2, "gain": 0.25}
    """
    check_writable(path)
    suffix = Path(path).suffix.lower()
    risky = 0
    if suffix in (".csv", ".tsv"):
        columns, risky = harmless(columns)
    with atomic(path) as part:
        _WRITERS[suffix](part, columns)
    if risky:
        cells = "1 cell starts" if risky == 1 else f"{risky:,} cells start"
        warnings.warn(
            f"{path}: {cells} with a sign that a spreadsheet would take for a formula, and got a "
            "single quote in front; .jsonl and .parquet keep text as it is",
            DataWarning,
            stacklevel=2,
        )


def harmless(columns: Columns) -> tuple[Columns, int]:
    """Text that a spreadsheet would run as a formula, with a quote in front, and how much of it.

    >>> harmless({"id": ["=1+2", "-3", "a"], "gain": [-0.5, 1.0, 2.0]})
    ({'id': ["'=1+2", '-3', 'a'], 'gain': [-0.5, 1.0, 2.0]}, 1)
    """
    made: dict[str, list[object]] = {}
    count = 0
    for name, cells in columns.items():
        risky = [isinstance(cell, str) and _is_formula(cell) for cell in cells]
        free = f"'{name}" if _is_formula(name) and f"'{name}" not in columns else name
        made[free] = [f"'{cell}" if bad else cell for cell, bad in zip(cells, risky, strict=True)]
        count += sum(risky) + (free != name)
    return made, count


def _is_formula(cell: str) -> bool:
    return cell.startswith(FORMULA_SIGNS) and not _NUMBER.fullmatch(cell)


@contextmanager
def written(path: str | Path, text: str) -> Iterator[None]:
    """A text on the disk in UTF-8, that gets its name once the block has succeeded too."""
    with atomic(path) as part:
        part.write_text(text, encoding="utf-8", newline="\n")
        _flush(part)
        yield


def write_text(path: str | Path, text: str) -> None:
    """Write a text in UTF-8, whole or not at all."""
    with written(path, text):
        pass


def check_writable(path: str | Path, suffixes: Sequence[str] = ()) -> None:
    """Refuse a path that could not be written, before anything is computed.

    >>> check_writable("picks.xlsx")
    Traceback (most recent call last):
    ...
    evgp._errors.DatasetError: picks.xlsx: expected a name ending in .csv, .tsv, .jsonl or .parquet
    """
    path = path_of(path, "path", error=DatasetError)
    known = tuple(suffixes) or tuple(_WRITERS)
    if path.is_dir():
        raise DatasetError(f"{path}: expected a file to write to, got a directory; add a file name")
    if path.suffix.lower() not in known:
        shown = ", ".join(known[:-1]) + " or " + known[-1] if len(known) > 1 else known[0]
        raise DatasetError(f"{path}: expected a name ending in {shown}")
    if path.exists() and not path.is_file():
        raise DatasetError(f"{path}: expected a plain file to write to, got a device or pipe")
    parent = Path(os.path.realpath(path)).parent
    if not parent.is_dir():
        raise DatasetError(f"{path}: the folder {parent} does not exist; create it first")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise DatasetError(f"{path}: the folder {parent} may not be written to")


def write_separated(stream: Writes, columns: Columns, delimiter: str) -> None:
    """Write a header and rows to an open text stream; numbers keep every digit.

    >>> import sys
    >>> write_separated(sys.stdout, {"rank": [1], "id": ["a,b"]}, delimiter=",")
    rank,id
    1,"a,b"
    """
    writer = csv.writer(_Lines(stream), delimiter=delimiter, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))


def _write_csv(part: Path, columns: Columns) -> None:
    with part.open("w", encoding="utf-8", newline="") as stream:
        write_separated(stream, columns, ",")


def _write_tsv(part: Path, columns: Columns) -> None:
    with part.open("w", encoding="utf-8", newline="") as stream:
        write_separated(stream, columns, "\t")


def _write_jsonl(part: Path, columns: Columns) -> None:
    with part.open("w", encoding="utf-8", newline="") as stream:
        for cells in zip(*columns.values(), strict=True):
            row = {name: _plain(cell) for name, cell in zip(columns, cells, strict=True)}
            stream.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")


def _write_parquet(part: Path, columns: Columns) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({name: pa.array(cells) for name, cells in columns.items()})
    with part.open("wb") as stream:  # pyarrow opens no name that is not UTF-8
        pq.write_table(table, stream, write_page_checksum=True)


def _plain(cell: object) -> object:
    """JSON knows no NaN."""
    return None if isinstance(cell, float) and not isfinite(cell) else cell


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


_WRITERS: Mapping[str, Callable[[Path, Columns], None]] = {
    ".csv": _write_csv,
    ".tsv": _write_tsv,
    ".jsonl": _write_jsonl,
    ".parquet": _write_parquet,
}
