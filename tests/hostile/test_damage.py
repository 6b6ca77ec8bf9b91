"""Damage to everything that evgp keeps on the disk.

Each time a file is damaged and used again. Either nothing changes in the result, or the file is
named and made again with the same result, or it is refused in one sentence that names it.
"""

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import evgp
from evgp._linalg import BLOCK
from evgp.labelling.campaign import Campaign, fold
from evgp.labelling.campaign.journal import Journal
from evgp.labelling.web.auth import sessions_for
from tests.hostile.conftest import Tally
from tests.hostile.harms import GENERAL, cut, flip, holds, multiply, news, unknown, zeros
from tests.labelling.campaign.test_journal import LAST, by_sql

RULES = {"features": "nystrom-24", "method": "sharded", "seed": 3}
KINDS = (
    "features-*.npy", "rest-*.npy", "sums-1-*.npy", "sums-of-*.npy", "start-*.npy", "*.picks",
    "test-*/sums-1-*.npy", "test-*/sums-of-*.npy",
)  # fmt: skip


STATEMENTS = (
    f"DELETE FROM event WHERE {LAST}",
    "DELETE FROM event WHERE number > 9",
    "DELETE FROM event",
    "DELETE FROM event WHERE number = 5",
    "UPDATE event SET body = replace(body, '0', '1')",
    "UPDATE event SET at = '' WHERE number = 3",
    "DELETE FROM head",
    "UPDATE head SET number = 3",
    "INSERT INTO event SELECT 99, 'other', at, name, body, digest FROM event WHERE number = 4",
)


@pytest.fixture(scope="module")
def pools(tmp_path_factory) -> list[Path]:
    """Two pools of three small shards, and test points."""
    folder = tmp_path_factory.mktemp("pools")
    for name, n in (("one", 9000), ("other", 9000), ("test", 5000)):
        x = np.random.default_rng(n + len(name)).normal(size=(n, 5))
        np.save(folder / f"{name}.npy", x.astype(np.float32))
    return [folder / f"{name}.npy" for name in ("one", "other", "test")]


@pytest.fixture(scope="module")
def kept(pools, tmp_path_factory) -> Iterator[tuple[Path, list[list[int]]]]:
    """The caches of a run on each, and what was picked."""
    folder = tmp_path_factory.mktemp("kept")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evgp.selection.request.SHARD", BLOCK)
        result = [picks(pool, pools[2], folder / pool.stem) for pool in pools[:2]]
        yield folder, result


def picks(pool: Path, test: Path, cache: Path) -> list[int]:
    return evgp.pick(pool, 6, x_test=test, cache=cache, **RULES).indices.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_the_cache_of_a_sharded_run(  # noqa: PLR0917  fixtures
    pools, kept, kind, tmp_path, rng, tally: Tally
) -> None:
    harms = GENERAL if kind == "*.picks" else (*GENERAL, multiply, unknown)
    held = named = 0
    for harm in harms:
        copy = Path(shutil.copytree(kept[0], tmp_path / "copy"))
        path = rng.choice(sorted((copy / "one").glob(f"*/{kind}")))
        harm(path, rng)
        if kind != "*.picks":  # which would hide what the damage does to new ones
            for file in copy.glob("one/*/*.picks"):
                file.unlink()
        outcome, reported = news(lambda at=copy: picks(pools[0], pools[2], at / "one"))
        held += outcome == kept[1][0] and all(path.name in item for item in reported)
        named += bool(reported)
        shutil.rmtree(copy)
    # A cut or emptied list of picks looks like that of a stopped run: nothing to report.
    assert named >= len(harms) - (4 if kind == "*.picks" else 0)
    tally(
        "damage", "cache files: flipped bits, bytes, truncation, NaN, larger rows", len(harms), held
    )


@pytest.mark.parametrize("kind", KINDS)
def test_files_of_other_runs_pools_and_shards(pools, kept, kind, tmp_path, tally: Tally) -> None:
    held = 0
    copy = Path(shutil.copytree(kept[0], tmp_path / "copy"))
    ours, theirs = (sorted((copy / name).glob(f"*/{kind}")) for name in ("one", "other"))
    shutil.copy(theirs[0], ours[0])
    outcome, reported = news(lambda: picks(pools[0], pools[2], copy / "one"))
    held += outcome == kept[1][0] and len(reported) >= 1
    tried = 1
    if len(ours) > 1:  # shards change places
        ours[0].rename(copy / "aside")
        ours[1].rename(ours[0])
        (copy / "aside").rename(ours[1])
        for file in copy.glob("one/*/*.picks"):
            file.unlink()
        outcome, reported = news(lambda: picks(pools[0], pools[2], copy / "one"))
        held += outcome == kept[1][0] and len(reported) >= 1
        tried += 1
    tally("damage", "cache files from other pools, runs and shards", tried, held)


@pytest.fixture
def campaign(tmp_path) -> Path:
    """A closed campaign with picks and answers."""
    lines = "".join(f"m{i},{i % 7},{i * i % 11}\n" for i in range(40))
    (tmp_path / "mails.csv").write_text("key,a,b\n" + lines)
    record = Campaign.create(tmp_path / "c", tmp_path / "mails.csv", id="key", number=True)
    record.next(4)
    for row in range(20):
        record.answer(row, "label", row / 7, who="ann", key=f"k{row}")
    record.close()
    return record.path


def test_the_file_of_a_campaign(campaign, rng, tally: Tally) -> None:
    with closing(Journal.open(campaign)) as journal:
        whole = fold(journal.events())
    content, tried, held = campaign.read_bytes(), 0, 0

    def state() -> object:
        with closing(Journal.open(campaign)) as journal:
            return fold(journal.events())

    for harm in (*GENERAL, flip, flip, cut, zeros) * 10:
        campaign.write_bytes(content)
        harm(campaign, rng)
        tried += 1
        held += holds(campaign, whole, state)
    for statement in STATEMENTS:
        campaign.write_bytes(content)
        by_sql(campaign, statement)
        tried += 1
        held += holds(campaign, "refused in any case", state)
    tally("damage", "campaign files: flipped bits, bytes, truncation, SQL", tried, held)


def test_what_is_next_to_a_campaign(campaign, rng, tally: Tally) -> None:
    """Its encoded pool is made again, its pool is refused, another token is rejected."""
    whole, tried, held = campaign.read_bytes(), 0, 0
    (array,) = campaign.with_name("c.evgp-arrays").iterdir()
    pool = campaign.with_name("mails.csv")

    def items() -> object:
        campaign.write_bytes(whole)
        with closing(Campaign.open(campaign)) as record:
            return [item.row for item in record.next(9)]

    expected = items()
    for path in (array, pool):
        content = path.read_bytes()
        for harm in (*GENERAL, flip):
            harm(path, rng)
            tried += 1
            held += holds(path, expected, items)
            path.write_bytes(content)
    sessions, token = sessions_for(campaign, ask=True)
    assert token is not None
    content, cookie = token.read_bytes(), sessions.cookie(sessions.begin("ann"))
    for harm in (*GENERAL, flip, flip):
        harm(token, rng)
        tried += 1
        # Earlier cookies and tokens are either known or rejected.
        held += holds(token, True, lambda: _same_or_closed(campaign, sessions.token, cookie))
        token.write_bytes(content)
    tally("damage", "a campaign's encoded pool, pool and token", tried, held)


def _same_or_closed(campaign: Path, token: str | None, cookie: str) -> bool:
    sessions, _ = sessions_for(campaign, ask=True)
    return (sessions.read(cookie) is not None) == (sessions.token == token)
