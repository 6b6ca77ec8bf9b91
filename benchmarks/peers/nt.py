"""neural-tangents, in its own environment: `nt.py x.npy float64`, then a command a line.

`run` answers with the seconds of one compiled and warmed-up kernel, `save FILE` writes the matrix.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np


def main(data: str, dtype: str) -> None:
    """Answer on stdout, one line of JSON a command."""
    import jax

    jax.config.update("jax_enable_x64", dtype == "float64")
    import neural_tangents
    from neural_tangents import stax

    dense = {"W_std": 1.0, "b_std": 0.1, "parameterization": "ntk"}
    layers = (stax.Dense(512, **dense), stax.Relu(), stax.Dense(512, **dense), stax.Relu())
    _, _, kernel = stax.serial(*layers, stax.Dense(1, **dense))
    compiled = jax.jit(lambda x: kernel(x, None, "ntk"))
    x = jax.device_put(np.load(data).astype(dtype))
    compiled(x[:64]).block_until_ready()
    before = _resident("VmRSS")
    compiled(x).block_until_ready()
    extra = _resident("VmHWM") - before - len(x) ** 2 * x.dtype.itemsize / 1e6
    versions = f"neural-tangents {neural_tangents.__version__}, jax {jax.__version__}"
    _say({"versions": versions, "extra_mb": extra})
    for line in sys.stdin:
        command, *rest = line.split()
        if command == "run":
            began = time.perf_counter()
            compiled(x).block_until_ready()
            _say({"seconds": time.perf_counter() - began})
        elif command == "save":
            np.save(rest[0], np.asarray(compiled(x)))
            _say({})


def _resident(field: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024 / 1e6


def _say(answer: dict[str, object]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
