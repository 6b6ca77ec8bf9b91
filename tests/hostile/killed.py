"""`python -m tests.hostile.killed sharded FOLDER 20 0`: work that is killed again and again.

A process of its own, so that it can be forked: it has no threads. Each time a copy of it does the
work, and gets SIGKILL after a random time; what it leaves must be enough to end with the result of
a run that nobody killed. Prints how many were killed before they were done.
"""

import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

import evgp
from evgp._linalg import BLOCK
from evgp.comparison import DatasetSource, Protocol, compare
from evgp.labelling.campaign import Campaign, fold
from evgp.labelling.campaign.journal import Journal
from evgp.labelling.web import LabellingService, Sessions, make_app
from evgp.labelling.web.server import listen, serve
from evgp.selection import request
from tests.hostile.servers import TOKEN, signed_in
from tests.serving import ask, head

SHARDS = 6


def dies(work: Callable[[], object], after: float) -> bool:
    """Do it in a copy of this process, and kill that; whether it was killed before it was done."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    time.sleep(after)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "it failed before it was killed"
    return os.WIFSIGNALED(status)


def several(work: Callable[[Path], object], folder: Path, kills: int, chance: random.Random) -> int:
    """Begin again and again in a new place, resume there after a few kills, and compare."""
    began = time.perf_counter()
    whole = work(folder / "whole")
    lasts, hits, turn = time.perf_counter() - began, 0, 0
    while hits < kills:
        place, turn = folder / str(turn), turn + 1
        for _ in range(8):
            if not dies(lambda at=place: work(at), chance.uniform(0, lasts)):
                break
            hits += 1
        assert work(place) == whole, f"after {hits} kills"
        left = [path.name for path in place.rglob(".evgp-*")]
        assert not left, left
        shutil.rmtree(place)
    return hits


def sharded(folder: Path, kills: int, chance: random.Random) -> int:
    """Picks over shards, with a cache."""
    x = np.random.default_rng(0).normal(size=(SHARDS * BLOCK, 5)).astype(np.float32)
    np.save(folder / "x.npy", x)

    def work(cache: Path) -> list[int]:
        rules = {"features": "nystrom-64", "method": "sharded", "seed": 3}
        return evgp.pick(folder / "x.npy", 30, cache=cache, **rules).indices.tolist()

    return several(work, folder, kills, chance)


def removed(folder: Path, kills: int, chance: random.Random) -> int:
    """The same in the cache of the user, which is empty in the end."""
    x = np.random.default_rng(1).normal(size=(SHARDS * BLOCK, 5)).astype(np.float32)
    np.save(folder / "x.npy", x)

    def work(cache: Path) -> list[int]:
        os.environ["EVGP_CACHE"] = str(cache)
        rules = {"features": "nystrom-64", "method": "sharded", "seed": 3}
        picks = evgp.pick(folder / "x.npy", 30, **rules).indices.tolist()
        assert not list(cache.iterdir())
        return picks

    return several(work, folder, kills, chance)


def cells(folder: Path, kills: int, chance: random.Random) -> int:
    """A comparison; cells that are finished are kept as they are."""
    table = folder / "prices.csv"
    x = np.random.default_rng(0).normal(size=(40, 3))
    rows = [",".join(f"{value:.6f}" for value in (*row, row.sum())) for row in x]
    table.write_text("\n".join(["a,b,c,price", *rows]) + "\n")
    protocol = Protocol(budget=6, batch=3, members=2, depth=1, width=8, steps=60)
    source = DatasetSource(str(table), label="price")

    def work(out: Path) -> list[str]:
        kept = {path: path.read_bytes() for path in out.glob("cells/*.json")}
        names = ["random", "coreset", "evgp"]
        rows = compare([source], names, out=out, protocol=protocol, seeds=range(3), jobs=1)
        assert all(path.read_bytes() == content for path, content in kept.items())
        for path in (out / "cells").glob(".evgp-*.part"):
            path.unlink()  # left by processes killed while writing; never read
        return [repr(replace(row, pick_seconds=0.0, train_seconds=0.0)) for row in rows]

    return several(work, folder, kills, chance)


def migrations(folder: Path, kills: int, chance: random.Random) -> int:
    """A campaign of the first schema that is brought to this one."""
    pool, old = folder / "pool.csv", folder / "old.evgp"
    pool.write_text("a,b\n" + "".join(f"{i},{i * i % 7}\n" for i in range(30)))
    campaign = Campaign.create(old, pool, number=True)
    for row in range(30):
        campaign.answer(row, "label", 1.0)
    state = campaign.state
    campaign.close()
    with closing(sqlite3.connect(old)) as connection:
        connection.execute("DROP TRIGGER head_follows")
        connection.execute("DROP TABLE head")
        connection.execute("PRAGMA user_version=1")
        connection.commit()
    hits, path = 0, folder / "c.evgp"
    while hits < kills:
        path.with_name("c.evgp-journal").unlink(missing_ok=True)
        shutil.copy(old, path)
        hits += dies(lambda: Journal.open(path), chance.uniform(0, 0.03))
        with closing(Journal.open(path)) as journal:
            assert fold(journal.events()) == state
    return hits


def page(folder: Path, kills: int, chance: random.Random) -> int:
    """Somebody labels on the page of a server that is killed; what it acknowledged is kept."""
    pool, message = folder / "pool.csv", {}
    pool.write_text("a,b\n" + "".join(f"{i},{i * i % 7}\n" for i in range(30)))
    campaign = Campaign.create(folder / "c", pool, classes=["spam", "ham"])
    campaign.next(8)
    campaign.close()
    for turn in range(kills):
        with listen("127.0.0.1", 0) as listening:
            pid = os.fork()
            if pid == 0:
                try:
                    service = LabellingService(Campaign.open(campaign.path), k=4)
                    serve(listening, make_app(service, Sessions("a secret of tests", TOKEN)))
                finally:
                    os._exit(1)
            port = listening.getsockname()[1]
        message |= _labelled_until_killed(port, pid, chance.uniform(0, 0.5))
        with closing(Campaign.open(campaign.path)) as kept:
            events = {event.key: event.event for event in kept.log()}
        lost = [
            key for key, item in message.items() if (events[key].row, events[key].value) != item
        ]
        assert not lost, f"after {turn + 1} kills: {lost}"
    assert len(message) > kills, "too few answers to decide"
    return kills


def _labelled_until_killed(port: int, pid: int, after: float) -> dict[str, tuple[int, str]]:
    """The answers that were acknowledged before the server got SIGKILL."""
    me, message = signed_in(port), {}
    signal.signal(signal.SIGALRM, lambda *_: os.kill(pid, signal.SIGKILL))
    signal.setitimer(signal.ITIMER_REAL, max(after, 1e-3))  # in the middle of any request
    while True:
        key, row = os.urandom(8).hex(), len(message) % 30
        answer = {"row": row, "value": ["spam", "ham"][len(message) % 2], "key": key}
        body = json.dumps(answer).encode()
        sent = head("POST", "/api/answers", *me, host=f"localhost:{port}", length=len(body)) + body
        try:
            actual = ask(port, sent)
        except ConnectionError:
            actual = None
        if actual is None:
            break
        assert actual[0] == 200, actual
        message[f"answer {key}"] = (row, answer["value"])
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status), "it ended before it was killed"
    return message


if __name__ == "__main__":
    torch.set_num_threads(1)
    warnings.simplefilter("error")  # what a kill leaves is never taken for damage
    what = {item.__name__: item for item in (sharded, removed, cells, migrations, page)}[
        sys.argv[1]
    ]
    request.SHARD = BLOCK  # type: ignore[attr-defined]
    print(what(Path(sys.argv[2]), int(sys.argv[3]), random.Random(int(sys.argv[4]))))
