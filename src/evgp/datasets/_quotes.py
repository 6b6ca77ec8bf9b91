"""Quotes in a CSV that were left open, and so swallow the rows below them."""

import re
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from evgp._errors import DatasetError
from evgp._reading import read_bytes
from evgp.datasets.columns import is_number

_MOST_LINES = 100
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")


def check_quotes(
    path: Path, content: pa.Buffer | None, delimiter: str, types: Sequence[pa.DataType] = ()
) -> None:
    """Refuse a quote that is never closed, or whose cell holds what look like rows of the table."""
    text = read_bytes(path) if content is None else content.to_pybytes()
    _check(path, text, delimiter, types)


def _check(path: Path, text: bytes, delimiter: str, types: Sequence[pa.DataType]) -> None:
    mark = re.escape(delimiter.encode())
    # A quote opens a cell only at its start; two in a row inside it stand for one.
    cells = re.compile(rb'(?:(?<=[\r\n%b])|\A(?:\xef\xbb\xbf)?)"([^"]*+(?:""[^"]*+)*+)("?)' % mark)
    ends = re.compile(rb" *(?:[\r\n%b]|\Z)" % mark)
    line, last = 1, 0
    for found in cells.finditer(text):
        inside, closed = found.groups()
        if closed and b"\n" not in inside and b"\r" not in inside:
            continue
        line += text[last : found.start(1)].count(b"\n")
        last = found.start(1)
        lines = re.split(r"\r\n?|\n", inside.decode("utf-8", errors="replace"))
        if not closed:
            what = "is never closed"
        elif len(lines) > _MOST_LINES:
            what = f"is closed {len(lines) - 1:,} lines below"
        elif not ends.match(text, found.end()):
            what = "is closed in the midst of another cell"
        elif _holds_rows(lines, delimiter, types):
            what = f"takes in lines that look like rows of their own ({len(lines) - 1:,})"
        else:
            continue
        raise DatasetError(
            f"{path}: expected a closing quote for each opening one, but the quote that opens in "
            f"line {line:,} {what}; mend that line (a quote inside a cell is written twice), or "
            "save the table as Parquet if the text is meant so"
        )


def _holds_rows(lines: Sequence[str], delimiter: str, types: Sequence[pa.DataType]) -> bool:
    """Whether the lines of a cell are the end of one row, whole rows, and the start of another."""
    width = len(types)
    if width < 2 or len(lines) < 2:
        return False
    head, *rows, tail = (line.split(delimiter) for line in lines)
    if len(head) + len(tail) != width + 1 or any(len(row) != width for row in rows):
        return False
    if len(rows) >= 3:
        return True
    cells = [*(zip(row, types, strict=True) for row in rows), zip(tail[:-1], types, strict=False)]
    numbers = [cell for row in cells for cell, kind in row if is_number(kind)]
    return len(numbers) >= 2 and all(_NUMBER.fullmatch(cell) for cell in numbers)
