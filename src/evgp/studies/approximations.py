"""Cheaper kernels and posteriors: empirical, sparse, and sparse made linear."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evgp.studies.contests import ahead, contest, curves, panels, told
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
    gap = {
        way: [ahead(where(batch, dataset=name), "mse", way, "evgp")[0] for name in names]
        for way in WAYS[1:]
    }
    use = {
        way: [ahead(where(batch, dataset=name), "mse", way, "random")[0] for name in names]
        for way in WAYS[1:]
    }
    left = {way: _left([row for row in rows if "ev" in row], way) for way in WAYS}
    slower = {
        name: _seconds(where(batch, dataset=name), "evgp-sparse")
        / _seconds(where(batch, dataset=name), "evgp")
        for name in names
    }
    listed = ", ".join(TITLES[name] for name in names)
    return [
        Claim(
            "The empirical kernel loses some performance but is useful.",
            f"Test MSE in batches against the exact kernel {_percent(gap['evgp-emp'])}, against "
            f"random {_percent(use['evgp-emp'])} ({listed}; positive is better). "
            f"{told(batch, 'mse')}.",
            verdict([value > 0 for value in use["evgp-emp"]]),
        ),
        Claim(
            "The sparse posterior is still a useful approximation.",
            f"Against the exact one {_percent(gap['evgp-sparse'])}, against random "
            f"{_percent(use['evgp-sparse'])}.",
            verdict([value > 0 for value in use["evgp-sparse"]]),
        ),
        Claim(
            "A linear approximation on top of it worsens the selection.",
            f"Linearised against exact {_percent(gap['evgp-linear'])}, sparse against exact "
            f"{_percent(gap['evgp-sparse'])}. Predicted variance left by picks one by one, over "
            "that of exact ones: "
            + ", ".join(f"{way} {value:.3f}" for way, value in left.items())
            + ".",
            verdict(
                [a < b - 1 for a, b in zip(gap["evgp-linear"], gap["evgp-sparse"], strict=True)]
            ),
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


def _percent(values: Sequence[float]) -> str:
    return ", ".join(f"{value:+.0f} %" for value in values) or "not run"


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
