"""Examine a table before it is used: its columns, what looks suspicious, and all problems."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from evgp.datasets import checks
from evgp.datasets.columns import Category, counted, is_category, is_number, is_time, to_text
from evgp.datasets.encode import usable
from evgp.datasets.tables import Table
from evgp.datasets.vectors import Column, Vector, is_vector
from evgp.errors import DatasetError, TableProblems, quoted

# Maximum characters of a word that may name a row, and of an example that is shown.
_WORD, _SHOWN = 80, 40


@dataclass(frozen=True)
class ColumnProblem:
    """Why one column cannot be used, and the option that helps: impute, id or drop."""

    column: str
    words: str
    remedy: str


@dataclass(frozen=True)
class ColumnReport:
    """One column of a table: what it holds, and how it will be used."""

    name: str
    type: str
    use: str
    missing: int
    distinct: int | None
    example: str
    odd: tuple[str, ...] = ()


@dataclass(frozen=True)
class TableReport:
    """What `evgp.datasets.look` found: the columns, notes, problems, and options that help.

    `options` are arguments of `evgp.read_pool` and `evgp.pick`; None if no column can be used.
    """

    source: str
    rows: int
    columns: tuple[ColumnReport, ...]
    notes: tuple[str, ...] = ()
    problems: tuple[ColumnProblem, ...] = ()
    options: Mapping[str, object] | None = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [
            f"{self.source}: {counted(self.rows, 'row')}, {counted(len(self.columns), 'column')}"
        ]
        for column in self.columns:
            odd = f"; {'; '.join(column.odd)}" if column.odd else ""
            lines.append(f"  {column.name}: {column.type}, {column.use}{odd}")
        lines += [f"  problem: {problem.words}" for problem in self.problems]
        return "\n".join(lines)


def problems_of(table: Table, names: Sequence[str], max_categories: int) -> list[ColumnProblem]:
    """Return all reasons why columns of a table cannot be used."""
    problems = []
    for name in names:
        cells, kind = table.column(name), table.data.schema.field(name).type
        try:
            usable(table.source, name, kind)
        except DatasetError as error:
            problems.append(ColumnProblem(name, _bare(error, table.source), "drop"))
            continue
        if is_vector(kind):
            continue
        problems += [
            ColumnProblem(name, str(part), "impute") for part in checks.in_cells(name, cells)
        ]
        if is_number(kind) or is_time(kind):
            continue
        counts = checks.counts_of(to_text(cells))
        written = not pa.types.is_boolean(kind)
        try:
            if len(counts) > 1:
                checks.check(
                    table.source, name, counts, len(table), max_categories, written=written
                )
        except DatasetError as error:
            words = all(len(word) <= _WORD and " " not in word for word in counts)
            naming = words and len(counts) == len(table)
            problems.append(
                ColumnProblem(name, _bare(error, table.source), "id" if naming else "drop")
            )
    return problems


def several_texts(names: Sequence[str]) -> list[ColumnProblem]:
    """Return the problem of several columns of free text, where the user must choose."""
    words = f"{len(names)} columns of free text ({quoted(names)}); choose with text= which to embed"
    return [ColumnProblem(names[0], words, "text")] if len(names) > 1 else []


def _bare(error: DatasetError, source: str) -> str:
    return str(error).removeprefix(f"{source}: ")


def remedies(
    problems: Sequence[ColumnProblem], id: str | None, drop: Sequence[str]
) -> dict[str, object]:
    """Return the options with which a table with these problems can be read.

    >>> remedies([ColumnProblem("a", "", "impute"), ColumnProblem("b", "", "drop")], None, ["c"])
    {'impute': True, 'drop': ['c', 'b']}
    """
    out = [problem.column for problem in problems if problem.remedy in ("id", "drop")]
    naming = [problem.column for problem in problems if problem.remedy == "id"]
    options: dict[str, object] = {}
    if any(p.remedy == "impute" and p.column not in out for p in problems):
        options["impute"] = True
    if naming and id is None:
        options["id"] = naming[0]
    dropped = [*drop, *(name for name in out if name != options.get("id"))]
    return options | ({"drop": [*dict.fromkeys(dropped)]} if len(dropped) > len(drop) else {})


def all_problems(
    table: Table,
    names: Sequence[str],
    given: Mapping[str, Any],
    max_categories: int,
    texts: Sequence[str] = (),
) -> TableProblems | None:
    """Return the error for all problems of some columns of a table; `texts` are free text.

    None if there is only one, or if cells are missing and nothing else is wrong: those errors are
    complete by themselves.
    """
    problems = problems_of(table, [name for name in names if name not in texts], max_categories)
    if given.get("impute"):
        problems = [problem for problem in problems if problem.remedy != "impute"]
    if not texts and (len(problems) < 2 or all(p.remedy == "impute" for p in problems)):
        return None
    problems = several_texts(texts) + problems
    others = (name for name in table.names if name not in names)
    naming = (name for name in others if checks.is_id(name, table.column(name)))
    options = remedies(problems, given.get("id") or next(naming, None), given.get("drop", ()))
    options |= {"text": ",".join(texts)} if texts else {}
    out = {*_listed(options.get("drop")), options.get("id")}
    left = [name for name in names if name not in out]
    words = tuple(problem.words for problem in problems)
    return TableProblems(table.source, words, options if left else {}, given)


def _listed(names: object) -> list[str]:
    return [str(name) for name in names] if isinstance(names, list | tuple) else []


def report_of(
    table: Table,
    uses: Mapping[str, str],
    columns: Sequence[Column],
    notes: Sequence[str],
    *,
    problems: Sequence[ColumnProblem],
    options: Mapping[str, object] | None,
) -> TableReport:
    """Return the report on a table; `uses` are those of the columns that are not features."""
    # What is filled in or left out is listed with the columns.
    notes = [note for note in notes if not note.startswith("filled ") and " left out: " not in note]
    used = {column.name: _use(column) for column in columns}
    wrong = {problem.column: problem for problem in problems if problem.remedy in ("id", "drop")}
    reports = []
    for name in table.names:
        use = (
            "problem" if name in wrong else uses.get(name) or used.get(name) or "left out: constant"
        )
        cells = table.column(name)
        reports.append(_report(name, cells, table.raw.get(name, cells), use, notes))
    general = [note for note in notes if not any(_about(note, name) for name in table.names)]
    return TableReport(
        table.source, len(table), tuple(reports), tuple(general), tuple(problems), options
    )


def _use(column: Column) -> str:
    if isinstance(column, Category):
        return f"{len(column.values)} categories"
    if isinstance(column, Vector):
        return f"{column.length:,} numbers in each row"
    return ", ".join(["number", *column.cycles])


def _report(
    name: str, cells: pa.ChunkedArray, given: pa.ChunkedArray, use: str, notes: Sequence[str]
) -> ColumnReport:
    kind = cells.type
    missing = [] if is_vector(kind) else checks.in_cells(name, cells)
    plain = is_number(kind) or is_time(kind) or is_category(kind)
    first = given.drop_null()[:1]
    times = is_time(given.type) and len(first)
    shown = str(first.cast(pa.string())[0].as_py() if times else _cell(first))
    return ColumnReport(
        name,
        str(kind),
        use,
        sum(part.count for part in missing),
        _distinct(cells) if plain else None,
        shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}...",
        tuple(part for note in notes if (part := _about(note, name))),
    )


def _cell(first: pa.ChunkedArray) -> object:
    return first[0].as_py() if len(first) else ""


def _distinct(cells: pa.ChunkedArray) -> int:
    if pa.types.is_dictionary(cells.type):
        return len(checks.counts_of(to_text(cells)))
    return int(pc.count_distinct(cells).as_py())


def _about(note: str, name: str) -> str:
    """Return what a note says about one column; empty if it is about something else.

    >>> _about("column 'a': named like an id", "a"), _about("column 'ab' holds times", "a")
    ('named like an id', '')
    """
    before, separator, rest = note.partition(f"column {name!r}")
    if not separator or (before and not before.endswith(": ")):
        return ""
    return rest.lstrip(": ") if rest.startswith((" ", ":")) else ""
