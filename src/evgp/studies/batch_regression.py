"""Regression in batches of 20: EV-GP beside random picks, k-means++, BADGE and MLMOC."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evgp.studies.contests import cells, curves, panels, told
from evgp.studies.data import TITLES
from evgp.studies.rows import Rows, column, distinct, where
from evgp.studies.study import Claim, Study
from evgp.studies.verdicts import badge, between, nearest, outperforms, rule, sometimes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OTHERS = ("random", "kmeans++", "badge", "mlmoc")
CENTRAL = ("output_variance_p90", "mse")


def draw(rows: Rows) -> "dict[str, Figure]":
    """Variance and error by the number of labels."""
    return {"batch-regression": curves(panels(rows), CENTRAL)}


def claims(rows: Rows) -> Sequence[Claim]:
    """What the paper says of batches of a regression."""
    lead_of = (
        "Lead on the rival that is nearest, in percent of the larger of the two, ± standard error "
        "over seeds, paired"
    )
    better = "EV-GP is better than each other strategy"
    return [
        Claim(
            "EV-GP selects batches that lead to low output variance, and outperforms the other "
            "baselines.",
            f"90th percentile of the output variance, mean over the curve: "
            f"{told(rows, CENTRAL[0])}. {lead_of}: {nearest(rows, CENTRAL[0], OTHERS)}. Mean "
            f"training loss with all labels, of a variance of 1: {_losses(rows)}. "
            + rule(better, rows),
            outperforms(rows, CENTRAL[:1], OTHERS),
        ),
        Claim(
            "EV-GP selects batches that lead to small test error, and outperforms the other "
            "baselines.",
            f"Test MSE, mean over the curve: {told(rows, 'mse')}. {lead_of}: "
            f"{nearest(rows, 'mse', OTHERS)}. " + rule(better, rows),
            outperforms(rows, ["mse"], OTHERS),
        ),
        Claim(
            "EV-GP outperforms random selection and k-means++.",
            f"Lead on the nearer of these two: test MSE {nearest(rows, 'mse', OTHERS[:2])}; "
            f"variance {nearest(rows, CENTRAL[0], OTHERS[:2])}. "
            + rule("EV-GP is better than both by both", rows),
            outperforms(rows, CENTRAL, OTHERS[:2]),
        ),
        Claim(
            "BADGE, without initial labels, is able to beat EV-GP in some experiments.",
            f"Lead of BADGE on EV-GP: test MSE {between(rows, 'mse', 'badge', 'evgp')}; variance "
            f"{between(rows, CENTRAL[0], 'badge', 'evgp')}. Holds if it is above zero on some "
            "dataset, by more than one standard error; in part if by the mean.",
            sometimes(badge(rows, CENTRAL)),
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
    departures="10 networks in place of 50, 3 seeds in place of 5. MLMOC starts without labels.",
    paper_departures="MLMOC starts without labels: the authors gave it 100 random ones, which is "
    "all of this budget.",
    cells=cells,
    draw=draw,
    claims=claims,
)  # fmt: skip
