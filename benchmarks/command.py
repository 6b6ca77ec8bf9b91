"""What a user waits for before anything is computed: the wheel, and the help of the command."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from zipfile import ZipFile

from benchmarks.common import ROOT, Options, record

RUNS = 20
EVGP = Path(sys.executable).parent / "evgp"
CALLS = {
    "evgp --help": ([EVGP, "--help"], RUNS),
    "import nothing": ([sys.executable, "-c", ""], RUNS),
    "import typer": ([sys.executable, "-c", "import typer"], RUNS),
    "import torch": ([sys.executable, "-c", "import torch"], 5),
}


def run(options: Options) -> None:
    """Medians of processes of their own, in turns; and the size of the wheel."""
    entries: dict[str, list[tuple[float, float]]] = {name: [] for name in CALLS}
    for turn in range(3 if options.small else RUNS):
        for name, (command, most) in CALLS.items():
            if turn < most:
                entries[name].append(_spent(command))
    rows: list[dict[str, object]] = []
    for name, pairs in entries.items():
        cpu, wall = (median(item) for item in zip(*pairs, strict=True))
        rows.append({"what": name, "runs": len(pairs), "cpu_s": cpu, "wall_s": wall})
    size, files = _wheel()
    rows.append({"what": "wheel", "size": size, "files": files})
    record(
        options,
        "command",
        "Before anything is computed",
        rows,
        [
            "cpu_s: user and system time of the process, which other work on the machine changes "
            "little; wall_s: on the clock, which it does change.",
            "wheel: built by hatchling from these sources.",
        ],
        seconds="Seconds are medians of alternating runs.",
    )


def _spent(command: list[str | Path]) -> tuple[float, float]:
    """Processor and wall seconds of a process of its own."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"expected {command} to run, got exit code {process.returncode}")
    return used.ru_utime + used.ru_stime, time.perf_counter() - began


def _wheel() -> tuple[int, int]:
    """Bytes, and files in it."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        (paths,) = Path(folder).glob("*.whl")
        with ZipFile(paths) as archive:
            return paths.stat().st_size, len(archive.namelist())
