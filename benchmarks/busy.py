"""A machine on which others work too: threads that spin while they wait, and threads that do not.

The command has its threads wait without spinning (`OMP_WAIT_POLICY=PASSIVE`); the same command
without that, as torch has it, stands beside it.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.common import Options, record, timed
from evgp._processes import cores
from evgp.datasets.demo import write_diabetes

PASSIVE = "from evgp.cli.main import main; main()"
SPINNING = "from evgp.cli.main import app; app(prog_name='evgp')"
MOST = 300.0  # seconds, after which a run is ended


def run(options: Options) -> None:
    """Medians of processes of their own, in turns, alone and beside others."""
    count = cores()
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        table, pool = Path(folder) / "diabetes.csv", Path(folder) / "pool.npy"
        write_diabetes(table)
        np.save(pool, np.random.default_rng(0).normal(size=(500 if options.small else 3000, 8)))
        calls = {
            "evgp choose, 442 labels": ["choose", table, "--label", "progression", "--drop", "id"],
            "evgp pick, 50 of 3,000 rows": ["pick", pool, "-k", "50"],
        }
        for busy in (0, 2 * count):
            for name, words in calls.items():
                entries: dict[str, list[float]] = {PASSIVE: [], SPINNING: []}
                with _others(busy):
                    for _ in range(options.repeats):
                        for code, took in entries.items():
                            took.append(_seconds(code, words))
                passive, spinning = (median(entries[code]) for code in (PASSIVE, SPINNING))
                rows.append(
                    {"what": name, "others": busy, "spinning_s": spinning, "evgp_s": passive,
                     "ratio": spinning / passive}
                )  # fmt: skip
    record(
        options,
        "busy",
        "On a busy machine",
        rows,
        [
            f"others: processes that compute all the time beside it, on {count} cores.",
            f"A run that takes more than {MOST:.0f} s is ended, and counts as that.",
        ],
        seconds="Seconds are medians of alternating runs, including the start of Python and torch.",
    )


@contextmanager
def _others(count: int) -> Iterator[None]:
    """With so many processes that never rest."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _seconds(code: str, words: list[object]) -> float:
    env = {name: value for name, value in os.environ.items() if not name.startswith("OMP_")}
    command = [sys.executable, "-c", code, *map(str, words), "--quiet"]

    def work() -> None:
        try:
            subprocess.run(command, env=env, stdout=subprocess.DEVNULL, check=True, timeout=MOST)
        except subprocess.TimeoutExpired:
            pass

    return timed(work)
