"""Pools in files, from ten thousand rows to a million: time, memory, and what a pick costs."""

import json
import sys
import tempfile
import threading
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

import evgp
from benchmarks.common import Options, fresh, record
from benchmarks.memory import resident
from evgp.posterior.feature_rows import Mapped, mapped

D, P, SEED = 64, 512, 0


def run(options: Options) -> None:
    """Every size in a process of its own; the largest on Dask too, and in two rounds."""
    sizes = (10_000, 30_000) if options.small else (10_000, 100_000, 1_000_000)
    k = 50 if options.small else 1000
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        for n in sizes:
            path = table(Path(folder, f"{n}.parquet"), n)
            measured = fresh("benchmarks.scale", path, k, "here")
            rows.append({"n": n, "p": P, "k": k, "how": "one process", **measured})
        for how, name in (("dask", "two Dask workers"), ("two-rounds", "two rounds")):
            measured = fresh("benchmarks.scale", path, k // 5, how)
            rows.append({"n": n, "p": P, "k": k // 5, "how": name, **measured})
        exact = fresh("benchmarks.scale", path, k // 5, "here")
        rows.append({"n": n, "p": P, "k": k // 5, "how": "one process", **exact})
    record(options, "scale", "Pools in files", rows, NOTES)


NOTES = [
    "A Parquet table of 64 columns, nystrom-512 features in float32 shards of 131,072 rows; the "
    "pool is its own test set. Each row of this table is a process of its own on a warm page "
    "cache, and its two threads.",
    "reading: one pass for scaling and inducing points; features: made and written; opening: sums "
    "of all rows before the first pick; pick: mean of all others; read: one product of the mapped "
    "feature matrix and a vector, in the same process; ratio: pick over read.",
    "anon_mb: the most anonymous memory (RssAnon) at any time, libraries included; mapped files "
    "can be dropped by the system at any time and are not in it.",
    "sent: bytes to every shard for a pick. Two rounds look at every shard once.",
]


def table(path: Path, n: int) -> Path:
    """Rows with correlated columns, in groups of 100,000."""
    random = np.random.default_rng(SEED)
    mix = random.normal(size=(D, D)) / 8
    names = [f"c{j}" for j in range(D)]
    schema = pa.schema([(name, pa.float64()) for name in names])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, n, 100_000):
            x = random.normal(size=(min(100_000, n - start), D)) @ mix
            writer.write_table(pa.table({name: x[:, j] for j, name in enumerate(names)}))
    return path


def main(path: str, k: str, how: str) -> None:
    """`python -m benchmarks.scale pool.parquet 1000 here`: one run, as JSON."""
    peak = [0.0]

    def watch() -> None:
        while True:
            peak[0] = max(peak[0], resident("RssAnon"))
            time.sleep(0.02)

    threading.Thread(target=watch, daemon=True).start()
    stamps: list[tuple[str, int, float]] = []
    began = time.perf_counter()

    def progress(stage: str, done: int, total: int) -> None:
        stamps.append((stage, done, time.perf_counter() - began))

    with tempfile.TemporaryDirectory() as cache, workers(how) as executor:
        began = time.perf_counter()
        selection = evgp.pick(
            path,
            int(k),
            features=f"nystrom-{P}",
            method="sharded",
            greedy="two-rounds" if how == "two-rounds" else "auto",
            executor=executor,
            cache=cache,
            memory="6GB",
            progress=progress,
        )
        whole = time.perf_counter() - began
        read = min(one_read(Path(cache)) for _ in range(5))
    last = {stage: max(at for name, _, at in stamps if name == stage) for stage, _, _ in stamps}
    picks = [at for stage, _, at in stamps if stage == "picking"]
    entries: dict[str, object] = {
        "reading_s": last["reading"],
        "features_s": last["features"] - last["reading"],
        "total_s": whole,
        "anon_mb": peak[0],
        "left": float(selection.variance_left[-1]),
    }
    if how != "two-rounds":
        each = (picks[-1] - picks[0]) / (len(picks) - 1)
        entries["opening_s"] = picks[0] - last["features"]
        entries |= {"pick_s": each, "read_s": read, "ratio": each / read, "sent": 16 * P}
        entries["rows_per_s"] = selection.settings["rows"] / each
    print(json.dumps(entries))


def workers(how: str):
    """Two Dask workers of one thread each, or none."""
    if how != "dask":
        return nullcontext()
    return _cluster()


class _cluster:
    def __enter__(self):
        from distributed import Client, LocalCluster

        from evgp.integrations.dask import executor

        self.cluster = LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
        )
        self.client = Client(self.cluster)
        return executor(self.client)

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self.cluster.close()


def one_read(cache: Path) -> float:
    """Seconds of one product of the whole feature matrix, as it lies on the disk, and a vector."""
    files = sorted(str(path) for path in cache.glob("*/features-*.npy"))
    vector = torch.ones(P)
    began = time.perf_counter()
    for file in files:
        for _, block in Mapped(file, 0, len(mapped(file))).blocks():
            block @ vector
    return time.perf_counter() - began


if __name__ == "__main__":
    main(*sys.argv[1:])
