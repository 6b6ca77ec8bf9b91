"""MNIST, pool = test = 10,000 images, two ReLU layers: 400 exact picks, kernel included."""

import tempfile
from pathlib import Path

import numpy as np
import torch

from benchmarks.clock import watch
from benchmarks.common import Options, fresh, record
from benchmarks.data import mnist
from benchmarks.memory import STORAGES

# Hemachandra et al. 2023, Table 1: EV on MNIST, 400 picks of 10,000, on other hardware.
PAPER = 4283.0


def run(options: Options) -> None:
    """Seconds in all and a pick, the ratio to one matrix-vector product, peak memory."""
    n, k = (2_000, 40) if options.small else (10_000, 400)
    x = mnist(n)
    points = torch.from_numpy(x)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "x.npy"
        np.save(data, x)
        for name, storage in reversed(STORAGES.items()):
            times = watch(points, k, storage=storage, repeats=options.repeats)
            total = times.setup + float(times.picks[1:].sum()) + times.a_pick()
            memory = fresh("benchmarks.memory", "picks", data, name, k)
            rows.append(
                {
                    "n": n,
                    "m": n,
                    "k": k,
                    "storage": name,
                    "total_s": total,
                    "kernel_s": times.setup,
                    "certificate_s": times.rest,
                    "pick_s": times.a_pick(),
                    "product_s": times.product,
                    "ratio": times.ratio(),
                    "peak_mb": memory["peak_mb"],
                    "variance_left": float(times.made.variance_left[-1]),
                    "paper_s": PAPER if k == 400 else "",
                    "paper_ratio": PAPER / total if k == 400 else "",
                    "others": times.others,
                }
            )
    record(
        options,
        "picks",
        f"MNIST, pool = test = {n:,}, {k} exact picks",
        rows,
        [
            "total_s: kernel, opening and picks. kernel_s: what comes before the first pick.",
            "certificate_s: the replay in float64 and the certificate, on top of total_s.",
            "ratio: pick_s to product_s, one float32 product of the same matrix and a vector, "
            "timed after every tenth pick of the same runs.",
            "peak_mb: resident memory of a process that does only this, certificate included.",
            "paper_s: Table 1 of the paper, on other hardware (400 of 10,000 MNIST images).",
        ],
    )
