"""Classification with convolutions: a CNN, WideResNets and ResNet18, on the empirical kernel."""

from collections.abc import Sequence
from math import log
from typing import TYPE_CHECKING, Any

from evgp.comparison.rows import Records, column
from evgp.datasets import names
from experiments.contests import MLMOC, averages, cells, curves, panels
from experiments.study import Claim, Study
from experiments.verdicts import between, compared, outperforms, rule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OTHERS = ("random", "kmeans++", "badge", MLMOC)


def draw(rows: Records) -> "dict[str, Figure]":
    """Draw accuracy and entropy by the number of labels."""
    shown = {
        f"{title}\n(has learnt nothing)" if untrained(subset) else title: subset
        for title, subset in panels(rows).items()
    }
    return {"classification-convolutions": curves(shown, ("accuracy", "output_entropy"))}


def claims(rows: Records) -> Sequence[Claim]:
    """The claims of the paper about convolutional networks."""
    shown = panels(rows)
    idle = {title: subset for title, subset in shown.items() if untrained(subset)}
    kept = [row for title, subset in shown.items() if title not in idle for row in subset]
    out = ", ".join(
        f"{title} ({column(subset, 'train_loss').min():.2f} of {guessing(subset):.2f})"
        for title, subset in idle.items()
    )
    message = (
        f"Left out, as no training loss came below nine tenths of that of guessing: {out}. "
        if idle
        else ""
    )
    return [
        Claim(
            "With CNNs and WideResNets, EV-GP consistently outperforms the other baselines in "
            "accuracy.",
            f"Accuracy, {compared(kept, 'accuracy', OTHERS, message)}",
            outperforms(kept, ["accuracy"], OTHERS),
        ),
        Claim(
            "EV-GP can generally select points which result in good initialisation robustness.",
            f"Output entropy, mean over the curve: {averages(kept, 'output_entropy')}. Lead on "
            "random picks, in percent of the larger of the two, ± standard error over seeds, "
            f"paired: {between(kept, 'output_entropy', 'evgp', 'random')}. {message}"
            + rule("EV-GP is better than random picks", kept),
            outperforms(kept, ["output_entropy"], ["random"]),
        ),
    ]


def guessing(rows: Records) -> float:
    """The cross-entropy of guessing, if all classes are equally likely.

    >>> round(guessing([{"dataset": "svhn"}]), 2)
    2.3
    """
    return log(names()[rows[0]["dataset"]].classes)


def untrained(rows: Records) -> bool:
    """Whether the networks of a panel learnt nothing: no loss is below 0.9 of guessing."""
    losses = column(rows, "train_loss")
    return bool(losses.min() >= 0.9 * guessing(rows))


_ONE: dict[str, Any] = {"strategies": ["evgp", *OTHERS], "seeds": 5, "members": 25}
_CNN = {**_ONE, "datasets": ["emnist"], "network": "cnn", "budget": 800, "batch": 200}
_WRN = {**_ONE, "datasets": ["svhn"], "network": "wrn-10-1", "budget": 1000, "batch": 200}
_RESNET = {**_ONE, "datasets": ["svhn"], "network": "resnet18", "budget": 800, "batch": 200}
_CIFAR = {**_ONE, "datasets": ["cifar100"], "network": "wrn-16-1", "budget": 800, "batch": 200}
_LARGE = {**_CIFAR, "budget": 2000, "batch": 500}
_FEW: dict[str, Any] = {"seeds": 1, "members": 3, "pool": 1000, "test": 1000, "steps": 15,
                        "strategies": ["evgp", "random", "kmeans++", "badge"]}  # fmt: skip

STUDY = Study(
    name="classification-convolutions",
    title="Classification with convolutions",
    paper="figures results-class-all c, d; results-class-cnn-extra a to e",
    shows="Accuracy and output entropy with a CNN on EMNIST, WideResNets on SVHN and CIFAR-100, "
    "and ResNet18 on SVHN.",
    scales={
        "paper": {"contests": [_CNN, _WRN, _RESNET, _CIFAR, _LARGE]},
        "laptop": {
            "contests": [
                {**_CNN, **_FEW, "seeds": 3, "budget": 200, "batch": 100},
                {**_WRN, **_FEW, "budget": 200, "batch": 100, "steps": 100},
                {**_CIFAR, **_FEW, "budget": 200, "batch": 100, "steps": 100},
                {**_RESNET, **_FEW, "budget": 200, "batch": 100, "members": 2, "pool": 500,
                 "test": 500, "steps": 10},
            ]
        },
        "smoke": {
            "contests": [
                {
                    **_CNN, "datasets": ["mnist"], "strategies": ["evgp", "random"], "seeds": 1,
                    "budget": 4, "batch": 2, "members": 2, "steps": 1, "pool": 12, "test": 10,
                }
            ]
        },
    },
    departures="1 seed (CNN: 3), 3 networks in place of 25, pools of 1,000 images and 1,000 test "
    "images, 200 labels in batches of 100; without MLMOC, and without the second CIFAR-100 panel "
    "(2,000 labels in batches of 500). CNN: 15 epochs in place of 100. ResNet18: 2 networks, 500 "
    "images in the pool and as many test images, 10 epochs, which shows that it runs and no more.",
    paper_departures="Budgets and batches are ours where the paper does not say them (all but "
    "CIFAR-100 and ResNet18); MLMOC picks the rest of its first batch without knowing the labels "
    "of its 100 random points.",
    cells=cells,
    draw=draw,
    claims=claims,
)  # fmt: skip
