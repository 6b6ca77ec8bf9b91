"""Times of single picks, with the product they are compared to in between."""

import time
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from benchmarks.quiet import calm
from evgp import EVGP, NTK, Pool, Selection, mlp
from evgp.search import Exact


@dataclass
class Clock:
    """Told of progress after every pick, it stamps the time and, now and then, times a product.

    The product is one float32 matrix by a vector, as large as the one a pick has to read. What it
    takes is not counted.
    """

    matrix: Tensor
    every: int = 10
    began: float = field(default_factory=time.perf_counter)
    picks: list[float] = field(default_factory=list)
    products: list[float] = field(default_factory=list)
    swaps: list[float] = field(default_factory=list)
    rest: float = 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        """The callback that `EVGP` takes as `progress`."""
        now = time.perf_counter()
        if stage == "picking":
            self.picks.append(now - self.began)
            if done % self.every == 0:
                self.products.append(_product(self.matrix))
            self.began = time.perf_counter()
        elif stage == "exchanging":
            self.swaps.append(now - self.began)
            self.began = time.perf_counter()
        else:
            self.rest = now - self.began


@dataclass(frozen=True)
class Times:
    """The best of several runs, pick by pick: noise rarely hits the same pick twice."""

    setup: float
    picks: np.ndarray
    product: float
    rest: float
    made: Selection
    others: float

    def a_pick(self, k: int | None = None) -> float:
        """Mean seconds up to the k-th, without the first, which waits for the kernel."""
        return float(self.picks[1:k].mean())

    def ratio(self, k: int | None = None) -> float:
        """To one float32 matrix-vector product."""
        return self.a_pick(k) / self.product


def watch(
    x: Tensor, k: int, *, test: Tensor | None = None, storage: torch.dtype, repeats: int
) -> Times:
    """k exact picks by the front of the strategy: kernel, opening, picks, certificate."""
    matrix = NTK(mlp(), storage=torch.float32)(x, test)
    strategy = EVGP(NTK(mlp()), greedy=Exact(), storage=storage)

    def once() -> tuple[Clock, Selection]:
        clock = Clock(matrix)
        selection = strategy(Pool(x, test), k, generator=torch.Generator(), progress=clock)
        return clock, selection

    runs = [calm(once) for _ in range(repeats)]
    clocks = [clock for (clock, _), _ in runs]
    picks = np.min([clock.picks for clock in clocks], axis=0)
    setup = min(clock.picks[0] for clock in clocks) - float(picks[1:].min())
    product = float(np.min([clock.products for clock in clocks], axis=0).mean())
    rest = min(clock.rest for clock in clocks)
    return Times(setup, picks, product, rest, runs[0][0][1], max(cores for _, cores in runs))


def _product(matrix: Tensor) -> float:
    vector = torch.ones(matrix.shape[1])
    began = time.perf_counter()
    matrix @ vector
    return time.perf_counter() - began
