r"""The tangent kernel of any torch module, as it is initialised.

$$ \hat\Theta(x, x') = \nabla_\theta f(x) \cdot \nabla_\theta f(x') $$

Exact, layer by layer (`evgp.kernels.taps`), without the n x p Jacobian.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from evgp._checks import BYTES, flag, integer, keep, numbers, seed_of
from evgp._errors import NetworkError
from evgp._linalg import mirror_
from evgp._machine import seconds, speed
from evgp._memory import available_memory
from evgp.kernels.factors import Factor
from evgp.kernels.kernel import storage_of
from evgp.kernels.tabulated import Tabulated
from evgp.kernels.tapped import Tapped
from evgp.nets import Buildable, check_source, drawn_anew, is_description, looks_up, made_by

Source = nn.Module | Buildable | Callable[[], nn.Module]


@dataclass(frozen=True)
class EmpiricalNTK:
    """The tangent kernel of a finite network at initialisation (or as it is).

    `network` is a module, a description (`mlp`, `cnn`, ...), or a function that makes a module.
    `output` is one output drawn at random (seeded), the number of one, or "trace": the sum over
    all. `draws` averages over that many initialisations. A module is taken as it is, unless `anew`
    (or `fresh`) has it initialised by the seed; the others always are. With p parameters the cost
    is O(n m p) for convolutions and O(n m (inputs + outputs of each layer)) for dense layers;
    memory is the result and about `memory` bytes (a quarter of what is free, by default).

    >>> from evgp import mlp
    >>> kernel = EmpiricalNTK(mlp(depth=1, width=64))
    >>> kernel(torch.eye(3)).shape
    torch.Size([3, 3])
    """

    network: Source
    output: str | int = "random"
    draws: int = 1
    seed: int = 0
    memory: int | None = None
    storage: torch.dtype | None = None
    anew: bool = False
    gradients: ClassVar[bool] = True
    is_checked: ClassVar[bool] = True
    _made: dict[tuple[int, ...], list[Tapped]] = field(
        default_factory=dict, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if not isinstance(self.output, str) or self.output not in ("random", "trace"):
            why = "or random, or trace"
            keep(self, output=integer(self.output, "output", 0, why=why, error=NetworkError))
        keep(self, draws=integer(self.draws, "draws", 1, 100_000, error=NetworkError))
        keep(self, seed=seed_of(self.seed, error=NetworkError))
        flag(self.anew, "anew", error=NetworkError)
        storage_of(self.storage)
        if self.memory is not None:
            made = integer(self.memory, "memory", 1, BYTES, why="in bytes", error=NetworkError)
            keep(self, memory=made)
        check_source(self.network)

    def __call__(
        self, x1: Shaped[Tensor, " n *d"], x2: Shaped[Tensor, " m *d"] | None = None
    ) -> Float[Tensor, "n m"]:
        """The n x m matrix; with one argument the symmetric n x n one."""
        symmetric = x2 is None or x2 is x1
        x1 = sampled(x1)
        other = x1 if symmetric else sampled(x2)
        if x1.shape[1:] != other.shape[1:]:
            raise NetworkError(
                f"expected points of one shape, got {tuple(x1.shape[1:])} and "
                f"{tuple(other.shape[1:])}"
            )
        if len(x1) == 0 or len(other) == 0:
            return torch.zeros(len(x1), len(other), dtype=self.storage or torch.float32)
        out: Tensor | None = None
        for draw, tapped in enumerate(self._instances(x1)):
            for output in self._outputs(tapped, draw):
                blocks = _Blocks(tapped, output, self._room())
                out = out if out is not None else self._empty(tapped, len(x1), len(other))
                blocks.add_(out, x1, None if symmetric else other)
        assert out is not None
        out /= self.draws
        if symmetric:
            mirror_(out)
        return out

    def diag(self, x: Shaped[Tensor, " n *d"]) -> Float[Tensor, " n"]:
        """Each point with itself: one backward pass, no n x n matrix."""
        x = sampled(x)
        if len(x) == 0:
            return torch.zeros(0, dtype=self.storage or torch.float32)
        total: Tensor | None = None
        for draw, tapped in enumerate(self._instances(x)):
            total = total if total is not None else self._empty(tapped, len(x))
            for output in self._outputs(tapped, draw):
                blocks = _Blocks(tapped, output, self._room())
                total += blocks.diag(x).to(total)
        assert total is not None
        return total / self.draws

    def tabulated(self, x: Shaped[Tensor, " n *d"]) -> Tabulated:
        """The kernel between these points, computed once, as a kernel of their row numbers."""
        return Tabulated(self(x))

    def looks_up(self, shape: tuple[int, ...]) -> bool:
        """Does the network take whole numbers as indices, as those for text do?"""
        return looks_up(self._initialise(shape, 0))

    def cost(self, x: Shaped[Tensor, " b *d"], n: int) -> tuple[int, float]:
        """Bytes and seconds that the n x n matrix will take, from a look at a few samples.

        The bytes are those of the matrix and the scratch space beside it.
        """
        tapped = self._instances(x)[0]
        output = self._outputs(tapped, 0)[0]
        blocks = _Blocks(tapped, output, self._room())
        few = x[:8]
        made = tapped.factors(few, output)
        step, keep = blocks.size(n)
        count = -(-n // step)
        passes = n if keep and not tapped.rest else step * count * (count + 1) / 2
        passes *= 2 if tapped.rest else 1  # the slow road keeps nothing of either block
        sample = seconds(lambda: blocks.diag(few), times=1) / len(few)
        size = tapped.zeros(1).element_size()
        flops = speed()[0] * (2 if size == 4 else 1)
        product = n * n * sum(one.work() for one in made) / flops
        repeats = self.draws * len(self._outputs(tapped, 0))
        scratch = n * blocks.sample() + sum(p.numel() for p in tapped.module.parameters()) * size
        matrix = n * n * (self.storage.itemsize if self.storage else size)
        return matrix + min(self._room(), scratch), repeats * (passes * sample + product)

    def passes(self, x: Shaped[Tensor, " n *d"]) -> Iterator[tuple[int, int, list[Factor]]]:
        """For every initialisation and output its number, a block's first row, and its factors."""
        number, room = 0, self._room()
        for draw, tapped in enumerate(self._instances(x)):
            for output in self._outputs(tapped, draw):
                step, _ = _Blocks(tapped, output, room).size(len(x))
                for start in range(0, len(x), step):
                    yield number, start, tapped.factors(x[start : start + step], output)
                number += 1

    def fresh(self, seed: int) -> "EmpiricalNTK":
        """The same kernel from another initialisation, for the next round."""
        return replace(self, seed=seed, anew=True, _made={})

    def _room(self) -> int:
        return self.memory if self.memory is not None else available_memory() // 4

    def _empty(self, tapped: Tapped, *shape: int) -> Tensor:
        dtype = self.storage or tapped.zeros(1).dtype
        return torch.zeros(*shape, dtype=dtype)

    def _outputs(self, tapped: Tapped, draw: int) -> list[int]:
        count = tapped.outputs
        if self.output == "trace":
            return list(range(count))
        if self.output == "random":
            generator = torch.Generator().manual_seed(self.seed + draw)
            return [int(torch.randint(count, (), generator=generator))]
        if not 0 <= int(self.output) < count:
            raise NetworkError(f"expected output from 0 to {count - 1}, got {self.output}")
        return [int(self.output)]

    def _instances(self, x: Tensor) -> list[Tapped]:
        """The initialisations, made once for inputs of this shape."""
        shape = tuple(x.shape[1:])
        if shape not in self._made:
            made = [self._initialise(shape, draw) for draw in range(self.draws)]
            self._made[shape] = [Tapped.of(module, x) for module in made]
        return self._made[shape]

    def _initialise(self, shape: tuple[int, ...], draw: int) -> nn.Module:
        seed = self.seed + draw
        if is_description(self.network):
            return self.network.build(shape, generator=torch.Generator().manual_seed(seed))
        if isinstance(self.network, nn.Module) and draw == 0 and not self.anew:
            return self.network
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            if isinstance(self.network, nn.Module):
                return drawn_anew(self.network)
            return made_by(self.network)


