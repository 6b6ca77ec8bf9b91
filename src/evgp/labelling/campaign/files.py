"""Labels from files, and labelled rows to files."""

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from evgp._reading import check_memory, opened, read_json_text
from evgp.datasets import read_table, write_rows
from evgp.datasets.csv import Dialect, TextFile, unpacked
from evgp.datasets.files import FORMULA_SIGNS
from evgp.datasets.labelled import cells_of
from evgp.errors import CampaignError, MissingColumn, UnreadableFile, WrongFormat
from evgp.labelling.campaign.campaign import Campaign
from evgp.labelling.campaign.events import Kind, Value

_ANSWER_BYTES = 1_000  # Python's memory for one answer while it is saved
Answer: TypeAlias = tuple[int | str, Kind, Value | None]
_NO_LABEL: dict[str, Kind] = {
    "skip": "skip", "skipped": "skip", "unsure": "unsure", "cannot tell": "unsure",
}  # fmt: skip


def read_answers(
    campaign: Campaign, file: Path, label: str | None = None, *, delimiter: str | None = None
) -> list[tuple[int, Answer]]:
    """The answers in a file (CSV, TSV, JSON lines, Parquet, ...), each with its line, from 0.

    Rows are identified by the id column of the campaign, by `id`, or by number in `row`; in an
    export of a campaign without ids by `evgp_row`. Labels are in the column `label`, by default
    "label" or what an export called it. A single quote that an export put before text that looks
    like a formula is removed.
    """
    columns = _opened(file, delimiter)
    names = columns.names
    known = [name for name in (campaign.created.id, "id", "evgp_id", "row", "evgp_row") if name]
    if campaign.created.id is None and campaign.source.table is not None and "evgp_row" in names:
        known = ["evgp_row"]
    id_column = next((name for name in known if name in names), None)
    if id_column is None:
        raise WrongFormat.of(CampaignError)(
            str(file),
            f"a column {' or '.join(map(repr, dict.fromkeys(known)))} that says which row each "
            "label is for",
            _listed(names),
        )
    label_column = label or _label_of(names)
    if label_column not in names:
        raise MissingColumn.of(CampaignError)(str(file), label_column, tuple(names))
    pairs = zip(*columns.read((id_column, label_column)), strict=True)
    quoted = file.name.lower().removesuffix(".gz").endswith((".csv", ".tsv", ".txt"))
    by_number = id_column in ("row", "evgp_row")
    row_names = frozenset(campaign.source.names)
    answers: list[tuple[int, Answer]] = []
    for line, (cell, value) in enumerate(pairs):
        if value is None or str(value).strip() == "":
            continue
        row = _number(file, line, cell) if by_number else _name(row_names, str(cell), quoted)
        answers.append((line, _answer(campaign.created.classes, row, str(value), quoted)))
    return answers


def _label_of(names: Sequence[str]) -> str:
    """What `export` called the labels: it adds underscores if the pool has a column "label"."""
    name = "label"
    while "evgp_row" in names and f"{name}_" in names:
        name += "_"
    return name


def _answer(classes: Sequence[str], row: int | str, value: str, quoted: bool) -> Answer:
    if value not in classes:
        kind = _NO_LABEL.get(value.strip().lower())
        if kind is not None:
            return row, kind, None
        value = _unquoted(value) if quoted and _unquoted(value) in classes else value
    return row, "label", value


def _name(known: Set[str], name: str, quoted: bool) -> str:
    """The name of a row, without a quote that an export put before it."""
    bare = _unquoted(name)
    if not quoted or bare == name or bare not in known:
        return name
    if name in known:
        raise CampaignError(
            f"{name!r} is ambiguous: the pool has both {bare!r} and {name!r}; use a .jsonl or "
            ".parquet file"
        )
    return bare


def _unquoted(text: str) -> str:
    return text[1:] if text.startswith("'") and text[1:].startswith(FORMULA_SIGNS) else text


@dataclass(frozen=True)
class _Columns:
    """The names of a file's columns, and a function that reads some of them."""

    names: tuple[str, ...]
    read: Callable[[Sequence[str]], list[Sequence[object]]]


