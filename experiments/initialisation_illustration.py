"""One function, many initialisations: before training, and after it on two training sets."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from evgp import metrics
from evgp.comparison.cells import Cell, Settings
from evgp.comparison.rows import Record, Records, column, distinct, where
from evgp.kernels import NTK
from evgp.nets import mlp
from evgp.pool import Pool
from evgp.training import Recipe
from experiments import pinned
from experiments.study import Claim, Study
from experiments.verdicts import Gap, clear, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS = {
    "before": "before training",
    "picked": "after training on points picked by EV-GP",
    "clustered": "after training on points close to each other",
}


def target(x: Float[Tensor, " ..."]) -> Float[Tensor, " ..."]:
    """The target function: a wave with a slope."""
    return torch.sin(2.2 * x) + 0.3 * x


def curves(*, members: int, labels: int, width: int, steps: int, seed: int) -> list[Record]:
    """Outputs of all members on a grid, before and after training on each set."""
    grid = torch.linspace(-2, 2, 81, dtype=torch.float64)[:, None]
    truth = target(grid)
    network = mlp(2, width, w_std=1.5, b_std=0.3)
    strategy = pinned.evgp(NTK(network))
    picks = strategy(Pool(grid), labels, generator=torch.Generator()).indices.copy()
    middle = np.linspace(46, 56, labels).round().astype(np.int64)
    recipe = Recipe(network, {"optimiser": "adam", "lr": 0.01}, gentler=3)
    records: list[Record] = []
    for panel, rows in (("before", picks), ("picked", picks), ("clustered", middle)):
        chosen = torch.from_numpy(rows)
        trained = recipe(
            grid[chosen],
            truth[chosen],
            members=members,
            seed=seed,
            steps=1 if panel == "before" else steps,
            lr=1e-9 if panel == "before" else 0.01,
        )
        outputs = trained.predict(grid)[:, :, 0]
        for member, line in enumerate(outputs):
            records += [
                {"panel": panel, "member": member, "x": float(x), "output": float(value)}
                for x, value in zip(grid[:, 0], line, strict=True)
            ]
        records += [
            {"panel": panel, "point": int(row), "x": float(grid[row]), "label": float(truth[row])}
            for row in (() if panel == "before" else rows)
        ]
    return records


def cells(settings: Settings) -> Sequence[Cell]:
    """A single cell."""
    return [Cell("evgp.studies.initialisation_illustration:curves", dict(settings))]


def lines(rows: Records, panel: str) -> Float[np.ndarray, "e n"]:
    """The outputs of each member on the grid."""
    subset = [row for row in where(rows, panel=panel) if "member" in row]
    return np.stack(
        [column(where(subset, member=item), "output") for item in distinct(subset, "member")]
    )


def spread(outputs: Float[np.ndarray, "e n"]) -> float:
    """Variance over members, averaged over the grid."""
    return metrics.output_variance(torch.from_numpy(outputs)[:, :, None])


def apart(rows: Records) -> Gap:
    """Log ratio of the variances after the two sets, with a jackknife error."""
    picked, clustered = (lines(rows, panel) for panel in ("picked", "clustered"))
    count = len(picked)
    without = np.array(
        [
            np.log(spread(np.delete(clustered, i, 0)) / spread(np.delete(picked, i, 0)))
            for i in range(count)
        ]
    )
    error = np.sqrt((count - 1) * without.var())
    return float(np.log(spread(clustered) / spread(picked))), float(error)


def draw(rows: Records) -> "dict[str, Figure]":
    """Draw three panels with one line per network."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 3.2), layout="constrained")
    for axes, (panel, words) in zip(
        figure.subplots(1, 3, sharey=True), PANELS.items(), strict=True
    ):
        subset = where(rows, panel=panel)
        for member in distinct(subset, "member"):
            line = where(subset, member=member)
            axes.plot(
                column(line, "x"), column(line, "output"), color="#3d4fd1", lw=0.7, alpha=0.5,
                label="networks" if member == 0 else None,
            )  # fmt: skip
        x = column(where(subset, member=0), "x")
        axes.plot(x, target(torch.from_numpy(x)), "--", color="#23262e", lw=1.2, label="truth")
        points = [row for row in subset if "point" in row]
        axes.plot(
            column(points, "x"), column(points, "label"), "o", color="#b8265e", ms=5,
            label="labelled points",
        )  # fmt: skip
        axes.set_title(words, fontsize=10)
        axes.set_xlabel("input")
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("output")
    known = figure.axes[1].get_legend_handles_labels()
    figure.legend(*known, loc="outside lower center", ncols=3, frameon=False)
    return {"initialisation-illustration": figure}


def claims(rows: Records) -> Sequence[Claim]:
    """The claims of the paper's first figure."""
    before, picked, clustered = (spread(lines(rows, panel)) for panel in PANELS)
    gap = apart(rows)
    return [
        Claim(
            "Depending on the training set, networks from different initialisations give "
            "consistent or highly varying outputs after training.",
            f"Mean variance over networks: {before:.3f} before training, {picked:.4f} after "
            f"training on points picked by EV-GP, {clustered:.3f} on as many close to each other; "
            f"the latter is {short(float(np.exp(gap[0])))} times the former. One seed. Holds if "
            "they differ by more than one standard error over networks (jackknife of the "
            f"logarithm: {gap[0]:.1f} ± {gap[1]:.1f}).",
            "holds" if clear(gap) else "does not hold",
        )
    ]


_PAPER: dict[str, Any] = {"members": 30, "labels": 8, "width": 256, "steps": 1000, "seed": 0}

_DEPARTS = (
    "The paper says neither its function nor its sets or networks; ours are a wave with a slope, 8 "
    "points picked by EV-GP or close to each other, and 30 networks of width 256 in the NTK "
    "parametrisation with weights of deviation 1.5 and biases of 0.3, trained by Adam."
)

STUDY = Study(
    name="initialisation-illustration",
    title="Networks before and after training, by training set",
    paper="figure randinit",
    shows="Outputs of networks that differ by their initialisation alone, before training, and "
    "after training on a set that makes them agree and on one that does not.",
    scales={
        "paper": _PAPER,
        "laptop": _PAPER,
        "smoke": {**_PAPER, "members": 3, "width": 8, "steps": 20},
    },
    departures=_DEPARTS,
    paper_departures=_DEPARTS,
    cells=cells,
    draw=draw,
    claims=claims,
)
