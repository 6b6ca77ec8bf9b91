"""Peak memory of one piece of work, measured in a process of its own."""

import json
import resource
import sys

import numpy as np
import psutil
import torch

from evgp import EVGP, NTK, Exact, Pool, mlp

STORAGES = {"float64": torch.float64, "float32": torch.float32}


def main(what: str, data: str, dtype: str, k: str = "0") -> None:
    """`kernel x.npy float32` or `picks x.npy float32 400`: MB beyond the inputs, as JSON."""
    x = torch.from_numpy(np.load(data))
    _work(what, x[:64], STORAGES[dtype], 4)
    before = psutil.Process().memory_info().rss / 1e6
    _work(what, x, STORAGES[dtype], int(k))
    # In kB on Linux. Whatever came before was smaller: the inputs are read without a copy.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    print(json.dumps({"extra_mb": peak - before, "peak_mb": peak}))


def _work(what: str, x: torch.Tensor, storage: torch.dtype, k: int) -> None:
    if what == "kernel":
        NTK(mlp(), storage=storage)(x)
    else:
        strategy = EVGP(NTK(mlp()), greedy=Exact(), storage=storage)
        strategy(Pool(x), k, generator=torch.Generator())


if __name__ == "__main__":
    main(*sys.argv[1:])
