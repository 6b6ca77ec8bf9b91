"""Write files atomically: every output of this package is complete, or not there at all."""

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
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Protocol, runtime_checkable

from evgp._checks import path_of
from evgp._extras import EXTRAS, lacking
from evgp.errors import (
    CannotWrite,
    DatasetError,
    DataWarning,
    DiskFull,
    DoesNotFit,
    EvgpError,
    WrongEnding,
    WrongFormat,
    quoted,
)

# NumPy reports how much it could not write, but not why.
_NUMPY = re.compile(r"\d+ requested and \d+ written")
_WHY = {
    errno.ENOSPC: "the disk is full",
    getattr(errno, "EDQUOT", errno.ENOSPC): "your quota on this disk is used up",
    errno.EFBIG: "the file would be larger than this system allows (ulimit -f)",
}
ADVICE = "make room there, or write to a folder on another disk, and run again"
# Advice for the files of a run that can be resumed.
KEPT = (
    "make room there, or name a folder on a larger disk (cache=), and run again: what was "
    "finished is kept"
)


@contextmanager
def naming(path: str | Path, *aliases: object, advice: str = ADVICE) -> Iterator[None]:
    """Turn errors while a file is written into errors that name the file.

    An error while writing to an open file says neither which file it was nor what to do. `aliases`
    are other names of the file, such as that of the temporary file that will replace it.
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
    """Return the error for a file that does not fit on the disk."""
    return DiskFull(f"{path}: {why}, in the folder {Path(os.path.realpath(path)).parent}; {advice}")


def reserve(path: str | Path, name: str | Path | None = None) -> None:
    """Allocate all of a sparse file on disk, because a memory map cannot report a full disk.

    `name` is the file's final name, for error messages.
    """
    handle = os.open(path, os.O_RDWR)
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(handle, 0, os.fstat(handle).st_size)
    except OSError as error:
        if error.errno in _WHY:
            with naming(path if name is None else name, advice=KEPT):
                raise
        # Some file systems cannot preallocate.
    finally:
        os.close(handle)


def check_room(folder: str | Path, need: int) -> None:
    """Refuse a run whose files would not fit on the disk."""
    place = Path(folder)
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if need > free:
        where = "are free on this disk"
        advice = "name a folder on a larger one (cache=), or use fewer features"
        raise DoesNotFit.of(DatasetError)(str(folder), need, free, where, advice)


Columns = Mapping[str, Sequence[object]]
# Characters that start a formula in a spreadsheet.
FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


@runtime_checkable
class Writes(Protocol):
    """A text stream to write to."""

    def write(self, text: str, /) -> object: ...


@dataclass(frozen=True)
class _Lines:
    """A stream that ends rows in a line feed.

    `csv` quotes carriage returns only if its rows end in one, so it is removed afterwards.
    """

    stream: Writes

    def write(self, row: str, /) -> object:
        return self.stream.write(row.removesuffix("\r\n") + "\n")


@contextmanager
def atomic(path: str | Path, *, advice: str = ADVICE) -> Iterator[Path]:
    """Yield a temporary file next to `path`, which replaces `path` on success only.

    Disk errors name `path`; `advice` says what to do if the disk is full.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic(Path(folder, "note.txt")) as part:
    ...         _ = part.write_text("whole")
    ...     [(file.name, file.read_text()) for file in Path(folder).iterdir()]
    [('note.txt', 'whole')]
    """
    # A link stays a link; its target is replaced.
    target = Path(os.path.realpath(path))
    if target.exists() and not (target.is_file() or target.is_dir()):
        raise WrongFormat.of(DatasetError)(
            str(path), "a plain file, or none yet", "another kind of file"
        )
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
    """Write named columns as CSV, TSV, JSON lines, Parquet or Excel, depending on the suffix.

    In CSV and TSV, text that looks like a formula gets a leading quote, with a `DataWarning`.

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
    if suffix != ".parquet":
        columns = _values(path, columns, nested=suffix == ".jsonl")
    if suffix in (".csv", ".tsv"):
        columns, risky = harmless(columns)
    with atomic(path) as part:
        _WRITERS[suffix](part, columns)
    if risky:
        looks = "1 cell looks" if risky == 1 else f"{risky:,} cells look"
        formula = "a spreadsheet formula and was" if risky == 1 else "spreadsheet formulas and were"
        warnings.warn(
            f"{path}: {looks} like {formula} prefixed with a single quote; .jsonl and .parquet "
            "keep text as it is",
            DataWarning,
            stacklevel=2,
        )


def _values(path: str | Path, columns: Columns, nested: bool) -> Columns:
    """Return Arrow columns as values; without lists and bytes, with a `DataWarning`, if flat."""
    import pyarrow as pa

    from evgp.datasets.columns import plain

    arrow = {name: cells for name, cells in columns.items() if isinstance(cells, pa.ChunkedArray)}
    flat = {} if nested else arrow
    out = [
        name
        for name, cells in flat.items()
        if pa.types.is_nested(cells.type) or pa.types.is_binary(cells.type)
    ]
    if out:
        warnings.warn(
            f"{path}: column {quoted(out)} left out, because this format has no lists; .parquet "
            "and .jsonl keep them",
            DataWarning,
            stacklevel=3,
        )
    return {
        name: plain(arrow[name]).to_pylist() if name in arrow else cells
        for name, cells in columns.items()
        if name not in out
    }


