"""How the time of an exact pick grows with the pool, the test points and the number of picks."""

import torch

from benchmarks.clock import Times, watch
from benchmarks.common import Options, record
from benchmarks.data import mnist


def run(options: Options) -> None:
    """Seconds a pick, and the ratio to one product with the same n x m matrix."""
    unit = 250 if options.small else 2_500
    x = torch.from_numpy(mnist(12 * unit))
    large = torch.from_numpy(mnist(8 * unit))
    storage, repeats = torch.float32, options.repeats
    rows: list[dict[str, object]] = []
    for n in (unit, 2 * unit, 4 * unit, 8 * unit):
        times = watch(large[:n], 100, storage=storage, repeats=repeats)
        rows.append({"grows": "n = m", **_row(n, n, 100, times)})
    pool, others = x[: 4 * unit], x[4 * unit :]
    for m in (unit, 2 * unit, 4 * unit, 8 * unit):
        times = watch(pool, 100, test=others[:m], storage=storage, repeats=repeats)
        rows.append({"grows": "m", **_row(len(pool), m, 100, times)})
    times = watch(pool, 800, storage=storage, repeats=1 if options.small else repeats)
    for k in (100, 200, 400, 800):
        n = len(pool)
        rows.append({"grows": "k", **_row(n, n, k, times)})
    record(
        options,
        "growth",
        "An exact pick, as pool, test points and picks grow (MNIST, float32 storage)",
        rows,
        [
            "pick_s: the mean over the k picks. ns_a_pair: pick_s / (n m), level where the time "
            "is linear in n m.",
            "ratio: to one float32 product of the same n x m matrix and a vector.",
            "Where m grows the test points are other images than the pool.",
        ],
    )


def _row(n: int, m: int, k: int, times: Times) -> dict[str, object]:
    return {
        "n": n,
        "m": m,
        "k": k,
        "pick_s": times.a_pick(k),
        "product_s": times.product,
        "ratio": times.ratio(k),
        "ns_a_pair": 1e9 * times.a_pick(k) / (n * m),
        "others": times.others,
    }
