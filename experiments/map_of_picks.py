"""Where picks are: a map by predictive correlation, with the standard deviation."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float
from scipy import stats
from scipy.spatial import cKDTree

from evgp.comparison.cells import Cell, Settings
from evgp.comparison.rows import Record, Records, column
from evgp.comparison.statistics import mean_and_error
from evgp.kernels import NNGP, NTK
from evgp.nets import mlp
from evgp.pool import Pool
from experiments import pinned
from experiments.data import dataset
from experiments.study import Claim, Study, verdict
from experiments.verdicts import Gap, clear

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Relative standard error of a standard deviation that is estimated from 50 networks.
CHANCE = 1 / (2 * 49) ** 0.5


def placed(*, dataset_name: str, seed: int, pool: int, budget: int) -> list[Record]:
    """Position, standard deviation, and rank (if picked) of every point of the pool."""
    from sklearn.manifold import TSNE

    x = dataset(dataset_name, seed, pool=pool).x.double()
    prior = NNGP(mlp())(x)
    deviation = prior.diagonal().sqrt()
    apart = (1 - prior / deviation[:, None] / deviation).clamp(min=0).numpy()
    apart = (apart + apart.T) / 2
    np.fill_diagonal(apart, 0.0)
    near = TSNE(
        metric="precomputed", init="random", perplexity=min(30, len(x) // 4), random_state=seed
    )
    places = near.fit_transform(np.sqrt(apart))
    strategy, generator = pinned.evgp(NTK(mlp())), torch.Generator().manual_seed(seed)
    picks = strategy(Pool(x), budget, generator=generator).indices
    order = {int(row): rank for rank, row in enumerate(picks)}
    # Number of other points closer than the typical nearest neighbours.
    crowd = (apart < np.quantile(apart, 0.05)).sum(1)
    return [
        {
            "dataset": dataset_name,
            "row": i,
            "across": float(places[i, 0]),
            "up": float(places[i, 1]),
            "deviation": float(deviation[i]),
            "neighbours": int(crowd[i]),
            "rank": order.get(i),
        }
        for i in range(len(x))
    ]


def cells(settings: Settings) -> Sequence[Cell]:
    """A single cell."""
    return [Cell("evgp.studies.map_of_picks:placed", dict(settings))]


def draw(rows: Records) -> "dict[str, Figure]":
    """Draw the map: contours of the standard deviation, points, and crosses on the picks."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 5.2), layout="constrained")
    axes = figure.subplots()
    across, up, deviation = (column(rows, name) for name in ("across", "up", "deviation"))
    shades = axes.contourf(
        *_smoothed(np.column_stack([across, up]), deviation), levels=10, cmap="Blues"
    )
    figure.colorbar(
        shades, ax=axes, label="standard deviation at initialisation, nearby", shrink=0.8
    )
    axes.scatter(
        across, up, s=3, color="#23262e", linewidth=0, alpha=0.5, label="pool", rasterized=True
    )
    picks = [row for row in rows if "rank" in row]
    axes.scatter(
        column(picks, "across"), column(picks, "up"), marker="x", s=42, color="#d81b60",
        label="picked", linewidth=1.6,
    )  # fmt: skip
    axes.set(xticks=[], yticks=[])
    axes.spines[["top", "right", "bottom", "left"]].set_visible(False)
    axes.legend(loc="lower left", frameon=False)
    return {"map-of-picks": figure}


def _smoothed(
    places: Float[np.ndarray, "n 2"], values: Float[np.ndarray, " n"]
) -> tuple[Any, Any, Any]:
    """Values on a grid, each the median of the nearest points; masked far from all points."""
    low, high = places.min(0), places.max(0)
    margin = 0.03 * (high - low)
    x, y = (np.linspace(low[i] - margin[i], high[i] + margin[i], 160) for i in (0, 1))
    grid = np.stack(np.meshgrid(x, y), -1)
    apart, near = cKDTree(places).query(grid, k=min(12, len(places)))
    return x, y, np.ma.masked_where(apart[..., 0] > margin.max(), np.median(values[near], -1))


def claims(rows: Records) -> Sequence[Claim]:
    """The claims of the paper about its map."""
    deviation = column(rows, "deviation")
    picks = [row for row in rows if "rank" in row]
    high, near = (placing(rows, picks, name) for name in ("deviation", "neighbours"))
    varied = float(deviation.std() / deviation.mean())
    return [
        Claim(
            "The variance at initialisation differs between inputs.",
            "The largest standard deviation in the pool is "
            f"{deviation.max() / deviation.min():.1f} times the smallest; they vary by "
            f"{100 * varied:.0f} % of their mean. Holds if that is more than the "
            f"{100 * CHANCE:.0f} % that 50 networks, as the paper drew them, would show by chance "
            "were they all the same.",
            "holds" if varied > CHANCE else "does not hold",
        ),
        Claim(
            "Picks prefer regions of high variance, and balance it with regions of many points, "
            "rather than cover the space evenly.",
            "Mean percentile of the picks among the pool, ± standard error over picks, one seed; "
            f"50 is no preference. By standard deviation: {high[0] + 50:.0f} ± {high[1]:.0f}; by "
            f"how many points lie near: {near[0] + 50:.0f} ± {near[1]:.0f}. Holds if both are "
            "above 50 by more than the standard error, in part if one is; that picks do not cover "
            "the space evenly is not tested.",
            verdict([clear(high), clear(near)]),
        ),
    ]


def placing(rows: Records, picks: Records, name: str) -> Gap:
    """Mean percentile of the picks by a column, minus 50, and its standard error."""
    whole = column(rows, name)
    return mean_and_error(stats.percentileofscore(whole, row[name], "mean") - 50 for row in picks)


_PAPER: dict[str, Any] = {"dataset_name": "optdigits", "seed": 0, "pool": 2810, "budget": 50}

_DEPARTS = (
    "Correlation and standard deviation are those of networks of infinite width, in closed form, "
    "where the paper drew networks; 50 picks, as the paper does not say how many it shows. One "
    "seed, as in the paper."
)

STUDY = Study(
    name="map-of-picks",
    title="A map of picks",
    paper="figure tsneeoloptdigits",
    shows="The pool of handwritten digits by t-SNE on predictive correlation, contours of the "
    "standard deviation at initialisation, and the points that EV-GP picks.",
    scales={
        "paper": _PAPER,
        "laptop": _PAPER,
        "smoke": {**_PAPER, "dataset_name": "random-model", "pool": 60, "budget": 5},
    },
    departures=_DEPARTS,
    paper_departures=_DEPARTS,
    cells=cells,
    draw=draw,
    claims=claims,
)
