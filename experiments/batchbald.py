"""EV-GP compared with BatchBALD, which uses one network with many dropout masks."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evgp.comparison.rows import Records
from experiments.contests import averages, cells, curves, panels
from experiments.study import Claim, Study
from experiments.verdicts import between, outperforms, rule

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(rows: Records) -> "dict[str, Figure]":
    """Draw entropy and accuracy by the number of labels."""
    return {"batchbald": curves(panels(rows), ("output_entropy", "accuracy"))}


def claims(rows: Records) -> Sequence[Claim]:
    """The claims of the paper about BatchBALD."""
    return [
        Claim(
            "EV-GP outperforms BatchBALD, which is less suitable without initial labels and with "
            "large batches.",
            f"Mean over the curve, output entropy: {averages(rows, 'output_entropy')}; accuracy: "
            f"{averages(rows, 'accuracy')}. Lead of EV-GP on BatchBALD, in percent of the larger "
            "of the two, ± standard error over seeds, paired: output entropy "
            f"{between(rows, 'output_entropy', 'evgp', 'batchbald')}; accuracy "
            f"{between(rows, 'accuracy', 'evgp', 'batchbald')}. "
            + "That BatchBALD does better with initial labels or in small batches is not tried. "
            + rule("EV-GP is better than BatchBALD by both", rows),
            outperforms(rows, ["output_entropy", "accuracy"], ["batchbald"]),
        )
    ]


_MLP: dict[str, Any] = {
    "datasets": ["mnist"], "strategies": ["evgp", "batchbald", "random"], "seeds": 5,
    "budget": 400, "batch": 100, "members": 25,
}  # fmt: skip
_CNN = {**_MLP, "datasets": ["emnist"], "network": "cnn"}

STUDY = Study(
    name="batchbald",
    title="BatchBALD",
    paper="figure results-batchbald",
    shows="Output entropy and accuracy of EV-GP and of BatchBALD by the number of labels.",
    scales={
        "paper": {"contests": [_MLP, _CNN]},
        "laptop": {
            "contests": [
                {**_MLP, "seeds": 2, "budget": 200, "batch": 50, "members": 10},
                {**_CNN, "seeds": 3, "budget": 200, "batch": 100, "members": 3, "pool": 1000,
                 "test": 1000, "steps": 15},
            ]
        },
        "smoke": {
            "contests": [
                {
                    **_MLP, "datasets": ["optdigits"], "task": "classification",
                    "strategies": ["evgp", "batchbald"], "seeds": 1, "budget": 6, "batch": 3,
                    "members": 2, "width": 8, "steps": 2, "pool": 40, "test": 20,
                }
            ]
        },
    },
    departures="MNIST: 10 networks in place of 25, 2 seeds in place of 5, 200 labels in batches of "
    "50. EMNIST: 3 networks, 3 seeds, 200 labels in batches of 100, a pool of 1,000, as many test "
    "points, 15 epochs. BatchBALD asks 100 masks that drop half of the inputs of the last layer of "
    "one network, which was trained without dropout; the paper does not say which Bayesian network "
    "it asked.",
    paper_departures="400 labels in batches of 100, as the paper does not say its budgets. "
    "BatchBALD asks 100 masks that drop half of the inputs of the last layer of one network, which "
    "was trained without dropout.",
    cells=cells,
    draw=draw,
    claims=claims,
)  # fmt: skip
