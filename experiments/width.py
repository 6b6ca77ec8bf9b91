"""How wide must networks be, for picking and for training?"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from evgp import metrics
from evgp.comparison import MEASURES
from evgp.comparison.cells import Cell, Settings
from evgp.comparison.rows import Record, Records, distinct, where
from evgp.comparison.statistics import mean_and_error, mean_by
from evgp.kernels import EmpiricalNTK
from evgp.nets import mlp
from evgp.pool import Pool
from evgp.training import paper_recipe
from experiments import pinned
from experiments.data import dataset
from experiments.study import Claim, Study, Verdict
from experiments.verdicts import Gap, clear, little, signed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CENTRAL = {"output_entropy": "output entropy", "accuracy": "test accuracy"}
_COLOURS = ("#b8265e", "#b35c00", "#00785a", "#3d4fd1")


def chosen_and_trained(
    *, dataset_name: str, seed: int, select: int, widths: list[int], budget: int, batch: int,
    task: str = "classification", **sizes: Any,
) -> list[Record]:  # fmt: skip
    """Pick with the empirical kernel of one width; train networks of all widths on the picks."""
    data = dataset(dataset_name, seed, pool=sizes["pool"], test=sizes["test"], task=task)
    pool = Pool(data.x)
    for turn in range(budget // batch):
        network = mlp(3, select, outputs=data.classes).standard("xavier")
        kernel = EmpiricalNTK(network, seed=1000 * seed + turn)
        generator = torch.Generator().manual_seed(seed)
        picks = pinned.evgp(kernel)(pool, batch, generator=generator).indices
        rows = torch.cat([pool.labelled, torch.from_numpy(picks.copy())])
        pool = Pool(data.x, labelled=rows)
    known = pool.labelled
    results = []
    for width in widths:
        recipe = paper_recipe(
            mlp(3, width, outputs=data.classes).standard("xavier"), classes=data.classes
        )
        steps = sizes["epochs"] * int(np.ceil(len(known) / 32))
        trained = recipe(
            data.x[known], data.y[known], members=sizes["members"], seed=seed, steps=steps
        )
        outputs = trained.predict(data.x_test)
        results.append(
            {
                "dataset": dataset_name,
                "train_width": width,
                "accuracy": metrics.accuracy(outputs, data.y_test),
                "output_entropy": metrics.output_entropy(outputs),
            }
        )
    return results


def cells(settings: Settings) -> Sequence[Cell]:
    """Cells, seed by seed, one per width used for picking."""
    shared = {k: v for k, v in settings.items() if k != "seeds"}
    return [
        Cell("evgp.studies.width:chosen_and_trained", {"seed": seed, "select": width, **shared})
        for seed in range(settings["seeds"])
        for width in settings["widths"]
    ]


def draw(rows: Records) -> "dict[str, Figure]":
    """Draw entropy and accuracy by the picking width, one line per trained width."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 3.3), layout="constrained")
    for axes, (metric, words) in zip(figure.subplots(1, 2), CENTRAL.items(), strict=True):
        widths = distinct(rows, "train_width")
        for turn, (width, colour) in enumerate(zip(widths, _COLOURS, strict=False)):
            at, means = mean_by(where(rows, train_width=width), "select", metric)
            beside = np.array(at) * 2 ** (0.09 * (turn - (len(widths) - 1) / 2))
            axes.errorbar(
                beside, means[:, 0], means[:, 1], marker="o", ms=4, capsize=2, color=colour,
                label=f"trained at {width}",
            )  # fmt: skip
        axes.set_xscale("log", base=2)
        axes.set_xticks(distinct(rows, "select"), [str(item) for item in distinct(rows, "select")])
        axes.set(xlabel="width of the network that picks", ylabel=f"{words} (± standard error)")
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(
        *figure.axes[1].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=4,
        frameon=False,
    )
    return {"width": figure}


