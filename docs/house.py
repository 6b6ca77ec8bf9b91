"""The table of docs/architecture.md: how far it is from a call to its picks, measured.

`python docs/house.py` measures this tree and writes the table; `--print` only prints it. What it
was before, in version 0.1, was measured by the same script on that version.
"""

import ast
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
TABLE = re.compile(r"(<!-- house -->\n).*?(<!-- /house -->)", re.DOTALL)
# Classes that type tests may name, where things should say themselves what they can do.
KINDS = {
    "criteria": "ExpectedVariance Linearised Percentile MutualInformation",
    "kernels and features": "NTK NNGP EmpiricalNTK Tabulated Wide Checked Raw Inducing Sketch",
    "searches": "Exact Lazy Stochastic Exchange Sharded TwoRounds",
    "pool sources": "Held Fitted Streamed Inputs Opened Asked Filed Table Shape",
}
CARRIERS = "classes with six or more of the parameters of a pick"
TOUCHED = "source files that a new option of `pick` touches (by hand)"
# Version 0.1, by this script; what adding an option touches was counted by hand.
BEFORE = {
    "functions entered by `evgp pick pool.csv`": "239 in 50 files",
    "of these before a posterior exists": "160",
    "functions entered by `evgp.pick(array, k)`": "142 in 31 files",
    "of these before one exists": "85",
    "type tests on criteria": "11",
    "type tests on kernels and features": "11",
    "type tests on searches": "6",
    "type tests on pool sources": "12",
    CARRIERS: "8 (Subject, Wanted, Asked, Wanted, Filed, Large, Plan, Rules)",
    TOUCHED: "11 to 13",
}
# Names of what can be asked of a pick, whatever it is called on the way.
PARAMETERS = set(
    "k budget costs x_test test_weights labelled x_labelled candidates network kernel criterion "
    "greedy search noise standardise storage thin features method memory executor cache seed id "
    "drop impute max_categories delimiter array image_size test pool".split()
)
GOALS = {
    "functions entered by `evgp pick pool.csv`": "130 in 30",
    "of these before a posterior exists": "70",
    "functions entered by `evgp.pick(array, k)`": "90 in 20",
    "of these before one exists": "40",
    CARRIERS: "3",
    TOUCHED: "2",
}
PROFILE = """
import importlib.util, os, sys, threading
root = os.path.dirname(importlib.util.find_spec("evgp").origin) + os.sep
seen, before = [], []
def look(frame, event, _):
    code = frame.f_code
    if event != "call" or not code.co_filename.startswith(root): return
    if code.co_name.startswith("<") or not code.co_flags & 1: return
    key = (code.co_filename, code.co_qualname)
    if key not in seen:
        if not before and "Posterior" in code.co_qualname: before.append(len(seen))
        seen.append(key)
threading.setprofile(look); sys.setprofile(look)
try:
    {call}
except SystemExit as end:
    if end.code: raise
finally:
    sys.setprofile(None)
print(len(seen), len({{file for file, _ in seen}}), before[0], file=sys.stderr)
"""


def road(call: str) -> tuple[int, int, int]:
    """Functions and files that a call goes through, and functions before a posterior exists."""
    done = subprocess.run(
        [sys.executable, "-c", PROFILE.format(call=call)],
        capture_output=True,
        text=True,
        check=True,
    )
    functions, files, before = done.stderr.strip().splitlines()[-1].split()
    return int(functions), int(files), int(before)


def type_tests(names: str, package: Path) -> int:
    """Calls of `isinstance` that name one of these classes."""
    wanted, count = set(names.split()), 0
    for file in package.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
                kinds = {one.id for one in ast.walk(node.args[1]) if isinstance(one, ast.Name)}
                count += bool(kinds & wanted)
    return count


def carriers(package: Path) -> list[str]:
    """Classes with six or more fields that are named like parameters of a pick."""
    found = []
    for file in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                fields = [one.target for one in node.body if isinstance(one, ast.AnnAssign)]
                names = {one.id for one in fields if isinstance(one, ast.Name)}
                found += [node.name] * (len(names & PARAMETERS) >= 6)
    return found


def measured(package: Path) -> dict[str, str]:
    """What the table says of this tree."""
    with tempfile.TemporaryDirectory() as folder:
        pool = Path(folder, "pool.csv")
        rows = "\n".join(f"{i * 7 % 300},{i * i % 97},{i % 13}" for i in range(300))
        pool.write_text(f"a,b,c\n{rows}\n", encoding="utf-8")
        argv = ["evgp", "pick", str(pool), "-k", "20", "-o", str(Path(folder, "picks.csv"))]
        command = road(f"from evgp.cli.main import main; sys.argv = {argv!r}; main()")
        array = (
            "import evgp, numpy as np; evgp.pick(np.random.default_rng(0).random((300, 4)), k=20)"
        )
        library = road(array)
    found = {}
    for names, (functions, files, before) in zip(
        [list(GOALS)[:2], list(GOALS)[2:]], [command, library], strict=True
    ):
        found[names[0]] = f"{functions} in {files} files"
        found[names[1]] = str(before)
    for kind, names in KINDS.items():
        found[f"type tests on {kind}"] = str(type_tests(names, package))
    found[CARRIERS] = f"{len(carriers(package))} ({', '.join(carriers(package))})"
    found[TOUCHED] = (
        "6 by one who was new here (`random_state`): `selection/request.py`, the docstring in "
        "`selection/pick.py`, `cli/_wanted.py`, `cli/_options.py`, `cli/_asked.py`, "
        "`cli/_output.py`"
    )
    return found


def table(found: dict[str, str]) -> str:
    """Before and after, next to the goals."""
    lines = ["| | version 0.1 | now | goal |", "|---|---:|---:|---:|"]
    for name, value in found.items():
        lines.append(f"| {name} | {BEFORE.get(name, '')} | {value} | {GOALS.get(name, '0')} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, then write the page, or only print the table with --print."""
    made = table(measured(ROOT / "src" / "evgp"))
    if "--print" in sys.argv:
        print(made)
        return
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(
        TABLE.sub(lambda match: f"{match[1]}{made}\n{match[2]}", page), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
