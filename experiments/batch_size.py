"""The same budget in batches of different sizes: which strategies suffer from large ones?"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evgp.comparison.cells import Cell, Settings
from evgp.comparison.rows import Record, Records, distinct, where
from evgp.comparison.statistics import areas, mean_and_error
from experiments.contests import MLMOC, NAMES, curves, panels
from experiments.contests import cells as contests
from experiments.study import Claim, Study, verdict
from experiments.verdicts import (
    Gap,
    between,
    graded,
    lead,
    little,
    rule,
    signed,
    sometimes,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WAYS = ("evgp-emp", "badge", MLMOC)


def cells(settings: Settings) -> Sequence[Cell]:
    """Cells of one contest per batch size."""
    return contests(
        {
            "contests": [
                {**contest, "batch": batch}
                for contest in settings["contests"]
                for batch in settings["batches"]
            ]
        }
    )


def draw(rows: Records) -> "dict[str, Figure]":
    """Draw accuracy and entropy at the end of the budget, by batch size."""
    result = panels(rows)
    return {
        "batch-size": curves(
            result, ("accuracy", "output_entropy"), by="batch", xlabel="batch size"
        )
    }


def claims(rows: Records) -> Sequence[Claim]:
    """The claims of the paper about batch sizes."""
    return [
        Claim(
            "EV-GP-Emp is minimally affected by larger batches, in accuracy and in output entropy; "
            "if at all, it gets slightly worse.",
            f"With the largest batch less with the smallest, at the end of the budget (± standard "
            f"error over seeds): accuracy {_told(rows, 'evgp-emp', 'accuracy')}, output entropy "
            f"{_told(rows, 'evgp-emp', 'output_entropy')}. BADGE: "
            f"{_told(rows, 'badge', 'accuracy')}, {_told(rows, 'badge', 'output_entropy')}; MLMOC: "
            f"{_told(rows, MLMOC, 'accuracy')}, {_told(rows, MLMOC, 'output_entropy')}. Holds if "
            "each change for the worse is less than a quarter of the smaller of these two; in part "
            "if one is less than half.",
            little([item for metric in _SIGNS for item in _beside(rows, metric)]),
        ),
        Claim(
            "MLMOC experiences a large drop with larger batches, on both datasets.",
            f"Accuracy {_told(rows, MLMOC, 'accuracy')}. Holds if it falls by more than a standard "
            "error, and by more than that of EV-GP-Emp, on both; in part if on one.",
            verdict([*_drops(rows, MLMOC), *[False] * (2 - len(panels(rows)))] if rows else []),
        ),
        Claim(
            "BADGE is significantly worse with larger batches on MNIST.",
            f"Accuracy {_told(where(rows, dataset='mnist'), 'badge', 'accuracy')}. Holds by the "
            "same rule.",
            verdict(_drops(where(rows, dataset="mnist"), "badge")),
        ),
        Claim(
            "BADGE, without initial labels, is able to beat EV-GP in some experiments.",
            "Lead of BADGE on EV-GP-Emp in accuracy with the smallest batches (± standard error "
            f"over seeds): {between(_smallest(rows), 'accuracy', 'badge', 'evgp-emp')}; other "
            "contests with BADGE are [batch-regression](batch-regression.md), [classification-mlp]"
            "(classification-mlp.md) and [classification-convolutions]"
            "(classification-convolutions.md). "
            "Holds if it is above zero on some dataset, by more than one standard error; in part "
            "if by the mean.",
            sometimes(
                [
                    lead(panel, "accuracy", "badge", "evgp-emp")
                    for panel in panels(_smallest(rows)).values()
                ]
            ),
        ),
        Claim(
            "The advantage of EV-GP is particularly pronounced when batches are large.",
            "Lead of EV-GP-Emp in accuracy by the size of batches: "
            + "; ".join(f"on {NAMES[way]} {_by_size(rows, way)}" for way in WAYS[1:])
            + ". "
            + rule("it is above zero with the largest and above that with the smallest", rows),
            graded(
                [gap for way in WAYS[1:] for gap in _pronounced(panel, way)]
                for panel in panels(rows).values()
            ),
        ),
    ]


def _by_size(rows: Records, way: str) -> str:
    """The lead of EV-GP-Emp over another strategy, for each batch size."""
    return ", ".join(
        f"{size}: {between(where(rows, batch=size), 'accuracy', 'evgp-emp', way)}"
        for size in sorted(distinct(rows, "batch"))
    )


def _pronounced(rows: Records, way: str) -> list[Gap]:
    """The lead with the largest batches, and its difference from that with the smallest."""
    sizes = sorted(distinct(rows, "batch"))
    results = []
    for size in (sizes[0], sizes[-1]):
        subset = where(rows, batch=size)
        ours, theirs = (areas(subset, "accuracy", item) for item in ("evgp-emp", way))
        results.append({seed: np.log(ours[seed] / theirs[seed]) for seed in ours if seed in theirs})
    small, large = results
    return [
        mean_and_error(large.values()),
        mean_and_error(large[seed] - small[seed] for seed in large if seed in small),
    ]


def _smallest(rows: Records) -> list[Record]:
    return where(rows, batch=min(distinct(rows, "batch"), default=0))


def _changes(rows: Records, way: str, metric: str) -> dict[str, Gap]:
    """Change from the smallest batch to the largest, paired by seeds: mean and standard error."""
    entries = {}
    for title, subset in panels(rows).items():
        mine = where(subset, strategy=way)
        sizes = distinct(mine, "batch")
        ends = [{row["seed"]: row[metric] for row in mine if row["batch"] == size} for size in
                (min(sizes, default=0), max(sizes, default=0))]  # fmt: skip
        change = [ends[1][seed] - ends[0][seed] for seed in ends[0] if seed in ends[1]]
        if change:
            entries[title] = mean_and_error(change)
    return entries


_SIGNS = {"accuracy": -1.0, "output_entropy": 1.0}  # for the worse


def _beside(rows: Records, metric: str) -> list[tuple[Gap, Gap]]:
    """How much worse EV-GP-Emp gets, compared with the most robust rival, on each dataset."""
    ours, *rivals = (
        {
            title: (max(0.0, _SIGNS[metric] * mean), error)
            for title, (mean, error) in _changes(rows, way, metric).items()
        }
        for way in WAYS
    )
    return [
        (ours[title], min(rival[title] for rival in rivals))
        for title in ours
        if all(title in rival for rival in rivals)
    ]


def _told(rows: Records, way: str, metric: str) -> str:
    values = _changes(rows, way, metric)
    return ", ".join(f"{signed(gap)} ({title})" for title, gap in values.items()) or "not run"


def _drops(rows: Records, way: str) -> list[bool]:
    ours = _changes(rows, "evgp-emp", "accuracy")
    return [
        change < -error and change < ours.get(title, (0.0, 0.0))[0]
        for title, (change, error) in _changes(rows, way, "accuracy").items()
    ]


_ONE: dict[str, Any] = {"datasets": ["mnist"], "strategies": list(WAYS), "seeds": 5,
                        "budget": 400, "members": 25, "last_only": True}  # fmt: skip

_FIRST = (
    "MLMOC starts with 100 random points; in batches of 200 and 400 it picks the rest of the first "
    "batch without knowing their labels, which the authors' first 100 points had."
)

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
    departures="MNIST alone, 5 networks in place of 25, 3 seeds in place of 5. " + _FIRST,
    paper_departures="400 labels on every dataset, as the paper does not say its budgets. "
    + _FIRST,
    cells=cells,
    draw=draw,
    claims=claims,
)  # fmt: skip
