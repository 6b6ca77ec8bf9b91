"""Pools in files: the picks of memory, within memory, and on from where a run was stopped."""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import evgp
from evgp import NTK, cnn, mlp
from evgp._executor import Here, silent
from evgp._linalg import BLOCK
from evgp.datasets import PickFile, cache
from evgp.errors import MemoryPlanError
from evgp.kernels import Inducing, Raw
from evgp.posterior.feature_rows import mapped
from evgp.search.shard import advance
from evgp.selection import shards
from evgp.selection.request import InMemory
from evgp.selection.shards import ShardRecipe, total
from tests.messages import refused

QUIET = {"features": "nystrom-24", "method": "sharded", "seed": 3}


pytestmark = pytest.mark.usefixtures("cache")


def numbers(n: int = 6000, d: int = 5, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    return random.normal(size=(n, d)) @ random.normal(size=(d, d)) + random.normal(size=d)


def parquet(folder: Path, x: np.ndarray, cuts=(0, 2500, 2501, 6000), **more) -> Path:
    table = pa.table({**{f"a{j}": x[:, j] for j in range(x.shape[1])}, **more})
    folder.mkdir()
    for low, high in zip(cuts, (*cuts[1:], len(x)), strict=True):
        if high > low:
            pq.write_table(table.slice(low, high - low), folder / f"part-{low:06}.parquet")
    return folder


@pytest.mark.parametrize("blocks", [1, 2])
def test_shards_pick_what_memory_picks(tmp_path, monkeypatch, blocks) -> None:
    monkeypatch.setattr("evgp.selection.request.SHARD", blocks * BLOCK)
    x, words = numbers(9000), np.array(["u", "v", "w"])[np.arange(9000) % 3]
    folder = parquet(tmp_path / "pool", x, (0, 100, 5000), word=words)
    sharded = evgp.pick(folder, 12, **QUIET)
    inside = evgp.pick(folder, 12, features="nystrom-24", method="features", seed=3, greedy="exact")
    assert sharded.indices.tolist() == inside.indices.tolist()
    np.testing.assert_allclose(sharded.gains, inside.gains, rtol=1e-5)
    np.testing.assert_allclose(sharded.variance_left, inside.variance_left, rtol=1e-6)
    np.testing.assert_allclose(sharded.certificate.share, inside.certificate.share, rtol=1e-4)
    assert sharded.settings["method"] == "sharded"
    assert sharded.settings["kernel_features"] == "nystrom-24"


def test_the_size_of_shards_changes_no_digit(tmp_path, monkeypatch) -> None:
    folder = parquet(tmp_path / "pool", numbers(20_000), (0, 7001))
    results = []
    for blocks in (1, 2, 4, 8):
        monkeypatch.setattr("evgp.selection.request.SHARD", blocks * BLOCK)
        results.append(evgp.pick(folder, 9, **QUIET))
    for other in results[1:]:
        assert other.indices.tolist() == results[0].indices.tolist()
        assert other.gains.tolist() == results[0].gains.tolist()
        assert other.prior_variance == results[0].prior_variance


def test_threads_change_no_digit_of_the_sums(tmp_path) -> None:
    x = torch.from_numpy(numbers(9000))
    features = Inducing(NTK(mlp()), x[:24])
    results = []
    for threads in (1, 3):
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            folder = tmp_path / str(threads)
            folder.mkdir()
            recipe = ShardRecipe(InMemory(x), features, str(folder), 2 * BLOCK)
            results.append(total(recipe, Here(), silent, "features"))
            assert torch.get_num_threads() == threads
        finally:
            torch.set_num_threads(before)
    assert torch.equal(results[0][0], results[1][0]) and results[0][1] == results[1][1]


def test_test_points_labels_candidates_and_costs_go_along(tmp_path) -> None:
    x, test = numbers(), numbers(300, seed=1)
    folder = parquet(tmp_path / "pool", x)
    outside = parquet(tmp_path / "outside", numbers(7, seed=2), (0,))
    tests = parquet(tmp_path / "test", test, (0, 50))
    costs = np.random.default_rng(0).uniform(1, 2, len(x))
    options = {
        "x_test": tests,
        "x_labelled": outside,
        "labelled": [4, 900],
        "candidates": np.arange(0, 6000, 2),
        "costs": costs,
        "budget": 12.0,
        "features": "nystrom-24",
        "seed": 3,
    }
    sharded = evgp.pick(folder, **options, method="sharded")
    inside = evgp.pick(folder, **options, method="features", greedy="exact")
    assert sharded.indices.tolist() == inside.indices.tolist()
    np.testing.assert_allclose(sharded.variance_left, inside.variance_left, rtol=1e-6)
    np.testing.assert_allclose(sharded.start_variance, inside.start_variance, rtol=1e-9)
    assert sharded.settings["labelled"] == inside.settings["labelled"] == 9
    assert costs[sharded.indices].sum() <= 12 and not (sharded.indices % 2).any()
    np.testing.assert_allclose(sharded.costs, costs[sharded.indices])


def test_arrays_can_be_sharded_too(tmp_path) -> None:
    x = numbers()
    sharded = evgp.pick(x, 9, **QUIET)
    inside = evgp.pick(x, 9, features="nystrom-24", greedy="exact", seed=3)
    assert sharded.indices.tolist() == inside.indices.tolist()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_raw_features_are_read_where_they_are(tmp_path, cache, dtype) -> None:
    x = numbers(5000).astype(dtype)
    np.save(tmp_path / "x.npy", x)
    selection = evgp.pick(
        tmp_path / "x.npy", 5, features="raw", method="sharded", cache=tmp_path / "kept"
    )
    inside = evgp.pick(x.astype(np.float64), 5, features="raw", greedy="exact")
    assert selection.indices.tolist() == inside.indices.tolist()
    assert not list((tmp_path / "kept").rglob("features-*.npy"))  # no copy of them
    np.save(tmp_path / "f.npy", np.asfortranarray(x))
    other = evgp.pick(tmp_path / "f.npy", 5, features="raw", method="sharded")
    assert other.indices.tolist() == selection.indices.tolist()


def test_images_and_sketches_are_sharded_too(tmp_path) -> None:
    x = np.random.default_rng(0).normal(size=(40, 1, 8, 8)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    options = {"network": cnn(outputs=1), "features": "sketch-32", "seed": 1}
    selection = evgp.pick(tmp_path / "x.npy", 5, method="sharded", **options)
    inside = evgp.pick(x, 5, greedy="exact", **options)
    assert selection.indices.tolist() == inside.indices.tolist()


def test_two_rounds_are_close(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("evgp.selection.request.SHARD", BLOCK)
    folder = parquet(tmp_path / "pool", numbers(12_000), (0,))
    exact, rounds = (evgp.pick(folder, 12, greedy=name, **QUIET) for name in ("auto", "two-rounds"))
    assert rounds.settings["greedy"] == "TwoRounds()" and exact.settings["greedy"] == "Sharded()"
    assert rounds.variance_left[-1] <= 1.05 * exact.variance_left[-1]


def test_features_go_when_the_picks_are_made_and_stay_in_a_cache(tmp_path, cache) -> None:
    folder = parquet(tmp_path / "pool", numbers())
    first = evgp.pick(folder, 4, **QUIET)
    assert list(cache.iterdir()) == []
    kept = tmp_path / "kept"
    result = [evgp.pick(folder, k, cache=kept, **QUIET) for k in (4, 7)]
    (features,) = kept.glob("features-*")
    stamp = (features / "features-32-000000.npy").stat().st_mtime_ns
    assert result[1].indices[:4].tolist() == result[0].indices.tolist() == first.indices.tolist()
    evgp.pick(folder, 9, cache=kept, **QUIET)
    assert (features / "features-32-000000.npy").stat().st_mtime_ns == stamp
    other = {**QUIET, "seed": 4}  # other inducing points, other features
    evgp.pick(folder, 4, cache=kept, **other)
    assert len(list(kept.glob("features-*"))) == 2
    pq.write_table(pa.table({f"a{j}": numbers(9, seed=5)[:, j] for j in range(5)}),
                   folder / "part-999999.parquet")  # fmt: skip
    evgp.pick(folder, 4, cache=kept, **QUIET)
    assert len(list(kept.glob("features-*"))) == 3


MEMORY = """
import sys, threading, time
import numpy as np
def anon():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) * 1024
import evgp
peak = [0]
def watch():
    while True:
        peak[0] = max(peak[0], anon())
        time.sleep(0.01)
threading.Thread(target=watch, daemon=True).start()
made = evgp.pick(sys.argv[1], 5, features="nystrom-64", method="sharded", memory=sys.argv[2])
print(peak[0], made.indices.tolist(), sep="\\n")
"""


@dataclass(eq=False)
class Counted:
    """This process, and how many picks its shards were asked for."""

    picks: int = 0

    def run(self, work, calls, names, each=lambda: None):
        self.picks += work is advance
        return Here().run(work, calls, names, each)


CODE = """
import sys, time, evgp
def slow(stage, done, total):
    print(stage, done, flush=True)
    if stage == sys.argv[2]:
        time.sleep(0.2)
made = evgp.pick(sys.argv[1], 12, features="nystrom-24", method="sharded", seed=3, progress=slow)
print("picked", *made.indices.tolist(), flush=True)
"""


@pytest.mark.parametrize("stage", ["features", "picking"])
def test_a_run_that_was_killed_resumes(tmp_path, cache, stage) -> None:
    folder = parquet(tmp_path / "pool", numbers(140_000), (0, 70_000))
    whole = evgp.pick(folder, 12, **QUIET).indices.tolist()
    command = [sys.executable, "-c", CODE, str(folder), stage]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    expected = f"{stage} 1" if stage == "features" else f"{stage} 5"
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == expected:
            break
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    (left,) = cache.glob("features-*")
    done = sorted(path.name for path in left.glob("sums-*"))
    picks = [PickFile(path).rows() for path in left.glob("*.picks")]
    if stage == "picking":
        assert picks[0] == whole[: len(picks[0])] and 4 <= len(picks[0]) < 12
    else:
        assert done == ["sums-32-000000.npy"]
    stamps = {path: path.stat().st_mtime_ns for path in left.glob("features-*.npy")}
    assert stamps

    def watch(what: str, number: int, of: int) -> None:
        for path, stamp in stamps.items():
            assert path.stat().st_mtime_ns == stamp  # what was made is not made again

    here = Counted()
    again = evgp.pick(folder, 12, progress=watch, executor=here, **QUIET)
    assert again.indices.tolist() == whole
    assert here.picks == 12 - sum(map(len, picks))  # nor picked again
    assert list(cache.iterdir()) == []


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc (Linux)")
def test_memory_is_kept_whatever_the_pool(tmp_path) -> None:
    """A file and features larger than what is allowed, and sums of rows on the disk."""
    x = np.lib.format.open_memmap(
        tmp_path / "x.npy", mode="w+", dtype=np.float32, shape=(4_000_000, 100)
    )
    random = np.random.default_rng(0)
    for start in range(0, len(x), 100_000):
        x[start : start + 100_000] = random.normal(size=(100_000, 100))
    x.flush()
    allowed = int(9e8)
    how = {"features": "nystrom-64", "method": "sharded", "memory": allowed}
    assert evgp.plan(tmp_path / "x.npy", 5, **how).facts()["scratch"]
    command = [sys.executable, "-c", MEMORY, str(tmp_path / "x.npy"), str(allowed)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (tmp_path / "x.npy").stat().st_size > allowed
    assert int(done.stdout.splitlines()[0]) <= allowed


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc (Linux)")
def test_words_count_as_the_columns_they_become(tmp_path, monkeypatch) -> None:
    """A small file that unpacks to 2,000 columns: planned for no fewer, and within its limit."""
    monkeypatch.setattr("torch.get_num_threads", lambda: 1)  # the need grows with them
    random = np.random.default_rng(0)
    words = np.array([f"w{i:02}" for i in range(40)])
    columns = {f"c{j}": words[random.integers(0, 40, 30_000)] for j in range(50)}
    pq.write_table(pa.table(columns), tmp_path / "words.parquet")
    assert evgp.open_pool(tmp_path / "words.parquet").widest == 2500
    with refused(MemoryPlanError):
        evgp.pick(tmp_path / "words.parquet", 3, memory="700MB", **QUIET)
    allowed = 1_100_000_000
    command = [sys.executable, "-c", MEMORY, str(tmp_path / "words.parquet"), str(allowed)]
    alone = {**os.environ, "OMP_NUM_THREADS": "1"}  # each thread has a block of its own
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=alone)
    assert int(done.stdout.splitlines()[0]) <= allowed


def test_a_file_that_was_replaced_is_read_again(tmp_path) -> None:
    """Also by a process that has the old one mapped, as a worker may."""
    file = tmp_path / "x.npy"
    for seed in (0, 1):
        x = numbers(5000, seed=seed).astype(np.float32)
        np.save(tmp_path / "new.npy", x)
        mapped(str(file)) if file.exists() else None
        os.replace(tmp_path / "new.npy", file)
        assert np.array_equal(mapped(str(file)), x)


def test_features_that_differ_only_in_what_they_miss_are_others(tmp_path) -> None:
    x = torch.from_numpy(numbers(300))

    class Missing(Raw):
        def residual(self, x, phi):
            return phi.double()[:, 0].square() * 50

    assert shards.probe(Raw(), InMemory(x)) != shards.probe(Missing(), InMemory(x))
    twin = type("Twin", (Raw,), {})()
    assert shards.probe(Raw(), InMemory(x)) != shards.probe(twin, InMemory(x))


def test_who_comes_while_a_folder_is_removed_begins_another(tmp_path, monkeypatch) -> None:
    folder, seen, real = tmp_path / "work", [], cache.shutil.rmtree

    def slow(path, **options):
        monkeypatch.setattr(cache.shutil, "rmtree", real)  # who enters removes what is left too
        with cache.in_use(folder, remove=False):
            (folder / "mine").write_text("here")
            seen.append(path.name)
        real(path, **options)

    monkeypatch.setattr(cache.shutil, "rmtree", slow)
    with cache.in_use(folder, remove=True):
        (folder / "old").write_text("gone")
    assert seen and sorted(path.name for path in folder.iterdir()) == ["in-use", "mine"]
    monkeypatch.undo()
    (folder / ".evgp-0123.part").write_text("half")
    with cache.in_use(folder, remove=True), cache.in_use(folder, remove=True):
        assert not (folder / ".evgp-0123.part").exists()
    # The inner one left it to the outer one, which then removed it.
    assert not folder.exists()
