"""Will choosing pay here? A forecast of labels saved from the pool alone, tried on the suites.

    python -m experiments.forecast

For each pool: what EV-GP promises, by the variance that its picks and random picks leave, and a few
sizes of the pool. Each is compared with the labels that were really saved, by Spearman's rank
correlation over pools. Writes `experiments/results/suites/forecast.csv`; the page of the suites
says what came of it.
"""

from math import log
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int
from scipy import stats

import evgp
from evgp.comparison.judge import log_ratio, pool_scores, savings
from evgp.comparison.rows import read_records, write_records
from evgp.comparison.suite import SUITES, SuitePool, recorded_rows, suite_pools
from evgp.kernels import NTK

RESULTS = Path(__file__).parent / "results" / "suites"
TABLE = RESULTS / "forecast.csv"
GOAL = 0.5
ABOUT = {
    "promised": "labels that EV-GP saves in terms of variance",
    "gap": "logarithm of the variance of random picks over that of EV-GP's",
    "dimension": "effective dimension of the kernel",
    "columns": "number of columns",
    "rows": "number of rows",
    "tail": "99th percentile of the norms over their median",
    "left": "share of the variance that is left with most labels",
    "classes": "number of classes",
}
_DRAWS = 5  # of random picks


def features(pool: SuitePool) -> dict[str, float]:
    """What a pool alone says, on the first split."""
    x = pool.data().load(0).scaled("auto")[0].double().flatten(1)
    kernel = NTK(evgp.mlp())(x).double().numpy()
    budgets = np.array(pool.budgets)
    picks = evgp.pick(x.numpy(), int(budgets[-1]), scale=None).indices
    generator = np.random.default_rng(0)
    draws = [generator.permutation(len(x))[: budgets[-1]] for _ in range(_DRAWS)]
    ours = left_after(kernel, picks)[budgets - 1]
    theirs = np.mean([left_after(kernel, rows)[budgets - 1] for rows in draws], axis=0)
    values = np.linalg.eigvalsh(kernel).clip(0)
    norms = np.linalg.norm(x.numpy(), axis=1)
    return {
        "promised": float(log_ratio(pool.budgets, -np.log(ours)[None], -np.log(theirs)[None])[0]),
        "gap": float(np.log(theirs / ours).mean()),
        "dimension": float(values.sum() ** 2 / np.square(values).sum()),
        "columns": float(x.shape[1]),
        "rows": float(len(x)),
        "tail": float(np.quantile(norms, 0.99) / np.median(norms)),
        "left": float(ours[-1] / kernel.diagonal().mean()),
        "classes": float(pool.classes),
    }


def left_after(
    kernel: Float[np.ndarray, "n n"], rows: Int[np.ndarray, " k"]
) -> Float[np.ndarray, " k"]:
    """The mean variance over all points after each row, by a Cholesky factor that grows."""
    noise = 1e-6 * kernel.diagonal().mean()
    variance, columns, left = kernel.diagonal().copy(), np.zeros((len(rows), len(kernel))), []
    for at, row in enumerate(rows):
        column = kernel[row] - columns[:at].T @ columns[:at, row]
        columns[at] = column / np.sqrt(column[row] + noise)
        variance = variance - np.square(columns[at])
        left.append(variance.clip(0).mean())
    return np.array(left)


def correlations() -> list[tuple[str, float, int]]:
    """Rank correlation (Spearman) of each feature with labels saved, and over how many pools."""
    rows = read_records(TABLE)
    saved = [row["saved"] for row in rows]
    return [
        (name, float(stats.spearmanr([row[name] for row in rows], saved).statistic), len(rows))
        for name in ABOUT
    ]


if __name__ == "__main__":
    recorded = [row for suite in SUITES for row in recorded_rows(RESULTS / suite) if not row.batch]
    needed = savings(pool_scores(recorded), ["evgp"])["evgp"].pools
    made = []
    for one in suite_pools():
        if one.name in needed and (one.is_named or one.path is not None):
            made.append({"pool": one.name, "saved": log(needed[one.name]), **features(one)})
            print(one.name, flush=True)
    write_records(TABLE, made, digits=6)
