"""What the benchmarks share: turns, records, fresh processes, peers and their environments."""

import csv
import datetime
import json
import os
import platform
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import scipy
import torch
from rich.console import Console
from rich.table import Table

import evgp
from benchmarks.quiet import Others, calm
from benchmarks.source import measured_commit

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"
BMDAL = ("torch==2.13.0", "bmdal-reg==3.0.2", "numpy")
Row = Mapping[str, object]


class Unavailable(Exception):
    """A peer cannot be had here; the message says why."""


@dataclass(frozen=True)
class Options:
    """How a benchmark is run: small sizes go to a folder that is not recorded."""

    small: bool = False
    repeats: int = 3
    out: Path | None = None
    others: Others = field(default_factory=Others)
    commit: str = field(default_factory=measured_commit)

    def folder(self) -> Path:
        """Where the records go."""
        return self.out or (ROOT / "demo" / "benchmarks" if self.small else RESULTS)


def timed(work: Callable[[], object]) -> float:
    """Wall seconds of one call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def in_turns(
    works: Mapping[str, Callable[[], float]], repeats: int
) -> tuple[dict[str, float], float]:
    """The best seconds of each, run in turns, and the most cores others used in any that counts."""
    entries: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            entries[name].append(calm(work))
    best = {name: min(pairs) for name, pairs in entries.items()}
    return {name: pair[0] for name, pair in best.items()}, max(pair[1] for pair in best.values())


def fresh(module: str, *arguments: object) -> dict[str, float]:
    """The last line, as JSON, that a module prints when run in a process of its own."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


class Peer:
    """Another library in its own environment, kept alive and told line by line what to do.

    Every answer is one line of JSON.
    """

    def __init__(self, name: str, packages: Sequence[str], *arguments: object) -> None:
        script = Path(__file__).parent / "peers" / f"{name}.py"
        command = [_environment(name, packages), script, *map(str, arguments)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        self.about = self._answer()

    def __call__(self, *words: object) -> dict[str, object]:
        """Do this, and answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """Let it go."""
        self._process.communicate()

    def _answer(self) -> dict[str, object]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if line:
            return json.loads(line)
        complaint = (self._process.communicate()[1].strip() or "no message").splitlines()[-1]
        status = self._process.returncode
        raise Unavailable("out of memory" if status == -9 else complaint)


def _environment(name: str, packages: Sequence[str]) -> Path:
    """The interpreter of a peer's environment, which is made if it is not there."""
    folder = ROOT / f".benchmarks-env-{name}"
    python, stamp = folder / "bin" / "python", folder / "installed.txt"
    if stamp.exists() and stamp.read_text() == "\n".join(packages):
        return python
    venv.create(folder, with_pip=True)
    command = [python, "-m", "pip", "install", "--quiet", *packages]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise Unavailable((errors or ["pip failed"])[-1])
    stamp.write_text("\n".join(packages))
    return python


def variance_left(matrix: torch.Tensor, picks: Sequence[int], noise: float) -> float:
    """The mean variance left under a kernel matrix, by one direct solve in float64."""
    rows = matrix[picks]
    inside = rows[:, picks] + noise * torch.eye(len(picks), dtype=torch.float64)
    return float((matrix.diagonal() - (rows * torch.linalg.solve(inside, rows)).sum(0)).mean())


def record(
    options: Options,
    name: str,
    title: str,
    rows: Sequence[Row],
    notes: Sequence[str] = (),
    *,
    seconds: str = "",
) -> None:
    """Print the rows, and write them as CSV and as a short page; `seconds` says how they count."""
    seconds = seconds or (
        f"Seconds are wall time, the best of {options.repeats} alternating runs; `others` is the "
        "number of cores that other processes used during the counted run."
    )
    folder = options.folder()
    folder.mkdir(parents=True, exist_ok=True)
    keys = list(dict.fromkeys(key for row in rows for key in row))
    with (folder / f"{name}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, keys, lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: shown(value) for key, value in row.items()} for row in rows)
    lines = [f"# {title}", "", _setting(options, name, seconds), "", *markdown(keys, rows), ""]
    lines += [f"- {note}" for note in notes]
    (folder / f"{name}.md").write_text("\n".join(lines).strip() + "\n")
    table = Table(*keys, title=title)
    for row in rows:
        table.add_row(*(shown(row.get(key, "")) for key in keys))
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(table)
    for note in notes:
        console.print(f"- {note}", markup=False)


def markdown(keys: Sequence[str], rows: Sequence[Row]) -> list[str]:
    """A table as Markdown lines."""
    lines = ["| " + " | ".join(keys) + " |", "|" + "---|" * len(keys)]
    return lines + [
        "| " + " | ".join(shown(row.get(key, "")) for key in keys) + " |" for row in rows
    ]


def shown(value: object) -> str:
    """A value for people: four digits are more than the clock knows."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.4g}"


def _setting(options: Options, name: str, seconds: str) -> str:
    small = " --small" if options.small else ""
    command = f"python -m benchmarks {name}{small} --repeats {options.repeats}"
    today = datetime.datetime.now(datetime.UTC).date()
    others = options.others.cores()
    return (
        f"`{command}`, {today}; {torch.get_num_threads()} threads on {os.cpu_count()} cores, "
        f"{others:.1f} used by other processes; evgp {evgp.__version__} ({options.commit}), "
        f"Python {platform.python_version()}, torch {torch.__version__}, NumPy {np.__version__}, "
        f"SciPy {scipy.__version__}. {seconds}"
    )
