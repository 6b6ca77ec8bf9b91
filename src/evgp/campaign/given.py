"""Answers from a file: what people typed, or what an export wrote."""

import csv
import gzip
import io
import json
import zlib
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from evgp._errors import CampaignError
from evgp._reading import check_memory, opened, read_json_text
from evgp.campaign.campaign import Campaign
from evgp.campaign.events import Kind, Value
from evgp.datasets import read_table
from evgp.datasets.csv import sign_of
from evgp.datasets.files import FORMULA_SIGNS
from evgp.datasets.labelled import cells_of

# Bytes that Python takes for an answer on its way into the campaign.
_ANSWER = 1_000
Answer: TypeAlias = tuple[int | str, Kind, Value | None]
_SAID: dict[str, Kind] = {
    "skip": "skip", "skipped": "skip", "unsure": "unsure", "cannot tell": "unsure",
}  # fmt: skip


def read_answers(
    campaign: Campaign, file: Path, label: str | None = None, *, delimiter: str | None = None
) -> list[tuple[int, Answer]]:
    """The answers in a file (CSV, TSV, JSON lines, Parquet, ...), each with its line, from 0.

    Rows are told by the column of the campaign's ids, or `id`, or by number in `row`; an export
    by `evgp_row` where the campaign has no ids. Labels are in `label`, by default "label", or what
    an export called it. A single quote that an export put before text like a formula is left out.
    """
    rows = _opened(file, delimiter)
    names = rows.names
    known = [one for one in (campaign.created.id, "id", "evgp_id", "row", "evgp_row") if one]
    if campaign.created.id is None and campaign.source.table is not None and "evgp_row" in names:
        known = ["evgp_row"]
    column = next_of(known, names)
    if column is None:
        raise CampaignError(
            f"{file}: expected a column {' or '.join(map(repr, dict.fromkeys(known)))}, got "
            f"{_listed(names)}"
        )
    said = label or _label_of(names)
    if said not in names:
        raise CampaignError(f"{file}: expected a column {said!r}, got {_listed(names)}")
    pairs = zip(*rows.read((column, said)), strict=True)
    quoted = file.name.lower().removesuffix(".gz").endswith((".csv", ".tsv", ".txt"))
    by_number = column in ("row", "evgp_row")
    names_there = frozenset(campaign.source.names)
    made: list[tuple[int, Answer]] = []
    for line, (row, value) in enumerate(pairs):
        if value is None or str(value).strip() == "":
            continue
        at = _number(file, line, row) if by_number else _name(names_there, str(row), quoted)
        made.append((line, _answer(campaign.created.classes, at, str(value), quoted)))
    return made


def next_of(wanted: Sequence[str], names: Sequence[str]) -> str | None:
    """The first of some names that is there.

    >>> next_of(["key", "id"], ("id", "label"))
    'id'
    """
    return next((one for one in wanted if one in names), None)


def _label_of(names: Sequence[str]) -> str:
    """What `export` called the labels: it adds underscores where the pool has such a column."""
    found = "label"
    while "evgp_row" in names and f"{found}_" in names:
        found += "_"
    return found


def _answer(classes: Sequence[str], at: int | str, value: str, quoted: bool) -> Answer:
    if value not in classes:
        said = _SAID.get(value.strip().lower())
        if said is not None:
            return at, said, None
        value = _unquoted(value) if quoted and _unquoted(value) in classes else value
    return at, "label", value


def _name(known: Set[str], name: str, quoted: bool) -> str:
    """The name of a row, without a quote that an export put in front of it."""
    bare = _unquoted(name)
    if not quoted or bare == name or bare not in known:
        return name
    if name in known:
        raise CampaignError(
            f"expected one row, got {name!r}, which is either {bare!r} or {name!r}; use .jsonl or "
            ".parquet"
        )
    return bare


def _unquoted(text: str) -> str:
    return text[1:] if text.startswith("'") and text[1:].startswith(FORMULA_SIGNS) else text


@dataclass(frozen=True)
class _Rows:
    """The names of a file's columns, and a way to read some of them."""

    names: tuple[str, ...]
    read: Callable[[Sequence[str]], list[Sequence[object]]]


def _opened(file: Path, delimiter: str | None) -> _Rows:
    if file.name.lower().endswith(".jsonl"):
        lines = _lines(file)
        names = tuple(dict.fromkeys(name for line in lines for name in line))
        return _Rows(names, lambda some: [[line.get(name) for line in lines] for name in some])
    table = read_table(file, delimiter=delimiter)
    check_memory(_ANSWER * len(table), str(file))
    names = table.names
    if file.name.lower().removesuffix(".gz").endswith((".csv", ".tsv", ".txt")):
        tabs = file.name.lower().removesuffix(".gz").endswith(".tsv")
        sign = sign_of(delimiter or ("tab" if tabs else ","))
        bare = tuple(_unquoted(name) for name in names)
        bare = bare if len(set(bare)) == len(bare) else names
        count = len(table)
        return _Rows(bare, lambda some: _texts(file, bare, count, sign, some))
    return _Rows(names, lambda some: [cells_of(table.column(name)) for name in some])


def _listed(names: Sequence[str]) -> str:
    return ", ".join(name[:40] for name in names[:20]) + (", ..." if len(names) > 20 else "")


def _texts(
    file: Path, names: Sequence[str], count: int, sign: str, some: Sequence[str]
) -> list[Sequence[object]]:
    """Cells of a CSV as they are written: 007 stays 007, and NA may be a class."""
    places = [names.index(name) for name in some]
    made: list[list[object]] = [[] for _ in some]
    before = csv.field_size_limit(2**31 - 1)  # an export has texts of any length
    wrong = CampaignError(f"{file}: expected {count} lines of {len(names)} cells; check quotes")
    try:
        with opened(file, CampaignError) as stream:
            packed = file.suffix.lower() == ".gz"
            content = gzip.GzipFile(fileobj=stream) if packed else stream
            text = io.TextIOWrapper(content, encoding="utf-8-sig", newline="")
            rows = (row for row in csv.reader(text, delimiter=sign) if row)
            next(rows, None)
            for row in rows:
                if len(row) != len(names):
                    raise wrong
                for cells, place in zip(made, places, strict=True):
                    cells.append(row[place])
    except (csv.Error, UnicodeDecodeError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise CampaignError(f"{file}: expected a CSV file, got {error}; check quotes") from error
    finally:
        csv.field_size_limit(before)
    if len(made[0]) != count:
        raise wrong
    return list(made)


def _lines(file: Path) -> list[dict[str, object]]:
    """JSON lines: an object each, by name."""
    rows: list[dict[str, object]] = []
    for number, line in enumerate(read_json_text(file, CampaignError).split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise CampaignError(f"{file}: expected JSON in line {number}, got none") from error
        if not isinstance(row, dict):
            raise CampaignError(f"{file}: expected an object in line {number}, got another value")
        rows.append(row)
    return rows


def _number(file: Path, line: int, row: object) -> int:
    text = str(row).strip()
    if not (text.isascii() and text.isdigit()):
        raise CampaignError(
            f"{file}: expected a row number in line {line}, got {row!r} (lines count from 0)"
        )
    return int(text)
