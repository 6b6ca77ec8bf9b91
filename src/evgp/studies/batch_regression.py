"""Regression in batches of 20: EV-GP beside random picks, k-means++, BADGE and MLMOC."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evgp.studies.contests import cells, curves, losses, panels
from evgp.studies.rows import Rows, distinct, where
from evgp.studies.study import Claim, Study
from evgp.studies.verdicts import compared, nearest, outperforms, rule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OTHERS = ("random", "kmeans++", "badge", "mlmoc")
CENTRAL = ("output_variance_p90", "mse")


def draw(rows: Rows) -> "dict[str, Figure]":
    """Variance and error by the number of labels."""
    return {"batch-regression": curves(panels(rows), CENTRAL)}


def claims(rows: Rows) -> Sequence[Claim]:
    """What the paper says of batches of a regression."""
    most = max(distinct(rows, "labels"))
    last = {
        name: where(rows, dataset=name, strategy="evgp", labels=most)
        for name in distinct(where(rows, strategy="evgp", labels=most), "dataset")
    }
    return [
        Claim(
            "EV-GP selects batches that lead to low output variance, and outperforms the other "
            "baselines.",
            "90th percentile of the output variance, "
            + compared(
                rows,
                CENTRAL[0],
                OTHERS,
                f"Mean training loss with all labels, of a variance of 1: {losses(last)}. ",
            ),
            outperforms(rows, CENTRAL[:1], OTHERS),
        ),
        Claim(
            "EV-GP selects batches that lead to small test error, and outperforms the other "
            "baselines.",
            f"Test MSE, {compared(rows, 'mse', OTHERS)}",
            outperforms(rows, ["mse"], OTHERS),
        ),
        Claim(
            "EV-GP outperforms random selection and k-means++.",
            f"Lead on the nearer of these two: test MSE {nearest(rows, 'mse', OTHERS[:2])}; "
            f"variance {nearest(rows, CENTRAL[0], OTHERS[:2])}. "
            + rule("EV-GP is better than both by both", rows),
            outperforms(rows, CENTRAL, OTHERS[:2]),
        ),
    ]


_ONE: dict[str, Any] = {
    "datasets": ["kin8nm", "protein", "boston", "naval"],
    "strategies": ["evgp", *OTHERS],
    "seeds": 5, "budget": 100, "batch": 20, "members": 50,
}  # fmt: skip

_MLMOC = (
    "MLMOC starts without labels; the paper says that it gave it 100 random ones for "
    "classification, and nothing of regression."
)

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
    departures=f"10 networks in place of 50, 3 seeds in place of 5. {_MLMOC}",
    paper_departures=_MLMOC,
    cells=cells,
    draw=draw,
    claims=claims,
)  # fmt: skip
