"""The table of docs/architecture.md: the size of the package, and the way from a call to its picks.

`python docs/house.py` measures this tree and writes the table; `--print` only prints it. Version
0.1 was measured by the same script.
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
    "criteria": "ExpectedVariance Linearised Percentile MutualInformation CellMeans",
    "kernels and features": "NTK NNGP EmpiricalNTK Tabulated Wide Checked Raw Inducing Sketch",
    "searches": "Exact Lazy Stochastic Exchange Sharded TwoRounds OnePerCell",
    "pool sources": "Held InMemory Fitted Streamed StreamedTable StreamedArray Inputs Opened Asked "
    "Filed Table Shape PoolData FileData TableData ArrayData ImageData",
}
CARRIERS = "classes with six or more of the parameters of a pick"
# What no script can see, counted by hand: in version 0.1, now, and the goal.
BY_HAND = {
    "source files that a new option of `pick` touches": (
        "11 to 13",
        "2, and the file that acts on it: `selection/request.py` and `cli/_options.py`; "
        "4 for one of reading",
        "2",
    ),
    "source files for a new activation / criterion / strategy": (
        "3 / 5 / 4 to 5",
        "3 / 2, 3 if its class is public / 3",
        "1",
    ),
    "source files for a new dataset / study": ("2 / 3", "2 / 2", "1"),
    "ways to scale columns / encode a table": (
        "7 / 2",
        "1 / 1",
        "1 / 1",
    ),
    "readers of tables / HTML pipelines / frameworks for experiments": (
        "5 / 4 / 2",
        "1 / 1 / 1",
        "1 / 1 / 1",
    ),
}
# Version 0.1, by this script.
BEFORE = {
    "files in the package": "297",
    "lines": "39,347",
    "functions of more than 60 lines": "12",
    "class names that mean two or more things": "22",
    "functions entered by `evgp pick pool.csv`": "239 in 50 files",
    "of these before a posterior exists": "160",
    "functions entered by `evgp.pick(array, k)`": "142 in 31 files",
    "of these before one exists": "85",
    "type tests on criteria": "11",
    "type tests on kernels and features": "11",
    "type tests on searches": "6",
    "type tests on pool sources": "12",
    CARRIERS: "8 (Subject, Wanted, Asked, Wanted, Filed, Large, Plan, Rules)",
}
# Names of what can be asked of a pick, whatever it is called on the way.
PARAMETERS = set(
    "k budget costs x_test test_weights labelled x_labelled candidates network kernel criterion "
    "greedy search final noise scale storage thin features method memory executor cache seed id "
    "drop impute max_categories delimiter array image_size test pool".split()
)
GOALS = {
    "files in the package": "about 150",
    "lines": "about 22,000",
    "functions entered by `evgp pick pool.csv`": "130 in 30",
    "of these before a posterior exists": "70",
    "functions entered by `evgp.pick(array, k)`": "90 in 20",
    "of these before one exists": "40",
    CARRIERS: "3",
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
    classes, count = set(names.split()), 0
    for file in package.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
                kinds = {item.id for item in ast.walk(node.args[1]) if isinstance(item, ast.Name)}
                count += bool(kinds & classes)
    return count


def carriers(package: Path) -> list[str]:
    """Classes with six or more fields that are named like parameters of a pick."""
    results = []
    for file in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                fields = [item.target for item in node.body if isinstance(item, ast.AnnAssign)]
                names = {field.id for field in fields if isinstance(field, ast.Name)}
                results += [node.name] * (len(names & PARAMETERS) >= 6)
    return results


def code_lines(function: ast.AST, lines: list[str]) -> int:
    """Lines of a function with its signature, without its docstring, blank and comment lines."""
    assert isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
    own = set(range(function.lineno, (function.end_lineno or function.lineno) + 1))
    if ast.get_docstring(function) is not None:
        docstring = function.body[0]
        own -= set(range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1))
    kept = (lines[at - 1].strip() for at in own)
    return sum(bool(line) and not line.startswith("#") for line in kept)


def size(package: Path) -> dict[str, str]:
    """How large the package is, and how many names in it are ambiguous."""
    files, lines, long = sorted(package.rglob("*.py")), 0, 0
    homes: dict[str, set[Path]] = {}
    for file in files:
        text = file.read_text(encoding="utf-8")
        tree, rows = ast.parse(text), text.splitlines()
        lines += len(rows)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                long += code_lines(node, rows) > 60
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, set()).add(file)
    return {
        "files in the package": f"{len(files)}",
        "lines": f"{lines:,}",
        "functions of more than 60 lines": f"{long}",
        "class names that mean two or more things": f"{sum(len(at) > 1 for at in homes.values())}",
    }


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
    values = size(package)
    roads = [name for name in GOALS if "entered" in name or "of these" in name]
    for names, (functions, files, before) in zip(
        [roads[:2], roads[2:]], [command, library], strict=True
    ):
        values[names[0]] = f"{functions} in {files} files"
        values[names[1]] = str(before)
    for kind, names in KINDS.items():
        values[f"type tests on {kind}"] = str(type_tests(names, package))
    values[CARRIERS] = f"{len(carriers(package))} ({', '.join(carriers(package))})"
    return values


def table(found: dict[str, str]) -> str:
    """Before and after, next to the goals."""
    lines = ["| | version 0.1 | now | goal |", "|---|---:|---:|---:|"]
    for name, value in found.items():
        lines.append(f"| {name} | {BEFORE.get(name, '')} | {value} | {GOALS.get(name, '0')} |")
    for name, values in BY_HAND.items():
        lines.append(f"| {name} (by hand) | {' | '.join(values)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, then write the page, or only print the table with --print."""
    result = table(measured(ROOT / "src" / "evgp"))
    if "--print" in sys.argv:
        print(result)
        return
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(
        TABLE.sub(lambda match: f"{match[1]}{result}\n{match[2]}", page), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
