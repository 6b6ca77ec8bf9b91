"""Members in groups: as many as fit the memory, one group for each thread where that pays."""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Event, Lock

import torch
from jaxtyping import Int
from torch import Tensor, nn

from evgp._errors import MemoryPlanError
from evgp._executor import Progress
from evgp._machine import available_memory, each_alone
from evgp.training.roads import Road, Singly

Tell = Callable[[int], bool]  # the steps of a group so far; whether it is to go on

# Operations in a step of all members below which a second thread costs more than it brings.
_HEAVY = 2e8


@dataclass(frozen=True)
class Groups:
    """Members that are trained together, and whether each group has a thread of its own."""

    ids: tuple[Int[Tensor, " _"], ...]
    alone: bool

    @classmethod
    def of(
        cls, road: Road, module: nn.Module, *, members: int, rows: int, sample: int, kept: int,
        memory: int | None,
    ) -> "Groups":  # fmt: skip
        """Groups for steps on so many rows; an optimiser keeps `kept` numbers a parameter."""
        params = [p for p in module.parameters() if p.requires_grad]
        own = sum(p.numel() * p.element_size() for p in params)
        free, threads = available_memory(), torch.get_num_threads()
        if members * own > free:
            raise MemoryPlanError(
                f"expected {members * own / 1e9:.1f} GB for the weights of {members} members, got "
                f"{free / 1e9:.1f} GB free; train fewer at a time"
            )
        room = free // 4 if memory is None else memory
        # Parameters, gradients, what is kept, one to spare; slopes beside the activations.
        one = own * (3 + kept) + 2 * rows * sample
        if memory is not None and one > room:
            raise MemoryPlanError(
                f"expected memory for one member at least, {one / 1e6:.1f} MB; got "
                f"{room / 1e6:.1f} MB; raise memory, or lower batch"
            )
        work = 6 * members * rows * sum(p.numel() for p in params)
        several = isinstance(road, Singly) or work > _HEAVY or members * one > room
        wanted = threads if several else 1
        alone = room >= wanted * one
        fits = max(1, room // (one * (wanted if alone else 1)))
        size = min(fits, -(-members // wanted))
        return cls(tuple(torch.split(torch.arange(members), size)), alone)

    def each(
        self,
        work: Callable[[Int[Tensor, " r"], Tell], Int[Tensor, " r"]],
        steps: int,
        progress: Progress,
    ) -> Int[Tensor, " e"]:
        """The answers of all groups, in order; once one fails, the others stop too."""
        halt, lock = Event(), Lock()
        total = steps * sum(len(ids) for ids in self.ids)
        done = [0] * len(self.ids)

        def follow(number: int) -> Int[Tensor, " r"]:
            ids = self.ids[number]

            def tell(step: int) -> bool:
                with lock:
                    done[number] = step * len(ids)
                    progress("training", sum(done), total)
                return not halt.is_set()

            try:
                return work(ids, tell)
            except BaseException:
                halt.set()
                raise

        numbers = range(len(self.ids))
        try:
            return torch.cat(list((each_alone if self.alone else map)(follow, numbers)))
        finally:
            halt.set()
