"""The pages that report, for every claim of the paper, whether our rows agree with it."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evgp.datasets import write_text
from evgp.errors import DatasetError
from experiments.reasons import reason
from experiments.runner import RESULTS, ROWS, claims_of, from_rows, read_record, spoken
from experiments.study import NAMES, Claim, Study, Verdict, study_named

_HEAD = """# The paper's claims, and what our runs say

{counts} The studies are run at the scale of a laptop, with one to five seeds, so that a claim
which holds in part may hold with more. Each has a page with its figures, its differences from the
paper, its command and its rows.

"""
_HOW = """## How to read it

- For comparisons of strategies, "holds" means that the paper's strategy beats every other one, on
  every dataset, by more than one standard error of the paired difference over seeds. "Holds in
  part" means that it has the best mean on at least one dataset, which is the most that one seed can
  show.
- One standard error is a weak test: if there is no difference at all, chance passes it one time in
  four with two seeds and one time in five with three. A verdict applies only to our runs at the
  given scale. [The suites](suites.md) compare strategies with 20 seeds and a stricter test.
- After ± comes the standard deviation over seeds of a result, and the standard error of a
  difference, a change or a correlation. Bands around curves are standard errors over seeds, unless
  the legend says otherwise; the paper shows standard deviations.
- The mean over a curve is the area under it divided by its width in labels, so the first and last
  point count half.
- Times are summed over cells, several of which may have run at once. Versions are those of the last
  run.

All studies differ from the paper, or make a choice that the paper does not state, as follows:

- Dense networks use the standard parametrisation with Xavier initialisation, unless Adam and the
  NTK parametrisation are named.
- Picks use exact greedy search; the authors considered 1,000 candidates at a time.
- The noise of picks is 1e-6 of the mean variance; the authors used 1e-4 for percentiles.
- Test points are thinned above 25,000; the authors kept 10,000.
- If training diverges, it restarts with a quarter of the step size.
- NASWOT's codes are signs for activations without a kink.

`python -m experiments.page` writes these pages from the rows in `experiments/results/`, and figures
are drawn from these rows alone. In the repository, `python -m experiments --list` lists the
studies, and `python -m experiments NAME` runs one. An interrupted run resumes, and studies share
common cells.

