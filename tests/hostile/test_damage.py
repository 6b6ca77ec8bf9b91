"""Damage to everything that evgp keeps on the disk.

Each time a file is damaged and used again. Either nothing changes in the result, or the file is
named and made again with the same result, or it is refused in one sentence that names it.
"""

import hashlib
import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import evgp
from evgp._errors import DamageWarning, EvgpError
from evgp._linalg import BLOCK
from evgp.arena import Row, Subject, Terms, compare
from evgp.arena.table import read_rows
from evgp.arena.table import write_rows as write_compared
from evgp.campaign import Campaign, fold
from evgp.campaign.journal import Journal
from evgp.datasets import known, load, read_labelled, write_rows
from evgp.studies.record import rows_of
from evgp.studies.runner import reproduce
from evgp.studies.store import Store
from evgp.studies.study import Cell
from evgp.web.sessions import keeper_of
from tests.campaign.test_journal import LAST, by_sql
from tests.hostile.conftest import Tally

Rng = np.random.Generator
Harm = Callable[[Path, Rng], object]
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


def flip(path: Path, rng: Rng) -> None:
    """One bit."""
    content = bytearray(path.read_bytes())
    content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
    path.write_bytes(content)


def scramble(path: Path, rng: Rng) -> None:
    """Some neighbouring bytes."""
    content = bytearray(path.read_bytes())
    at = int(rng.integers(len(content)))
    content[at : at + 64] = rng.bytes(len(content[at : at + 64]))
    path.write_bytes(content)


def cut(path: Path, rng: Rng) -> None:
    """The end is missing."""
    os.truncate(path, int(rng.integers(1, path.stat().st_size)))


def empty(path: Path, rng: Rng) -> None:
    """Nothing is left."""
    os.truncate(path, 0)


def grow(path: Path, rng: Rng) -> None:
    """Something follows the end."""
    with path.open("ab") as stream:
        stream.write(rng.bytes(int(rng.integers(1, 99))))


def zeros(path: Path, rng: Rng) -> None:
    """A page that a disk lost."""
    content = bytearray(path.read_bytes())
    at = int(rng.integers(len(content)))
    content[at : at + 4096] = bytes(len(content[at : at + 4096]))
    path.write_bytes(content)


def multiply(path: Path, rng: Rng) -> None:
    """Some rows are larger than they were."""
    x = np.load(path, mmap_mode="r+").reshape(-1)
    at = int(rng.integers(len(x)))
    x[at : at + 300] = x[at : at + 300] * 50 + 1


def unknown(path: Path, rng: Rng) -> None:
    """A row of NaN."""
    np.load(path, mmap_mode="r+")[rng.integers(2)] = np.nan


GENERAL: tuple[Harm, ...] = (flip, flip, flip, scramble, zeros, cut, empty, grow)


