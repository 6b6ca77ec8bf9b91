"""Do BADGE and MLMOC need a first batch at random, and does one by EV-GP serve them better?"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evgp.comparison.rows import Records
from experiments.contests import averages, cells, curves, panels
from experiments.study import Claim, Study
from experiments.verdicts import Gap, graded, lead, little, percent, rule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WAYS = ("badge", "random+badge", "evgp+badge", "mlmoc", "random+mlmoc", "evgp+mlmoc")


def draw(rows: Records) -> "dict[str, Figure]":
    """Draw accuracy by the number of labels."""
    return {"initial-points": curves(panels(rows), ("accuracy", "output_entropy"))}


def claims(rows: Records) -> Sequence[Claim]:
    """The claims of the paper about a random first batch."""
    gains = {
        (way, first): {
            title: lead(subset, "accuracy", f"{first}+{way}", way)
            for title, subset in panels(rows).items()
        }
        for way in ("badge", "mlmoc")
        for first in ("random", "evgp")
    }
    instead = {
        way: {
            title: lead(subset, "accuracy", f"evgp+{way}", f"random+{way}")
            for title, subset in panels(rows).items()
        }
        for way in ("badge", "mlmoc")
    }
    warm = [gains["badge", "evgp"], gains["mlmoc", "evgp"], instead["badge"], instead["mlmoc"]]
    return [
        Claim(
            "BADGE shows little difference whether the first batch is random or not.",
            "A random first batch changes its accuracy, mean over the curve, by (in percent of the "
            "larger, ± standard error over seeds, paired) "
            f"{_listed(gains['badge', 'random'])}; that of MLMOC by "
            f"{_listed(gains['mlmoc', 'random'])}. Holds if the former, as a logarithm, is less "
            "than a quarter of the latter on every dataset, in part if less than half on some.",
            little(
                zip(
                    gains["badge", "random"].values(),
                    gains["mlmoc", "random"].values(),
                    strict=True,
                )
            ),
        ),
        Claim(
            "MLMOC relies on initial data: without it there is a noticeable drop.",
            f"A random first batch changes its accuracy by {_listed(gains['mlmoc', 'random'])}. "
            f"{averages(rows, 'accuracy')}. " + rule("accuracy is lower without it", rows),
            graded([gap] for gap in gains["mlmoc", "random"].values()),
        ),
        Claim(
            "Ours: a first batch by EV-GP is a better start for both.",
            f"It changes the accuracy of BADGE by {_listed(gains['badge', 'evgp'])}, that of MLMOC "
            f"by {_listed(gains['mlmoc', 'evgp'])}; compared with a random first batch by "
            f"{_listed(instead['badge'])} and {_listed(instead['mlmoc'])}. "
            + rule("accuracy is higher with it for both than with either other start", rows),
            graded([values[title] for values in warm] for title in panels(rows)),
        ),
    ]


def _listed(gains: Mapping[str, Gap]) -> str:
    return ", ".join(f"{percent(gap)} ({title})" for title, gap in gains.items())


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
    "batches of 50, where the paper's go to 400 (Table time1).",
    paper_departures="400 labels in batches of 100 on every dataset, as the paper says its budget "
    "for MNIST alone.",
    cells=cells,
    draw=draw,
    claims=claims,
)  # fmt: skip
