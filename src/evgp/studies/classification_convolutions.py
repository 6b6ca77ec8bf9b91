"""Classification with convolutions: a CNN, WideResNets and ResNet18, on the empirical kernel."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evgp.studies.contests import MLMOC, cells, curves, panels, told, wins
from evgp.studies.rows import Rows
from evgp.studies.study import Claim, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OTHERS = ("random", "kmeans++", "badge", MLMOC)


def draw(rows: Rows) -> "dict[str, Figure]":
    """Accuracy and entropy by the number of labels."""
    return {"classification-convolutions": curves(panels(rows), ("accuracy", "output_entropy"))}


def claims(rows: Rows) -> Sequence[Claim]:
    """What the paper says of networks with convolutions."""
    return [
        Claim(
            "With CNNs and WideResNets, EV-GP consistently outperforms the other baselines in "
            "accuracy.",
            f"Accuracy, mean over the curve: {told(rows, 'accuracy')}.",
            wins(rows, "accuracy", "evgp", OTHERS),
        ),
        Claim(
            "EV-GP can generally select points which result in good initialisation robustness.",
            f"Output entropy, mean over the curve: {told(rows, 'output_entropy')}.",
            wins(rows, "output_entropy", "evgp", OTHERS),
        ),
    ]


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
                {**_CNN, **_FEW, "budget": 200, "batch": 100},
                {**_WRN, **_FEW, "budget": 200, "batch": 100},
                {**_CIFAR, **_FEW, "budget": 200, "batch": 100},
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
    departures="1 seed, 3 networks in place of 25, pools of 1,000 images and 1,000 test images, "
    "15 epochs in place of 100, 200 labels in batches of 100; without MLMOC, and without the "
    "second CIFAR-100 panel (2,000 labels in batches of 500). ResNet18: 2 networks, 500 images in "
    "the pool and as many test images, 10 epochs.",
    cells=cells,
    draw=draw,
    claims=claims,
)  # fmt: skip
