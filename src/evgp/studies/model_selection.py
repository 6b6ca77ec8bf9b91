"""Which network? EV-GP+MS beside a fixed network and NASWOT, and its score beside real errors."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from evgp import metrics
from evgp.architectures import Choice, candidates, choose, evidence, naswot
from evgp.datasets import Dataset
from evgp.ensembles import Recipe
from evgp.kernels import NTK
from evgp.nets import Network
from evgp.pool import Pool
from evgp.strategies import EVGP
from evgp.studies.data import TITLES, dataset
from evgp.studies.model_figures import WAYS, draw, ranks
from evgp.studies.rows import Record, Rows, column, distinct, where
from evgp.studies.study import Cell, Claim, Settings, Study, verdict

FIRST = "relu-2"


@dataclass(frozen=True)
class Trial:
    """One draw of the data, and how networks are chosen and trained on it."""

    dataset: str
    seed: int
    pool: int
    test: int
    batch: int
    width: int
    members: int
    steps: int
    folds: int

    @cached_property
    def data(self) -> Dataset:
        return dataset(self.dataset, self.seed, pool=self.pool, test=self.test)

    @cached_property
    def networks(self) -> dict[str, Network]:
        return networks(self.dataset, self.width)

    def played(self, way: str, budget: int) -> Iterator[tuple[Int[Tensor, " l"], str]]:
        """Algorithm 1: data by the current network, then the network by all labels."""
        current, known = FIRST, torch.empty(0, dtype=torch.long)
        while len(known) < budget:
            strategy = EVGP(NTK(self.networks[current]))
            generator = torch.Generator().manual_seed(self.seed)
            made = strategy(Pool(self.data.x, labelled=known), self.batch, generator=generator)
            known = torch.cat([known, torch.from_numpy(made.indices.copy())])
            current = self.chosen(way, known, current)
            yield known, current

    def chosen(self, way: str, known: Int[Tensor, " l"], current: str) -> str:
        """The network that the labels so far speak for."""
        if way == "fixed":
            return current
        x, y = self.data.x[known], self.data.y[known]
        if way == "naswot":
            nets = self.networks
            return max(nets, key=lambda name: naswot(nets[name], x, seed=self.seed))
        rule = way == "evgp-ms-1se"
        return self.scored(x, y, current=current, one_error=rule).chosen.name

    def scored(self, x: Tensor, y: Tensor, **rule: Any) -> Choice:
        """Every architecture by the paper's score."""
        return choose(
            self.networks, x, y, folds=self.folds, standardise=False, seed=self.seed, **rule
        )

    def trained(self, name: str, known: Int[Tensor, " l"]) -> Record:
        """As the authors trained for this: Adam with a step of 0.01, all labels at once."""
        data, settings = self.data, {"optimiser": "adam", "lr": 0.01, "steps": self.steps}
        recipe = Recipe(self.networks[name], settings, gentler=3)
        made = recipe(data.x[known], data.y[known], members=self.members, seed=self.seed)
        outputs = made.predict(data.x_test)
        return {
            "labels": len(known),
            "network": name,
            "mse": metrics.mse(outputs, data.y_test),
            "output_variance": metrics.output_variance(outputs),
            "train_loss": float(made.losses.mean()),
            "lr": made.lr,
        }


def networks(name: str, width: int) -> dict[str, Network]:
    """The paper's 16, and for the sinusoidal data those with sines too."""
    sin = ("sin",) if name == "sinusoidal" else ()
    return candidates(activations=("relu", "gelu", "leaky_relu", "erf", *sin), width=width)


def rounds(*, strategy: str, budget: int, **trial: Any) -> list[Record]:
    """Pick a batch, choose a network, train it, test it; until the budget is spent."""
    made = Trial(**trial)
    return [
        {"kind": "round", **made.trained(name, known)}
        for known, name in made.played(strategy, budget)
    ]


