"""A run of some members, from their initialisation until they are done."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice, repeat

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Generator, Tensor

from evgp.training.batched import Batched
from evgp.training.checks import Diverged, TrainingError
from evgp.training.fresh import seed_of
from evgp.training.groups import Tell
from evgp.training.losses import Loss
from evgp.training.roads import Road
from evgp.training.rules import Descent, Rule, clip_
from evgp.training.stack import Stack

Stop = Callable[[Tensor, Tensor], Tensor]  # outputs (e n o) and targets to who is done (e)

_CROWDED = 8  # the stack is made smaller once one in so many of its members is done
_FAR = 1e3  # times the first loss
_ORDER = 2**32 - 1  # the "member" whose seed orders the batches


def batches(n: int, batch: int | None, seed: int) -> Iterator[Int[Tensor, " r"] | None]:
    """Rows of each step without end: None for all of them, or a new order on every pass.

    >>> [len(rows) for rows in islice(batches(5, 2, seed=0), 4)]
    [2, 2, 1, 2]
    """
    if batch is None or batch >= n:
        yield from repeat(None)
    generator = Generator().manual_seed(seed_of(seed, _ORDER))
    while True:
        yield from torch.split(torch.randperm(n, generator=generator), batch or n)


@dataclass(frozen=True, eq=False)
class Run:
    """What all members have in common while they are trained."""

    road: Road
    loss: Loss
    x: Shaped[Tensor, " n *d"]
    y: Shaped[Tensor, " n ..."]
    steps: int
    batch: int | None
    lr: float
    clip: float | None
    stop: float | Stop | None
    seed: int

    def train_(
        self, kept: Stack, ids: Int[Tensor, " r"], rule: Rule, tell: Tell
    ) -> Int[Tensor, " r"]:
        """Train these members of a stack, in place; the steps that each took.

        A member that is done is written back at once and leaves with the next few that are.
        """
        some = ids  # the members in the stack, and which of them are done
        done = torch.zeros(len(ids), dtype=torch.bool)
        taken = torch.full((kept.members,), self.steps)
        stack = kept.take(ids)
        gradient = stack.zeros()
        most: float | None = None
        every = -(-len(self.x) // (self.batch or len(self.x)))  # steps in a pass
        rows = islice(batches(len(self.x), self.batch, self.seed), self.steps)
        for step, chosen in enumerate(rows):
            look = self.stop is not None and step % every == 0
            values = outputs = None
            if look and chosen is None:
                values, outputs = self._gradient(gradient, stack, None)
                most = self._check(values, done, some, step, most)
            if look and (new := self._finished(stack, values, outputs) & ~done).any():
                at = new.nonzero()[:, 0]
                kept.put_(some[at], stack, at)
                taken[some[at]] = step
                done |= new
                if bool(done.all()):
                    break
                if int(done.sum()) * _CROWDED >= len(done):
                    rest = (~done).nonzero()[:, 0]
                    stack, gradient = stack.take(rest), gradient.take(rest)
                    some, done = some[rest], done[rest]
                    rule.keep_(rest)
            if values is not None:
                self._step(rule, stack, gradient)
            else:
                values = self._whole_step(rule, stack, gradient, chosen)
                most = self._check(values, done, some, step, most)
            if not tell(step + 1):
                break
        at = (~done).nonzero()[:, 0]
        kept.put_(some[at], stack, at)
        tell(self.steps)
        return taken[ids]

    def outputs(self, stack: Stack) -> Float[Tensor, "e n o"]:
        """The outputs of a stack at all points, in blocks as large as a batch."""
        blocks = torch.split(self.x, self.batch or len(self.x))
        with torch.no_grad():
            return torch.cat([self.road.outputs(stack, block) for block in blocks], 1)

    def _chosen(self, rows: Tensor | None) -> tuple[Tensor, Tensor]:
        return (self.x, self.y) if rows is None else (self.x[rows], self.y[rows])

    def _gradient(self, into: Stack, stack: Stack, rows: Tensor | None) -> tuple[Tensor, Tensor]:
        x, y = self._chosen(rows)
        with torch.no_grad():
            return self.road.gradient_(into, stack, x, y, self.loss)

    def _step(self, rule: Rule, stack: Stack, gradient: Stack) -> None:
        if self.clip is not None:
            clip_(gradient, self.clip)
        rule.step_(stack, gradient)

    def _whole_step(
        self, rule: Rule, stack: Stack, gradient: Stack, rows: Tensor | None
    ) -> Float[Tensor, " e"]:
        """Gradients and a step, in one where that can be; the losses before it."""
        plain = isinstance(rule, Descent) and rule.momentum == 0 and self.clip is None
        if not (plain and isinstance(self.road, Batched)):
            values, _ = self._gradient(gradient, stack, rows)
            self._step(rule, stack, gradient)
            return values
        assert isinstance(rule, Descent)
        x, y = self._chosen(rows)
        with torch.no_grad():
            return self.road.descend_(stack, x, y, self.loss, rule.lr, rule.weight_decay)[0]

    def _check(
        self,
        values: Float[Tensor, " e"],
        done: Bool[Tensor, " e"],
        some: Tensor,
        step: int,
        most: float | None,
    ) -> float:
        """Refuse losses that are no numbers, or far beyond the first; what is far.

        A ReLU network that was thrown so far is dead, and its loss a constant from then on.
        """
        high = float(values.max())  # NaN where there is one
        if most is None:
            most = _FAR * max(1.0, high)
        if high <= most and high < torch.inf:
            return most
        lost = (~(values <= most) & ~done).nonzero()[:, 0]
        if len(lost):
            raise Diverged(int(some[lost[0]]), step, self.lr)
        return most

    def _finished(
        self, stack: Stack, values: Tensor | None, outputs: Tensor | None
    ) -> Bool[Tensor, " e"]:
        if values is None or outputs is None:
            outputs = self.outputs(stack)
            values, _ = self.loss.both(outputs, self.y)
        assert self.stop is not None
        if not callable(self.stop):
            return values <= self.stop
        said = self.stop(outputs, self.y)
        if not isinstance(said, Tensor) or said.shape != values.shape or said.dtype != torch.bool:
            raise TrainingError(
                f"expected stop(outputs, y) to give {len(values)} truth values, one a member; got "
                f"{tuple(said.shape) if isinstance(said, Tensor) else type(said).__name__}"
            )
        return said
