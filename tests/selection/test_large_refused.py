"""What large pools cannot do is reported before it is tried."""

import errno
import os
import pickle
import time

import numpy as np
import pytest
import torch

import evgp
from evgp._linalg import BLOCK
from evgp.datasets import PickFile, open_pool
from evgp.errors import DamageWarning, DatasetError, DiskFull, MemoryPlanError, PoolError
from evgp.kernels import Raw
from evgp.posterior.feature_rows import mapped
from evgp.selection.request import InMemory
from evgp.selection.shards import ShardRecipe, make
from tests.messages import refused, warned
from tests.selection.test_large import QUIET, numbers, parquet

pytestmark = pytest.mark.usefixtures("cache")


def test_a_disk_that_fills_up_is_reported_clearly(tmp_path, monkeypatch) -> None:
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    folder = parquet(tmp_path / "pool", numbers())
    with refused(DiskFull):
        evgp.pick(folder, 4, **QUIET)
    assert not list(tmp_path.rglob("*.part"))


@pytest.mark.parametrize("method", ["features", "sharded"])
def test_points_without_variance_are_refused(tmp_path, method) -> None:
    np.save(tmp_path / "x.npy", np.zeros((300, 4), dtype=np.float32))
    pool = evgp.open_pool(tmp_path / "x.npy", scale=None)
    with refused(PoolError):
        evgp.pick(pool, 5, features="raw", method=method)


def test_what_does_not_fit_is_refused_with_the_need(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("torch.get_num_threads", lambda: 1)  # the need grows with them
    folder = parquet(tmp_path / "pool", numbers())
    with refused(MemoryPlanError):
        evgp.pick(folder, 4, memory="100MB", **QUIET)
    with refused(PoolError):
        evgp.pick(folder, 4, memory="much", **QUIET)


def test_a_full_disk_is_reported_before_anything_is_written(tmp_path, monkeypatch, cache) -> None:
    folder = parquet(tmp_path / "pool", numbers())
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1000})())
    with refused(DatasetError):
        evgp.pick(folder, 4, **QUIET)
    assert not list(cache.rglob("*.npy"))


@pytest.mark.parametrize(
    "change",
    [
        {"criterion": "p90"},
        {"greedy": "lazy"},
        {"thin": 100},
        {"method": "heap"},
        {"method": "dense"},
        {"x_test": np.eye(5)},
        {"test_weights": [1.0]},
        {"labelled": [6000]},
        {"k": 7000},
        {"features": "nystrom-0"},
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_cannot_be_done_is_reported(tmp_path, change) -> None:
    folder = parquet(tmp_path / "pool", numbers())
    with refused(PoolError):
        evgp.pick(folder, **{"k": 4, **QUIET, **change})


def test_a_damaged_file_is_named(tmp_path) -> None:
    folder = parquet(tmp_path / "pool", numbers())
    file = folder / "part-002501.parquet"
    whole = file.read_bytes()
    pool = open_pool(folder)
    file.write_bytes(whole[: len(whole) // 2])
    for where in (folder, pool):
        with refused(DatasetError):
            evgp.pick(where, 4, **QUIET)


def test_a_shard_is_a_pure_function_of_its_recipe(tmp_path) -> None:
    x = torch.from_numpy(numbers(5000))
    recipe = ShardRecipe(InMemory(x), Raw(), str(tmp_path), BLOCK)
    copy = pickle.loads(pickle.dumps(recipe))
    done = make(copy, 1)
    assert make(recipe, 1) == done and len(recipe) == 2 and not done.note
    sums = mapped(done.file)
    np.testing.assert_allclose(
        sums[:-1], (x[BLOCK:].float().double().T @ x[BLOCK:].float().double()).numpy(), rtol=1e-12
    )
    assert recipe.rows(1).shape == (5000 - BLOCK, 5)


def test_picks_on_the_disk_survive_a_torn_line(tmp_path) -> None:
    path = tmp_path / "a.picks"
    for row in (5, 6, 7):
        PickFile(path).add(row)
    whole = path.read_text()
    with path.open("a") as stream:
        stream.write("3 12")
    assert PickFile(path).rows() == [5, 6, 7] and path.read_text() == whole
    path.write_text(whole + "nonsense\n")
    with warned(DamageWarning):
        assert PickFile(path).rows() == [5, 6, 7]
    assert path.read_text() == whole


def test_time_is_not_spent_twice() -> None:
    began = time.perf_counter()
    assert evgp.plan((10**8, 64), 1000, method="sharded", memory="2GB").fits
    assert evgp.plan((10**8, 64), 1000, memory="2GB").method == "sharded"
    assert time.perf_counter() - began < 30
