"""Peak memory of one piece of work, measured in a process of its own."""

import json
import sys
from pathlib import Path

import numpy as np
import torch

from evgp import EVGP, NTK, Pool, mlp
from evgp.search import Exact

STORAGES = {"float64": torch.float64, "float32": torch.float32}


def main(what: str, data: str, dtype: str, k: str = "0") -> None:
    """`kernel x.npy float32` or `picks x.npy float32 400`: MB beyond the inputs, as JSON."""
    x = torch.from_numpy(np.load(data))
    _work(what, x[:64], STORAGES[dtype], 4)
    before = resident("VmRSS")
    _work(what, x, STORAGES[dtype], int(k))
    peak = resident("VmHWM")
    print(json.dumps({"extra_mb": peak - before, "peak_mb": peak}))


def resident(field: str) -> float:
    """MB, from the kernel (Linux). Not `ru_maxrss`: a child inherits the peak of its parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024 / 1e6


def _work(what: str, x: torch.Tensor, storage: torch.dtype, k: int) -> None:
    if what == "kernel":
        NTK(mlp(), storage=storage)(x)
    else:
        strategy = EVGP(NTK(mlp()), greedy=Exact(), storage=storage)
        strategy(Pool(x), k, generator=torch.Generator())


if __name__ == "__main__":
    main(*sys.argv[1:])
