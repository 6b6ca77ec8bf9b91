"""Memory and time of a run, by its sizes."""

from dataclasses import dataclass

import torch

from evgp._machine import speed
from evgp.criteria import BLOCK, Criterion, ExpectedVariance, MutualInformation, Percentile
from evgp.datasets import step_of
from evgp.greedy import Exchange, Greedy
from evgp.theory import DENSE

# What torch and its like take before the first row is read, and scratch space.
_LIBRARIES = 800_000_000
# The same where only what cannot be dropped counts: not the libraries' own files.
_ANONYMOUS = 450_000_000
# Rows, and numbers, of the sample that inducing points are chosen from.
_SAMPLE, _NUMBERS = 20_000, 1 << 23
# Bytes kept for each row of a shard: five sums, its noise, and what a look at all rows takes.
_KEPT = 100


@dataclass(frozen=True)
class Sizes:
    """The numbers that a run's cost depends on."""

    n: int
    d: int
    k: int
    m: int
    labelled: int
    criterion: Criterion
    own: bool  # the candidates are the test points, so one matrix serves both
    table: tuple[int, float] | None = None  # bytes and seconds of an empirical kernel's matrix
    p: int | None = None  # features, where these take the place of the matrix
    sharded: bool = False  # features lie on the disk
    held: bool = True  # the inputs are in memory
    scratch: bool = False  # sums of rows lie on the disk too
    thinned: bool = False  # only some test points are kept

    def memory(self, storage: str) -> int:
        """Bytes at the peak: the large matrix, the columns of the picks, the inputs."""
        n, m, size = self.n, self.m, 4 if storage == "float32" else 8
        if self.p is not None and self.sharded:
            square = 8 * self.p * (12 * self.p + 6 * self.k)
            # Blocks of rows at once, one a thread and some that wait.
            block = 8 * step_of(2 * self.d) * (6 * self.p + 5 * self.d)
            block *= 2 + torch.get_num_threads()
            sample = min(self.n, _SAMPLE, max(self.p, _NUMBERS // self.d))
            kept = 5 * 8 * self.d * sample + (0 if self.scratch else _KEPT * n)
            inputs = 8 * self.d * (2 * n + (0 if self.own else m)) if self.held else 0
            return square + block + kept + inputs + _ANONYMOUS
        if self.p is not None:
            kept = n * self.p * size + 80 * n + 8 * self.d * (2 * n + (0 if self.own else m))
            square = 8 * self.p * (6 * self.p + 4 * self.k) + 3 * 8 * 4096 * self.p
            return kept + square + (0 if self.own else 8 * m * self.p) + _LIBRARIES
        matrix = n * m * size
        columns = 8 * (3 * self.k + self.labelled) * (n + (0 if self.own else m))
        inputs = 8 * self.d * (2 * n + (0 if self.own else m))
        extra = 0
        if isinstance(self.criterion, ExpectedVariance):
            solver = 8 * m * m * 2 if m <= DENSE else 8 * m * (self.k + 64) * 4
            extra = (0 if self.own else m * m * size) + solver
        if isinstance(self.criterion, MutualInformation):
            extra = 8 * (3 * m * m + 2 * m * n)
        if isinstance(self.criterion, Percentile):
            extra = 12 * 8 * BLOCK
        table = 0 if self.table is None else self.table[0]
        return matrix + columns + inputs + extra + table + _LIBRARIES

    def seconds(self, storage: str, layers: int, greedy: Greedy) -> float:
        """A rough guess from a glance at this machine's speed."""
        n, m, k = self.n, self.m, self.k
        flops, stream = speed()
        size = 4 if storage == "float32" else 8
        if self.p is not None:
            size = 4 if self.sharded else size
            making = (n + (0 if self.own else m)) * 2 * self.p * (self.d + 3 * self.p) / flops
            reads = k * (n * self.p * size / stream + 3e-7 * n + 2e-3)
            return making + reads * (9 if isinstance(greedy, Exchange) else 1)
        pairs = n * m * (0.5 if self.own else 1.0)
        kernel = pairs * (2 * self.d / flops + 8e-9 * layers)
        kernel = kernel if self.table is None else self.table[1]
        picks = k * (n * m * size / stream + 4 * k * n * 8 / stream + 2e-3)
        if isinstance(self.criterion, Percentile):
            picks = k * n * m * (k / flops + 4e-8)
        swaps = 8 * k * (4 * k * n * 8 / stream + 3e-3) if isinstance(greedy, Exchange) else 0.0
        certificate = 3 * m**3 / flops if m <= DENSE else 8 * m * m * (k + 64) / flops
        return kernel + picks + swaps + certificate

    def disk(self) -> int:
        """Bytes of the features, where these lie on the disk."""
        return self.n * (4 * self.p + 8) if self.sharded and self.p is not None else 0
