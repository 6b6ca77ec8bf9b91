"""Training in groups of members, as many at a time as fit in memory."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice, repeat
from threading import Event, Lock

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Generator, Tensor, nn

from evgp._executor import Progress
from evgp._machine import available_memory, each_alone
from evgp.errors import MemoryPlanError, size
from evgp.training.checks import Diverged, TrainingError
from evgp.training.gradients import Batched, Evaluator, OneByOne
from evgp.training.members import Stack, seed_of
from evgp.training.optimisers import GradientDescent, Loss, Optimiser, clip_

Report = Callable[
    [int], bool
]  # called with the number of steps so far; returns whether to continue

# Operations in a step of all members below which a second thread does not pay.
_HEAVY = 2e8


@dataclass(frozen=True)
class Groups:
    """Groups of members that are trained together; `alone`: each has a thread of its own."""

    ids: tuple[Int[Tensor, " _"], ...]
    alone: bool

    @classmethod
    def of(
        cls, evaluator: Evaluator, module: nn.Module, *, members: int, rows: int, sample: int,
        kept: int, memory: int | None,
    ) -> "Groups":  # fmt: skip
        """Groups for steps on so many rows; optimisers keep `kept` numbers per parameter."""
        params = [p for p in module.parameters() if p.requires_grad]
        own = sum(p.numel() * p.element_size() for p in params)
        free, threads = available_memory(), torch.get_num_threads()
        if members * own > free:
            raise MemoryPlanError(
                f"expected {size(members * own)} for the weights of {members} members, got "
                f"{size(free)} free; train fewer members at a time"
            )
        room = free // 4 if memory is None else memory
        # Parameters, gradients, optimiser state and one copy more; activations and their slopes.
        each = own * (3 + kept) + 2 * rows * sample
        if memory is not None and each > room:
            raise MemoryPlanError(
                f"expected memory for at least one member, {each / 1e6:.1f} MB; got "
                f"{room / 1e6:.1f} MB; raise memory, or lower batch"
            )
        work = 6 * members * rows * sum(p.numel() for p in params)
        several = isinstance(evaluator, OneByOne) or work > _HEAVY or members * each > room
        workers = threads if several else 1
        alone = room >= workers * each
        fits = max(1, room // (each * (workers if alone else 1)))
        most = min(fits, -(-members // workers))
        return cls(tuple(torch.split(torch.arange(members), most)), alone)

    def each(
        self,
        work: Callable[[Int[Tensor, " r"], Report], Int[Tensor, " r"]],
        steps: int,
        progress: Progress,
    ) -> Int[Tensor, " e"]:
        """The results of all groups, in order; if one fails, the others stop too."""
        halt, lock = Event(), Lock()
        total = steps * sum(len(ids) for ids in self.ids)
        done = [0] * len(self.ids)

        def follow(number: int) -> Int[Tensor, " r"]:
            ids = self.ids[number]

            def report(step: int) -> bool:
                with lock:
                    done[number] = step * len(ids)
                    progress("training", sum(done), total)
                return not halt.is_set()

            try:
                return work(ids, report)
            except BaseException:
                halt.set()
                raise

        numbers = range(len(self.ids))
        try:
            return torch.cat(list((each_alone if self.alone else map)(follow, numbers)))
        finally:
            halt.set()


Stop = Callable[[Tensor, Tensor], Tensor]  # outputs (e n o) and targets to who is done (e)

_CROWDED = 8  # the stack shrinks once one in this many members is done
_FAR = 1e3  # times the first loss
_ORDER = 2**32 - 1  # the "member" whose seed orders the batches


def batches(n: int, batch: int | None, seed: int) -> Iterator[Int[Tensor, " r"] | None]:
    """The rows of each step, endlessly: None for all of them, or a new order in every pass.

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
    """Training: everything that all members share."""

    evaluator: Evaluator
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
        self, kept: Stack, ids: Int[Tensor, " r"], optimiser: Optimiser, report: Report
    ) -> Int[Tensor, " r"]:
        """Train these members of a stack, in place; returns the steps that each took.

        A member that is done is written back at once, and leaves the stack together with others.
        """
        members = ids  # the members that are in the stack
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
                most = self._check(values, done, members, step, most)
            if look and (new := self._finished(stack, values, outputs) & ~done).any():
                at = new.nonzero()[:, 0]
                kept.put_(members[at], stack, at)
                taken[members[at]] = step
                done |= new
                if bool(done.all()):
                    break
                if int(done.sum()) * _CROWDED >= len(done):
                    rest = (~done).nonzero()[:, 0]
                    stack, gradient = stack.take(rest), gradient.take(rest)
                    members, done = members[rest], done[rest]
                    optimiser.keep_(rest)
            if values is not None:
                self._step(optimiser, stack, gradient)
            else:
                values = self._whole_step(optimiser, stack, gradient, chosen)
                most = self._check(values, done, members, step, most)
            if not report(step + 1):
                break
        at = (~done).nonzero()[:, 0]
        kept.put_(members[at], stack, at)
        report(self.steps)
        return taken[ids]

    def outputs(self, stack: Stack) -> Float[Tensor, "e n o"]:
        """The outputs of a stack at all points, in blocks as large as a batch."""
        blocks = torch.split(self.x, self.batch or len(self.x))
        with torch.no_grad():
            return torch.cat([self.evaluator.outputs(stack, block) for block in blocks], 1)

    def _chosen(self, rows: Tensor | None) -> tuple[Tensor, Tensor]:
        return (self.x, self.y) if rows is None else (self.x[rows], self.y[rows])

    def _gradient(self, into: Stack, stack: Stack, rows: Tensor | None) -> tuple[Tensor, Tensor]:
        x, y = self._chosen(rows)
        with torch.no_grad():
            return self.evaluator.gradient_(into, stack, x, y, self.loss)

    def _step(self, optimiser: Optimiser, stack: Stack, gradient: Stack) -> None:
        if self.clip is not None:
            clip_(gradient, self.clip)
        optimiser.step_(stack, gradient)

    def _whole_step(
        self, optimiser: Optimiser, stack: Stack, gradient: Stack, rows: Tensor | None
    ) -> Float[Tensor, " e"]:
        """Gradients and a step, in one go where possible; returns the losses before it."""
        plain = (
            isinstance(optimiser, GradientDescent) and optimiser.momentum == 0 and self.clip is None
        )
        if not (plain and isinstance(self.evaluator, Batched)):
            values, _ = self._gradient(gradient, stack, rows)
            self._step(optimiser, stack, gradient)
            return values
        assert isinstance(optimiser, GradientDescent)
        x, y = self._chosen(rows)
        with torch.no_grad():
            return self.evaluator.descend_(
                stack, x, y, self.loss, optimiser.lr, optimiser.weight_decay
            )[0]

    def _check(
        self,
        values: Float[Tensor, " e"],
        done: Bool[Tensor, " e"],
        some: Tensor,
        step: int,
        most: float | None,
    ) -> float:
        """Raise if a loss is NaN, infinite or far above the first; returns that limit.

        A ReLU network that diverged this far is dead: its loss stays constant.
        """
        high = float(values.max())  # NaN if there is one
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
        done = self.stop(outputs, self.y)
        if not isinstance(done, Tensor) or done.shape != values.shape or done.dtype != torch.bool:
            raise TrainingError(
                f"expected {len(values)} booleans from stop(outputs, y), one per member; got "
                f"{tuple(done.shape) if isinstance(done, Tensor) else type(done).__name__}"
            )
        return done
