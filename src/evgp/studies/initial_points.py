"""Do BADGE and MLMOC need a first batch at random, and does one by EV-GP serve them better?"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evgp.studies.contests import ahead, cells, curves, panels, told
from evgp.studies.data import TITLES
from evgp.studies.rows import Rows, distinct, where
from evgp.studies.study import Claim, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WAYS = ("badge", "random+badge", "evgp+badge", "mlmoc", "random+mlmoc", "evgp+mlmoc")


def draw(rows: Rows) -> "dict[str, Figure]":
    """Accuracy by the number of labels."""
    return {"initial-points": curves(panels(rows), ("accuracy", "output_entropy"))}


def claims(rows: Rows) -> Sequence[Claim]:
    """What the paper says of a random first batch."""
    names = distinct(rows, "dataset")
    gains = {
        (way, first): [
            ahead(where(rows, dataset=name), "accuracy", f"{first}+{way}", way) for name in names
        ]
        for way in ("badge", "mlmoc")
        for first in ("random", "evgp")
    }
    badge = [abs(gap) for gap, _ in gains["badge", "random"]]
    mlmoc = [gap for gap, _ in gains["mlmoc", "random"]]
    warm = [gap for way in ("badge", "mlmoc") for gap, _ in gains[way, "evgp"]]
    return [
        Claim(
            "BADGE shows little difference whether the first batch is random or not.",
            f"A random first batch changes its accuracy, mean over the curve, by "
            f"{_listed(names, gains['badge', 'random'])}.",
            "holds" if max(badge) < 3 else "holds in part" if min(badge) < 3 else "does not hold",
        ),
        Claim(
            "MLMOC relies on initial data: without it there is a noticeable drop.",
            f"A random first batch changes its accuracy by "
            f"{_listed(names, gains['mlmoc', 'random'])}. {told(rows, 'accuracy')}.",
            "holds" if min(mlmoc) > 3 else "holds in part" if max(mlmoc) > 3 else "does not hold",
        ),
        Claim(
            "Ours: a first batch by EV-GP is a better start for both.",
            f"BADGE {_listed(names, gains['badge', 'evgp'])}; MLMOC "
            f"{_listed(names, gains['mlmoc', 'evgp'])}.",
            "holds" if min(warm) > 0 else "holds in part" if np.mean(warm) > 0 else "does not hold",
        ),
    ]


def _listed(names: Sequence[str], gains: Sequence[tuple[float, float]]) -> str:
    return ", ".join(
        f"{gap:+.0f} %" + (f" ± {error:.0f}" if error >= 0 else "") + f" ({TITLES[name]})"
        for name, (gap, error) in zip(names, gains, strict=True)
    )


_ONE: dict[str, Any] = {"datasets": ["mnist"], "strategies": list(WAYS), "seeds": 5,
                        "budget": 400, "batch": 100, "members": 25}  # fmt: skip

STUDY = Study(
    name="initial-points",
    title="A first batch at random for BADGE and MLMOC",
    paper="figure results-randinit",
    shows="Accuracy with and without a random first batch, and with our warm start by EV-GP.",
    scales={
        "paper": {
            "contests": [
                _ONE,
                {**_ONE, "datasets": ["emnist"], "depth": 3},
                {**_ONE, "datasets": ["svhn"], "network": "wrn-10-1"},
            ]
        },
        "laptop": {
            "contests": [{**_ONE, "seeds": 3, "budget": 200, "batch": 50, "members": 10}]
        },
        "smoke": {
            "contests": [
                {
                    **_ONE, "datasets": ["optdigits"], "task": "classification", "seeds": 1,
                    "budget": 6, "batch": 3, "members": 2, "width": 8, "steps": 2, "pool": 40,
                    "test": 20,
                }
            ]
        },
    },
    departures="MNIST alone, 10 networks in place of 25, 3 seeds in place of 5, 200 labels in "
    "batches of 50.",
    cells=cells,
    draw=draw,
    claims=claims,
)  # fmt: skip
