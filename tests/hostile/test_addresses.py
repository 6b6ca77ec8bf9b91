"""Web servers that mean no good: one sentence, in time, and never more memory than a part takes."""

import os
import subprocess
import sys
import time

from tests.datasets.test_web import saved
from tests.datasets.webserver import BAD, serving
from tests.hostile.conftest import Tally

# Waits two seconds in place of sixty, and says what it took.
RUN = """
import re, sys
import evgp.datasets.web as web
web.WAIT = 2.0
from evgp.cli.main import main
try:
    main()
finally:
    status = open("/proc/self/status").read()  # of this program alone, not of who started it
    print("kB:", re.search(r"VmHWM:\\s+(\\d+)", status)[1], file=sys.stderr)
"""


def test_web_servers(tmp_path, tally: Tally) -> None:
    tried = held = 0
    with serving(saved(400)) as server:
        for command in ("pick", "plan"):
            for kind in BAD[:: 1 if command == "pick" else 3]:
                where = f"{server}/{kind}/pool.parquet"
                call = [sys.executable, "-c", RUN, command, where, "-k", "3", "-q"]
                call += ["-o", str(tmp_path / "picks.csv")] if command == "pick" else []
                begun = time.monotonic()
                done = subprocess.run(
                    call, check=False, capture_output=True, text=True, timeout=90,
                    env={**os.environ, "OMP_NUM_THREADS": "1"},
                )  # fmt: skip
                lines = [line for line in done.stderr.splitlines() if "kB:" not in line]
                small = int(done.stderr.rsplit("kB:", 1)[1]) < 900_000
                sentence = len(lines) == 1 and lines[0].startswith(f"evgp: {where}: ")
                in_time = time.monotonic() - begun < 60
                tried += 1
                held += done.returncode == 1 and small and sentence and in_time
                if not (done.returncode == 1 and small and sentence and in_time):
                    print(kind, done.returncode, done.stderr[-600:])
    assert not (tmp_path / "picks.csv").exists()
    tally("files", "web servers that send wrong, slow or no data", tried, held)