def ladder(*, sizes: list[int], **trial: Any) -> list[Record]:
    """Every architecture trained on what EV-GP+MS labelled, beside the scores without training."""
    made, found = Trial(**trial), []
    for known, _ in made.played("evgp-ms", max(sizes)):
        if len(known) not in sizes:
            continue
        x, y = made.data.x[known], made.data.y[known]
        for one in made.scored(x, y).ranked:
            scores = {
                "score": one.score,
                "fit": one.fit,
                "spread": one.spread,
                "naswot": naswot(one.network, x, seed=made.seed),
                "evidence": evidence(one.network, x, y),
            }
            found.append({"kind": "ladder", **made.trained(one.name, known), **scores})
    return found


def cells(settings: Settings) -> Sequence[Cell]:
    """Seed by seed, so that a run that is cut short has whole comparisons."""
    shared = {
        k: settings[k] for k in ("pool", "test", "batch", "width", "members", "steps", "folds")
    }
    made = []
    for seed in range(settings["seeds"]):
        for name in settings["datasets"]:
            made += [
                Cell(
                    "evgp.studies.model_selection:rounds",
                    {
                        "dataset": name,
                        "strategy": way,
                        "seed": seed,
                        "budget": settings["budget"],
                        **shared,
                    },
                )
                for way in WAYS
            ]
            if seed < settings["ladders"]:
                made.append(
                    Cell(
                        "evgp.studies.model_selection:ladder",
                        {"dataset": name, "seed": seed, "sizes": settings["sizes"], **shared},
                    )
                )  # fmt: skip
    return made


def areas(rows: Rows, name: str, way: str) -> dict[int, float]:
    """Mean log error over a learning curve, for each seed."""
    made = {}
    for seed in distinct(where(rows, dataset=name, strategy=way), "seed"):
        some = sorted(
            where(rows, dataset=name, strategy=way, seed=seed), key=lambda row: row["labels"]
        )
        labels, errors = column(some, "labels"), np.log(column(some, "mse"))
        made[seed] = metrics.area(labels, errors) if len(some) > 1 else float(errors[0])
    return made


def paired(rows: Rows, name: str, way: str, other: str) -> tuple[float, float]:
    """By how many percent one way's error is below the other's, and the standard error."""
    ours, theirs = areas(rows, name, way), areas(rows, name, other)
    gaps = np.array([theirs[seed] - ours[seed] for seed in ours if seed in theirs])
    if not len(gaps):
        return np.nan, np.nan
    error = gaps.std(ddof=1) / len(gaps) ** 0.5 if len(gaps) > 1 else np.nan
    rest = float(np.exp(-gaps.mean()))
    return 100 * (1 - rest), 100 * rest * float(error)


def claims(rows: Rows) -> Sequence[Claim]:
    """What the paper says in words of its figures on model selection."""
    played, tried = where(rows, kind="round"), where(rows, kind="ladder")
    names = distinct(played, "dataset")
    fixed, rival = (
        {name: paired(played, name, "evgp-ms", other) for name in names}
        for other in ("fixed", "naswot")
    )
    rule = {name: paired(played, name, "evgp-ms-1se", "evgp-ms") for name in names}
    small, large = min(distinct(tried, "labels")), max(distinct(tried, "labels"))

    def rank(size: int, score: str, sign: float = 1.0) -> list[float]:
        some = where(tried, labels=size)
        return [float(np.mean(ranks(where(some, dataset=name), score, sign))) for name in names]

    many, chosen = (
        rank(large, "score"),
        {size: _regret(tried, names, size) for size in (small, large)},
    )
    listed = ", ".join(TITLES[name] for name in names)
    adequate = [gap > 2 * error and gap > 5 for gap, error in fixed.values()]
    par = [gap + error > -5 for gap, error in fixed.values()]
    return [
        Claim(
            "Where the fixed network does well, EV-GP+MS is on par; where it is not adequate, "
            "EV-GP+MS finds a better one.",
            "Test error below that of the fixed 2-layer ReLU network (geometric mean over the "
            f"curve, ± standard error over seeds): {_listed(fixed)}.",
            verdict([all(par), any(adequate)]),
        ),
        Claim(
            "EV-GP+MS does better than model selection by NASWOT.",
            f"Test error below that of NASWOT: {_listed(rival)}.",
            verdict([gap > error for gap, error in rival.values()]),
        ),
        Claim(
            "The score is an accurate reflection of the error that a trained network reaches.",
            f"Spearman of score and test MSE over all architectures ({listed}): at {small} labels "
            f"{_span(rank(small, 'score'))}; at {large} labels {_span(many)}, NASWOT "
            f"{_span(rank(large, 'naswot', -1.0))}, marginal likelihood "
            f"{_span(rank(large, 'evidence', -1.0))}. Where it fails, training decides and not the "
            f"architecture: Spearman of the training loss that 500 steps of Adam reach with the "
            f"test MSE, at {large} labels: {_span(rank(large, 'train_loss'))}. Near 1 networks are "
            "not trained to the end; below 0 those that fit noisy labels less do better. The score "
            "is for networks that are at rest.",
            verdict([one > 0.6 for one in many]),
        ),
        Claim(
            "Several networks with similar scores and different errors often lead to one that is "
            "not the best, though acceptable.",
            f"Test MSE of the chosen network over that of the best of all ({listed}): at {small} "
            f"labels {_span(chosen[small])}, at {large} labels {_span(chosen[large])}.",
            verdict([one > 1.05 for one in chosen[large]]),
        ),
        Claim(
            "Ours: keeping the network unless another leads by one standard error mends that.",
            f"With the rule the test error is lower by: {_listed(rule)}. Networks changed from one "
            f"round to the next {_changes(played, 'evgp-ms')} of the time without it, "
            f"{_changes(played, 'evgp-ms-1se')} with it.",
            verdict([gap > error for gap, error in rule.values()]),
        ),
    ]


