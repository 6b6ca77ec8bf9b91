"""Classification with multi-layer perceptrons: MNIST and EMNIST."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evgp.studies.contests import NAMES, ahead, cells, curves, panels, told, wins
from evgp.studies.data import TITLES
from evgp.studies.rows import Rows, distinct, where
from evgp.studies.study import Claim, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OTHERS = ("random", "kmeans++", "badge", "mlmoc")
CENTRAL = ("output_entropy", "accuracy")


def draw(rows: Rows) -> "dict[str, Figure]":
    """Entropy and accuracy by the number of labels."""
    return {"classification-mlp": curves(panels(rows), CENTRAL)}


def claims(rows: Rows) -> Sequence[Claim]:
    """What the paper says of classification with MLPs."""
    names = distinct(rows, "dataset")
    first = {name: min(distinct(where(rows, dataset=name), "labels")) for name in names}
    early = [row for row in rows if row["labels"] == first[row["dataset"]]]
    return [
        Claim(
            "EV-GP selects points that lead to initialisation robustness (low output entropy) and "
            "outperforms the other baselines.",
            f"Output entropy, mean over the curve: {told(rows, 'output_entropy')}.",
            wins(rows, "output_entropy", "evgp", OTHERS),
        ),
        Claim(
            "EV-GP selects points that lead to high accuracy and outperforms the other baselines.",
            f"Accuracy, mean over the curve: {told(rows, 'accuracy')}.",
            wins(rows, "accuracy", "evgp", OTHERS),
        ),
        Claim(
            "Especially in the earlier rounds, when few points are selected.",
            f"Accuracy after the first batch: {told(early, 'accuracy')}; better than random by "
            + _lead(early)
            + " there and "
            + _lead(rows)
            + " over the whole curve.",
            wins(early, "accuracy", "evgp", OTHERS),
        ),
    ]


def _lead(rows: Rows) -> str:
    return ", ".join(
        f"{ahead(where(rows, dataset=name), 'accuracy', 'evgp', 'random')[0]:.0f} % "
        f"({TITLES[name]}, {NAMES['evgp']})"
        for name in distinct(rows, "dataset")
    )


_MNIST: dict[str, Any] = {
    "datasets": ["mnist"], "strategies": ["evgp", *OTHERS], "seeds": 5,
    "budget": 400, "batch": 100, "members": 25,
}  # fmt: skip
_EMNIST: dict[str, Any] = {
    **_MNIST,
    "datasets": ["emnist"],
    "depth": 3,
    "budget": 800,
    "batch": 200,
}
_FEW: dict[str, Any] = {"seeds": 3, "budget": 200, "batch": 50, "members": 10}

STUDY = Study(
    name="classification-mlp",
    title="Classification with multi-layer perceptrons",
    paper="figure results-class-all a, b",
    shows="Output entropy and accuracy by the number of labels on MNIST (2 layers) and EMNIST (3 "
    "layers).",
    scales={
        "paper": {"contests": [_MNIST, _EMNIST]},
        "laptop": {
            "contests": [
                {**_MNIST, **_FEW},
                {**_EMNIST, "seeds": 2, "budget": 400, "batch": 100, "members": 5, "pool": 5000,
                 "test": 4000, "steps": 50},
            ]
        },
        "smoke": {
            "contests": [
                {
                    **_MNIST, "datasets": ["optdigits"], "task": "classification",
                    "strategies": ["evgp", "random"], "seeds": 1, "budget": 8, "batch": 4,
                    "members": 2, "width": 8, "steps": 2, "pool": 60, "test": 20,
                }
            ]
        },
    },
    departures="MNIST: 10 networks in place of 25, 3 seeds in place of 5, 200 labels in batches of "
    "50. EMNIST: 5 networks, 2 seeds, 400 labels in batches of 100, a pool of 5,000 of the paper's "
    "20,000, 4,000 test points, 50 epochs in place of 100. The paper does not say its budgets.",
    cells=cells,
    draw=draw,
    claims=claims,
)  # fmt: skip
