"""Other criteria than the mean variance: mutual information, percentiles, and thinner test sets."""

from collections.abc import Sequence
from math import isnan
from typing import TYPE_CHECKING, Any

import torch

from evgp.kernels import NTK
from evgp.nets import mlp
from evgp.pool import Pool
from evgp.posterior import ntkgp
from evgp.strategies import EVGP, Thinned
from evgp.studies.contests import ahead, behind, contest, curves, gaps, panels, told
from evgp.studies.data import TITLES, dataset
from evgp.studies.rows import Record, Rows, distinct, mean_by, where
from evgp.studies.sequential_selection import LAPTOP, LESS, PAPER, SMOKE
from evgp.studies.set_figures import scattered
from evgp.studies.sets import correlation, ways
from evgp.studies.study import Cell, Claim, Settings, Study, verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RAISED = {"evgp": "ev", "evgp-mi": "mi", "evgp-p90": "p90", "evgp-max": "max"}
_DATA = ["protein", "kin8nm", "boston", "naval", "optdigits", "random-model"]


def thinning(
    *, dataset_name: str, seed: int, pool: int, budget: int, points: list[int]
) -> list[Record]:
    """What is left of the variance over all test points if picks look at some of them only."""
    data = dataset(dataset_name, seed, pool=pool)
    made, kernel = [], NTK(mlp())
    for count in [*points, len(data.x)]:
        strategy: Any = EVGP(kernel)
        if count < len(data.x):
            strategy = Thinned(strategy, count, seed)
        generator = torch.Generator().manual_seed(seed)
        picks = strategy(Pool(data.x), budget, generator=generator).indices
        x = data.x[torch.from_numpy(picks.copy())]
        left = ntkgp(kernel, x, torch.zeros(len(x)), data.x).variance
        made.append(
            {"dataset": dataset_name, "kind": "thin", "points": count, "left": float(left.mean())}
        )
    return made


def cells(settings: Settings) -> Sequence[Cell]:
    """Paths one by one; batches; and thinning."""
    thin = settings["thin"]
    return [
        *ways(strategies=[*RAISED, "random"], **settings["sequential"]),
        *contest(strategies=[*RAISED, "random"], **settings["batch"]),
        *(
            Cell(
                "evgp.studies.other_criteria:thinning",
                {"dataset_name": name, "seed": seed, **{k: thin[k] for k in _THIN}},
            )
            for name in thin["datasets"]
            for seed in range(thin["seeds"])
        ),
    ]


_THIN = ("pool", "budget", "points")


def one_by_one(rows: Rows) -> list[Record]:
    """Rows of the sequential part."""
    return [row for row in rows if "ev" in row]


def batches(rows: Rows) -> list[Record]:
    """Rows of the batch part."""
    return [row for row in rows if "batch" in row]


def draw(rows: Rows) -> "dict[str, Figure]":
    """Each criterion against the variance, and paths; batches; thinning."""
    pairs = [(raised, "output_variance_p90") for raised in RAISED.values()]
    made = {
        "other-criteria": scattered(one_by_one(rows), pairs, RAISED, ["output_variance_p90", "mse"])
    }
    if batches(rows):
        made["other-criteria-batch"] = curves(panels(batches(rows)), ("output_variance_p90", "mse"))
    if where(rows, kind="thin"):
        made["thinning"] = _draw_thin(where(rows, kind="thin"))
    return made


def _draw_thin(rows: Rows) -> "Figure":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6, 3.2), layout="constrained")
    axes = figure.subplots()
    for name in distinct(rows, "dataset"):
        at, found = mean_by(_more(where(rows, dataset=name)), "points", "more")
        axes.errorbar(at, found[:, 0], found[:, 1], marker="o", ms=4, label=TITLES[name])
    axes.axhline(0, color="#9a9fae", linewidth=0.8)
    axes.set(xscale="log", xlabel="test points that picks look at", ylabel="variance left, % more")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return figure


def _more(rows: Rows) -> list[Record]:
    """Percent more variance left than with all test points, of one dataset, for each seed."""
    made = []
    for seed in distinct(rows, "seed"):
        some = where(rows, seed=seed)
        whole = max(some, key=lambda row: int(row["points"]))["left"]
        made += [{**row, "more": 100 * (row["left"] / whole - 1)} for row in some]
    return made


