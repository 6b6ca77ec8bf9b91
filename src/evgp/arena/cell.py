"""One cell of a comparison: a strategy on a dataset, with a seed, through all rounds."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter

import torch
from jaxtyping import Int
from torch import Tensor

from evgp import metrics
from evgp._errors import EvgpError, PoolError
from evgp.arena.row import Row
from evgp.arena.terms import Subject, Terms
from evgp.datasets import Dataset
from evgp.loop import Round, run
from evgp.pool import Pool
from evgp.strategies import Strategy
from evgp.training import Ensemble

Told = Callable[[], object]


@dataclass(frozen=True)
class Cell:
    """What is to be played; the seed decides the split, the strategy's draws and the networks."""

    subject: Subject
    strategy: str
    seed: int
    terms: Terms

    def play(self, told: Told = lambda: None, *, last_only: bool = False) -> "Played":
        """Pick, train on what was picked, measure on the test part; again until it is spent.

        `told` is called after each round; with `last_only` nothing is measured before the budget is
        spent. Networks of one seed start from the same weights whatever the strategy, so that
        strategies are compared in pairs.
        """
        data = self.subject.load(self.seed)
        strategy = self.terms.strategy(self.strategy, data, self.seed)
        recipe = self.terms.setting(data, self.seed).recipe
        pool = _start(data, self.terms.start, self.seed)
        rows: list[Row] = []
        for made in self._rounds(pool, strategy, data):
            if last_only and made.number < self.terms.rounds - 1:
                continue
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

    def _rounds(self, pool: Pool, strategy: Strategy, data: Dataset) -> Iterator[Round]:
        """The rounds of the loop; a strategy of the user's may raise anything."""
        terms = self.terms
        try:
            yield from run(
                pool, strategy, lambda rows: data.y[rows], terms.rounds, terms.batch, seed=self.seed
            )
        except EvgpError:
            raise
        except Exception as error:
            if ":" not in self.strategy:
                raise
            raise PoolError(f"{self.strategy} stopped: {type(error).__name__}: {error}") from error


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
