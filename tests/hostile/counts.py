"""The table of what was tried: `counts.csv` here, and the same in docs/reliability.md."""

import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

FILE = Path(__file__).with_name("counts.csv")
PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
_TABLE = re.compile(r"(<!-- counts -->\n).*?(<!-- /counts -->)", re.DOTALL)


@dataclass(frozen=True)
class Count:
    """How often something was tried, how often the promise held, and the seconds it took."""

    part: str
    what: str
    tried: int
    held: int
    seconds: float


def merged(counts: Iterable[Count]) -> list[Count]:
    """Counts of the same kind added up, in order of first occurrence."""
    sums: dict[tuple[str, str], Count] = {}
    for count in counts:
        key = (count.part, count.what)
        old = sums.get(key, Count(*key, 0, 0, 0.0))
        sums[key] = Count(
            *key, old.tried + count.tried, old.held + count.held, old.seconds + count.seconds
        )
    parts = list(dict.fromkeys(part for part, _ in sums))
    return sorted(sums.values(), key=lambda count: parts.index(count.part))


def write(counts: Iterable[Count]) -> None:
    """Record the counts, and put their table on the page."""
    rows = merged(counts)
    with FILE.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([field.name for field in fields(Count)])
        writer.writerows([*astuple(row)[:-1], f"{row.seconds:.0f}"] for row in rows)
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(_TABLE.sub(lambda m: f"{m[1]}{table(read())}\n{m[2]}", page), encoding="utf-8")


def read() -> list[Count]:
    """The recorded counts."""
    with FILE.open(newline="", encoding="utf-8") as stream:
        return [
            Count(row["part"], row["what"], int(row["tried"]), int(row["held"]),
                  float(row["seconds"]))
            for row in csv.DictReader(stream)
        ]  # fmt: skip


def table(counts: Sequence[Count]) -> str:
    """The counts as a table in Markdown."""
    lines = ["| part | what was tried | times | held |", "|---|---|---:|---:|"]
    part = ""
    for row in counts:
        shown = row.part if row.part != part else ""
        lines.append(f"| {shown} | {row.what} | {row.tried:,} | {row.held:,} |")
        part = row.part
    return "\n".join(lines)


def shown() -> str:
    """The table as it is on the page."""
    text = _TABLE.search(PAGE.read_text(encoding="utf-8"))
    assert text is not None, f"{PAGE.name} has no place for the counts"
    return text[0].removeprefix(text[1]).removesuffix(text[2]).strip()