def claims(rows: Records) -> Sequence[Claim]:
    """The claims of the paper about widths."""
    each = (
        "Mean over seeds and over the other width, by width "
        + ", ".join(map(str, sorted(distinct(rows, "select"))))
        + "; in brackets the change from the smallest to the largest, ± standard error over "
        "seeds, paired"
    )
    wider = (
        "Holds if every doubling improves the mean, and the whole by more than a standard error; "
        "in part if the whole alone does"
    )
    return [
        Claim(
            "A wider network in training improves accuracy.",
            f"{each}: {means_by(rows, 'train_width', 'accuracy')}. {wider}.",
            improves(rows, "train_width", "accuracy"),
        ),
        Claim(
            "A wider network in training improves robustness.",
            f"Output entropy: {means_by(rows, 'train_width', 'output_entropy')}. {wider}.",
            improves(rows, "train_width", "output_entropy"),
        ),
        Claim(
            "A wider network for the picks improves robustness.",
            f"Output entropy: {means_by(rows, 'select', 'output_entropy')}. {wider}.",
            improves(rows, "select", "output_entropy"),
        ),
        Claim(
            "A wider network for the picks has a negligible effect on accuracy.",
            f"Accuracy: {means_by(rows, 'select', 'accuracy')}. Holds if the change is less than a "
            "quarter of that with the width in training "
            f"({signed(change(rows, 'train_width', 'accuracy'))}), in part if less than half.",
            little([(change(rows, "select", "accuracy"), change(rows, "train_width", "accuracy"))]),
        ),
    ]


def change(rows: Records, by: str, metric: str) -> Gap:
    """Change from the smallest to the largest width, averaged over the other, paired by seeds."""
    results = []
    for seed in distinct(rows, "seed"):
        _, means = mean_by(where(rows, seed=seed), by, metric)
        results.append(float(means[-1, 0] - means[0, 0]))
    return mean_and_error(results)


def improves(rows: Records, by: str, metric: str) -> Verdict:
    """With every doubling, and from the smallest to the largest clearly; or only the latter."""
    sign = -1.0 if MEASURES[metric].lower else 1.0
    mean, error = change(rows, by, metric)
    if not np.isfinite(error):
        return "holds in part" if sign * mean > 0 else "does not hold"
    if not clear((sign * mean, error)):
        return "does not hold"
    _, means = mean_by(rows, by, metric)
    return "holds" if (sign * np.diff(means[:, 0]) > 0).all() else "holds in part"


def means_by(rows: Records, by: str, metric: str) -> str:
    """The mean for each width, and the whole change."""
    _, curve = mean_by(rows, by, metric)
    means = ", ".join(f"{mean:.4f}" for mean in curve[:, 0])
    return f"{means} ({signed(change(rows, by, metric))})"


_PAPER: dict[str, Any] = {
    "dataset_name": "mnist", "seeds": 5, "widths": [128, 256, 512, 1024], "budget": 600,
    "batch": 200, "pool": 10_000, "test": 10_000, "members": 25, "epochs": 100,
}  # fmt: skip

STUDY = Study(
    name="width",
    title="Width of the network that picks, and of the one that is trained",
    paper="figure results-fixed-train-width",
    shows="Output entropy and accuracy of EV-GP-Emp by both widths, a 3-layer MLP on MNIST.",
    scales={
        "paper": _PAPER,
        "laptop": {
            **_PAPER, "seeds": 3, "pool": 4000, "test": 2000, "members": 5,
        },
        "smoke": {
            **_PAPER, "dataset_name": "optdigits", "seeds": 1, "widths": [4, 8], "budget": 4,
            "batch": 2, "pool": 30, "test": 20, "members": 2, "epochs": 1,
        },
    },
    departures="5 networks in place of 25, 3 seeds in place of 5, pools of 4,000 and 2,000 test "
    "points in place of 10,000.",
    cells=cells,
    draw=draw,
    claims=claims,
)  # fmt: skip