def harmless(columns: Columns) -> tuple[Columns, int]:
    """Add a quote before text that a spreadsheet would run as a formula, and count such cells.

    >>> harmless({"id": ["=1+2", "-3", "a"], "gain": [-0.5, 1.0, 2.0]})
    ({'id': ["'=1+2", '-3', 'a'], 'gain': [-0.5, 1.0, 2.0]}, 1)
    """
    escaped: dict[str, list[object]] = {}
    count = 0
    for name, cells in columns.items():
        risky = [isinstance(cell, str) and _is_formula(cell) for cell in cells]
        free = f"'{name}" if _is_formula(name) and f"'{name}" not in columns else name
        pairs = zip(cells, risky, strict=True)
        escaped[free] = [f"'{cell}" if bad else cell for cell, bad in pairs]
        count += sum(risky) + (free != name)
    return escaped, count


def _is_formula(cell: str) -> bool:
    return cell.startswith(FORMULA_SIGNS) and not _NUMBER.fullmatch(cell)


@contextmanager
def written(path: str | Path, text: str) -> Iterator[None]:
    """Write text in UTF-8; the file gets its name only if the block succeeds too."""
    with atomic(path) as part:
        part.write_text(text, encoding="utf-8", newline="\n")
        _flush(part)
        yield


def write_text(path: str | Path, text: str) -> None:
    """Write text in UTF-8, completely or not at all."""
    with written(path, text):
        pass


def check_writable(path: str | Path, suffixes: Sequence[str] = ()) -> None:
    """Refuse a path that cannot be written, before anything is computed.

    >>> check_writable("a.ods")
    Traceback (most recent call last):
    ...
    evgp.errors.WrongEnding: a.ods: expected a name ending in .csv, .tsv, .jsonl, .parquet or .xlsx
    """
    path = path_of(path, "path", error=DatasetError)
    known = tuple(suffixes) or tuple(_WRITERS)
    if path.is_dir():
        raise CannotWrite(str(path), "this is a directory", "add a file name")
    if path.suffix.lower() not in known:
        raise WrongEnding(str(path), known)
    if path.suffix.lower() == ".xlsx" and EXTRAS["excel"].absent():
        raise CannotWrite(str(path), lacking("excel"), "or choose another ending, such as .csv")
    if path.exists() and not path.is_file():
        raise CannotWrite(str(path), "this is a device or a pipe", "choose another name")
    parent = Path(os.path.realpath(path)).parent
    if not parent.is_dir():
        raise CannotWrite(str(path), f"the folder {parent} does not exist", "create it first")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise CannotWrite(str(path), f"the folder {parent} may not be written to")


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


def _write_separated(part: Path, columns: Columns, delimiter: str) -> None:
    with part.open("w", encoding="utf-8", newline="") as stream:
        write_separated(stream, columns, delimiter)


def _write_jsonl(part: Path, columns: Columns) -> None:
    with part.open("w", encoding="utf-8", newline="") as stream:
        for cells in zip(*columns.values(), strict=True):
            row = {name: _plain(cell) for name, cell in zip(columns, cells, strict=True)}
            stream.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")


def _write_parquet(part: Path, columns: Columns) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    own = pa.ChunkedArray
    table = pa.table(
        {name: c if isinstance(c, own) else pa.array(c) for name, c in columns.items()}
    )
    with part.open("wb") as stream:  # pyarrow cannot open names that are not UTF-8
        pq.write_table(table, stream, write_page_checksum=True)


def _write_xlsx(part: Path, columns: Columns) -> None:
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    book = Workbook(write_only=True)
    sheet = book.create_sheet("picks")

    def as_cell(value: object) -> object:
        if value is None or isinstance(value, bool | int | float):
            return _plain(value)
        cell = WriteOnlyCell(sheet, ILLEGAL_CHARACTERS_RE.sub("\ufffd", str(value)))
        cell.data_type = "s"  # text that begins with = is no formula
        return cell

    sheet.append([as_cell(name) for name in columns])
    for cells in zip(*columns.values(), strict=True):
        sheet.append([as_cell(cell) for cell in cells])
    with part.open("wb") as stream:
        book.save(stream)


def _plain(cell: object) -> object:
    """Replace NaN and infinity, which JSON does not have, by None."""
    return None if isinstance(cell, float) and not isfinite(cell) else cell


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


_WRITERS: Mapping[str, Callable[[Path, Columns], None]] = {
    ".csv": partial(_write_separated, delimiter=","),
    ".tsv": partial(_write_separated, delimiter="\t"),
    ".jsonl": _write_jsonl,
    ".parquet": _write_parquet,
    ".xlsx": _write_xlsx,
}


def copy_files(folder: str | Path, files: Mapping[str, Path]) -> None:
    """Copy files into a new or empty folder under new names: all of them, or none.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     _ = Path(place, "cat.png").write_text("image")
    ...     copy_files(Path(place, "picks"), {"1_cat.png": Path(place, "cat.png")})
    ...     [file.name for file in Path(place, "picks").iterdir()]
    ['1_cat.png']
    """
    target = Path(os.path.realpath(folder))
    check_new(folder)
    part = target.with_name(f".evgp-{secrets.token_hex(8)}.part")
    with naming(folder, str(part), part):
        try:
            part.mkdir()
            for name, file in files.items():
                shutil.copyfile(file, part / name)
            part.replace(target)  # an empty folder is replaced
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise


def check_new(folder: str | Path) -> None:
    """Refuse a folder that holds anything, or that cannot be created."""
    path = Path(os.path.realpath(folder))
    if path.exists() and not path.is_dir():
        raise CannotWrite(str(folder), "this is a file", "choose a new folder")
    if path.is_dir() and next(path.iterdir(), None) is not None:
        raise CannotWrite(str(folder), "this folder is not empty", "choose a new one")
    if not path.parent.is_dir():
        raise CannotWrite(
            str(folder), f"the folder {path.parent} does not exist", "create it first"
        )
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise CannotWrite(str(folder), f"the folder {path.parent} may not be written to")
