"""Every parameter of every public callable with hostile values: it works, or says one sentence."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_argument_works_or_is_refused_clearly(tally) -> None:
    """In a process of its own: the checks of types that the tests add would refuse first."""
    folder = subprocess.run(
        [sys.executable, "-m", "tests.hostile.arguments"],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert folder.returncode == 0, folder.stderr[-2000:]
    document = json.loads(folder.stdout.splitlines()[-1])
    assert not document["failures"], "\n".join(document["failures"][:50])
    tally("arguments", "a wrong value for one parameter", document["tried"], document["held"])
