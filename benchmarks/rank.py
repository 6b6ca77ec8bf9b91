"""How much true variance many picks leave where features stand in for the kernel, by their rank."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from scipy.linalg import cho_solve, cholesky

import evgp
from benchmarks.common import Options, Row, record
from benchmarks.data import whole
from evgp.kernels import NTK
from evgp.nets import mlp
from evgp.selection.backends import FeaturesBackend
from evgp.selection.request import Request

_HELD = 5_000
_DENSE = 20_000  # rows for which the exact kernel is affordable


def run(options: Options) -> None:
    """Features of several ranks and of the default, 1,000 picks of california and protein."""
    rows: list[Row] = []
    for row in _measured(options.small):
        rows.append(row)
        # After each row, because all of them take half an hour.
        record(
            options,
            "rank",
            "Rank of features, and the variance that many picks leave",
            rows,
            [
                "Columns standardised. left_at: mean variance of 5,000 rows outside the pool under "
                "the exact NTK, after so many picks."
            ],
            seconds="Seconds are processor time for all picks, of one run.",
        )


def _measured(small: bool) -> Iterator[Row]:
    k = 100 if small else 1_000
    for name in ("california", "protein"):
        x = whole(name)
        order = np.random.default_rng(0).permutation(len(x))
        held, pool = x[order[:_HELD]], x[order[_HELD:]]
        if small:
            held, pool = held[:500], pool[:2_000]
        mean, std = pool.mean(0), pool.std(0)
        held, pool = (held - mean) / std, (pool - mean) / std
        base = {"pool": name, "n": len(pool), "k": k}
        random = np.random.default_rng(1).permutation(len(pool))[:k]
        yield {**base, "method": "random", **_left_after(k, random, held, pool)}
        request = Request.of(pool, k, features="nystrom-1024", scale=None)
        memory = FeaturesBackend(request).memory("float32")
        methods: dict[str, dict[str, object]] = {
            "nystrom-512": {"features": "nystrom-512"},
            "nystrom-1024": {"features": "nystrom-1024"},
            "default, memory of nystrom-1024": {"features": "nystrom", "memory": memory},
            "default": {"features": "nystrom"},
        }
        if len(pool) <= _DENSE:
            methods["exact kernel"] = {"method": "dense"}
        for method, asked in methods.items():
            begun = time.process_time()
            how: dict[str, Any] = {"method": "features", "storage": "float32", **asked}
            picks = evgp.pick(pool, k, scale=None, **how)
            seconds = time.process_time() - begun
            kind = str(picks.settings["kernel_features"] or "")
            left = _left_after(k, picks.indices, held, pool)
            yield {**base, "method": method, "features": kind, **left, "seconds": seconds}


def _left_after(k: int, picks: np.ndarray, held: np.ndarray, pool: np.ndarray) -> dict[str, str]:
    """The true mean variance of the held rows after a tenth, half and all of the picks."""
    return {f"left_at_{at}": f"{_left(picks[:at], held, pool):.5f}" for at in (k // 10, k // 2, k)}


def _left(picks: np.ndarray, held: np.ndarray, pool: np.ndarray) -> float:
    kernel = NTK(mlp())
    points, tests = torch.from_numpy(pool[picks]), torch.from_numpy(held)
    own, cross = kernel(points).numpy(), kernel(points, tests).numpy()
    noise = 1e-6 * float(kernel.diag(tests).mean())
    factor = cholesky(own + noise * np.eye(len(own)), lower=True)
    fall = (cross * cho_solve((factor, True), cross)).sum(0)
    return float((kernel.diag(tests).numpy() - fall).mean())
