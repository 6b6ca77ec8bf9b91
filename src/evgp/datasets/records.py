"""Read JSON lines and Excel workbooks into memory, after checking that they fit."""

import re
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json

from evgp._extras import lacking
from evgp._reading import check_bomb, check_memory, opened
from evgp.datasets.arrays import check_columns
from evgp.datasets.dialect import encoding_of, recoded
from evgp.datasets.parquet import native
from evgp.errors import DatasetError, EmptyFile, WrongFormat

# Bytes of a block. A row must fit into one.
_BLOCK = 2**25
# Bytes of memory for each byte of JSON, and for each byte of a workbook's XML.
_PER_BYTE = 3
_MARK = b"\xef\xbb\xbf"
_ROW = re.compile(r"in row (\d+)")
# What Excel shows if a formula fails.
_FAILED = re.compile(r"#(N/A|DIV/0!|VALUE!|REF!|NAME\?|NUM!|NULL!)")


def read_lines(path: Path, encoding: str | None, content: pa.Buffer | None) -> pa.Table:
    """Read a file with one JSON object per line; inner objects become columns 'outer.inner'."""
    size = path.stat().st_size if content is None else content.size
    check_memory(_PER_BYTE * size, str(path))
    content = recoded(path, content, encoding or encoding_of(path, content)[0])
    if content is not None and bytes(memoryview(content)[:3]) == _MARK:
        content = content.slice(3)
    try:
        data = pyarrow.json.read_json(
            _without_mark(path) if content is None else pa.BufferReader(content),
            read_options=pyarrow.json.ReadOptions(block_size=_BLOCK),
        )
    except pa.ArrowInvalid as error:
        raise _explained(path, str(error)) from error
    while any(pa.types.is_struct(field.type) for field in data.schema):
        data = data.flatten()
    check_columns(data.num_columns, str(path))
    return data


def _without_mark(path: Path) -> pa.NativeFile:
    file = native(path)
    if file.read(3) != _MARK:
        file.seek(0)
    return file


def _explained(path: Path, message: str) -> Exception:
    first = message.splitlines()[0].removeprefix("JSON parse error: ")
    if "Empty JSON" in message:
        return EmptyFile(str(path))
    if row := _ROW.search(first):
        # Arrow counts rows from 0, and within a block.
        first = first[: row.start()].strip() + f" in line {int(row[1]) + 1:,} or later"
    return WrongFormat.of(DatasetError)(
        str(path), "one JSON object per line, with the same type in each column", first
    )


def read_workbook(path: Path) -> tuple[pa.Table, str]:
    """Read the first sheet of a workbook; return it, and a note if there are several."""
    try:
        import openpyxl
    except ImportError as error:
        raise DatasetError(f"{path}: {lacking('excel')}, or save the sheet as .csv") from error
    try:
        with opened(path) as stream:
            _check_zip(path, stream)
            book = openpyxl.load_workbook(stream, read_only=True, data_only=True)
            sheet, titles = book.worksheets[0], [sheet.title for sheet in book.worksheets]
            data = _table(path, sheet.iter_rows(values_only=True))
    except DatasetError:
        raise
    except Exception as error:  # openpyxl may raise anything if a file is damaged
        raise WrongFormat.of(DatasetError)(
            str(path), "an Excel workbook (.xlsx)", advice="save it again, or save the sheet as CSV"
        ) from error
    return data, f"read {titles[0]!r}, the first of {len(titles)} sheets" * (len(titles) > 1)


def _check_zip(path: Path, stream: Any) -> None:
    with zipfile.ZipFile(stream) as archive:
        need = sum(entry.file_size for entry in archive.infolist())
    check_bomb(need, path.stat().st_size, str(path))
    check_memory(_PER_BYTE * need, str(path))
    stream.seek(0)


def _table(path: Path, rows: Iterable[Sequence[object]]) -> pa.Table:
    filled = [row for row in rows if any(cell is not None for cell in row)]
    if not filled:
        raise EmptyFile(str(path))
    width = max(at + 1 for row in filled for at, cell in enumerate(row) if cell is not None)
    check_columns(width, str(path))
    header = [*filled[0], *[None] * width][:width]
    names = [
        f"Unnamed: {at}" if name is None or not str(name).strip() else str(name).strip()
        for at, name in enumerate(header)
    ]
    cells = (
        [_cell(row[at]) if at < len(row) else None for row in filled[1:]] for at in range(width)
    )
    return pa.Table.from_arrays([_column(column) for column in cells], names)


def _cell(value: object) -> object:
    return None if isinstance(value, str) and (not value or _FAILED.fullmatch(value)) else value


def _column(cells: Sequence[object]) -> pa.Array:
    try:
        return pa.array(cells)
    except (pa.ArrowException, OverflowError):  # of several types
        return pa.array([None if cell is None else str(cell) for cell in cells])
