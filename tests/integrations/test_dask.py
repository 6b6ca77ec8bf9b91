"""The same picks as in one process, on real clusters whose processes are killed."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Timer

import numpy as np
import pytest
import torch

from evgp import Pool
from evgp._executor import Here
from evgp.criteria import ExpectedVariance
from evgp.errors import DatasetError, ExecutorError
from evgp.integrations import dask as ours
from evgp.kernels import Raw
from evgp.posterior import FeatureStart
from evgp.posterior.feature_rows import Mapped, close_mapped, mapped
from evgp.search import Budget, Exact, Sharded
from evgp.search.sharded import Shard, ShardStart
from tests.integrations.conftest import HOST, grow
from tests.messages import refused

N, P, K = 240, 12, 10
ANY = torch.Generator()


@dataclass
class Pooled:
    """A pool with its features in a file."""

    path: Path
    start: FeatureStart

    def parts(self, shards: int) -> list[Shard]:
        step = -(-N // shards)
        return [
            Shard(
                low,
                Mapped(str(self.path), low, min(N, low + step)),
                self.start.residual[low:][:step],
            )
            for low in range(0, N, step)
        ]

    def opening(self, k: int = K) -> ShardStart:
        start = self.start
        return ShardStart(start.state(), start.noise, start.rest, ExpectedVariance(), Budget(k))

    def take(self, executor, shards: int, **more):
        return Sharded(executor=executor).take(self.parts(shards), self.opening(), **more)


@pytest.fixture(scope="module")
def pooled(tmp_path_factory) -> Pooled:
    path = tmp_path_factory.mktemp("dask") / "x.npy"
    x = torch.randn(N, P, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    start = FeatureStart.of(Raw(), Pool(x), 1e-3, torch.float32)
    assert not start.residual.any()
    np.save(path, x.float().numpy())
    return Pooled(path, start)


def idle(cluster) -> bool:
    """Whether the scheduler has nothing more to do or to keep, soon."""
    end = time.monotonic() + 10
    while cluster.scheduler.tasks and time.monotonic() < end:
        time.sleep(0.05)
    return not cluster.scheduler.tasks


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_picks_are_those_of_one_place(workers, cluster, client, pooled) -> None:
    grow(cluster, client, workers)
    exact = Exact()(
        pooled.start, ExpectedVariance(), torch.arange(N), Budget(K), generator=ANY
    ).indices.tolist()
    executor = ours.executor(client)
    for shards in (1, 3, 8):
        here = pooled.take(Here(), shards)
        there = pooled.take(executor, shards)
        assert there.rows == here.rows == exact
        assert there.gains == here.gains
        each = Counter(list(executor.homes.values())[-shards:])
        assert max(each.values()) - min(each.values()) <= 1
        assert len(each) == min(shards, workers)
    assert idle(cluster)


@dataclass
class Killing:
    """Kills a worker in the middle of a round, after so many answers."""

    inner: ours.Dask
    after: int
    killed: str = ""
    sizes: list[int] = field(default_factory=list)

    def run(self, work, calls, names, each=lambda: None):
        def kill() -> None:
            self.after -= 1
            if self.after == 0:
                self.killed = next(iter(self.inner.homes.values()))
                pid = self.inner.client.run(os.getpid, workers=[self.killed])[self.killed]
                os.kill(pid, signal.SIGKILL)
            each()

        self.sizes += [len(pickle.dumps(call)) for call in calls]
        return self.inner.run(work, calls, names, kill)


def test_a_killed_worker_changes_no_pick(cluster, client, pooled) -> None:
    grow(cluster, client, 2)
    killing = Killing(ours.executor(client), after=8 * 5 + 2)
    there = pooled.take(killing, 8)
    assert there.rows == pooled.take(Here(), 8).rows
    assert killing.killed
    assert killing.killed not in killing.inner.homes.values()
    # Every shard is introduced once; those of the killed worker are sent the past again.
    assert 8 * K < len(killing.sizes) < 8 * K + 16
    # The rest are two vectors of p numbers a pick, and little else.
    assert sorted(killing.sizes)[8 * (K - 2)] < 16 * P + 1500
    assert idle(cluster)


def test_a_broken_file_is_named_as_here(cluster, client, pooled, tmp_path) -> None:
    grow(cluster, client, 1)
    path, cut = tmp_path / "part.npy", tmp_path / "cut.npy"
    path.write_bytes(pooled.path.read_bytes())
    cut.write_bytes(pooled.path.read_bytes()[:-5])
    parts = pooled.parts(8)
    rows = Mapped(str(path), parts[3].rows.start, parts[3].rows.stop)
    parts[3] = Shard(parts[3].first, rows, parts[3].residual)
    cut.replace(path)
    with pytest.raises(DatasetError) as there:
        Sharded(executor=ours.executor(client)).take(parts, pooled.opening())
    close_mapped()
    with refused(DatasetError) as here:
        mapped(str(path))
    assert type(there.value) is type(here.value)
    assert str(there.value) == str(here.value)
    assert idle(cluster)


def test_an_interrupt_cancels_what_is_pending(cluster, client) -> None:
    grow(cluster, client, 1)

    def interrupt() -> None:
        raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        calls = [(0.0,), *[(1.0,)] * 100]
        ours.executor(client).run(time.sleep, calls, [f"nap-{i}" for i in range(101)], interrupt)
    assert idle(cluster)
    assert time.monotonic() - began < 20


def test_answers_come_in_the_order_of_the_calls(cluster, client) -> None:
    grow(cluster, client, 2)
    seen: list[int] = []
    executor = ours.executor(client)
    calls = [(10 - i, 2) for i in range(10)]
    result = executor.run(pow, calls, [str(i) for i in range(10)], lambda: seen.append(1))
    assert result == [(10 - i) ** 2 for i in range(10)]
    assert len(seen) == 10
    assert executor.run(pow, [], []) == []


def test_other_versions_are_refused(cluster, client, monkeypatch) -> None:
    grow(cluster, client, 1)
    monkeypatch.setattr(ours, "_own_version", lambda: "9.9.9")
    with refused(ExecutorError):
        ours.executor(client).run(pow, [(1, 1)], ["one"])


def test_a_shard_that_kills_its_workers_is_named(cluster, client, monkeypatch) -> None:
    grow(cluster, client, 4)
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 1)
    # The fourth call ends its process; those behind it in line are not to blame.
    calls = [(0.0,)] * 3 + [("ends",)] + [(0.0,)] * 4
    with refused(ExecutorError):
        ours.executor(client).run(nap_or_end, calls, [f"shard-{i}" for i in range(8)])
    assert idle(cluster)


def nap_or_end(seconds: float | str) -> None:
    if seconds == "ends":
        os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def process(command: str, *args: str) -> Iterator[subprocess.Popen]:
    """A scheduler or worker of its own, as a user starts it."""
    words = [sys.executable, "-m", f"distributed.cli.dask_{command}", *args]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as result:
        try:
            yield result
        finally:
            result.kill()


@contextmanager
def scheduler(folder: Path) -> Iterator[tuple[subprocess.Popen, str]]:
    """A scheduler and its address."""
    file = folder / "scheduler.json"
    more = ("--host", HOST, "--port", "0", "--no-dashboard", "--scheduler-file", str(file))
    with process("scheduler", *more) as result:
        end = time.monotonic() + 60
        while not file.exists():
            assert time.monotonic() < end
            time.sleep(0.05)
        time.sleep(0.1)
        yield result, json.loads(file.read_text())["address"]


def worker(address: str):
    return process(
        "worker", address, "--no-nanny", "--nthreads", "1", "--no-dashboard", "--host", HOST
    )


@dataclass
class Written:
    picks: list[int] = field(default_factory=list)

    def rows(self) -> list[int]:
        return list(self.picks)

    def add(self, row: int) -> None:
        self.picks.append(row)


def test_without_workers_or_scheduler_it_stops_and_a_rerun_resumes(pooled, tmp_path) -> None:
    whole, journal = pooled.take(Here(), 4), Written()
    with scheduler(tmp_path) as (head, address), ours.connect(address, patience=20) as client:
        with worker(address) as only:
            client.wait_for_workers(1, timeout=60)

            def kill(_stage: str, done: int, _of: int) -> None:
                if done == 6:
                    only.send_signal(signal.SIGKILL)

            executor = ours.executor(client, patience=2)
            with refused(ExecutorError):
                pooled.take(executor, 4, journal=journal, progress=kill)
        assert journal.picks == whole.rows[:6]
        with worker(address):
            client.wait_for_workers(1, timeout=60)
            again = pooled.take(executor, 4, journal=journal)
            assert again.rows == whole.rows == journal.picks
            assert again.gains == whole.gains

            Timer(0.5, head.kill).start()
            began = time.monotonic()
            with refused(ExecutorError):
                executor.run(time.sleep, [(60,)], ["nap"])
            with refused(ExecutorError):
                executor.run(time.sleep, [(60,)], ["another"])
            assert time.monotonic() - began < 10


def test_an_address_without_a_scheduler_is_an_error() -> None:
    with refused(ExecutorError), ours.connect("nonsense://x"):
        pass
    for address in ("tcp://127.0.0.1:9", "127.0.0.1:9"):
        with (
            refused(ExecutorError),
            ours.connect(address, patience=0.5),
        ):
            pass


def test_without_dask_it_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with refused(ExecutorError):
        ours.executor(None)
