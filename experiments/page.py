"""The page that says of every claim of the paper whether our rows agree, made of the rows."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evgp._errors import DatasetError
from evgp.datasets import write_text
from experiments.named import NAMES, study_named
from experiments.pace import spoken
from experiments.reasons import reason
from experiments.record import ROWS, claims_of, from_rows, read_record
from experiments.runner import RESULTS
from experiments.study import Claim, Study

_HEAD = """# The paper's figures and tables, reproduced

Made by `python -m experiments.page` from the rows in `experiments/results/`; every figure is drawn
from the rows alone. In the folder of the repository, `python -m experiments --list` names the
studies, and `python -m experiments NAME` runs one: it goes on where it was stopped, and studies
share cells they have in common. Behind ± stands the standard deviation over seeds of what is
reached, and the standard error of a lead, a change or a correlation. Bands around curves are the
standard error over seeds, where the paper's are the standard deviation, unless the legend says
otherwise. Where strategies are compared, "holds" means that the paper's is ahead of each other one,
on every dataset, by more than one standard error of their paired difference over seeds; "holds in
part" that it has the best mean on some dataset at least, the most that one seed can show. One
standard error is a weak test: where there is no difference at all, chance passes it one time in
four with two seeds and one in five with three. A verdict speaks of our runs at the scale that is
named, no more. The mean over a curve is the area under it over its width, in numbers of labels, so
that both ends count half. Times are summed over cells, of which several may have run at once;
versions are those of the last run.

What holds for all studies and departs from the authors, or is not said by them: networks of dense
layers are trained in the standard parametrisation from Xavier's initialisation, where Adam and the
NTK parametrisation are not named; picks are those of the exact greedy, where the authors looked at
1,000 candidates at a time; picks are made with a noise of 1e-6 of the mean variance, where the
authors had 1e-4 for percentiles; test points are thinned above 25,000, where the authors kept
10,000; where training diverges it begins anew with a quarter of the step; NASWOT's codes are signs
for activations without a kink.
"""


def page(folder: Path, *, above: str = "../experiments/results") -> str:
    """Markdown of all studies; `above` is the way from the page to the folder."""
    made = {name: study_named(name) for name in NAMES}
    ran = {name: _record(folder / name) for name in NAMES}
    claims = {
        name: tuple(claims_of(made[name], folder / name)) if record else ()
        for name, record in ran.items()
    }
    parts = [_HEAD + _taken_over(ran), _overview(made, ran, claims)]
    for name, study in made.items():
        parts.append(_section(study, ran[name], claims[name], folder / name, f"{above}/{name}"))
    return "\n".join(parts)


def _record(folder: Path) -> dict[str, Any] | None:
    """How the rows of a folder were made; smoke runs are not for the page."""
    found = read_record(folder) if (folder / ROWS).exists() else None
    return None if found is None or found["scale"] == "smoke" else found


def _taken_over(ran: dict[str, dict[str, Any] | None]) -> str:
    """Which cells another command played."""
    found = {name: record for name, record in ran.items() if record and record.get("taken_over")}
    told = [
        f"{name} ({sum(one['taken_over'].values())} of {one['finished']})"
        for name, one in found.items()
    ]
    commands = dict.fromkeys(command for one in found.values() for command in one["taken_over"])
    if not told:
        return ""
    return (
        f"Some cells were played by `evgp compare` on the same terms and taken over: those of "
        f"{', '.join(told)}; the commands were " + ", ".join(f"`{one}`" for one in commands) + ".\n"
    )


_SHORT = {
    "holds": "held", "holds in part": "in part", "does not hold": "not held",
    "not measured": "not measured",
}  # fmt: skip


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
            f"{found.count(one)} {word}" for one, word in _SHORT.items() if one in found
        )
        lines.append(f"| [{name}](#{name}) | {study.paper} | {how} | {said} |")
    return "\n".join(lines) + "\n"


def _extent(record: dict[str, Any]) -> str:
    done = record["finished"], record["cells"]
    part = "" if done[0] == done[1] else f", {done[0]} of {done[1]} cells"
    return f"{record['scale']}{part}, {spoken(record['cell_seconds'])}"


def _effort(record: dict[str, Any]) -> str:
    """The time that cells took together, and what is known of how they ran side by side."""
    at_once = {None: "", 1: " run one at a time"}.get(
        record.get("jobs"), f" run up to {record.get('jobs')} at a time"
    )
    more = {"clock_seconds": "by the clock", "cpu_seconds": "of processor time"}
    known = [f"{spoken(record[name])} {words}" for name, words in more.items() if name in record]
    beside = f" ({', '.join(known) or 'by the clock: not recorded'})"
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
    command = record["command"]
    usual = f"python -m experiments {study.name} --scale {record['scale']}"
    again = f"Again: `{_as_now(command) or usual}`"
    again += "." if command else "; by which command it ran is not recorded."
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
        f"| {_cell(one.paper)} | {_cell(one.ours + _why(study, one))} | **{one.verdict}** |"
        for one in claims
    ]
    return "\n".join([*lines, ""])


def _as_now(command: str) -> str:
    """A recorded command, as it is called now.

    >>> _as_now("evgp reproduce width --scale laptop --out studies --jobs 2")
    'python -m experiments width --scale laptop --jobs 2'
    """
    command = command.replace("evgp reproduce", "python -m experiments")
    return command.replace(" --out studies", "")


def _why(study: Study, claim: Claim) -> str:
    found = reason(study.name, claim)
    return f"<br>*Why not:* {found}" if found else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def main(given: Sequence[str]) -> None:
    """Write the page of a folder of studies: `python -m experiments.page [STUDIES PAGE]`."""
    if len(given) not in (0, 2):
        raise DatasetError(
            f"expected a folder of studies and the page to write, or neither; got {len(given)} "
            "words"
        )
    folder, path = map(Path, given or (RESULTS, "docs/reproduction.md"))
    for needed in (folder, path.parent):
        if not needed.is_dir():
            raise DatasetError(f"{needed}: expected a folder, got none; say both folder and page")
    write_text(path, page(folder))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except DatasetError as error:
        sys.exit(f"evgp: {error}")
