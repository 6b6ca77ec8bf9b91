"""Regression in batches of 20: EV-GP, random picks, k-means++, BADGE and MLMOC."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.stats import rankdata

from evgp.comparison.cells import Cell, Settings
from evgp.comparison.rows import Record, Records, column, distinct, where
from evgp.comparison.statistics import mean_and_error
from evgp.kernels import NTK
from evgp.nets import mlp
from evgp.pool import Pool
from evgp.strategies import Setting, strategy_named
from evgp.training import Recipe
from experiments import pinned
from experiments.contests import cells as contests
from experiments.contests import curves, losses, panels
from experiments.data import TITLES
from experiments.data import dataset as drawn
from experiments.study import Claim, Study
from experiments.verdicts import Gap, compared, graded, least_clear, outperforms, rule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OTHERS = ("random", "kmeans++", "badge", "mlmoc")
CENTRAL = ("output_variance_p90", "mse")


def cells(settings: Settings) -> Sequence[Cell]:
    """Cells of the contests, and of where strategies without labels pick."""
    options = settings["outliers"]
    return [
        *contests(settings),
        *(
            Cell(
                "evgp.studies.batch_regression:outlying",
                {"dataset": name, "seed": seed, "budget": options["budget"]},
            )
            for name in options["datasets"]
            for seed in range(options["seeds"])
        ),
    ]


def outlying(*, dataset: str, seed: int, budget: int) -> list[Record]:
    """How isolated the picks are, and how strongly they correlate with the pool.

    `apart` is the mean percentile of their distance to the tenth neighbour, among the whole pool;
    `linked` the mean over picks and pool of the squared correlation by the kernel.
    """
    from sklearn.neighbors import NearestNeighbors

    x = drawn(dataset, seed).x.double()
    near = min(_NEIGHBOURS, len(x) - 1)
    gaps = NearestNeighbors(n_neighbors=near).fit(x.numpy()).kneighbors()[0][:, -1]
    percentile = 100 * rankdata(gaps) / len(gaps)
    kernel = NTK(mlp())
    scale = kernel.diag(x).sqrt()
    records: list[Record] = []
    for way in _FREE:
        setting = Setting(x, mlp(), Recipe(mlp()), 0, budget, 1, seed, **pinned.SEARCH)
        generator = torch.Generator().manual_seed(seed)
        picks = strategy_named(way, setting)(Pool(x), budget, generator=generator).indices
        rows = torch.from_numpy(picks.copy())
        linked = (kernel(x[rows], x) / scale[rows, None] / scale).square().mean()
        records.append(
            {
                "kind": "outliers", "strategy": way, "apart": float(percentile[picks].mean()),
                "linked": float(linked),
            }
        )  # fmt: skip
    return records


_FREE = ("evgp", "kmeans++", "random")
_NEIGHBOURS = 10


def draw(rows: Records) -> "dict[str, Figure]":
    """Draw variance and error by the number of labels."""
    return {"batch-regression": curves(panels(contested(rows)), CENTRAL)}


def contested(rows: Records) -> list[Record]:
    """Rows of trained networks."""
    return [row for row in rows if row.get("kind") != "outliers"]


def claims(rows: Records) -> Sequence[Claim]:
    """The claims of the paper about regression in batches."""
    lie, rows = where(rows, kind="outliers"), contested(rows)
    most = max(distinct(rows, "labels"))
    last = {
        name: where(rows, dataset=name, strategy="evgp", labels=most)
        for name in distinct(where(rows, strategy="evgp", labels=most), "dataset")
    }
    return [
        Claim(
            "EV-GP selects batches that lead to low output variance, and outperforms the other "
            "baselines.",
            "90th percentile of the output variance, "
            + compared(
                rows,
                CENTRAL[0],
                OTHERS,
                f"Mean training loss with all labels, of a variance of 1: {losses(last)}. ",
            ),
            outperforms(rows, CENTRAL[:1], OTHERS),
        ),
        Claim(
            "EV-GP selects batches that lead to small test error, and outperforms the other "
            "baselines.",
            f"Test MSE, {compared(rows, 'mse', OTHERS)}",
            outperforms(rows, ["mse"], OTHERS),
        ),
        Claim(
            "EV-GP outperforms random selection and k-means++.",
            "Lead on that of these two on whom it is less clear: test MSE "
            f"{least_clear(rows, 'mse', OTHERS[:2])}; variance "
            f"{least_clear(rows, CENTRAL[0], OTHERS[:2])}. "
            + rule("EV-GP is better than both by both", rows),
            outperforms(rows, CENTRAL, OTHERS[:2]),
        ),
        Claim(
            "K-Means++ is prone to outliers, far from other points and with little correlation "
            "with the rest; EV-GP selects more correlated points.",
            "Picks of K-Means++, of EV-GP and random ones: mean percentile in the pool of their "
            f"distance to the tenth neighbour {_lie(lie, 'apart', '.0f')}; mean squared "
            f"correlation with the pool, by the kernel, {_lie(lie, 'linked', '.3f')}. "
            + rule("picks of K-Means++ are farther from others and less correlated", lie),
            graded(
                [
                    _more(subset, "apart", "kmeans++", "evgp"),
                    _more(subset, "linked", "evgp", "kmeans++"),
                ]
                for name in distinct(lie, "dataset")
                if (subset := where(lie, dataset=name))
            ),
        ),
    ]


def _more(rows: Records, what: str, one: str, other: str) -> Gap:
    """Logarithm of the ratio of two ways, paired by seeds."""
    pairs = (
        [column(where(rows, seed=seed, strategy=way), what)[0] for way in (one, other)]
        for seed in distinct(rows, "seed")
    )
    return mean_and_error(float(np.log(a / b)) for a, b in pairs)


def _lie(rows: Records, what: str, digits: str) -> str:
    return ", ".join(
        f"{TITLES[name]} "
        + ", ".join(
            f"{column(where(rows, dataset=name, strategy=way), what).mean():{digits}}"
            for way in ("kmeans++", "evgp", "random")
        )
        for name in distinct(rows, "dataset")
    ) or "not run"  # fmt: skip


_ONE: dict[str, Any] = {
    "datasets": ["kin8nm", "protein", "boston", "naval"],
    "strategies": ["evgp", *OTHERS],
    "seeds": 5, "budget": 100, "batch": 20, "members": 50,
}  # fmt: skip
_LIE: dict[str, Any] = {name: _ONE[name] for name in ("datasets", "seeds", "budget")}

_MLMOC = (
    "MLMOC starts without labels; the paper says that it gave it 100 random ones for "
    "classification, and nothing of regression."
)

STUDY = Study(
    name="batch-regression",
    title="Regression in batches of 20",
    paper="figures small-set-batch, appx-small-set-batch",
    shows="Output variance and test error by the number of labels, five strategies.",
    scales={
        "paper": {"contests": [_ONE], "outliers": _LIE},
        "laptop": {
            "contests": [{**_ONE, "seeds": 3, "members": 10}],
            "outliers": {**_LIE, "seeds": 3},
        },
        "smoke": {
            "contests": [
                {
                    **_ONE, "datasets": ["boston"], "strategies": ["evgp", "random"], "seeds": 1,
                    "budget": 8, "batch": 4, "members": 2, "width": 8, "steps": 5, "test": 20,
                }
            ],
            "outliers": {"datasets": ["boston"], "seeds": 1, "budget": 8},
        },
    },
    departures=f"10 networks in place of 50, 3 seeds in place of 5. {_MLMOC}",
    paper_departures=_MLMOC,
    cells=cells,
    draw=draw,
    claims=claims,
)  # fmt: skip
