"""What the sparse NTKGP's picks are worth: exact, through inducing points, and linearised."""

import time

import torch

from benchmarks.common import Options, record, variance_left
from benchmarks.data import half
from evgp import EVGP, NTK, ExpectedVariance, Pool, mlp
from evgp.criteria import Linearised
from evgp.kernels import Inducing
from evgp.search import Exact
from evgp.selection.features import inducing_points

NOISE = 1e-6


def run(options: Options) -> None:
    """Mean variance left under the exact kernel, by one direct solve for every set."""
    k, u = (20, 50) if options.small else (100, 200)
    rows: list[dict[str, object]] = []
    for name in ("kin8nm", "optdigits"):
        x = torch.from_numpy(half(name))
        kernel = NTK(mlp())
        points = inducing_points(x, u, "kmeans", seed=0)
        methods = {
            "exact kernel": (kernel, ExpectedVariance()),
            f"{u} inducing points": (Inducing(kernel, points), ExpectedVariance()),
            f"{u} inducing points, linearised": (Inducing(kernel, points), Linearised()),
        }
        matrix = kernel(x)
        noise = NOISE * float(matrix.diagonal().mean())
        random = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))[:k].tolist()
        for method, (prior, rule) in methods.items():
            began = time.perf_counter()
            strategy = EVGP(prior, rule, Exact(), NOISE)
            selection = strategy(Pool(x), k, generator=torch.Generator())
            spent = time.perf_counter() - began
            rows.append(
                _row(name, method, k, variance_left(matrix, selection.indices.tolist(), noise))
            )
            rows[-1]["seconds"] = spent
        rows.append(_row(name, "random", k, variance_left(matrix, random, noise)))
    record(
        options,
        "sparse",
        f"{k} picks with and without inducing points",
        rows,
        [
            "variance_left: under the exact kernel, whatever the picks were chosen by. Inducing "
            "points are centres of k-means, as in the paper.",
            "linearised: gains by the influence-function form of the paper.",
        ],
    )


def _row(pool: str, method: str, k: int, left: float) -> dict[str, object]:
    return {"pool": pool, "method": method, "k": k, "variance_left": f"{left:.5f}"}
