"""Cheaper kernels and posteriors: empirical, sparse, and sparse made linear."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evgp.studies.contests import NAMES, behind, contest, curves, gaps, panels, told
from evgp.studies.data import TITLES
from evgp.studies.rows import Record, Rows, column, distinct, mean_by, where
from evgp.studies.sequential_selection import LAPTOP, LESS, PAPER, SMOKE
from evgp.studies.set_figures import scattered
from evgp.studies.sets import ways
from evgp.studies.study import Cell, Claim, Settings, Study, verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WAYS = ("evgp", "evgp-emp", "evgp-sparse", "evgp-linear")
_DATA = ["boston", "naval", "kin8nm", "protein"]


def cells(settings: Settings) -> Sequence[Cell]:
    """Paths one by one, and batches."""
    return [
        *ways(strategies=[*WAYS, "random"], **settings["sequential"]),
        *contest(strategies=[*WAYS, "random"], **settings["batch"]),
    ]


def batches(rows: Rows) -> list[Record]:
    """Rows of the batch part."""
    return [row for row in rows if "batch" in row]


def draw(rows: Rows) -> "dict[str, Figure]":
    """Variance by the size of sets; batches."""
    paths = [row for row in rows if "ev" in row]
    made = {
        "approximations": scattered(
            paths, [], dict.fromkeys(WAYS, "ev"), ["output_variance_p90", "mse"]
        )
    }
    if batches(rows):
        made["approximations-batch"] = curves(panels(batches(rows)), ("output_variance_p90", "mse"))
    return made


def claims(rows: Rows) -> Sequence[Claim]:
    """What the paper says of approximations."""
    batch = batches(rows)
    names = distinct(batch, "dataset")
    each = [where(batch, dataset=name) for name in names]
    left = {way: _left([row for row in rows if "ev" in row], way) for way in WAYS}
    slower = {
        name: _seconds(some, "evgp-sparse") / _seconds(some, "evgp")
        for name, some in zip(names, each, strict=True)
    }
    return [
        Claim(
            "The empirical kernel loses some performance but is useful.",
            f"Test MSE in batches better by (± standard error): than with the exact kernel "
            f"{gaps(batch, 'mse', 'evgp-emp', 'evgp')}, than random "
            f"{gaps(batch, 'mse', 'evgp-emp', 'random')}. {told(batch, 'mse')}. Useful is what is "
            "ahead of random by more than a standard error.",
            verdict([behind(some, "mse", "random", "evgp-emp") for some in each]),
        ),
        Claim(
            "The sparse posterior is still a useful approximation.",
            f"Than the exact one {gaps(batch, 'mse', 'evgp-sparse', 'evgp')}, than random "
            f"{gaps(batch, 'mse', 'evgp-sparse', 'random')}.",
            verdict([behind(some, "mse", "random", "evgp-sparse") for some in each]),
        ),
        Claim(
            "A linear approximation on top of it worsens the selection.",
            f"Linearised better than sparse by {gaps(batch, 'mse', 'evgp-linear', 'evgp-sparse')}. "
            "Predicted variance left by picks one by one, over that of exact ones: "
            + ", ".join(f"{NAMES[way]} {value:.3f}" for way, value in left.items())
            + ". Holds where it is behind by more than a standard error.",
            verdict([behind(some, "mse", "evgp-linear", "evgp-sparse") for some in each]),
        ),
        Claim(
            "For small sets the sparse posterior brings no gain in time.",
            "Seconds to pick, over those with the exact kernel: "
            + ", ".join(f"{TITLES[name]} {value:.1f}" for name, value in slower.items())
            + ".",
            verdict([value > 1 for value in slower.values()]),
        ),
    ]


def _seconds(rows: Rows, way: str) -> float:
    return float(column(where(rows, strategy=way), "pick_seconds").sum())


def _left(rows: Rows, way: str) -> float:
    """Mean predicted variance of a path over that of exact picks, at the last size."""
    ratios = []
    for name in distinct(rows, "dataset"):
        ends = [
            mean_by(where(rows, dataset=name, strategy=one), "labels", "ev")[1]
            for one in (way, "evgp")
        ]
        if all(len(end) for end in ends):
            ratios.append(ends[0][-1, 0] / ends[1][-1, 0])
    return sum(ratios) / len(ratios) if ratios else float("nan")


_BATCH: dict[str, Any] = {
    "datasets": ["naval", "kin8nm"], "seeds": 5, "budget": 100, "batch": 20, "members": 50,
}  # fmt: skip

STUDY = Study(
    name="approximations",
    title="Empirical, sparse and linearised",
    paper="figures appx-regr-sntkgp-incremental, appx-small-set-batch-sntkgp",
    shows="Variance and error with the exact NTKGP, the empirical kernel, the sparse posterior and "
    "its linearised form.",
    scales={
        "paper": {"sequential": {**PAPER, "datasets": _DATA}, "batch": _BATCH},
        "laptop": {
            "sequential": {**LAPTOP, "datasets": _DATA},
            "batch": {**_BATCH, "seeds": 3, "members": 10},
        },
        "smoke": {
            "sequential": SMOKE,
            "batch": {
                **_BATCH, "datasets": ["boston"], "seeds": 1, "budget": 4, "batch": 2,
                "members": 2, "width": 8, "steps": 5, "pool": 40, "test": 20,
            },
        },
    },
    departures=LESS + " Batches: 10 networks in place of 50, 3 seeds in place of 5.",
    cells=cells,
    draw=draw,
    claims=claims,
)  # fmt: skip
