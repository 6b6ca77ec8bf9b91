"""The page that says of every claim of the paper whether our rows agree, made of the rows."""

import json
import sys
from pathlib import Path
from typing import Any

from evgp.studies.named import NAMES, study_named
from evgp.studies.rows import read
from evgp.studies.runner import RECORD, ROWS, claims_of
from evgp.studies.study import Claim, Study

_HEAD = """# The paper's figures and tables, reproduced

Made by `python -m evgp.studies.page` from the rows in `studies/`; every figure is drawn from the
rows alone. `evgp reproduce --list` names the studies, `evgp reproduce NAME --scale laptop --out
studies` runs one: it goes on where it was stopped, and studies share cells they have in common.
Numbers behind ± are deviations over seeds. Where strategies are compared, "holds" means that the
paper's is ahead of each other one, on every dataset, by more than one standard error of their
paired difference over seeds; "holds in part" that it has the best mean on some dataset at least,
the most that one seed can show. A verdict speaks of our runs at the scale that is told, no more.

"""


def page(folder: Path, *, above: str = "../studies") -> str:
    """Markdown of all studies; `above` is the way from the page to the folder."""
    made = {name: study_named(name) for name in NAMES}
    ran = {name: _record(folder / name) for name in NAMES}
    claims = {
        name: tuple(claims_of(made[name], folder / name)) if record else ()
        for name, record in ran.items()
    }
    parts = [_HEAD, _overview(made, ran, claims)]
    for name, study in made.items():
        parts.append(_section(study, ran[name], claims[name], folder / name, f"{above}/{name}"))
    return "\n".join(parts)


def _record(folder: Path) -> dict[str, Any] | None:
    if not (folder / ROWS).exists() or not (folder / RECORD).exists():
        return None
    found = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    return dict(found)


def _overview(
    studies: dict[str, Study],
    ran: dict[str, dict[str, Any] | None],
    claims: dict[str, tuple[Claim, ...]],
) -> str:
    lines = ["| study | paper | run | claims |", "|---|---|---|---|"]
    for name, study in studies.items():
        record = ran[name]
        how = "not yet" if record is None else _extent(record)
        found = [one.verdict for one in claims[name]]
        said = ", ".join(
            f"{found.count(one)} {one}"
            for one in ("holds", "holds in part", "does not hold", "not measured")
            if one in found
        )
        lines.append(f"| [{name}](#{name}) | {study.paper} | {how} | {said} |")
    return "\n".join(lines) + "\n"


def _extent(record: dict[str, Any]) -> str:
    done = record["finished"], record["cells"]
    part = "" if done[0] == done[1] else f", {done[0]} of {done[1]} cells"
    return f"{record['scale']}{part}, {_time(record['cell_seconds'])}"


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _section(
    study: Study,
    record: dict[str, Any] | None,
    claims: tuple[Claim, ...],
    folder: Path,
    above: str,
) -> str:
    lines = [f"## {study.name}", "", f"{study.title} ({study.paper}). {study.shows}", ""]
    if record is None:
        lines += ["Not run yet at more than smoke scale.", ""]
        return "\n".join(lines)
    if record["finished"] < record["cells"]:
        lines += [
            f"**{record['finished']} of {record['cells']} cells are finished;** what follows is of "
            "these alone.",
            "",
        ]
    if record["departures"]:
        lines += [f"*Where it departs from the paper:* {record['departures']}", ""]
    versions = ", ".join(f"{name} {number}" for name, number in record["versions"].items())
    lines += [
        f"`{record['command']}`: {_time(record['cell_seconds'])} of work on {record['cores']} "
        f"cores; {versions}. [Rows]({above}/{ROWS}).",
        "",
    ]
    for path in sorted(folder.glob("*.png")):
        lines += [f"![{study.title}]({above}/{path.name})", ""]
    if study.table is not None:
        lines += [study.table(read(folder / ROWS))]
    lines += ["| the paper says | our rows say | |", "|---|---|---|"]
    lines += [f"| {_cell(one.paper)} | {_cell(one.ours)} | **{one.verdict}** |" for one in claims]
    return "\n".join([*lines, ""])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    given = sys.argv[1:] or ["studies", "docs/reproduction.md"]
    Path(given[1]).write_text(page(Path(given[0])), encoding="utf-8")