def claims(rows: Rows) -> Sequence[Claim]:
    """What the paper says of other criteria."""
    batch, paths, thin = batches(rows), one_by_one(rows), where(rows, kind="thin")
    names = distinct(paths, "dataset")
    found = {
        raised: [-correlation(where(paths, dataset=name), raised, _P90) for name in names]
        for raised in RAISED.values()
    }
    worst = {
        name: max(abs(row["more"]) for row in _more(where(thin, dataset=name)) if _enough(row))
        for name in distinct([row for row in thin if _enough(row)], "dataset")
    }
    return [
        Claim(
            "100V performs poorly, sometimes worse than random.",
            f"Test MSE in batches, mean over the curve: {told(batch, 'mse') or 'not run'}. 100V "
            f"against EV {gaps(batch, 'mse', 'evgp-max', 'evgp')}, against random "
            f"{gaps(batch, 'mse', 'evgp-max', 'random')}. Holds if it is behind EV by more than a "
            "standard error on every dataset, and behind random on one at least.",
            verdict(
                [behind(some, "mse", "evgp-max", "evgp") for some in panels(batch).values()]
                + (
                    [any(ahead(s, "mse", "evgp-max", "random")[0] < 0 for s in _each(batch))]
                    if batch
                    else []
                )
            ),
        ),
        Claim(
            "90V is better than 100V, but not as effective as EV.",
            f"90V against 100V {gaps(batch, 'mse', 'evgp-p90', 'evgp-max')}, against EV "
            f"{gaps(batch, 'mse', 'evgp-p90', 'evgp')}. Holds if it is ahead of the one and "
            "behind the other by more than a standard error on every dataset.",
            verdict(
                [
                    outcome
                    for some in _each(batch)
                    for outcome in (
                        behind(some, "mse", "evgp-max", "evgp-p90"),
                        behind(some, "mse", "evgp-p90", "evgp"),
                    )
                ]
            ),
        ),
        Claim(
            "MI is often good, and sometimes outperforms EV, but not consistently.",
            f"MI against random {gaps(batch, 'mse', 'evgp-mi', 'random')}, against EV "
            f"{gaps(batch, 'mse', 'evgp-mi', 'evgp')}. Holds if its mean is better than "
            "random's on most datasets, and better than EV's on some, not on all.",
            verdict(_often(batch)),
        ),
        Claim(
            "The criteria are correlated with the output variance of trained networks.",
            "Spearman of what each lowers with the 90th percentile observed, over random sets, one "
            "seed: "
            + "; ".join(
                f"{raised} " + ", ".join(f"{value:.2f}" for value in values)
                for raised, values in found.items()
            )
            + f" ({', '.join(TITLES[name] for name in names)}). Holds where it is above 0 for EV.",
            verdict([value > 0 for value in found["ev"] if not isnan(value)]),
        ),
        Claim(
            "Ours: picks that look at a thinned test set are as good.",
            "Percent more variance left over all test points, at worst, where picks look at 500 or "
            "more of them: "
            + (
                ", ".join(f"{TITLES[name]} {value:.1f}" for name, value in sorted(worst.items()))
                or "not run"
            )
            + ". Holds if it is below 3 everywhere.",
            verdict([value < 3 for value in worst.values()]),
        ),
    ]


_P90 = "output_variance_p90"


def _each(rows: Rows) -> list[list[Record]]:
    return list(panels(rows).values())


def _enough(row: Record) -> bool:
    return int(row["points"]) >= 500


def _often(rows: Rows) -> list[bool]:
    good = [ahead(some, "mse", "evgp-mi", "random")[0] > 0 for some in _each(rows)]
    best = [ahead(some, "mse", "evgp-mi", "evgp")[0] > 0 for some in _each(rows)]
    return [sum(good) > len(good) / 2, any(best) and not all(best)] if good else []


_BATCH: dict[str, Any] = {
    "datasets": ["kin8nm", "protein", "boston", "naval"], "seeds": 5, "budget": 100, "batch": 20,
    "members": 50,
}  # fmt: skip
_THINS: dict[str, Any] = {
    "datasets": ["kin8nm", "protein", "optdigits"], "seeds": 3, "pool": 10_000, "budget": 100,
    "points": [100, 200, 500, 1000, 2000],
}  # fmt: skip

STUDY = Study(
    name="other-criteria",
    title="Other criteria: mutual information, 90V, 100V",
    paper="figures appx-small-set-other-crit, appx-small-set-batch-crits",
    shows="Each criterion against the variance of trained networks, paths and batches picked by "
    "each, and what thinning the test points costs.",
    scales={
        "paper": {"sequential": {**PAPER, "datasets": _DATA}, "batch": _BATCH, "thin": _THINS},
        "laptop": {
            "sequential": {**LAPTOP, "datasets": _DATA},
            "batch": {**_BATCH, "datasets": ["kin8nm", "boston"], "seeds": 3, "members": 10},
            "thin": {**_THINS, "pool": 4000, "seeds": 1},
        },
        "smoke": {
            "sequential": SMOKE,
            "batch": {
                **_BATCH, "datasets": ["boston"], "seeds": 1, "budget": 4, "batch": 2,
                "members": 2, "width": 8, "steps": 5, "pool": 40, "test": 20,
            },
            "thin": {
                "datasets": ["random-model"], "seeds": 1, "pool": 40, "budget": 4, "points": [10],
            },
        },
    },
    departures=LESS + " Batches: kin8nm and Boston, 10 networks in place of 50, 3 seeds in place "
    "of 5. Thinning: pools of 4,000.",
    cells=cells,
    draw=draw,
    claims=claims,
)  # fmt: skip
