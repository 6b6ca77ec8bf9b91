"""Other criteria than the mean variance: mutual information, percentiles, and thinner test sets."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from evgp.kernels import NTK
from evgp.nets import mlp
from evgp.pool import Pool
from evgp.posterior import ntkgp
from evgp.strategies import EVGP, Thinned
from evgp.studies.contests import contest, curves, panels, told, wins
from evgp.studies.data import TITLES, dataset
from evgp.studies.rows import Record, Rows, column, distinct, where
from evgp.studies.sequential_selection import LAPTOP, LESS, PAPER, SMOKE
from evgp.studies.set_figures import scattered
from evgp.studies.sets import correlation, ways
from evgp.studies.study import Cell, Claim, Settings, Study

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
        some = [row for seed in distinct(rows, "seed") for row in _thin(rows, name, seed)]
        axes.plot(column(some, "points"), column(some, "more"), "o-", ms=4, label=TITLES[name])
    axes.axhline(0, color="#9a9fae", linewidth=0.8)
    axes.set(xscale="log", xlabel="test points that picks look at", ylabel="variance left, % more")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return figure


def _thin(rows: Rows, name: str, seed: int) -> list[Record]:
    """Percent more variance left than with all test points."""
    some = where(rows, dataset=name, seed=seed)
    if not some:
        return []
    least = max(some, key=lambda row: int(row["points"]))["left"]
    return [{**row, "more": 100 * (row["left"] / least - 1)} for row in some]


def claims(rows: Rows) -> Sequence[Claim]:
    """What the paper says of other criteria."""
    batch = batches(rows)
    said = told(batch, "mse") if batch else "no batches were run"
    paths = one_by_one(rows)
    found = {
        raised: [
            -correlation(where(paths, dataset=name), raised, "output_variance_p90")
            for name in distinct(paths, "dataset")
        ]
        for raised in RAISED.values()
    }
    thin = where(rows, kind="thin")
    seeds = distinct(thin, "seed")
    lost = [
        (name, row["points"], row["more"])
        for name in distinct(thin, "dataset")
        for seed in seeds[:1]
        for row in _thin(thin, name, seed)
    ]
    worst = {
        name: max(abs(more) for one, points, more in lost if one == name and points >= 500)
        for name in {one for one, points, _ in lost if points >= 500}
    }
    return [
        Claim(
            "100V performs poorly, sometimes worse than random.",
            f"Test MSE in batches, mean over the curve: {said}.",
            _reversed(wins(batch, "mse", "evgp-max", ["evgp", "evgp-p90", "evgp-mi"])),
        ),
        Claim(
            "90V is better than 100V, but not as effective as EV.",
            "As above.",
            wins(batch, "mse", "evgp", ["evgp-p90", "evgp-max"]),
        ),
        Claim(
            "MI is often good, and sometimes outperforms EV, but not consistently.",
            "As above. Spearman with the observed variance over random sets: "
            + "; ".join(
                f"{raised} " + ", ".join(f"{value:.2f}" for value in values)
                for raised, values in found.items()
            )
            + f" ({', '.join(TITLES[name] for name in distinct(paths, 'dataset'))}).",
            "holds"
            if wins(batch, "mse", "evgp", ["evgp-mi"]) == "holds in part"
            else "not measured"
            if not batch
            else "holds in part",
        ),
        Claim(
            "A thinned test set speeds the criterion up without harm.",
            "Percent more variance left over all test points with 500 or more of them: "
            + ", ".join(f"{TITLES[name]} {value:.1f}" for name, value in sorted(worst.items()))
            + ".",
            "not measured"
            if not worst
            else "holds"
            if max(worst.values()) < 3
            else "holds in part",
        ),
    ]


def _reversed(verdict: Any) -> Any:
    """The claim is that it does not win."""
    return {"holds": "does not hold", "does not hold": "holds"}.get(verdict, verdict)


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
