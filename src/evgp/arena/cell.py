"""One cell of a comparison: a strategy on a dataset, with a seed, through all rounds."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import torch
from jaxtyping import Int
from torch import Tensor

from evgp import metrics
from evgp.arena.row import Row
from evgp.arena.terms import Subject, Terms
from evgp.datasets import Dataset
from evgp.ensembles import Ensemble
from evgp.loop import run
from evgp.pool import Pool

Told = Callable[[], object]


@dataclass(frozen=True)
class Cell:
    """What is to be played; the seed decides the split, the strategy's draws and the networks."""

    subject: Subject
    strategy: str
    seed: int
    terms: Terms

    def play(self, told: Told = lambda: None) -> "Played":
        """Pick, train on what was picked, measure on the test part; again until it is spent.

        `told` is called after each round. Networks of one seed start from the same weights whatever
        the strategy, so that strategies are compared in pairs.
        """
        data = self.subject.load(self.seed)
        strategy = self.terms.strategy(self.strategy, data, self.seed)
        recipe = self.terms.setting(data, self.seed).recipe
        pool = _start(data, self.terms.start, self.seed)
        rows: list[Row] = []
        for made in run(
            pool,
            strategy,
            lambda picked: data.y[picked],
            self.terms.rounds,
            self.terms.batch,
            seed=self.seed,
        ):
            begun = perf_counter()
            known = made.pool.labelled
            members = recipe(
                data.x[known], data.y[known], members=self.terms.members, seed=self.seed
            )
            seconds = perf_counter() - begun
            rows.append(
                Row(
                    self.subject.name,
                    data.kind,
                    self.strategy,
                    self.seed,
                    made.number,
                    len(known),
                    self.terms.batch,
                    self.terms.members,
                    float(members.losses.mean()),
                    made.seconds,
                    seconds,
                    **measured(members, data),
                    lr=members.lr,
                )
            )
            told()
        return Played(tuple(rows), made.pool.labelled)


@dataclass(frozen=True)
class Played:
    """The rows of a cell, and the pool rows in the order in which they were labelled."""

    rows: tuple[Row, ...]
    picks: Int[Tensor, " k"]


def measured(members: Ensemble, data: Dataset) -> dict[str, float]:
    """Every metric that applies, on the test part."""
    outputs = members.predict(data.x_test)
    if data.kind == "regression":
        return {
            "mse": metrics.mse(outputs, data.y_test),
            "output_variance_p90": metrics.output_variance(outputs, 90),
            "output_variance": metrics.output_variance(outputs),
            "bias": metrics.bias(outputs, data.y_test),
        }
    return {
        "accuracy": metrics.accuracy(outputs, data.y_test),
        "output_entropy": metrics.output_entropy(outputs),
        "disagreement": metrics.disagreement(outputs),
        "nll": metrics.nll(outputs, data.y_test),
        "calibration_error": metrics.calibration_error(outputs, data.y_test),
    }


def _start(data: Dataset, count: int, seed: int) -> Pool:
    if count == 0:
        return Pool(data.x)
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randperm(len(data.x), generator=generator)[:count]
    return Pool(data.x, labelled=rows, y=data.y[rows])
