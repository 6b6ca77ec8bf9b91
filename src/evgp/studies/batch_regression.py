"""Regression in batches of 20: EV-GP beside random picks, k-means++, BADGE and MLMOC."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evgp.studies.contests import cells, curves, panels, told, wins
from evgp.studies.data import TITLES
from evgp.studies.rows import Rows, column, distinct, where
from evgp.studies.study import Claim, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OTHERS = ("random", "kmeans++", "badge", "mlmoc")
CENTRAL = ("output_variance_p90", "mse")


def draw(rows: Rows) -> "dict[str, Figure]":
    """Variance and error by the number of labels."""
    return {"batch-regression": curves(panels(rows), CENTRAL)}


def claims(rows: Rows) -> Sequence[Claim]:
    """What the paper says of batches of a regression."""
    return [
        Claim(
            "EV-GP selects batches that lead to low output variance, and outperforms the other "
            "baselines.",
            f"90th percentile of the output variance, mean over the curve: "
            f"{told(rows, 'output_variance_p90')}. Training as the paper's does not come to its "
            f"end everywhere, and the kernel speaks of networks at rest: mean training loss with "
            f"all labels, of a variance of 1: {_losses(rows)}.",
            wins(rows, "output_variance_p90", "evgp", OTHERS),
        ),
        Claim(
            "EV-GP selects batches that lead to small test error, and outperforms the other "
            "baselines.",
            f"Test MSE, mean over the curve: {told(rows, 'mse')}.",
            wins(rows, "mse", "evgp", OTHERS),
        ),
        Claim(
            "EV-GP outperforms random selection and k-means++, which takes outliers.",
            f"Test MSE against these two alone, as above: "
            f"{wins(rows, 'mse', 'evgp', OTHERS[:2])}; variance: "
            f"{wins(rows, 'output_variance_p90', 'evgp', OTHERS[:2])}.",
            wins(rows, "mse", "evgp", OTHERS[:2]),
        ),
    ]


def _losses(rows: Rows) -> str:
    """What training left of the picks of EV-GP, dataset by dataset."""
    most = max(int(row["labels"]) for row in rows)
    return ", ".join(
        f"{TITLES[name]} {column(some, 'train_loss').mean():.2g}"
        for name in distinct(rows, "dataset")
        if (some := where(rows, dataset=name, strategy="evgp", labels=most))
    )


_ONE: dict[str, Any] = {
    "datasets": ["kin8nm", "protein", "boston", "naval"],
    "strategies": ["evgp", *OTHERS],
    "seeds": 5, "budget": 100, "batch": 20, "members": 50,
}  # fmt: skip

STUDY = Study(
    name="batch-regression",
    title="Regression in batches of 20",
    paper="figures small-set-batch, appx-small-set-batch",
    shows="Output variance and test error by the number of labels, five strategies.",
    scales={
        "paper": {"contests": [_ONE]},
        "laptop": {"contests": [{**_ONE, "seeds": 3, "members": 10}]},
        "smoke": {
            "contests": [
                {
                    **_ONE, "datasets": ["boston"], "strategies": ["evgp", "random"], "seeds": 1,
                    "budget": 8, "batch": 4, "members": 2, "width": 8, "steps": 5, "test": 20,
                }
            ]
        },
    },
    departures="10 networks in place of 50, 3 seeds in place of 5.",
    cells=cells,
    draw=draw,
    claims=claims,
)  # fmt: skip
