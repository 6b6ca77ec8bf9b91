"""The same budget in batches of different sizes: who suffers from large ones?"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evgp.studies.contests import cells as contests
from evgp.studies.contests import curves, panels
from evgp.studies.data import TITLES
from evgp.studies.rows import Rows, distinct, mean_by, where
from evgp.studies.study import Cell, Claim, Settings, Study, verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WAYS = ("evgp-emp", "badge", "mlmoc")


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
    drops = {
        (name, way): _drop(where(rows, dataset=name, strategy=way), "accuracy")
        for name in distinct(rows, "dataset")
        for way in WAYS
    }
    mixed = {
        name: _drop(where(rows, dataset=name, strategy="evgp-emp"), "output_entropy")
        for name in distinct(rows, "dataset")
    }
    ours = [drop for (_, way), drop in drops.items() if way == "evgp-emp"]
    mlmoc = [drop for (_, way), drop in drops.items() if way == "mlmoc"]
    badge = [drop for (name, way), drop in drops.items() if way == "badge" and name == "mnist"]
    said = ", ".join(f"{way} {drop:+.3f} ({TITLES[name]})" for (name, way), drop in drops.items())
    return [
        Claim(
            "EV-GP-Emp is minimally affected by larger batches, in accuracy and in output entropy; "
            "if at all, it gets slightly worse.",
            f"Accuracy at the end with the largest batch less that with the smallest: {said}. "
            "Output entropy of EV-GP-Emp: "
            + ", ".join(f"{change:+.3f} ({TITLES[name]})" for name, change in mixed.items())
            + ".",
            verdict(
                [abs(drop) < 0.02 for drop in ours] + [abs(one) < 0.05 for one in mixed.values()]
            ),
        ),
        Claim(
            "MLMOC experiences a large drop with larger batches.",
            "As above.",
            verdict([drop < -0.02 for drop in mlmoc]),
        ),
        Claim(
            "BADGE is significantly worse with larger batches on MNIST.",
            "As above.",
            verdict([drop < -0.02 for drop in badge]),
        ),
    ]


def _drop(rows: Rows, metric: str) -> float:
    _, found = mean_by(rows, "batch", metric)
    return float(found[-1, 0] - found[0, 0]) if len(found) else float("nan")


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
