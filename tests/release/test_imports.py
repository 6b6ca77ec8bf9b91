"""Help and completion wait for nothing heavy."""

import subprocess
import sys

import pytest

HEAVY = {
    "torch", "numpy", "scipy", "sklearn", "pyarrow", "matplotlib", "jaxtyping", "PIL", "jinja2",
    "rich", "dask", "distributed", "fastapi", "uvicorn", "numba", "httpx", "psutil", "packaging",
}  # fmt: skip
CODE = """
import atexit, sys
atexit.register(lambda: print("imported", *{name.split(".")[0] for name in sys.modules}))
sys.argv = ["evgp", *sys.argv[1:]]
from evgp.cli.main import main
main()
"""


def imported(*arguments: str) -> set[str]:
    command = [sys.executable, "-c", CODE, *arguments]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    first, *names = process.stdout.splitlines()[-1].split()
    assert first == "imported"
    return set(names)


@pytest.mark.parametrize("line", ["--help", "pick --help", "--version", "--show-completion bash"])
def test_help_imports_nothing_heavy(line: str) -> None:
    names = imported(*line.split())
    assert {"evgp", "typer"} <= names
    assert names.isdisjoint(HEAVY), sorted(names & HEAVY)


def test_the_package_loads_its_names_on_first_use() -> None:
    code = (
        "import sys, evgp; evgp.__version__, dir(evgp), evgp.EvgpError; "
        "before = 'torch' in sys.modules; evgp.pick; "
        "print(before, 'torch' in sys.modules, 'sklearn' in sys.modules)"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert process.stdout == "False True False\n"