"""
_FRONT = "reproduction.md"
# Verdicts in the order of the table: losses first.
_SHORT: dict[Verdict, str] = {
    "does not hold": "not held", "holds in part": "in part", "holds": "held",
    "not measured": "not measured",
}  # fmt: skip


def pages(folder: Path, *, above: str = "../../experiments/results") -> dict[str, str]:
    """Markdown by file name: the claims of all studies, and a page for each study.

    `above` is the path from the page of a study to the results.
    """
    studies = {name: study_named(name) for name in NAMES}
    records = {name: _record(folder / name) for name in NAMES}
    claims = {
        name: tuple(claims_of(studies[name], folder / name)) if record else ()
        for name, record in records.items()
    }
    front = (
        _HEAD.format(counts=_counts(claims)), _claims(claims), "## Studies\n",
        _overview(studies, records, claims), _HOW + _taken_over(records), _listed(),
    )  # fmt: skip
    result = {_FRONT: "\n".join(front)}
    for name, study in studies.items():
        own = _section(study, records[name], claims[name], folder / name, f"{above}/{name}")
        result[_path(name)] = own
    return result


def _path(name: str) -> str:
    return f"reproduction/{name}.md"


def _counts(claims: dict[str, tuple[Claim, ...]]) -> str:
    values = [item.verdict for every in claims.values() for item in every]
    count = {verdict: values.count(verdict) for verdict in _SHORT}
    text = (
        f"Of {len(values)} claims, {count['does not hold']} do not hold in our runs, "
        f"{count['holds in part']} hold in part, and {count['holds']} hold."
    )
    return text + (f" {count['not measured']} were not measured." if count["not measured"] else "")


def _claims(claims: dict[str, tuple[Claim, ...]]) -> str:
    """One table of all claims, those that do not hold first."""
    lines = ["| | the paper says | study |", "|---|---|---|"]
    lines += [
        f"| **{verdict}** | {_cell(item.paper)} | [{name}]({_path(name)}) |"
        for verdict in _SHORT
        for name, every in claims.items()
        for item in every
        if item.verdict == verdict
    ]
    return "\n".join(lines) + "\n"


def _listed() -> str:
    """The pages of the studies, for the site."""
    names = "\n".join(_path(name).removesuffix(".md") for name in NAMES)
    return f"```{{toctree}}\n:hidden:\n:maxdepth: 1\n\n{names}\n```\n"


def _record(folder: Path) -> dict[str, Any] | None:
    """The record of a run, or None for smoke runs, which are not shown."""
    record = read_record(folder) if (folder / ROWS).exists() else None
    return None if record is None or record["scale"] == "smoke" else record


def _taken_over(ran: dict[str, dict[str, Any] | None]) -> str:
    """Which cells came from another command."""
    partly = {name: record for name, record in ran.items() if record and record.get("taken_over")}
    names = [
        f"{name} ({sum(record['taken_over'].values())} of {record['finished']})"
        for name, record in partly.items()
    ]
    commands = dict.fromkeys(
        command for record in partly.values() for command in record["taken_over"]
    )
    if not names:
        return ""
    return (
        f"Some cells were run by `evgp compare` with the same settings and reused: "
        f"{', '.join(names)}. Today the commands would be "
        + ", ".join(f"`{_as_now(command)}`" for command in commands)
        + ".\n"
    )


def _overview(
    studies: dict[str, Study],
    ran: dict[str, dict[str, Any] | None],
    claims: dict[str, tuple[Claim, ...]],
) -> str:
    lines = ["| study | paper | run | claims |", "|---|---|---|---|"]
    for name, study in studies.items():
        record = ran[name]
        how = "not yet" if record is None else _extent(record)
        verdicts = [claim.verdict for claim in claims[name]]
        summary = ", ".join(
            f"{verdicts.count(item)} {word}" for item, word in _SHORT.items() if item in verdicts
        )
        lines.append(f"| [{name}]({_path(name)}) | {study.paper} | {how} | {summary} |")
    return "\n".join(lines) + "\n"


def _extent(record: dict[str, Any]) -> str:
    done = record["finished"], record["cells"]
    part = "" if done[0] == done[1] else f", {done[0]} of {done[1]} cells"
    return f"{record['scale']}{part}, {spoken(record['cell_seconds'])}"


def _effort(record: dict[str, Any]) -> str:
    """Total time of the cells, and how many ran at once, if recorded."""
    at_once = {None: "", 1: " run one at a time"}.get(
        record.get("jobs"), f" run up to {record.get('jobs')} at a time"
    )
    more = {"clock_seconds": "wall time", "cpu_seconds": "CPU time"}
    known = [f"{spoken(record[name])} {words}" for name, words in more.items() if name in record]
    beside = f" ({', '.join(known) or 'wall time not recorded'})"
    return (
        f"{spoken(record['cell_seconds'])}, summed over cells{at_once} on {record['cores']} "
        f"cores{beside}"
    )


def _section(
    study: Study,
    record: dict[str, Any] | None,
    claims: tuple[Claim, ...],
    folder: Path,
    above: str,
) -> str:
    lines = [f"# {study.name}", "", f"{study.title} ({study.paper}). {study.shows}", ""]
    if record is None:
        lines += ["So far run at smoke scale only.", ""]
        return "\n".join(lines)
    if record["finished"] < record["cells"]:
        lines += [
            f"**{record['finished']} of {record['cells']} cells are finished;** the following "
            "refers to these.",
            "",
        ]
    if record["departures"]:
        lines += [f"*Differences from the paper:* {record['departures']}", ""]
    versions = ", ".join(f"{name} {number}" for name, number in record["versions"].items())
    command = record["command"]
    usual = f"python -m experiments {study.name} --scale {record['scale']}"
    again = f"To repeat it: `{_as_now(command) or usual}`"
    again += "." if command else " (the original command was not recorded)."
    lines += [
        f"{again} It took {_effort(record)}; {versions}. [Rows]({above}/{ROWS}).",
        "",
    ]
    for name in sorted(from_rows(study.draw, folder)):
        lines += [f"![{study.title}]({above}/{name}.png)", ""]
    if study.table is not None:
        lines += [from_rows(study.table, folder)]
    lines += ["| the paper says | our rows say | |", "|---|---|---|"]
    lines += [
        f"| {_cell(claim.paper)} | {_cell(claim.ours + _why(study, claim))} | **{claim.verdict}** |"
        for claim in claims
    ]
    return "\n".join([*lines, ""])


def _as_now(command: str) -> str:
    """A recorded command in its present spelling.

    >>> _as_now("evgp reproduce width --scale laptop --out studies --jobs 2")
    'python -m experiments width --scale laptop --jobs 2'
    >>> _as_now("evgp compare boston --out studies/regression")
    'evgp compare boston --scale columns --out experiments/results/regression'
    """
    command = command.replace("evgp reproduce", "python -m experiments")
    command = command.replace("--out studies/", "--scale columns --out experiments/results/")
    return command.replace(" --out studies", "")


def _why(study: Study, claim: Claim) -> str:
    values = reason(study.name, claim)
    return f"<br>*Why not:* {values}" if values else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def main(arguments: Sequence[str]) -> None:
    """Write the pages of a folder of studies: `python -m experiments.page [STUDIES DOCS]`."""
    if len(arguments) not in (0, 2):
        raise DatasetError(
            f"expected a folder of studies and one of pages, or neither; got {len(arguments)} words"
        )
    folder, docs = map(Path, arguments or (RESULTS, "docs"))
    for needed in (folder, docs):
        if not needed.is_dir():
            raise DatasetError(f"{needed}: expected a folder, got none; name both folders")
    (docs / _FRONT).with_suffix("").mkdir(exist_ok=True)
    for name, text in pages(folder).items():
        write_text(docs / name, text)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except DatasetError as error:
        sys.exit(f"evgp: {error}")
