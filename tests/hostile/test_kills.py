"""SIGKILL at random moments: what was finished or acknowledged is there, the result the same."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evgp.labelling.campaign import Campaign
from tests.hostile.conftest import Tally
from tests.labelling.campaign.test_journal import killed as writers_killed

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("what", "kills", "words"),
    [
        ("sharded", 24, "sharded runs resumed from their cache"),
        ("removed", 8, "sharded runs resumed from the user's cache, then emptied"),
        ("cells", 12, "comparisons resumed from their cells"),
        ("page", 12, "labelling servers in use"),
        ("migrations", 16, "campaigns of version 0.1 during their upgrade"),
    ],
)
def test_work_continues_after_kills(  # noqa: PLR0917  fixtures
    what, kills, words, tmp_path, rng, tally: Tally
) -> None:
    command = [sys.executable, "-m", "tests.hostile.killed", what, str(tmp_path), str(kills)]
    done = subprocess.run(
        [*command, str(rng.integers(2**31))], cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    hits = int(done.stdout)
    assert hits >= kills
    tally("kills", words, hits, hits)


def test_no_acknowledged_answer_is_lost(tmp_path, tally: Tally) -> None:
    """Three processes write to a campaign at once; all are killed, sixteen times."""
    pool = tmp_path / "pool.csv"
    pool.write_text("a,b\n" + "".join(f"{i},{i * i % 7}\n" for i in range(30)))
    campaign = Campaign.create(tmp_path / "c", pool, classes=["spam", "ham"])
    campaign.close()
    acknowledged = writers_killed(campaign.path, 16)
    assert acknowledged > 16
    with_answers = len(Campaign.open(campaign.path).log()) - 1
    tally("kills", "processes that write to one campaign", 3 * 16, 3 * 16)
    tally(
        "kills", "answers acknowledged before a kill", acknowledged, min(acknowledged, with_answers)
    )