def _regret(rows: Rows, names: Sequence[str], size: int) -> list[float]:
    """The error of the network with the best score over the least error, mean over seeds."""
    made = []
    for name in names:
        ratios = []
        for seed in distinct(where(rows, dataset=name), "seed"):
            some = where(rows, dataset=name, seed=seed, labels=size)
            errors = column(some, "mse")
            ratios.append(errors[column(some, "score").argmin()] / errors.min())
        made.append(float(np.mean(ratios)))
    return made


def _listed(found: dict[str, tuple[float, float]]) -> str:
    return ", ".join(
        f"{TITLES[name]} {gap:.0f} % ± {error:.0f}" for name, (gap, error) in found.items()
    )


def _span(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)


def _changes(rows: Rows, way: str) -> str:
    changed: list[bool] = []
    for name in distinct(rows, "dataset"):
        for seed in distinct(rows, "seed"):
            some = sorted(
                where(rows, dataset=name, seed=seed, strategy=way), key=lambda row: row["labels"]
            )
            nets = [row["network"] for row in some]
            changed += [a != b for a, b in pairwise(nets)]
    return f"{100 * np.mean(changed):.0f} %" if changed else "0 %"


_PAPER: dict[str, Any] = {
    "datasets": ["kin8nm", "naval", "protein", "sinusoidal"],
    "seeds": 5, "ladders": 5, "sizes": [20, 200], "pool": 25_000, "test": 25_000,
    "budget": 200, "batch": 20, "width": 512, "members": 50, "steps": 500, "folds": 100,
}  # fmt: skip

STUDY = Study(
    name="model-selection",
    title="Which network: chosen without training",
    paper="figures results-ms, ms-res-ablation, ms-res-extra",
    shows="Test error by round of EV-GP+MS, of a fixed network and of NASWOT; the score without "
    "training against the error of every trained architecture; which network when.",
    scales={
        "paper": _PAPER,
        "laptop": {
            **_PAPER, "ladders": 2, "pool": 2000, "test": 2000, "width": 256, "members": 2,
        },
        "smoke": {
            **_PAPER, "datasets": ["sinusoidal"], "seeds": 2, "ladders": 1, "sizes": [10, 20],
            "pool": 60, "test": 30, "budget": 20, "batch": 10, "width": 8, "members": 2,
            "steps": 5, "folds": 5,
        },
    },
    departures="2 networks in place of 50 for each test error, of width 256 in place of 512; pools "
    "of 2,000 points and 2,000 test points of each dataset; all architectures trained for two "
    "seeds. The sinusoidal data (2,000 points in three dimensions) is ours, as the paper does not "
    "say its size.",
    cells=cells,
    draw=draw,
    claims=claims,
)  # fmt: skip
