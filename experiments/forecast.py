"""Will choosing pay here? A forecast of labels saved from the pool alone, tried on the suites.

    python -m experiments.forecast

For each pool: what EV-GP promises, by the variance that its picks and random picks leave, and a few
sizes of the pool. Each is compared with the labels that were really saved, by Spearman's rank
correlation over pools, and models of all of them are fitted while each pool is left out, together
with the others that are made of the same data. Writes `experiments/results/suites/forecast.csv`;
the page of the suites reports the result.
"""

from dataclasses import dataclass
from math import log
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int, Shaped
from scipy import stats
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GroupKFold, LeaveOneGroupOut, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

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
    """Compute the features of a pool, on the first split."""
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


@dataclass(frozen=True)
class Forecast:
    """What a model of all features says of pools that it was not fitted on.

    `rank` is Spearman's correlation with the labels saved; `error` the root mean squared error of
    the logarithm, `usual` that of the mean of the other pools; `covered` the share of pools within
    the model's 95 % interval.
    """

    model: str
    rank: float
    error: float
    usual: float
    covered: float
    pools: int


def forecasts() -> list[Forecast]:
    """Fit each model as often as there are sources of pools, leaving one source out."""
    rows = read_records(TABLE)
    x = np.array([[_logarithm(name, row[name]) for name in ABOUT] for row in rows])
    y = np.array([row["saved"] for row in rows])
    source = np.array([source_of(row["pool"]) for row in rows])
    usual = leaving_out(DummyRegressor(), x, y, source)[0]
    results = []
    for model in (make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 3, 11))),
                  ExtraTreesRegressor(300, min_samples_leaf=2, random_state=0)):  # fmt: skip
        guess, reach = leaving_out(model, x, y, source)
        error, mean = (float(np.sqrt(np.mean((y - item) ** 2))) for item in (guess, usual))
        rank = float(stats.spearmanr(guess, y).statistic)
        covered = float(np.mean(np.abs(y - guess) <= reach))
        name = "trees" if isinstance(model, ExtraTreesRegressor) else "ridge regression"
        results.append(Forecast(name, rank, error, mean, covered, len(rows)))
    return results


def leaving_out(
    model: BaseEstimator, x: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"],
    source: Shaped[np.ndarray, " n"],
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:  # fmt: skip
    """The forecast for each point by a model of the other sources, and the reach of its interval.

    The interval is that of Student's t from errors on the other sources, each left out in turn.
    """
    guess, reach = np.empty(len(y)), np.empty(len(y))
    for train, test in LeaveOneGroupOut().split(x, y, source):
        fitted = clone(model).fit(x[train], y[train])
        guess[test] = fitted.predict(x[test])
        inner = cross_val_predict(
            clone(model), x[train], y[train], groups=source[train], cv=GroupKFold(5)
        )
        spread = np.sqrt(np.mean((y[train] - inner) ** 2))
        reach[test] = stats.t.ppf(0.975, len(train) - 1) * spread
    return guess, reach


def source_of(pool: str) -> str:
    """The data that a pool is made of, as a word: pools of the same data are left out together.

    >>> source_of("movies-tfidf"), source_of("optdigits"), source_of("ames")
    ('movies', 'digits', 'ames')
    """
    return {"optdigits": "digits"}.get(pool, pool.split("-", maxsplit=1)[0])


def _logarithm(name: str, value: float) -> float:
    """Sizes count by their logarithm."""
    return log(1 + value) if name in ("dimension", "columns", "rows", "tail", "classes") else value


if __name__ == "__main__":
    recorded = [row for suite in SUITES for row in recorded_rows(RESULTS / suite) if not row.batch]
    needed = savings(pool_scores(recorded), ["evgp"])["evgp"].pools
    # What a pool says does not change; delete the table to compute it again.
    known = {row["pool"]: row for row in read_records(TABLE)} if TABLE.exists() else {}
    made = []
    for one in suite_pools():
        if one.name in needed and (one.name in known or one.is_named or one.path is not None):
            about = known.get(one.name) or features(one)
            made.append({"pool": one.name, "saved": log(needed[one.name])}
                        | {name: about[name] for name in ABOUT})  # fmt: skip
            print(one.name, flush=True)
    write_records(TABLE, made, digits=6)