@dataclass(frozen=True)
class _Blocks:
    """One network and output; samples go through it in blocks that fit the memory."""

    tapped: Tapped
    output: int
    room: int

    def add_(self, out: Tensor, x1: Tensor, x2: Tensor | None) -> None:
        """Add the kernel to `out`; factors are kept where all of them fit."""
        other = x1 if x2 is None else x2
        step, keep = self.size(len(x1) + (0 if x2 is None else len(x2)))
        kept: dict[tuple[int, int], list[Factor]] = {}
        zeros = self.tapped.zeros(0)

        def factors(side: int, start: int) -> list[Factor]:
            key = (0 if x2 is None else side, start)
            if key in kept:
                return kept[key]
            made = self.tapped.factors((x1, other)[side][start : start + step], self.output)
            if keep:
                kept[key] = made
            return made

        for i in range(0, len(x1), step):
            left = factors(0, i)
            for j in range(i if x2 is None else 0, len(other), step):
                right = left if x2 is None and i == j else factors(1, j)
                rows, columns = slice(i, i + step), slice(j, j + step)
                target = out[rows, columns]
                direct = (target.dtype, target.device) == (zeros.dtype, zeros.device)
                block = target if direct else self.tapped.zeros(*target.shape)
                for a, b in zip(left, right, strict=True):
                    a.add_(block, b, self.room // 4)
                if not direct:
                    target += block.to(out)
            kept.pop((0, i), None)

    def diag(self, x: Tensor) -> Float[Tensor, " n"]:
        step, _ = self.size(len(x))
        parts = [self.tapped.zeros(0)]
        for i in range(0, len(x), step):
            made = self.tapped.factors(x[i : i + step], self.output)
            parts.append(sum((one.diag(self.room // 4) for one in made), self.tapped.zeros(1)))
        return torch.cat(parts)

    def size(self, n: int) -> tuple[int, bool]:
        """Samples in a block, and whether all blocks may be kept."""
        step = max(1, self.room // 2 // max(1, self.sample()))
        return step, n * self.tapped.kept <= self.room // 4

    def sample(self) -> int:
        """Bytes that one sample takes at the peak of a backward pass, or on the slow road."""
        return 2 * self.tapped.kept + 2 * self.tapped.saved + 2 * self.tapped.widest()


def sampled(x: object) -> Shaped[Tensor, " n *d"]:
    """Samples for a network, one a row."""
    made = numbers(x, "the inputs", error=NetworkError)
    if made.ndim < 2:
        raise NetworkError(f"expected samples of shape (rows, ...), got {tuple(made.shape)}")
    return made
