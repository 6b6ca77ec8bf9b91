"""The analytic NTK of two hidden ReLU layers against the bare Gram product and neural-tangents."""

import tempfile
from pathlib import Path

import numpy as np
import torch

from benchmarks.common import Options, Peer, Unavailable, fresh, in_turns, record, timed
from benchmarks.data import gaussian, mnist
from benchmarks.memory import STORAGES
from evgp import NTK, mlp

PACKAGES = ("jax==0.5.3", "jaxlib==0.5.3", "neural-tangents==0.6.5", "tf2jax==0.3.6")


def run(options: Options) -> None:
    """Seconds, ratios, memory beyond the result, and the largest relative difference."""
    n = 2_000 if options.small else 10_000
    rows: list[dict[str, object]] = []
    versions = set()
    for d, x in ((784, mnist(n)), (8, gaussian(n, 8))):
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder) / "x.npy"
            np.save(data, x)
            for dtype in STORAGES:
                row, version = _compare(data, x, dtype, options.repeats)
                rows.append({"n": n, "d": d, "dtype": dtype, **row})
                versions.add(version)
    record(
        options,
        "kernel",
        "Analytic NTK, two hidden ReLU layers",
        rows,
        [
            "d = 784: standardised MNIST images; d = 8: standard normal numbers.",
            "evgp computes in float64 whatever the storage; neural-tangents computes in the type "
            "named, compiled and warmed up. Its float32 is a cheaper and less exact computation.",
            "gram_ratio: evgp to the product `x @ x.T` in float64. speedup: neural-tangents to it.",
            "extra_mb: peak memory beyond the result and the inputs, in a fresh process.",
            "difference: the largest of |a - b| / |b| over all entries, b by neural-tangents.",
            *sorted(versions),
        ],
    )


def _compare(data: Path, x: np.ndarray, dtype: str, repeats: int) -> tuple[dict[str, object], str]:
    points = torch.from_numpy(x)
    storage = STORAGES[dtype]
    kernel = NTK(mlp(), storage=storage)
    works = {
        "gram_s": lambda: timed(lambda: points @ points.T),
        "evgp_s": lambda: timed(lambda: kernel(points)),
    }
    row: dict[str, object] = {}
    size = len(x) ** 2 * storage.itemsize / 1e6
    memory = fresh("benchmarks.memory", "kernel", data, dtype)["extra_mb"] - size
    try:
        peer = Peer("nt", PACKAGES, data, dtype)
    except Unavailable as why:
        best, others = in_turns(works, repeats)
        row, version = {"nt": str(why)}, f"neural-tangents could not run: {why}"
    else:
        works["nt_s"] = lambda: float(str(peer("run")["seconds"]))
        best, others = in_turns(works, repeats)
        row["nt_extra_mb"] = peer.about["extra_mb"]
        row["difference"] = _difference(peer, data.parent / "theirs.npy", kernel(points))
        version = str(peer.about["versions"])
        peer.close()
    head = {**best, "gram_ratio": best["evgp_s"] / best["gram_s"]}
    if "nt_s" in best:
        head["speedup"] = best["nt_s"] / best["evgp_s"]
    return {**head, "extra_mb": memory, **row, "others": others}, version


def _difference(peer: Peer, file: Path, ours: torch.Tensor) -> float:
    peer("save", file)
    theirs = np.load(file, mmap_mode="r")
    worst = 0.0
    for start in range(0, len(theirs), 1000):
        b = theirs[start : start + 1000].astype(np.float64)
        a = ours[start : start + 1000].double().numpy()
        worst = max(worst, float((np.abs(a - b) / np.abs(b)).max()))
    file.unlink()
    return worst
