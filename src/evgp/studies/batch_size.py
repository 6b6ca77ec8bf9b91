"""The same budget in batches of different sizes: who suffers from large ones?"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from evgp.studies.contests import MLMOC, curves, panels
from evgp.studies.contests import cells as contests
from evgp.studies.rows import Rows, distinct, where
from evgp.studies.study import Cell, Claim, Settings, Study, verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WAYS = ("evgp-emp", "badge", MLMOC)


def cells(settings: Settings) -> Sequence[Cell]:
    """Every batch size is a contest of its own."""
    return contests(
        {
            "contests": [
                {**one, "batch": batch}
                for one in settings["contests"]
                for batch in settings["batches"]
            ]
        }
    )


def draw(rows: Rows) -> "dict[str, Figure]":
    """Accuracy and entropy at the end of the budget, by the size of batches."""
    made = panels(rows)
    return {
        "batch-size": curves(made, ("accuracy", "output_entropy"), by="batch", xlabel="batch size")
    }


def claims(rows: Rows) -> Sequence[Claim]:
    """What the paper says of batch sizes."""
    return [
        Claim(
            "EV-GP-Emp is minimally affected by larger batches, in accuracy and in output entropy; "
            "if at all, it gets slightly worse.",
            f"With the largest batch less with the smallest, at the end of the budget: accuracy "
            f"{_told(rows, 'evgp-emp', 'accuracy')}, output entropy "
            f"{_told(rows, 'evgp-emp', 'output_entropy')}. Holds where no change is clear: none is "
            "larger than two standard errors over seeds.",
            verdict(
                [
                    abs(change) <= 2 * error
                    for metric in ("accuracy", "output_entropy")
                    for change, error in _changes(rows, "evgp-emp", metric).values()
                ]
            ),
        ),
        Claim(
            "MLMOC experiences a large drop with larger batches.",
            f"Accuracy {_told(rows, MLMOC, 'accuracy')}. Holds where it falls by more than two "
            "standard errors, and by more than that of EV-GP-Emp.",
            verdict(_drops(rows, MLMOC)),
        ),
        Claim(
            "BADGE is significantly worse with larger batches on MNIST.",
            f"Accuracy {_told(where(rows, dataset='mnist'), 'badge', 'accuracy')}. Holds by the "
            "same rule.",
            verdict(_drops(where(rows, dataset="mnist"), "badge")),
        ),
    ]


def _changes(rows: Rows, way: str, metric: str) -> dict[str, tuple[float, float]]:
    """From the smallest batch to the largest, paired over seeds: mean and standard error."""
    made = {}
    for title, some in panels(rows).items():
        mine = where(some, strategy=way)
        sizes = distinct(mine, "batch")
        ends = [{row["seed"]: row[metric] for row in mine if row["batch"] == size} for size in
                (min(sizes, default=0), max(sizes, default=0))]  # fmt: skip
        change = np.array([ends[1][seed] - ends[0][seed] for seed in ends[0] if seed in ends[1]])
        if len(change):
            error = float(stats.sem(change)) if len(change) > 1 else float("nan")
            made[title] = (float(change.mean()), error)
    return made


def _told(rows: Rows, way: str, metric: str) -> str:
    return (
        ", ".join(
            f"{change:+.3f} ± {error:.3f} ({title})"
            for title, (change, error) in _changes(rows, way, metric).items()
        )
        or "not run"
    )


def _drops(rows: Rows, way: str) -> list[bool]:
    ours = _changes(rows, "evgp-emp", "accuracy")
    return [
        change < -2 * error and change < ours.get(title, (0.0, 0.0))[0]
        for title, (change, error) in _changes(rows, way, "accuracy").items()
    ]


_ONE: dict[str, Any] = {"datasets": ["mnist"], "strategies": list(WAYS), "seeds": 5,
                        "budget": 400, "members": 25, "last_only": True}  # fmt: skip

STUDY = Study(
    name="batch-size",
    title="The same budget in larger batches",
    paper="figures results-vary-batch, results-vary-batch-appx",
    shows="Accuracy and output entropy at the end of one budget, by the size of batches.",
    scales={
        "paper": {
            "batches": [50, 100, 200, 400],
            "contests": [
                _ONE,
                {**_ONE, "datasets": ["emnist"], "depth": 3},
                {**_ONE, "datasets": ["svhn"], "network": "wrn-10-1"},
                {**_ONE, "datasets": ["emnist"], "network": "cnn"},
            ],
        },
        "laptop": {
            "batches": [50, 100, 200, 400],
            "contests": [{**_ONE, "seeds": 3, "members": 5}],
        },
        "smoke": {
            "batches": [2, 4],
            "contests": [
                {
                    **_ONE, "datasets": ["optdigits"], "task": "classification", "seeds": 1,
                    "budget": 4, "members": 2, "width": 8, "steps": 2, "pool": 40, "test": 20,
                }
            ],
        },
    },
    departures="MNIST alone, 5 networks in place of 25, 3 seeds in place of 5.",
    cells=cells,
    draw=draw,
    claims=claims,
)  # fmt: skip