def _opened(file: Path, delimiter: str | None) -> _Columns:
    if file.name.lower().endswith(".jsonl"):
        lines = _lines(file)
        names = tuple(dict.fromkeys(name for line in lines for name in line))
        return _Columns(
            names, lambda chosen: [[line.get(name) for line in lines] for name in chosen]
        )
    table = read_table(file, delimiter=delimiter)
    check_memory(_ANSWER_BYTES * len(table), str(file))
    names = table.names
    if file.name.lower().removesuffix(".gz").endswith((".csv", ".tsv", ".txt")):
        tabs = file.name.lower().removesuffix(".gz").endswith(".tsv")
        content = unpacked(file) if file.suffix.lower() == ".gz" else None
        text = TextFile.of(file, Dialect(delimiter), "\t" if tabs else ",", content)
        bare = tuple(_unquoted(name) for name in names)
        bare = bare if len(set(bare)) == len(bare) else names
        count = len(table)
        return _Columns(bare, lambda chosen: _texts(text, bare, count, chosen))
    return _Columns(names, lambda chosen: [cells_of(table.column(name)) for name in chosen])


def _listed(names: Sequence[str]) -> str:
    return ", ".join(name[:40] for name in names[:20]) + (", ..." if len(names) > 20 else "")


def _texts(
    text_file: TextFile, names: Sequence[str], count: int, chosen: Sequence[str]
) -> list[Sequence[object]]:
    """Cells of a CSV file as they are written: 007 stays 007, and NA may be a class."""
    file, held = text_file.path, text_file.content
    places = [names.index(name) for name in chosen]
    columns: list[list[object]] = [[] for _ in chosen]
    before = csv.field_size_limit(2**31 - 1)  # an export has texts of any length
    wrong = CampaignError(f"{file}: expected {count} lines of {len(names)} cells; check its quotes")
    try:
        with opened(file, CampaignError) if held is None else io.BytesIO(held) as stream:
            text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
            rows = (row for row in csv.reader(text, delimiter=text_file.delimiter) if row)
            next(rows, None)
            for row in rows:
                if len(row) != len(names):
                    raise wrong
                for cells, place in zip(columns, places, strict=True):
                    cells.append(row[place])
    except (csv.Error, UnicodeDecodeError) as error:
        raise UnreadableFile.of(CampaignError)(
            str(file), f"not a valid CSV file ({error})", "check its quotes"
        ) from error
    finally:
        csv.field_size_limit(before)
    if len(columns[0]) != count:
        raise wrong
    return list(columns)


def _lines(file: Path) -> list[dict[str, object]]:
    """The objects of a file of JSON lines."""
    rows: list[dict[str, object]] = []
    for number, line in enumerate(read_json_text(file, CampaignError).split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UnreadableFile.of(CampaignError)(
                str(file), f"line {number} is not valid JSON"
            ) from error
        if not isinstance(row, dict):
            raise UnreadableFile.of(CampaignError)(str(file), f"line {number} is not a JSON object")
        rows.append(row)
    return rows


def _number(file: Path, line: int, row: object) -> int:
    text = str(row).strip()
    if not (text.isascii() and text.isdigit()):
        raise WrongFormat.of(CampaignError)(
            str(file), f"a row number in line {line} (from 0)", repr(row)
        )
    return int(text)


def export(campaign: Campaign, path: str | Path) -> int:
    """Write labelled rows with all their columns, their labels, and the number of answers.

    The suffix (.csv, .tsv, .jsonl, .parquet) decides on the format. The file is written completely
    or not at all. It must not be the pool itself. Returns the number of rows.
    """
    if Path(path).resolve() == campaign.pool_path.resolve():
        raise CampaignError(f"{path} is the pool of the campaign; choose another name")
    verdicts = {
        row: verdict for row, verdict in campaign.state.verdicts.items() if verdict.labelled
    }
    rows, source = list(verdicts), campaign.source
    columns: dict[str, list[object]] = {"evgp_row": list(rows)}
    if source.table is None or campaign.created.id is None:
        columns["evgp_id"] = [source.names[row] for row in rows]
    if source.table is not None:
        cards = [source.card(row) for row in rows]
        for name in source.table.names:
            columns[_free(name, columns)] = [card[name] for card in cards]
    columns[_free("label", columns)] = [verdicts[row].value for row in rows]
    columns[_free("answers", columns)] = [len(verdicts[row].answers) for row in rows]
    columns[_free("disputed", columns)] = [verdicts[row].disputed for row in rows]
    write_rows(path, columns)
    return len(rows)


def _free(name: str, used: Mapping[str, object]) -> str:
    return name if name not in used else _free(f"{name}_", used)
