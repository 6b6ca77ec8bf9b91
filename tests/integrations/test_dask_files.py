"""Pools in files on real clusters: the same picks as in one process, whichever process dies."""

import os
import signal
import time
from pathlib import Path

import distributed
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evgp
from evgp._linalg import BLOCK
from evgp.errors import DamagedFile, DamageWarning, DatasetError, ExecutorError
from evgp.integrations import dask as ours
from evgp.search import Sharded
from tests.integrations.conftest import grow, local_cluster
from tests.messages import refused, warned

RULES = {"features": "nystrom-24", "method": "sharded", "seed": 3}


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("EVGP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("evgp.selection.request.SHARD", BLOCK)  # seven shards
    x = np.random.default_rng(0).normal(size=(26_000, 5))
    path = tmp_path / "pool"
    path.mkdir()
    for low in (0, 9_000, 9_001):
        high = {0: 9_000, 9_000: 9_001, 9_001: 26_000}[low]
        columns = {f"a{j}": x[low:high, j] for j in range(5)}
        pq.write_table(pa.table(columns), path / f"part-{low:05}.parquet")
    return path


def pids(client) -> list[int]:
    return sorted(client.run(os.getpid).values())


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_the_number_of_workers_changes_no_pick(folder, workers, cluster, client) -> None:
    here = evgp.pick(folder, 9, **RULES)
    grow(cluster, client, workers)
    there = evgp.pick(folder, 9, **RULES, executor=ours.executor(client))
    assert there.indices.tolist() == here.indices.tolist()
    assert there.gains.tolist() == here.gains.tolist()
    assert there.prior_variance == here.prior_variance


@pytest.mark.parametrize("stage", ["features", "picking"])
def test_a_worker_that_is_killed_changes_no_pick(folder, stage, cluster, client) -> None:
    here = evgp.pick(folder, 9, **RULES)
    grow(cluster, client, 2)
    victim = pids(client)[0]

    def kill(what: str, done: int, of: int) -> None:
        nonlocal victim
        if what == stage and done == 2 and victim:
            os.kill(victim, signal.SIGKILL)
            victim = 0

    there = evgp.pick(folder, 9, **RULES, executor=ours.executor(client), progress=kill)
    assert not victim
    assert there.indices.tolist() == here.indices.tolist()
    assert there.gains.tolist() == here.gains.tolist()


def test_losing_all_workers_is_an_error_and_a_rerun_resumes(folder, tmp_path) -> None:
    here, kept = evgp.pick(folder, 9, **RULES), tmp_path / "kept"
    with (
        local_cluster(2) as own_cluster,
        distributed.Client(own_cluster, set_as_default=False) as client,
    ):

        def kill(what: str, done: int, of: int) -> None:
            until = time.monotonic() + 60
            # Dask keeps a worker that holds the only copy of an answer: ask until all are gone.
            while what == "picking" and done == 4 and time.monotonic() < until:
                workers = list(client.scheduler_info(n_workers=-1)["workers"])
                if not workers:
                    break
                client.retire_workers(workers)

        with refused(ExecutorError):
            evgp.pick(
                folder, 9, **RULES, executor=ours.executor(client, patience=1.0), cache=kept,
                progress=kill,
            )  # fmt: skip
    (journal,) = kept.rglob("*.picks")
    assert len(journal.read_text().splitlines()) >= 4
    stamps = {path: path.stat().st_mtime_ns for path in kept.rglob("features-*.npy")}
    assert len(stamps) == 7
    again = evgp.pick(folder, 9, **RULES, cache=kept)
    assert again.indices.tolist() == here.indices.tolist()
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in stamps.items())


def test_a_pool_that_was_replaced_is_another_for_the_workers_too(
    tmp_path, monkeypatch, cluster, client
) -> None:
    monkeypatch.setenv("EVGP_CACHE", str(tmp_path / "cache"))
    random, file = np.random.default_rng(0), tmp_path / "x.npy"
    grow(cluster, client, 1)
    for _ in range(2):
        np.save(tmp_path / "new.npy", random.normal(size=(5000, 6)).astype(np.float32))
        os.replace(tmp_path / "new.npy", file)
        rules = {"features": "raw", "method": "sharded"}
        there = evgp.pick(file, 5, **rules, executor=ours.executor(client))
        assert there.indices.tolist() == evgp.pick(file, 5, **rules).indices.tolist()
    mapped = client.run(lambda: Path("/proc/self/maps").read_text())
    assert not any(str(file) in maps for maps in mapped.values())  # nothing is kept open


def test_a_poisoned_file_is_named(folder, cluster, client) -> None:
    pool = evgp.open_pool(folder)
    file = folder / "part-09001.parquet"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    grow(cluster, client, 1)
    for where in (folder, pool):
        with refused(DatasetError):
            evgp.pick(where, 4, **RULES, executor=ours.executor(client))


def test_a_damaged_cache_is_rebuilt_by_the_workers(folder, tmp_path, cluster, client) -> None:
    here, kept = evgp.pick(folder, 9, **RULES), tmp_path / "kept"
    grow(cluster, client, 2)
    rules = {**RULES, "executor": ours.executor(client), "cache": kept}
    evgp.pick(folder, 9, **rules)
    for kind in ("features-1-000002", "rest-1-000005", "sums-of-1", "start-"):
        (path,) = kept.glob(f"*/{kind}*.npy")
        np.load(path, mmap_mode="r+").reshape(-1)[7:90] *= 50
        for picks in kept.glob("*/*.picks"):
            picks.unlink()
        with warned(DamageWarning):
            there = evgp.pick(folder, 9, **rules)
        assert there.indices.tolist() == here.indices.tolist()
        assert there.gains.tolist() == here.gains.tolist()


def test_a_start_that_is_damaged_on_its_way_to_a_worker_is_refused(
    folder, tmp_path, cluster, client
) -> None:
    kept = tmp_path / "kept"

    real = Sharded.take

    def late(self, *args, **options):
        for path in kept.glob("*/start-*.npy"):  # written, and not read by a worker yet
            np.load(path, mmap_mode="r+")[:] = 0
        return real(self, *args, **options)

    grow(cluster, client, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sharded, "take", late)
        with refused(DamagedFile):
            evgp.pick(folder, 9, **RULES, executor=ours.executor(client), cache=kept)
    with warned(DamageWarning):
        there = evgp.pick(folder, 9, **RULES, executor=ours.executor(client), cache=kept)
    assert there.indices.tolist() == evgp.pick(folder, 9, **RULES).indices.tolist()