def news(work: Callable[[], object]) -> tuple[object, list[str]]:
    """What some work gives, and of which damage it warns; other warnings do not matter here."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        given = work()
    return given, [str(one.message) for one in caught if issubclass(one.category, DamageWarning)]


def holds(path: Path, whole: object, work: Callable[[], object]) -> bool:
    """The same result, whatever else; or a refusal in a sentence that names the file."""
    try:
        given, told = news(work)
    except EvgpError as error:
        return path.name in str(error) and "\n" not in str(error)
    assert all("\n" not in one for one in told)
    return given == whole


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
        made = [picks(pool, pools[2], folder / pool.stem) for pool in pools[:2]]
        yield folder, made


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
        given, told = news(lambda at=copy: picks(pools[0], pools[2], at / "one"))
        held += given == kept[1][0] and all(path.name in one for one in told)
        named += bool(told)
        shutil.rmtree(copy)
    # A cut or emptied list of picks is one of a run that was stopped: nothing to tell.
    assert named >= len(harms) - (4 if kind == "*.picks" else 0)
    tally("damage", "files of a cache: bits, bytes, cuts, NaN, larger rows", len(harms), held)


@pytest.mark.parametrize("kind", KINDS)
def test_files_of_other_runs_pools_and_shards(pools, kept, kind, tmp_path, tally: Tally) -> None:
    held = 0
    copy = Path(shutil.copytree(kept[0], tmp_path / "copy"))
    ours, theirs = (sorted((copy / name).glob(f"*/{kind}")) for name in ("one", "other"))
    shutil.copy(theirs[0], ours[0])
    given, told = news(lambda: picks(pools[0], pools[2], copy / "one"))
    held += given == kept[1][0] and len(told) >= 1
    tried = 1
    if len(ours) > 1:  # shards change places
        ours[0].rename(copy / "aside")
        ours[1].rename(ours[0])
        (copy / "aside").rename(ours[1])
        for file in copy.glob("one/*/*.picks"):
            file.unlink()
        given, told = news(lambda: picks(pools[0], pools[2], copy / "one"))
        held += given == kept[1][0] and len(told) >= 1
        tried += 1
    tally("damage", "files of a cache: those of other pools, runs and shards", tried, held)


@pytest.fixture
def campaign(tmp_path) -> Path:
    """A closed campaign with picks and answers."""
    lines = "".join(f"m{i},{i % 7},{i * i % 11}\n" for i in range(40))
    (tmp_path / "mails.csv").write_text("key,a,b\n" + lines)
    made = Campaign.create(tmp_path / "c", tmp_path / "mails.csv", id="key", number=True)
    made.next(4)
    for row in range(20):
        made.answer(row, "label", row / 7, who="ann", key=f"k{row}")
    made.close()
    return made.path


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
    tally("damage", "the file of a campaign: bits, bytes, cuts, SQL", tried, held)


def test_what_lies_next_to_a_campaign(campaign, rng, tally: Tally) -> None:
    """Its encoded pool is made again, its pool is refused, another token lets nobody in."""
    whole, tried, held = campaign.read_bytes(), 0, 0
    (array,) = campaign.with_name("c.evgp-arrays").iterdir()
    pool = campaign.with_name("mails.csv")

    def items() -> object:
        campaign.write_bytes(whole)
        with closing(Campaign.open(campaign)) as made:
            return [one.row for one in made.next(9)]

    wanted = items()
    for path in (array, pool):
        content = path.read_bytes()
        for harm in (*GENERAL, flip):
            harm(path, rng)
            tried += 1
            held += holds(path, wanted, items)
            path.write_bytes(content)
    keeper, token = keeper_of(campaign, asks=True)
    assert token is not None
    content, cookie = token.read_bytes(), keeper.written(keeper.begin("ann"))
    for harm in (*GENERAL, flip, flip):
        harm(token, rng)
        tried += 1
        # Whoever has a cookie or the token of before is either known, or let in by nobody.
        held += holds(token, True, lambda: _same_or_closed(campaign, keeper.token, cookie))
        token.write_bytes(content)
    tally("damage", "a campaign's encoded pool, pool and token", tried, held)


def _same_or_closed(campaign: Path, token: str | None, cookie: str) -> bool:
    keeper, _ = keeper_of(campaign, asks=True)
    return (keeper.read(cookie) is not None) == (keeper.token == token)


def test_the_cells_of_a_comparison(tmp_path, rng, tally: Tally) -> None:
    x = rng.normal(size=(30, 3))
    table = tmp_path / "prices.csv"
    rows = [",".join(f"{value:.4f}" for value in (*row, row.sum())) for row in x]
    table.write_text("\n".join(["a,b,c,price", *rows]) + "\n")
    terms = Terms(budget=4, batch=2, members=2, depth=1, width=8, steps=3)
    out, subject = tmp_path / "out", Subject(str(table), label="price")

    def compared() -> list[str]:
        found = compare([subject], ["random", "coreset"], out=out, terms=terms, seeds=[0], jobs=1)
        return [repr((row.strategy, row.round, row.mse, row.output_variance)) for row in found]

    whole, tried, held = compared(), 0, 0
    cells = sorted((out / "cells").iterdir())
    for turn, harm in enumerate((*GENERAL, *GENERAL, flip, flip, flip, flip)):
        harm(cells[turn % 2], rng)
        tried += 1
        held += holds(cells[turn % 2], whole, compared)
    contents = [cell.read_bytes() for cell in cells]
    for cell, content in zip(cells, reversed(contents), strict=True):
        cell.write_bytes(content)
    given, told = news(compared)
    tried, held = tried + 1, held + (given == whole and len(told) == 2)
    tables = out / "tables.json"
    content = tables.read_bytes()
    for harm in (*GENERAL, flip, flip):
        harm(tables, rng)
        tried += 1
        # The sentence names the file, or the folder and the table that would have changed.
        held += holds(tables, whole, compared) or holds(out, whole, compared)
        tables.write_bytes(content)
    assert compared() == whole
    tally("damage", "cells of evgp compare", tried, held)


def test_what_a_comparison_wrote_is_read_back(tmp_path, rng, tally: Tally) -> None:
    rows = tuple(
        Row("yacht", "regression", "evgp", seed, 0, 10, 10, 5, 0.1, 0.2, 3.0, mse=seed / 7)
        for seed in range(40)
    )
    path = tmp_path / "rows.parquet"
    write_compared(path, rows)
    whole, content, held = repr(read_rows(path)), path.read_bytes(), 0
    harms = (*GENERAL, *[flip] * 12)
    for harm in harms:
        harm(path, rng)
        held += holds(path, whole, lambda: repr(read_rows(path)))
        path.write_bytes(content)
    tally("damage", "Parquet files of evgp, read back", len(harms), held)


def test_picks_that_are_read_back(tmp_path, rng, tally: Tally) -> None:
    names = [f"digit-{row:04}" for row in range(900)]
    ids = [names[row] for row in rng.choice(900, 60, replace=False)]
    path = tmp_path / "picks.parquet"
    write_rows(path, {"rank": list(range(60)), "id": ids, "gain": rng.random(60).tolist()})

    def rows() -> list[int]:
        return read_labelled(path, None, names, id="image").rows.tolist()

    whole, content, held = rows(), path.read_bytes(), 0
    harms = (*GENERAL, *[flip] * 12)
    for harm in harms:
        harm(path, rng)
        held += holds(path, whole, rows)
        path.write_bytes(content)
    tally("damage", "Parquet files of evgp, read back", len(harms), held)


def test_cells_rows_and_records_of_studies(tmp_path, rng, tally: Tally) -> None:
    name, tried, held = "exchange-and-certificate", 0, 0
    reproduce(name, scale="smoke", out=tmp_path, jobs=1)
    folder = tmp_path / name
    whole = rows_of(folder)
    for path in (folder / "rows.csv", folder / "study.json"):
        content = path.read_bytes()
        for harm in (*GENERAL, *[flip] * 8):
            harm(path, rng)
            tried += 1
            held += holds(path, whole, lambda: rows_of(folder)) or (
                # Rows that do not fit their record are told by the name of either.
                holds(folder / "rows.csv", whole, lambda: rows_of(folder))
            )
            path.write_bytes(content)
    (path,) = (tmp_path / "cells").iterdir()
    document = json.loads(path.read_text())
    cell, store = Cell(document["work"], document["settings"]), Store(tmp_path)
    content, finished = path.read_bytes(), store.found(cell)
    assert finished is not None
    for harm in (*GENERAL, *[flip] * 8):
        harm(path, rng)
        tried += 1
        again = store.found(cell)
        damage = store.damage([cell])
        held += again == finished or (again is None and path.name in damage[0])
        path.write_bytes(content)
    tally("damage", "cells, rows and records of studies", tried, held)


def test_the_data_of_the_paper(tmp_path, rng, monkeypatch, tally: Tally) -> None:
    path = tmp_path / "boston.npz"
    np.savez(path, X=rng.normal(size=(506, 13)), y=rng.normal(size=506))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    made = {**known.KNOWN, "boston": replace(known.KNOWN["boston"], sha256=digest)}
    monkeypatch.setattr(known, "KNOWN", made)
    monkeypatch.setenv("EVGP_DATA", str(tmp_path))

    def points() -> list[list[float]]:
        return load("boston").x.tolist()

    whole, content, held = points(), path.read_bytes(), 0
    for harm in GENERAL:
        harm(path, rng)
        held += holds(path, whole, points)
        path.write_bytes(content)
    tally("damage", "data sets with a checksum", len(GENERAL), held)
